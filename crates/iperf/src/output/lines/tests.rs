//! Lines compared with those that the originals printed.

use std::time::Duration;

use nicpoll_model::traffic::IperfTcpStart;
use nicpoll_sys::socket::TcpInfo;
use nicpoll_testkit::golden;
use proptest::prelude::*;

use super::*;
use crate::options::{Parsed, parse};
use crate::records::{Remarks, Transit};
use crate::wire::Version;

const V2_0: Format = Format {
    style: Style::V2_0,
    letter: 'a',
};
const V2_1: Format = Format {
    style: Style::V2_1,
    letter: 'a',
};

fn with_letter(style: Style, letter: char) -> Format {
    Format { style, letter }
}

fn until(end: f64, bytes: u64) -> IntervalRecord {
    IntervalRecord {
        bytes,
        end,
        ..IntervalRecord::default()
    }
}

fn interval(start: f64, end: f64, bytes: u64) -> IntervalRecord {
    IntervalRecord {
        start,
        ..until(end, bytes)
    }
}

fn receipt(jitter_ms: f64, lost: i64, expected: u64) -> Receipt {
    Receipt {
        expected,
        lost,
        jitter_seconds: Some(jitter_ms / 1e3),
        ..Receipt::default()
    }
}

/// Two ends, such as `10.99.0.1:1 10.99.0.2:5001`.
fn ends(ends: &str, is_sender: bool) -> Connected {
    let (local, peer) = ends.split_once(' ').unwrap();
    Connected {
        local: local.parse().unwrap(),
        peer: peer.parse().unwrap(),
        direction: Direction::Forward,
        is_sender,
        buffer: buffer(16_384),
        tcp: None,
        remarks: Remarks::default(),
    }
}

fn tcp_start(segments: u32, segment_bytes: u32, rtt_us: u64) -> Option<IperfTcpStart> {
    Some(IperfTcpStart {
        mss_bytes: segment_bytes,
        congestion_window_bytes: u64::from(segments) * u64::from(segment_bytes),
        round_trip_seconds: rtt_us as f64 / 1e6,
        connect_seconds: None,
    })
}

fn over_tcp(is_sender: bool) -> Connected {
    Connected {
        tcp: tcp_start(10, 1448, 23),
        ..ends("10.99.0.1:1 10.99.0.2:5001", is_sender)
    }
}

fn over_udp(is_sender: bool) -> Connected {
    ends("10.99.0.1:1 10.99.0.2:5001", is_sender)
}

fn buffer(granted_bytes: u64) -> SocketBuffer {
    SocketBuffer {
        asked_bytes: None,
        granted_bytes,
    }
}

#[test]
fn amounts_take_four_columns() {
    for (bytes, letter, text) in [
        (180e6 * 1.048576, 'M', " 180 MByte"),
        (3145728.0, 'B', "3145728 Byte"),
        (1023.0, 'A', "1023 Byte"),
        (1024.0, 'A', "1.00 KByte"),
        (10240.0, 'A', "10.0 KByte"),
        (102400.0, 'A', " 100 KByte"),
        (1024000.0, 'A', "1000 KByte"),
        (1048575.0, 'A', "1024 KByte"),
        (3145728.0, 'G', "0.003 GByte"),
        (0.175 * 1073741824.0, 'G', "0.175 GByte"),
        (183467125.0, 'k', "1467737 Kbit"),
        (250e6, 't', "0.002 Tbit"),
        (180e6, 'a', "1.44 Gbit"),
        (131072.0, 'a', "1.05 Mbit"),
        (183.0, 'A', " 183 Byte"),
        (12.0, 'A', "12.0 Byte"),
        (0.0, 'a', "0.000 bit"),
        (1024f64.powi(6), 'A', "1024 PByte"),
        (1024f64.powi(5), 'P', "1.00 PByte"),
        // Decimals change where rounding would widen.
        (0.9994, 'A', "0.999 Byte"),
        (0.9995, 'A', "1.00 Byte"),
        (9.9949, 'A', "9.99 Byte"),
        (9.995, 'A', "10.0 Byte"),
        (99.949, 'A', "99.9 Byte"),
        (99.95, 'A', " 100 Byte"),
        (1023.999, 'A', "1024 Byte"),
        // A half goes to the even neighbour, as C has it.
        (0.125, 'A', "0.125 Byte"),
        (1.125, 'A', "1.12 Byte"),
        (12.25, 'A', "12.2 Byte"),
        (100.5, 'A', " 100 Byte"),
    ] {
        let format = with_letter(Style::V2_1, letter);
        assert_eq!(amount(format, bytes), text, "{bytes} {letter}");
    }
    for (bytes, letter, text) in [
        (0.96 * 1048576.0, 'M', "0.96 MByte"),
        (3145728.0, 'G', "0.00 GByte"),
        (1250000.0, 'g', "0.01 Gbit"),
        (999875.0, 'k', "7999 Kbit"),
        (0.0, 'a', "0.00 bit"),
        (1e12, 'a', "8000 Gbit"),
        (1e12, 't', "8000 Gbit"),
        (1024f64.powi(4), 'P', "1024 GByte"),
    ] {
        let format = with_letter(Style::V2_0, letter);
        assert_eq!(amount(format, bytes), text, "{bytes} {letter}");
    }
}

#[test]
fn one_letter_rules_both_columns() {
    for (letter, text) in [
        ('k', " 10240 KBytes  83886 Kbits/sec"),
        ('K', " 10240 KBytes  10240 KBytes/sec"),
        ('a', " 10.0 MBytes  83.9 Mbits/sec"),
        ('A', " 10.0 MBytes  10.0 MBytes/sec"),
    ] {
        let format = with_letter(Style::V2_1, letter);
        let line = plain(format, Label::Stream(1), &until(1.0, 10_485_760));
        assert_eq!(line, format!("[  1] 0.0000-1.0000 sec {text}"));
    }
    // As 2.1.8 printed with `-f b -n 128K`.
    let format = with_letter(Style::V2_1, 'b');
    assert_eq!(byte_amount(format, 131072), "131072 Byte");
}

#[test]
fn percents_have_two_digits() {
    for (value, text) in [
        (0.0, "0"),
        (0.0584, "0.058"),
        (0.0586, "0.059"),
        (0.117, "0.12"),
        (0.5, "0.5"),
        (1.0, "1"),
        (3.3, "3.3"),
        (9.96, "10"),
        (12.4, "12"),
        (99.4, "99"),
        (99.6, "1e+02"),
        (100.0, "1e+02"),
        (123.0, "1.2e+02"),
        (0.00012, "0.00012"),
        (0.00009999, "0.0001"),
        (0.000012, "1.2e-05"),
        (1e-120, "1e-120"),
        (-0.12, "-0.12"),
        (-0.0, "0"),
        (f64::NAN, "0"),
    ] {
        assert_eq!(two_digits(value), text, "{value}");
    }
    assert_eq!(loss_percent(&receipt(0.0, 0, 0)), 0.0);
}

#[test]
fn old_screens() {
    let reversed = Connected {
        direction: Direction::Reverse,
        tcp: tcp_start(10, 1448, 23),
        ..ends("10.99.0.1:43254 10.99.0.2:5001", true)
    };
    assert_eq!(
        connection(Style::V2_0, Label::Reversed(3), &reversed, true),
        "[  3] local 10.99.0.1 port 43254 connected with 10.99.0.2 port 5001"
    );
    for (label, record, text) in [
        (
            Label::Stream(3),
            until(0.9985, 366_870_912),
            "[  3]  0.0- 1.0 sec   350 MBytes  2.94 Gbits/sec",
        ),
        (
            Label::Sum,
            until(1.0014, 639_631_360),
            "[SUM]  0.0- 1.0 sec   610 MBytes  5.11 Gbits/sec",
        ),
        // No time makes no rate.
        (
            Label::Stream(3),
            until(0.0, 3_145_728),
            "[  3]  0.0- 0.0 sec  3.00 MBytes  0.00 bits/sec",
        ),
    ] {
        assert_eq!(plain(V2_0, label, &record), text);
    }
    let line = plain(V2_0, Label::Sum, &until(10.0, 1));
    assert!(line.starts_with("[SUM]  0.0-10.0 sec  "));

    let first = until(1.0, 849 * 1470);
    for (lost, text) in [(1, "   1/  850 (0.12%)"), (-1, "  -1/  850 (-0.12%)")] {
        assert_eq!(
            received(V2_0, Label::Stream(4), &first, &receipt(0.004, lost, 850)),
            format!("[  4]  0.0- 1.0 sec  1.19 MBytes  9.98 Mbits/sec   0.004 ms {text}")
        );
    }
    let mut late = receipt(0.004, 1, 1700);
    let mut both = until(2.0, 2_499_000);
    both.receipt = Some(late);
    assert_eq!(out_of_order(Style::V2_0, Label::Stream(4), &both), None);
    late.out_of_order = 1;
    both.receipt = Some(late);
    assert_eq!(
        out_of_order(Style::V2_0, Label::Stream(4), &both).unwrap(),
        "[  4]  0.0- 2.0 sec  1 datagrams received out-of-order"
    );
    assert_eq!(
        receiver_sum(V2_0, &first, &late),
        plain(V2_0, Label::Sum, &first)
    );
}

#[test]
fn udp_client_screen() {
    let connected = ends("10.99.0.1:53181 10.99.0.2:5001", true);
    let (style, label) = (Style::V2_1, Label::Stream(1));
    let record = until(2.0016, 1704 * 1470);
    let screen = [
        connection(style, label, &connected, false),
        String::from(PLAIN),
        plain(V2_1, label, &record),
        sent(style, label, 1705),
        server_report(style, label),
        String::from(RECEIVER),
        received(V2_1, label, &record, &receipt(0.0, 0, 1704)),
    ];
    let original = "\
[  1] local 10.99.0.1 port 53181 connected with 10.99.0.2 port 5001
[ ID] Interval       Transfer     Bandwidth
[  1] 0.0000-2.0016 sec  2.39 MBytes  10.0 Mbits/sec
[  1] Sent 1705 datagrams
[  1] Server Report:
[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams
[  1] 0.0000-2.0016 sec  2.39 MBytes  10.0 Mbits/sec   0.000 ms 0/1704 (0%)";
    assert_eq!(screen.join("\n"), original);
    for (record, receipt, text) in [
        (
            until(1.0206, 136_710),
            receipt(0.001, 0, 93),
            "1.0206 sec   134 KBytes  1.07 Mbits/sec   0.001 ms 0/93 (0%)",
        ),
        // The original: `0/0 (-nan%)`.
        (
            until(0.2, 0),
            receipt(6.319, 0, 0),
            "0.2000 sec  0.000 Bytes  0.000 bits/sec   6.319 ms 0/0 (0%)",
        ),
    ] {
        let line = received(V2_1, label, &record, &receipt);
        assert_eq!(line, format!("[  1] 0.0000-{text}"));
    }
    assert_eq!(
        plain(V2_1, label, &until(0.00009, 3_145_728)),
        "[  1] 0.0000-0.0001 sec  3.00 MBytes  0.000 bits/sec"
    );
    let backwards = plain(V2_1, label, &interval(2.0, 1.0, 1));
    assert!(backwards.ends_with("  0.000 bits/sec"));
}

#[test]
fn sums() {
    let megabit = with_letter(Style::V2_1, 'k');
    let record = until(1.0022, 1707 * 1470);
    assert_eq!(
        receiver_sum(megabit, &record, &receipt(0.003, 1, 1708)),
        "[SUM] 0.0000-1.0022 sec  2450 KBytes  20030 Kbits/sec   1/1708 (0.059%)"
    );
    assert_eq!(
        sent(Style::V2_1, Label::SumOf(2), 3410),
        "[SUM-2] Sent 3410 datagrams"
    );
    assert_eq!(
        plain(V2_1, Label::SumOf(2), &until(0.5245, 1_573_000)),
        "[SUM-2] 0.0000-0.5245 sec  1.50 MBytes  24.0 Mbits/sec"
    );
    for (end, bytes, datagrams, text) in [
        (
            1.0207,
            272_000,
            186,
            "[SUM] 0.0000-1.0207 sec   266 KBytes  2.13 Mbits/sec 186     182 pps",
        ),
        (
            1.0021,
            1708 * 1470,
            1708,
            "[SUM] 0.0000-1.0021 sec  2.39 MBytes  20.0 Mbits/sec 1708    1704 pps",
        ),
    ] {
        let record = IntervalRecord {
            datagrams,
            ..until(end, bytes)
        };
        assert_eq!(duplex_sum(V2_1, &record), text);
    }
}

#[test]
fn reversed_streams_are_starred() {
    for (format, label, start) in [
        (V2_1, Label::Reversed(2), "[ *2] 0.0000"),
        (V2_1, Label::Reversed(10), "[*10] 0.0000"),
        (V2_1, Label::Reversed(100), "[*100] 0.0000"),
        (V2_0, Label::Reversed(2), "[  2]  0.0"),
        (V2_0, Label::Stream(1000), "[1000]  0.0"),
    ] {
        assert!(plain(format, label, &until(1.0, 0)).starts_with(start));
    }
}

/// The line of `-e`. 2.1.8 counts packets a second by the gaps between them, and its figure may differ by one
/// from that of the interval.
fn enhanced(label: Label, connected: &Connected, record: &IntervalRecord) -> String {
    data(V2_1, label, connected, record, true).1
}

fn tcp_sender(
    record: IntervalRecord,
    done: u64,
    (again, segments): (u64, u32),
    (rtt_us, variation_us): (u64, u64),
) -> IntervalRecord {
    IntervalRecord {
        calls: Calls {
            done,
            ..Calls::default()
        },
        tcp: Some(TcpInfo {
            retransmitted_segments: again,
            send_segment_bytes: 32_741,
            congestion_window_segments: segments,
            round_trip: Duration::from_micros(rtt_us),
            round_trip_variation: Duration::from_micros(variation_us),
        }),
        ..record
    }
}

#[test]
fn a_tcp_sender_shows_writes_window_round_trip_and_power() {
    let sender = over_tcp(true);
    let first = tcp_sender(interval(0.0, 0.5, 50_069_564), 382, (0, 28), (438, 585));
    assert_eq!(
        enhanced(Label::Stream(1), &sender, &first),
        "[  1] 0.0000-0.5000 sec  47.8 MBytes   801 Mbits/sec  382/0          0      \
         895K/438(585) us  228628"
    );
    let second = tcp_sender(interval(0.5, 1.0, 49_938_432), 381, (1, 24), (60, 5));
    assert_eq!(
        enhanced(Label::Stream(1), &sender, &second),
        "[  1] 0.5000-1.0000 sec  47.6 MBytes   799 Mbits/sec  381/0          1      \
         767K/60(5) us  1664614"
    );
    let sum = tcp_sender(interval(0.0, 0.5, 10_223_616), 78, (0, 1), (1, 1));
    assert_eq!(
        enhanced(Label::Sum, &sender, &sum),
        "[SUM] 0.0000-0.5000 sec  9.75 MBytes   164 Mbits/sec  78/0         0"
    );
    // As many digits of power as it needs, and none without a wait.
    for (rtt_us, power) in [
        (1_000, "1000"),
        (20_000, "50.00"),
        (1_000_000, "1.000000"),
        (0, "NAN"),
    ] {
        let record = tcp_sender(interval(0.0, 1.0, 1_000_000), 1, (0, 1), (rtt_us, 0));
        let line = enhanced(Label::Stream(1), &sender, &record);
        assert_eq!(line.rsplit("us  ").next().unwrap(), power);
    }
}

#[test]
fn receivers_and_udp_senders_show_calls_and_datagrams() {
    let reader = IntervalRecord {
        calls: Calls {
            done: 453,
            refused: 0,
            read_sizes: [65, 0, 1, 10, 0, 1, 0, 376],
        },
        ..interval(0.0, 0.5, 50_069_564)
    };
    let writer = IntervalRecord {
        datagrams: 94,
        calls: Calls {
            done: 92,
            ..Calls::default()
        },
        ..interval(0.0, 1.0207, 136_710)
    };
    for (label, name) in [(Label::Stream(1), "[  1]"), (Label::Sum, "[SUM]")] {
        assert_eq!(
            enhanced(label, &over_tcp(false), &reader),
            format!(
                "{name} 0.0000-0.5000 sec  47.8 MBytes   801 Mbits/sec  453=65:0:1:10:0:1:0:376"
            )
        );
        assert_eq!(
            enhanced(label, &over_udp(true), &writer),
            format!("{name} 0.0000-1.0207 sec   134 KBytes  1.07 Mbits/sec  92/0       92 pps")
        );
    }
}

#[test]
fn a_udp_receiver_shows_times_of_transit_and_what_is_on_its_way() {
    let transit = Transit {
        datagrams: 45,
        mean_seconds: 24.22e-6,
        min_seconds: 6e-6,
        max_seconds: 31e-6,
        deviation_seconds: 7e-6,
    };
    let line = |transit: Option<Transit>| {
        let record = IntervalRecord {
            datagrams: 45,
            receipt: Some(Receipt {
                transit,
                ..receipt(0.003, 0, 45)
            }),
            ..interval(0.5, 1.0, 66_150)
        };
        enhanced(Label::Stream(1), &over_udp(false), &record)
    };
    let plain = "[  1] 0.5000-1.0000 sec  64.6 KBytes  1.06 Mbits/sec   0.003 ms 0/45 (0%)";
    assert_eq!(
        line(Some(transit)),
        format!("{plain} 0.024/0.006/0.031/0.007 ms 90 pps 45/0(0) pkts 5462")
    );
    // Little's law: 90 a second that take 50 ms each are 4.5 at a time.
    let slow = Transit {
        mean_seconds: 0.05,
        deviation_seconds: 0.02,
        ..transit
    };
    assert!(line(Some(slow)).contains(" 45/5(2) pkts "));
    let dashes = format!("{plain} -/-/-/- ms 90 pps");
    for min_seconds in [-0.011, 60.1] {
        let foreign = Transit {
            min_seconds,
            ..transit
        };
        assert_eq!(line(Some(foreign)), dashes);
    }
    assert_eq!(line(None), dashes);
    let sum = IntervalRecord {
        datagrams: 90,
        receipt: Some(receipt(0.003, 0, 90)),
        ..interval(0.5, 1.0, 132_300)
    };
    assert_eq!(
        enhanced(Label::Sum, &over_udp(false), &sum),
        "[SUM] 0.5000-1.0000 sec   129 KBytes  2.12 Mbits/sec  0/90      180 pps"
    );
}

#[test]
fn connect_times_and_gaps_have_lines_of_their_own() {
    assert_eq!(connect_times(&[], 2), None);
    assert_eq!(
        connect_times(&[0.000_019, 0.000_254], 1).unwrap(),
        "[ CT] final connect times (min/avg/max/stdev) = 0.019/0.137/0.254/0.166 ms (tot/err) = 3/1"
    );
    let one = connect_times(&[0.001], 0).unwrap();
    assert!(one.contains("/0.000 ms (tot/err) = 1/0"));
    let spread = IperfTimes {
        samples: 4999,
        zero_samples: 4500,
        min_seconds: 0.0,
        mean_seconds: 1e-4,
        max_seconds: 1.25e-3,
        p50_seconds: 0.0,
        p90_seconds: 0.0,
        p99_seconds: 1e-3,
        p999_seconds: 1.1e-3,
        buckets: Vec::new(),
    };
    assert_eq!(
        gaps(Style::V2_0, Label::Stream(1), &spread),
        "[  1] Gaps min/mean/p50/p99/max = 0.000/0.100/0.000/1.000/1.250 ms (4500 of 4999 are 0)"
    );
}

fn options(args: &str) -> Options {
    match parse(args.split(' ').map(String::from), |_| None) {
        Ok(Parsed::Test(options)) => *options,
        other => panic!("{args}: {other:?}"),
    }
}

/// The settings of an end with these options, without the rules around them.
fn told(args: &str, granted_bytes: u64, segment_bytes: Option<u32>) -> String {
    let options = options(args);
    let connected = Connected {
        buffer: buffer(granted_bytes),
        tcp: segment_bytes.and_then(|bytes| tcp_start(1, bytes, 1)),
        ..over_udp(true)
    };
    let of = match options.is_client() {
        true => Settings::Client(connected),
        false => Settings::Listener(options.port, options.last_port, connected.buffer),
    };
    let text = settings(&options, &of);
    let rule = "-".repeat(60);
    let lines = text.strip_prefix(&format!("{rule}\n")).unwrap();
    let lines = lines.strip_suffix(&format!("\n{rule}")).unwrap();
    lines.replace(&format!("pid {}", std::process::id()), "pid 7")
}

/// Each line by itself was compared with what the originals print.
#[test]
fn settings_are_as_recorded() {
    let mut text = String::new();
    for (args, granted_bytes) in [
        ("-s", 131_072),
        ("-s --style 2.1", 131_072),
        ("-s -u -e -m -B 10.99.0.2", 212_992),
        ("-s -u --style 2.1", 212_992),
        ("-s -e -M 1000 -B 127.0.0.1 --style 2.1", 131_072),
        ("-s -e -m --style 2.1", 131_072),
        ("-s -u -e -w 128K --style 2.1", 262_144),
        ("-s -u -e -f m -l 100 --style 2.1", 1 << 20),
        ("-s -p 5001-5003 -S 0x20 -M 1000 --style 2.1", 131_072),
        ("-s -p 5001-5003 -S 0x20 -M 1000", 131_072),
        ("-c 127.0.0.1", 16_384),
        ("-c 127.0.0.1 --style 2.1", 16_384),
        ("-c 127.0.0.1 -w 128K --style 2.1", 131_072),
        ("-c 127.0.0.1 -f b --style 2.1", 16_384),
        ("-c localhost -u -B 10.99.0.1", 212_992),
        ("-c localhost -u -B 10.99.0.1 --style 2.1", 212_992),
        ("-c 127.0.0.1 -e -l 100 -m -N -w 1000 --style 2.1", 4608),
        ("-c 127.0.0.1 -u -e -b 10m -S 0x10 --style 2.1", 212_992),
        ("-c 127.0.0.1 --fq-rate 100m --style 2.1", 16_384),
    ] {
        let is_of_tcp_client = args.starts_with("-c") && !args.contains("-u");
        let told = told(args, granted_bytes, is_of_tcp_client.then_some(536));
        text += &format!("== {args} ({granted_bytes})\n{told}\n");
    }
    golden("src/output/golden/settings.txt", &text);
}

#[test]
fn connections_are_remarked() {
    let back = Connected {
        direction: Direction::Reverse,
        tcp: tcp_start(10, 1448, 23),
        ..ends("[::ffff:127.0.0.1]:45748 [::ffff:127.0.0.1]:5394", true)
    };
    assert_eq!(
        connection(Style::V2_1, Label::Reversed(2), &back, false),
        "[ *2] local ::ffff:127.0.0.1 port 45748 connected with ::ffff:127.0.0.1 port 5394 \
         (reverse) (icwnd/mss/irtt=14/1448/23)"
    );
    // As both ends of 2.1.8 printed with -S 0x10 and -X, and with --fq-rate.
    for (direction, is_sender, remarks) in [
        (Direction::Forward, true, " (tos rx=0x10)"),
        (Direction::Forward, false, " (tos rx=0x10)"),
        (Direction::Reverse, false, " (reverse) (fq) (tos tx=0x10)"),
        (Direction::Reverse, true, " (reverse) (fq) (tos rx=0x10)"),
        (
            Direction::FullDuplex,
            true,
            " (full-duplex) (no-udp-fin) (tos rx/tx=0x10/0x10)",
        ),
    ] {
        let remarked = Connected {
            remarks: Remarks {
                type_of_service: 0x10,
                is_paced: true,
                peer_version: Some(Version::V2_1_8),
            },
            direction,
            ..ends("127.0.0.1:33150 127.0.0.1:5001", is_sender)
        };
        let has_no_fin = direction == Direction::FullDuplex;
        assert_eq!(
            connection(Style::V2_1, Label::Stream(1), &remarked, has_no_fin),
            format!(
                "[  1] local 127.0.0.1 port 33150 connected with 127.0.0.1 port 5001{remarks} \
                 (peer 2.1.8)"
            )
        );
    }
}

#[test]
fn messages_and_segment_sizes() {
    let refused = "Connection refused";
    for (line, text) in [
        (connect_failed(Style::V2_0, refused), "connect failed: "),
        (connect_failed(Style::V2_1, refused), "tcp connect failed: "),
        (bind_failed(Style::V2_1, refused), "listener bind failed: "),
        (bind_failed(Style::V2_0, refused), "bind failed: "),
    ] {
        assert_eq!(line, format!("{text}{refused}"));
    }
    for (bytes, text) in [
        (1448, "MSS size 1448 bytes (MTU 1500 bytes, ethernet)"),
        (1420, "MSS size 1420 bytes (MTU 1500 bytes, ethernet)"),
        (1460, "MSS size 1460 bytes (MTU 1500 bytes, ethernet)"),
        (
            1461,
            "MSS size 1461 bytes (MTU 1501 bytes, unknown interface)",
        ),
        (4312, "MSS size 4312 bytes (MTU 4352 bytes, FDDI)"),
        (9140, "MSS size 9140 bytes (MTU 9180 bytes, ATM)"),
        (65200, "MSS size 65200 bytes (MTU 65280 bytes, HIPPI)"),
        (
            536,
            "MSS size 536 bytes (MTU 576 bytes, minimum)\n\
             WARNING: Path MTU Discovery may not be enabled.",
        ),
        (
            0,
            "MSS and MTU size unknown (TCP_MAXSEG not supported by OS?)",
        ),
    ] {
        assert_eq!(
            segment_size(Label::Stream(3), bytes),
            format!("[  3] {text}")
        );
    }
    assert!(segment_size(Label::Stream(3), u32::MAX).ends_with("unknown interface)"));
}

/// A row at the time of the first one that 2.0.5 printed.
fn row(args: &str, row: Row, connected: &Connected, record: &IntervalRecord) -> String {
    let time = jiff::civil::date(2026, 11, 20).at(21, 38, 40, 38_900_000);
    csv(&time, &options(args), row, connected, record)
}

#[test]
fn rows_of_comma_separated_values() {
    let sender = Connected {
        tcp: tcp_start(1, 1, 1),
        ..ends("10.99.0.1:38732 10.99.0.2:5001", true)
    };
    assert_eq!(
        row("-c x", Row::Stream(3), &sender, &until(1.0, 506_068_992)),
        "20261120213840,10.99.0.1,38732,10.99.0.2,5001,3,0.0-1.0,506068992,4048551936"
    );
    let all = until(1.0, 1_275_985_920);
    let receiver = Connected {
        is_sender: false,
        ..sender
    };
    let other_end = |connected: Connected| Connected {
        local: connected.peer,
        peer: connected.local,
        is_sender: !connected.is_sender,
        ..connected
    };
    // As both ends of 2.0.5 and of 2.2.1 print it: in style 2.1 who sends comes first, and the client has
    // no port.
    for (args, connected, ends) in [
        ("-c x", sender, "10.99.0.1,0,10.99.0.2,5001"),
        ("-s", receiver, "10.99.0.1,0,10.99.0.2,0"),
        ("-c x --style 2.1", sender, "10.99.0.1,0,10.99.0.2,5001"),
        ("-c x --style 2.1", receiver, "10.99.0.2,5001,10.99.0.1,0"),
        (
            "-s --style 2.1",
            other_end(sender),
            "10.99.0.1,0,10.99.0.2,5001",
        ),
        (
            "-s --style 2.1",
            other_end(receiver),
            "10.99.0.2,5001,10.99.0.1,0",
        ),
    ] {
        assert_eq!(
            row(args, Row::Sum, &connected, &all),
            format!("20261120213840,{ends},-1,0.0-1.0,1275985920,10207887360"),
            "{args}"
        );
    }
}

#[test]
fn rows_of_datagrams_have_what_was_received() {
    let relayed = IntervalRecord {
        receipt: Some(receipt(0.001, 0, 91)),
        ..until(1.020_557, 133_770)
    };
    let server = ends("10.99.0.2:5001 10.99.0.1:54014", false);
    assert_eq!(
        row("-c x -u", Row::Stream(3), &server, &relayed),
        "20261120213840,10.99.0.2,5001,10.99.0.1,54014,3,0.0-1.0,133770,1048603,0.001,0,91,0.000,0"
    );
    let server = ends("127.0.0.1:5393 127.0.0.1:35940", false);
    let late = IntervalRecord {
        receipt: Some(Receipt {
            out_of_order: 2,
            ..receipt(0.001, 3, 428)
        }),
        ..interval(0.5, 1.0, 624_750)
    };
    assert_eq!(
        row("-s -u -e --style 2.1", Row::Stream(1), &server, &late),
        "20261120213840.038,127.0.0.1,35940,127.0.0.1,5393,1,0.5-1.0,624750,9996000,\
         0.001,3,428,0.701,2"
    );
    let at_once = IntervalRecord { end: 0.5, ..late };
    let sender = Connected {
        is_sender: true,
        ..server
    };
    assert_eq!(
        row("-s -u --style 2.1", Row::Stream(1), &sender, &at_once),
        "20261120213840,127.0.0.1,5393,127.0.0.1,35940,1,0.5-0.5,624750,0,0.001,3,428,0.701,2"
    );
}

proptest! {
    #[test]
    fn amounts_are_figures(bytes in any::<f64>(), letter in any::<char>()) {
        for style in [Style::V2_0, Style::V2_1] {
            let text = amount(with_letter(style, letter), bytes);
            let (figure, unit) = text.trim_start().split_once(' ').unwrap();
            prop_assert!(figure.parse::<f64>().unwrap().is_finite(), "{text}");
            prop_assert!(figure.starts_with(|c: char| c.is_ascii_digit()), "{text}");
            prop_assert!(unit.ends_with("bit") || unit.ends_with("Byte"), "{text}");
        }
    }

    #[test]
    fn adaptive_amounts_take_four_columns(bytes in 0.0..1e17, letter in "[aA]") {
        let letter = letter.chars().next().unwrap();
        let text = amount(with_letter(Style::V2_1, letter), bytes);
        let (figure, _) = text.rsplit_once(' ').unwrap();
        // Below 1 the third decimal takes a fifth.
        let columns = if figure.starts_with("0.") { 5 } else { 4 };
        prop_assert_eq!(figure.len(), columns, "{}", text);
    }

    #[test]
    fn lines_hold_no_infinity(
        start in 0.0..f64::MAX,
        length in prop_oneof![Just(0.0), 0.0..1e-3, 0.0..1e9],
        bytes in any::<u64>(),
        jitter_ms in 0.0..f64::MAX,
        (lost, total) in any::<(i64, u64)>(),
        letter in any::<char>(),
    ) {
        let receipt = receipt(jitter_ms, lost, total);
        let record = IntervalRecord {
            datagrams: total,
            receipt: Some(receipt),
            ..interval(start, start + length, bytes)
        };
        for style in [Style::V2_0, Style::V2_1] {
            let format = with_letter(style, letter);
            let lines = [
                received(format, Label::Stream(1), &record, &receipt),
                receiver_sum(format, &record, &receipt),
                duplex_sum(format, &record),
                plain(format, Label::Sum, &until(length, bytes)),
            ];
            for line in lines {
                let lower = line.to_lowercase();
                prop_assert!(!lower.contains("inf") && !lower.contains("nan"), "{line}");
            }
        }
        let args = ["-s", "-s --style 2.1"];
        for line in args.map(|args| row(args, Row::Stream(1), &over_udp(false), &record)) {
            let fields: Vec<_> = line.split(',').collect();
            prop_assert_eq!(fields.len(), 14);
            for field in &fields[7..] {
                prop_assert!(field.parse::<f64>().unwrap().is_finite(), "{}", line);
            }
        }
    }

    /// Two digits are as near as two digits can be.
    #[test]
    fn two_digits_are_near(value in 1e-9..1e9) {
        let text = two_digits(value);
        let shown: f64 = text.parse().unwrap();
        prop_assert!((shown - value).abs() <= value * 0.05001, "{value} {text}");
        prop_assert!(!text.contains('.') || !text.ends_with('0'), "{value} {text}");
    }
}
