//! File systems for tests: an image in a file, mounted through a loop device. This needs root.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// A mounted file system. Dropping it unmounts it.
#[derive(Debug)]
pub struct Mounted {
    at: PathBuf,
    _home: TempDir,
}

impl Mounted {
    /// Creates an image of this size with the command `mkfs` and mounts it with the command `mount`. If that is not
    /// possible, it prints the reason and returns `None`, and the test is skipped.
    #[expect(clippy::print_stderr, reason = "a test that is passed over says so")]
    pub fn image(megabytes: u64, mkfs: &[&str], mount: &[&str]) -> Option<Self> {
        Self::try_image(megabytes, mkfs, mount).inspect_err(|why| eprintln!("skipped: {why}")).ok()
    }

    fn try_image(megabytes: u64, mkfs: &[&str], mount: &[&str]) -> Result<Self, String> {
        let home = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (image, at) = (home.path().join("image"), home.path().join("mounted"));
        std::fs::create_dir(&at).map_err(|error| error.to_string())?;
        // A sparse file: only written parts take space.
        File::create(&image).and_then(|file| file.set_len(megabytes << 20)).map_err(|error| error.to_string())?;
        run(mkfs, &[&image])?;
        run(mount, &[&image, &at])?;
        Ok(Self { at, _home: home })
    }

    /// Like [`image`](Self::image), with `mount -o loop`.
    pub fn kernel_image(megabytes: u64, mkfs: &[&str]) -> Option<Self> {
        Self::image(megabytes, mkfs, &["mount", "-o", "loop"])
    }

    /// The mount point, an absolute path.
    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Other processes see it unmounted at once; the system unmounts it when the last file is closed.
        let _ = run(&["umount", "--lazy"], &[&self.at]);
    }
}

fn run(words: &[&str], paths: &[&Path]) -> Result<(), String> {
    let (program, arguments) = words.split_first().expect("a program");
    let output = Command::new(program).args(arguments).args(paths).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
