//! iperf's output, held against what the originals printed.

use std::net::SocketAddr;

use nicpoll_iperf::text::*;
use nicpoll_model::iperf::Direction;
use proptest::prelude::*;

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

fn id(number: u32) -> StreamId {
    StreamId {
        number,
        is_reversed: false,
    }
}

fn reversed(number: u32) -> StreamId {
    StreamId {
        number,
        is_reversed: true,
    }
}

fn until(end_seconds: f64, bytes: u64) -> Interval {
    Interval {
        start_seconds: 0.0,
        end_seconds,
        bytes,
    }
}

fn receipt(jitter_ms: f64, lost: i64, total: u64) -> ReceiptFigures {
    ReceiptFigures {
        jitter_ms,
        lost,
        total,
        out_of_order: 0,
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn amounts_take_four_columns() {
    let cases = [
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
    ];
    for (bytes, letter, text) in cases {
        assert_eq!(amount(Style::V2_1, bytes, letter), text, "{bytes} {letter}");
    }
}

#[test]
fn old_amounts_have_two_decimals_and_end_at_giga() {
    let cases = [
        (0.96 * 1048576.0, 'M', "0.96 MByte"),
        (3145728.0, 'G', "0.00 GByte"),
        (1250000.0, 'g', "0.01 Gbit"),
        (999875.0, 'k', "7999 Kbit"),
        (0.0, 'a', "0.00 bit"),
        (1e12, 'a', "8000 Gbit"),
        (1e12, 't', "8000 Gbit"),
        (1024f64.powi(4), 'P', "1024 GByte"),
    ];
    for (bytes, letter, text) in cases {
        assert_eq!(amount(Style::V2_0, bytes, letter), text, "{bytes} {letter}");
    }
}

#[test]
fn decimals_change_where_rounding_would_widen() {
    let cases = [
        (0.9994, "0.999 Byte"),
        (0.9995, "1.00 Byte"),
        (9.9949, "9.99 Byte"),
        (9.995, "10.0 Byte"),
        (99.949, "99.9 Byte"),
        (99.95, " 100 Byte"),
        (1023.999, "1024 Byte"),
        // A half goes to the even neighbour, as C has it.
        (0.125, "0.125 Byte"),
        (1.125, "1.12 Byte"),
        (12.25, "12.2 Byte"),
        (100.5, " 100 Byte"),
    ];
    for (bytes, text) in cases {
        assert_eq!(amount(Style::V2_1, bytes, 'A'), text, "{bytes}");
    }
}

#[test]
fn one_letter_rules_both_columns() {
    let interval = until(1.0, 10_485_760);
    for (letter, text) in [
        (
            'k',
            "[  1] 0.0000-1.0000 sec  10240 KBytes  83886 Kbits/sec",
        ),
        (
            'K',
            "[  1] 0.0000-1.0000 sec  10240 KBytes  10240 KBytes/sec",
        ),
        ('a', "[  1] 0.0000-1.0000 sec  10.0 MBytes  83.9 Mbits/sec"),
        ('A', "[  1] 0.0000-1.0000 sec  10.0 MBytes  10.0 MBytes/sec"),
    ] {
        let format = with_letter(Style::V2_1, letter);
        assert_eq!(sender_line(format, Label::Stream(id(1)), &interval), text);
    }
    // As 2.1.8 printed with `-f b -n 128K`.
    let format = with_letter(Style::V2_1, 'b');
    assert_eq!(transfer(format, 131072), "131072 Bytes");
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
fn old_tcp_screen() {
    let connection = Connection {
        id: reversed(3),
        local: address("10.99.0.1:43254"),
        peer: address("10.99.0.2:5001"),
        direction: Direction::Reverse,
        is_sender: true,
        has_no_fin: true,
        remarks: nicpoll_iperf::Remarks::default(),
        tcp: Some(InitialTcp {
            window_segments: 10,
            mss_bytes: 1448,
            rtt_micros: 23,
        }),
        enhanced: None,
    };
    assert_eq!(
        connection_line(Style::V2_0, &connection),
        "[  3] local 10.99.0.1 port 43254 connected with 10.99.0.2 port 5001"
    );
    assert_eq!(
        header(Header::Sender),
        "[ ID] Interval       Transfer     Bandwidth"
    );
    let interval = until(0.9985, 366_870_912);
    assert_eq!(
        sender_line(V2_0, Label::Stream(id(3)), &interval),
        "[  3]  0.0- 1.0 sec   350 MBytes  2.94 Gbits/sec"
    );
    let interval = until(1.0014, 639_631_360);
    assert_eq!(
        sender_line(V2_0, Label::Sum, &interval),
        "[SUM]  0.0- 1.0 sec   610 MBytes  5.11 Gbits/sec"
    );
    let interval = until(10.0, 1);
    assert!(sender_line(V2_0, Label::Sum, &interval).starts_with("[SUM]  0.0-10.0 sec  "));
}

#[test]
fn old_udp_server_screen() {
    assert_eq!(
        header(Header::Receiver),
        "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams"
    );
    let first = until(1.0, 849 * 1470);
    assert_eq!(
        receiver_line(V2_0, id(4), &first, &receipt(0.004, 1, 850)),
        "[  4]  0.0- 1.0 sec  1.19 MBytes  9.98 Mbits/sec   0.004 ms    1/  850 (0.12%)"
    );
    assert_eq!(
        receiver_line(V2_0, id(4), &first, &receipt(0.004, -1, 850)),
        "[  4]  0.0- 1.0 sec  1.19 MBytes  9.98 Mbits/sec   0.004 ms   -1/  850 (-0.12%)"
    );
    let mut late = receipt(0.004, 1, 1700);
    let both = until(2.0, 2_499_000);
    assert_eq!(
        out_of_order_line(Style::V2_0, Label::Stream(id(4)), &both, &late),
        None
    );
    late.out_of_order = 1;
    assert_eq!(
        out_of_order_line(Style::V2_0, Label::Stream(id(4)), &both, &late).as_deref(),
        Some("[  4]  0.0- 2.0 sec  1 datagrams received out-of-order")
    );
    assert_eq!(
        receiver_sum_line(V2_0, &first, &late),
        sender_line(V2_0, Label::Sum, &first)
    );
}

#[test]
fn udp_client_screen() {
    let connection = Connection {
        id: id(1),
        local: address("10.99.0.1:53181"),
        peer: address("10.99.0.2:5001"),
        direction: Direction::Forward,
        is_sender: true,
        has_no_fin: false,
        remarks: nicpoll_iperf::Remarks::default(),
        tcp: None,
        enhanced: None,
    };
    let interval = until(2.0016, 1704 * 1470);
    let screen = [
        connection_line(Style::V2_1, &connection),
        String::from(header(Header::Sender)),
        sender_line(V2_1, Label::Stream(id(1)), &interval),
        sent_line(Style::V2_1, Label::Stream(id(1)), 1705),
        server_report_line(Style::V2_1, id(1)),
        String::from(header(Header::Receiver)),
        receiver_line(V2_1, id(1), &interval, &receipt(0.0, 0, 1704)),
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
    assert_eq!(
        receiver_line(V2_1, id(1), &until(1.0206, 136_710), &receipt(0.001, 0, 93)),
        "[  1] 0.0000-1.0206 sec   134 KBytes  1.07 Mbits/sec   0.001 ms 0/93 (0%)"
    );
}

#[test]
fn sums() {
    assert_eq!(
        receiver_sum_line(
            with_letter(Style::V2_1, 'k'),
            &until(1.0022, 1707 * 1470),
            &receipt(0.003, 1, 1708)
        ),
        "[SUM] 0.0000-1.0022 sec  2450 KBytes  20030 Kbits/sec   1/1708 (0.059%)"
    );
    assert_eq!(
        sent_line(Style::V2_1, Label::SumOf(2), 3410),
        "[SUM-2] Sent 3410 datagrams"
    );
    assert_eq!(
        sender_line(V2_1, Label::SumOf(2), &until(0.5245, 1_573_000)),
        "[SUM-2] 0.0000-0.5245 sec  1.50 MBytes  24.0 Mbits/sec"
    );
    assert_eq!(
        header(Header::SumOnly),
        "[SUM-cnt] Interval       Transfer     Bandwidth"
    );
    assert_eq!(
        header(Header::DuplexSum),
        "[ ID] Interval       Transfer     Bandwidth    Datagrams   PPS"
    );
    assert_eq!(
        duplex_sum_line(V2_1, &until(1.0207, 272_000), 186),
        "[SUM] 0.0000-1.0207 sec   266 KBytes  2.13 Mbits/sec 186     182 pps"
    );
    assert_eq!(
        duplex_sum_line(V2_1, &until(1.0021, 1708 * 1470), 1708),
        "[SUM] 0.0000-1.0021 sec  2.39 MBytes  20.0 Mbits/sec 1708    1704 pps"
    );
}

#[test]
fn reversed_streams_are_starred() {
    let interval = until(1.0, 0);
    for (number, start) in [
        (2, "[ *2] 0.0000"),
        (10, "[*10] 0.0000"),
        (100, "[*100] 0.0000"),
    ] {
        let label = Label::Stream(reversed(number));
        assert!(sender_line(V2_1, label, &interval).starts_with(start));
    }
    assert!(sender_line(V2_0, Label::Stream(reversed(2)), &interval).starts_with("[  2]  0.0"));
    assert!(sender_line(V2_0, Label::Stream(id(1000)), &interval).starts_with("[1000]  0.0"));
}

#[test]
fn no_time_makes_no_rate() {
    let none = until(0.0, 3_145_728);
    assert_eq!(
        sender_line(V2_0, Label::Stream(id(3)), &none),
        "[  3]  0.0- 0.0 sec  3.00 MBytes  0.00 bits/sec"
    );
    assert_eq!(
        sender_line(V2_1, Label::Stream(id(1)), &until(0.00009, 3_145_728)),
        "[  1] 0.0000-0.0001 sec  3.00 MBytes  0.000 bits/sec"
    );
    // The original: `0/0 (-nan%)`.
    assert_eq!(
        receiver_line(V2_1, id(1), &until(0.2, 0), &receipt(6.319, 0, 0)),
        "[  1] 0.0000-0.2000 sec  0.000 Bytes  0.000 bits/sec   6.319 ms 0/0 (0%)"
    );
    let backwards = Interval {
        start_seconds: 2.0,
        ..until(1.0, 1)
    };
    assert_eq!(rate(V2_1, &backwards), "0.000 bits/sec");
}

proptest! {
    #[test]
    fn amounts_are_figures(bytes in any::<f64>(), letter in any::<char>()) {
        for style in [Style::V2_0, Style::V2_1] {
            let text = amount(style, bytes, letter);
            let (figure, unit) = text.trim_start().split_once(' ').unwrap();
            prop_assert!(figure.parse::<f64>().unwrap().is_finite(), "{text}");
            prop_assert!(figure.starts_with(|c: char| c.is_ascii_digit()), "{text}");
            prop_assert!(unit.ends_with("bit") || unit.ends_with("Byte"), "{text}");
        }
    }

    #[test]
    fn adaptive_amounts_take_four_columns(bytes in 0.0..1e17, letter in "[aA]") {
        let letter = letter.chars().next().unwrap();
        let text = amount(Style::V2_1, bytes, letter);
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
        for style in [Style::V2_0, Style::V2_1] {
            let format = with_letter(style, letter);
            let interval = Interval { start_seconds: start, end_seconds: start + length, bytes };
            let receipt = ReceiptFigures { out_of_order: total, ..receipt(jitter_ms, lost, total) };
            let lines = [
                receiver_line(format, id(1), &interval, &receipt),
                receiver_sum_line(format, &interval, &receipt),
                duplex_sum_line(format, &interval, total),
                sender_line(format, Label::Sum, &until(length, bytes)),
            ];
            for line in lines {
                let lower = line.to_lowercase();
                prop_assert!(!lower.contains("inf") && !lower.contains("nan"), "{line}");
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
