//! Checks the statements of ARCHITECTURE.md against the source tree.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All Rust files below a folder.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn dependencies(of: &str) -> Vec<String> {
    let manifest = fs::read_to_string(root().join("crates").join(of).join("Cargo.toml")).unwrap();
    let section = manifest.split("\n[").find(|section| section.starts_with("dependencies]")).unwrap_or_default();
    section
        .lines()
        .skip(1)
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn crates_depend_in_a_straight_line() {
    let ours = |of: &str| {
        let mut names: Vec<String> = dependencies(of).into_iter().filter(|name| name.starts_with("surehand-")).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(ours("core"), "");
    assert_eq!(ours("store"), "surehand-core");
    assert_eq!(ours("engine"), "surehand-core surehand-store");
    assert_eq!(ours("agent"), "surehand-engine");
    assert_eq!(ours("http"), "");
    assert_eq!(ours("adapters"), "surehand-engine surehand-http");
    assert_eq!(ours("helper"), "surehand-engine");
    assert_eq!(ours("ui"), "surehand-agent surehand-engine surehand-http");
    let below_cli = "surehand-adapters surehand-agent surehand-board-postgres surehand-engine surehand-helper surehand-ui";
    assert_eq!(ours("cli"), below_cli);
    assert_eq!(ours("sdk"), "surehand-engine");
    assert_eq!(ours("testkit"), "");
    assert_eq!(ours("torture"), "surehand-testkit");
    assert_eq!(ours("fuzz"), "surehand-adapters surehand-core surehand-engine surehand-testkit");
}

/// A section of a manifest.
fn section<'a>(manifest: &'a str, name: &str) -> &'a str {
    let (_, rest) = manifest.split_once(&format!("\n[{name}]\n")).unwrap_or_else(|| panic!("no [{name}]"));
    rest.split("\n[").next().unwrap_or_default().trim_end()
}

/// The versions of each package in a lock file.
fn locked(lock: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in lock.split("\n[[package]]\n").skip(1) {
        let value = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
            line.and_then(|value| value.strip_suffix('"')).unwrap_or_default()
        };
        versions.entry(value("name")).or_default().push(value("version"));
    }
    versions
}

const UPDATE: &str = "run `cp Cargo.lock bindings/ && (cd bindings && cargo update --workspace)`";

#[test]
fn bindings_have_the_version_the_profiles_and_the_dependencies_of_the_project() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (ours, theirs) = (read("Cargo.toml"), read("bindings/Cargo.toml"));
    let package = section(&ours, "workspace.package");
    for line in section(&theirs, "workspace.package").lines() {
        assert!(package.lines().any(|ours| ours == line), "{line}");
    }
    assert_eq!(section(&ours, "workspace.lints.rust"), section(&theirs, "workspace.lints.rust"));
    let (ours, bindings) = (read("Cargo.lock"), read("bindings/Cargo.lock"));
    let (ours, theirs) = (locked(&ours), locked(&bindings));
    assert!(theirs.len() > 50);
    for (name, versions) in &theirs {
        let Some(known) = ours.get(name) else { continue };
        let same = versions.iter().all(|version| known.contains(version));
        assert!(same, "{name}: {versions:?} in bindings/Cargo.lock, {known:?} in Cargo.lock; {UPDATE}");
    }
    for name in ["core", "store", "engine", "sdk"] {
        let (_, package) = bindings.split_once(&format!("\nname = \"surehand-{name}\"\n")).unwrap();
        let package = package.split("[[package]]").next().unwrap_or_default();
        for dependency in dependencies(name) {
            // With two versions in the file, the name is followed by the version.
            let is_listed = [format!("\"{dependency}\""), format!("\"{dependency} ")].iter().any(|entry| package.contains(entry));
            assert!(is_listed, "{dependency}, which {name} needs, is missing in bindings/Cargo.lock; {UPDATE}");
        }
    }
}

/// The modules of its crate that a file imports, as far as it ships.
fn imported_modules(text: &str) -> Vec<String> {
    let ships = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String = ships.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let mut modules = Vec::new();
    for path in code.split("crate::").skip(1) {
        let Some(group) = path.strip_prefix('{') else {
            modules.push(path);
            continue;
        };
        let (mut depth, mut is_start) = (0, true);
        for (at, character) in group.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => is_start = true,
                _ if is_start && !character.is_whitespace() => {
                    modules.push(&group[at..]);
                    is_start = false;
                }
                _ => {}
            }
        }
    }
    let name = |path: &str| path.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect();
    modules.into_iter().map(name).collect()
}

#[test]
fn imports_are_found_in_groups_and_paths() {
    let text =
        "use crate::{\n    a::{B, c},\n    d,\n};\nuse crate::e::F; // crate::g\ncrate::h::i();\n#[cfg(test)]\nuse crate::j;";
    assert_eq!(imported_modules(text), ["a", "d", "e", "h"]);
}

#[test]
fn lower_modules_of_the_engine_are_layers() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, rest) = page.split_once("A module imports only from modules before its arrow:\n\n").unwrap();
    let (table, _) = rest.split_once("\n\n").unwrap();
    // The second column describes the layer.
    let names = table.lines().filter_map(|line| line.trim_start().split("  ").next()).collect::<Vec<_>>().join(" ");
    let layers: Vec<Vec<&str>> = names.split('→').map(|layer| layer.split_whitespace().collect()).collect();
    assert_eq!(layers.iter().flatten().count(), 16, "{layers:?}");
    let folder = root().join("crates/engine/src");
    for file in sources(&folder).into_iter().filter(|file| !file.ends_with("tests.rs")) {
        let name = file.strip_prefix(&folder).unwrap().with_extension("");
        let module = name.iter().next().unwrap().to_str().unwrap();
        let Some(layer) = layers.iter().position(|layer| layer.contains(&module)) else { continue };
        for import in imported_modules(&fs::read_to_string(&file).unwrap()) {
            let is_below = layers[..layer].iter().any(|layer| layer.contains(&import.as_str()));
            assert!(is_below || import == module, "{} imports {import}", file.display());
        }
    }
}

#[test]
fn core_touches_no_file_clock_thread_or_environment() {
    for file in sources(&root().join("crates/core/src")) {
        let text = fs::read_to_string(&file).unwrap();
        for forbidden in ["std::fs", "std::io", "std::env", "std::net", "std::thread", "std::time", "std::process", "unsafe"] {
            assert!(!text.contains(forbidden), "{}: {forbidden}", file.display());
        }
    }
}

#[test]
fn sql_stays_in_the_store_and_protocol_types_in_the_adapters() {
    let of_goose = ["crates/adapters/src/hooks/clients/goose_database.rs", "crates/adapters/tests/it/hooks.rs"];
    for (word, homes) in [
        // goose keeps its sessions in a database of its own.
        ("rusqlite", ["crates/store/", of_goose[0], of_goose[1]].as_slice()),
        ("rmcp", &["crates/adapters/"]),
        ("tokio_postgres", &["crates/board-postgres/"]),
        ("tokio", &["crates/adapters/", "crates/board-postgres/", "crates/http/", "crates/ui/"]),
        ("ureq", &["crates/agent/src/model/"]),
    ] {
        for file in sources(&root().join("crates")) {
            let name = file.strip_prefix(root()).unwrap().display().to_string();
            let uses = fs::read_to_string(&file).unwrap().contains(&format!("{word}::"));
            assert!(!uses || homes.iter().any(|home| name.starts_with(home)), "{name} uses {word}");
        }
    }
}

#[test]
fn user_files_are_written_in_one_place() {
    // The clippy configuration forbids these calls by name. Shipped code allows none of them, except for the demo,
    // which plays another program, the stores, which have their own files, the log of the hooks, the code that
    // configures clients, and the code that removes old state: the gate is not about those files.
    for file in sources(&root().join("crates")) {
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        let text = fs::read_to_string(&file).unwrap();
        let ships = text.split("#[cfg(test)]").next().and_then(|text| text.split("#[cfg(all(test").next()).unwrap_or_default();
        let homes = ["/tests/", "/examples/", "testkit/", "xtask/", "torture/", "fuzz/"];
        let for_tests = homes.iter().any(|home| name.contains(home)) || name.ends_with("/tests.rs");
        let known = [
            "crates/cli/src/commands/demo/other_programs.rs",
            "crates/cli/src/commands/init/backup.rs",
            "crates/cli/src/hook_log.rs",
            "crates/engine/src/clean.rs",
        ];
        let allows = ships.contains("clippy::disallowed_methods");
        let is_known = name.starts_with("crates/store/src/") || known.contains(&name.as_str());
        assert!(!allows || for_tests || is_known, "{name} allows itself to write files");
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for file in sources(&root().join("crates")).into_iter().chain(sources(&root().join("bindings"))) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{} does not begin with //!", file.display());
    }
}

/// Every name in the page of promises is a scenario, a test, or a story of real agents or of a real browser.
#[test]
fn what_shows_a_promise_exists() {
    let page = fs::read_to_string(root().join("docs/features.md")).unwrap();
    let tests: String = sources(&root().join("crates")).iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let stories = fs::read_to_string(root().join("e2e/agents/stories.py")).unwrap();
    let browser = fs::read_to_string(root().join("e2e/ui/stories.mjs")).unwrap();
    let names = page.lines().filter(|line| line.starts_with("| ")).flat_map(|line| line.split('`').skip(1).step_by(2));
    let mut count = 0;
    // Commands and paths are not names.
    for name in names.filter(|name| !name.contains(['/', '.', ' '])) {
        let is_scenario = root().join("scenarios").join(name).join("replies.txt").exists();
        let is_test = tests.contains(&format!("fn {name}(")) || stories.contains(&format!("def {name}("));
        let is_test = is_test || browser.contains(&format!("function {name}("));
        assert!(is_scenario || is_test, "{name}");
        count += 1;
    }
    assert!(count > 60);
    let entries = fs::read_dir(root().join("scenarios")).unwrap().map(Result::unwrap);
    for folder in entries.filter(|entry| entry.path().is_dir()) {
        let name = folder.file_name().into_string().unwrap();
        assert!(page.contains(&format!("`{name}`")), "no promise names the scenario {name}");
    }
}

/// The reference has all tools, because it is generated and a test compares it.
#[test]
fn the_types_for_node_name_all_tools() {
    let page = fs::read_to_string(root().join("docs/reference/tools.md")).unwrap();
    let types = fs::read_to_string(root().join("bindings/node/index.d.ts")).unwrap();
    let (_, union) = types.split_once("export type ToolName =").unwrap();
    let (union, _) = union.split_once(';').unwrap();
    let named: Vec<&str> = union.split('"').skip(1).step_by(2).collect();
    let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
    let tools: Vec<&str> = headings.take_while(|heading| *heading != "Results").collect();
    assert_eq!(named, tools);
}

#[test]
fn nothing_is_left_unfinished() {
    let words = [["to", "do!("].concat(), ["unimplem", "ented!("].concat(), ["FIX", "ME"].concat(), ["#[ig", "nore"].concat()];
    for file in sources(&root().join("crates")) {
        let text = fs::read_to_string(&file).unwrap();
        for word in &words {
            assert!(!text.contains(word), "{}: {word}", file.display());
        }
    }
}
