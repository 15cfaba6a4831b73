//! netsend: one thread that sends by the clock.

use std::thread;
use std::time::Duration;

use nicpoll_model::Rate;
use nicpoll_model::traffic::{NETSEND_SCHEMA, Netsend};
use nicpoll_sys::stdio;

use crate::netrate::command::common::{
    self, Program, Reach, Refused, ToolEnded, announce, ended, resolve, say_error, say_losses,
    span, watch,
};
use crate::netrate::options::{SendOptions, Tool};
use crate::netrate::send::{PacedConfig, PacedSender, Schedule, Sent};
use crate::netrate::text::{self, SentSummary};
use crate::signals::Signals;
use nicpoll_sys::stdio::print;

/// Sends, and tells what came of it.
pub fn run(options: &SendOptions, program: &mut dyn Program) -> Result<ToolEnded, Refused> {
    let addresses = resolve(&options.host, options.port).unwrap_or_default();
    let Some(&peer) = addresses.first() else {
        let words = format!("Couldn't resolv {}", options.host);
        return Err(Refused::Because(words));
    };
    let schedule = Schedule::of_rate(options.rate);
    let duration = options.duration_seconds;
    let line = text::netsend(options.payload_bytes, schedule.interval_ns, duration);
    announce(&line, options.json)?;
    if let Some(resolution) = schedule.finer_than_clock() {
        stdio::print_error(text::netsend_coarse_clock(schedule.interval_ns, resolution));
    }
    stdio::print_error(text::netsend_looks(schedule.datagrams_a_look));
    let sender = PacedSender::new(PacedConfig {
        peer,
        port_max: options.port_max,
        payload_bytes: options.payload_bytes,
        schedule,
        duration: Duration::from_secs(duration),
        is_blocking: options.is_blocking,
    })?;
    program.catch_signals()?;
    let account = program.open_account();
    let (sent, reach) = send(sender, program)?;
    let host = account.and_then(|close| close());
    let error = reach.shortfall(&sent.count);
    let elapsed = sent.finish.saturating_sub(sent.start);
    let summary = SentSummary {
        start: sent.start,
        finish: sent.finish,
        span: span(duration, elapsed, program),
        send_calls: sent.count.calls,
        send_errors: sent.count.errors,
        batch_datagrams: None,
    };
    if !options.json {
        print(&text::netsend_summary(&summary, sent.waited))?;
        say_losses(host.as_ref());
        return Ok(ended(Tool::Netsend, error.as_deref()));
    }
    say_error(Tool::Netsend, error.as_deref());
    let plan = common::Plan {
        peer,
        payload_bytes: options.payload_bytes,
        duration_seconds: duration,
        is_blocking: options.is_blocking,
    };
    let object = Netsend {
        head: common::head(NETSEND_SCHEMA),
        sender: common::sender(
            plan,
            &summary,
            &sent.count,
            elapsed,
            program.signal(),
            error,
        ),
        port_max: options.port_max,
        asked_packets_per_second: options.rate.and_then(Rate::whole_per_second),
        interval_ns: options.rate.map(|_| schedule.interval_ns),
        clock_looks_in_vain: sent.waited,
        host,
    };
    Ok(ToolEnded::Netsend(Box::new(object)))
}

fn send(mut sender: PacedSender, program: &dyn Program) -> Result<(Sent, Reach), Refused> {
    let signals = Signals::default();
    let mut reach = Reach::new(vec![sender.progress()]);
    thread::scope(|scope| {
        let sending = thread::Builder::new().name(String::from("nicpoll-netsend"));
        let thread = sending.spawn_scoped(scope, || sender.run(&signals))?;
        watch(None, program, &signals, || {
            reach.look();
            thread.is_finished()
        });
        match thread.join() {
            Ok(sent) => Ok((sent, reach)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
