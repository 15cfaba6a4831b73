//! The lines of `-e`, held against what 2.1.8 printed. It counts packets a second by the gaps between
//! them, so that its figure may differ by one from that of the interval.

use std::time::Duration;

use nicpoll_iperf::text::*;
use nicpoll_iperf::{Bucket, Calls, Distribution, TcpState, Transit};

const V2_1: Format = Format {
    style: Style::V2_1,
    letter: 'a',
};
const FIRST: StreamId = StreamId {
    number: 1,
    is_reversed: false,
};

fn interval(start_seconds: f64, end_seconds: f64, bytes: u64) -> Interval {
    Interval {
        start_seconds,
        end_seconds,
        bytes,
    }
}

fn calls(done: u64) -> Calls {
    Calls {
        done,
        ..Calls::default()
    }
}

fn tcp(retransmitted_segments: u64, segments: u32, rtt_us: u64, variation_us: u64) -> TcpState {
    TcpState {
        retransmitted_segments,
        segment_bytes: 32_741,
        congestion_window_segments: segments,
        round_trip: Duration::from_micros(rtt_us),
        round_trip_variation: Duration::from_micros(variation_us),
    }
}

#[test]
fn headers_are_the_original_s() {
    for (header, line) in [
        (
            EnhancedHeader::TcpSender,
            "[ ID] Interval            Transfer    Bandwidth       Write/Err  Rtry     \
             Cwnd/RTT(var)        NetPwr",
        ),
        (
            EnhancedHeader::TcpReceiver,
            "[ ID] Interval            Transfer    Bandwidth       Reads=Dist",
        ),
        (
            EnhancedHeader::UdpSender,
            "[ ID] Interval            Transfer     Bandwidth      Write/Err  PPS",
        ),
        (
            EnhancedHeader::UdpReceiver,
            "[ ID] Interval            Transfer     Bandwidth        Jitter   Lost/Total  \
             Latency avg/min/max/stdev PPS  Rx/inP  NetPwr",
        ),
    ] {
        assert_eq!(enhanced_header(header), line);
    }
}

#[test]
fn a_tcp_sender_tells_writes_window_round_trip_and_power() {
    let line = tcp_sender_line(
        V2_1,
        FIRST,
        &interval(0.0, 0.5, 50_069_564),
        &calls(382),
        &tcp(0, 28, 438, 585),
    );
    assert_eq!(
        line,
        "[  1] 0.0000-0.5000 sec  47.8 MBytes   801 Mbits/sec  382/0          0      \
         895K/438(585) us  228628"
    );
    let line = tcp_sender_line(
        V2_1,
        FIRST,
        &interval(0.5, 1.0, 49_938_432),
        &calls(381),
        &tcp(1, 24, 60, 5),
    );
    assert_eq!(
        line,
        "[  1] 0.5000-1.0000 sec  47.6 MBytes   799 Mbits/sec  381/0          1      \
         767K/60(5) us  1664614"
    );
    let sum = tcp_sender_sum_line(
        V2_1,
        Label::Sum,
        &interval(0.0, 0.5, 10_223_616),
        &calls(78),
        0,
    );
    assert_eq!(
        sum,
        "[SUM] 0.0000-0.5000 sec  9.75 MBytes   164 Mbits/sec  78/0         0"
    );
}

#[test]
fn power_has_as_many_digits_as_it_needs_and_none_without_a_wait() {
    let power = |rtt_us| {
        let interval = interval(0.0, 1.0, 1_000_000);
        let line = tcp_sender_line(V2_1, FIRST, &interval, &calls(1), &tcp(0, 1, rtt_us, 0));
        String::from(line.rsplit("us  ").next().unwrap())
    };
    assert_eq!(power(1_000), "1000");
    assert_eq!(power(20_000), "50.00");
    assert_eq!(power(1_000_000), "1.000000");
    assert_eq!(power(0), "NAN");
}

#[test]
fn a_tcp_receiver_tells_how_its_reads_were_filled() {
    let calls = Calls {
        done: 453,
        refused: 0,
        read_sizes: [65, 0, 1, 10, 0, 1, 0, 376],
    };
    let line = |label| tcp_receiver_line(V2_1, label, &interval(0.0, 0.5, 50_069_564), &calls);
    assert_eq!(
        line(Label::Stream(FIRST)),
        "[  1] 0.0000-0.5000 sec  47.8 MBytes   801 Mbits/sec  453=65:0:1:10:0:1:0:376"
    );
    assert_eq!(
        line(Label::Sum),
        "[SUM] 0.0000-0.5000 sec  47.8 MBytes   801 Mbits/sec  453=65:0:1:10:0:1:0:376"
    );
}

#[test]
fn a_udp_sender_tells_writes_and_datagrams_a_second() {
    let interval = interval(0.0, 1.0207, 136_710);
    let line = |label| udp_sender_line(V2_1, label, &interval, &calls(92), 94);
    assert_eq!(
        line(Label::Stream(FIRST)),
        "[  1] 0.0000-1.0207 sec   134 KBytes  1.07 Mbits/sec  92/0       92 pps"
    );
    assert_eq!(
        line(Label::Sum),
        "[SUM] 0.0000-1.0207 sec   134 KBytes  1.07 Mbits/sec  92/0       92 pps"
    );
}

fn receipt(lost: i64, total: u64) -> ReceiptFigures {
    ReceiptFigures {
        jitter_ms: 0.003,
        lost,
        total,
        out_of_order: 0,
    }
}

#[test]
fn a_udp_receiver_tells_times_of_transit_and_what_is_on_its_way() {
    let transit = Transit {
        datagrams: 45,
        mean_seconds: 24.22e-6,
        min_seconds: 6e-6,
        max_seconds: 31e-6,
        deviation_seconds: 7e-6,
    };
    let line = |transit: Option<&Transit>| {
        let interval = interval(0.5, 1.0, 66_150);
        udp_receiver_line(V2_1, FIRST, &interval, &receipt(0, 45), 45, transit)
    };
    let plain = "[  1] 0.5000-1.0000 sec  64.6 KBytes  1.06 Mbits/sec   0.003 ms 0/45 (0%)";
    assert_eq!(
        line(Some(&transit)),
        format!("{plain} 0.024/0.006/0.031/0.007 ms 90 pps 45/0(0) pkts 5462")
    );
    // Little's law: 90 a second that take 50 ms each are 4.5 at a time.
    let slow = Transit {
        mean_seconds: 0.05,
        deviation_seconds: 0.02,
        ..transit
    };
    assert!(line(Some(&slow)).contains(" 45/5(2) pkts "));
    let dashes = format!("{plain} -/-/-/- ms 90 pps");
    for min_seconds in [-0.011, 60.1] {
        let foreign = Transit {
            min_seconds,
            ..transit
        };
        assert_eq!(line(Some(&foreign)), dashes);
    }
    assert_eq!(line(None), dashes);
    let sum = udp_receiver_sum_line(
        V2_1,
        Label::Sum,
        &interval(0.5, 1.0, 132_300),
        &receipt(0, 90),
        90,
    );
    assert_eq!(
        sum,
        "[SUM] 0.5000-1.0000 sec   129 KBytes  2.12 Mbits/sec  0/90      180 pps"
    );
}

#[test]
fn connect_times_are_told_once_there_are_some() {
    assert_eq!(connect_times_line(&[], 2), None);
    assert_eq!(
        connect_times_line(&[0.000_019, 0.000_254], 1).unwrap(),
        "[ CT] final connect times (min/avg/max/stdev) = 0.019/0.137/0.254/0.166 ms (tot/err) = 3/1"
    );
    assert!(
        connect_times_line(&[0.001], 0)
            .unwrap()
            .contains("/0.000 ms (tot/err) = 1/0")
    );
}

#[test]
fn gaps_have_a_line_of_their_own() {
    let gaps = Distribution {
        count: 4999,
        zeros: 4500,
        min_ns: 0,
        mean_ns: 100_000.0,
        max_ns: 1_250_000,
        p50_ns: 0,
        p90_ns: 0,
        p99_ns: 1_000_000,
        p999_ns: 1_100_000,
        buckets: vec![Bucket {
            below_ns: 1000,
            count: 4500,
        }],
    };
    assert_eq!(
        gaps_line(Style::V2_0, FIRST, &gaps),
        "[  1] Gaps min/mean/p50/p99/max = 0.000/0.100/0.000/1.000/1.250 ms (4500 of 4999 are 0)"
    );
}
