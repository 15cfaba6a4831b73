//! Whole outputs of fixed sequences of events, compared with recorded ones: what must not change when
//! the code behind it does. What differs from run to run (times of day, the process) is left out.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nicpoll_testkit::golden;
use nicpoll_traffic::SocketBuffer;
use serde_json::Value;

use nicpoll_model::traffic::{Direction, IperfBucket, IperfTcpStart, IperfTimes};
use nicpoll_sys::socket::TcpInfo;

use super::runs::printer;
use crate::events::{Event, Output, Settings, StreamKey};
use crate::options::{Parsed, help_text, parse};
use crate::records::{Calls, Connected, IntervalRecord, Receipt, Remarks, Total, Transit};
use crate::stream::Error;
use crate::wire::ServerReport;

/// What was printed.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Which way a stream flows at this end.
#[derive(Clone, Copy)]
struct Way {
    key: StreamKey,
    direction: Direction,
    is_sender: bool,
    is_tcp: bool,
}

fn connected(way: Way) -> Connected {
    let port = 50_000 + way.key.number as u16;
    Connected {
        local: SocketAddr::from(([10, 0, 0, 1], port)),
        peer: SocketAddr::from(([10, 0, 0, 2], 5001)),
        direction: way.direction,
        is_sender: way.is_sender,
        buffer: SocketBuffer {
            asked_bytes: Some(65_536),
            granted_bytes: 131_072,
        },
        tcp: way.is_tcp.then_some(IperfTcpStart {
            mss_bytes: 1448,
            congestion_window_bytes: 14_480,
            round_trip_seconds: 215e-6,
            connect_seconds: way.is_sender.then_some(1312e-6),
        }),
        remarks: Remarks::default(),
    }
}

fn record(way: Way, start: f64, end: f64, more: u64) -> IntervalRecord {
    let is_udp = !way.is_tcp;
    let datagrams = if is_udp { 90 + more } else { 0 };
    let mut read_sizes = [0; 8];
    if way.is_tcp && !way.is_sender {
        read_sizes = [7, 6, 5, 4, 3, 2, 1, 100 + more];
    }
    IntervalRecord {
        start,
        end,
        is_partial: end.fract() > 0.0,
        bytes: if is_udp {
            1470 * datagrams
        } else {
            131_072 * (100 + more)
        },
        datagrams,
        calls: Calls {
            done: 128 + more,
            refused: u64::from(way.is_sender) * 3,
            read_sizes,
        },
        tcp: (way.is_tcp && way.is_sender).then_some(TcpInfo {
            retransmitted_segments: more,
            send_segment_bytes: 1448,
            congestion_window_segments: 70,
            round_trip: Duration::from_micros(301),
            round_trip_variation: Duration::from_micros(44),
        }),
        receipt: (is_udp && !way.is_sender).then_some(Receipt {
            expected: datagrams + 2,
            lost: 2 - more as i64,
            out_of_order: more,
            duplicates: 1,
            jitter_seconds: Some(37e-6),
            transit: Some(Transit {
                datagrams,
                mean_seconds: 1.25e-3,
                min_seconds: 0.5e-3,
                max_seconds: 9e-3,
                deviation_seconds: 0.125e-3,
            }),
        }),
    }
}

fn times() -> Box<IperfTimes> {
    Box::new(IperfTimes {
        samples: 180,
        zero_samples: 4,
        min_seconds: 0.0,
        mean_seconds: 11_215.5 / 1e9,
        max_seconds: 2e-3,
        p50_seconds: 11e-6,
        p90_seconds: 12e-6,
        p99_seconds: 90e-6,
        p999_seconds: 1.9e-3,
        buckets: vec![IperfBucket {
            below_seconds: 1e-6,
            samples: 180,
        }],
    })
}

/// What a stream came to. Losses are recorded for text as they could be, and for JSON as they are added up.
fn total(way: Way, is_json: bool) -> Total {
    let mut whole = record(way, 0.0, 2.5, 150);
    if let (Some(receipt), false) = (&mut whole.receipt, is_json) {
        (receipt.lost, receipt.expected, receipt.out_of_order) = (5, 245, 2);
    }
    let is_udp = !way.is_tcp;
    Total {
        close_seconds: (is_json && way.is_tcp && way.is_sender).then_some(2.625),
        gaps: is_udp.then(times),
        one_way_delays: (is_udp && !way.is_sender).then(times),
        server_report: (is_udp && way.is_sender).then_some(ServerReport {
            bytes: 1470 * 238,
            elapsed: Duration::from_millis(2498),
            lost: 2,
            out_of_order: 1,
            datagrams: 240,
            jitter: Duration::from_micros(12),
        }),
        ..Total::of(whole, connected(way).buffer)
    }
}

/// Streams that run at the same time, from their beginning to their end; one that fails says why.
fn run(output: &mut dyn Output, ways: &[Way], failing: Option<StreamKey>, is_json: bool) {
    for way in ways {
        tell(output, Event::Connected(way.key, connected(*way)));
    }
    for (start, end) in [(0.0, 1.0), (1.0, 2.0), (2.0, 2.5)] {
        for (more, way) in ways.iter().enumerate() {
            let record = record(*way, start, end, more as u64);
            tell(output, Event::Interval(way.key, record));
        }
    }
    for way in ways {
        let outcome = if failing == Some(way.key) {
            Err(Error::Told(String::from("the link went away")))
        } else {
            Ok(total(*way, is_json))
        };
        tell(output, Event::Finished(way.key, Box::new(outcome)));
    }
}

fn tell(output: &mut dyn Output, event: Event) {
    output.tell(event).unwrap();
}

const KEY: StreamKey = StreamKey {
    number: 0,
    is_reversed: false,
    is_later: false,
};

fn way(number: u32, is_sender: bool, is_tcp: bool) -> Way {
    Way {
        key: StreamKey { number, ..KEY },
        direction: Direction::Forward,
        is_sender,
        is_tcp,
    }
}

/// A test as both ends see it: its options, and the streams that run at the same time.
struct Scenario {
    name: &'static str,
    args: &'static str,
    phases: Vec<Vec<Way>>,
    failing: Option<StreamKey>,
}

fn scenario(name: &'static str, args: &'static str, phases: Vec<Vec<Way>>) -> Scenario {
    Scenario {
        name,
        args,
        phases,
        failing: None,
    }
}

fn scenarios() -> Vec<Scenario> {
    let mut scenarios = one_way();
    scenarios.extend(both_ways());
    scenarios
}

fn one_way() -> Vec<Scenario> {
    vec![
        scenario(
            "TCP client",
            "-c host -i 1 -m",
            vec![vec![way(0, true, true)]],
        ),
        scenario(
            "TCP client, two streams",
            "-c host -i 1 -P 2",
            vec![vec![way(0, true, true), way(1, true, true)]],
        ),
        scenario("TCP server", "-s -i 1", vec![vec![way(0, false, true)]]),
        scenario(
            "UDP client, two streams",
            "-c host -u -i 1 -P 2 -b 1kpps --burst 3",
            vec![vec![way(0, true, false), way(1, true, false)]],
        ),
        Scenario {
            failing: Some(StreamKey { number: 2, ..KEY }),
            ..scenario(
                "UDP server, three streams of which one fails",
                "-s -u -i 1",
                vec![vec![
                    way(0, false, false),
                    way(1, false, false),
                    way(2, false, false),
                ]],
            )
        },
    ]
}

/// Several streams that are told together, which is text's alone.
fn sums() -> Vec<Scenario> {
    let mut back = way(1, true, false);
    back.key.is_reversed = true;
    back.direction = Direction::Reverse;
    let datagrams = |is_sender| vec![vec![way(0, is_sender, false), way(1, is_sender, false)]];
    let both_ways = || {
        let own = datagrams(true).remove(0);
        let others = [way(2, false, false), way(3, false, false)];
        vec![own.into_iter().chain(others).collect()]
    };
    vec![
        scenario(
            "UDP server, both ways",
            "-s -u -i 1",
            vec![vec![way(0, false, false), back]],
        ),
        scenario(
            "UDP client, both ways",
            "-c host -u -i 1 -P 2 -d",
            both_ways(),
        ),
        scenario(
            "TCP client, sums only",
            "-c host -i 1 -P 2 --sum-only",
            vec![vec![way(0, true, true), way(1, true, true)]],
        ),
        scenario(
            "UDP client, sums only",
            "-c host -u -i 1 -P 2 --sum-only",
            datagrams(true),
        ),
        scenario(
            "UDP client, both ways, sums only",
            "-c host -u -i 1 -P 2 -d --sum-only",
            both_ways(),
        ),
        scenario(
            "TCP server, sums only",
            "-s --sum-only",
            vec![vec![way(0, false, true)]],
        ),
        scenario(
            "UDP server, sums only",
            "-s -u --sum-only",
            datagrams(false),
        ),
    ]
}

fn both_ways() -> Vec<Scenario> {
    let full_duplex = |is_tcp: bool, is_sender: bool| Way {
        key: StreamKey {
            is_reversed: !is_sender,
            ..KEY
        },
        direction: Direction::FullDuplex,
        ..way(0, is_sender, is_tcp)
    };
    let reverse = |is_tcp: bool| Way {
        key: KEY.reversed(),
        direction: Direction::Reverse,
        ..way(0, false, is_tcp)
    };
    let mut later = way(1, false, true);
    later.key.is_later = true;
    vec![
        scenario(
            "-d",
            "-c host -i 1 -d",
            vec![vec![way(0, true, true), way(1, false, true)]],
        ),
        scenario(
            "-r",
            "-c host -i 1 -r",
            vec![vec![way(0, true, true)], vec![later]],
        ),
        scenario("-R", "-c host -i 1 -R", vec![vec![reverse(true)]]),
        scenario(
            "-R over UDP",
            "-c host -u -i 1 -R",
            vec![vec![reverse(false)]],
        ),
        scenario(
            "full duplex",
            "-c host -i 1 --full-duplex",
            vec![vec![full_duplex(true, true), full_duplex(true, false)]],
        ),
        scenario(
            "full duplex over UDP",
            "-c host -u -i 1 --full-duplex",
            vec![vec![full_duplex(false, true), full_duplex(false, false)]],
        ),
    ]
}

fn printed(scenario: &Scenario, more_args: &str) -> String {
    let args = format!("{} {more_args}", scenario.args);
    let options = match parse(args.split_whitespace().map(str::to_owned), |_| None) {
        Ok(Parsed::Test(options)) => options,
        other => panic!("{other:?}"),
    };
    let page = Page::default();
    let mut output = printer(Box::new(page.clone()), &options, None);
    let connected = connected(scenario.phases[0][0]);
    let settings = match options.is_client() {
        true => Settings::Client(connected),
        false => Settings::Listener(5001, None, connected.buffer),
    };
    output.settings(&settings).unwrap();
    for ways in &scenario.phases {
        let is_json = more_args.contains("--json");
        run(output.as_mut(), ways, scenario.failing, is_json);
    }
    output.end().unwrap();
    drop(output);
    let bytes = page.0.lock().unwrap().clone();
    let text = String::from_utf8(bytes).unwrap();
    // They have a test of their own.
    let rule = format!("{}\n", "-".repeat(60));
    match text.split(&rule).collect::<Vec<_>>()[..] {
        [before, _, after] => format!("{before}(settings)\n{after}"),
        _ => text,
    }
}

/// A document without what differs from run to run.
fn lasting(line: &str) -> String {
    let mut value: Value = serde_json::from_str(line).unwrap();
    for pointer in ["", "/data", "/start", "/end"] {
        let Some(object) = value.pointer_mut(pointer).and_then(Value::as_object_mut) else {
            continue;
        };
        for key in ["argv", "kernel", "started_at", "elapsed_seconds"] {
            object.remove(key);
        }
    }
    value.to_string()
}

#[test]
fn text_is_as_recorded() {
    let mut text = String::new();
    for manner in [
        "",
        "-e",
        "--style 2.1",
        "--style 2.1 -e",
        "--style 2.1 -f M -x CSV",
    ] {
        for scenario in scenarios().into_iter().chain(sums()) {
            writeln!(text, "== {} ({} {manner})", scenario.name, scenario.args).unwrap();
            text += &printed(&scenario, manner);
        }
    }
    golden("src/output/golden/text.txt", &text);
}

#[test]
fn comma_separated_values_are_as_recorded() {
    let mut text = String::new();
    for manner in ["-y C", "-y C --style 2.1", "-y C --style 2.1 -e"] {
        for scenario in scenarios().into_iter().chain(sums()) {
            writeln!(text, "== {} ({} {manner})", scenario.name, scenario.args).unwrap();
            for line in printed(&scenario, manner).lines() {
                let (time, rest) = line.split_once(',').unwrap();
                let digits = time
                    .chars()
                    .map(|c| if c.is_ascii_digit() { '9' } else { c });
                writeln!(text, "{},{rest}", digits.collect::<String>()).unwrap();
            }
        }
    }
    golden("src/output/golden/csv.txt", &text);
}

#[test]
fn json_is_as_recorded() {
    let mut text = String::new();
    for scenario in scenarios() {
        writeln!(text, "== {} ({})", scenario.name, scenario.args).unwrap();
        for line in printed(&scenario, "--json-stream").lines() {
            writeln!(text, "{}", lasting(line)).unwrap();
        }
    }
    // Both forms are made of the same records: some whole objects are enough.
    for scenario in scenarios().iter().step_by(4) {
        writeln!(text, "{}", lasting(&printed(scenario, "--json"))).unwrap();
    }
    golden("src/output/golden/json.txt", &text);
}

#[test]
fn help_is_as_recorded() {
    golden("src/output/golden/help.txt", &help_text());
}
