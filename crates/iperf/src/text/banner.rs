//! The settings, between two rules, before a test.

use nicpoll_model::Protocol;

use super::units::amount;
use super::{Format, Style, printable};

/// What stands before and after the settings.
const RULE: &str = "------------------------------------------------------------";
/// Bins of the distribution of read sizes.
const READ_BINS: u64 = 8;

/// A socket buffer's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// As the kernel reports it: on Linux twice what was asked for.
    pub actual_bytes: u64,
    /// As `-w` asked, if it did.
    pub requested_bytes: Option<u64>,
}

/// What is said of the maximum segment size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mss {
    /// The socket's own (`-m`).
    Current(u32),
    /// The one asked for (`-M`).
    Requested(u32),
}

/// What a server tells before it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerBanner<'a> {
    /// What it listens for.
    pub protocol: Protocol,
    /// Where it listens.
    pub port: u16,
    /// The last port of a range (`-p first-last`), of which `port` is the first.
    pub last_port: Option<u16>,
    /// The local address asked for with `-B`; style 2.1 tells it only in enhanced output.
    pub bind: Option<&'a str>,
    /// The multicast group to join.
    pub group: Option<&'a str>,
    /// Bytes of one read, of one datagram at most for UDP.
    pub read_bytes: u64,
    /// The maximum segment size, for `-m` and `-M`; style 2.1 only.
    pub mss: Option<Mss>,
    /// The type-of-service byte asked for (`-S`); style 2.1 only.
    pub type_of_service: Option<u8>,
    /// The receive buffer.
    pub window: Window,
    /// Whether more is told (`-e`); style 2.1 only.
    pub is_enhanced: bool,
    /// This process, told with `-e` and with a range of ports; style 2.1 only.
    pub pid: u32,
}

/// What a client tells before it sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientBanner<'a> {
    /// What it connects with.
    pub protocol: Protocol,
    /// The server as the user wrote it.
    pub host: &'a str,
    /// The server's port.
    pub port: u16,
    /// The local address asked for with `-B`; style 2.0 only.
    pub bind: Option<&'a str>,
    /// Bytes of one write, of one datagram for UDP.
    pub write_bytes: u64,
    /// Microseconds from one datagram to the next; style 2.1 only.
    pub gap_micros: f64,
    /// Hops a multicast datagram may take; style 2.0 only.
    pub multicast_ttl: Option<u32>,
    /// Bits a second that the socket is paced to (`--fq-rate`), if it is.
    pub pacing_bps: Option<u64>,
    /// The maximum segment size, for `-m` and `-M`; style 2.1 only.
    pub mss: Option<Mss>,
    /// The send buffer.
    pub window: Window,
    /// What enhanced output (`-e`) adds; style 2.1 only.
    pub enhanced: Option<ClientEnhanced>,
}

/// What enhanced output adds to a client's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientEnhanced {
    /// This process.
    pub pid: u32,
    /// Streams in parallel.
    pub flows: u32,
    /// The type-of-service byte.
    pub tos: u8,
    /// Whether small segments leave at once.
    pub has_nodelay: bool,
}

/// A server's settings.
pub fn server_banner(format: Format, banner: &ServerBanner) -> String {
    let style = format.style;
    let is_enhanced = banner.is_enhanced && style == Style::V2_1;
    let mut lines = vec![String::from(RULE)];
    let (protocol, port) = (banner.protocol.name(), banner.port);
    let mut first = match banner.last_port {
        Some(last) => format!("Server listening on {protocol} ports {port}-{last}"),
        None => format!("Server listening on {protocol} port {port}"),
    };
    if is_enhanced || banner.last_port.is_some() && style == Style::V2_1 {
        first += &format!(" with pid {}", banner.pid);
    }
    lines.push(first);
    if let Some(address) = banner.bind
        && (style == Style::V2_0 || is_enhanced)
    {
        lines.push(bind_line(address));
    }
    if let Some(group) = banner.group {
        lines.push(format!("Joining multicast group  {group}"));
    }
    if style == Style::V2_0 && banner.protocol == Protocol::Udp {
        lines.push(format!("Receiving {} byte datagrams", banner.read_bytes));
    }
    if is_enhanced {
        lines.push(format!(
            "Read buffer size: {} (Dist bin width={})",
            size(format, banner.read_bytes),
            amount(style, (banner.read_bytes / READ_BINS) as f64, 'A'),
        ));
    }
    lines.extend(mss_line(style, banner.mss));
    if let Some(tos) = banner.type_of_service.filter(|tos| *tos != 0)
        && style == Style::V2_1
    {
        lines.push(format!("TOS will be set to {tos:#x}"));
    }
    lines.push(window_line(format, banner.protocol, banner.window));
    lines.push(String::from(RULE));
    lines.join("\n")
}

/// A client's settings.
pub fn client_banner(format: Format, banner: &ClientBanner) -> String {
    let style = format.style;
    let enhanced = banner.enhanced.filter(|_| style == Style::V2_1);
    let mut lines = vec![String::from(RULE)];
    let protocol = banner.protocol.name();
    let mut first = format!(
        "Client connecting to {}, {protocol} port {}",
        banner.host, banner.port
    );
    if let Some(enhanced) = enhanced {
        first += &format!(" with pid {} ({} flows)", enhanced.pid, enhanced.flows);
    }
    lines.push(first);
    if let Some(address) = banner.bind
        && style == Style::V2_0
    {
        lines.push(bind_line(address));
    }
    if enhanced.is_some() && banner.protocol == Protocol::Tcp {
        let size = amount(style, banner.write_bytes as f64, 'B');
        lines.push(format!("Write buffer size: {size}"));
    }
    if let Some(pacing_bps) = banner.pacing_bps {
        let rate = amount(style, pacing_bps as f64 / 8.0, 'a');
        lines.push(format!("fair-queue socket pacing set to {rate}/s"));
    }
    lines.extend(mss_line(style, banner.mss));
    lines.extend(enhanced.map(tos_line));
    if banner.protocol == Protocol::Udp {
        lines.push(sending_line(style, banner));
    }
    if let Some(ttl) = banner.multicast_ttl
        && style == Style::V2_0
    {
        lines.push(format!("Setting multicast TTL to {ttl}"));
    }
    lines.push(window_line(format, banner.protocol, banner.window));
    lines.push(String::from(RULE));
    lines.join("\n")
}

fn bind_line(address: &str) -> String {
    format!("Binding to local address {address}")
}

fn tos_line(enhanced: ClientEnhanced) -> String {
    let nagle = if enhanced.has_nodelay {
        "and nodelay (Nagle off)"
    } else {
        "(Nagle on)"
    };
    format!("TOS set to {:#x} {nagle}", enhanced.tos)
}

fn sending_line(style: Style, banner: &ClientBanner) -> String {
    let sending = format!("Sending {} byte datagrams", banner.write_bytes);
    match style {
        Style::V2_0 => sending,
        Style::V2_1 => {
            let gap = printable(banner.gap_micros);
            format!("{sending}, IPG target: {gap:.2} us (kalman adjust)")
        }
    }
}

/// Style 2.0 tells the segment size at the end instead: see [`mss_lines`](super::mss_lines).
fn mss_line(style: Style, mss: Option<Mss>) -> Option<String> {
    match (style, mss?) {
        (Style::V2_0, _) => None,
        (Style::V2_1, Mss::Current(bytes)) => Some(format!("MSS size {bytes} bytes")),
        (Style::V2_1, Mss::Requested(bytes)) => {
            Some(format!("MSS req size {bytes} bytes (per TCP_MAXSEG)"))
        }
    }
}

fn window_line(format: Format, protocol: Protocol, window: Window) -> String {
    let name = match protocol {
        Protocol::Tcp => "TCP window size",
        Protocol::Udp => "UDP buffer size",
    };
    let remark = match window.requested_bytes {
        None => String::from(" (default)"),
        Some(requested) if requested == window.actual_bytes => String::new(),
        Some(requested) => format!(" (WARNING: requested {})", size(format, requested)),
    };
    format!("{name}: {}{remark}", size(format, window.actual_bytes))
}

/// A buffer's size in the unit asked for, though always in bytes.
fn size(format: Format, bytes: u64) -> String {
    amount(
        format.style,
        bytes as f64,
        format.letter.to_ascii_uppercase(),
    )
}
