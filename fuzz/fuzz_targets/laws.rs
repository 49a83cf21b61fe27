//! Tries one target of `surehand-fuzz`, which `FUZZ_TARGET` names, with inputs from libFuzzer.
#![no_main]

use std::{env, sync::LazyLock};

use libfuzzer_sys::fuzz_target;
use surehand_fuzz::Target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
    surehand_fuzz::find(&name).unwrap_or_else(|| panic!("there is no target {name}"))
});

fuzz_target!(
    init: {
        LazyLock::force(&TARGET);
    },
    |data: &[u8]| (TARGET.run)(data)
);
