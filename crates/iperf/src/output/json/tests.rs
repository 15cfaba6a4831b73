//! Both forms, with events made by hand.

use nicpoll_traffic::SocketBuffer;
use serde_json::Value;

use nicpoll_model::traffic::Direction;

use super::super::golden::PrintedText;
use super::*;
use crate::options::{Parsed, parse};
use crate::records::Receipt;

fn printer(form: Json) -> (JsonPrinter, PrintedText) {
    let args = ["-s", "-u", "-i", "1"].map(String::from);
    let Ok(Parsed::Test(options)) = parse(args, |_| None) else {
        panic!("these are a server's options");
    };
    let page = PrintedText::default();
    let out = Box::new(page.clone());
    (JsonPrinter::new(form, &options, None, out), page)
}

fn connected(peer: &str) -> Connected {
    let address = |text: &str| -> SocketAddr { text.parse().unwrap() };
    Connected {
        local: address("10.0.0.2:5001"),
        peer: address(peer),
        direction: Direction::Forward,
        is_sender: false,
        buffer: SocketBuffer {
            asked_bytes: None,
            granted_bytes: 212_992,
        },
        tcp: None,
        type_of_service: 0,
    }
}

fn record(start: f64, end: f64, datagrams: u64) -> IntervalRecord {
    IntervalRecord {
        start,
        end,
        bytes: 100 * datagrams,
        datagrams,
        receipt: Some(Receipt {
            expected: datagrams + 1,
            lost: 1,
            jitter_seconds: Some(1e-6),
            ..Receipt::default()
        }),
        ..IntervalRecord::default()
    }
}

fn total(whole: IntervalRecord) -> Total {
    let buffer = SocketBuffer {
        asked_bytes: None,
        granted_bytes: 212_992,
    };
    Total::of(whole, buffer)
}

/// Two streams with one peer, and one with another that fails.
fn tell(printer: &mut JsonPrinter) {
    let key = StreamKey::new;
    printer
        .settings(&Settings::Client(connected("10.0.0.1:1")))
        .unwrap();
    for (number, peer) in [(0, "10.0.0.1:1"), (1, "10.0.0.1:2"), (2, "10.0.0.9:3")] {
        printer.connected(key(number), &connected(peer)).unwrap();
    }
    printer.interval(key(0), &record(0.0, 1.0, 10)).unwrap();
    printer.interval(key(2), &record(0.0, 1.0, 99)).unwrap();
    printer.interval(key(1), &record(0.0, 1.0, 20)).unwrap();
    printer.failed(key(2), Some("the link went away")).unwrap();
    printer
        .finished(key(0), &total(record(0.0, 1.5, 15)))
        .unwrap();
    printer
        .finished(key(1), &total(record(0.0, 2.0, 40)))
        .unwrap();
    printer.end().unwrap();
}

#[test]
fn lines_come_in_order_and_sums_when_their_streams_are_in() {
    let (mut printer, page) = printer(Json::Stream);
    assert_eq!(page.text(), "");
    tell(&mut printer);
    let events: Vec<Value> = page
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<String> = events
        .iter()
        .map(|event| {
            let of = event["data"]["of"].as_str().unwrap_or_default();
            format!("{} {of}", event["event"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "start test",
            "start stream",
            "start stream",
            "start stream",
            "interval stream",
            "interval stream",
            "interval stream",
            "interval sum",
            "error ",
            "end stream",
            "end stream",
            "end sum",
            "end test"
        ]
    );
    let (interval_sum, error, sum) = (&events[7]["data"], &events[8]["data"], &events[11]["data"]);
    assert_eq!(interval_sum["datagrams"], 30);
    assert_eq!(interval_sum["streams"], 2);
    assert_eq!(interval_sum["side"], "receiver");
    assert_eq!(interval_sum["jitter_seconds"], Value::Null);
    assert_eq!(
        (&error["id"], &error["message"]),
        (&Value::from(3), &Value::from("the link went away"))
    );
    assert_eq!(
        (&sum["datagrams"], &sum["end_seconds"]),
        (&Value::from(55), &Value::from(2.0))
    );
    assert_eq!(sum["peer_address"], "10.0.0.1");
    assert_eq!(events[12]["data"]["streams_failed"], 1);
}

#[test]
fn the_one_object_holds_the_same_records() {
    let (mut printer, page) = printer(Json::Whole);
    tell(&mut printer);
    let run: Value = serde_json::from_str(&page.text()).unwrap();
    assert_eq!(run["streams"].as_array().unwrap().len(), 3);
    assert_eq!(run["streams"][0]["total"]["datagrams"], 15);
    assert_eq!(run["streams"][1]["intervals"][0]["lost_datagrams"], 1);
    assert_eq!(run["streams"][2]["total"], Value::Null);
    assert_eq!(run["streams"][2]["error"], "the link went away");
    assert_eq!(run["interval_sums"][0]["datagrams"], 30);
    assert_eq!(run["sums"].as_array().unwrap().len(), 1);
    assert_eq!(run["sums"][0]["bytes"], 5500);
    assert_eq!(run["error"], "the link went away");
    assert_eq!(run["end"]["omitted_records"], 0);
}

#[test]
fn a_server_keeps_no_more_than_it_may_and_sums_all_the_same() {
    let (mut printer, page) = printer(Json::Whole);
    printer.room = Room {
        streams: 2,
        others: 0,
    };
    tell(&mut printer);
    let run: Value = serde_json::from_str(&page.text()).unwrap();
    assert_eq!(run["streams"].as_array().unwrap().len(), 2);
    assert_eq!(run["streams"][0]["total"]["datagrams"], 15);
    assert_eq!(run["streams"][1]["total"]["datagrams"], 40);
    assert_eq!(run["streams"][0]["intervals"], Value::Array(Vec::new()));
    // One stream, three intervals and their sum, the sum at the end.
    assert_eq!(run["end"]["omitted_records"], 6);
    assert_eq!(run["end"]["streams_done"], 2);
    assert_eq!(run["error"], "the link went away");
}

/// Thousands of short tests by one stranger.
#[test]
fn what_a_server_keeps_is_bounded() {
    let (mut printer, page) = printer(Json::Whole);
    (printer.room.streams, printer.room.others) = (100, 150);
    for number in 0..1000 {
        let key = StreamKey::new(number);
        printer.connected(key, &connected("10.0.0.1:1")).unwrap();
        let whole = total(record(0.0, 1.0, 1));
        printer.finished(key, &whole).unwrap();
    }
    printer.end().unwrap();
    let run: IperfRun = serde_json::from_str(&page.text()).unwrap();
    assert_eq!((run.streams.len(), run.sums.len()), (100, 150));
    assert!(run.streams.iter().all(|stream| stream.total.is_some()));
    // The remaining starts, totals and sums.
    assert_eq!(run.end.omitted_records, 900 + 900 + 850);
    assert_eq!(run.end.streams_done, 1000);
}
