//! The effective user of this process.

pub(crate) fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}
