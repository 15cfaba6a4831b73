//! `nicpoll iperf`: the iperf 2 command, letter for letter.

mod client;
mod enhanced;
mod events;
mod json;
mod output;
mod printer;
mod server;
mod settings;
mod sum;
mod total;
mod ways;

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nicpoll_sys::daemon::{self, Detached, Starting};
use nicpoll_traffic::Signals;
use nicpoll_traffic::iperf::options::{self, Common, Options, help_text, parse};
use nicpoll_traffic::iperf::text::{self, Format, Receipt, StreamId, Style};
use nicpoll_traffic::iperf::{tcp, udp};

use crate::stop::on_signal;
use printer::Manner;
use total::{Detail, Total};

/// What the original ends with after a usage error, help or version.
const EXIT_USAGE: u8 = 1;
/// What a server in the background failed with.
const EXIT_FAILED: u8 = 1;

/// Runs the command and returns its exit status.
pub fn run(args: &[String]) -> io::Result<u8> {
    let options = match parse(args.iter().cloned(), |name| std::env::var(name).ok()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return Ok(EXIT_USAGE);
        }
    };
    let signals = Arc::new(Signals::default());
    match &options {
        Options::Help => {
            eprint!("{}", help_text());
            Ok(EXIT_USAGE)
        }
        Options::Version => {
            eprintln!(
                "nicpoll {} as {}",
                env!("CARGO_PKG_VERSION"),
                text::version(Style::V2_1)
            );
            Ok(EXIT_USAGE)
        }
        Options::Client(options) => {
            warn(&options.common);
            on_signal(&signals, end)?;
            client::run(options, &signals)
        }
        Options::Server(options) => {
            warn(&options.common);
            // Before there is another thread.
            let daemon = match options.daemon.then(daemon::detach).transpose()? {
                None => None,
                Some(Detached::Background(daemon)) => Some(daemon),
                Some(Detached::Foreground(starting)) => return told(starting),
            };
            on_signal(&signals, end)?;
            server::run(options, &signals, daemon)
        }
    }
}

/// What the process that was called says of the one in the background, and its exit status. What went
/// wrong there has been said.
fn told(starting: Starting) -> io::Result<u8> {
    if !starting.is_up()? {
        return Ok(EXIT_FAILED);
    }
    eprintln!("Running Iperf Server as a daemon");
    Ok(0)
}

fn warn(common: &Common) {
    for warning in &common.warnings {
        eprintln!("{warning}");
    }
}

/// Has streams end, whichever way they go, so that what was measured until then is still told.
fn end(signals: &Signals) {
    signals.finish.store(true, Ordering::Relaxed);
    signals.sender_done.store(true, Ordering::Release);
}

fn manner(common: &Common) -> Manner {
    Manner {
        format: Format {
            style: common.style,
            letter: common.format,
        },
        csv: common.csv,
        enhanced: common.enhanced,
        print_mss: common.print_mss,
        exclude: common.exclude,
        interval_seconds: common.interval.map(|interval| interval.as_secs_f64()),
        is_client: false,
    }
}

fn open_output(common: &Common) -> io::Result<Box<dyn Write + Send>> {
    Ok(match &common.output {
        Some(path) => {
            File::create(path)?;
            // A daemon's errors go to the same file, and neither may write over the other.
            Box::new(File::options().append(true).open(path)?)
        }
        None => Box::new(io::stdout()),
    })
}

/// Gaps and delays are recorded for those who are shown them.
fn records_times(common: &Common) -> bool {
    common.enhanced || common.json.is_some()
}

/// Microseconds from one datagram to the next at the rate asked for.
fn banner_time(rate: Option<options::Rate>, payload_bytes: usize) -> f64 {
    match rate {
        Some(options::Rate::BitsPerSecond(rate)) if rate > 0 => {
            8e6 * payload_bytes as f64 / rate as f64
        }
        Some(options::Rate::PacketsPerSecond(rate)) if rate > 0.0 => 1e6 / rate,
        _ => 0.0,
    }
}

/// What a sender of TCP came to. 2.1 tells the time until the receiver had read everything, 2.0 that of
/// the writing.
fn sent(style: Style, report: &tcp::SendReport) -> Total {
    let seconds = match style {
        Style::V2_1 => report.seconds_to_close.unwrap_or(report.seconds),
        Style::V2_0 => report.seconds,
    };
    Total::of(
        seconds,
        Detail {
            close_seconds: report.seconds_to_close,
            ..Detail::of(report.whole, report.send_buffer)
        },
    )
}

/// What a sender of datagrams came to.
fn sent_datagrams(
    common: &Common,
    number: u32,
    is_answered: bool,
    report: udp::SendReport,
) -> Total {
    if is_answered && report.fin_acks_received == 0 {
        let id = StreamId {
            number: number + 1,
            is_reversed: false,
        };
        let tries = report.fins_sent.try_into().unwrap_or(u32::MAX);
        eprintln!("{}", text::no_acknowledgement(common.style, id, tries));
    }
    Total {
        sent_datagrams: Some(report.datagrams_sent),
        server_report: report.server_report,
        ..Total::of(
            report.seconds,
            Detail {
                gaps: report.gaps,
                ..Detail::of(report.whole, report.send_buffer)
            },
        )
    }
}

/// What a receiver of datagrams came to.
fn received(report: udp::ReceiveReport) -> Total {
    let seconds = report.seconds_to_fin.unwrap_or(report.seconds);
    Total {
        receipt: Some(Receipt {
            jitter_ms: 1e3 * report.jitter_seconds.unwrap_or(0.0),
            lost: report.lost as i64,
            total: report.datagrams_expected,
            out_of_order: report.out_of_order,
        }),
        ..Total::of(
            seconds,
            Detail {
                gaps: report.gaps,
                one_way_delays: report.one_way_delays,
                ..Detail::of(report.whole, report.receive_buffer)
            },
        )
    }
}
