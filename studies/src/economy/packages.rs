//! Releases of well-known packages, fetched by the package managers of their languages. The versions are pinned, so
//! that every run gets the same files. Fetched files are kept, so the network is used only once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// A package and the releases that are compared, oldest first.
pub(super) struct Package {
    name: &'static str,
    language: &'static str,
    source: Source,
    releases: &'static [&'static str],
}

#[derive(Clone, Copy)]
enum Source {
    Cargo,
    Npm,
    Pip,
}

/// The measured packages.
pub(super) const PACKAGES: [Package; 4] = [
    Package {
        name: "clap_builder",
        language: "Rust",
        source: Source::Cargo,
        releases: &[
            "4.3.0", "4.3.1", "4.3.3", "4.3.5", "4.3.8", "4.3.10", "4.3.11", "4.3.12", "4.3.17", "4.3.19", "4.3.21", "4.3.23",
            "4.4.0", "4.4.1", "4.4.2", "4.4.4", "4.4.5", "4.4.6", "4.4.7", "4.4.8", "4.4.9", "4.4.11", "4.4.12", "4.4.14",
            "4.4.18", "4.5.0", "4.5.1", "4.5.2", "4.5.7", "4.5.8", "4.5.9", "4.5.15", "4.5.17", "4.5.18", "4.5.20", "4.5.21",
        ],
    },
    Package {
        name: "ajv",
        language: "TypeScript",
        source: Source::Npm,
        releases: &[
            "8.0.0", "8.0.1", "8.0.2", "8.0.3", "8.0.4", "8.0.5", "8.1.0", "8.2.0", "8.3.0", "8.4.0", "8.5.0", "8.6.0", "8.6.1",
            "8.6.2", "8.6.3", "8.7.0", "8.7.1", "8.8.0", "8.8.1", "8.8.2", "8.9.0", "8.10.0", "8.11.0", "8.11.2", "8.12.0",
            "8.13.0", "8.14.0", "8.15.0", "8.16.0", "8.17.1",
        ],
    },
    Package {
        name: "fastify",
        language: "JavaScript",
        source: Source::Npm,
        releases: &[
            "4.20.0", "4.21.0", "4.22.0", "4.22.1", "4.22.2", "4.23.0", "4.23.1", "4.23.2", "4.24.0", "4.24.1", "4.24.2",
            "4.24.3", "4.25.0", "4.25.1", "4.25.2", "4.26.0", "4.26.1", "4.26.2", "4.27.0", "4.28.0", "4.28.1", "4.29.0",
        ],
    },
    Package {
        name: "rich",
        language: "Python",
        source: Source::Pip,
        releases: &[
            "12.0.0", "12.0.1", "12.2.0", "12.3.0", "12.4.0", "12.4.1", "12.4.2", "12.4.3", "12.4.4", "12.5.0", "12.5.1",
            "12.6.0", "13.0.0", "13.0.1", "13.1.0", "13.2.0", "13.3.0", "13.3.1", "13.3.2", "13.3.3", "13.3.4", "13.3.5",
            "13.4.0", "13.4.1", "13.4.2", "13.5.0", "13.5.1", "13.5.2", "13.5.3", "13.6.0", "13.7.0", "13.7.1", "13.8.0",
            "13.8.1", "13.9.0", "13.9.1", "13.9.2", "13.9.3", "13.9.4",
        ],
    },
];

impl Package {
    /// The title in the report.
    pub(super) fn title(&self) -> String {
        let (first, last) = (self.releases[0], self.releases[self.releases.len() - 1]);
        format!("{} {first} to {last}, {}", self.name, self.language)
    }

    /// Its releases, each in a directory below this one, fetched where they are not there yet.
    pub(super) fn fetch(&self, below: &Path) -> Result<Vec<PathBuf>> {
        self.releases.iter().map(|release| self.fetch_release(below, release)).collect()
    }

    fn fetch_release(&self, below: &Path, release: &str) -> Result<PathBuf> {
        let place = below.join(self.name).join(release);
        if !place.exists() {
            eprintln!("fetching {} {release} ...", self.name);
            // A fetch that is cut short leaves nothing that would pass for a release.
            let work = tempfile::tempdir_in(below).context("a temporary directory")?;
            let unpacked = match self.source {
                Source::Cargo => self.fetch_crate(work.path(), release),
                Source::Npm => self.fetch_tarball(work.path(), release),
                Source::Pip => self.fetch_wheel(work.path(), release),
            }
            .with_context(|| format!("{} {release}", self.name))?;
            fs::create_dir_all(below.join(self.name))?;
            fs::rename(unpacked, &place).with_context(|| place.display().to_string())?;
        }
        Ok(place)
    }

    /// Cargo hands out sources only to a package that depends on them.
    fn fetch_crate(&self, work: &Path, release: &str) -> Result<PathBuf> {
        let name = self.name;
        let manifest = format!(
            "[package]\nname = \"economy\"\nedition = \"2021\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n[dependencies]\n{name} = {{ version = \"={release}\", default-features = false }}\n"
        );
        fs::write(work.join("Cargo.toml"), manifest)?;
        fs::write(work.join("lib.rs"), "")?;
        run(work, "cargo", &["vendor", "--quiet", "vendored"])?;
        Ok(work.join("vendored").join(name))
    }

    fn fetch_tarball(&self, work: &Path, release: &str) -> Result<PathBuf> {
        run(work, "npm", &["pack", "--silent", &format!("{}@{release}", self.name)])?;
        run(work, "tar", &["-xzf", &format!("{}-{release}.tgz", self.name)])?;
        Ok(work.join("package"))
    }

    /// A wheel, because a source distribution would run code of the package.
    fn fetch_wheel(&self, work: &Path, release: &str) -> Result<PathBuf> {
        let wanted = format!("{}=={release}", self.name);
        run(
            work,
            "python3",
            &["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", ".", &wanted],
        )?;
        let wheel = fs::read_dir(work)?.next().context("pip gave no file")??.path();
        run(work, "python3", &["-m", "zipfile", "-e", &wheel.to_string_lossy(), "unpacked"])?;
        Ok(work.join("unpacked"))
    }
}

fn run(work: &Path, program: &str, words: &[&str]) -> Result<()> {
    let output = Command::new(program).args(words).current_dir(work).output().with_context(|| program.to_owned())?;
    ensure!(output.status.success(), "{program} {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(())
}
