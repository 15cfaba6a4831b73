//! netblast: threads that send, and one that watches the time.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::netrate::{NETBLAST_SCHEMA, Netblast, NetrateSender};
use nicpoll_observe::HostAccount;
use nicpoll_report::render_document;
use nicpoll_sys::affinity;
use nicpoll_traffic::Signals;
use nicpoll_traffic::netrate::blast::{BlastConfig, Blaster};
use nicpoll_traffic::netrate::options::BlastOptions;
use nicpoll_traffic::netrate::text::{self, Summary};
use nicpoll_traffic::netrate::{SendCount, connect_first};

use super::json;
use super::{Refused, announce, print, resolve, since_1970, span, watch};
use crate::stop::Stop;

/// Sends, and tells what came of it.
pub fn run(options: &BlastOptions) -> Result<(), Refused> {
    let addresses = resolve(&options.host, options.port).map_err(Refused::Because)?;
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
    let stop = Stop::on_signals()?;
    let account = HostAccount::begin().ok();
    let blast = blast(options, &mut blasters, &cpus, &stop)?;
    let host = account.and_then(|account| account.end().ok());
    let summary = blast.summary(options, &stop);
    if !options.json {
        let lines = text::netblast(
            &summary,
            options.style,
            options.payload_bytes,
            peer.is_ipv6(),
        );
        return Ok(print(&lines)?);
    }
    let object = Netblast {
        head: json::head(NETBLAST_SCHEMA),
        sender: sender(options, peer, &blast, &summary, stop.signal()),
        threads: blasters.len(),
        datagrams_per_system_call: blasters[0].datagrams_per_system_call(),
        host,
    };
    Ok(print(&render_document(&object))?)
}

fn config(options: &BlastOptions) -> BlastConfig {
    BlastConfig {
        payload_bytes: options.payload_bytes,
        is_single: options.is_single,
        is_blocking: options.is_blocking,
    }
}

/// What came of it.
struct Blast {
    start: Duration,
    finish: Duration,
    elapsed: Duration,
    count: SendCount,
}

impl Blast {
    fn summary(&self, options: &BlastOptions, stop: &Stop) -> Summary {
        Summary {
            start: self.start,
            finish: self.finish,
            span: span(options.duration_seconds, self.elapsed, stop),
            send_calls: self.count.calls,
            send_errors: self.count.errors,
        }
    }
}

fn blast(
    options: &BlastOptions,
    blasters: &mut [Blaster],
    cpus: &[u32],
    stop: &Stop,
) -> io::Result<Blast> {
    let signals = Signals::default();
    let (start, began) = (since_1970(), Instant::now());
    let deadline = (options.duration_seconds > 0)
        .then(|| began.checked_add(Duration::from_secs(options.duration_seconds)))
        .flatten();
    let mut count = SendCount::default();
    thread::scope(|scope| -> io::Result<()> {
        let mut threads = Vec::new();
        for (blaster, &cpu) in blasters.iter_mut().zip(cpus.iter().cycle()) {
            let (signals, is_pinned) = (&signals, options.threads.is_some());
            let sending = thread::Builder::new().name(String::from("nicpoll-netblast"));
            threads.push(sending.spawn_scoped(scope, move || {
                // As in the original, a thread that cannot be bound sends all the same.
                if is_pinned && let Err(error) = affinity::pin(cpu) {
                    eprintln!("unable to set thread affinity: {error}");
                }
                blaster.run(signals)
            })?);
        }
        watch(deadline, stop, &signals, || false);
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
    })
}

fn sender(
    options: &BlastOptions,
    peer: SocketAddr,
    blast: &Blast,
    summary: &Summary,
    signal: Option<i32>,
) -> NetrateSender {
    json::sender(
        json::Plan {
            peer,
            payload_bytes: options.payload_bytes,
            duration_seconds: options.duration_seconds,
            is_blocking: options.is_blocking,
        },
        summary,
        &blast.count,
        blast.elapsed,
        signal,
    )
}
