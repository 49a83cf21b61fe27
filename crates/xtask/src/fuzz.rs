//! `cargo xtask fuzz`: makes inputs from those that are kept and tries the laws with them, without anything that must be installed first. It does
//! not know which input leads to new code: `cargo fuzz`, in `fuzz/`, does.

use std::{
    cell::RefCell,
    panic,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use surehand_fuzz::{
    TARGETS, Target, corpus, find,
    mutate::{Mutator, smallest},
};

/// The flags of `fuzz`.
#[derive(Args)]
pub(crate) struct FuzzArgs {
    /// The targets [default: all]
    targets: Vec<String>,
    /// How long each is tried
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Other seeds make other inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Try this input only, and let it fail as it fails
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

/// An input that takes longer than this is as bad as one that fails.
const SLOW: Duration = Duration::from_secs(5);

/// Of the inputs that were made so many are made into others.
const POOL: usize = 200;

thread_local! {
    /// What the last panic said, and where.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Tries the targets. A broken law ends it with an error.
pub(crate) fn fuzz(args: &FuzzArgs) -> Result<()> {
    let named = |name: &String| find(name).with_context(|| format!("there is no target {name}"));
    let mut targets = args.targets.iter().map(named).collect::<Result<Vec<_>>>()?;
    if let Some(file) = &args.replay {
        let [target] = targets[..] else { bail!("an input is for one target: name it") };
        (target.run)(&std::fs::read(file).with_context(|| file.display().to_string())?);
        println!("{}: no law is broken", target.name);
        return Ok(());
    }
    if targets.is_empty() {
        targets.extend(TARGETS);
    }
    panic::set_hook(Box::new(|info| SAID.set(info.to_string())));
    let broken = targets.iter().map(|target| attempt(target, args)).collect::<Result<Vec<usize>>>()?;
    ensure!(broken.iter().sum::<usize>() == 0, "laws are broken");
    Ok(())
}

/// Tries one target; gives how many laws it found broken, which is at most one: what comes after it is often the same.
fn attempt(target: &Target, args: &FuzzArgs) -> Result<usize> {
    let mut pool: Vec<Vec<u8>> = corpus::inputs(target).into_iter().map(|(_, input)| input).collect();
    pool.push(Vec::new());
    let kept = pool.len();
    let (mut mutator, begun, mut tried) = (Mutator::new(args.seed), Instant::now(), 0_u64);
    for input in pool.clone() {
        tried += 1;
        if let Some(said) = broken(target, &input) {
            return report(target, &input, &said).map(|()| 1);
        }
    }
    while begun.elapsed() < Duration::from_secs(args.seconds) {
        let (one, other) = (mutator.below(pool.len()), mutator.below(pool.len()));
        let input = mutator.mutated(&pool[one], &pool[other], target.words, target.most_bytes);
        tried += 1;
        if let Some(said) = broken(target, &input) {
            return report(target, &input, &said).map(|()| 1);
        }
        if pool.len() < kept + POOL {
            pool.push(input);
        } else if mutator.below(20) == 0 {
            let at = kept + mutator.below(POOL);
            pool[at] = input;
        }
    }
    println!("{}: {tried} inputs in {} s, no law is broken", target.name, begun.elapsed().as_secs());
    Ok(0)
}

/// What an input says when it breaks a law.
fn broken(target: &Target, input: &[u8]) -> Option<String> {
    let begun = Instant::now();
    if panic::catch_unwind(|| (target.run)(input)).is_err() {
        return Some(SAID.take());
    }
    (begun.elapsed() > SLOW).then(|| format!("it took {:?}", begun.elapsed()))
}

/// Makes the input small, keeps it and says how to try it again.
fn report(target: &Target, input: &[u8], said: &str) -> Result<()> {
    // What is said may hold parts of the input; where it was said does not.
    let place = |said: &str| {
        said.lines()
            .next()
            .unwrap_or_default()
            .split_once(" took ")
            .map_or(said.lines().next().unwrap_or_default().to_owned(), |(slow, _)| slow.to_owned())
    };
    let found = smallest(input, |smaller| broken(target, smaller).is_some_and(|again| place(&again) == place(said)));
    let dir = corpus::dir(target);
    std::fs::create_dir_all(&dir)?;
    let sum = found.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)));
    let file = dir.join(format!("broke-{sum:08x}"));
    std::fs::write(&file, &found).with_context(|| file.display().to_string())?;
    println!("{}: {said}", target.name);
    println!("{} bytes, kept as {}", found.len(), file.display());
    println!("again: cargo xtask fuzz {} --replay {}", target.name, file.display());
    Ok(())
}
