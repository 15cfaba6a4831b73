//! What a UDP client tells the server with every datagram.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nicpoll_model::RateUnit;

use super::PAYLOAD_BYTES_DEFAULT;
use crate::config::{ClientConfig, StreamConfig};
use crate::pace::Amount;
use crate::wire::datagram::{
    CLIENT_HEADER_OFFSET, PAYLOAD_BYTES_MIN, SHARED_CLOCK_BYTES_MIN, mark_shared_clock,
};
use crate::wire::{ClientHeader, Dialect, upper_flags};

/// A datagram header and a client header.
const OPENING_BYTES_MIN: usize = CLIENT_HEADER_OFFSET + ClientHeader::BYTES;

fn header(config: &ClientConfig) -> ClientHeader {
    let stream = &config.stream;
    let (rate, rate_flags) = header_rate(stream);
    let port = config.peer.port();
    let mut header = match stream.dialect {
        Dialect::V2_0_2 => ClientHeader::for_udp_v2_0_5(port, stream.amount, rate),
        Dialect::V2_0_8 => ClientHeader::for_udp_v2_0_8(port, stream.amount, rate),
        _ => ClientHeader::for_udp(port, stream.amount, rate),
    };
    header.threads = stream.streams;
    if stream.length_bytes != PAYLOAD_BYTES_DEFAULT {
        header.buffer_bytes = stream.length_bytes.try_into().unwrap_or(u32::MAX);
    }
    header.ask_for(stream.directions);
    if let Some(rate) = stream.pacing_bytes_per_second
        && header.extension.is_some()
    {
        header.pace(rate);
    }
    if let Some(extension) = &mut header.extension {
        extension.upper_flags |= rate_flags;
        extension.type_of_service = stream.socket.type_of_service.unwrap_or(0).into();
    }
    header
}

/// The rate as the header states it: in bits where the dialect knows no others, and where there is no
/// whole number of packets.
fn header_rate(stream: &StreamConfig) -> (u64, u16) {
    let Some(rate) = stream.rate else {
        return (0, 0);
    };
    let whole = rate.whole_per_second();
    match whole.filter(|_| rate.unit() == RateUnit::PacketsPerSecond) {
        Some(packets) if !matches!(stream.dialect, Dialect::V2_0_2 | Dialect::V2_0_8) => {
            (packets, upper_flags::RATE_IN_PACKETS)
        }
        _ => (rate.bits_of(8 * stream.length_bytes as u64), 0),
    }
}

/// How long the test takes, if that was asked for.
pub(super) fn duration(stream: &StreamConfig) -> Option<Duration> {
    match stream.amount {
        Amount::Time(duration) => Some(duration),
        Amount::Bytes(_) => None,
    }
}

/// The least payload that holds the headers, and a byte of what comes from elsewhere.
pub(super) fn least_payload_bytes(stream: &StreamConfig) -> usize {
    match stream.has_shared_clock {
        true => SHARED_CLOCK_BYTES_MIN,
        false => PAYLOAD_BYTES_MIN + usize::from(stream.input.is_some()),
    }
}

/// What each datagram carries, but for its own header.
pub(super) fn payload(config: &ClientConfig) -> Vec<u8> {
    payload_of(config, config.stream.length_bytes)
}

/// What the first datagram carries. As with 2.1.8 it is long enough for the client header, of which
/// shorter ones have no more than their beginning.
pub(super) fn opening(config: &ClientConfig) -> Vec<u8> {
    let stream = &config.stream;
    let has_extension = stream.has_header && stream.dialect == Dialect::V2_1;
    let least_bytes = match (has_extension, stream.pacing_bytes_per_second) {
        (false, _) => 0,
        (true, None) => OPENING_BYTES_MIN,
        (true, Some(_)) => CLIENT_HEADER_OFFSET + ClientHeader::BYTES_MAX,
    };
    payload_of(config, stream.length_bytes.max(least_bytes))
}

fn payload_of(config: &ClientConfig, length_bytes: usize) -> Vec<u8> {
    let stream = &config.stream;
    let mut payload = vec![0; length_bytes];
    stream
        .dialect
        .prepare_payload(&mut payload, &header(config));
    if !stream.has_header {
        let offset = stream.dialect.client_header_offset();
        let place = payload.iter_mut().skip(offset);
        place.take(ClientHeader::BYTES).for_each(|byte| *byte = 0);
    } else if stream.has_shared_clock {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        mark_shared_clock(&mut payload, now.unwrap_or_default());
    }
    payload
}
