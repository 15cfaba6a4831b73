//! The text output of `sink`, line by line.

use std::fmt::Write;

use nicpoll_model::engine::{
    KernelSideFacts, SINK_SCHEMA, SinkCheck, SinkEnd, SinkInterval, SinkStart, SinkVariable,
};
use nicpoll_model::numbers::{MISSING, count, counted, per_second};

use super::rr::PERCENTILES;
use super::stream::{IntervalColumn, PageTexts, heads, line, lines, of_the_link, variables};
use crate::fields::{filled, stated};

/// Texts of its parts.
pub const SINK_TEXTS: PageTexts<SinkStart, SinkInterval, SinkEnd> = PageTexts {
    schema: SINK_SCHEMA,
    start: render_sink_start,
    interval: render_sink_interval,
    end: render_sink_end,
};

/// Renders what is received and how, and the columns' names.
fn render_sink_start(start: &SinkStart) -> String {
    let taken = match start.udp_ports {
        None => "all UDP",
        Some(_) => "UDP to port {udp_ports:raw}",
    };
    // The fate of other packets, and the device of those that are taken.
    let (others, device) = match start.device.as_str() {
        "af-packet" => (
            "the kernel has all packets, too",
            "AF_PACKET, a tap: it gets a copy of each packet, and the kernel goes on with its own",
        ),
        "tap" => (
            "anything else ends here",
            "TAP: what this host sends through {interface} ends here",
        ),
        _ => ("everything else goes to the kernel", &*af_xdp(start)),
    };
    let how = match start.discipline.as_str() {
        "polling" => "polling at {hz:raw} Hz, controller {controller}",
        "adaptive" => "adaptive: interrupts, or polling at {hz:raw} Hz, controller {controller}",
        "interrupt" if start.storm_threshold_passes > 0 => {
            "interrupt, throttled after {storm_threshold_passes:raw} passes"
        }
        _ => "{discipline}",
    };
    let scheduling = match start.scheduling.as_str() {
        "fifo" => "before ordinary programs (SCHED_FIFO)",
        _ => "as an ordinary program",
    };
    let head = format!("{{interface}}: taking {taken}; {others}\n{device}\n");
    let mut text = filled(&head, start);
    for refused in &start.refused_devices {
        text += &filled("Not by {device}: {why}\n", refused);
    }
    text += &filled(
        &format!("{how}, on CPU {{cpus:raw}}, {scheduling}\n"),
        start,
    );
    if start.device != "tap" {
        text += &kernel_side(&start.kernel_side);
    }
    text + &lines("sink start", start) + &heads(&COLUMNS)
}

fn af_xdp(start: &SinkStart) -> String {
    let copies = match start.is_zero_copy {
        true => "zero-copy",
        false => "copy mode",
    };
    let runs = match start.program_mode.as_deref() {
        Some("generic") => "in the kernel's generic code, which is slower: the driver runs none",
        _ => "in the driver",
    };
    let queues = counted(start.queues, "queue");
    format!("AF_XDP, {copies}, {queues}, XDP program {runs}")
}

/// Returns how the kernel receives.
fn kernel_side(side: &KernelSideFacts) -> String {
    let what = match side.name.as_str() {
        "threaded" => {
            "User-side polling only: kernel threads receive each arrival, on CPU {thread_cpus:raw}.\n"
        }
        "polling" => "The kernel's side polls, too: a timer begins its rounds.\n",
        _ => "User-side polling only: the kernel's NAPI still runs for each arrival.\n",
    };
    let changes = "Changed for that, and put back at the end: {changes}\n";
    filled(what, side) + &stated(side, &[changes]).concat()
}

const COLUMNS: [IntervalColumn<SinkInterval>; 9] = [
    ("packets/s", 12, |it, seconds| {
        per_second(it.counts.received_packets as f64, seconds)
    }),
    ("Mbit/s", 10, |it, seconds| {
        per_second(it.counts.received_bytes as f64 * 8.0 / 1e6, seconds)
    }),
    ("ring full", 10, |it, _| count(it.counts.ring_full_packets)),
    ("no memory", 10, |it, _| count(it.counts.no_memory_packets)),
    ("polls/s", 10, |it, seconds| {
        per_second(it.counts.polls as f64, seconds)
    }),
    ("wake-ups", 9, |it, _| count(it.counts.wake_up_events)),
    ("CPU %", 6, |it, seconds| {
        per_second(it.counts.cpu_ns as f64 / 1e7, seconds)
    }),
    ("burst", 6, |it, _| knob(&it.polling, "burst")),
    ("lost polls", 10, |it, _| knob(&it.polling, "lost_polls")),
];

fn render_sink_interval(interval: &SinkInterval) -> String {
    let ends = [interval.start_seconds, interval.end_seconds];
    line(&COLUMNS, interval, ends)
}

fn knob(polling: &[SinkVariable], name: &str) -> String {
    value_of(polling, name).map_or(String::from(MISSING), count)
}

fn value_of(polling: &[SinkVariable], name: &str) -> Option<u32> {
    let mut variables = polling.iter();
    let variable = variables.find(|variable| variable.name == name);
    variable.map(|variable| variable.value)
}

/// Renders the final account.
fn render_sink_end(end: &SinkEnd) -> String {
    let account = &end.account;
    let mut text = String::from("\nall of it\n");
    text += &render_sink_interval(&SinkInterval {
        start_seconds: 0.0,
        end_seconds: end.duration_seconds,
        counts: end.totals,
        fates: account.fates,
        events: end.events,
        polling: end.polling.clone(),
    });
    text.push('\n');
    text += &lines("sink account", account);
    if let Some(check) = &end.check {
        text += &check_lines(check);
    }
    let events = &end.events;
    text += &of_the_link("The interface", events.link_loss_events, events.mtu_changes);
    text += &other_counts(end);
    if let Some(hint) = ceiling(end) {
        let _ = writeln!(text, "\n{hint}");
    }
    text
}

/// Returns the outcome of busy polling by the kernel.
fn kernel_busy_poll(outcome: &str) -> &'static str {
    match outcome {
        "acts" => "The kernel's NAPI ran in the sink's own polls (SO_PREFER_BUSY_POLL).",
        "refused" => {
            "The kernel refused busy polling of its own (SO_PREFER_BUSY_POLL): it takes CAP_NET_ADMIN."
        }
        _ => {
            "Busy polling by the kernel (SO_PREFER_BUSY_POLL) was asked for and had no effect: the kernel told the socket \
             no NAPI, as on a veth."
        }
    }
}

/// Renders other counters, and the knobs.
fn other_counts(end: &SinkEnd) -> String {
    let mut text = lines("sink events", end);
    if let Some(outcome) = &end.kernel_busy_poll {
        let _ = writeln!(text, "{}", kernel_busy_poll(outcome));
    }
    text += &lines("sink kernel", end);
    text.push('\n');
    text += &variables("", &end.polling);
    if end.polling_by_cpu.len() > 1 {
        let each = end.polling_by_cpu.iter();
        text.extend(each.map(|it| variables(&format!("cpu{}.", it.cpu), &it.polling)));
    }
    text
}

/// Renders the check of the numbers in the packets.
fn check_lines(check: &SinkCheck) -> String {
    let mut text = lines("sink check", check);
    if let Some(latency) = &check.latency {
        text += &format!("One-way latency: {}\n", filled(PERCENTILES, latency));
    }
    text
}

/// Returns a sentence if packets were lost at the maximum burst, although there was time.
fn ceiling(end: &SinkEnd) -> Option<String> {
    let value = |name: &str| value_of(&end.polling, name);
    let burst_max = value("burst_max")?;
    let lost = end.account.ring_full_packets + end.account.no_memory_packets;
    let is_polled = value("handlers")? > 0;
    (is_polled && lost > 0 && value("burst")? == burst_max).then(|| {
        format!(
            "The burst stood at burst_max: {burst_max} packets a tick were the most. '--set burst_max=N' raises that, \
             up to 20000."
        )
    })
}
