#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (surehand_fuzz::find("replace").expect("a target").run)(data));
