//! The files of the page. They are compiled into the program, and contain nothing of a workspace.

#[derive(Debug, Clone, Copy)]
pub(crate) struct PageFile {
    pub path: &'static str,
    pub content_type: &'static str,
    pub content: &'static str,
}

macro_rules! files {
    ($($path:literal $file:literal $content_type:literal)*) => {
        &[$(PageFile { path: $path, content_type: $content_type, content: include_str!(concat!("../page/", $file)) }),*]
    };
}

const FILES: &[PageFile] = files! {
    "/" "index.html" "text/html; charset=utf-8"
    "/page.css" "page.css" "text/css; charset=utf-8"
    "/icon.svg" "icon.svg" "image/svg+xml"
    "/app.js" "app.js" "text/javascript; charset=utf-8"
    "/ask.js" "ask.js" "text/javascript; charset=utf-8"
    "/board.js" "board.js" "text/javascript; charset=utf-8"
    "/diff.js" "diff.js" "text/javascript; charset=utf-8"
    "/dom.js" "dom.js" "text/javascript; charset=utf-8"
    "/file.js" "file.js" "text/javascript; charset=utf-8"
    "/lists.js" "lists.js" "text/javascript; charset=utf-8"
    "/map.js" "map.js" "text/javascript; charset=utf-8"
    "/runs.js" "runs.js" "text/javascript; charset=utf-8"
    "/store.js" "store.js" "text/javascript; charset=utf-8"
    "/timeline.js" "timeline.js" "text/javascript; charset=utf-8"
    "/words.js" "words.js" "text/javascript; charset=utf-8"
};

pub(crate) fn file(path: &str) -> Option<&'static PageFile> {
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        let bytes: usize = FILES.iter().map(|file| file.content.len()).sum();
        assert!(bytes < 300_000, "{bytes}");
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere_or_written_into_the_page() {
        for file in FILES {
            let foreign = file.content.split("http").skip(1).any(|rest| {
                let address = rest.trim_start_matches('s').strip_prefix("://");
                address.is_some_and(|address| !address.starts_with("www.w3.org/2000/svg"))
            });
            assert!(!foreign, "{} names another server", file.path);
            for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "onclick="] {
                assert!(!file.content.contains(word), "{} uses {word}", file.path);
            }
        }
    }

    #[test]
    fn every_module_that_is_imported_is_served() {
        for file in FILES.iter().filter(|file| file.path.ends_with(".js")) {
            let imports = file.content.lines().filter(|line| line.starts_with("import "));
            for import in imports {
                let path = import.split('"').nth(1).and_then(|path| path.strip_prefix('.'));
                assert!(path.is_some_and(|path| super::file(path).is_some()), "{}: {import}", file.path);
            }
        }
    }
}
