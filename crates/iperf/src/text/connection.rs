//! The line that names both ends of a stream.

use std::net::SocketAddr;

use nicpoll_model::iperf::Direction;

use super::{Label, StreamId, Style, Timestamp, printable};
use crate::observer::Remarks;

/// What the kernel knows of a TCP connection right after it opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialTcp {
    /// Segments the sender may have under way.
    pub window_segments: u32,
    /// Bytes of a segment.
    pub mss_bytes: u32,
    /// Round-trip time in microseconds.
    pub rtt_micros: u32,
}

/// What enhanced output (`-e`) adds to a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionEnhanced<'a> {
    /// The interface of the local address.
    pub device: Option<&'a str>,
    /// The socket's descriptor.
    pub socket: u32,
    /// How long connecting took, for a TCP client.
    pub connect_ms: Option<f64>,
    /// When the stream was opened.
    pub opened: Timestamp,
    /// The name of the zone that time is in.
    pub zone: &'a str,
}

/// Both ends of a stream, and what is remarked of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connection<'a> {
    /// The stream.
    pub id: StreamId,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// Which way data flow; style 2.1 only.
    pub direction: Direction,
    /// Whether this end sends.
    pub is_sender: bool,
    /// Whether the sender ends a UDP stream without telling; style 2.1 only.
    pub has_no_fin: bool,
    /// What else is remarked; style 2.1 only.
    pub remarks: Remarks,
    /// How a TCP connection starts; style 2.1 only.
    pub tcp: Option<InitialTcp>,
    /// What enhanced output adds; style 2.1 only.
    pub enhanced: Option<ConnectionEnhanced<'a>>,
}

/// `[  3] local 10.99.0.1 port 43254 connected with 10.99.0.2 port 5001`, and the remarks.
pub fn connection_line(style: Style, connection: &Connection) -> String {
    let enhanced = connection.enhanced.filter(|_| style == Style::V2_1);
    let device = enhanced
        .and_then(|enhanced| enhanced.device)
        .map_or_else(String::new, |device| format!("%{device}"));
    let mut line = format!(
        "{} local {}{device} port {} connected with {} port {}",
        Label::Stream(connection.id).text(style),
        connection.local.ip(),
        connection.local.port(),
        connection.peer.ip(),
        connection.peer.port(),
    );
    if style == Style::V2_1 {
        line += &remarks(connection);
    }
    line
}

/// What style 2.1 remarks, in its order.
fn remarks(connection: &Connection) -> String {
    let mut text = String::from(match connection.direction {
        Direction::Forward => "",
        Direction::Reverse => " (reverse)",
        Direction::FullDuplex => " (full-duplex)",
    });
    if connection.remarks.is_paced && connection.direction == Direction::Reverse {
        text += " (fq)";
    }
    if connection.has_no_fin {
        text += " (no-udp-fin)";
    }
    if let Some(enhanced) = &connection.enhanced {
        text += &format!(" (sock={})", enhanced.socket);
    }
    text += &service_remark(connection);
    if let Some(version) = connection.remarks.peer_version {
        text += &format!(" (peer {version})");
    }
    if let Some(tcp) = connection.tcp {
        text += &format!(
            " (icwnd/mss/irtt={}/{}/{})",
            // Both are 32 bits wide, so their product is no wider than 64.
            u64::from(tcp.window_segments) * u64::from(tcp.mss_bytes) / 1024,
            tcp.mss_bytes,
            tcp.rtt_micros
        );
    }
    if let Some(enhanced) = &connection.enhanced {
        if let Some(connect_ms) = enhanced.connect_ms {
            text += &format!(" (ct={:.2} ms)", printable(connect_ms));
        }
        let opened = time_of_day(enhanced.opened);
        text += &format!(" on {opened} ({})", enhanced.zone);
    }
    text
}

/// The type of service as 2.1.8 tells it: of what it sends only to a client that asked with -R, which has
/// the server send with it.
fn service_remark(connection: &Connection) -> String {
    let tos = connection.remarks.type_of_service;
    match connection.direction {
        _ if tos == 0 => String::new(),
        Direction::FullDuplex => format!(" (tos rx/tx={tos:#x}/{tos:#x})"),
        Direction::Reverse if !connection.is_sender => format!(" (tos tx={tos:#x})"),
        Direction::Forward | Direction::Reverse => format!(" (tos rx={tos:#x})"),
    }
}

/// `2026-11-21 04:44:37`.
fn time_of_day(time: Timestamp) -> String {
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        time.year, time.month, time.day, time.hour, time.minute, time.second
    )
}
