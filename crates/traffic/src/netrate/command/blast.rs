//! netblast: threads that send, and one that watches the time.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::netrate::{NETBLAST_SCHEMA, Netblast, NetrateSender};
use nicpoll_sys::affinity;
use nicpoll_sys::tell;

use super::document;
use super::reach::Reach;
use super::{
    DONE, Ended, Program, Refused, announce, ended, print, resolve, say_error, say_losses,
    since_1970, span, watch,
};
use crate::Signals;
use crate::netrate::blast::{BATCH_DATAGRAMS_MAX, BlastConfig, Blaster};
use crate::netrate::options::{BlastOptions, Tool};
use crate::netrate::text::{self, Summary};
use crate::netrate::{SendCount, connect_first};
use crate::repeat;

/// Sends, and tells what came of it.
pub fn run(options: &BlastOptions, program: &mut dyn Program) -> Result<Ended, Refused> {
    let addresses = resolve(&options.host, options.port)?;
    let cpus = affinity::allowed_cpus()?;
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
    if !options.json {
        return repeat(options, peer, &mut blasters, &cpus, program);
    }
    let account = program.open_account();
    let blast = blast(options, &mut blasters, &cpus, program)?;
    let host = account.and_then(|close| close());
    let summary = blast.summary(options, program);
    let error = blast.reach.shortfall(&blast.count);
    say_error(Tool::Netblast, error.as_deref());
    let object = Netblast {
        head: document::head(NETBLAST_SCHEMA),
        sender: sender(options, peer, &blast, &summary, program.signal(), error),
        threads: blasters.len(),
        datagrams_per_system_call: blasters[0].datagrams_per_system_call(),
        host,
    };
    Ok(Ended::Netblast(Box::new(object)))
}

/// Sends as often as was asked for, with the lines of each run, and below several what they come to.
fn repeat(
    options: &BlastOptions,
    peer: SocketAddr,
    blasters: &mut [Blaster],
    cpus: &[u32],
    program: &mut dyn Program,
) -> Result<Ended, Refused> {
    let mut rates = Vec::new();
    let mut last = DONE;
    for _ in 0..options.runs {
        let account = program.open_account();
        let blast = blast(options, blasters, cpus, program)?;
        let host = account.and_then(|close| close());
        let summary = blast.summary(options, program);
        let lines = text::netblast(
            &summary,
            options.style,
            options.payload_bytes,
            peer.is_ipv6(),
        );
        print(&lines)?;
        say_losses(host.as_ref());
        if program.signal().is_some() {
            // It was cut short: what it came to is none of the runs'.
            break;
        }
        let error = blast.reach.shortfall(&blast.count);
        if error.is_some() {
            last = ended(Tool::Netblast, error.as_deref());
            rates.push(None);
            continue;
        }
        let sent = blast.count.successes() as f64;
        rates.push(Some(sent / blast.elapsed.as_secs_f64()));
    }
    let line = repeat::line(&rates, |rate| format!("{rate:.0} packets/s"));
    if let Some(line) = line.filter(|_| options.runs > 1) {
        print(&format!("\n{line}\n"))?;
    }
    Ok(last)
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
    fn summary(&self, options: &BlastOptions, program: &dyn Program) -> Summary {
        Summary {
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
                if is_pinned && let Err(error) = affinity::pin(cpu) {
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

fn sender(
    options: &BlastOptions,
    peer: SocketAddr,
    blast: &Blast,
    summary: &Summary,
    signal: Option<i32>,
    error: Option<String>,
) -> NetrateSender {
    document::sender(
        document::Plan {
            peer,
            payload_bytes: options.payload_bytes,
            duration_seconds: options.duration_seconds,
            is_blocking: options.is_blocking,
        },
        summary,
        &blast.count,
        blast.elapsed,
        signal,
        error,
    )
}
