//! Runs code without the privileges of root.

use std::{fs, path::Path};

/// Runs `act` on a thread as a user to whom file modes apply, and who owns the tree. Without root, it runs `act`
/// directly.
pub fn as_unprivileged(tree: &Path, act: impl FnOnce() + Send) {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return act();
    }
    let mut found = vec![tree.to_owned()];
    while let Some(path) = found.pop() {
        std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        if path.is_dir() {
            found.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: the system call takes numbers and, unlike the function of the C library, only changes the rights
            // of this thread and of threads that it starts.
            #[expect(unsafe_code, reason = "there is no safe wrapper")]
            unsafe {
                libc::syscall(libc::SYS_setresuid, -1, NOBODY, -1);
            }
            act();
        });
        thread.join().unwrap();
    });
}
