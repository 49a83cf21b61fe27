//! Takes the API keys out of the environment before anything else happens, so that the agent's commands cannot read
//! them from this process.

use std::ffi::{CStr, OsStr, OsString, c_char};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use surehand_agent::{Secrets, model::KEY_VARIABLES};

pub(crate) struct ApiKeys(Vec<(&'static str, String)>);

impl ApiKeys {
    /// Removes the keys from the environment, and protects the memory, initial environment and open files of this
    /// process from other processes of the same user. Must be called before any thread is started.
    pub(crate) fn take() -> Self {
        close_to_others();
        let keys = Self(KEY_VARIABLES.iter().filter_map(|name| Some((*name, std::env::var(name).ok()?))).collect());
        let secrets = keys.secrets();
        clear_environment(|name, value| KEY_VARIABLES.iter().any(|key| name == *key) || secrets.are_in(value));
        keys
    }

    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let taken = self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
        taken.or_else(|| std::env::var(name).ok())
    }

    pub(crate) fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        self.0.iter().for_each(|(_, value)| secrets.add(value));
        secrets
    }
}

/// Removes all variables whose value contains a secret. Must be called before any thread is started.
pub(crate) fn clear_environment_of(secrets: &Secrets) {
    clear_environment(|_, value| secrets.are_in(value));
}

/// Restricts `/proc/PID/environ`, `mem` and `fd` to root, and disables core dumps. `exec` resets this, so it does not
/// apply to the agent's commands.
#[cfg(target_os = "linux")]
fn close_to_others() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // Setting this value cannot fail.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

#[cfg(not(target_os = "linux"))]
fn close_to_others() {}

/// Removes variables and overwrites their values in the memory that `/proc/PID/environ` shows. The C library only
/// changes its own list of pointers.
#[expect(unsafe_code, reason = "the initial environment can only be reached by its pointers")]
fn clear_environment(is_secret: impl Fn(&OsStr, &OsStr) -> bool) {
    unsafe extern "C" {
        static environ: *const *mut c_char;
    }
    debug_assert!(has_one_thread(), "others may be reading the environment");
    let mut names = Vec::new();
    // SAFETY: This is the only thread, so nothing else reads or changes the list or its strings. The list ends with a
    // null pointer, and each entry is a NUL-terminated string. The strings are on the stack, where the kernel put them,
    // or on the heap, where the C library put them; both are writable. Only bytes before the final NUL are written, and
    // no reference to them is alive then.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let bytes = CStr::from_ptr(*entry).to_bytes();
            let value_at = bytes.iter().position(|byte| *byte == b'=').map_or(0, |at| at + 1);
            let name = bytes[..value_at.saturating_sub(1)].to_owned();
            let length = bytes.len() - value_at;
            if is_secret(OsStr::from_bytes(&name), OsStr::from_bytes(&bytes[value_at..])) {
                (*entry).add(value_at).write_bytes(0, length);
                names.push(OsString::from_vec(name));
            }
            entry = entry.add(1);
        }
    }
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        // SAFETY: As above, this is the only thread.
        unsafe { std::env::remove_var(name) };
    }
}

/// Returns true where `/proc` cannot be read.
fn has_one_thread() -> bool {
    std::fs::read_dir("/proc/self/task").map_or(true, |tasks| tasks.count() == 1)
}
