//! The tools' output lines, as pure functions of the figures.
//!
//! Every line matches the original's columns. Rates and ratios are integer divisions, as in the originals:
//! `approx error rate` is 0 unless every send failed.

use std::time::Duration;

use crate::netrate::options::{NetrateOptions, NetrateStyle};
use crate::netrate::sending::{BATCH_DATAGRAMS_MAX, Sent};

/// Frame headers without payload: UDP, IPv4 or IPv6, Ethernet without FCS.
const HEADER_BYTES: [u64; 2] = [8 + 20 + 14, 8 + 40 + 14];

/// Count per second, truncated. The originals divide by the requested whole seconds.
pub fn per_second(count: u64, over: Duration) -> u64 {
    let rate = (u128::from(count) * 1_000_000_000).checked_div(over.as_nanos());
    rate.map_or(0, |rate| u64::try_from(rate).unwrap_or(u64::MAX))
}

/// Bit/s of Ethernet frames without FCS, with one datagram per frame.
pub fn frame_bits_per_second(packets_per_second: u64, payload_bytes: usize, is_ipv6: bool) -> u64 {
    let frame_bytes = payload_bytes as u64 + HEADER_BYTES[usize::from(is_ipv6)];
    packets_per_second.saturating_mul(frame_bytes * 8)
}

/// netblast's last lines, with rates over `over`. Its Mib/s is 10^6 bit/s. Figures of batched datagrams say so.
pub fn netblast(sent: &Sent, over: Duration, options: &NetrateOptions, is_ipv6: bool) -> String {
    let remark = match options.is_batched {
        true => format!(" (datagrams, up to {BATCH_DATAGRAMS_MAX} a call)"),
        false => String::new(),
    };
    let rate = per_second(sent.count.successes(), over);
    let megabits = frame_bits_per_second(rate, options.payload_bytes, is_ipv6) / 1_000_000;
    let is_router = options.style == NetrateStyle::Router;
    let mut rows = calls(sent).to_vec();
    if is_router {
        rows.push(("send success:", sent.count.successes().to_string()));
    }
    rows.push(("approx send rate:", rate.to_string()));
    rows.push(("approx error rate:", error_rate(sent).to_string()));
    if is_router {
        rows.push(("approx throughput:", format!("{megabits} Mib/s")));
    }
    times(sent) + &lines(&rows, &remark)
}

/// netsend's last lines, with rates over `over`.
pub fn netsend_summary(sent: &Sent, over: Duration) -> String {
    let (count, waited) = (&sent.count, sent.waited);
    let elapsed_ns = sent.finish.saturating_sub(sent.start).as_nanos() as u64;
    let per_packet_ns = elapsed_ns.checked_div(count.successes()).unwrap_or(0);
    let rate = per_second(count.successes(), over);
    let per_call = waited.checked_div(count.calls).unwrap_or(0);
    let rows = [
        ("approx send rate:", format!("{rate} pps")),
        ("time/packet:", format!("{per_packet_ns} ns")),
        ("approx error rate:", error_rate(sent).to_string()),
        ("waited:", waited.to_string()),
        ("approx waits/sec:", per_second(waited, over).to_string()),
        ("approx wait rate:", per_call.to_string()),
    ];
    times(sent) + &lines(&calls(sent), "") + &lines(&rows, "")
}

fn times(sent: &Sent) -> String {
    let [start, finish] = [sent.start, sent.finish].map(seconds);
    String::from("\n") + &lines(&[("start:", start), ("finish:", finish)], "")
}

fn calls(sent: &Sent) -> [(&'static str, String); 2] {
    let [calls, errors] = [sent.count.calls, sent.count.errors].map(|count| count.to_string());
    [("send calls:", calls), ("send errors:", errors)]
}

fn error_rate(sent: &Sent) -> u64 {
    sent.count.errors.checked_div(sent.count.calls).unwrap_or(0)
}

/// Labels, and their values in column 20.
fn lines(rows: &[(&str, String)], remark: &str) -> String {
    let line = |(label, value): &(&str, String)| format!("{label:<19}{value}{remark}\n");
    rows.iter().map(line).collect()
}

/// netblast's first line if a number of threads is given.
pub fn netblast_threads(threads: usize, port: u16, duration_seconds: u64) -> String {
    format!(
        "netblast {threads} threads sending on UDP port {port} during {duration_seconds} seconds\n"
    )
}

/// netblast's warning about more threads than cores.
pub fn netblast_few_cores(threads: usize, cores: usize) -> String {
    format!("WARNING: {threads} threads but only {cores} core(s) available\n")
}

/// netreceive's first line.
pub fn netreceive(sockets: usize, threads: usize, port: u16) -> String {
    format!("netreceive {sockets} sockets x {threads} threads listening on UDP port {port}\n")
}

/// netreceive's start time, since 1970.
pub fn netreceive_start(now: Duration) -> String {
    format!("start at {}\n", seconds(now))
}

/// netreceive's counts of the last half second.
pub fn netreceive_interval(datagrams: u64, bytes: u64, elapsed: Duration) -> String {
    let ns = elapsed.as_nanos() + 1;
    let packets_per_second = u128::from(datagrams) * 1_000_000_000 / ns;
    let bits_per_second = u128::from(bytes) * 8_000_000_000 / ns;
    format!(
        " {packets_per_second:9} pps {:8.3} Mbps - {datagrams} pkts in {} ns\n",
        bits_per_second as f64 / 1e6,
        seconds(elapsed)
    )
}

/// netsend's first line.
pub fn netsend(payload_bytes: usize, interval_ns: u64, duration_seconds: u64) -> String {
    let interval = seconds(Duration::from_nanos(interval_ns));
    format!(
        "Sending packet of payload size {payload_bytes} every {interval}s for {duration_seconds} seconds\n"
    )
}

/// netsend's warning about a coarse clock.
pub fn netsend_coarse_clock(interval_ns: u64, resolution: Duration) -> String {
    format!(
        "warning: interval ({}) less than resolution ({})\n",
        seconds(Duration::from_nanos(interval_ns)),
        seconds(resolution)
    )
}

/// netsend's line about its clock readings.
pub fn netsend_looks(datagrams_a_look: u64) -> String {
    format!("calling time every {datagrams_a_look} cycles\n")
}

/// Seconds and nanoseconds.
fn seconds(time: Duration) -> String {
    format!("{}.{:09}", time.as_secs(), time.subsec_nanos())
}
