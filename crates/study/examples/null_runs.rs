//! Compares polling with itself, again and again, and counts the words that come out: a check of the instrument.
//! Any word for a difference is a false alarm; of 60 runs at most 6 may have one, and none "and it matters".
//!
//! Needs root. `cargo run --release -p nicpoll-study --example null_runs [RUNS]`; a run takes about 16 s.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use nicpoll_model::{Origin, Study};
use nicpoll_stats::order::Seed;
use nicpoll_study::{Identity, Lab, Options, Sitting, Veth, demo, plan};
use nicpoll_switch::{Journal, Owner};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runs: u64 = std::env::args().nth(1).map_or(Ok(60), |n| n.parse())?;
    let mut words: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 1..=runs {
        let study = null_study(seed)?;
        let primary = study.comparisons.iter().filter_map(|one| {
            let word = one.verdict?;
            Some((one, word))
        });
        for (comparison, word) in primary {
            *words.entry(word.to_string()).or_default() += 1;
            println!(
                "seed {seed}: {word}, {:?} to {:?}, {} blocks",
                comparison.ratio_low, comparison.ratio_high, comparison.blocks
            );
        }
    }
    for (word, count) in words {
        println!("{count:5}  {word}");
    }
    Ok(())
}

fn null_study(seed: u64) -> Result<Study, Box<dyn std::error::Error>> {
    let begin = Instant::now();
    let options = Options {
        quick: true,
        workloads: vec![String::from("udp64")],
        null: Some(String::from(demo::POLLING)),
        ..Options::default()
    };
    let (design, plan) = plan(&options, Seed(seed))?;
    let state = tempfile::tempdir()?;
    let journal = Journal::at(state.path().join("state"));
    let veth = Arc::new(Veth::build()?);
    let mut lab = Lab::on_veth(&veth, &journal, Owner::this_process()?)?;
    let identity = Identity {
        origin: Origin {
            nicpoll_version: String::new(),
            argv: Vec::new(),
            started_at: String::new(),
        },
        begin,
        seed,
    };
    let cancel = AtomicBool::new(false);
    let sitting = Sitting::new(design, plan, identity, None);
    Ok(sitting.run(&mut lab, &cancel, |_| {}).outcome?)
}
