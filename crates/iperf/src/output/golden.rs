//! Compares the whole output for fixed sequences of events with recorded output. Leaves out what differs
//! between runs (time of day, process id).

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
use crate::records::{Calls, Connected, IntervalRecord, Receipt, Total, Transit};
use crate::stream::Error;
use crate::wire::ServerReport;

/// Collects the output.
#[derive(Clone, Default)]
pub struct PrintedText(Arc<Mutex<Vec<u8>>>);

impl PrintedText {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for PrintedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Direction of a stream at this end.
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
        type_of_service: 0,
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

/// The total of a stream. For text, the losses differ from the sum of the intervals; for JSON they equal it.
fn total(way: Way, is_json: bool) -> Total {
    let mut whole = record(way, 0.0, 2.5, 150);
    if let (Some(receipt), false) = (&mut whole.receipt, is_json) {
        (receipt.lost, receipt.expected, receipt.out_of_order) = (5, 245, 2);
    }
    let is_udp = !way.is_tcp;
    Total {
        close_seconds: (is_json && way.is_tcp && way.is_sender).then_some(2.625),
        gaps: is_udp.then(times),
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

/// Runs streams in parallel from start to end; the one that fails has a reason.
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

/// A test: its options and its streams, by phase.
struct Scenario {
    name: &'static str,
    args: &'static str,
    phases: Vec<Vec<Way>>,
    failing: Option<StreamKey>,
}

/// A scenario's name, its options, and its streams: `>` those that this end sends and `<` those that it
/// receives, each with its number; `*` marks one as reversed, `=` as one of two on a socket, `!` as failing.
/// Those after a `/` run later.
type ScenarioRow = (&'static str, &'static str, &'static str);

const SCENARIOS: [ScenarioRow; 11] = [
    ("TCP client", "-c host -i 1 -m", ">0"),
    ("TCP client, two streams", "-c host -i 1 -P 2", ">0 >1"),
    ("TCP server", "-s -i 1", "<0"),
    (
        "UDP client, two streams",
        "-c host -u -i 1 -P 2 -b 1kpps --burst 3",
        ">0 >1",
    ),
    (
        "UDP server, three streams of which one fails",
        "-s -u -i 1",
        "<0 <1 <2!",
    ),
    ("-d", "-c host -i 1 -d", ">0 <1"),
    ("-r", "-c host -i 1 -r", ">0 / <1"),
    ("-R", "-c host -i 1 -R", "<0*"),
    ("-R over UDP", "-c host -u -i 1 -R", "<0*"),
    ("full duplex", "-c host -i 1 --full-duplex", ">0= <0="),
    (
        "full duplex over UDP",
        "-c host -u -i 1 --full-duplex",
        ">0= <0=",
    ),
];

/// Several streams summed up in text, which JSON prints otherwise.
const SUMS: [ScenarioRow; 7] = [
    ("UDP server, both ways", "-s -u -i 1", "<0 >1*"),
    (
        "UDP client, both ways",
        "-c host -u -i 1 -P 2 -d",
        ">0 >1 <2 <3",
    ),
    (
        "TCP client, sums only",
        "-c host -i 1 -P 2 --sum-only",
        ">0 >1",
    ),
    (
        "UDP client, sums only",
        "-c host -u -i 1 -P 2 --sum-only",
        ">0 >1",
    ),
    (
        "UDP client, both ways, sums only",
        "-c host -u -i 1 -P 2 -d --sum-only",
        ">0 >1 <2 <3",
    ),
    ("TCP server, sums only", "-s --sum-only", "<0"),
    ("UDP server, sums only", "-s -u --sum-only", "<0 <1"),
];

fn scenarios(rows: &[ScenarioRow]) -> impl Iterator<Item = Scenario> {
    rows.iter().map(|&(name, args, streams)| {
        let is_tcp = !args.contains("-u");
        let mut failing = None;
        let mut of = |text: &str, is_later: bool| {
            let (is_sender, is_both_ways) = (text.starts_with('>'), text.ends_with('='));
            let key = StreamKey {
                number: text[1..2].parse().unwrap(),
                is_reversed: text.ends_with('*') || is_both_ways && !is_sender,
                is_later,
            };
            if text.ends_with('!') {
                failing = Some(key);
            }
            Way {
                key,
                direction: match key.is_reversed {
                    _ if is_both_ways => Direction::FullDuplex,
                    true => Direction::Reverse,
                    false => Direction::Forward,
                },
                is_sender,
                is_tcp,
            }
        };
        let phases = streams.split(" / ").enumerate();
        let phases = phases.map(|(phase, streams)| {
            let streams = streams.split(' ');
            streams.map(|text| of(text, phase > 0)).collect()
        });
        Scenario {
            name,
            args,
            phases: phases.collect(),
            failing,
        }
    })
}

fn printed(scenario: &Scenario, more_args: &str) -> String {
    let args = format!("{} {more_args}", scenario.args);
    let options = match parse(args.split_whitespace().map(str::to_owned), |_| None) {
        Ok(Parsed::Test(options)) => options,
        other => panic!("{other:?}"),
    };
    let page = PrintedText::default();
    let mut output = printer(Box::new(page.clone()), &options, None);
    let connected = connected(scenario.phases[0][0]);
    let settings = match options.is_client() {
        true => Settings::Client(connected),
        false => Settings::Listener(5001, connected.buffer),
    };
    output.settings(&settings).unwrap();
    for ways in &scenario.phases {
        let is_json = more_args.contains("--json");
        run(output.as_mut(), ways, scenario.failing, is_json);
    }
    output.end().unwrap();
    drop(output);
    let text = page.text();
    // The settings have a test of their own.
    let rule = format!("{}\n", "-".repeat(60));
    match text.split(&rule).collect::<Vec<_>>()[..] {
        [before, _, after] => format!("{before}(settings)\n{after}"),
        _ => text,
    }
}

/// Removes from a document what differs between runs.
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
        for scenario in scenarios(&SCENARIOS).chain(scenarios(&SUMS)) {
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
        for scenario in scenarios(&SCENARIOS).chain(scenarios(&SUMS)) {
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
    for scenario in scenarios(&SCENARIOS) {
        writeln!(text, "== {} ({})", scenario.name, scenario.args).unwrap();
        for line in printed(&scenario, "--json-stream").lines() {
            writeln!(text, "{}", lasting(line)).unwrap();
        }
    }
    // Both forms have the same records, so a few whole objects suffice.
    for scenario in scenarios(&SCENARIOS).step_by(4) {
        writeln!(text, "{}", lasting(&printed(&scenario, "--json"))).unwrap();
    }
    golden("src/output/golden/json.txt", &text);
}

#[test]
fn help_is_as_recorded() {
    golden("src/output/golden/help.txt", &help_text());
}
