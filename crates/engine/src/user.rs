//! Who we are to the system.

/// The user whose rights this process has.
pub(crate) fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}
