//! What `-e` adds to the lines of style 2.1.
//!
//! What must hold: every figure was measured. Where the clocks of the two ends disagree the times of
//! transit are dashes, as in 2.1.8.

use super::units::{rate, transfer};
use super::{Format, Header, Interval, Label, ReceiptFigures, StreamId, Style, lines, printable};
use crate::observer::{Calls, TcpState};
use crate::times::{Distribution, Transit};

/// Times of transit outside of this are taken for clocks that disagree, as in 2.1.8.
const TRANSIT_SECONDS: std::ops::RangeInclusive<f64> = -0.01..=60.0;

/// Which columns follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnhancedHeader {
    /// Of a TCP sender.
    TcpSender,
    /// Of a TCP receiver.
    TcpReceiver,
    /// Of a UDP sender.
    UdpSender,
    /// Of a UDP receiver.
    UdpReceiver,
    /// Of all TCP senders (`--sum-only`).
    TcpSenders,
    /// Of all TCP receivers (`--sum-only`).
    TcpReceivers,
    /// Of all UDP senders (`--sum-only`).
    UdpSenders,
    /// Of all UDP receivers (`--sum-only`).
    UdpReceivers,
}

/// The line above the columns.
pub fn enhanced_header(header: EnhancedHeader) -> &'static str {
    match header {
        EnhancedHeader::TcpSender => {
            "[ ID] Interval            Transfer    Bandwidth       Write/Err  Rtry     \
             Cwnd/RTT(var)        NetPwr"
        }
        EnhancedHeader::TcpReceiver => {
            "[ ID] Interval            Transfer    Bandwidth       Reads=Dist"
        }
        EnhancedHeader::UdpSender => {
            "[ ID] Interval            Transfer     Bandwidth      Write/Err  PPS"
        }
        EnhancedHeader::UdpReceiver => {
            "[ ID] Interval            Transfer     Bandwidth        Jitter   Lost/Total  \
             Latency avg/min/max/stdev PPS  Rx/inP  NetPwr"
        }
        EnhancedHeader::TcpSenders => {
            "[SUM-cnt] Interval            Transfer    Bandwidth       Write/Err  Rtry"
        }
        EnhancedHeader::TcpReceivers => {
            "[SUM-cnt] Interval            Transfer    Bandwidth       Reads=Dist"
        }
        EnhancedHeader::UdpSenders => {
            "[SUM-cnt] Interval            Transfer     Bandwidth      Write/Err  PPS"
        }
        EnhancedHeader::UdpReceivers => lines::header(Header::SumOnlyReceivers),
    }
}

/// A TCP sender's writes, segments that it sent again, window, round-trip time and power.
pub fn tcp_sender_line(
    format: Format,
    id: StreamId,
    interval: &Interval,
    calls: &Calls,
    tcp: &TcpState,
) -> String {
    let window_bytes = u64::from(tcp.congestion_window_segments) * u64::from(tcp.segment_bytes);
    format!(
        "{} {:>10} {:>8}K/{}({}) us  {}",
        tcp_writes(format, Label::Stream(id), interval, calls),
        tcp.retransmitted_segments,
        window_bytes / 1024,
        tcp.round_trip.as_micros(),
        tcp.round_trip_variation.as_micros(),
        power(interval, tcp.round_trip.as_secs_f64())
    )
}

/// What several TCP senders wrote and sent again.
pub fn tcp_sender_sum_line(
    format: Format,
    label: Label,
    interval: &Interval,
    calls: &Calls,
    retransmitted_segments: u64,
) -> String {
    format!(
        "{}{retransmitted_segments:>10}",
        tcp_writes(format, label, interval, calls)
    )
}

fn tcp_writes(format: Format, label: Label, interval: &Interval, calls: &Calls) -> String {
    let Calls { done, refused, .. } = calls;
    format!("{}  {done}/{refused}", plain(format, label, interval))
}

/// A TCP receiver's reads and how much they yielded, or those of several receivers.
pub fn tcp_receiver_line(
    format: Format,
    label: Label,
    interval: &Interval,
    calls: &Calls,
) -> String {
    let sizes = calls.read_sizes.map(|count| count.to_string());
    format!(
        "{}  {}={}",
        plain(format, label, interval),
        calls.done,
        sizes.join(":")
    )
}

/// A UDP sender's writes and datagrams, or those of several senders.
pub fn udp_sender_line(
    format: Format,
    label: Label,
    interval: &Interval,
    calls: &Calls,
    datagrams: u64,
) -> String {
    format!(
        "{}  {}/{} {:8.0} pps",
        plain(format, label, interval),
        calls.done,
        calls.refused,
        interval.per_second(datagrams as f64)
    )
}

/// A UDP receiver's losses, times of transit, datagrams, how many of them are on their way at a time by
/// Little's law, and power.
pub fn udp_receiver_line(
    format: Format,
    id: StreamId,
    interval: &Interval,
    receipt: &ReceiptFigures,
    datagrams: u64,
    transit: Option<&Transit>,
) -> String {
    let line = lines::receiver_line(format, id, interval, receipt);
    let per_second = interval.per_second(datagrams as f64);
    let shared = transit.filter(|transit| TRANSIT_SECONDS.contains(&transit.min_seconds));
    let Some(transit) = shared else {
        return format!("{line} -/-/-/- ms {per_second:.0} pps");
    };
    let in_progress = (per_second * transit.mean_seconds).round();
    let deviation = (per_second * transit.deviation_seconds).round();
    format!(
        "{line} {:.3}/{:.3}/{:.3}/{:.3} ms {per_second:.0} pps {datagrams}/{in_progress}({deviation}) \
         pkts {}",
        1e3 * transit.mean_seconds,
        1e3 * transit.min_seconds,
        1e3 * transit.max_seconds,
        1e3 * transit.deviation_seconds,
        power(interval, transit.mean_seconds)
    )
}

/// What several UDP receivers lost and received.
pub fn udp_receiver_sum_line(
    format: Format,
    label: Label,
    interval: &Interval,
    receipt: &ReceiptFigures,
    datagrams: u64,
) -> String {
    format!(
        "{}  {}/{} {:8.0} pps",
        plain(format, label, interval),
        receipt.lost,
        receipt.total,
        interval.per_second(datagrams as f64)
    )
}

/// How long connecting took for each of several streams, in seconds, and how many failed; `None` when
/// none succeeded.
pub fn connect_times_line(times: &[f64], failed: u64) -> Option<String> {
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    let deviation = match times.len() {
        0 => return None,
        1 => 0.0,
        _ => (squares / (count - 1.0)).sqrt(),
    };
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    Some(format!(
        "[ CT] final connect times (min/avg/max/stdev) = {:.3}/{:.3}/{:.3}/{:.3} ms (tot/err) = {}/{}",
        1e3 * least,
        1e3 * mean,
        1e3 * most,
        1e3 * deviation,
        times.len() as u64 + failed,
        failed
    ))
}

/// How the gaps between datagrams spread. No iperf has such a line.
pub fn gaps_line(style: Style, id: StreamId, gaps: &Distribution) -> String {
    let ms = |ns: u64| ns as f64 / 1e6;
    format!(
        "{} Gaps min/mean/p50/p99/max = {:.3}/{:.3}/{:.3}/{:.3}/{:.3} ms ({} of {} are 0)",
        Label::Stream(id).text(style),
        ms(gaps.min_ns),
        gaps.mean_ns / 1e6,
        ms(gaps.p50_ns),
        ms(gaps.p99_ns),
        ms(gaps.max_ns),
        gaps.zeros,
        gaps.count
    )
}

fn plain(format: Format, label: Label, interval: &Interval) -> String {
    format!(
        "{}  {}  {}",
        lines::times(format.style, label, interval),
        transfer(format, interval.bytes),
        rate(format, interval)
    )
}

/// iperf's "network power": megabytes a second over the seconds that each of them waits.
fn power(interval: &Interval, wait_seconds: f64) -> String {
    if wait_seconds <= 0.0 {
        return String::from("NAN");
    }
    let power = printable(1e-6 * interval.bytes_per_second() / wait_seconds);
    if power > 100.0 {
        format!("{power:.0}")
    } else if power > 10.0 {
        format!("{power:.2}")
    } else {
        format!("{power:.6}")
    }
}
