//! The lines of netblast, netreceive and netsend, to the column.

use std::time::Duration;

use nicpoll_traffic::netrate::options::{NetrateOptions, NetrateStyle};
use nicpoll_traffic::netrate::{SendCount, Sent, text};

fn sent(calls: u64, errors: u64) -> Sent {
    Sent {
        start: Duration::new(1_700_000_000, 0),
        finish: Duration::new(1_700_000_010, 12_345),
        count: SendCount {
            calls,
            errors,
            ..SendCount::default()
        },
        ..Sent::default()
    }
}

/// netblast's lines over so many seconds.
fn netblast(sent: &Sent, seconds: u64, style: NetrateStyle, payload_bytes: usize) -> String {
    let options = NetrateOptions {
        style,
        payload_bytes,
        ..NetrateOptions::default()
    };
    text::netblast(sent, Duration::from_secs(seconds), &options, false)
}

#[test]
fn netblast_prints_freebsds_lines_and_by_itself_successes_and_throughput() {
    assert_eq!(
        netblast(&sent(12_345_678, 0), 10, NetrateStyle::Freebsd, 64),
        "\n\
         start:             1700000000.000000000\n\
         finish:            1700000010.000012345\n\
         send calls:        12345678\n\
         send errors:       0\n\
         approx send rate:  1234567\n\
         approx error rate: 0\n"
    );
    assert_eq!(
        netblast(&sent(5_166_494, 4_706_483), 60, NetrateStyle::Router, 1470),
        "\n\
         start:             1700000000.000000000\n\
         finish:            1700000010.000012345\n\
         send calls:        5166494\n\
         send errors:       4706483\n\
         send success:      460011\n\
         approx send rate:  7666\n\
         approx error rate: 0\n\
         approx throughput: 92 Mib/s\n"
    );
}

#[test]
fn every_figure_of_batches_is_marked_as_such() {
    let options = NetrateOptions {
        is_batched: true,
        payload_bytes: 64,
        ..NetrateOptions::default()
    };
    let text = text::netblast(&sent(937_596, 64), Duration::from_secs(1), &options, false);
    let figures: Vec<&str> = text.lines().skip(3).collect();
    assert_eq!(
        figures[0],
        "send calls:        937596 (datagrams, up to 64 a call)"
    );
    assert_eq!(figures.len(), 6, "{text}");
    for line in figures {
        assert!(line.ends_with(" (datagrams, up to 64 a call)"), "{line}");
    }
    assert_eq!(text.matches("datagrams").count(), 6, "{text}");
}

/// What was printed on the routers of 2011, from the rates printed beside it.
#[test]
fn throughput_is_that_of_frames_without_their_check_sequence() {
    for (rate, payload_bytes, is_ipv6, megabits) in [
        (6_718, 1470, false, 81),
        (7_666, 1470, false, 92),
        (6_477, 1430, true, 77),
        (7_779, 1430, true, 92),
        (7_244, 64, false, 6),
        (69_838, 64, false, 59),
        (49_624, 64, true, 50),
        (1_199, 1470, false, 14),
    ] {
        let bits = text::frame_bits_per_second(rate, payload_bytes, is_ipv6);
        assert_eq!(bits / 1_000_000, megabits, "{rate} of {payload_bytes} B");
    }
}

#[test]
fn ratios_are_whole_numbers_and_nothing_is_divided_by_zero() {
    for (calls, ratio) in [(7, 1), (0, 0)] {
        let text = netblast(&sent(calls, calls), 1, NetrateStyle::Freebsd, 64);
        let rates = format!("\napprox send rate:  0\napprox error rate: {ratio}\n");
        assert!(text.contains(&rates), "{text}");
    }
    assert_eq!(text::per_second(5, Duration::ZERO), 0);
    assert_eq!(text::per_second(10, Duration::from_millis(2_500)), 4);
}

#[test]
fn each_tool_says_what_it_does() {
    let lines = [
        text::netblast_threads(2, 9000, 10),
        text::netblast_few_cores(4, 2),
        text::netreceive(2, 1, 9000),
        text::netreceive_start(Duration::new(1_700_000_000, 5)),
        text::netreceive_interval(500_000, 32_000_000, Duration::new(0, 499_999_999)),
        text::netreceive_interval(0, 0, Duration::from_millis(500)),
        text::netsend(64, 20_000, 10),
        text::netsend(1470, 1_000_000_000, 0),
        text::netsend_coarse_clock(0, Duration::from_nanos(1)),
        text::netsend_looks(100),
    ];
    assert_eq!(
        lines.concat(),
        "netblast 2 threads sending on UDP port 9000 during 10 seconds\n\
         WARNING: 4 threads but only 2 core(s) available\n\
         netreceive 2 sockets x 1 threads listening on UDP port 9000\n\
         start at 1700000000.000000005\n   \
         1000000 pps  512.000 Mbps - 500000 pkts in 0.499999999 ns\n         \
         0 pps    0.000 Mbps - 0 pkts in 0.500000000 ns\n\
         Sending packet of payload size 64 every 0.000020000s for 10 seconds\n\
         Sending packet of payload size 1470 every 1.000000000s for 0 seconds\n\
         warning: interval (0.000000000) less than resolution (0.000000001)\n\
         calling time every 100 cycles\n"
    );
}

#[test]
fn netsend_sums_up() {
    let sent = Sent {
        waited: 1_234_567,
        ..sent(500_000, 10)
    };
    assert_eq!(
        text::netsend_summary(&sent, Duration::from_secs(10)),
        "\n\
         start:             1700000000.000000000\n\
         finish:            1700000010.000012345\n\
         send calls:        500000\n\
         send errors:       10\n\
         approx send rate:  49999 pps\n\
         time/packet:       20000 ns\n\
         approx error rate: 0\n\
         waited:            1234567\n\
         approx waits/sec:  123456\n\
         approx wait rate:  2\n"
    );
}
