//! The kind of a file, by its name alone: one word for the snapshot that a model reads, and a short type for other
//! programs. No decision depends on it, so the table has common extensions only.

use crate::path::RelPath;

/// Each word, and the endings that it stands for, in small letters.
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

/// The same for files that are known by what stands before the first dot or dash of their name.
const NAMES: &[(&str, &[&str])] = &[
    ("config", &["editorconfig", "env", "gitattributes", "gitignore"]),
    ("dockerfile", &["containerfile", "dockerfile"]),
    ("license", &["copying", "license"]),
    ("makefile", &["gnumakefile", "makefile"]),
    ("ruby", &["gemfile", "rakefile"]),
];

/// Endings that mean the same, with the usual one.
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

/// What the file at this path is, in one word: `rust`, `markdown`, `image`; `file` where the name does not say it.
pub fn kind_of(path: &RelPath) -> &'static str {
    let name = path.name().to_ascii_lowercase();
    let by_ending = ending(&name).and_then(|ending| look_up(KINDS, ending));
    by_ending.or_else(|| look_up(NAMES, name_without_ending(&name))).unwrap_or("file")
}

/// The same for programs: `go`, `md`, `yaml`. It is the ending of the name in its usual spelling, or the name of a
/// known file without one (`makefile`); `file` where neither says anything.
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

/// What follows the last dot. The dot of a hidden file is part of its name.
fn ending(name: &str) -> Option<&str> {
    name.get(1..)?.rsplit_once('.').map(|(_, ending)| ending)
}

/// `dockerfile` of `Dockerfile.dev`, `license` of `LICENSE-MIT`, `gitignore` of `.gitignore`.
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
