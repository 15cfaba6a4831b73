//! What else is said: warnings and errors, the version, how to use the program.

use nicpoll_model::Protocol;

use super::{Label, StreamId, Style};

/// Told when the server did not connect back, as a bidirectional test asked it to.
pub const MISSING_REVERSE: &str = "ERROR: expected reverse connect did not occur";
/// Told when a server is interrupted while streams run.
pub const WAITING_FOR_THREADS: &str =
    "Waiting for server threads to complete. Interrupt again to force quit.";

/// Headers of IPv4 and TCP without options.
const LEAST_HEADERS: u32 = 40;
/// The same with all options that IPv4 and TCP are reckoned to take.
const MOST_HEADERS: u32 = 80;
/// Links known by what they carry at most.
const LINKS: [(u32, &str); 5] = [
    (65280, "HIPPI"),
    (9180, "ATM"),
    (4352, "FDDI"),
    (1500, "ethernet"),
    (576, "minimum"),
];

/// The client could not reach the server, for a reason in the system's words.
pub fn connect_failed(style: Style, protocol: Protocol, reason: &str) -> String {
    let protocol = match (style, protocol) {
        (Style::V2_0, _) => "",
        (Style::V2_1, Protocol::Tcp) => "tcp ",
        (Style::V2_1, Protocol::Udp) => "udp ",
    };
    format!("{protocol}connect failed: {reason}")
}

/// The server could not take its port, for a reason in the system's words.
pub fn bind_failed(style: Style, reason: &str) -> String {
    let listener = match style {
        Style::V2_0 => "",
        Style::V2_1 => "listener ",
    };
    format!("{listener}bind failed: {reason}")
}

/// The receiver of a UDP stream never answered its end.
pub fn no_acknowledgement(style: Style, id: StreamId, tries: u32) -> String {
    format!(
        "{} WARNING: did not receive ack of last datagram after {tries} tries.",
        Label::Stream(id).text(style)
    )
}

/// The window asked for with `-w` is smaller than a TCP stream can do with.
pub fn small_window(requested_bytes: u64) -> String {
    format!(
        "WARNING: TCP window size set to {requested_bytes} bytes. A small window size\n\
         will give poor performance. See the Iperf documentation."
    )
}

/// What `-m` tells at the end of a TCP stream in style 2.0; 0 if the system does not know.
pub fn mss_lines(id: StreamId, mss_bytes: u32) -> String {
    let label = Label::Stream(id).text(Style::V2_0);
    if mss_bytes == 0 {
        return format!("{label} MSS and MTU size unknown (TCP_MAXSEG not supported by OS?)");
    }
    let link = LINKS
        .iter()
        .find(|(mtu, _)| (mtu - MOST_HEADERS..=mtu - LEAST_HEADERS).contains(&mss_bytes));
    let (mtu, name) = match link {
        Some((mtu, name)) => (*mtu, *name),
        None => (mss_bytes.saturating_add(LEAST_HEADERS), "unknown interface"),
    };
    let line = format!("{label} MSS size {mss_bytes} bytes (MTU {mtu} bytes, {name})");
    if name == "minimum" {
        format!("{line}\nWARNING: Path MTU Discovery may not be enabled.")
    } else {
        line
    }
}

/// What `-v` tells: the version whose output is spoken.
pub fn version(style: Style) -> &'static str {
    match style {
        Style::V2_0 => "iperf version 2.0.5 (08 Jul 2010) pthreads",
        Style::V2_1 => "iperf version 2.1.8 (12 August 2022) pthreads",
    }
}

/// What is told when neither end was asked for.
pub fn usage(program: &str) -> String {
    format!("Usage: {program} [-s|-c host] [options]\nTry `{program} --help' for more information.")
}
