//! From what the library counts to what the schema names.

use std::net::SocketAddr;

use nicpoll_model::iperf::{
    IperfBucket, IperfBuffer, IperfCounts, IperfEndpoint, IperfInterval, IperfServerReport,
    IperfStreamStart, IperfTcpStart, IperfTimes, IperfTotal,
};
use nicpoll_model::{Protocol, Side};
use nicpoll_traffic::SocketBuffer;

use crate::total::Total;
use crate::wire::ServerReport;
use crate::{Connected, Distribution, IntervalRecord};

pub(super) fn stream_start(id: u32, connected: &Connected) -> IperfStreamStart {
    let protocol = match connected.tcp {
        Some(_) => Protocol::Tcp,
        None => Protocol::Udp,
    };
    IperfStreamStart {
        id,
        side: match connected.is_sender {
            true => Side::Sender,
            false => Side::Receiver,
        },
        direction: connected.direction,
        protocol,
        local: endpoint(connected.local),
        peer: endpoint(connected.peer),
        socket_buffer: buffer(&connected.buffer),
        tcp: connected.tcp.map(|tcp| IperfTcpStart {
            mss_bytes: tcp.segment_bytes,
            congestion_window_bytes: window_bytes(
                tcp.congestion_window_segments,
                tcp.segment_bytes,
            ),
            round_trip_seconds: tcp.round_trip.as_secs_f64(),
            connect_seconds: tcp.connecting.map(|time| time.as_secs_f64()),
        }),
    }
}

pub(super) fn interval(
    id: u32,
    side: Side,
    protocol: Protocol,
    record: &IntervalRecord,
) -> IperfInterval {
    IperfInterval {
        id,
        side,
        is_partial: record.is_partial,
        counts: counts(side, protocol, record),
    }
}

pub(super) fn total(id: u32, side: Side, protocol: Protocol, total: &Total) -> IperfTotal {
    let detail = &total.detail;
    IperfTotal {
        id,
        side,
        counts: counts(side, protocol, &detail.whole),
        close_seconds: detail.close_seconds,
        socket_buffer: buffer(&detail.buffer),
        gaps: detail.gaps.as_deref().map(times),
        one_way_delay: detail.one_way_delays.as_deref().map(times),
        server_report: total.server_report.as_ref().map(server_report),
    }
}

pub(super) fn counts(side: Side, protocol: Protocol, record: &IntervalRecord) -> IperfCounts {
    let seconds = record.end - record.start;
    let is_sender = side == Side::Sender;
    let (is_tcp, is_udp) = (protocol == Protocol::Tcp, protocol == Protocol::Udp);
    let receipt = record.receipt;
    IperfCounts {
        start_seconds: record.start,
        end_seconds: record.end,
        bytes: record.bytes,
        bits_per_second: per_second(8.0 * record.bytes as f64, seconds),
        datagrams: is_udp.then_some(record.datagrams),
        datagrams_per_second: per_second(record.datagrams as f64, seconds).filter(|_| is_udp),
        calls: record.calls.done,
        refused_calls: is_sender.then_some(record.calls.refused),
        reads_by_eighth: (is_tcp && !is_sender).then(|| record.calls.read_sizes.to_vec()),
        retransmitted_segments: record.tcp.map(|tcp| tcp.retransmitted_segments),
        mss_bytes: record.tcp.map(|tcp| tcp.segment_bytes),
        congestion_window_bytes: record
            .tcp
            .map(|tcp| window_bytes(tcp.congestion_window_segments, tcp.segment_bytes)),
        round_trip_seconds: record.tcp.map(|tcp| tcp.round_trip.as_secs_f64()),
        round_trip_variation_seconds: record.tcp.map(|tcp| tcp.round_trip_variation.as_secs_f64()),
        expected_datagrams: receipt.map(|receipt| receipt.expected),
        lost_datagrams: receipt.map(|receipt| receipt.lost),
        loss_ratio: receipt
            .filter(|receipt| receipt.expected > 0)
            .map(|receipt| receipt.lost as f64 / receipt.expected as f64),
        out_of_order_datagrams: receipt.map(|receipt| receipt.out_of_order),
        duplicate_datagrams: receipt.map(|receipt| receipt.duplicates),
        jitter_seconds: receipt.and_then(|receipt| receipt.jitter_seconds),
    }
}

fn per_second(count: f64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| count / seconds)
}

fn window_bytes(segments: u32, segment_bytes: u32) -> u64 {
    u64::from(segments) * u64::from(segment_bytes)
}

fn endpoint(address: SocketAddr) -> IperfEndpoint {
    IperfEndpoint {
        address: address.ip().to_string(),
        port: address.port(),
    }
}

fn buffer(buffer: &SocketBuffer) -> IperfBuffer {
    IperfBuffer {
        asked_bytes: buffer.asked_bytes,
        granted_bytes: buffer.granted_bytes,
    }
}

fn times(times: &Distribution) -> IperfTimes {
    let seconds = |ns: u64| ns as f64 / 1e9;
    IperfTimes {
        samples: times.count,
        zero_samples: times.zeros,
        min_seconds: seconds(times.min_ns),
        mean_seconds: times.mean_ns / 1e9,
        p50_seconds: seconds(times.p50_ns),
        p90_seconds: seconds(times.p90_ns),
        p99_seconds: seconds(times.p99_ns),
        p999_seconds: seconds(times.p999_ns),
        max_seconds: seconds(times.max_ns),
        buckets: times
            .buckets
            .iter()
            .map(|bucket| IperfBucket {
                below_seconds: seconds(bucket.below_ns),
                samples: bucket.count,
            })
            .collect(),
    }
}

fn server_report(report: &ServerReport) -> IperfServerReport {
    let elapsed_seconds = report.elapsed.as_secs_f64();
    IperfServerReport {
        side: Side::Receiver,
        elapsed_seconds,
        bytes: report.bytes,
        bits_per_second: per_second(8.0 * report.bytes as f64, elapsed_seconds),
        expected_datagrams: report.datagrams,
        lost_datagrams: report.lost,
        out_of_order_datagrams: report.out_of_order,
        jitter_seconds: report.jitter.as_secs_f64(),
    }
}
