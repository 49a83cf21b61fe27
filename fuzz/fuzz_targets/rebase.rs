#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (surehand_fuzz::find("rebase").expect("a target").run)(data));
