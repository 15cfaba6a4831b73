//! Compares polling with itself repeatedly, and counts the verdicts: a check of the method. Any word for a difference
//! is a false alarm; of 60 runs at most 6 may have one, and none "and it matters".
//!
//! Each run is written as a line of FILE before the next one begins: a stop loses one run, and a new start continues.
//!
//! Needs root. `cargo run --release -p nicpoll-study --example null_runs [RUNS [FILE]]`; a run takes about 16 s.

mod unstored;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;

use nicpoll_model::Study;
use nicpoll_stats::order::Seed;
use nicpoll_study::{DemoOptions, demo, plan};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let runs: u64 = std::env::args().nth(1).map_or(Ok(60), |n| n.parse())?;
    let path = std::env::args().nth(2);
    let path = path.unwrap_or_else(|| String::from("null_runs.tsv"));
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let done: BTreeSet<u64> = seeds(&fs::read_to_string(&path)?);
    for seed in (1..=runs).filter(|seed| !done.contains(seed)) {
        let line = match null_study(seed) {
            Ok(study) => line(seed, &study),
            Err(error) => format!("{seed}\tno study\t{error}\n"),
        };
        file.write_all(line.as_bytes())?;
        print!("{line}");
    }
    let mut words: BTreeMap<String, u32> = BTreeMap::new();
    for line in fs::read_to_string(&path)?.lines() {
        let word = line.split('\t').nth(1).unwrap_or("a torn line");
        *words.entry(String::from(word)).or_default() += 1;
    }
    for (word, count) in words {
        println!("{count:5}  {word}");
    }
    Ok(())
}

fn seeds(text: &str) -> BTreeSet<u64> {
    let firsts = text.lines().filter_map(|line| line.split('\t').next());
    firsts.filter_map(|seed| seed.parse().ok()).collect()
}

/// Returns a line: seed, verdict, ends of the interval, blocks.
fn line(seed: u64, study: &Study) -> String {
    let mut line = seed.to_string();
    for comparison in &study.comparisons {
        let Some(word) = comparison.verdict else {
            continue;
        };
        line += &format!(
            "\t{word}\t{:?}\t{:?}\t{}",
            comparison.ratio_low, comparison.ratio_high, comparison.blocks
        );
    }
    line + "\n"
}

fn null_study(seed: u64) -> Result<Study, Failure> {
    let options = DemoOptions {
        quick: true,
        workloads: vec![String::from("udp64")],
        null: Some(String::from(demo::POLLING)),
        ..DemoOptions::default()
    };
    let (design, plan) = plan(&options, Seed(seed))?;
    unstored::run(design, plan, seed)
}
