//! iperf's comma-separated values, held against what the originals printed.

use std::net::SocketAddr;

use nicpoll_iperf::text::*;
use proptest::prelude::*;

fn id(number: u32) -> StreamId {
    StreamId {
        number,
        is_reversed: false,
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// The first row 2.0.5 printed.
fn row() -> CsvRow {
    CsvRow {
        time: Timestamp {
            year: 2026,
            month: 11,
            day: 20,
            hour: 21,
            minute: 38,
            second: 40,
            millis: 38,
        },
        has_millis: true,
        reporter: address("10.99.0.1:38732"),
        peer: address("10.99.0.2:5001"),
        is_sender: true,
        id: id(3),
        interval: Interval {
            start_seconds: 0.0,
            end_seconds: 1.0,
            bytes: 506_068_992,
        },
        receipt: None,
    }
}

#[test]
fn old_rows() {
    assert_eq!(
        csv_row(Style::V2_0, &row()),
        "20261120213840,10.99.0.1,38732,10.99.0.2,5001,3,0.0-1.0,506068992,4048551936"
    );
    let mut sum = row();
    sum.interval.bytes = 1_275_985_920;
    assert_eq!(
        csv_sum_row(Style::V2_0, true, &sum),
        "20261120213840,10.99.0.1,0,10.99.0.2,5001,-1,0.0-1.0,1275985920,10207887360"
    );
    sum.is_sender = false;
    assert_eq!(
        csv_sum_row(Style::V2_0, false, &sum),
        "20261120213840,10.99.0.1,0,10.99.0.2,0,-1,0.0-1.0,1275985920,10207887360"
    );
    // As both ends of 2.2.1 print it: who sends comes first, and the client has no port.
    for (is_client, is_sender, ends) in [
        (true, true, "10.99.0.1,0,10.99.0.2,5001"),
        (true, false, "10.99.0.2,5001,10.99.0.1,0"),
    ] {
        sum.is_sender = is_sender;
        let row = csv_sum_row(Style::V2_1, is_client, &sum);
        assert!(row.contains(&format!(",{ends},-1,0.0-1.0,")), "{row}");
        let at_server = CsvRow {
            reporter: sum.peer,
            peer: sum.reporter,
            is_sender: !is_sender,
            ..sum
        };
        assert_eq!(csv_sum_row(Style::V2_1, false, &at_server), row);
    }
    let mut relayed = CsvRow {
        reporter: address("10.99.0.2:5001"),
        peer: address("10.99.0.1:54014"),
        is_sender: false,
        interval: Interval {
            start_seconds: 0.0,
            end_seconds: 1.020_557,
            bytes: 133_770,
        },
        receipt: Some(ReceiptFigures {
            jitter_ms: 0.001,
            lost: 0,
            total: 91,
            out_of_order: 0,
        }),
        ..row()
    };
    relayed.time.second = 46;
    assert_eq!(
        csv_row(Style::V2_0, &relayed),
        "20261120213846,10.99.0.2,5001,10.99.0.1,54014,3,0.0-1.0,133770,1048603,0.001,0,91,0.000,0"
    );
}

#[test]
fn rows_have_the_sender_first() {
    let receiver = CsvRow {
        reporter: address("127.0.0.1:5393"),
        peer: address("127.0.0.1:35940"),
        is_sender: false,
        id: id(1),
        interval: Interval {
            start_seconds: 0.5,
            end_seconds: 1.0,
            bytes: 624_750,
        },
        receipt: Some(ReceiptFigures {
            jitter_ms: 0.001,
            lost: 3,
            total: 428,
            out_of_order: 2,
        }),
        ..row()
    };
    assert_eq!(
        csv_row(Style::V2_1, &receiver),
        "20261120213840.038,127.0.0.1,35940,127.0.0.1,5393,1,0.5-1.0,624750,9996000,\
         0.001,3,428,0.701,2"
    );
    let at_once = CsvRow {
        has_millis: false,
        is_sender: true,
        interval: Interval {
            end_seconds: 0.5,
            ..receiver.interval
        },
        ..receiver
    };
    assert_eq!(
        csv_row(Style::V2_1, &at_once),
        "20261120213840,127.0.0.1,5393,127.0.0.1,35940,1,0.5-0.5,624750,0,0.001,3,428,0.701,2"
    );
}

proptest! {
    #[test]
    fn rows_are_numbers(
        start in 0.0..1e300,
        length in prop_oneof![Just(0.0), 0.0..1e-3, 0.0..1e9],
        bytes in any::<u64>(),
        jitter_ms in 0.0..f64::MAX,
        (lost, total) in any::<(i64, u64)>(),
    ) {
        let interval = Interval { start_seconds: start, end_seconds: start + length, bytes };
        let receipt = Some(ReceiptFigures { jitter_ms, lost, total, out_of_order: 0 });
        for style in [Style::V2_0, Style::V2_1] {
            let line = csv_row(style, &CsvRow { interval, receipt, ..row() });
            let fields: Vec<_> = line.split(',').collect();
            prop_assert_eq!(fields.len(), 14);
            for field in &fields[7..] {
                prop_assert!(field.parse::<f64>().unwrap().is_finite(), "{}", line);
            }
        }
    }
}
