//! netblast and netsend: threads that send, and one that watches the time.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::{NETBLAST_RUNS_SCHEMA, NetblastRuns};
use nicpoll_model::traffic::{
    NETBLAST_SCHEMA, NETSEND_SCHEMA, Netblast, NetrateSender, Netsend, SendErrors,
};
use nicpoll_model::{HostDelta, Rate, RateUnit, Side, Way};
use nicpoll_sys::stdio::{print, print_error};
use nicpoll_sys::{schedule, tell};

use crate::losses;
use crate::netrate::blast::Blaster;
use crate::netrate::command::common::{
    OpenAccount, ToolFailure, announce, head, print_document, since_1970, time_of_day,
};
use crate::netrate::options::{NetrateOptions, NetrateTool};
use crate::netrate::send::{PacedSender, SendSchedule};
use crate::netrate::sending::{Reach, SendProgress, Sent, connect_first, words_of};
use crate::netrate::text;
use crate::repeat::RepeatedRuns;
use crate::signals::{LOOK_EVERY, Signals, Stop};
use crate::sockets::kernel_words;

/// Exit status of a test that fell short; the originals' is 0.
const EXIT_SHORT: u8 = 1;

/// netblast: sends as often as requested, prints each run, and a summary of several.
pub fn blast(options: &NetrateOptions, open_account: OpenAccount<'_>) -> Result<u8, ToolFailure> {
    let addresses = resolve(&options.host, options.port)?;
    let cpus = schedule::allowed_cpus()?;
    let (socket, peer) = connect_first(&addresses)?;
    let mut blasters = vec![Blaster::new(socket, peer, options)?];
    for _ in 1..options.threads.unwrap_or(1) {
        let (socket, _) = connect_first(&[peer])?;
        blasters.push(Blaster::new(socket, peer, options)?);
    }
    if let Some(threads) = options.threads {
        if threads > cpus.len() {
            announce(&text::netblast_few_cores(threads, cpus.len()), options)?;
        }
        let duration = options.duration_seconds;
        announce(
            &text::netblast_threads(threads, options.port, duration),
            options,
        )?;
    }
    let test = SenderState::new(NetrateTool::Netblast, options, peer, open_account)?;
    let (mut documents, mut rates, mut status) = (Vec::new(), Vec::new(), 0);
    for _ in 0..options.repeat.unwrap_or(1) {
        let run = test.run(|test| blast_once(test, &mut blasters, &cpus))?;
        let rate = run.sent.count.successes() as f64 / run.sent.elapsed.as_secs_f64();
        let is_whole = run.error.is_none() && !test.is_cut_short();
        rates.push(is_whole.then_some(rate));
        let over = test.span(run.sent.elapsed);
        let lines = || text::netblast(&run.sent, over, options, peer.is_ipv6());
        status = status.max(test.tell(&run, lines)?);
        if options.json {
            documents.push(Netblast {
                head: head(NETBLAST_SCHEMA),
                sender: test.sender(&run),
                threads: blasters.len(),
                datagrams_per_system_call: blasters[0].datagrams_per_system_call(),
                host: run.host,
            });
        }
        if test.is_cut_short() {
            break;
        }
    }
    let outcome = options.repeat.map(|asked| RepeatedRuns::of(asked, rates));
    match (outcome, documents.pop()) {
        (None, None) => {}
        (None, Some(document)) => print_document(&document)?,
        (Some(outcome), None) => {
            if let Some(line) = outcome.line(|rate| format!("{rate:.0} packets/s")) {
                print(&format!("\n{line}\n"))?;
            }
        }
        (Some(outcome), Some(last)) => print_document(&NetblastRuns {
            head: head(NETBLAST_RUNS_SCHEMA),
            runs: documents.into_iter().chain([last]).collect(),
            summary: outcome.summary_of(RateUnit::PacketsPerSecond),
        })?,
    }
    Ok(status)
}

fn blast_once(
    test: &SenderState<'_>,
    blasters: &mut [Blaster],
    cpus: &[u32],
) -> io::Result<(Sent, Reach)> {
    let (start, began) = (since_1970(), Instant::now());
    let duration = Duration::from_secs(test.options.duration_seconds);
    let deadline = began.checked_add(duration).filter(|_| !duration.is_zero());
    let progress = blasters.iter_mut().map(Blaster::progress).collect();
    let is_pinned = test.options.threads.is_some();
    let senders = blasters.iter_mut().zip(cpus.iter().cycle());
    let senders = senders.map(|(blaster, &cpu)| {
        move |signals: &Signals| {
            // As in the original, a thread that cannot be pinned still sends.
            if is_pinned && let Err(error) = schedule::pin(cpu) {
                tell!("unable to set thread affinity: {error}");
            }
            blaster.run(signals)
        }
    });
    let (counts, reach) = test.watch(deadline, progress, senders)?;
    let mut sent = Sent {
        start,
        finish: since_1970(),
        elapsed: began.elapsed(),
        ..Sent::default()
    };
    counts.iter().for_each(|count| sent.count.add(count));
    Ok((sent, reach))
}

/// netsend: one thread that sends by the clock.
pub fn paced(options: &NetrateOptions, open_account: OpenAccount<'_>) -> Result<u8, ToolFailure> {
    let addresses = resolve(&options.host, options.port).unwrap_or_default();
    let Some(&peer) = addresses.first() else {
        let words = format!("Couldn't resolv {}", options.host);
        return Err(ToolFailure::Because(words));
    };
    let schedule = SendSchedule::of_rate(options.rate);
    let duration = options.duration_seconds;
    announce(
        &text::netsend(options.payload_bytes, schedule.interval_ns, duration),
        options,
    )?;
    if let Some(resolution) = schedule.finer_than_clock() {
        print_error(text::netsend_coarse_clock(schedule.interval_ns, resolution));
    }
    print_error(text::netsend_looks(schedule.datagrams_a_look));
    let mut sender = PacedSender::new(peer, options)?;
    let test = SenderState::new(NetrateTool::Netsend, options, peer, open_account)?;
    let run = test.run(|test| {
        let progress = vec![sender.progress()];
        let senders = [|signals: &Signals| sender.run(signals)];
        let (mut sent, reach) = test.watch(None, progress, senders.into_iter())?;
        Ok((sent.pop().unwrap_or_default(), reach))
    })?;
    let over = test.span(run.sent.elapsed);
    let status = test.tell(&run, || text::netsend_summary(&run.sent, over))?;
    if options.json {
        print_document(&Netsend {
            head: head(NETSEND_SCHEMA),
            sender: test.sender(&run),
            port_max: options.port_max,
            asked_packets_per_second: options.rate.and_then(Rate::whole_per_second),
            interval_ns: options.rate.map(|_| schedule.interval_ns),
            clock_looks_in_vain: run.sent.waited,
            host: run.host,
        })?;
    }
    Ok(status)
}

/// Resolves a host, in the resolver's order; the error is in the resolver's words.
fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, ToolFailure> {
    let addresses = (host, port).to_socket_addrs();
    let addresses = addresses.map_err(|error| {
        let words = kernel_words(&error);
        // The standard library prefixes the resolver's message.
        ToolFailure::Because(String::from(words.rsplit(": ").next().unwrap_or(&words)))
    })?;
    Ok(addresses.collect())
}

/// The common state of senders, from the moment that signals are caught.
struct SenderState<'a> {
    tool: NetrateTool,
    options: &'a NetrateOptions,
    peer: SocketAddr,
    open_account: OpenAccount<'a>,
    stop: Stop,
}

/// The outcome of a run.
struct SendOutcome {
    sent: Sent,
    /// How it fell short, and why.
    error: Option<String>,
    host: Option<HostDelta>,
}

impl<'a> SenderState<'a> {
    fn new(
        tool: NetrateTool,
        options: &'a NetrateOptions,
        peer: SocketAddr,
        open_account: OpenAccount<'a>,
    ) -> io::Result<Self> {
        Ok(SenderState {
            tool,
            options,
            peer,
            open_account,
            stop: Stop::on_signals()?,
        })
    }

    /// Sends while the account of this host is open.
    fn run(
        &self,
        send: impl FnOnce(&Self) -> io::Result<(Sent, Reach)>,
    ) -> io::Result<SendOutcome> {
        let account = (self.open_account)();
        let (sent, reach) = send(self)?;
        Ok(SendOutcome {
            host: account.and_then(|close| close()),
            error: sent
                .count
                .closed_of(self.peer.port()..=self.options.port_max)
                .or_else(|| reach.shortfall(&sent.count)),
            sent,
        })
    }

    /// Runs senders, one per thread, until the deadline, a signal, or their end.
    fn watch<T: Send>(
        &self,
        deadline: Option<Instant>,
        progress: Vec<Arc<SendProgress>>,
        senders: impl Iterator<Item = impl FnOnce(&Signals) -> T + Send>,
    ) -> io::Result<(Vec<T>, Reach)> {
        let signals = Signals::default();
        let mut reach = Reach::new(progress);
        let name = format!("nicpoll-{}", self.tool.name());
        thread::scope(|scope| {
            let threads = senders.map(|send| {
                let named = thread::Builder::new().name(name.clone());
                let signals = &signals;
                named.spawn_scoped(scope, move || send(signals))
            });
            let threads: io::Result<Vec<_>> = threads.collect();
            while let Ok(threads) = &threads {
                let left = deadline.map(|it| it.saturating_duration_since(Instant::now()));
                if left == Some(Duration::ZERO) || self.is_cut_short() {
                    break;
                }
                reach.look();
                if threads.iter().all(|thread| thread.is_finished()) {
                    break;
                }
                thread::sleep(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)));
            }
            signals.finish.store(true, Ordering::Relaxed);
            let ended = threads?.into_iter().map(|thread| match thread.join() {
                Ok(sent) => sent,
                Err(panic) => resume_unwind(panic),
            });
            Ok((ended.collect(), reach))
        })
    }

    /// Whether a signal ended the test; the signal's sender knows what was obtained.
    fn is_cut_short(&self) -> bool {
        self.stop.signal().is_some()
    }

    /// The time that rates are divided by: the requested one, unless there was none or a signal ended the test.
    fn span(&self, elapsed: Duration) -> Duration {
        match self.options.duration_seconds {
            asked @ 1.. if !self.is_cut_short() => Duration::from_secs(asked),
            _ => elapsed,
        }
    }

    /// Prints a run's lines (unless a document has them) and its error. Returns the exit status.
    fn tell(&self, run: &SendOutcome, lines: impl FnOnce() -> String) -> io::Result<u8> {
        if !self.options.json {
            print(&lines())?;
            let lost = run.host.as_ref();
            let lost = lost.map(|host| losses::only_losses(host, &[Way::Out]));
            print_error(lost.unwrap_or_default());
        }
        let Some(error) = &run.error else {
            return Ok(0);
        };
        tell!("nicpoll {}: {error}", self.tool.name());
        Ok(if self.is_cut_short() { 0 } else { EXIT_SHORT })
    }

    /// The fields common to both senders' documents. Rates are over the actual sending time.
    fn sender(&self, run: &SendOutcome) -> NetrateSender {
        let (options, peer, count) = (self.options, self.peer, &run.sent.count);
        let seconds = run.sent.elapsed.as_secs_f64();
        let per_second = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
        let sent = per_second(count.successes());
        let frame_bits = text::frame_bits_per_second(1, options.payload_bytes, peer.is_ipv6());
        let errors = count.errors_by_number.iter();
        let errors = errors.map(|&(errno, send_calls)| SendErrors {
            errno,
            text: words_of(errno),
            send_calls,
        });
        NetrateSender {
            side: Side::Sender,
            peer_address: peer.ip().to_string(),
            peer_port: peer.port(),
            payload_bytes: options.payload_bytes,
            asked_duration_seconds: Some(options.duration_seconds).filter(|asked| *asked > 0),
            is_blocking: options.is_blocking,
            started_at: time_of_day(run.sent.start),
            elapsed_seconds: seconds,
            ended_by_signal: self.stop.signal(),
            error: run.error.clone(),
            send_calls: count.calls,
            send_errors: count.errors,
            send_successes: count.successes(),
            send_errors_by_errno: errors.collect(),
            error_ratio: (count.calls > 0).then(|| count.errors as f64 / count.calls as f64),
            system_calls: count.system_calls,
            send_calls_per_second: per_second(count.calls),
            sent_packets_per_second: sent,
            sent_payload_bits_per_second: sent
                .map(|rate| rate * 8.0 * options.payload_bytes as f64),
            sent_frame_bits_per_second: sent.map(|rate| rate * frame_bits as f64),
        }
    }
}
