//! Kills nicpoll's commands at random times, looks for leftovers, and prints a table by command.
//!
//! ```text
//! cargo build -p nicpoll --examples --bins && sudo target/debug/examples/kills [KILLS] [SEED]
//! ```
//!
//! A kill takes one to two seconds. The tests do fifty.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

mod bench;

fn main() -> Result<()> {
    let own = env::current_exe()?;
    if !bench::is_apart() {
        let mut again = bench::apart(&own);
        let status = again.args(env::args().skip(1)).status()?;
        ensure!(
            status.success(),
            "something was left, or the kills ended early"
        );
        return Ok(());
    }
    let mut numbers = env::args().skip(1).map(|word| word.parse::<u64>());
    let kills = numbers.next().transpose()?.unwrap_or(100);
    let seed = numbers.next().transpose()?.unwrap_or(13);
    let built = own.ancestors().nth(2).context("this is no example")?;
    let rows = bench::kills(&PathBuf::from(built).join("nicpoll"), kills, seed)?;
    print!("{}", bench::table(&rows));
    ensure!(
        rows.iter().all(bench::Leftovers::is_clean),
        "something was left"
    );
    Ok(())
}
