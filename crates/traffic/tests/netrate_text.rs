//! The lines of netblast, netreceive and netsend, to the column.

use std::time::Duration;

use nicpoll_traffic::netrate::options::NetrateStyle;
use nicpoll_traffic::netrate::text::{self, RateSpan, SentSummary};

fn summary(calls: u64, errors: u64, span: RateSpan) -> SentSummary {
    SentSummary {
        start: Duration::new(1_700_000_000, 0),
        finish: Duration::new(1_700_000_010, 12_345),
        span,
        send_calls: calls,
        send_errors: errors,
        batch_datagrams: None,
    }
}

#[test]
fn netblast_prints_freebsds_lines() {
    let summary = summary(12_345_678, 0, RateSpan::Asked(10));
    assert_eq!(
        text::netblast(&summary, NetrateStyle::Freebsd, 64, false),
        "\n\
         start:             1700000000.000000000\n\
         finish:            1700000010.000012345\n\
         send calls:        12345678\n\
         send errors:       0\n\
         approx send rate:  1234567\n\
         approx error rate: 0\n"
    );
}

#[test]
fn netblast_prints_successes_and_throughput_by_itself() {
    let summary = summary(5_166_494, 4_706_483, RateSpan::Asked(60));
    assert_eq!(
        text::netblast(&summary, NetrateStyle::Router, 1470, false),
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
    let summary = SentSummary {
        batch_datagrams: Some(64),
        ..summary(937_596, 64, RateSpan::Asked(1))
    };
    let text = text::netblast(&summary, NetrateStyle::Router, 64, false);
    let figures = text.lines().filter(|line| {
        !line.is_empty() && !line.starts_with("start:") && !line.starts_with("finish:")
    });
    let figures: Vec<&str> = figures.collect();
    assert_eq!(
        figures[0],
        "send calls:        937596 (datagrams, up to 64 a call)"
    );
    assert_eq!(figures.len(), 6, "{text}");
    for line in figures {
        assert!(line.ends_with(" (datagrams, up to 64 a call)"), "{line}");
    }
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
    let all_failed = text::netblast(
        &summary(7, 7, RateSpan::Asked(1)),
        NetrateStyle::Freebsd,
        64,
        false,
    );
    assert!(all_failed.contains("\napprox send rate:  0\napprox error rate: 1\n"));
    let nothing = text::netblast(
        &summary(0, 0, RateSpan::Asked(1)),
        NetrateStyle::Freebsd,
        64,
        false,
    );
    assert!(nothing.contains("\napprox send rate:  0\napprox error rate: 0\n"));
    assert_eq!(RateSpan::Elapsed(Duration::ZERO).rate(5), 0);
    assert_eq!(RateSpan::Elapsed(Duration::from_millis(2_500)).rate(10), 4);
}

#[test]
fn netblast_tells_of_threads_when_their_number_was_given() {
    assert_eq!(
        text::netblast_threads(2, 9000, 10),
        "netblast 2 threads sending on UDP port 9000 during 10 seconds\n"
    );
    assert_eq!(
        text::netblast_few_cores(4, 2),
        "WARNING: 4 threads but only 2 core(s) available\n"
    );
}

#[test]
fn netreceive_prints_its_sockets_and_every_half_second() {
    assert_eq!(
        text::netreceive(2, 1, 9000),
        "netreceive 2 sockets x 1 threads listening on UDP port 9000\n"
    );
    assert_eq!(
        text::netreceive_start(Duration::new(1_700_000_000, 5)),
        "start at 1700000000.000000005\n"
    );
    let elapsed = Duration::new(0, 499_999_999);
    assert_eq!(
        text::netreceive_interval(500_000, 32_000_000, elapsed),
        "   1000000 pps  512.000 Mbps - 500000 pkts in 0.499999999 ns\n"
    );
    assert_eq!(
        text::netreceive_interval(0, 0, Duration::from_millis(500)),
        "         0 pps    0.000 Mbps - 0 pkts in 0.500000000 ns\n"
    );
}

#[test]
fn netsend_prints_its_schedule() {
    assert_eq!(
        text::netsend(64, 20_000, 10),
        "Sending packet of payload size 64 every 0.000020000s for 10 seconds\n"
    );
    assert_eq!(
        text::netsend(1470, 1_000_000_000, 0),
        "Sending packet of payload size 1470 every 1.000000000s for 0 seconds\n"
    );
    assert_eq!(
        text::netsend_coarse_clock(0, Duration::from_nanos(1)),
        "warning: interval (0.000000000) less than resolution (0.000000001)\n"
    );
    assert_eq!(text::netsend_looks(100), "calling time every 100 cycles\n");
}

#[test]
fn netsend_sums_up() {
    let summary = summary(500_000, 10, RateSpan::Asked(10));
    assert_eq!(
        text::netsend_summary(&summary, 1_234_567),
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
