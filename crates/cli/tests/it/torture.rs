//! A short torture run of the real binary, with fixed seeds. `cargo xtask torture` runs for as long as you like.

use std::{path::Path, time::Duration};

use surehand_torture::{Part, Progress, Torture};

#[track_caller]
fn check(part: Part) {
    let torture = Torture {
        program: Path::new(env!("CARGO_BIN_EXE_surehand")).to_owned(),
        seed: 1,
        time: Duration::from_secs(2),
        dir: std::env::temp_dir(),
        progress: Progress::Silent,
    };
    let report = torture.run(part).unwrap();
    let said = report.to_markdown();
    assert_eq!(report.violations().count(), 0, "{said}");
    eprintln!("{said}");
}

#[test]
fn killed_processes_lose_nothing() {
    check(Part::Kill);
}

#[test]
fn races_with_other_programs_lose_nothing() {
    check(Part::Race);
}

#[test]
fn a_hostile_world_loses_nothing() {
    check(Part::Hostile);
}

#[test]
fn other_file_systems_lose_nothing() {
    check(Part::Filesystems);
}

#[test]
fn metadata_that_others_change_stays() {
    check(Part::Metadata);
}
