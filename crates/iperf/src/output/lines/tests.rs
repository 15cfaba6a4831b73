//! Compares lines with those that the originals printed.

use std::time::Duration;

use nicpoll_model::traffic::IperfTcpStart;
use nicpoll_sys::socket::TcpInfo;
use nicpoll_testkit::golden;
use proptest::prelude::*;

use super::*;
use crate::options::{Parsed, parse};
use crate::records::Transit;

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

/// Two endpoints, such as `10.99.0.1:1 10.99.0.2:5001`.
fn ends(ends: &str, is_sender: bool) -> Connected {
    let (local, peer) = ends.split_once(' ').unwrap();
    Connected {
        local: local.parse().unwrap(),
        peer: peer.parse().unwrap(),
        direction: Direction::Forward,
        is_sender,
        buffer: buffer(16_384),
        tcp: None,
        type_of_service: 0,
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
        // The decimals change where rounding would widen the figure.
        (0.9994, 'A', "0.999 Byte"),
        (0.9995, 'A', "1.00 Byte"),
        (9.9949, 'A', "9.99 Byte"),
        (9.995, 'A', "10.0 Byte"),
        (99.949, 'A', "99.9 Byte"),
        (99.95, 'A', " 100 Byte"),
        (1023.999, 'A', "1024 Byte"),
        // Halves round to even, as in C.
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

/// Lines of 2.0.5.
fn old_lines() -> Vec<String> {
    let reversed = Connected {
        direction: Direction::Reverse,
        ..over_tcp(true)
    };
    let late = Receipt {
        out_of_order: 1,
        ..receipt(0.004, 1, 1700)
    };
    let first = until(1.0, 849 * 1470);
    let received = |lost| received(V2_0, Label::Stream(4), &first, &receipt(0.004, lost, 850));
    let both = |receipt| IntervalRecord {
        receipt: Some(receipt),
        ..until(2.0, 2_499_000)
    };
    let late_line = |record| out_of_order(Style::V2_0, Label::Stream(4), &both(record));
    assert_eq!(late_line(receipt(0.004, 1, 1700)), None);
    vec![
        connection(Style::V2_0, Label::Reversed(3), &reversed, true),
        plain(V2_0, Label::Stream(3), &until(0.9985, 366_870_912)),
        plain(V2_0, Label::Sum, &until(1.0014, 639_631_360)),
        // No time, no rate.
        plain(V2_0, Label::Stream(3), &until(0.0, 3_145_728)),
        plain(V2_0, Label::Sum, &until(10.0, 1)),
        plain(V2_0, Label::Reversed(2), &until(1.0, 0)),
        plain(V2_0, Label::Stream(1000), &until(1.0, 0)),
        received(1),
        received(-1),
        late_line(late).unwrap(),
        receiver_sum(V2_0, &first, &late),
    ]
}

/// Lines of 2.1.8 for a UDP client, sums and reverse streams.
fn new_lines() -> Vec<String> {
    let (style, label) = (Style::V2_1, Label::Stream(1));
    let received = |end, bytes, receipt| received(V2_1, label, &until(end, bytes), &receipt);
    let duplex = |end, bytes, datagrams| {
        let record = IntervalRecord {
            datagrams,
            ..until(end, bytes)
        };
        duplex_sum(V2_1, &record)
    };
    let megabit = with_letter(style, 'k');
    let record = until(1.0022, 1707 * 1470);
    let mut lines = vec![
        connection(style, label, &over_udp(true), false),
        String::from(PLAIN),
        plain(V2_1, label, &until(2.0016, 1704 * 1470)),
        sent(style, label, 1705),
        server_report(style, label),
        String::from(RECEIVER),
        received(2.0016, 1704 * 1470, receipt(0.0, 0, 1704)),
        received(1.0206, 136_710, receipt(0.001, 0, 93)),
        // The original: `0/0 (-nan%)`.
        received(0.2, 0, receipt(6.319, 0, 0)),
        plain(V2_1, label, &until(0.00009, 3_145_728)),
        plain(V2_1, label, &interval(2.0, 1.0, 1)),
        receiver_sum(megabit, &record, &receipt(0.003, 1, 1708)),
        sent(style, Label::SumOf(2), 3410),
        plain(V2_1, Label::SumOf(2), &until(0.5245, 1_573_000)),
        duplex(1.0207, 272_000, 186),
        duplex(1.0021, 1708 * 1470, 1708),
    ];
    let reversed = [2, 10, 100].map(|it| plain(V2_1, Label::Reversed(it), &until(1.0, 0)));
    lines.extend(reversed);
    lines
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

/// The line of `-e`. 2.1.8 computes packets per second from the gaps, so its figure may differ by one from the
/// interval's.
fn enhanced(label: Label, connected: &Connected, record: &IntervalRecord) -> String {
    data(V2_1, label, connected, record, true).1
}

fn enhanced_of_senders_and_tcp() -> Vec<String> {
    let (sender, label) = (over_tcp(true), Label::Stream(1));
    let of = |label, record| enhanced(label, &sender, &record);
    let first = interval(0.0, 0.5, 50_069_564);
    let second = interval(0.5, 1.0, 49_938_432);
    let sum = interval(0.0, 0.5, 10_223_616);
    let mut lines = vec![
        of(label, tcp_sender(first, 382, (0, 28), (438, 585))),
        of(label, tcp_sender(second, 381, (1, 24), (60, 5))),
        of(Label::Sum, tcp_sender(sum, 78, (0, 1), (1, 1))),
    ];
    // As many digits of power as needed, and none without a delay.
    let second = interval(0.0, 1.0, 1_000_000);
    let powers = [1_000, 20_000, 1_000_000, 0];
    lines.extend(powers.map(|rtt_us| of(label, tcp_sender(second, 1, (0, 1), (rtt_us, 0)))));
    let reader = IntervalRecord {
        calls: Calls {
            done: 453,
            refused: 0,
            read_sizes: [65, 0, 1, 10, 0, 1, 0, 376],
        },
        ..first
    };
    let writer = IntervalRecord {
        datagrams: 94,
        calls: Calls {
            done: 92,
            ..Calls::default()
        },
        ..interval(0.0, 1.0207, 136_710)
    };
    for label in [label, Label::Sum] {
        lines.push(enhanced(label, &over_tcp(false), &reader));
        lines.push(enhanced(label, &over_udp(true), &writer));
    }
    lines
}

fn enhanced_of_udp_receivers() -> Vec<String> {
    let transit = Transit {
        datagrams: 45,
        mean_seconds: 24.22e-6,
        min_seconds: 6e-6,
        max_seconds: 31e-6,
        deviation_seconds: 7e-6,
    };
    // Little's law: 90 per second that take 50 ms each are 4.5 in flight.
    let slow = Transit {
        mean_seconds: 0.05,
        deviation_seconds: 0.02,
        ..transit
    };
    let foreign = [-0.011, 60.1].map(|min_seconds| Transit {
        min_seconds,
        ..transit
    });
    let line = |label, (bytes, datagrams), transit| {
        let record = IntervalRecord {
            datagrams,
            receipt: Some(Receipt {
                transit,
                ..receipt(0.003, 0, datagrams)
            }),
            ..interval(0.5, 1.0, bytes)
        };
        enhanced(label, &over_udp(false), &record)
    };
    let transits = [
        Some(transit),
        Some(slow),
        Some(foreign[0]),
        Some(foreign[1]),
        None,
    ];
    let lines = transits.map(|transit| line(Label::Stream(1), (66_150, 45), transit));
    let sum = line(Label::Sum, (132_300, 90), None);
    lines.into_iter().chain([sum]).collect()
}

fn lines_at_the_end() -> Vec<String> {
    assert_eq!(connect_times(&[], 2), None);
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
    vec![
        connect_times(&[0.000_019, 0.000_254], 1).unwrap(),
        connect_times(&[0.001], 0).unwrap(),
        gaps(Style::V2_0, Label::Stream(1), &spread),
    ]
}

/// Remarks that both ends of 2.1.8 printed with -S 0x10 and -X, and with --fq-rate.
fn remarked() -> Vec<String> {
    let back = Connected {
        direction: Direction::Reverse,
        tcp: tcp_start(10, 1448, 23),
        ..ends("[::ffff:127.0.0.1]:45748 [::ffff:127.0.0.1]:5394", true)
    };
    let mut lines = vec![connection(Style::V2_1, Label::Reversed(2), &back, false)];
    for (direction, is_sender) in [
        (Direction::Forward, true),
        (Direction::Forward, false),
        (Direction::Reverse, false),
        (Direction::Reverse, true),
        (Direction::FullDuplex, true),
    ] {
        let remarked = Connected {
            type_of_service: 0x10,
            direction,
            ..ends("127.0.0.1:33150 127.0.0.1:5001", is_sender)
        };
        let has_no_fin = direction == Direction::FullDuplex;
        let label = Label::Stream(1);
        lines.push(connection(Style::V2_1, label, &remarked, has_no_fin));
    }
    lines
}

fn messages_and_segment_sizes() -> Vec<String> {
    let refused = "Connection refused";
    let styles = [Style::V2_0, Style::V2_1];
    let messages =
        styles.map(|style| [connect_failed(style, refused), bind_failed(style, refused)]);
    let sizes = [1448, 1420, 1460, 1461, 4312, 9140, 65200, 536, 0, u32::MAX];
    let sizes = sizes.map(|bytes| segment_size(Label::Stream(3), bytes));
    messages.into_iter().flatten().chain(sizes).collect()
}

/// Each line was compared with the originals'.
#[test]
fn lines_are_as_recorded() {
    let parts = [
        old_lines(),
        new_lines(),
        enhanced_of_senders_and_tcp(),
        enhanced_of_udp_receivers(),
        lines_at_the_end(),
        remarked(),
        messages_and_segment_sizes(),
        rows(),
    ];
    golden(
        "src/output/golden/lines.txt",
        &(parts.concat().join("\n") + "\n"),
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
        false => Settings::Listener(options.port, connected.buffer),
    };
    let text = settings(&options, &of);
    let rule = "-".repeat(60);
    let lines = text.strip_prefix(&format!("{rule}\n")).unwrap();
    let lines = lines.strip_suffix(&format!("\n{rule}")).unwrap();
    lines.replace(&format!("pid {}", std::process::id()), "pid 7")
}

/// Each line was compared with the originals'.
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
        ("-s -S 0x20 -M 1000 --style 2.1", 131_072),
        ("-c 127.0.0.1", 16_384),
        ("-c 127.0.0.1 --style 2.1", 16_384),
        ("-c 127.0.0.1 -w 128K --style 2.1", 131_072),
        ("-c 127.0.0.1 -f b --style 2.1", 16_384),
        ("-c localhost -u -B 10.99.0.1", 212_992),
        ("-c localhost -u -B 10.99.0.1 --style 2.1", 212_992),
        ("-c 127.0.0.1 -e -l 100 -m -N -w 1000 --style 2.1", 4608),
        ("-c 127.0.0.1 -u -e -b 10m -S 0x10 --style 2.1", 212_992),
    ] {
        let is_of_tcp_client = args.starts_with("-c") && !args.contains("-u");
        let told = told(args, granted_bytes, is_of_tcp_client.then_some(536));
        text += &format!("== {args} ({granted_bytes})\n{told}\n");
    }
    golden("src/output/golden/settings.txt", &text);
}

/// A row at the time of the first one that 2.0.5 printed.
fn row(args: &str, row: CsvRow, connected: &Connected, record: &IntervalRecord) -> String {
    let time = jiff::civil::date(2026, 11, 20).at(21, 38, 40, 38_900_000);
    csv(&time, &options(args), row, connected, record)
}

/// Comma-separated values as both ends of 2.0.5 and of 2.2.1 print them: style 2.1 puts the sender first and
/// leaves out the client's port.
fn rows() -> Vec<String> {
    let other_end = |connected: Connected| Connected {
        local: connected.peer,
        peer: connected.local,
        is_sender: !connected.is_sender,
        ..connected
    };
    let sender = Connected {
        tcp: tcp_start(1, 1, 1),
        ..ends("10.99.0.1:38732 10.99.0.2:5001", true)
    };
    let receiver = Connected {
        is_sender: false,
        ..sender
    };
    let first = row("-c x", CsvRow::Stream(3), &sender, &until(1.0, 506_068_992));
    let sums = [
        ("-c x", sender),
        ("-s", receiver),
        ("-c x --style 2.1", sender),
        ("-c x --style 2.1", receiver),
        ("-s --style 2.1", other_end(sender)),
        ("-s --style 2.1", other_end(receiver)),
    ];
    let sums = sums.map(|(args, end)| row(args, CsvRow::Sum, &end, &until(1.0, 1_275_985_920)));

    let relayed = IntervalRecord {
        receipt: Some(receipt(0.001, 0, 91)),
        ..until(1.020_557, 133_770)
    };
    let late = IntervalRecord {
        receipt: Some(Receipt {
            out_of_order: 2,
            ..receipt(0.001, 3, 428)
        }),
        ..interval(0.5, 1.0, 624_750)
    };
    let at_once = IntervalRecord { end: 0.5, ..late };
    let relaying = ends("10.99.0.2:5001 10.99.0.1:54014", false);
    let server = ends("127.0.0.1:5393 127.0.0.1:35940", false);
    let sender = ends("127.0.0.1:5393 127.0.0.1:35940", true);
    let datagrams = [
        row("-c x -u", CsvRow::Stream(3), &relaying, &relayed),
        row("-s -u -e --style 2.1", CsvRow::Stream(1), &server, &late),
        row("-s -u --style 2.1", CsvRow::Stream(1), &sender, &at_once),
    ];
    [first].into_iter().chain(sums).chain(datagrams).collect()
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
        // Below 1, the third decimal takes a fifth column.
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
        for line in args.map(|args| row(args, CsvRow::Stream(1), &over_udp(false), &record)) {
            let fields: Vec<_> = line.split(',').collect();
            prop_assert_eq!(fields.len(), 14);
            for field in &fields[7..] {
                prop_assert!(field.parse::<f64>().unwrap().is_finite(), "{}", line);
            }
        }
    }

    /// Two digits are the nearest ones.
    #[test]
    fn two_digits_are_near(value in 1e-9..1e9) {
        let text = two_digits(value);
        let shown: f64 = text.parse().unwrap();
        prop_assert!((shown - value).abs() <= value * 0.05001, "{value} {text}");
        prop_assert!(!text.contains('.') || !text.ends_with('0'), "{value} {text}");
    }
}
