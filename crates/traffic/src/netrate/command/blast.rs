//! netblast: threads that send, and one that watches the time.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::{NETBLAST_RUNS_SCHEMA, NETBLAST_SCHEMA, Netblast, NetblastRuns};
use nicpoll_model::{HostDelta, RateUnit};
use nicpoll_sys::schedule;
use nicpoll_sys::tell;

use crate::netrate::blast::{BATCH_DATAGRAMS_MAX, BlastConfig, Blaster};
use crate::netrate::command::common::{
    self, DONE, EXIT_SHORT, Program, Reach, Refused, ToolEnded, announce, resolve, say_error,
    say_losses, since_1970, span, watch,
};
use crate::netrate::options::{BlastOptions, Tool};
use crate::netrate::sending::{SendCount, connect_first};
use crate::netrate::text::{self, SentSummary};
use crate::repeat::Outcome;
use crate::signals::Signals;
use nicpoll_sys::stdio::print;

/// Sends, and tells what came of it.
pub fn run(options: &BlastOptions, program: &mut dyn Program) -> Result<ToolEnded, Refused> {
    let addresses = resolve(&options.host, options.port)?;
    let cpus = schedule::allowed_cpus()?;
    let (socket, peer) = connect_first(&addresses)?;
    let mut blasters = vec![Blaster::new(socket, peer, config(options))?];
    for _ in 1..options.threads.unwrap_or(1) {
        let (socket, _) = connect_first(&[peer])?;
        blasters.push(Blaster::new(socket, peer, config(options))?);
    }
    if let Some(threads) = options.threads {
        if threads > cpus.len() {
            let warning = text::netblast_few_cores(threads, cpus.len());
            announce(&warning, options.json)?;
        }
        let duration = options.duration_seconds;
        let line = text::netblast_threads(threads, options.port, duration);
        announce(&line, options.json)?;
    }
    program.catch_signals()?;
    run_all(options, peer, &mut blasters, &cpus, program)
}

/// Sends as often as was asked for, tells each run, and of several what they come to.
fn run_all(
    options: &BlastOptions,
    peer: SocketAddr,
    blasters: &mut [Blaster],
    cpus: &[u32],
    program: &mut dyn Program,
) -> Result<ToolEnded, Refused> {
    let asked = options.repeat.unwrap_or(1);
    let (mut documents, mut rates, mut last) = (Vec::new(), Vec::new(), DONE);
    for _ in 0..asked {
        let account = program.open_account();
        let blast = blast(options, blasters, cpus, program)?;
        let host = account.and_then(|close| close());
        let error = blast.reach.shortfall(&blast.count);
        // It was cut short: what it came to is none of the runs'.
        let is_cut_short = program.signal().is_some();
        let rate = blast.count.successes() as f64 / blast.elapsed.as_secs_f64();
        rates.push((error.is_none() && !is_cut_short).then_some(rate));
        if !options.json {
            print(&lines(options, peer, &blast, program))?;
            say_losses(host.as_ref());
        }
        if let Some(error) = &error {
            say_error(Tool::Netblast, Some(error));
            // Whoever ended it knows what was obtained.
            if !is_cut_short {
                last = ToolEnded::Status(EXIT_SHORT);
            }
        }
        if options.json {
            documents.push(document(
                options, peer, &blast, blasters, host, error, program,
            ));
        }
        if is_cut_short {
            break;
        }
    }
    match options.repeat {
        None => Ok(documents
            .pop()
            .map_or(last, |one| ToolEnded::Netblast(Box::new(one)))),
        Some(asked) => of_all(Outcome::of(asked, rates), documents, options.json, last),
    }
}

/// Tells what several runs came to.
fn of_all(
    outcome: Outcome,
    runs: Vec<Netblast>,
    is_json: bool,
    last: ToolEnded,
) -> Result<ToolEnded, Refused> {
    if is_json {
        return Ok(ToolEnded::NetblastRuns(Box::new(NetblastRuns {
            head: common::head(NETBLAST_RUNS_SCHEMA),
            runs,
            summary: outcome.summary_of(RateUnit::PacketsPerSecond),
        })));
    }
    if let Some(line) = outcome.line(|rate| format!("{rate:.0} packets/s")) {
        print(&format!("\n{line}\n"))?;
    }
    Ok(last)
}

fn lines(options: &BlastOptions, peer: SocketAddr, blast: &Blast, program: &dyn Program) -> String {
    let (style, bytes) = (options.style, options.payload_bytes);
    text::netblast(
        &blast.summary(options, program),
        style,
        bytes,
        peer.is_ipv6(),
    )
}

fn document(
    options: &BlastOptions,
    peer: SocketAddr,
    blast: &Blast,
    blasters: &[Blaster],
    host: Option<HostDelta>,
    error: Option<String>,
    program: &dyn Program,
) -> Netblast {
    let plan = common::Plan {
        peer,
        payload_bytes: options.payload_bytes,
        duration_seconds: options.duration_seconds,
        is_blocking: options.is_blocking,
    };
    let summary = blast.summary(options, program);
    let (count, elapsed) = (&blast.count, blast.elapsed);
    Netblast {
        head: common::head(NETBLAST_SCHEMA),
        sender: common::sender(plan, &summary, count, elapsed, program.signal(), error),
        threads: blasters.len(),
        datagrams_per_system_call: blasters[0].datagrams_per_system_call(),
        host,
    }
}

fn config(options: &BlastOptions) -> BlastConfig {
    BlastConfig {
        payload_bytes: options.payload_bytes,
        is_batched: options.is_batched,
        is_blocking: options.is_blocking,
    }
}

/// What came of it.
struct Blast {
    start: Duration,
    finish: Duration,
    elapsed: Duration,
    count: SendCount,
    reach: Reach,
}

impl Blast {
    fn summary(&self, options: &BlastOptions, program: &dyn Program) -> SentSummary {
        SentSummary {
            start: self.start,
            finish: self.finish,
            span: span(options.duration_seconds, self.elapsed, program),
            send_calls: self.count.calls,
            send_errors: self.count.errors,
            batch_datagrams: options.is_batched.then_some(BATCH_DATAGRAMS_MAX),
        }
    }
}

fn blast(
    options: &BlastOptions,
    blasters: &mut [Blaster],
    cpus: &[u32],
    program: &dyn Program,
) -> io::Result<Blast> {
    let signals = Signals::default();
    let (start, began) = (since_1970(), Instant::now());
    let deadline = (options.duration_seconds > 0)
        .then(|| began.checked_add(Duration::from_secs(options.duration_seconds)))
        .flatten();
    let mut count = SendCount::default();
    let mut reach = Reach::new(blasters.iter_mut().map(Blaster::progress).collect());
    thread::scope(|scope| -> io::Result<()> {
        let mut threads = Vec::new();
        for (blaster, &cpu) in blasters.iter_mut().zip(cpus.iter().cycle()) {
            let (signals, is_pinned) = (&signals, options.threads.is_some());
            let sending = thread::Builder::new().name(String::from("nicpoll-netblast"));
            threads.push(sending.spawn_scoped(scope, move || {
                // As in the original, a thread that cannot be bound sends all the same.
                if is_pinned && let Err(error) = schedule::pin(cpu) {
                    tell!("unable to set thread affinity: {error}");
                }
                blaster.run(signals)
            })?);
        }
        watch(deadline, program, &signals, || {
            reach.look();
            false
        });
        for thread in threads {
            match thread.join() {
                Ok(sent) => count.add(&sent),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(())
    })?;
    Ok(Blast {
        start,
        finish: since_1970(),
        elapsed: began.elapsed(),
        count,
        reach,
    })
}
