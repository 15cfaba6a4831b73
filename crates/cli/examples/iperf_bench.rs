//! How fast `nicpoll iperf` is beside iperf 2 and iperf3: one run, interleaved, medians of five, in
//! namespaces joined by a veth pair, sender on one core and receiver on the next.
//!
//! As root, with iperf and iperf3 installed:
//!
//! ```console
//! # cargo build --release && cargo run --release -p nicpoll --example iperf_bench
//! ```
//!
//! Each row names the peer's command beside ours. Payload is read into user space at every end. On a
//! shared machine the medians move by a tenth from run to run: read the ratios.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow};
use nicpoll_lab::{Host, Lab};
use nicpoll_napi::Journal;
use nicpoll_stats::Summary;

const ROUNDS: usize = 5;
const ADDRESS: &str = "198.18.0.2";

/// A program with the arguments of both its ends.
struct Contender {
    name: &'static str,
    server: &'static str,
    client: &'static str,
    /// Reads the figure from what the client and the server printed.
    figure: fn(&str, &str) -> Option<f64>,
}

struct Row {
    title: &'static str,
    contenders: &'static [Contender],
}

const ROWS: [Row; 3] = [
    Row {
        title: "TCP, one stream, Mbit/s",
        contenders: &[
            Contender {
                name: "nicpoll",
                server: "nicpoll iperf -s -P 1",
                client: "nicpoll iperf -c HOST -t 1 -f m",
                figure: |client, _| last_before(client, " Mbits/sec"),
            },
            Contender {
                name: "iperf",
                server: "iperf -s -P 1",
                client: "iperf -c HOST -t 1 -f m",
                figure: |client, _| last_before(client, " Mbits/sec"),
            },
            Contender {
                name: "iperf3",
                server: "iperf3 -s -1 --forceflush",
                client: "iperf3 -c HOST -t 1 -f m",
                figure: |client, _| last_before(client, " Mbits/sec"),
            },
        ],
    },
    Row {
        title: "UDP 64 B, delivered, datagrams/s",
        contenders: &[
            Contender {
                name: "nicpoll",
                server: "nicpoll iperf -s -u -P 1 -w 8M --style 2.1",
                client: "nicpoll iperf -u -c HOST -b 10g -l 64 -t 1",
                figure: |_, server| delivered(server),
            },
            Contender {
                name: "iperf",
                server: "iperf -s -u -P 1 -w 8M",
                client: "iperf -u -c HOST -b 10g -l 64 -t 1",
                figure: |_, server| delivered(server),
            },
        ],
    },
    Row {
        title: "UDP 1470 B, delivered, datagrams/s",
        contenders: &[
            Contender {
                name: "nicpoll",
                server: "nicpoll iperf -s -u -P 1 -w 8M --style 2.1",
                client: "nicpoll iperf -u -c HOST -b 10g -t 1",
                figure: |_, server| delivered(server),
            },
            Contender {
                name: "iperf",
                server: "iperf -s -u -P 1 -w 8M",
                client: "iperf -u -c HOST -b 10g -t 1",
                figure: |_, server| delivered(server),
            },
        ],
    },
];

fn main() -> Result<()> {
    let lab = Lab::build(Journal::of_this_machine())?;
    lab.cut_trains()?;
    for row in &ROWS {
        println!("{}", row.title);
        let mut figures: Vec<Vec<f64>> = row.contenders.iter().map(|_| Vec::new()).collect();
        for _ in 0..ROUNDS {
            for (contender, figures) in row.contenders.iter().zip(&mut figures) {
                figures.push(run(&lab, contender)?);
            }
        }
        let medians: Vec<f64> = figures
            .iter()
            .filter_map(|figures| Summary::of(figures))
            .map(|summary| summary.median)
            .collect();
        for (contender, (median, figures)) in
            row.contenders.iter().zip(medians.iter().zip(&figures))
        {
            let spread: Vec<String> = figures
                .iter()
                .map(|figure| format!("{figure:.0}"))
                .collect();
            println!(
                "  {:8} {median:>10.0}  nicpoll/this {:.2}  ({})  {} | {}",
                contender.name,
                medians[0] / median,
                spread.join(" "),
                contender.server,
                contender.client
            );
        }
    }
    Ok(())
}

fn run(lab: &Lab, contender: &Contender) -> Result<f64> {
    let mut server = spawn(&lab.receiver, lab.receiver_cpu, contender.server)?;
    let mut printed = BufReader::new(server.stdout.take().context("no output")?);
    let mut server_text = String::new();
    // Each of them draws a second line of dashes when it listens.
    while server_text.matches("-----\n").count() < 2 {
        if printed.read_line(&mut server_text)? == 0 {
            return Err(anyhow!("{} ended at once: {server_text}", contender.server));
        }
    }
    let client = spawn(&lab.sender, lab.sender_cpu, contender.client)?;
    let client = client.wait_with_output()?;
    // iperf 2.1.8 can wait for further datagrams after its last one.
    for line in printed.lines() {
        let line = line?;
        let is_last = line.contains("%)");
        server_text.push_str(&line);
        server_text.push('\n');
        if is_last {
            break;
        }
    }
    let _ = server.kill();
    server.wait()?;
    let client = String::from_utf8_lossy(&client.stdout);
    (contender.figure)(&client, &server_text).ok_or_else(|| {
        anyhow!(
            "no figure of {} in:\n{client}\n{server_text}",
            contender.name
        )
    })
}

/// Starts a program in a host's namespace, bound to a core.
fn spawn(host: &Host, cpu: u32, words: &str) -> Result<std::process::Child> {
    let words = words.replace("HOST", ADDRESS);
    let ours = our_program()?;
    let started = host.spawn_pinned(cpu, "bench", move || {
        let mut words = words.split(' ');
        let program = words.next().unwrap_or_default();
        let program = match program {
            "nicpoll" => ours,
            other => PathBuf::from(other),
        };
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn()
    })?;
    let child = started
        .join()
        .map_err(|_| anyhow!("the starting thread panicked"))??;
    child.context("starting a contender; iperf and iperf3 must be installed")
}

/// The program beside this example's directory.
fn our_program() -> Result<PathBuf> {
    let example = std::env::current_exe()?;
    let directory = example.parent().and_then(|path| path.parent());
    Ok(directory.context("no target directory")?.join("nicpoll"))
}

/// The number before the last `unit`.
fn last_before(text: &str, unit: &str) -> Option<f64> {
    let (before, _) = text.rsplit_once(unit)?;
    before.rsplit([' ', '\n']).next()?.parse().ok()
}

/// Datagrams a second that a UDP server received, from its last line.
fn delivered(text: &str) -> Option<f64> {
    let line = text.lines().rfind(|line| line.contains("%)"))?;
    let (_, times) = line.split_once("] ")?;
    let (start, rest) = times.split_once('-')?;
    let (end, rest) = rest.split_once(" sec")?;
    let (_, counts) = rest.split_once(" ms ")?;
    let (lost, rest) = counts.split_once('/')?;
    let total = rest.split(' ').next()?;
    let number = |text: &str| text.trim().parse::<f64>().ok();
    Some((number(total)? - number(lost)?) / (number(end)? - number(start)?))
}
