//! Every input that is kept, and some hundreds made from them, the same ones every time.

use std::time::{Duration, Instant};

use surehand_fuzz::{TARGETS, corpus, find, mutate::Mutator};

/// Replays the corpus of a target and so many mutations of it.
fn replay(name: &str, mutations: usize) {
    let target = find(name).expect("a target");
    let inputs = corpus::inputs(target);
    assert!(!inputs.is_empty() && inputs.len() <= 15, "{name} has {} inputs", inputs.len());
    for (file, input) in &inputs {
        let begun = Instant::now();
        (target.run)(input);
        assert!(begun.elapsed() < Duration::from_secs(20), "{name}/{file} does not come to an end");
    }
    let mut mutator = Mutator::new(1);
    for _ in 0..mutations {
        let (one, other) = (mutator.below(inputs.len()), mutator.below(inputs.len()));
        let input = mutator.mutated(&inputs[one].1, &inputs[other].1, target.words, target.most_bytes);
        if std::panic::catch_unwind(|| (target.run)(&input)).is_err() {
            panic!("{name} broke a law with {input:?}: cargo xtask fuzz {name} --seed 1 makes a smaller input");
        }
    }
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
    shell: 400,
    prompt: 200,
    tokens: 200,
    hooks: 30,
    mcp: 30,
    state: 10,
}
