//! The lines of netblast, netreceive and netsend, column by column.

use std::time::Duration;

use nicpoll_testkit::golden;
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

/// netblast's lines over this many seconds.
fn netblast(sent: &Sent, seconds: u64, style: NetrateStyle, payload_bytes: usize) -> String {
    let options = NetrateOptions {
        style,
        payload_bytes,
        ..NetrateOptions::default()
    };
    text::netblast(sent, Duration::from_secs(seconds), &options, false)
}

/// All lines of all tools.
#[test]
fn lines_are_as_recorded() {
    let batched = NetrateOptions {
        is_batched: true,
        payload_bytes: 64,
        ..NetrateOptions::default()
    };
    let ten = Duration::from_secs(10);
    let paced = Sent {
        waited: 1_234_567,
        ..sent(500_000, 10)
    };
    let freebsd = NetrateStyle::Freebsd;
    let lines = [
        netblast(&sent(12_345_678, 0), 10, freebsd, 64),
        netblast(&sent(5_166_494, 4_706_483), 60, NetrateStyle::Router, 1470),
        text::netblast(&sent(937_596, 64), Duration::from_secs(1), &batched, false),
        // Ratios are integers, and nothing is divided by zero.
        netblast(&sent(7, 7), 1, freebsd, 64),
        netblast(&sent(0, 0), 1, freebsd, 64),
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
        text::netsend_summary(&paced, ten),
    ];
    golden("tests/netrate_data/text.txt", &lines.concat());
}

/// Output of routers in 2011, computed from the rates printed with it.
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
fn rates_are_whole_numbers_and_nothing_is_divided_by_zero() {
    assert_eq!(text::per_second(5, Duration::ZERO), 0);
    assert_eq!(text::per_second(10, Duration::from_millis(2_500)), 4);
}
