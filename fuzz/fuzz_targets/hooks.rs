#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (surehand_fuzz::find("hooks").expect("a target").run)(data));
