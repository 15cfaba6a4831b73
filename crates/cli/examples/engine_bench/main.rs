//! The engine beside its peers: one run, interleaved, medians of five, in namespaces joined by veth pairs, sender on CPU
//! 0 and receiver or router on CPU 1.
//!
//! As root, with dpdk-testpmd (package dpdk-dev), trafgen (netsniff-ng), iperf 2 and taskset installed:
//!
//! ```console
//! # cargo build --release && cargo run --release -p nicpoll --example engine_bench [-- --rows NAME,...] [--rounds N]
//! ```
//!
//! Frames have 64 bytes (60 without FCS). Each row shows the commands of all contenders, what they were fed, what they
//! had, and their CPU time: of their own threads, and busy time of both cores. A peer that was not fed 1.3 times what it
//! took voids its row.

mod contest;
mod course;
mod helpers;
mod kernel;
mod overload;
#[path = "../peers/mod.rs"]
mod peers;
mod rows;
mod trial;

use std::fs;

use anyhow::{Result, anyhow, ensure};

use contest::{Medians, Row};
use course::{Course, Place};
use trial::Outcome;

const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "helper") {
        return helpers::run(&words[1..]);
    }
    let (chosen, rounds) = asked(&words)?;
    for place in [Place::Middle, Place::End] {
        let rows = rows::ROWS.iter().filter(|row| row.place == place);
        let rows: Vec<&Row> = rows.filter(|row| chosen.contains(&row.name)).collect();
        if rows.is_empty() {
            continue;
        }
        let course = Course::build(place)?;
        for row in rows {
            println!("{} (load average {})", row.title, load_average());
            print_row(row, &row.hold(&course, rounds)?);
        }
    }
    if chosen.contains(&overload::NAME) {
        let course = Course::build(Place::End)?;
        println!(
            "overload: 2000 ns of work a packet, receive work on the receiver's core (load average {})",
            load_average()
        );
        print_overload(&overload::hold(&course, rounds)?);
    }
    Ok(())
}

/// The rows that were asked for, and how often each is run.
fn asked(words: &[String]) -> Result<(Vec<&'static str>, usize)> {
    let names = rows::ROWS.iter().map(|row| row.name);
    let names: Vec<&str> = names.chain([overload::NAME]).collect();
    let (mut chosen, mut rounds) = (names.clone(), ROUNDS);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| anyhow!("{word} needs a value"))?;
        match word.as_str() {
            "--rows" => {
                let asked: Vec<&str> = value.split(',').collect();
                for one in &asked {
                    ensure!(names.contains(one), "no row {one}; there are {names:?}");
                }
                chosen.retain(|name| asked.contains(name));
            }
            "--rounds" => rounds = value.parse()?,
            _ => {
                return Err(anyhow!(
                    "--rows NAME,... and --rounds N are known, not {word}"
                ));
            }
        }
    }
    Ok((chosen, rounds))
}

fn print_row(row: &Row, medians: &[Medians]) {
    if let Some(feeder) = row.feeder {
        println!("  fed by: {feeder}");
    }
    for (contender, medians) in row.contenders.iter().zip(medians) {
        let void = row.needs_surplus && !medians.has_surplus();
        let rounds = medians.rounds.iter();
        let rounds: Vec<String> = rounds
            .map(|it| format!("{:.0}", it.delivered / 1e3))
            .collect();
        println!(
            "  {:32} {}{} ({} k)",
            contender.name,
            figures(&medians.of),
            if void {
                ", VOID: not fed 1.3 times that"
            } else {
                ""
            },
            rounds.join(" ")
        );
        println!(
            "      {}; {}",
            contender.feeder.unwrap_or(contender.receiver.command),
            contender.kernel.words()
        );
    }
    for target in row.targets {
        print_target(&target.to_string(), target.reached(medians));
    }
}

fn print_target(target: &str, reached: Option<(f64, bool)>) {
    match reached {
        Some((reached, true)) => println!("  {target}: {reached:.3}, met"),
        Some((reached, false)) => println!("  {target}: {reached:.3}, missed"),
        None => println!("  {target}: nothing to compare"),
    }
}

fn figures(of: &Outcome) -> String {
    let spinner = of.spinner.map_or_else(String::new, |share| {
        format!(", spinner {:.0} %", 100.0 * share)
    });
    format!(
        "{:>9.0}/s of {:>9.0}/s, CPU {:>5.1} %, cores {:.0} and {:.0} % busy{spinner}",
        of.delivered,
        of.fed,
        100.0 * of.receiver_cpu,
        100.0 * of.busy[0],
        100.0 * of.busy[1]
    )
}

fn print_overload(all: &[overload::Beyond]) {
    println!("  fed by: {}", overload::feeder(100_000));
    for (contender, one) in overload::CONTENDERS.iter().zip(all) {
        println!(
            "  {}: {}; {}",
            contender.name,
            contender.receiver.command,
            contender.kernel.words()
        );
        let ladder = one.ladder.iter();
        let ladder: Vec<String> = ladder
            .map(|(load, delivered)| format!("{}: {:.0}", load / 1000, delivered / 1e3))
            .collect();
        println!(
            "      delivered by load, thousands a second: {}",
            ladder.join(", ")
        );
        for (times, medians) in overload::BEYOND.iter().zip(&one.beyond) {
            println!(
                "      {times} x {}: {:5.1} % of its peak; {}",
                one.peak.0,
                100.0 * medians.of.delivered / one.peak.1,
                figures(&medians.of)
            );
        }
    }
    let kept = |one: &overload::Beyond| {
        let kept = one.beyond.iter().map(|it| it.of.delivered / one.peak.1);
        kept.fold(f64::INFINITY, f64::min)
    };
    let [ours, references @ ..] = all else { return };
    let worst = references.iter().map(kept).fold(f64::INFINITY, f64::min);
    if worst >= overload::BREAKS_DOWN {
        println!(
            "  VOID: the kernel's sockets keep {:.0} % of their peak here",
            100.0 * worst
        );
    }
    // Where nothing breaks down, holding proves nothing.
    if worst >= overload::BREAKS_DOWN {
        return;
    }
    let reached = kept(ours);
    let target = format!("delivered of its own peak, at least {}", overload::HOLDS);
    print_target(&target, Some((reached, reached >= overload::HOLDS)));
}

fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
