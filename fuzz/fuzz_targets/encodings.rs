#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (surehand_fuzz::find("encodings").expect("a target").run)(data));
