//! In every format, interval sums add up to the total of their streams, whenever these begin and end.

use nicpoll_model::traffic::{Direction, IperfRun, IperfTcpStart};
use nicpoll_traffic::SocketBuffer;
use proptest::prelude::*;

use super::super::golden::PrintedText;
use super::super::runs::printer;
use crate::events::{Event, StreamKey};
use crate::options::{Parsed, parse};
use crate::records::{Connected, IntervalRecord, Total};

/// Start and duration of a stream, in tenths of a second.
#[derive(Clone, Copy, Debug)]
struct Plan {
    begin: u32,
    length: u32,
}

const TENTHS: u32 = 10;

/// Bytes of a stream in an interval: no two sums are equal by chance.
fn bytes(stream: usize, interval: u32) -> u64 {
    1_000 + 10_007 * stream as u64 + 1_009 * u64::from(interval)
}

fn record(start: u32, end: u32, bytes: u64) -> IntervalRecord {
    IntervalRecord {
        start: f64::from(start) / f64::from(TENTHS),
        end: f64::from(end) / f64::from(TENTHS),
        is_partial: !end.is_multiple_of(TENTHS),
        bytes,
        ..IntervalRecord::default()
    }
}

fn connected(stream: usize, is_sender: bool) -> Connected {
    Connected {
        local: ([10, 0, 0, 1], 50_000 + stream as u16).into(),
        peer: ([10, 0, 0, 2], 5001).into(),
        direction: Direction::Forward,
        is_sender,
        buffer: SocketBuffer::default(),
        tcp: Some(IperfTcpStart {
            mss_bytes: 1448,
            congestion_window_bytes: 14_480,
            round_trip_seconds: 1e-4,
            connect_seconds: None,
        }),
        type_of_service: 0,
    }
}

/// The events in time order.
fn events(plans: &[Plan], is_sender: bool) -> Vec<Event> {
    let mut events = Vec::new();
    for (stream, plan) in plans.iter().enumerate() {
        let key = StreamKey::new(stream as u32);
        events.push((
            plan.begin,
            Event::Connected(key, connected(stream, is_sender)),
        ));
        let mut whole = 0;
        for interval in 0..plan.length.div_ceil(TENTHS) {
            let start = interval * TENTHS;
            let end = plan.length.min(start + TENTHS);
            whole += bytes(stream, interval);
            let record = record(start, end, bytes(stream, interval));
            events.push((plan.begin + end, Event::Interval(key, record)));
        }
        let total = Total::of(record(0, plan.length, whole), SocketBuffer::default());
        let end = Event::Finished(key, Box::new(Ok(total)));
        events.push((plan.begin + plan.length, end));
    }
    events.sort_by_key(|(time, _)| *time);
    events.into_iter().map(|(_, event)| event).collect()
}

fn printed(args: &str, plans: &[Plan]) -> String {
    let end = match args.contains("-c") {
        true => format!("{args} -P {}", plans.len()),
        false => String::from(args),
    };
    let Ok(Parsed::Test(options)) = parse(end.split(' ').map(String::from), |_| None) else {
        panic!("{args}");
    };
    let page = PrintedText::default();
    let mut output = printer(Box::new(page.clone()), &options, None);
    for event in events(plans, options.is_client()) {
        output.tell(event).unwrap();
    }
    output.end().unwrap();
    drop(output);
    page.text()
}

/// Bytes of the interval sums, and of the totals of several streams.
fn sums_of_json(end: &str, plans: &[Plan]) -> [u64; 2] {
    let run: IperfRun =
        serde_json::from_str(&printed(&format!("{end} -i 1 --json"), plans)).unwrap();
    let mut starts: Vec<f64> = run
        .interval_sums
        .iter()
        .map(|it| it.counts.start_seconds)
        .collect();
    starts.sort_by(f64::total_cmp);
    let several = run.sums.iter().filter(|sum| sum.streams > 1);
    let groups = several.clone().count();
    let most = starts.chunk_by(|a, b| a == b).map(<[f64]>::len).max();
    assert!(most.unwrap_or(0) <= groups, "{starts:?}");
    let of_intervals = run.interval_sums.iter().map(|sum| sum.counts.bytes);
    [
        of_intervals.sum(),
        several.map(|sum| sum.counts.bytes).sum(),
    ]
}

/// Bytes in all sum lines: those of intervals and of whole streams.
fn sums_of_text(text: &str) -> u64 {
    let lines = text.lines().filter(|line| line.starts_with("[SUM]"));
    let bytes = lines.map(|line| line.split(" sec ").nth(1)?.split_whitespace().next());
    bytes
        .map(|bytes| bytes.unwrap().parse::<u64>().unwrap())
        .sum()
}

fn sums_of_rows(text: &str) -> u64 {
    let rows = text
        .lines()
        .map(|row| row.split(',').collect::<Vec<&str>>());
    let sums = rows.filter(|row| row[5] == "-1");
    sums.map(|row| row[7].parse::<u64>().unwrap()).sum()
}

fn plans(lengths: impl Strategy<Value = u32>) -> impl Strategy<Value = Vec<Plan>> {
    let begin = prop_oneof![3 => 0..3u32, 1 => 0..35u32];
    let plan = (begin, lengths).prop_map(|(begin, length)| Plan { begin, length });
    prop::collection::vec(plan, 2..7)
}

/// Text and CSV omit a final partial interval below a quarter.
fn told_lengths() -> impl Strategy<Value = u32> {
    (0..4u32, prop_oneof![Just(10), 3..10u32]).prop_map(|(whole, rest)| TENTHS * whole + rest)
}

proptest! {
    #[test]
    fn sums_of_intervals_add_up_in_json(plans in plans(1..45u32)) {
        for end in ["-s", "-c host"] {
            let [of_intervals, whole] = sums_of_json(end, &plans);
            prop_assert_eq!(of_intervals, whole, "{}", end);
        }
    }

    #[test]
    fn sums_of_intervals_add_up_in_text_and_rows(plans in plans(told_lengths())) {
        for end in ["-s", "-c host"] {
            let [_, whole] = sums_of_json(end, &plans);
            for style in ["2.0", "2.1"] {
                let args = format!("{end} -i 1 -f B --style {style}");
                let text = printed(&args, &plans);
                prop_assert_eq!(sums_of_text(&text), 2 * whole, "{}\n{}", args, text);
                let args = format!("{end} -i 1 -y C --style {style}");
                let rows = printed(&args, &plans);
                prop_assert_eq!(sums_of_rows(&rows), 2 * whole, "{}\n{}", args, rows);
            }
        }
    }
}

/// A client's streams form one group, however late one of them begins.
#[test]
fn a_client_sums_all_of_its_streams() {
    let plans = [0, 31].map(|begin| Plan { begin, length: 40 });
    let [of_intervals, whole] = sums_of_json("-c host", &plans);
    let all: u64 = (0..4).map(|at| bytes(0, at) + bytes(1, at)).sum();
    assert_eq!((of_intervals, whole), (all, all));
    // At a server they are two groups of one stream each.
    assert_eq!(sums_of_json("-s", &plans), [0, 0]);
}

#[test]
fn a_short_rest_has_a_line_neither_of_a_stream_nor_of_the_sum() {
    let plans = [12, 11].map(|length| Plan { begin: 0, length });
    let text = printed("-s -i 1 -f B", &plans);
    assert!(
        !text.contains(" 1.0- 1.") && text.contains("[SUM]  0.0- 1.2 sec"),
        "{text}"
    );
}
