//! The settings that are told before a test: of whoever listens, and of whoever connects.

use nicpoll_model::{Protocol, Rate};

use crate::Connected;
use crate::options::{ClientOptions, Common};
use crate::text::{self, ClientBanner, ClientEnhanced, Format, Mss, ServerBanner, Window};

use super::gap_micros;

/// The segment that a socket has until it is connected (RFC 9293, section 3.7.1).
const UNCONNECTED_SEGMENT_BYTES: u32 = 536;

/// What a listener tells: a server's, or that of a client to which the server connects back. `last_port`
/// is that of a range.
pub fn of_listener(
    common: &Common,
    port: u16,
    last_port: Option<u16>,
    granted_bytes: u64,
) -> String {
    let is_tcp = common.stream.protocol == Protocol::Tcp;
    text::server_banner(
        Format::of(common),
        &ServerBanner {
            protocol: common.stream.protocol,
            port,
            last_port,
            bind: common.bind.as_ref().map(|bind| bind.address.as_str()),
            group: None,
            read_bytes: common.stream.length_bytes as u64,
            mss: mss(common, UNCONNECTED_SEGMENT_BYTES).filter(|_| is_tcp),
            type_of_service: common.stream.socket.type_of_service,
            window: window(common, granted_bytes),
            is_enhanced: common.enhanced,
            pid: std::process::id(),
        },
    )
}

/// What a client tells.
pub fn of_client(options: &ClientOptions, connected: &Connected) -> String {
    let common = &options.common;
    let bind = common.bind.as_ref().map(|bind| bind.address.as_str());
    text::client_banner(
        Format::of(common),
        &ClientBanner {
            bind,
            gap_micros: gap_micros(common.stream.rate, common.stream.length_bytes),
            enhanced: common.enhanced.then(|| ClientEnhanced {
                pid: std::process::id(),
                flows: common.stream.streams,
                tos: common.stream.socket.type_of_service.unwrap_or(0),
                has_nodelay: common.stream.no_delay,
            }),
            ..connecting(common, &options.host, common.port, connected)
        },
    )
}

/// What a server tells that connects back to a client, at a rate over UDP.
pub fn of_way_back(
    common: &Common,
    connected: &Connected,
    write_bytes: usize,
    rate: Option<Rate>,
) -> String {
    let host = connected.peer.ip().to_canonical().to_string();
    let port = connected.peer.port();
    text::client_banner(
        Format::of(common),
        &ClientBanner {
            write_bytes: write_bytes as u64,
            gap_micros: gap_micros(rate, write_bytes),
            ..connecting(common, &host, port, connected)
        },
    )
}

fn connecting<'a>(
    common: &Common,
    host: &'a str,
    port: u16,
    connected: &Connected,
) -> ClientBanner<'a> {
    ClientBanner {
        protocol: common.stream.protocol,
        host,
        port,
        bind: None,
        write_bytes: common.stream.length_bytes as u64,
        gap_micros: 0.0,
        multicast_ttl: None,
        pacing_bps: common.stream.pacing_bytes_per_second.map(|bytes| 8 * bytes),
        mss: connected.tcp.and_then(|tcp| mss(common, tcp.segment_bytes)),
        window: window(common, connected.buffer.granted_bytes),
        enhanced: None,
    }
}

/// What is told of the segment size: the one that was asked for (-M), or with -m the socket's own.
fn mss(common: &Common, own_bytes: u32) -> Option<Mss> {
    match common.stream.max_segment_bytes {
        Some(bytes) => Some(Mss::Requested(bytes.into())),
        None => common.print_mss.then_some(Mss::Current(own_bytes)),
    }
}

fn window(common: &Common, granted_bytes: u64) -> Window {
    Window {
        actual_bytes: granted_bytes,
        requested_bytes: common.stream.buffer_bytes.map(|bytes| bytes as u64),
    }
}
