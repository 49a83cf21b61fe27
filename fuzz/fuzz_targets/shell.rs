#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (surehand_fuzz::find("shell").expect("a target").run)(data));
