//! Replays every stored input and some hundreds of mutations of it, the same ones every time.
//!
//! `FUZZ_MUTATIONS` and `FUZZ_SEED` try more and different ones. Without coverage this finds less than `cargo fuzz`,
//! but it needs no installation.
#![expect(clippy::disallowed_methods, reason = "keeps an input that broke a law")]

use std::{
    env, fs, panic,
    path::Path,
    time::{Duration, Instant},
};

use surehand_fuzz::{TARGETS, Target, corpus, find};
use surehand_testkit::rng::Rng;

/// Longer than this is as bad as a broken law.
const HANGS: Duration = Duration::from_secs(20);

/// Replays the corpus of a target and `mutations` mutated inputs.
fn replay(name: &str, mutations: usize) {
    let target = find(name).expect("a target");
    let inputs = corpus::inputs(target);
    assert!(!inputs.is_empty() && inputs.len() <= 15, "{name} has {} inputs", inputs.len());
    for (file, input) in &inputs {
        let begun = Instant::now();
        (target.run)(input);
        assert!(begun.elapsed() < HANGS, "{name}/{file} does not come to an end");
    }
    let mut rng = Rng::new(number("FUZZ_SEED").unwrap_or(1) as u64);
    for _ in 0..number("FUZZ_MUTATIONS").unwrap_or(mutations) {
        let (_, input) = rng.pick(&inputs);
        let (_, other) = rng.pick(&inputs);
        let input = mutate(&mut rng, target, input, other);
        if panic::catch_unwind(|| (target.run)(&input)).is_err() {
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("broke-{name}"));
            fs::write(&file, &input).unwrap();
            panic!("{name} broke a law with {input:?}, kept as {}", file.display());
        }
    }
}

fn number(variable: &str) -> Option<usize> {
    env::var(variable).ok().map(|typed| typed.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {typed}")))
}

/// Up to six random changes of an input, some of them taken from another input or from the words of the target.
fn mutate(rng: &mut Rng, target: &Target, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..rng.within(1..7) {
        let start = rng.within(0..bytes.len() + 1);
        let end = (start + rng.within(1..13)).min(bytes.len());
        match rng.within(0..10) {
            0 if start < end => bytes[start] ^= 1 << rng.within(0..8),
            1 if start < end => bytes[start] = random_byte(rng),
            2 if start < end => bytes[start] = bytes[start].wrapping_add(*rng.pick(&[1, 255])),
            3 => drop(bytes.drain(start..end)),
            4 => {
                let copy = bytes[start..end].to_vec();
                let to = rng.within(0..bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            5 if !other.is_empty() => {
                let from = rng.within(0..other.len());
                let until = (from + rng.within(1..41)).min(other.len());
                bytes.splice(start..end, other[from..until].iter().copied());
            }
            6 | 7 if !target.words.is_empty() => {
                let replaced = *rng.pick(&[start, end]);
                bytes.splice(start..replaced, rng.pick(target.words).bytes());
            }
            8 => {
                let new: Vec<u8> = (0..rng.within(1..9)).map(|_| random_byte(rng)).collect();
                bytes.splice(start..start, new);
            }
            _ => bytes.insert(start, random_byte(rng)),
        }
    }
    bytes.truncate(target.most_bytes);
    bytes
}

fn random_byte(rng: &mut Rng) -> u8 {
    rng.within(0..256) as u8
}

macro_rules! targets {
    ($($name:ident: $mutations:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name), $mutations);
        })*

        #[test]
        fn every_target_is_replayed() {
            assert_eq!(TARGETS.iter().map(|target| target.name).collect::<Vec<_>>(), [$(stringify!($name)),*]);
        }
    };
}

targets! {
    patch: 400,
    anchors: 400,
    replace: 400,
    encodings: 400,
    rebase: 400,
    merge: 400,
    shell: 400,
    prompt: 200,
    tokens: 200,
    hooks: 30,
    mcp: 30,
    state: 10,
}
