//! What a file is, told by its name alone, in words that a model reads: `rust source`, `npm manifest`, `image`. Nothing is decided
//! by it, and nobody looks into the file.

mod table;

use crate::path::RelPath;
use table::{ENDINGS, NAMES};

/// What the file at this path is, by its name; `file` where that does not say.
///
/// The whole name comes first (`Cargo.toml`), then the longest known ending (`.d.ts` before `.ts`), then what stands before the
/// first dot or dash (`Dockerfile.dev`, `LICENSE-MIT`). Capitals do not matter.
pub fn kind_of(path: &RelPath) -> &'static str {
    let name = path.name().to_ascii_lowercase();
    let by_name = || look_up(NAMES, &name);
    let by_ending = || endings(&name).find_map(|ending| look_up(ENDINGS, ending));
    let by_beginning = || look_up(NAMES, beginning(&name)?);
    by_name().or_else(by_ending).or_else(by_beginning).unwrap_or("file")
}

/// The same in a short word, for programs: `go`, `md`, `yaml`. It is the ending of the name, in its usual spelling, or the name of a
/// file that is known without one (`makefile`); `file` where neither says anything.
pub fn type_of(path: &RelPath) -> String {
    let name = path.name().to_ascii_lowercase();
    let ending = endings(&name).last().filter(|ending| is_short_word(ending));
    let known = || look_up(NAMES, &name).map(|_| name.trim_start_matches('.'));
    let word = ending.or_else(known).filter(|word| is_short_word(word)).unwrap_or("file");
    let usual = SPELLINGS.iter().find(|(other, _)| *other == word).map(|(_, usual)| *usual);
    usual.unwrap_or(word).to_owned()
}

fn is_short_word(word: &str) -> bool {
    (1..=12).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+'))
}

/// Endings that mean the same, with the usual one.
const SPELLINGS: &[(&str, &str)] = &[
    ("cc", "cpp"),
    ("cxx", "cpp"),
    ("htm", "html"),
    ("hxx", "hpp"),
    ("jpeg", "jpg"),
    ("markdown", "md"),
    ("mdown", "md"),
    ("pyw", "py"),
    ("text", "txt"),
    ("tiff", "tif"),
    ("yml", "yaml"),
];

fn look_up(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    let at = table.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(table[at].1)
}

/// What follows each dot, the longest first. The dot of a hidden file is part of its name.
fn endings(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('.').filter(|(at, _)| *at > 0).map(|(at, _)| &name[at + 1..])
}

fn beginning(name: &str) -> Option<&str> {
    let at = name.char_indices().skip(1).find(|(_, c)| matches!(c, '.' | '-'))?.0;
    Some(&name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, kind: &str) {
        assert_eq!(kind_of(&RelPath::new(path).unwrap()), kind, "{path}");
    }

    #[test]
    fn types_are_short() {
        for (path, expected) in [
            ("cmd/main.go", "go"),
            ("README.md", "md"),
            ("notes.MARKDOWN", "md"),
            (".github/workflows/ci.yml", "yaml"),
            ("a.d.ts", "ts"),
            ("x.tar.gz", "gz"),
            ("Makefile", "makefile"),
            ("sub/.gitignore", "gitignore"),
            ("LICENSE", "license"),
            ("bin/tool", "file"),
            ("what.is this", "file"),
            ("a.", "file"),
        ] {
            assert_eq!(type_of(&RelPath::new(path).unwrap()), expected, "{path}");
        }
    }

    #[test]
    fn tables_are_in_order_without_doubles_and_in_small_letters() {
        for table in [NAMES, ENDINGS] {
            assert!(table.is_sorted_by(|(a, _), (b, _)| a < b), "{:?}", table.windows(2).find(|pair| pair[0].0 >= pair[1].0));
            for (name, kind) in table {
                assert_eq!(*name, name.to_ascii_lowercase());
                assert!(!kind.is_empty() && kind.len() <= 32 && *kind == kind.to_ascii_lowercase(), "{name}: {kind}");
            }
        }
    }

    #[test]
    fn endings_tell_languages() {
        check("src/main.rs", "rust source");
        check("cmd/server/main.go", "go source");
        check("a/b/script.py", "python source");
        check("deploy.sh", "shell script");
        check("notes.txt", "text");
        check("logo.png", "image");
        check("libfoo.so", "binary");
        check("ci.yml", "yaml");
        check("x.h", "c header");
    }

    #[test]
    fn whole_names_come_before_endings() {
        check("crates/core/Cargo.toml", "cargo manifest");
        check("Cargo.lock", "cargo lock");
        check("web/package.json", "npm manifest");
        check("go.mod", "go module");
        check("rustfmt.toml", "rustfmt configuration");
        check("other.toml", "toml");
        check("CMakeLists.txt", "cmake script");
        check("AGENTS.md", "agent instructions");
    }

    #[test]
    fn capitals_do_not_matter() {
        check("README.MD", "markdown");
        check("Makefile", "makefile");
        check("makefile", "makefile");
        check("PHOTO.JPG", "image");
        check("DOCKERFILE", "dockerfile");
    }

    #[test]
    fn hidden_files_have_names_and_endings() {
        check(".gitignore", "git ignore rules");
        check(".env", "env file");
        check(".env.local", "env file");
        check(".eslintrc.json", "eslint configuration");
        check(".hidden.json", "json");
        check(".rs", "file");
        check(".unheard-of", "file");
    }

    #[test]
    fn the_longest_known_ending_counts() {
        check("types/index.d.ts", "typescript declarations");
        check("index.ts", "typescript source");
        check("release.tar.gz", "archive");
        check("dump.sql.gz", "archive");
        check("server_test.go", "go source");
        check("app.component.spec.ts", "typescript source");
        check("jquery.min.js", "minified javascript");
        check("v1.2.3-notes.md", "markdown");
    }

    #[test]
    fn what_stands_before_the_dot_or_dash_counts_last() {
        check("Dockerfile.dev", "dockerfile");
        check("docker/Dockerfile.release.arm64", "dockerfile");
        check("LICENSE-MIT", "license");
        check("README", "readme");
        check("README.fr", "readme");
    }

    #[test]
    fn what_says_nothing_is_a_file() {
        check("data", "file");
        check("a.unheard", "file");
        check("trailing.", "file");
        check("ünïcödé", "file");
        check("rs", "file");
    }
}
