//! `nicpoll watch` as text and as JSON lines, compared with the kernel's own counters of the same time.

#[path = "../common/mod.rs"]
mod common;
mod prometheus;
mod screen;

use crate::common::prelude::*;
use crate::common::stage::Studied;
use nicpoll_lab::INTERFACE;
use nicpoll_model::{LossPlace, WatchEnd, WatchSample, WatchStart};
use nicpoll_switch::Journal;

/// A port that no socket of the lab is bound to.
const PORT: u16 = 9;
const PACKETS: u64 = 200;
/// No test needs so many intervals.
const INTERVALS_MAX: usize = 100;

fn lab(stage: &Stage) -> Studied {
    let mut lab = Studied::new(&Journal::at(stage.state()));
    lab.put("interrupt", 0);
    lab
}

/// The receiver's namespace, as a path.
fn netns(lab: &Studied) -> String {
    let tid = lab.receiver().run(|_| rustix::thread::gettid()).unwrap();
    format!("/proc/{}/task/{tid}/ns/net", std::process::id())
}

fn send(lab: &Studied) {
    let sent = lab.sender().run(|_| {
        let socket = UdpSocket::bind(("198.18.0.1", 0)).unwrap();
        for _ in 0..PACKETS {
            // Fails after an ICMP answer that nobody listens.
            let _ = socket.send_to(&[0; 100], ("198.18.0.2", PORT));
            thread::sleep(Duration::from_micros(200));
        }
    });
    sent.unwrap();
}

/// A watch whose lines are read one by one.
struct Watching {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watching {
    fn begin(stage: &Stage, lab: &Studied) -> Self {
        Self::begin_with(stage, lab, &[])
    }

    fn begin_with(stage: &Stage, lab: &Studied, more: &[&str]) -> Self {
        let netns = netns(lab);
        let args = format!("watch --json-stream --interval 0.2 --netns {netns}");
        let args = words(&args);
        let mut child = stage.nicpoll(&[&args, more].concat()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Watching { child, lines }
    }

    fn event(&mut self, name: &str) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["event"], name, "{line}");
        assert_described(&event, "watch");
        event["data"].clone()
    }

    fn sample(&mut self) -> WatchSample {
        serde_json::from_value(self.event("interval")).unwrap()
    }

    /// Returns samples up to the first wanted one.
    fn samples_until(&mut self, is_wanted: impl Fn(&WatchSample) -> bool) -> Vec<WatchSample> {
        let mut samples = Vec::new();
        while samples.len() < INTERVALS_MAX {
            samples.push(self.sample());
            if samples.last().is_some_and(&is_wanted) {
                return samples;
            }
        }
        panic!("not seen in {INTERVALS_MAX} intervals: {samples:#?}");
    }

    /// Starts a watch and waits for its first interval: the first round of a NAPI instance only makes it known.
    fn begun(stage: &Stage, lab: &Studied) -> Self {
        let mut watching = Self::begin(stage, lab);
        watching.event("start");
        watching.sample();
        watching
    }

    /// Waits for the sample with exactly this many packets dropped at a place.
    fn until_dropped(&mut self, place: LossPlace, packets: u64) -> WatchSample {
        let mut samples = self.samples_until(|sample| dropped(sample, place) >= Some(packets));
        let last = samples.pop().unwrap();
        assert_eq!(dropped(&last, place), Some(packets));
        last
    }

    /// Asks it to end, and returns its end event and its exit code.
    fn end(mut self) -> (WatchEnd, Option<i32>) {
        send_signal(&self.child, Signal::TERM);
        let mut last = String::new();
        for line in (&mut self.lines).lines() {
            last = line.unwrap();
        }
        let event: Value = serde_json::from_str(&last).unwrap();
        assert_eq!(event["event"], "end");
        assert_described(&event, "watch");
        let end = serde_json::from_value(event["data"].clone()).unwrap();
        (end, self.child.wait().unwrap().code())
    }
}

#[test]
fn rates_agree_with_the_interfaces_own_counters() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let lab = lab(&stage);
    let mut watching = Watching::begin(&stage, &lab);
    let start: WatchStart = serde_json::from_value(watching.event("start")).unwrap();
    assert_eq!(start.schema, "nicpoll.watch/3");
    assert!(start.unseen.is_empty(), "{:?}", start.unseen);
    // The first round of a NAPI instance only makes it known.
    send(&lab);
    let first = watching.sample();
    let before = frames_received(lab.receiver());
    send(&lab);
    let after = frames_received(lab.receiver());
    let em0 = |sample: &WatchSample| sample.interfaces.as_ref().unwrap()[0].clone();
    let samples = watching.samples_until(|sample| em0(sample).rx.total_packets >= after);
    let (end, code) = watching.end();
    assert_eq!(code, Some(143));
    assert!(end.intervals > samples.len() as u64);
    assert!(end.cost.unwrap().process_cpu_ratio > 0.0);
    let count = |sample: &WatchSample| em0(sample).rx.packets_per_second.unwrap() * sample.seconds;
    let counted: f64 = samples.iter().map(count).sum();
    let grown = em0(samples.last().unwrap()).rx.total_packets - em0(&first).rx.total_packets;
    assert!((counted - grown as f64).abs() < 0.01, "{counted} {grown}");
    assert!(grown >= after - before && after - before >= PACKETS);
    let peak = em0(samples.last().unwrap()).rx.peak_packets_per_second;
    let rates = std::iter::once(&first).chain(&samples);
    let greatest = rates.filter_map(|sample| em0(sample).rx.packets_per_second);
    assert_eq!(peak, greatest.reduce(f64::max));
    // Arrivals caused a poll for each packet.
    let histograms = samples
        .iter()
        .flat_map(|sample| em0(sample).packets_histogram.unwrap());
    let polled: f64 = histograms
        .map(|(packets, polls)| f64::from(packets) * polls as f64)
        .sum();
    assert!(polled >= PACKETS as f64, "{polled}");
    let mut disciplines = samples.iter().filter_map(|sample| em0(sample).discipline);
    assert!(disciplines.any(|one| one.to_string() == "interrupt"));
}

/// Returns the packets dropped at a place since the watch began.
fn dropped(sample: &WatchSample, place: LossPlace) -> Option<u64> {
    let mut drops = sample.drops.iter();
    drops.find(|drops| drops.place == place).unwrap().packets
}

#[test]
fn drops_appear_where_they_are_made() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let lab = lab(&stage);
    let mut watching = Watching::begun(&stage, &lab);
    send(&lab);
    let last = watching.until_dropped(LossPlace::NoSocket, PACKETS);
    assert_eq!(dropped(&last, LossPlace::Nftables), Some(0));
    let rule = format!(
        "table inet t {{ chain c {{ type filter hook input priority 0; udp dport {PORT} counter drop; }}; }}"
    );
    let made = lab.receiver().run(move |_| {
        let mut nft = Command::new("nft");
        nft.arg(rule).output().map(|output| output.status.success())
    });
    if !matches!(made.unwrap(), Ok(true)) {
        skip(test_name!(), Need::Nft, "nft(8) makes no rule here");
        return;
    }
    send(&lab);
    let last = watching.until_dropped(LossPlace::Nftables, PACKETS);
    assert_eq!(dropped(&last, LossPlace::NoSocket), Some(PACKETS));
    watching.end();
}

/// The kernel counts them at the other end, in another namespace.
#[test]
fn what_a_full_ring_loses_is_the_receivers() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let mut lab = lab(&stage);
    // 256 slots, emptied five times a second.
    lab.put("polling", 200_000_000);
    let tx_dropped = |lab: &Studied| {
        let host = lab.sender();
        let snapshot = host.run(|()| HostCounters::of_caller().snapshot());
        let interfaces = snapshot.unwrap().interfaces.unwrap();
        let dropped = interfaces.values().map(|one| one.link.tx_dropped);
        dropped.sum::<u64>()
    };
    let before = tx_dropped(&lab);
    let mut watching = Watching::begun(&stage, &lab);
    let burst = lab.sender().run(|_| {
        let socket = UdpSocket::bind(("198.18.0.1", 0)).unwrap();
        for _ in 0..1000 {
            let _ = socket.send_to(&[0; 100], ("198.18.0.2", PORT));
        }
    });
    burst.unwrap();
    let lost = tx_dropped(&lab) - before;
    assert!((300..1000).contains(&lost), "{lost}");
    watching.until_dropped(LossPlace::RxRing, lost);
    watching.end();
}

/// Returns tc(8)'s count of packets dropped by the root qdisc of the receiver's interface.
fn dropped_by_tc(lab: &Studied) -> u64 {
    let listed = lab.receiver().run(|_| {
        let mut tc = Command::new("tc");
        tc.args(["-s", "-j", "qdisc", "show", "dev", INTERFACE, "root"]);
        tc.output().unwrap().stdout
    });
    let listed: Value = serde_json::from_slice(&listed.unwrap()).unwrap();
    listed[0]["drops"].as_u64().unwrap()
}

#[test]
fn a_full_queueing_discipline_is_a_place_of_drops() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let lab = lab(&stage);
    // A bucket that passes one packet in four seconds and queues a few.
    let rule = "qdisc replace dev em0 root tbf rate 400bit burst 1600 limit 1600";
    let made = lab.receiver().run(move |_| {
        let mut tc = Command::new("tc");
        tc.args(rule.split(' ')).output()
    });
    if !made.unwrap().is_ok_and(|output| output.status.success()) {
        skip(test_name!(), Need::Tc, "tc(8) makes no bucket here");
        return;
    }
    let mut watching = Watching::begun(&stage, &lab);
    let overflow = || {
        let sent = lab.receiver().run(|_| {
            let socket = UdpSocket::bind(("198.18.0.2", 0)).unwrap();
            for _ in 0..PACKETS {
                socket.send_to(&[0; 100], ("198.18.0.1", PORT)).unwrap();
            }
        });
        sent.unwrap();
    };
    overflow();
    let by_tc = dropped_by_tc(&lab);
    assert!((1..=PACKETS).contains(&by_tc), "{by_tc}");
    let last = watching.until_dropped(LossPlace::SendQueue, by_tc);
    // The kernel counts them as discards of IP, too; each packet is dropped in one place.
    assert_eq!(dropped(&last, LossPlace::IpOutput), Some(0));
    watching.end();
    let netns = netns(&lab);
    let plain = "watch --plain --count 1 --interval 0.5 --netns";
    let plain: Vec<&str> = plain.split(' ').chain([netns.as_str()]).collect();
    let mut plain = stage.nicpoll(&plain).spawn().unwrap();
    while plain.try_wait().unwrap().is_none() {
        overflow();
        thread::sleep(Duration::from_millis(50));
    }
    let text = String::from_utf8(plain.wait_with_output().unwrap().stdout).unwrap();
    let mut rows = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.starts_with(&["send", "queue"]));
    let row = row.unwrap_or_else(|| panic!("no row in:\n{text}"));
    assert_ne!(row[2], "0", "{text}");
}

#[test]
fn storms_are_marked_by_the_threshold_that_is_asked_for() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let lab = lab(&stage);
    // The clock interrupt of each CPU, if events show it. Every entry is a run of at least one.
    for (threshold, marked) in [
        ("0", None),
        ("1", Some(true)),
        ("18446744073709551615", Some(false)),
    ] {
        let mut watching = Watching::begin_with(&stage, &lab, &["--storm-threshold", threshold]);
        let start: WatchStart = serde_json::from_value(watching.event("start")).unwrap();
        assert_eq!(start.storm_threshold_entries.to_string(), threshold);
        let clock = |sample: &WatchSample| {
            let mut lines = sample.interrupts.as_ref().unwrap().iter();
            lines.find(|line| line.irq == "LOC").cloned()
        };
        let samples = watching.samples_until(|sample| {
            clock(sample).is_none_or(|line| line.interrupts_per_second > Some(0.0))
        });
        let Some(line) = clock(samples.last().unwrap()) else {
            let reason = "this machine has no line of its CPUs' clocks";
            skip(test_name!(), Need::ClockInterrupts, reason);
            return;
        };
        assert_eq!(line.is_storm, marked, "{threshold}: {line:?}");
        watching.end();
    }
}

#[test]
fn the_count_ends_it_and_text_has_a_block_an_interval() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let lab = lab(&stage);
    let netns = netns(&lab);
    let base = format!("watch {INTERFACE} --interval 0.1 --count 2 --netns {netns}");
    let base = words(&base);
    let text = stage.run(&base);
    assert_eq!(text.status.code(), Some(0), "{text:?}");
    let text = stdout(&text);
    assert_eq!(text.matches("s, the last ").count(), 2, "{text}");
    assert_has_all(
        &text,
        "bit/s | discipline | (exact) | since boot | of one core",
    );
    let packets = stage.run(&[&base[..], &["--plain", "--scale", "packets"]].concat());
    let packets = stdout(&packets);
    assert!(
        packets.contains("p/s") && !packets.contains("bit/s"),
        "{packets}"
    );
    let lines = stage.run(&[&base[..], &["--json-stream"]].concat());
    let lines = stdout(&lines);
    assert_eq!(lines.lines().count(), 4, "{lines}");
    assert!(lines.lines().last().unwrap().contains("\"intervals\":2"));
}

#[test]
fn nothing_is_watched_for_nobody() {
    let stage = Stage::new();
    let args = ["watch", "lo", "--plain", "--interval", "0.1"];
    let mut child = stage.nicpoll(&args).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    drop(lines);
    let mut code = None;
    wait_until("it ends", || {
        code = child.try_wait().unwrap();
        code.is_some()
    });
    assert_eq!(code.unwrap().code(), Some(141));
}

#[test]
fn what_is_not_there_is_an_error_with_a_next_step() {
    let stage = Stage::new();
    let unknown = stage.run(&["watch", "no-such-interface", "--count", "1"]);
    assert_code(&unknown, 1);
    assert!(stderr(&unknown).contains("--netns"), "{unknown:?}");
    assert!(unknown.stdout.is_empty());
    for wrong in [["--interval", "1us"], ["--scale", "baud"], ["--count", "0"]] {
        let usage = stage.run(&[&["watch"], &wrong[..]].concat());
        assert_eq!(usage.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn an_ordinary_user_gets_sampled_times_that_are_named_so() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let lab = lab(&stage);
    let program = copy_for_anybody(stage.home.path());
    let run = move |_: &mut _| {
        let mut command = as_nobody(&program);
        command.args(words("watch --json-stream --interval 0.1 --count 1"));
        command.stdin(Stdio::null()).output().unwrap()
    };
    let output = lab.receiver().run(run).unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for event in &events {
        assert_described(event, "watch");
    }
    let unseen = events[0]["data"]["unseen"].as_array().unwrap();
    assert_eq!(unseen.len(), 2, "{unseen:?}");
    assert!(
        unseen
            .iter()
            .all(|one| one["why"].as_str().unwrap().contains("root"))
    );
    let interval = &events[1]["data"];
    assert_eq!(interval["cpu_source"], "tick_sampled");
    assert!(!interval["cpu"].as_array().unwrap().is_empty());
    assert_eq!(interval["cost"]["bpf_cpu_ratio"], Value::Null);
    let interface = &interval["interfaces"][0];
    assert_eq!(interface["polls_per_second"], Value::Null);
    assert_eq!(interface["discipline"], Value::Null);
    assert!(interface["rx"]["packets_per_second"].is_number());
}
