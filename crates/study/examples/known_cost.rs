//! Repeated studies of a known cost: under one setting a server spins at each packet to make a round trip 5 % longer,
//! and nothing else differs. Prints how often studies find it, and how often they should by their own scatter.
//!
//! A first study measures the round trip, which gives the spin, and the scatter, which gives the blocks that find 5 %
//! nine times in ten. All others have that many blocks, at most 32. Client and server are processes of their own:
//! this program again, as a user's own command.
//!
//! Needs root. `cargo run --release -p nicpoll-study --example known_cost [STUDIES [SECONDS]]`: runs STUDIES studies
//! (40), none beginning after SECONDS (2400); a study takes a minute.

mod unstored;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use nicpoll_model::{Comparison, Study, Verdict};
use nicpoll_stats::order::Seed;
use nicpoll_stats::{Confidence, Pair, Power, log_differences};
use nicpoll_study::StudyFile;

/// Relative cost of the spin for a round trip.
const COST: f64 = 0.05;
const PAYLOAD_BYTES: usize = 64;
/// Duration of a client's requests.
const ASKING: Duration = Duration::from_millis(200);
/// Timeout of an answer: the server may not listen yet.
const PATIENCE: Duration = Duration::from_millis(100);
const PILOT_BLOCKS: u32 = 32;
/// Blocks of a study: the fewest for a rank interval, and those that fit into a minute.
const BLOCKS: [u32; 2] = [6, 32];
/// The quantile of the normal distribution for 95 %.
const QUANTILE: f64 = 1.96;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["ask", server, port] => ask(server, port.parse()?),
        ["answer", port, spin_ns] => answer(port.parse()?, Duration::from_nanos(spin_ns.parse()?)),
        [] => repeat(40, 2400),
        [studies] => repeat(studies.parse()?, 2400),
        [studies, seconds] => repeat(studies.parse()?, seconds.parse()?),
        _ => Err("known_cost [STUDIES [SECONDS]]".into()),
    }
}

/// Sends requests one at a time, waits for each answer, and prints the rate.
fn ask(server: &str, port: u16) -> Outcome<()> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect((server, port))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let begin = Instant::now();
    let mut answers = 0_u32;
    while begin.elapsed() < ASKING {
        // A refused or late request is repeated, which shows in the rate.
        let sent = socket.send(&[0; PAYLOAD_BYTES]);
        let answered = sent.and_then(|_| socket.recv(&mut [0; PAYLOAD_BYTES]));
        answers += u32::from(answered.is_ok());
    }
    println!(
        "rate {:.3}",
        f64::from(answers) / begin.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Answers each datagram after a spin, until it is killed.
fn answer(port: u16, spin: Duration) -> Outcome<()> {
    let socket = UdpSocket::bind(("0.0.0.0", port))?;
    let mut datagram = [0; PAYLOAD_BYTES];
    loop {
        let (length, client) = socket.recv_from(&mut datagram)?;
        let until = Instant::now() + spin;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        // A client that is gone needs no answer.
        let _ = socket.send_to(&datagram[..length], client);
    }
}

fn repeat(studies: u64, seconds: u64) -> Outcome<()> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let pilot = study(1, PILOT_BLOCKS, 1_000)?;
    let trip_ns = trip_ns(&pilot)?;
    let spin_ns = (COST * trip_ns) as u64;
    let needed = judged(&pilot)?.blocks_to_find_margin;
    let blocks = needed.unwrap_or(BLOCKS[1]).clamp(BLOCKS[0], BLOCKS[1]);
    println!(
        "A round trip takes {:.1} us, and the spin {:.2} us. By the scatter of {PILOT_BLOCKS} blocks it takes {} blocks \
         to find 5 % nine times in ten; each study has {blocks}.\n",
        trip_ns / 1e3,
        spin_ns as f64 / 1e3,
        needed.map_or(String::from("more than 10,000"), |it| it.to_string()),
    );
    println!("study  true   found  interval        should find it  verdict");
    let mut all = Vec::new();
    for seed in 2..2 + studies {
        if Instant::now() >= end {
            println!("The time is over.");
            break;
        }
        let one = One::of(&study(seed, blocks, spin_ns)?, spin_ns)?;
        println!("{:>5}  {one}", seed - 1);
        all.push(one);
    }
    conclude(&all);
    Ok(())
}

/// Result of a study.
struct One {
    /// True ratio of the rates with and without the spin, from the round trips without it.
    truth: f64,
    /// Probability that this many blocks find it, by the observed scatter.
    should: f64,
    said: Comparison,
}

impl One {
    fn of(study: &Study, spin_ns: u64) -> Outcome<Self> {
        let trip_ns = trip_ns(study)?;
        let truth = trip_ns / (trip_ns + spin_ns as f64);
        let said = judged(study)?.clone();
        let differences = log_differences(&pairs(study)).map_err(|bad| format!("{bad:?}"))?;
        let level = Confidence::for_family(study.plan.family_comparisons);
        let power = Power::of(&differences, said.method, level, Seed(study.seed));
        let power = power.ok_or("too few blocks gave a rate")?;
        let should = power.share_found(-truth.ln(), study.plan.blocks as usize);
        Ok(One {
            truth,
            should: should.ok_or("so few blocks have no interval")?,
            said,
        })
    }

    fn is_found(&self) -> bool {
        let word = self.said.verdict;
        matches!(word, Some(Verdict::Worse | Verdict::WorseAndItMatters))
    }

    fn holds(&self) -> bool {
        let ends = self.said.ratio_low.zip(self.said.ratio_high);
        ends.is_some_and(|(low, high)| low <= self.truth && self.truth <= high)
    }
}

impl fmt::Display for One {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: Option<f64>| value.map_or(String::from("-"), |it| format!("{it:.3}"));
        let said = &self.said;
        write!(
            f,
            "{:.3}  {}  [{}, {}]  {:>12.0} %  {}",
            self.truth,
            shown(said.ratio),
            shown(said.ratio_low),
            shown(said.ratio_high),
            100.0 * self.should,
            said.verdict.map_or("-".into(), |word| word.to_string())
        )
    }
}

fn conclude(all: &[One]) {
    let count = |is: fn(&One) -> bool| all.iter().filter(|one| is(one)).count();
    let should: f64 = all.iter().map(|one| one.should).sum();
    let (found, holds, ran) = (count(One::is_found), count(One::holds), all.len());
    let percent = |share: f64| 100.0 * share / ran.max(1) as f64;
    let [low, high] = wilson(found as f64, ran as f64).map(|share| 100.0 * share);
    println!(
        "\nFound in {found} of {ran} studies: {:.0} % [{low:.0}, {high:.0}]. By their scatter it should be {:.0} %.\n\
         The interval holds the truth in {holds} of {ran}: {:.0} %, where 95 % are promised.",
        percent(found as f64),
        percent(should),
        percent(holds as f64),
    );
}

/// Returns Wilson's 95 % interval for a share.
fn wilson(hits: f64, of: f64) -> [f64; 2] {
    let (n, square) = (of.max(1.0), QUANTILE * QUANTILE);
    let middle = (hits + square / 2.0) / (n + square);
    let half = QUANTILE / (n + square) * (hits * (n - hits) / n + square / 4.0).sqrt();
    [(middle - half).max(0.0), middle + half]
}

/// Returns the delivered rates of trials under a setting, by block.
fn rates(study: &Study, setting: &str) -> BTreeMap<u32, f64> {
    let trials = study.trials.iter().filter(|it| it.setting == setting);
    let rates = trials.filter_map(|it| Some((it.block, it.result()?.delivered_bits_per_second)));
    rates.collect()
}

fn pairs(study: &Study) -> Vec<Pair> {
    let plain = rates(study, "plain");
    let pairs = rates(study, "spin").into_iter().map(|(block, rate)| Pair {
        setting: Some(rate),
        reference: plain.get(&block).copied(),
    });
    pairs.collect()
}

/// Returns the median round trip without a spin.
fn trip_ns(study: &Study) -> Outcome<f64> {
    let mut rates: Vec<f64> = rates(study, "plain").into_values().collect();
    rates.sort_by(f64::total_cmp);
    let median = rates.get(rates.len() / 2).ok_or("no trial gave a rate")?;
    Ok((8 * PAYLOAD_BYTES) as f64 * 1e9 / median)
}

/// Returns the comparison of rates.
fn judged(study: &Study) -> Outcome<&Comparison> {
    let mut primary = study.comparisons.iter().filter(|one| one.primary);
    Ok(primary.next().ok_or("nothing was compared")?)
}

/// Runs a study of a server that spins at each packet against one that does not.
fn study(seed: u64, blocks: u32, spin_ns: u64) -> Outcome<Study> {
    let program = std::env::current_exe()?;
    let program = program.to_str().ok_or("this program's path is no text")?;
    let text = format!(
        r#"
question = "Is a spin of {spin_ns} ns at each packet found?"
blocks = {blocks}
trial = "{}ms"
[[setting]]
name = "plain"
variant = {{ spin = "0" }}
[[setting]]
name = "spin"
variant = {{ spin = "{spin_ns}" }}
[[workload]]
name = "ask"
[workload.traffic]
kind = "command"
sender = ['{program}', "ask", "{{receiver}}", "{{port}}"]
receiver = ['{program}', "answer", "{{port}}", "{{spin}}"]
parser = "regex"
pattern = "rate ([0-9.]+)"
unit = "packets/s"
payload_bytes = {PAYLOAD_BYTES}
"#,
        ASKING.as_millis()
    );
    let file = StudyFile::parse(&text)?;
    let plan = file.plan(Seed(seed))?.plan;
    unstored::run(file.design, plan, seed)
}
