//! The output lines of iperf 2, word for word as versions 2.0.5 and 2.1.8 print them.
//!
//! Every function is pure and returns a line without its newline. No figure is ever infinite or NaN; the
//! originals print such figures when a test took no time or received no datagram, and programs that parse their
//! output stumble over them.

use std::net::SocketAddr;

use jiff::civil::DateTime;
use nicpoll_model::traffic::{Direction, IperfTimes};
use nicpoll_model::{Protocol, Rate, RateUnit};
use nicpoll_traffic::SocketBuffer;
use nicpoll_traffic::repeat::RepeatedRuns;

use crate::events::Settings;
use crate::options::{Options, Style};
use crate::records::{Calls, Connected, IntervalRecord, READ_SIZE_BINS, Receipt, window_bytes};

/// Number format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The iperf version to imitate.
    pub style: Style,
    /// The unit of `-f`; `a` by default. See [`amount`].
    pub letter: char,
}

impl Format {
    /// The same style with another unit.
    fn with(self, letter: char) -> Self {
        Format { letter, ..self }
    }
}

/// The stream or streams that a line describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// One stream: the socket's descriptor in style 2.0, a number from 1 in style 2.1.
    Stream(u32),
    /// A stream against the usual direction; only style 2.1 marks it.
    Reversed(u32),
    /// All streams together.
    Sum,
    /// All streams together, with their number.
    SumOf(u32),
}

impl Label {
    /// The label of a stream, reversed or not.
    pub fn of(number: u32, is_reversed: bool) -> Self {
        match is_reversed {
            true => Label::Reversed(number),
            false => Label::Stream(number),
        }
    }

    /// The same without the mark.
    pub fn unmarked(self) -> Self {
        match self {
            Label::Reversed(number) => Label::Stream(number),
            label => label,
        }
    }

    /// The bracketed field at the start of every line.
    fn text(self, style: Style) -> String {
        match self {
            Label::Reversed(number) if style == Style::V2_1 => {
                format!("[{:>3}]", format!("*{number}"))
            }
            Label::Stream(number) | Label::Reversed(number) => format!("[{number:>3}]"),
            Label::Sum => String::from("[SUM]"),
            Label::SumOf(streams) => format!("[SUM-{streams}]"),
        }
    }
}

/// Replaces NaN and negative values by 0, infinity by the greatest number.
fn printable(value: f64) -> f64 {
    if value > 0.0 {
        value.min(f64::MAX)
    } else {
        // Excludes NaN and negative zero.
        0.0
    }
}

/// Unit prefixes, each 1000 (bits) or 1024 (bytes) times the previous one.
const PREFIXES: [&str; 6] = ["", "K", "M", "G", "T", "P"];

/// Formats a number of bytes, or bytes per second, in the unit of `format`: ` 128 KByte`.
///
/// A lower-case letter selects bits and decimal prefixes, an upper-case one bytes and binary prefixes: `b`,
/// `k`, `m`, `g`, and in style 2.1 `t` and `p`. Any other letter selects the prefix with the fewest digits. The
/// figure is at least four columns wide.
pub fn amount(format: Format, bytes: f64) -> String {
    let Format { style, letter } = format;
    let bytes = printable(bytes);
    let (whole, base, unit) = match letter.is_ascii_uppercase() {
        true => (bytes, 1024.0, "Byte"),
        false => (bytes * 8.0, 1000.0, "bit"),
    };
    // Style 2.0 stops at giga.
    let greatest = match style {
        Style::V2_0 => 3,
        Style::V2_1 => PREFIXES.len() - 1,
    };
    let asked = "bkmgtp".find(letter.to_ascii_lowercase());
    let asked = asked.filter(|prefix| *prefix <= greatest);
    let fits = |prefix: &usize| whole / f64::powi(base, *prefix as i32) < base;
    let prefix = asked.unwrap_or_else(|| (0..greatest).find(fits).unwrap_or(greatest));
    let scaled = printable(whole) / f64::powi(base, prefix as i32);
    // As many decimals as fit into four columns after rounding.
    let decimals = match scaled {
        ..0.9995 if style == Style::V2_1 => 3,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{scaled:4.decimals$} {}{unit}", PREFIXES[prefix])
}

/// The same, always in bytes.
fn byte_amount(format: Format, bytes: u64) -> String {
    amount(
        format.with(format.letter.to_ascii_uppercase()),
        bytes as f64,
    )
}

/// Percentage of datagrams lost; 0 if none was sent.
fn loss_percent(receipt: &Receipt) -> f64 {
    match receipt.expected {
        0 => 0.0,
        expected => 100.0 * receipt.lost as f64 / expected as f64,
    }
}

/// Formats two significant digits like C's `%.2g`: `0`, `0.059`, `12`, `1e+02`.
pub fn two_digits(value: f64) -> String {
    if value < 0.0 {
        return format!("-{}", two_digits(-value));
    }
    let value = printable(value);
    if value == 0.0 {
        return String::from("0");
    }
    let without_zeros = |figure: &str| match figure.contains('.') {
        true => String::from(figure.trim_end_matches('0').trim_end_matches('.')),
        false => String::from(figure),
    };
    let scientific = format!("{value:.1e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("`e` notation has an e");
    let exponent: i32 = exponent.parse().expect("the exponent is a whole number");
    match exponent {
        // The exponent is that of the rounded figure, so this many decimals show the same two digits.
        -4..2 => {
            let decimals = (1 - exponent) as usize;
            without_zeros(&format!("{value:.decimals$}"))
        }
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            let exponent = exponent.unsigned_abs();
            format!("{}e{sign}{exponent:02}", without_zeros(mantissa))
        }
    }
}

/// Column headings for TCP and for a UDP sender.
pub const PLAIN: &str = "[ ID] Interval       Transfer     Bandwidth";
/// For a UDP receiver, at its own end or relayed to the sender.
pub const RECEIVER: &str =
    "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams";
/// For both directions of UDP together; style 2.1 only.
pub const DUPLEX_SUM: &str = "[ ID] Interval       Transfer     Bandwidth    Datagrams   PPS";
/// For sums with `--sum-only`.
pub const SUM_ONLY: &str = "[SUM-cnt] Interval       Transfer     Bandwidth";
/// With -e: one TCP sender, or several (`--sum-only`).
const TCP_SENDER: [&str; 2] = [
    "[ ID] Interval            Transfer    Bandwidth       Write/Err  Rtry     Cwnd/RTT(var)        NetPwr",
    "[SUM-cnt] Interval            Transfer    Bandwidth       Write/Err  Rtry",
];
/// With -e: one TCP receiver, or several.
const TCP_RECEIVER: [&str; 2] = [
    "[ ID] Interval            Transfer    Bandwidth       Reads=Dist",
    "[SUM-cnt] Interval            Transfer    Bandwidth       Reads=Dist",
];
/// With -e: one UDP sender, or several.
const UDP_SENDER: [&str; 2] = [
    "[ ID] Interval            Transfer     Bandwidth      Write/Err  PPS",
    "[SUM-cnt] Interval            Transfer     Bandwidth      Write/Err  PPS",
];
/// With -e: one UDP receiver; several, also without -e.
const UDP_RECEIVER: [&str; 2] = [
    "[ ID] Interval            Transfer     Bandwidth        Jitter   Lost/Total  Latency avg/min/max/stdev PPS  \
     Rx/inP  NetPwr",
    "[SUM-cnt] Interval     Transfer     Bandwidth       Lost/Total    PPS",
];

/// Transit times outside this range mean that the clocks disagree, as in 2.1.8.
const TRANSIT_SECONDS: std::ops::RangeInclusive<f64> = -0.01..=60.0;

/// Returns the column headings and the line of a stream, or of a sum of streams like `connected`. With
/// `is_enhanced`, the line of `-e` in style 2.1, unless TCP's figures for it are missing.
pub fn data(
    format: Format,
    label: Label,
    connected: &Connected,
    record: &IntervalRecord,
    is_enhanced: bool,
) -> (&'static str, String) {
    let line = plain(format, label, record);
    let is_sum = matches!(label, Label::Sum | Label::SumOf(_));
    let of = usize::from(is_sum);
    let Calls {
        done,
        refused,
        read_sizes,
    } = &record.calls;
    let pps = record.per_second(record.datagrams as f64);
    match (connected.tcp, connected.is_sender, record.receipt) {
        (Some(_), true, _) if is_enhanced && (is_sum || record.tcp.is_some()) => {
            let again = record.tcp.map_or(0, |tcp| tcp.retransmitted_segments);
            let writes = format!("{line}  {done}/{refused}");
            let line = match record.tcp.filter(|_| !is_sum) {
                None => format!("{writes}{again:>10}"),
                Some(tcp) => format!(
                    "{writes} {again:>10} {:>8}K/{}({}) us  {}",
                    window_bytes(&tcp) / 1024,
                    tcp.round_trip.as_micros(),
                    tcp.round_trip_variation.as_micros(),
                    power(record, tcp.round_trip.as_secs_f64())
                ),
            };
            (TCP_SENDER[of], line)
        }
        (Some(_), false, _) if is_enhanced => {
            let sizes = read_sizes.map(|count| count.to_string()).join(":");
            (TCP_RECEIVER[of], format!("{line}  {done}={sizes}"))
        }
        (None, _, Some(receipt)) if is_sum => {
            let Receipt { lost, expected, .. } = receipt;
            let line = format!("{line}  {lost}/{expected} {pps:8.0} pps");
            (UDP_RECEIVER[of], line)
        }
        (None, _, None) if is_enhanced => {
            let line = format!("{line}  {done}/{refused} {pps:8.0} pps");
            (UDP_SENDER[of], line)
        }
        (_, _, Some(receipt)) => {
            let line = received(format, label, record, &receipt);
            match is_enhanced {
                true => (
                    UDP_RECEIVER[of],
                    format!("{line} {}", latency(record, &receipt)),
                ),
                false => (RECEIVER, line),
            }
        }
        _ => (PLAIN, line),
    }
}

/// The counts of a TCP stream at either end or of a UDP sender, or a sum of such.
pub fn plain(format: Format, label: Label, record: &IntervalRecord) -> String {
    let rate = record.per_second(record.bytes as f64);
    format!(
        "{}  {}s  {}s/sec",
        times(format.style, label, record),
        byte_amount(format, record.bytes),
        amount(format, rate)
    )
}

/// The counts of a UDP receiver.
pub fn received(
    format: Format,
    label: Label,
    record: &IntervalRecord,
    receipt: &Receipt,
) -> String {
    let (lost, total) = (receipt.lost, receipt.expected);
    let datagrams = match format.style {
        Style::V2_0 => format!("{lost:4}/{total:5}"),
        Style::V2_1 => format!("{lost}/{total}"),
    };
    format!(
        "{}  {:6.3} ms {datagrams} ({}%)",
        plain(format, label, record),
        jitter_ms(receipt),
        two_digits(loss_percent(receipt))
    )
}

fn jitter_ms(receipt: &Receipt) -> f64 {
    printable(1e3 * receipt.jitter_seconds.unwrap_or(0.0))
}

/// A UDP receiver's transit times, datagrams, datagrams in flight by Little's law, and power. Dashes where the
/// clocks disagree, as in 2.1.8.
fn latency(record: &IntervalRecord, receipt: &Receipt) -> String {
    let datagrams = record.datagrams;
    let pps = record.per_second(datagrams as f64);
    let transit = receipt.transit;
    let shared = transit.filter(|transit| TRANSIT_SECONDS.contains(&transit.min_seconds));
    let Some(transit) = shared else {
        return format!("-/-/-/- ms {pps:.0} pps");
    };
    let in_progress = (pps * transit.mean_seconds).round();
    let deviation = (pps * transit.deviation_seconds).round();
    format!(
        "{:.3}/{:.3}/{:.3}/{:.3} ms {pps:.0} pps {datagrams}/{in_progress}({deviation}) pkts {}",
        1e3 * transit.mean_seconds,
        1e3 * transit.min_seconds,
        1e3 * transit.max_seconds,
        1e3 * transit.deviation_seconds,
        power(record, transit.mean_seconds)
    )
}

/// The sum of several UDP receivers; style 2.0 omits the losses.
pub fn receiver_sum(format: Format, record: &IntervalRecord, receipt: &Receipt) -> String {
    let line = plain(format, Label::Sum, record);
    match format.style {
        Style::V2_0 => line,
        Style::V2_1 => format!(
            "{line}   {}/{} ({}%)",
            receipt.lost,
            receipt.expected,
            two_digits(loss_percent(receipt))
        ),
    }
}

/// The sum of both UDP directions, under [`DUPLEX_SUM`].
pub fn duplex_sum(format: Format, record: &IntervalRecord) -> String {
    format!(
        "{} {}{:8.0} pps",
        plain(format, Label::Sum, record),
        record.datagrams,
        record.per_second(record.datagrams as f64)
    )
}

/// The number of late and duplicate datagrams, which 2.1.8 counts together; `None` if there are none.
pub fn out_of_order(style: Style, label: Label, record: &IntervalRecord) -> Option<String> {
    let late = record.receipt?.behind();
    (late > 0).then(|| {
        let times = times(style, label, record);
        format!("{times}  {late} datagrams received out-of-order")
    })
}

/// The total number of datagrams sent.
pub fn sent(style: Style, label: Label, datagrams: u64) -> String {
    format!("{} Sent {datagrams} datagrams", label.text(style))
}

/// The heading of the receiver's report at the sender.
pub fn server_report(style: Style, label: Label) -> String {
    format!("{} Server Report:", label.text(style))
}

fn times(style: Style, label: Label, record: &IntervalRecord) -> String {
    let label = label.text(style);
    let (start, end) = (printable(record.start), printable(record.end));
    match style {
        Style::V2_0 => format!("{label} {start:4.1}-{end:4.1} sec"),
        Style::V2_1 => format!("{label} {start:.4}-{end:.4} sec"),
    }
}

/// iperf's "network power": megabytes per second divided by the delay in seconds.
fn power(record: &IntervalRecord, wait_seconds: f64) -> String {
    if wait_seconds <= 0.0 {
        return String::from("NAN");
    }
    let rate = record.per_second(record.bytes as f64);
    let power = printable(1e-6 * rate / wait_seconds);
    let decimals = match power {
        ..=10.0 => 6,
        ..=100.0 => 2,
        _ => 0,
    };
    format!("{power:.decimals$}")
}

/// Statistics of the connect times, in seconds, of several streams, and how many failed; `None` when none
/// succeeded.
pub fn connect_times(times: &[f64], failed: u64) -> Option<String> {
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

/// The distribution of gaps between datagrams. No iperf has this line.
pub fn gaps(style: Style, label: Label, gaps: &IperfTimes) -> String {
    format!(
        "{} Gaps min/mean/p50/p99/max = {:.3}/{:.3}/{:.3}/{:.3}/{:.3} ms ({} of {} are 0)",
        label.text(style),
        1e3 * gaps.min_seconds,
        1e3 * gaps.mean_seconds,
        1e3 * gaps.p50_seconds,
        1e3 * gaps.p99_seconds,
        1e3 * gaps.max_seconds,
        gaps.zero_samples,
        gaps.samples
    )
}

/// `[  3] local 10.99.0.1 port 43254 connected with 10.99.0.2 port 5001`, followed in style 2.1 by its remarks.
/// `has_no_fin`: the sender ends a UDP stream without waiting for an answer.
pub fn connection(style: Style, label: Label, connected: &Connected, has_no_fin: bool) -> String {
    let line = format!(
        "{} local {} port {} connected with {} port {}",
        label.text(style),
        connected.local.ip(),
        connected.local.port(),
        connected.peer.ip(),
        connected.peer.port(),
    );
    if style == Style::V2_0 {
        return line;
    }
    let way = match connected.direction {
        Direction::Forward => "",
        Direction::Reverse => " (reverse)",
        Direction::FullDuplex => " (full-duplex)",
    };
    let fin = if has_no_fin { " (no-udp-fin)" } else { "" };
    let tcp = connected.tcp.map_or_else(String::new, |tcp| {
        format!(
            " (icwnd/mss/irtt={}/{}/{:.0})",
            tcp.congestion_window_bytes / 1024,
            tcp.mss_bytes,
            1e6 * tcp.round_trip_seconds
        )
    });
    let service = service_remark(connected);
    format!("{line}{way}{fin}{service}{tcp}")
}

/// The type of service as in 2.1.8, which shows that of sent packets only to a client with -R.
fn service_remark(connected: &Connected) -> String {
    let tos = connected.type_of_service;
    match connected.direction {
        _ if tos == 0 => String::new(),
        Direction::FullDuplex => format!(" (tos rx/tx={tos:#x}/{tos:#x})"),
        Direction::Reverse if !connected.is_sender => format!(" (tos tx={tos:#x})"),
        Direction::Forward | Direction::Reverse => format!(" (tos rx={tos:#x})"),
    }
}

/// Link types by their MTU.
const LINKS: [(u32, &str); 5] = [
    (65280, "HIPPI"),
    (9180, "ATM"),
    (4352, "FDDI"),
    (1500, "ethernet"),
    (576, "minimum"),
];

/// What `-m` prints at the end of a TCP stream in style 2.0; `mss_bytes` is 0 if unknown.
pub fn segment_size(label: Label, mss_bytes: u32) -> String {
    // IPv4 and TCP headers: without options, and the longest that 2.0.5 expects.
    const LEAST_HEADERS: u32 = 40;
    const MOST_HEADERS: u32 = 80;
    let label = label.text(Style::V2_0);
    if mss_bytes == 0 {
        return format!("{label} MSS and MTU size unknown (TCP_MAXSEG not supported by OS?)");
    }
    let fits = |mtu| (mtu - MOST_HEADERS..=mtu - LEAST_HEADERS).contains(&mss_bytes);
    let link = LINKS.iter().find(|(mtu, _)| fits(*mtu));
    let (mtu, name) = link.copied().unwrap_or_else(|| {
        let mtu = mss_bytes.saturating_add(LEAST_HEADERS);
        (mtu, "unknown interface")
    });
    let warning = match name {
        "minimum" => "\nWARNING: Path MTU Discovery may not be enabled.",
        _ => "",
    };
    format!("{label} MSS size {mss_bytes} bytes (MTU {mtu} bytes, {name}){warning}")
}

/// First and last line of the settings.
const RULE: &str = "------------------------------------------------------------";
/// Default MSS of an unconnected socket (RFC 9293, section 3.7.1).
const UNCONNECTED_SEGMENT_BYTES: u32 = 536;

/// The settings of an end, between two rules, printed before its test.
pub fn settings(options: &Options, settings: &Settings) -> String {
    let (lines, buffer) = match settings {
        Settings::Listener(port, buffer) => (listener_lines(options, *port), buffer),
        Settings::Client(connected) => {
            let stream = &options.stream;
            let lines = client_lines(options, connected, stream.length_bytes, stream.rate);
            (lines, &connected.buffer)
        }
        Settings::WayBack(connected, length_bytes, rate) => {
            let lines = client_lines(options, connected, *length_bytes, *rate);
            (lines, &connected.buffer)
        }
    };
    let mut text = vec![String::from(RULE)];
    text.extend(lines.into_iter().flatten());
    text.extend([window_line(options, buffer), String::from(RULE)]);
    text.join("\n")
}

/// The settings of a listener: a server's, or that of a client to which the server connects back.
fn listener_lines(options: &Options, port: u16) -> Vec<Option<String>> {
    let Options { style, stream, .. } = options;
    let (is_v2_1, is_tcp) = (*style == Style::V2_1, stream.protocol == Protocol::Tcp);
    let is_enhanced = options.enhanced && is_v2_1;
    let pid = match is_enhanced {
        true => format!(" with pid {}", std::process::id()),
        false => String::new(),
    };
    let protocol = stream.protocol.name();
    let format = format_of(options);
    let read_bytes = stream.length_bytes as u64;
    let read_size = || {
        let bin_bytes = read_bytes / READ_SIZE_BINS as u64;
        let bin = amount(format.with('A'), bin_bytes as f64);
        let size = byte_amount(format, read_bytes);
        format!("Read buffer size: {size} (Dist bin width={bin})")
    };
    let service = stream.socket.type_of_service;
    let service = service.filter(|tos| *tos != 0 && is_v2_1);
    vec![
        Some(format!("Server listening on {protocol} port {port}{pid}")),
        bind_line(options).filter(|_| !is_v2_1 || is_enhanced),
        (!is_v2_1 && !is_tcp).then(|| format!("Receiving {read_bytes} byte datagrams")),
        is_enhanced.then(read_size),
        segment_line(options, UNCONNECTED_SEGMENT_BYTES).filter(|_| is_tcp),
        service.map(|tos| format!("TOS will be set to {tos:#x}")),
    ]
}

/// The settings of a client, or of a server that connects back.
fn client_lines(
    options: &Options,
    connected: &Connected,
    write_bytes: usize,
    rate: Option<Rate>,
) -> Vec<Option<String>> {
    let Options { style, stream, .. } = options;
    let (is_v2_1, is_tcp) = (*style == Style::V2_1, stream.protocol == Protocol::Tcp);
    let is_enhanced = options.is_client() && options.enhanced && is_v2_1;
    let (host, port) = match &options.host {
        Some(host) => (host.clone(), options.port),
        None => {
            let peer = connected.peer;
            (peer.ip().to_canonical().to_string(), peer.port())
        }
    };
    let pid = match is_enhanced {
        true => format!(
            " with pid {} ({} flows)",
            std::process::id(),
            stream.streams
        ),
        false => String::new(),
    };
    let protocol = stream.protocol.name();
    let format = format_of(options);
    let write_size = || {
        let size = amount(format.with('B'), write_bytes as f64);
        format!("Write buffer size: {size}")
    };
    let tos = stream.socket.type_of_service.unwrap_or(0);
    let nagle = match stream.no_delay {
        true => "and nodelay (Nagle off)",
        false => "(Nagle on)",
    };
    let gap = match is_v2_1 {
        true => {
            let gap = printable(gap_micros(rate, write_bytes));
            format!(", IPG target: {gap:.2} us (kalman adjust)")
        }
        false => String::new(),
    };
    vec![
        Some(format!(
            "Client connecting to {host}, {protocol} port {port}{pid}"
        )),
        bind_line(options).filter(|_| options.is_client() && !is_v2_1),
        (is_enhanced && is_tcp).then(write_size),
        connected
            .tcp
            .and_then(|tcp| segment_line(options, tcp.mss_bytes)),
        is_enhanced.then(|| format!("TOS set to {tos:#x} {nagle}")),
        (!is_tcp).then(|| format!("Sending {write_bytes} byte datagrams{gap}")),
    ]
}

/// The number format that the options ask for.
pub fn format_of(options: &Options) -> Format {
    Format {
        style: options.style,
        letter: options.format,
    }
}

fn bind_line(options: &Options) -> Option<String> {
    let bind = options.bind.as_ref()?;
    Some(format!("Binding to local address {}", bind.address))
}

/// The requested MSS (-M), or with -m the socket's own. Style 2.0 prints it at the end instead: see
/// [`segment_size`].
fn segment_line(options: &Options, own_bytes: u32) -> Option<String> {
    if options.style == Style::V2_0 {
        return None;
    }
    match options.stream.max_segment_bytes {
        Some(bytes) => Some(format!("MSS req size {bytes} bytes (per TCP_MAXSEG)")),
        None if options.print_mss => Some(format!("MSS size {own_bytes} bytes")),
        None => None,
    }
}

fn window_line(options: &Options, buffer: &SocketBuffer) -> String {
    let name = match options.stream.protocol {
        Protocol::Tcp => "TCP window size",
        Protocol::Udp => "UDP buffer size",
    };
    let size = |bytes| byte_amount(format_of(options), bytes);
    let granted = buffer.granted_bytes;
    let remark = match options.stream.buffer_bytes.map(|bytes| bytes as u64) {
        None => String::from(" (default)"),
        Some(asked) if asked == granted => String::new(),
        Some(asked) => format!(" (WARNING: requested {})", size(asked)),
    };
    format!("{name}: {}{remark}", size(granted))
}

/// Microseconds between datagrams at a rate; 0 if unlimited.
fn gap_micros(rate: Option<Rate>, payload_bytes: usize) -> f64 {
    let bits = 8.0 * payload_bytes as f64;
    rate.map_or(0.0, |rate| match rate.unit() {
        RateUnit::BitsPerSecond => 1e6 * bits / rate.per_second(),
        RateUnit::PacketsPerSecond => 1e6 / rate.per_second(),
    })
}

/// The streams that a row of comma-separated values describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsvRow {
    /// One stream, by number.
    Stream(u32),
    /// All streams. 2.1.8 has no such row; the one in style 2.1 is from 2.2.
    Sum,
    /// All runs of a client (--repeat). The original has no such row.
    Runs,
}

/// One row of comma-separated values (`-y C`) for a stream or sum like `connected`. In sums, ports that differ
/// between streams are 0: in style 2.0 this end's port and, for received streams, the peer's; in style 2.1 the
/// client's port.
pub fn csv(
    time: &DateTime,
    options: &Options,
    row: CsvRow,
    connected: &Connected,
    record: &IntervalRecord,
) -> String {
    let (style, is_client) = (options.style, options.is_client());
    let (mut own, mut other) = (connected.local, connected.peer);
    let id = match row {
        CsvRow::Stream(number) => number.to_string(),
        CsvRow::Sum => String::from("-1"),
        CsvRow::Runs => String::from("-2"),
    };
    if !matches!(row, CsvRow::Stream(_)) {
        if style == Style::V2_0 || is_client {
            own.set_port(0);
        }
        if style == Style::V2_0 && !connected.is_sender || style == Style::V2_1 && !is_client {
            other.set_port(0);
        }
    }
    // Style 2.0 puts this end first, style 2.1 the sender.
    let [first, second] = match style {
        Style::V2_1 if !connected.is_sender => [other, own],
        _ => [own, other],
    };
    let seconds = time.strftime(match options.enhanced && style == Style::V2_1 {
        true => "%Y%m%d%H%M%S%.3f",
        false => "%Y%m%d%H%M%S",
    });
    let ends = |end: SocketAddr| format!("{},{}", end.ip(), end.port());
    let line = format!(
        "{seconds},{},{},{id},{:.1}-{:.1},{},{:.0}",
        ends(first),
        ends(second),
        printable(record.start),
        printable(record.end),
        record.bytes,
        record.per_second(record.bytes as f64 * 8.0).trunc(),
    );
    // In style 2.1, a UDP sender has the receiver's fields, too, with its sent datagrams as the total.
    let adds = connected.tcp.is_none() && connected.is_sender && style == Style::V2_1;
    let sent = Receipt {
        expected: record.datagrams,
        ..Receipt::default()
    };
    let sent = (adds && row != CsvRow::Runs).then_some(sent);
    let Some(receipt) = record.receipt.or(sent) else {
        return line;
    };
    format!(
        "{line},{:.3},{},{},{:.3},{}",
        jitter_ms(&receipt),
        receipt.lost,
        receipt.expected,
        loss_percent(&receipt),
        receipt.behind()
    )
}

/// The fields after the first nine in a row of all runs: median, minimum and maximum rate, the ends of the
/// confidence interval (empty if none), the number of runs with a rate, and the number of runs requested; rates
/// in bit/s. `None` when no run has a rate.
pub fn csv_of_runs(outcome: &RepeatedRuns) -> Option<String> {
    let summary = outcome.summary?;
    let interval = outcome.interval.map_or_else(
        || String::from(","),
        |interval| format!("{:.0},{:.0}", interval.low, interval.high),
    );
    Some(format!(
        "{:.0},{:.0},{:.0},{interval},{},{}",
        summary.median, summary.min, summary.max, summary.n, outcome.asked
    ))
}

/// The client could not connect; `reason` is the kernel's.
pub fn connect_failed(style: Style, reason: &str) -> String {
    let protocol = match style {
        Style::V2_0 => "",
        Style::V2_1 => "tcp ",
    };
    format!("{protocol}connect failed: {reason}")
}

/// The server could not bind its port; `reason` is the kernel's.
pub fn bind_failed(style: Style, reason: &str) -> String {
    let listener = match style {
        Style::V2_0 => "",
        Style::V2_1 => "listener ",
    };
    format!("{listener}bind failed: {reason}")
}

#[cfg(test)]
mod tests;
