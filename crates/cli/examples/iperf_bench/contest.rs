//! Runs contenders in turn on the same link, and compares their medians.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};

use anyhow::{Context, Result, anyhow, ensure};
use nicpoll_lab::Veth;
use nicpoll_model::Side;
use nicpoll_observe::HostCounters;
use nicpoll_stats::Summary;
use nicpoll_sys::schedule;

use crate::peers::spawn;

const ROUNDS: usize = 5;
const ADDRESS: &str = "198.18.0.2";
/// Ticks a second of the times in /proc/self/stat, the same on every machine.
const TICKS_PER_SECOND: f64 = 100.0;
/// Limit of frames without data: FINs, their answers, and others of the originals.
const OTHER_FRAMES_MAX: u64 = 1000;

/// Results of one run.
pub struct Run {
    /// The client's output.
    pub client: String,
    /// The server's output.
    pub server: String,
    /// Processor time of the client.
    pub client_cpu_seconds: f64,
}

/// A figure read from a run.
pub struct Figure {
    /// The compared figure.
    pub value: f64,
    /// Lost share of the sent datagrams.
    pub loss: Option<f64>,
    /// Sent datagrams, each of which must have crossed the link as a frame of its own.
    pub datagrams: Option<u64>,
}

/// Programs at both ends; HOST stands for the server's address.
pub struct Contender {
    /// Client's and server's program.
    pub name: &'static str,
    /// The server.
    pub server: &'static str,
    /// Output that shows that the server listens, and its number of occurrences.
    pub ready: (&'static str, usize),
    /// Text of its last line, if it has one.
    pub last: Option<&'static str>,
    /// The client.
    pub client: &'static str,
    /// Reads the compared figure.
    pub figure: fn(&Run) -> Option<Figure>,
}

/// A limit for the first contender's median divided by another's.
pub enum Target {
    /// At least this ratio to the best of these contenders.
    AtLeast(f64, &'static [usize]),
    /// At most this ratio to this contender, if less is better.
    AtMost(f64, usize),
    /// At least this ratio of one contender to another.
    Pair(f64, usize, usize),
}

impl Target {
    fn reached(&self, medians: &[f64]) -> f64 {
        match *self {
            Target::AtLeast(_, peers) => {
                let best = peers.iter().map(|peer| medians[*peer]);
                medians[0] / best.fold(f64::MIN, f64::max)
            }
            Target::AtMost(_, peer) => medians[0] / medians[peer],
            Target::Pair(_, one, other) => medians[one] / medians[other],
        }
    }

    /// Returns whether the reached ratio meets the aim.
    pub fn is_met_by(&self, reached: f64) -> bool {
        match *self {
            Target::AtLeast(least, _) | Target::Pair(least, ..) => reached >= least,
            Target::AtMost(most, _) => reached <= most,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Target::AtLeast(least, _) => write!(f, "ours by the better peer's, at least {least}"),
            Target::AtMost(most, _) => write!(f, "ours by the peer's, at most {most}"),
            Target::Pair(least, ..) => {
                write!(
                    f,
                    "ours to the peer by the peer to itself, at least {least}"
                )
            }
        }
    }
}

/// One comparison.
pub struct Row {
    /// What is measured.
    pub title: &'static str,
    /// Ours first.
    pub contenders: &'static [Contender],
    /// The aims.
    pub targets: &'static [Target],
}

/// Figures of one contender.
pub struct Outcome {
    /// One for each round.
    pub figures: Vec<f64>,
    /// Their median.
    pub median: f64,
    /// The median loss.
    pub loss: Option<f64>,
}

/// Results of a row.
pub struct Contest {
    /// By contender.
    pub results: Vec<Outcome>,
    /// By target.
    pub reached: Vec<f64>,
}

impl Contest {
    /// Runs every contender in turn, five times.
    pub fn hold(veth: &Veth, row: &Row) -> Result<Contest> {
        let mut figures: Vec<Vec<Figure>> = row.contenders.iter().map(|_| Vec::new()).collect();
        for _ in 0..ROUNDS {
            for (contender, figures) in row.contenders.iter().zip(&mut figures) {
                figures.push(measure(veth, contender)?);
            }
        }
        let results: Vec<Outcome> = figures.iter().filter_map(|of| outcome(of)).collect();
        let medians: Vec<f64> = results.iter().map(|result| result.median).collect();
        let reached = row.targets.iter();
        Ok(Contest {
            reached: reached.map(|target| target.reached(&medians)).collect(),
            results,
        })
    }
}

fn outcome(figures: &[Figure]) -> Option<Outcome> {
    let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
    let losses: Option<Vec<f64>> = figures.iter().map(|figure| figure.loss).collect();
    Some(Outcome {
        median: Summary::of(&values)?.median,
        loss: losses.and_then(|losses| Some(Summary::of(&losses)?.median)),
        figures: values,
    })
}

fn measure(veth: &Veth, contender: &Contender) -> Result<Figure> {
    let before = received_frames(veth)?;
    let run = run(veth, contender)?;
    let frames = received_frames(veth)? - before;
    let figure = (contender.figure)(&run).ok_or_else(|| {
        anyhow!(
            "no figure of {} in:\n{}\n{}",
            contender.name,
            run.client,
            run.server
        )
    })?;
    if let Some(datagrams) = figure.datagrams {
        ensure!(
            (datagrams..datagrams + OTHER_FRAMES_MAX).contains(&frames),
            "{}: {datagrams} datagrams in {frames} frames",
            contender.name
        );
    }
    Ok(figure)
}

fn received_frames(veth: &Veth) -> Result<u64> {
    let snapshot = veth
        .inside(Side::Receiver)
        .run(|()| HostCounters::of_caller().snapshot())?;
    let interfaces = snapshot
        .interfaces
        .context("listing the receiver's interfaces")?;
    Ok(interfaces.values().map(|one| one.link.rx_packets).sum())
}

fn run(veth: &Veth, contender: &Contender) -> Result<Run> {
    let cpus = schedule::allowed_cpus()?;
    let [sender_cpu, receiver_cpu, ..] = cpus[..] else {
        return Err(anyhow!("two CPUs are needed"));
    };
    let [sender, receiver] = [Side::Sender, Side::Receiver].map(|side| veth.inside(side));
    let words = |words: &str| words.replace("HOST", ADDRESS);
    let mut serving = spawn(receiver, receiver_cpu, &words(contender.server))?;
    let mut printed = BufReader::new(serving.stdout.take().context("no output")?);
    let mut server = String::new();
    let (ready, times) = contender.ready;
    while server.matches(ready).count() < times {
        if printed.read_line(&mut server)? == 0 {
            return Err(anyhow!("{} ended at once: {server}", contender.server));
        }
    }
    let before = children_cpu_seconds()?;
    let client = spawn(sender, sender_cpu, &words(contender.client))?.wait_with_output()?;
    let client_cpu_seconds = children_cpu_seconds()? - before;
    // iperf 2.1.8 may wait for more datagrams after its last line.
    while let Some(last) = contender.last {
        let mut line = String::new();
        if printed.read_line(&mut line)? == 0 || line.contains(last) {
            server.push_str(&line);
            break;
        }
        server.push_str(&line);
    }
    let _ = serving.kill();
    serving.wait()?;
    Ok(Run {
        client: String::from_utf8_lossy(&client.stdout).into_owned(),
        server,
        client_cpu_seconds,
    })
}

/// Returns the CPU time of all children that were waited for.
fn children_cpu_seconds() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may contain blanks; cutime and cstime are fields 16 and 17 of proc(5).
    let (_, fields) = stat.rsplit_once(") ").context("no fields")?;
    let ticks: Option<Vec<f64>> = fields
        .split(' ')
        .skip(13)
        .take(2)
        .map(|ticks| ticks.parse().ok())
        .collect();
    Ok(ticks.context("no times")?.iter().sum::<f64>() / TICKS_PER_SECOND)
}
