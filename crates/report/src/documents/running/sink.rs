//! What a sink received, as text, line by line as it runs.

use std::fmt::Write;

use nicpoll_model::engine::{
    KernelSideFacts, SINK_SCHEMA, SinkCheck, SinkCounts, SinkEnd, SinkFates, SinkInterval,
    SinkStart, SinkVariable,
};
use nicpoll_model::numbers::{MISSING, count, counted, duration_text, per_second};

use super::rr::percentiles;
use super::stream::{PageTexts, amount, list, of_the_link};

/// How its parts read.
pub const SINK_TEXTS: PageTexts<SinkStart, SinkInterval, SinkEnd> = PageTexts {
    schema: SINK_SCHEMA,
    start: render_sink_start,
    interval: render_sink_interval,
    end: render_sink_end,
};

/// What is received and how, and the names of the columns.
fn render_sink_start(start: &SinkStart) -> String {
    let taken = match &start.udp_ports {
        None => String::from("all UDP"),
        Some(ports) => format!("UDP to port {}", list(ports)),
    };
    let device = device(&start.device);
    let mut text = format!(
        "{}: taking {taken}; {}\n{}\n",
        start.interface,
        device.others,
        (device.line)(start)
    );
    for refused in &start.refused_devices {
        let _ = writeln!(text, "Not by {}: {}", refused.device, refused.why);
    }
    let how = match start.discipline.as_str() {
        "polling" => format!(
            "polling at {} Hz, controller {}",
            start.hz, start.controller
        ),
        "adaptive" => format!(
            "adaptive: interrupts, or polling at {} Hz, controller {}",
            start.hz, start.controller
        ),
        "interrupt" if start.storm_threshold_passes > 0 => {
            format!(
                "interrupt, throttled after {} passes",
                start.storm_threshold_passes
            )
        }
        other => String::from(other),
    };
    let scheduling = match start.scheduling.as_str() {
        "fifo" => "before ordinary programs (SCHED_FIFO)",
        _ => "as an ordinary program",
    };
    let _ = writeln!(text, "{how}, on CPU {}, {scheduling}", list(&start.cpus));
    if device.has_kernel_before_it {
        text.push_str(&kernel_side(&start.kernel_side));
    }
    text.push_str(&other_changes(start));
    if start.work_ns > 0 {
        let _ = writeln!(
            text,
            "{} of work on each packet",
            duration_text(start.work_ns)
        );
    }
    text.push_str(&columns());
    text
}

/// The names of an interval's columns.
fn columns() -> String {
    format!(
        "\n{:>8} {:>12} {:>10} {:>10} {:>10} {:>10} {:>9} {:>6} {:>6} {:>10}\n",
        "seconds",
        "packets/s",
        "Mbit/s",
        "ring full",
        "no memory",
        "polls/s",
        "wake-ups",
        "CPU %",
        "burst",
        "lost polls"
    )
}

/// What else changes while it runs.
fn other_changes(start: &SinkStart) -> String {
    let mut text = String::new();
    if !start.other_end_changes.is_empty() {
        let _ = writeln!(
            text,
            "Linux changes the other end of this veth while the XDP program is here: {}",
            start.other_end_changes.join(", ")
        );
    }
    if let Some(why) = &start.knobs_refused {
        let _ = writeln!(text, "'nicpoll sysctl' cannot reach this sink: {why}");
    }
    text
}

/// What the kernel does for arrivals.
fn kernel_side(side: &KernelSideFacts) -> String {
    let what = match side.name.as_str() {
        "threaded" => format!(
            "User-side polling only: kernel threads receive each arrival, on CPU {}.",
            list(&side.thread_cpus)
        ),
        "polling" => String::from("The kernel's side polls, too: a timer begins its rounds."),
        _ => String::from("User-side polling only: the kernel's NAPI still runs for each arrival."),
    };
    match side.changes.is_empty() {
        true => format!("{what}\n"),
        false => format!(
            "{what}\nChanged for that, and put back at the end: {}\n",
            side.changes.join(", ")
        ),
    }
}

/// What a device means for the packets.
struct Device {
    name: &'static str,
    /// What becomes of those that were not asked for.
    others: &'static str,
    /// How those come that were.
    line: fn(&SinkStart) -> String,
    /// Whether the kernel receives them first.
    has_kernel_before_it: bool,
}

const DEVICES: [Device; 3] = [
    Device {
        name: "af-xdp",
        others: "everything else goes to the kernel",
        line: af_xdp,
        has_kernel_before_it: true,
    },
    Device {
        name: "af-packet",
        others: "the kernel has all packets, too",
        line: |_| {
            String::from(
                "AF_PACKET, a tap: it gets a copy of each packet, and the kernel goes on with its own",
            )
        },
        has_kernel_before_it: true,
    },
    Device {
        name: "tap",
        others: "anything else ends here",
        line: |start| {
            let interface = &start.interface;
            format!("TAP: what this host sends through {interface} ends here")
        },
        has_kernel_before_it: false,
    },
];

/// The device of a name, or the first for one that another version wrote.
fn device(name: &str) -> &'static Device {
    let mut devices = DEVICES.iter();
    devices
        .find(|device| device.name == name)
        .unwrap_or(&DEVICES[0])
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

/// An interval as one line.
fn render_sink_interval(interval: &SinkInterval) -> String {
    let seconds = interval.end_seconds - interval.start_seconds;
    let (counts, polling) = (&interval.counts, &interval.polling);
    line(interval.end_seconds, seconds, counts, polling)
}

fn line(end_seconds: f64, seconds: f64, counts: &SinkCounts, polling: &[SinkVariable]) -> String {
    let knob = |name: &str| value_of(polling, name).map_or(String::from(MISSING), count);
    format!(
        "{end_seconds:>8.1} {:>12} {:>10} {:>10} {:>10} {:>10} {:>9} {:>6} {:>6} {:>10}\n",
        per_second(counts.received_packets as f64, seconds),
        per_second(counts.received_bytes as f64 * 8.0 / 1e6, seconds),
        count(counts.ring_full_packets),
        count(counts.no_memory_packets),
        per_second(counts.polls as f64, seconds),
        count(counts.wake_up_events),
        per_second(counts.cpu_ns as f64 / 1e7, seconds),
        knob("burst"),
        knob("lost_polls"),
    )
}

fn value_of(polling: &[SinkVariable], name: &str) -> Option<u32> {
    let mut variables = polling.iter();
    let variable = variables.find(|variable| variable.name == name);
    variable.map(|variable| variable.value)
}

/// What it came to.
fn render_sink_end(end: &SinkEnd) -> String {
    let account = &end.account;
    let mut text = String::from("\nall of it\n");
    text.push_str(&line(
        end.duration_seconds,
        end.duration_seconds,
        &end.totals,
        &end.polling,
    ));
    let fates = &account.fates;
    text.push('\n');
    text += &amount(fates.taken_packets, "packets taken for the sink");
    for (packets, what) in [
        (account.received_packets, "received"),
        (
            account.ring_full_packets,
            "lost: the socket's ring was full",
        ),
        (
            account.no_memory_packets,
            "lost: no memory was free, since the program did not keep up, or the frame was too long",
        ),
        (account.waiting_packets, "still in the ring at the end"),
    ] {
        text += &amount(packets, what);
    }
    text += &amount(account.residual_packets, "unaccounted for");
    text.push_str(&left_to_the_kernel(fates));
    if let Some(check) = &end.check {
        text.push_str(&check_lines(check));
    }
    text.push_str(&of_the_interface(end));
    text.push_str(&other_counts(end));
    if let Some(hint) = ceiling(end) {
        let _ = writeln!(text, "\n{hint}");
    }
    text
}

/// What was not taken.
fn left_to_the_kernel(fates: &SinkFates) -> String {
    let mut text = String::new();
    if let Some(passed) = fates.passed_packets {
        text += &amount(passed, "other packets, not asked for");
    }
    for (packets, why) in [
        (fates.without_socket_packets, "their queue had no socket"),
        (
            fates.too_long_packets,
            "longer than the memory for a frame, since the MTU was raised",
        ),
    ] {
        if packets > 0 {
            let what = format!("asked for, but left to the kernel: {why}");
            text += &amount(packets, &what);
        }
    }
    text
}

/// What became of the interface, and of the one at the other end.
fn of_the_interface(end: &SinkEnd) -> String {
    let events = &end.events;
    let mut text = of_the_link("The interface", events.link_loss_events, events.mtu_changes);
    if !end.other_end_left.is_empty() {
        let _ = writeln!(
            text,
            "Not put back at the other end of this veth: {}",
            end.other_end_left.join(", ")
        );
    }
    text
}

/// What busy polling by the kernel came to.
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

/// What else was counted, and the knobs.
fn other_counts(end: &SinkEnd) -> String {
    let mut text = String::new();
    if end.totals.throttled_passes > 0 {
        let _ = writeln!(
            text,
            "An interrupt storm was throttled {} times, until the next tick each.",
            count(end.totals.throttled_passes)
        );
    }
    if let Some(outcome) = &end.kernel_busy_poll {
        let _ = writeln!(text, "{}", kernel_busy_poll(outcome));
    }
    if let Some(kernel_ns) = end.totals.kernel_ns {
        let _ = writeln!(
            text,
            "The kernel's receive work took {} of the same CPUs between cycles, which was charged to polling.",
            duration_text(kernel_ns)
        );
    }
    text.push('\n');
    for variable in &end.polling {
        let _ = writeln!(text, "kern.polling.{}: {}", variable.name, variable.value);
    }
    for of_cpu in end
        .polling_by_cpu
        .iter()
        .filter(|_| end.polling_by_cpu.len() > 1)
    {
        for variable in &of_cpu.polling {
            let (name, value) = (&variable.name, variable.value);
            let _ = writeln!(text, "kern.polling.cpu{}.{name}: {value}", of_cpu.cpu);
        }
    }
    text
}

/// What the numbers in the packets say.
fn check_lines(check: &SinkCheck) -> String {
    let streams = if check.streams == 1 {
        "stream"
    } else {
        "streams"
    };
    let what = format!(
        "packets with a number ({}), in {} {streams}",
        check.by,
        count(check.streams)
    );
    let mut text = format!("\n{}", amount(check.numbered_packets, &what));
    for (packets, what) in [
        (check.lost_packets, "did not come"),
        (check.duplicate_packets, "came twice"),
        (check.late_packets, "came after a later one"),
        (check.unnumbered_packets, "without a number"),
        (
            check.unfollowed_packets,
            "of more streams than can be told apart",
        ),
    ] {
        text += &amount(packets, what);
    }
    if let Some(latency) = &check.latency {
        let _ = writeln!(text, "One-way latency: {}", percentiles(latency));
    }
    text
}

/// Why packets were lost although there was time: the burst stood at its maximum.
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
