//! The engine against its peers: one run, interleaved, medians of five, in namespaces joined by veth pairs, sender on
//! CPU 0 and receiver or router on CPU 1.
//!
//! As root, with dpdk-testpmd (package dpdk-dev), trafgen (netsniff-ng), iperf 2 and taskset installed:
//!
//! ```console
//! # cargo build --release && cargo run --release -p nicpoll --example engine_bench [-- --rows NAME,...] [--rounds N]
//! ```
//!
//! `--keep FILE` writes the measurements of the rows `delays` and `overload` to a file; `engine_bench draw FILE
//! FOLDER` draws it again.
//!
//! Frames have 64 bytes (60 without FCS). Each row shows the commands of all contenders, frames fed and delivered,
//! and CPU time: of their own threads, and busy time of both cores. A peer that was not fed 1.3 times what it took
//! voids its row.

#[macro_use]
mod commands;

mod contest;
mod course;
mod delays;
mod helpers;
mod kept;
mod kernel;
mod overload;
#[path = "../peers/mod.rs"]
mod peers;
mod predicted;
mod rows;
mod said;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use nicpoll_inspect::host_facts;
use nicpoll_report::{delays_as_markdown, overload_as_markdown};

use contest::{Medians, Row};
use course::{Course, Place};
use overload::Climbed;
use trial::Outcome;

const ROUNDS: usize = 5;

/// The options.
struct Asked {
    /// Names of the rows.
    rows: Vec<&'static str>,
    /// Rounds of each.
    rounds: usize,
    /// File for the measurements to draw.
    keep: Option<PathBuf>,
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "helper") {
        return helpers::run(&words[1..]);
    }
    if let [draw, file, folder] = &words[..]
        && draw == "draw"
    {
        return kept::draw(Path::new(file), Path::new(folder));
    }
    let asked = asked(&words)?;
    for place in [Place::Middle, Place::End] {
        let rows = rows::ROWS.iter().filter(|row| row.place == place);
        let rows: Vec<&Row> = rows.filter(|row| asked.rows.contains(&row.name)).collect();
        if rows.is_empty() {
            continue;
        }
        let course = Course::build(place)?;
        for row in rows {
            println!("{} (load average {})", row.title, load_average());
            print_row(row, &row.hold(&course, asked.rounds)?);
        }
    }
    if asked.rows.contains(&delays::NAME) {
        hold_delays(&asked)?;
    }
    if asked.rows.contains(&overload::NAME) {
        hold_overload(&asked)?;
    }
    Ok(())
}

fn hold_delays(asked: &Asked) -> Result<()> {
    println!("delays (load average {})", load_average());
    let delays = delays::hold(&Course::build(Place::End)?, asked.rounds)?;
    println!("{}", delays_as_markdown(&delays));
    keep(asked, |figures| figures.delays = Some(delays))
}

fn hold_overload(asked: &Asked) -> Result<()> {
    println!(
        "overload: {} ns of work a packet, receive work on the receiver's core (load average {})",
        overload::WORK_NS,
        load_average()
    );
    let fit = kept::measured_costs()?;
    let climbed = overload::hold(&Course::build(Place::End)?, asked.rounds)?;
    print_overload(&climbed);
    let figures = kept::overload(&climbed, &fit, asked.rounds)?;
    println!("{}", overload_as_markdown(&figures));
    keep(asked, |kept| kept.overload = Some(figures))
}

/// Changes the file of measurements, if one is named.
fn keep(
    asked: &Asked,
    change: impl FnOnce(&mut nicpoll_model::engine::EngineBenchmark),
) -> Result<()> {
    let Some(file) = &asked.keep else {
        return Ok(());
    };
    let mut figures = kept::read(file)?;
    change(&mut figures);
    kept::write(file, &figures)
}

/// Returns where and how something was measured.
fn facts(how: &str) -> Result<String> {
    let host = host_facts()?;
    let kernel = host.kernel.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let cpu = host.cpu_model.as_deref().unwrap_or("unknown processor");
    Ok(format!("measured on two cores ({cpu}, {kernel}): {how}"))
}

/// Parses the options.
fn asked(words: &[String]) -> Result<Asked> {
    let names = rows::ROWS.iter().map(|row| row.name);
    let names: Vec<&str> = names.chain([delays::NAME, overload::NAME]).collect();
    let mut asked = Asked {
        rows: names.clone(),
        rounds: ROUNDS,
        keep: None,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words.next();
        let value = value.with_context(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--rows" => {
                let chosen: Vec<&str> = value.split(',').collect();
                for one in &chosen {
                    ensure!(names.contains(one), "no row {one}; there are {names:?}");
                }
                asked.rows.retain(|name| chosen.contains(name));
            }
            "--rounds" => asked.rounds = value.parse()?,
            "--keep" => asked.keep = Some(PathBuf::from(value)),
            _ => {
                return Err(anyhow!(
                    "--rows NAME,..., --rounds N and --keep FILE are known, not {word}"
                ));
            }
        }
    }
    Ok(asked)
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
            figures(&medians.of) + &of_gaps(medians),
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
        100.0 * of.cpu,
        100.0 * of.busy[0],
        100.0 * of.busy[1]
    )
}

/// Returns what the gaps between packets are off by, in words.
fn of_gaps(medians: &Medians) -> String {
    let rounds = medians.rounds.iter();
    let p99 = rounds.filter_map(|it| it.delay.as_ref()?.p99_ns);
    let p99: Vec<f64> = p99.map(|ns| ns as f64 / 1e3).collect();
    nicpoll_stats::Summary::of(&p99).map_or_else(String::new, |summary| {
        format!(", 99 % of gaps within {:.1} us", summary.median)
    })
}

fn print_overload(all: &[Climbed]) {
    println!("  fed by: {}", overload::feeder(100_000));
    for (contender, one) in overload::CONTENDERS.iter().zip(all) {
        println!(
            "  {}: {}; {}",
            contender.name,
            contender.receiver.command,
            contender.kernel.words()
        );
        for (load, medians) in &one.rungs {
            println!("      {:>7} asked: {}", load, figures(&medians.of));
        }
        let (knee, peak) = one.knee();
        println!("      knee at {knee}, {peak:.0}/s there");
        for times in overload::BEYOND {
            match one.beyond(times) {
                Some(medians) => println!(
                    "      {times} x {knee}: {:5.1} % of that",
                    100.0 * medians.of.delivered / peak
                ),
                None => println!("      {times} x {knee}: more than one core sends"),
            }
        }
    }
    let [ours, alone, references @ ..] = all else {
        return;
    };
    let worst = references
        .iter()
        .map(Climbed::kept)
        .fold(f64::INFINITY, f64::min);
    if worst >= overload::BREAKS_DOWN {
        // If no socket breaks down, holding proves nothing.
        println!(
            "  VOID: the kernel's sockets keep {:.0} % of their peak here",
            100.0 * worst
        );
        return;
    }
    for (case, one) in [("beside a program", ours), ("alone", alone)] {
        let (reached, holds) = (one.kept(), overload::HOLDS);
        let target = format!("delivered of its own peak {case}, at least {holds}");
        print_target(&target, Some((reached, reached >= holds)));
    }
    let beyond = overload::BEYOND.iter();
    let shares = beyond.filter_map(|times| ours.beyond(*times)?.of.spinner);
    let furthest = shares.max_by(|one, other| {
        let off = |share: &f64| (share - overload::USER_SHARE).abs();
        off(one).total_cmp(&off(other))
    });
    let target = format!(
        "share of the program beside it, {} within {}",
        overload::USER_SHARE,
        overload::SHARE_TOLERANCE
    );
    let reached = furthest.map(|share| {
        let off = (share - overload::USER_SHARE).abs();
        (share, off <= overload::SHARE_TOLERANCE)
    });
    print_target(&target, reached);
}

fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
