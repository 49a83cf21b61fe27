//! Random numbers for names that must differ between processes.

pub(crate) fn random() -> u64 {
    let mut random = [0_u8; 8];
    match rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()) {
        Ok(_) => u64::from_ne_bytes(random),
        // Without randomness the time still makes names differ.
        Err(_) => jiff::Timestamp::now().as_nanosecond() as u64,
    }
}
