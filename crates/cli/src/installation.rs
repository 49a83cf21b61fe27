//! Detects how this program was installed, from its path. That decides how to update it, and whether a client's
//! configuration can contain its path: package runners such as `npx` keep programs in a cache that they may empty at
//! any time.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use tempfile::NamedTempFile;

use crate::user_dirs::variable;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Installer {
    Npm,
    /// `npx`, `pnpm dlx`, `yarn dlx` or `bunx`: npm's package in a cache.
    Npx,
    Pip,
    /// `uv tool install`.
    UvTool,
    Pipx,
    /// `uvx` or `pipx run`: the wheel in a cache.
    Uvx,
    Debian,
    Cargo,
    /// `surehand init`, started by a package runner.
    Init,
    Unknown,
}

impl Installer {
    pub(crate) fn name(self) -> &'static str {
        self.row().0
    }

    /// The command that installs the newest version.
    pub(crate) fn update(self) -> &'static str {
        self.row().1
    }

    /// The command that removes the program.
    pub(crate) fn removal(self) -> Option<&'static str> {
        self.row().2
    }

    /// Its name, and the commands that update and remove the program.
    fn row(self) -> (&'static str, &'static str, Option<&'static str>) {
        match self {
            Installer::Npm => ("npm", "npm install --global surehand@latest", Some("npm uninstall --global surehand")),
            Installer::Npx => ("npx", "npx surehand@latest init", None),
            Installer::Pip => ("pip", "pip install --upgrade surehand", Some("pip uninstall surehand")),
            Installer::UvTool => ("uv tool", "uv tool upgrade surehand", Some("uv tool uninstall surehand")),
            Installer::Pipx => ("pipx", "pipx upgrade surehand", Some("pipx uninstall surehand")),
            Installer::Uvx => ("uvx", "uvx surehand@latest init", None),
            Installer::Debian => {
                ("dpkg", "sudo apt install ./surehand_VERSION_ARCHITECTURE.deb", Some("sudo apt remove surehand"))
            }
            Installer::Cargo => ("cargo", "cargo install surehand", Some("cargo uninstall surehand")),
            Installer::Init => ("surehand init", "npx surehand@latest init (or uvx surehand@latest init)", None),
            Installer::Unknown => ("hand", "replace the program with the one of a newer archive", None),
        }
    }

    /// Whether the program is in a cache, from which it may vanish at any time.
    pub(crate) fn is_temporary(self) -> bool {
        matches!(self, Installer::Npx | Installer::Uvx)
    }
}

/// Detects the installer of the program at this path, which must not contain links.
pub(crate) fn installer_of(program: &Path) -> Installer {
    if kept_copy().is_some_and(|copy| copy.canonicalize().is_ok_and(|copy| copy == program)) {
        return Installer::Init;
    }
    if let Some(installer) = of_path(program) {
        return installer;
    }
    let prefix = program.parent().and_then(Path::parent);
    match prefix {
        Some(prefix) if has_wheel(prefix) => Installer::Pip,
        Some(prefix) if lists_surehand(&prefix.join(".crates.toml")) => Installer::Cargo,
        _ if program == Path::new("/usr/bin/surehand") && Path::new("/var/lib/dpkg/info/surehand.list").exists() => {
            Installer::Debian
        }
        _ => Installer::Unknown,
    }
}

/// Detects the installer by the directories of the path alone.
fn of_path(program: &Path) -> Option<Installer> {
    let names: Vec<&str> = program.iter().filter_map(|name| name.to_str()).collect();
    let has = |name: &str| names.contains(&name);
    let begins = |start: &str| names.iter().any(|name| name.starts_with(start));
    let has_pair = |one: &str, other: &str| names.windows(2).any(|pair| pair == [one, other]);
    if has("node_modules") {
        let is_run = has("_npx") || has("dlx") || begins("dlx-") || begins("bunx-");
        return Some(if is_run { Installer::Npx } else { Installer::Npm });
    }
    let is_run = has("uv") && (begins("archive-v") || begins("environments-v")) || has_pair("pipx", ".cache");
    match () {
        () if is_run => Some(Installer::Uvx),
        () if has_pair("uv", "tools") => Some(Installer::UvTool),
        () if has_pair("pipx", "venvs") => Some(Installer::Pipx),
        () => None,
    }
}

/// Whether Python has installed our wheel below this directory.
fn has_wheel(prefix: &Path) -> bool {
    let entries = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let begins = |path: &Path, start: &str| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start));
    entries(&prefix.join("lib"))
        .filter(|python| begins(python, "python3"))
        .flat_map(|python| ["site-packages", "dist-packages"].map(|name| python.join(name)))
        .any(|packages| entries(&packages).any(|package| begins(&package, "surehand-")))
}

fn lists_surehand(crates: &Path) -> bool {
    fs::read_to_string(crates).is_ok_and(|text| text.contains("\"surehand "))
}

/// The path to which `init` copies the program if a package runner started it.
pub(crate) fn kept_copy() -> Option<PathBuf> {
    let data = variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")))?;
    Some(data.join("surehand/bin/surehand"))
}

/// Copies a program. Replaces an older copy as a whole, because another process may be running it.
pub(crate) fn keep_copy(program: &Path, copy: &Path) -> anyhow::Result<()> {
    let what = || format!("{}: cannot be written", copy.display());
    let directory = copy.parent().with_context(what)?;
    fs::create_dir_all(directory).with_context(what)?;
    let staged = NamedTempFile::new_in(directory).with_context(what)?;
    fs::copy(program, staged.path()).with_context(what)?;
    staged.as_file().sync_all().with_context(what)?;
    staged.persist(copy).with_context(what)?;
    Ok(())
}

pub(crate) fn has_same_bytes(one: &Path, other: &Path) -> bool {
    let length = |path: &Path| fs::metadata(path).ok().map(|meta| meta.len());
    length(one).is_some() && length(one) == length(other) && fs::read(one).ok() == fs::read(other).ok()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests play the installers")]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<Installer>) {
        assert_eq!(of_path(Path::new(path)), expected, "{path}");
    }

    #[test]
    fn the_path_names_the_installer() {
        check("/home/a/.npm/_npx/1d2/node_modules/surehand/bin/surehand", Some(Installer::Npx));
        check("/home/a/.npm/_npx/1d2/node_modules/@surehand/linux-x64/bin/surehand", Some(Installer::Npx));
        check("/home/a/.cache/pnpm/dlx/x/node_modules/surehand/bin/surehand", Some(Installer::Npx));
        check("/tmp/bunx-0-surehand@latest/node_modules/surehand/bin/surehand", Some(Installer::Npx));
        check("/usr/local/lib/node_modules/surehand/bin/surehand", Some(Installer::Npm));
        check("/home/a/work/node_modules/@surehand/linux-arm64/bin/surehand", Some(Installer::Npm));
        check("/home/a/.cache/uv/archive-v0/Zk3/bin/surehand", Some(Installer::Uvx));
        check("/home/a/.cache/uv/environments-v2/surehand-12/bin/surehand", Some(Installer::Uvx));
        check("/home/a/.local/share/pipx/.cache/12/bin/surehand", Some(Installer::Uvx));
        check("/home/a/.local/share/uv/tools/surehand/bin/surehand", Some(Installer::UvTool));
        check("/home/a/.local/share/pipx/venvs/surehand/bin/surehand", Some(Installer::Pipx));
        check("/opt/surehand/surehand", None);
        check("/home/uv/bin/surehand", None);
    }

    #[test]
    fn what_lies_beside_a_program_names_the_installer() {
        let prefix = tempfile::tempdir().unwrap();
        let program = prefix.path().join("bin/surehand");
        assert_eq!(installer_of(&program), Installer::Unknown);
        fs::write(prefix.path().join(".crates.toml"), "[v1]\n\"surehand 0.1.0 (path)\" = [\"surehand\"]\n").unwrap();
        assert_eq!(installer_of(&program), Installer::Cargo);
        fs::create_dir_all(prefix.path().join("lib/python3.11/site-packages/surehand-0.1.0.dist-info")).unwrap();
        assert_eq!(installer_of(&program), Installer::Pip);
    }

    #[test]
    fn a_copy_replaces_an_older_one() {
        let home = tempfile::tempdir().unwrap();
        let (program, copy) = (home.path().join("cache/surehand"), home.path().join("kept/bin/surehand"));
        fs::create_dir(home.path().join("cache")).unwrap();
        for text in ["one", "two"] {
            fs::write(&program, text).unwrap();
            assert!(!has_same_bytes(&program, &copy));
            keep_copy(&program, &copy).unwrap();
            assert!(has_same_bytes(&program, &copy));
        }
        let error = keep_copy(&program, Path::new("/proc/none/surehand")).unwrap_err().to_string();
        assert_eq!(error, "/proc/none/surehand: cannot be written");
    }
}
