//! The lines that the tools print. Pure: figures in, text out.
//!
//! Every line is the original's, to the column. Rates and ratios are divided as whole
//! numbers, as the originals do it: `approx error rate` is 0 unless every send failed.

use std::fmt::Write;
use std::time::Duration;

use crate::netrate::options::NetrateStyle;

/// Headers of a frame besides the payload: UDP, IPv4 or IPv6, Ethernet without its FCS.
const HEADER_BYTES: [u64; 2] = [8 + 20 + 14, 8 + 40 + 14];

/// The time that rates are taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateSpan {
    /// The whole seconds that were asked for, as in the originals.
    Asked(u64),
    /// The time that it took: when none was asked for, or a signal ended it. The originals print
    /// nothing then.
    Elapsed(Duration),
}

impl RateSpan {
    /// How many a second, cut off.
    pub fn rate(self, count: u64) -> u64 {
        let ns = match self {
            RateSpan::Asked(seconds) => Duration::from_secs(seconds).as_nanos(),
            RateSpan::Elapsed(elapsed) => elapsed.as_nanos(),
        };
        let rate = (u128::from(count) * 1_000_000_000).checked_div(ns);
        rate.map_or(0, |rate| u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

/// What netblast and netsend tell at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentSummary {
    /// The start, since 1970.
    pub start: Duration,
    /// The end, since 1970.
    pub finish: Duration,
    /// What rates are taken over.
    pub span: RateSpan,
    /// Datagrams that were to be sent.
    pub send_calls: u64,
    /// Datagrams that were refused.
    pub send_errors: u64,
    /// The most datagrams of a batch; `None` when each was sent alone.
    pub batch_datagrams: Option<usize>,
}

impl SentSummary {
    fn successes(&self) -> u64 {
        self.send_calls - self.send_errors
    }

    fn error_rate(&self) -> u64 {
        self.send_errors.checked_div(self.send_calls).unwrap_or(0)
    }

    fn begin(&self) -> String {
        format!(
            "\nstart:             {}\nfinish:            {}\nsend calls:        {}{batches}\nsend errors:       {}{batches}\n",
            seconds(self.start),
            seconds(self.finish),
            self.send_calls,
            self.send_errors,
            batches = self.batches(),
        )
    }

    /// What stands behind each figure whose packets went to the kernel in batches.
    fn batches(&self) -> String {
        let remark = |most| format!(" (datagrams, up to {most} a call)");
        self.batch_datagrams.map_or_else(String::new, remark)
    }
}

/// Bits a second of Ethernet frames without their FCS when each datagram is one frame.
pub fn frame_bits_per_second(packets_per_second: u64, payload_bytes: usize, is_ipv6: bool) -> u64 {
    let frame_bytes = payload_bytes as u64 + HEADER_BYTES[usize::from(is_ipv6)];
    packets_per_second.saturating_mul(frame_bytes * 8)
}

/// netblast's last lines. What they call Mib/s is 10^6 bit/s.
pub fn netblast(
    summary: &SentSummary,
    style: NetrateStyle,
    payload_bytes: usize,
    is_ipv6: bool,
) -> String {
    let mut text = summary.begin();
    let rate = summary.span.rate(summary.successes());
    let batches = summary.batches();
    if style == NetrateStyle::Router {
        let successes = summary.successes();
        line(
            &mut text,
            "send success:",
            &format_args!("{successes}{batches}"),
        );
    }
    line(
        &mut text,
        "approx send rate:",
        &format_args!("{rate}{batches}"),
    );
    let error_rate = summary.error_rate();
    line(
        &mut text,
        "approx error rate:",
        &format_args!("{error_rate}{batches}"),
    );
    if style == NetrateStyle::Router {
        let megabits = frame_bits_per_second(rate, payload_bytes, is_ipv6) / 1_000_000;
        line(
            &mut text,
            "approx throughput:",
            &format_args!("{megabits} Mib/s{batches}"),
        );
    }
    text
}

/// netblast's first line when the number of threads was given.
pub fn netblast_threads(threads: usize, port: u16, duration_seconds: u64) -> String {
    format!(
        "netblast {threads} threads sending on UDP port {port} during {duration_seconds} seconds\n"
    )
}

/// netblast's warning about more threads than there are cores for them.
pub fn netblast_few_cores(threads: usize, cores: usize) -> String {
    format!("WARNING: {threads} threads but only {cores} core(s) available\n")
}

/// netreceive's first line.
pub fn netreceive(sockets: usize, threads: usize, port: u16) -> String {
    format!("netreceive {sockets} sockets x {threads} threads listening on UDP port {port}\n")
}

/// When netreceive began, since 1970.
pub fn netreceive_start(now: Duration) -> String {
    format!("start at {}\n", seconds(now))
}

/// What netreceive received in the last half second.
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

/// netsend's warning about a clock that is too coarse.
pub fn netsend_coarse_clock(interval_ns: u64, resolution: Duration) -> String {
    format!(
        "warning: interval ({}) less than resolution ({})\n",
        seconds(Duration::from_nanos(interval_ns)),
        seconds(resolution)
    )
}

/// How often netsend looks at the clock.
pub fn netsend_looks(datagrams_a_look: u64) -> String {
    format!("calling time every {datagrams_a_look} cycles\n")
}

/// netsend's last lines; `waited` is how often the clock was looked at in vain.
pub fn netsend_summary(summary: &SentSummary, waited: u64) -> String {
    let mut text = summary.begin();
    let elapsed_ns = summary.finish.saturating_sub(summary.start).as_nanos() as u64;
    let per_packet_ns = elapsed_ns.checked_div(summary.successes()).unwrap_or(0);
    let rate = summary.span.rate(summary.successes());
    line(&mut text, "approx send rate:", &format_args!("{rate} pps"));
    line(
        &mut text,
        "time/packet:",
        &format_args!("{per_packet_ns} ns"),
    );
    line(&mut text, "approx error rate:", &summary.error_rate());
    line(&mut text, "waited:", &waited);
    line(&mut text, "approx waits/sec:", &summary.span.rate(waited));
    let per_call = waited.checked_div(summary.send_calls).unwrap_or(0);
    line(&mut text, "approx wait rate:", &per_call);
    text
}

/// A label and, in column 20, its value.
fn line(text: &mut String, label: &str, value: &dyn std::fmt::Display) {
    let _ = writeln!(text, "{label:<19}{value}");
}

/// Seconds and nanoseconds.
fn seconds(time: Duration) -> String {
    format!("{}.{:09}", time.as_secs(), time.subsec_nanos())
}
