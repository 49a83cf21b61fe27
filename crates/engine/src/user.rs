//! Who we are to the system.

pub(crate) fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}
