//! Measures the cost of a call of `judge` in Rust, in microseconds; `packaging/measure` compares it with Python and
//! Node. Takes the number of calls.

use std::{error::Error, hint::black_box, time::Instant};

use surehand_sdk::{Edit, OpenOptions, ReadOptions, SessionOptions, Workspace};

#[expect(clippy::print_stdout, reason = "this is what it is for")]
#[expect(clippy::disallowed_methods, reason = "lays out the file")]
fn main() -> Result<(), Box<dyn Error>> {
    let calls: usize = std::env::args().nth(1).ok_or("how many calls?")?.parse()?;
    let (tree, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
    std::fs::write(tree.path().join("a.txt"), "one line of the file\n".repeat(500) + "two\n")?;
    let options = OpenOptions { state_dir: Some(state.path().to_owned()), ..OpenOptions::default() };
    let workspace = Workspace::open(tree.path(), options)?;
    let session = workspace.session(SessionOptions::default())?;
    session.read("a.txt", &ReadOptions::default())?;
    let mut costs = Vec::new();
    for _ in 0..calls {
        let begin = Instant::now();
        let permit = session.judge(&Edit::replace("a.txt", "two", "2"))?;
        costs.push(begin.elapsed());
        session.adopt(black_box(&permit))?;
    }
    costs.sort();
    println!("{:.1}", costs[calls / 2].as_secs_f64() * 1e6);
    Ok(())
}
