//! The kind of a file, judged by its name alone: one word for the snapshot that a model reads, and a short type for
//! other programs. No decision depends on it, so the table has common extensions only.

use crate::path::RelPath;

/// Each kind, and its extensions in lower case.
const KINDS: &[(&str, &[&str])] = &[
    ("archive", &["7z", "bz2", "gz", "jar", "rar", "tar", "tgz", "whl", "xz", "zip", "zst"]),
    ("assembly", &["asm", "s"]),
    ("audio", &["flac", "m4a", "mp3", "ogg", "wav"]),
    ("binary", &["a", "bin", "class", "dll", "dylib", "exe", "o", "pyc", "so", "wasm"]),
    ("c", &["c", "h"]),
    ("c#", &["cs"]),
    ("c++", &["cc", "cpp", "cxx", "hh", "hpp", "hxx"]),
    ("clojure", &["clj", "cljs"]),
    ("config", &["cfg", "conf", "env", "ini", "properties"]),
    ("css", &["css", "less", "sass", "scss"]),
    ("csv", &["csv", "tsv"]),
    ("dart", &["dart"]),
    ("database", &["db", "sqlite", "sqlite3"]),
    ("diff", &["diff", "patch"]),
    ("document", &["doc", "docx", "odt", "pdf", "pptx", "rtf", "xlsx"]),
    ("elixir", &["ex", "exs"]),
    ("erlang", &["erl", "hrl"]),
    ("font", &["otf", "ttf", "woff", "woff2"]),
    ("go", &["go"]),
    ("gradle", &["gradle"]),
    ("graphql", &["gql", "graphql"]),
    ("haskell", &["hs"]),
    ("html", &["htm", "html"]),
    ("image", &["bmp", "gif", "ico", "jpeg", "jpg", "png", "svg", "webp"]),
    ("java", &["java"]),
    ("javascript", &["cjs", "js", "jsx", "mjs"]),
    ("json", &["json", "json5", "jsonc", "jsonl", "ndjson"]),
    ("julia", &["jl"]),
    ("kotlin", &["kt", "kts"]),
    ("latex", &["tex"]),
    ("lock", &["lock"]),
    ("log", &["log"]),
    ("lua", &["lua"]),
    ("makefile", &["mk"]),
    ("markdown", &["markdown", "md", "mdx"]),
    ("nix", &["nix"]),
    ("notebook", &["ipynb"]),
    ("ocaml", &["ml", "mli"]),
    ("perl", &["pl", "pm"]),
    ("php", &["php"]),
    ("powershell", &["ps1"]),
    ("protobuf", &["proto"]),
    ("python", &["py", "pyi", "pyw"]),
    ("r", &["r"]),
    ("ruby", &["rake", "rb"]),
    ("rust", &["rs"]),
    ("scala", &["scala"]),
    ("shell", &["bash", "bat", "fish", "sh", "zsh"]),
    ("sql", &["sql"]),
    ("svelte", &["svelte"]),
    ("swift", &["swift"]),
    ("terraform", &["tf", "tfvars"]),
    ("text", &["rst", "text", "txt"]),
    ("toml", &["toml"]),
    ("typescript", &["cts", "mts", "ts", "tsx"]),
    ("video", &["mov", "mp4", "webm"]),
    ("vue", &["vue"]),
    ("xml", &["xml", "xsd", "xsl"]),
    ("yaml", &["yaml", "yml"]),
    ("zig", &["zig"]),
];

/// Kinds of files that are identified by their name up to its first dot or dash.
const NAMES: &[(&str, &[&str])] = &[
    ("config", &["editorconfig", "env", "gitattributes", "gitignore"]),
    ("dockerfile", &["containerfile", "dockerfile"]),
    ("license", &["copying", "license"]),
    ("makefile", &["gnumakefile", "makefile"]),
    ("ruby", &["gemfile", "rakefile"]),
];

/// Extensions with the same meaning, and the usual one.
const USUAL_ENDINGS: &[(&str, &str)] = &[
    ("cc", "cpp"),
    ("cxx", "cpp"),
    ("htm", "html"),
    ("hxx", "hpp"),
    ("jpeg", "jpg"),
    ("markdown", "md"),
    ("pyw", "py"),
    ("text", "txt"),
    ("yml", "yaml"),
];

/// The kind of the file at this path in one word: `rust`, `markdown`, `image`; `file` if the name does not show it.
pub fn kind_of(path: &RelPath) -> &'static str {
    let name = path.name().to_ascii_lowercase();
    let by_ending = ending(&name).and_then(|ending| look_up(KINDS, ending));
    by_ending.or_else(|| look_up(NAMES, name_without_ending(&name))).unwrap_or("file")
}

/// The type of the file for programs: `go`, `md`, `yaml`. It is the extension in its usual spelling, or the name of a
/// known file without one (`makefile`); otherwise `file`.
pub fn type_of(path: &RelPath) -> String {
    let name = path.name().to_ascii_lowercase();
    let known_name = || Some(name.trim_start_matches('.')).filter(|name| look_up(NAMES, name).is_some());
    let word = ending(&name).filter(|ending| is_short_word(ending)).or_else(known_name).unwrap_or("file");
    let usual = USUAL_ENDINGS.iter().find(|(other, _)| *other == word).map(|(_, usual)| *usual);
    usual.unwrap_or(word).to_owned()
}

fn look_up(table: &[(&'static str, &[&str])], word: &str) -> Option<&'static str> {
    table.iter().find(|(_, words)| words.contains(&word)).map(|(kind, _)| *kind)
}

/// The text after the last dot. The dot of a hidden file is part of its name.
fn ending(name: &str) -> Option<&str> {
    name.get(1..)?.rsplit_once('.').map(|(_, ending)| ending)
}

/// For example `dockerfile` for `Dockerfile.dev`, `license` for `LICENSE-MIT`, `gitignore` for `.gitignore`.
fn name_without_ending(name: &str) -> &str {
    let name = name.trim_start_matches('.');
    name.split(['.', '-']).next().unwrap_or(name)
}

fn is_short_word(word: &str) -> bool {
    (1..=12).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, kind: &str, short: &str) {
        let path = RelPath::new(path).unwrap();
        assert_eq!((kind_of(&path), type_of(&path).as_str()), (kind, short), "{path}");
    }

    #[test]
    fn endings_tell_languages() {
        check("cmd/main.go", "go", "go");
        check("a.d.ts", "typescript", "ts");
        check("x.tar.gz", "archive", "gz");
        check(".github/workflows/ci.yml", "yaml", "yaml");
        check("Cargo.lock", "lock", "lock");
        check("a.unheard", "file", "unheard");
    }

    #[test]
    fn capitals_do_not_matter() {
        check("README.MD", "markdown", "md");
        check("notes.MARKDOWN", "markdown", "md");
        check("PHOTO.JPG", "image", "jpg");
    }

    #[test]
    fn some_files_are_known_by_their_whole_name() {
        check("Makefile", "makefile", "makefile");
        check("docker/Dockerfile.dev", "dockerfile", "dev");
        check("LICENSE", "license", "license");
        check("LICENSE-MIT", "license", "file");
        check("sub/.gitignore", "config", "gitignore");
        check(".env.local", "config", "local");
        check(".hidden.json", "json", "json");
    }

    #[test]
    fn a_name_that_says_nothing_is_a_file() {
        check("bin/tool", "file", "file");
        check("what.is this", "file", "file");
        check("trailing.", "file", "file");
        check("ünïcödé", "file", "file");
    }

    #[test]
    fn no_ending_has_two_kinds() {
        let mut endings: Vec<&str> = KINDS.iter().flat_map(|(_, endings)| *endings).copied().collect();
        endings.sort_unstable();
        assert!(endings.is_sorted_by(|a, b| a < b), "{endings:?}");
        assert!(KINDS.iter().all(|(kind, _)| !kind.contains(' ')));
    }
}
