//! Random numbers for names that must differ between processes.

use std::io;

/// A random number; without a source of randomness, the time, which still makes names differ.
pub(crate) fn random() -> u64 {
    try_random().unwrap_or_else(|_| jiff::Timestamp::now().as_nanosecond() as u64)
}

/// A random number, or the error of the system.
pub(crate) fn try_random() -> io::Result<u64> {
    let mut random = [0_u8; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(random))
}
