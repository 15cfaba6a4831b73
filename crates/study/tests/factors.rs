//! Levels of factors on a real kernel: each is in force under its setting, and restored afterwards.

mod common;

use std::fs;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use common::TestLab;
use nicpoll_iperf::UdpWorkload;
use nicpoll_lab::{Lab, Running, Veth, WorkloadRequest};
use nicpoll_model::{Side, SwitchValue};
use nicpoll_stats::order::Seed;
use nicpoll_study::{StudyFile, TrialPlace, Trials, apply};
use nicpoll_switch::{Journal, Owner};
use nicpoll_testkit::needs;

const FILE: &str = r#"
question = "Does anything but the period matter?"
[common]
receiver = { gro = "on" }
[[factor]]
name = "host"
levels = [
  { name = "as-is" },
  { name = "changed", sender = { feature = { "tx-checksum-ip-generic" = "off" }, sysctl = { "net.ipv4.tcp_rmem" = "4096 65536 100000" } }, receiver = { sysctl = { "net.ipv4.tcp_ecn" = 1 } } },
]
[[factor]]
name = "machine"
levels = [
  { name = "quiet" },
  { name = "talks", machine = { sysctl = { "net.core.message_burst" = 11 } }, cpus = { sender = 1, receiver = 0 } },
]
[[workload]]
name = "rr"
traffic = { kind = "rr" }
"#;

fn sysctl(name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads the values that the levels change.
fn values(test: &mut TestLab) -> [String; 4] {
    let inside = |side, name: &'static str| test.veth.inside(side).run(move |()| sysctl(name));
    let feature = "sender: feature tx-checksum-ip-generic (wanted)";
    [
        inside(Side::Sender, "net.ipv4.tcp_rmem").unwrap(),
        inside(Side::Receiver, "net.ipv4.tcp_ecn").unwrap(),
        test.lab.settings().unwrap()[feature].clone(),
        sysctl("net.core.message_burst"),
    ]
}

#[test]
fn sysctls_features_and_cores_are_in_force_under_their_setting_alone() {
    needs!(Root, PerNapi);
    let file = StudyFile::parse(FILE).unwrap();
    file.check(FILE, &file.look().unwrap()).unwrap();
    let mut test = TestLab::build();
    let before = values(&mut test);
    assert_ne!(before[3], "11");
    let setting = |name: &str| file.design.setting(name).unwrap();
    let cpus = test.lab.cpus();

    apply(&mut test.lab, setting("changed+talks"), None).unwrap();
    let during = values(&mut test);
    assert_eq!(during, ["4096 65536 100000", "1", "false", "11"]);
    // The study stores each value with the earlier one.
    let changed = test.lab.changed_by("changed+talks").unwrap();
    let written = |host: &str, name: &str| {
        let writes = changed.iter().filter(|one| one.host == host);
        let mut writes = writes.flat_map(|one| &one.writes);
        let write = writes.find(|write| write.name == format!("sysctl {name}"));
        let write = write.unwrap_or_else(|| panic!("{name}: {changed:?}"));
        [&write.before, &write.after].map(|value| match value {
            SwitchValue::Number(number) => number.to_string(),
            SwitchValue::Words(words) => words.split_whitespace().collect::<Vec<_>>().join(" "),
            SwitchValue::Cpus(cpus) => format!("{cpus:?}"),
        })
    };
    assert!(changed.iter().all(|one| one.setting == "changed+talks"));
    for (host, name, index) in [
        ("sender", "net.ipv4.tcp_rmem", 0),
        ("receiver", "net.ipv4.tcp_ecn", 1),
        ("machine", "net.core.message_burst", 3),
    ] {
        let expected = [before[index].clone(), during[index].clone()];
        assert_eq!(written(host, name), expected, "{name}");
    }
    assert!(!test.journal_is_empty());
    assert_eq!(test.lab.cpus(), [1, 0]);
    test.lab.restore().unwrap();
    assert_eq!(values(&mut test), before);
    assert!(test.journal_is_empty());

    apply(&mut test.lab, setting("as-is+quiet"), None).unwrap();
    let gro = test.lab.changed_by("as-is+quiet").unwrap();
    assert!(gro.iter().all(|one| one.host == "receiver"), "{gro:?}");
    assert_eq!(values(&mut test), before);
    assert_eq!(test.lab.cpus(), cpus);
    test.lab.restore().unwrap();
}

#[test]
fn what_this_kernel_or_a_namespace_has_not_is_refused_with_its_line() {
    needs!(Root);
    // The line that the machine refuses (0: the file itself is refused), words of the refusal, a text and its
    // replacement.
    let cases = r#"
    9 | machine = { sysctl = { "net.core.busy_read" = ... } } | "net.ipv4.tcp_ecn" = 1 | "net.core.busy_read" = 50
    15 | has its own | net.core.message_burst | net.ipv4.tcp_ecn
    15 | sysctl -a | net.core.message_burst | net.core.no_such
    9 | did you mean 'tx-checksum-ip-generic'? | tx-checksum-ip-generic | tx-checksum-ip-genric
    0 | a card's | sender = { feature | sender = { rx-ring = 64, feature
    0 | an interface's | machine = { sysctl | machine = { threaded = 1, sysctl
    0 | named as sysctl(8) does | net.core.message_burst | net.core..burst
    0 | by its own name, gro | tx-checksum-ip-generic | rx-gro
    "#;
    for case in cases.lines().filter(|case| case.contains('|')) {
        let parts: Vec<&str> = case.split('|').map(str::trim).collect();
        let [line, wanted, find, replace] = parts[..] else {
            panic!("{case}");
        };
        let text = FILE.replacen(find, replace, 1);
        assert_ne!(text, FILE);
        let file = StudyFile::parse(&text);
        assert_eq!(file.is_err(), line == "0", "{replace}");
        let refused = file.and_then(|file| {
            let here = file.look().unwrap();
            file.check(&text, &here).map_err(|error| {
                assert_eq!(error.line.to_string(), line, "{replace}: {error}");
                error
            })
        });
        let error = refused.unwrap_err();
        assert!(error.message.contains(wanted), "{replace}: {error}");
    }
}

const XDP: &str = r#"
question = "What does it cost that an XDP program is there?"
[[factor]]
name = "xdp"
levels = [
  { name = "off" },
  { name = "native", xdp = { receiver = { mode = "native" } } },
  { name = "generic", xdp = { receiver = { mode = "generic" } } },
]
[[workload]]
name = "rr"
traffic = { kind = "rr" }
"#;

/// Reads what an XDP program at the receiver may change: the program and its mode, the NAPI, and at the sender TSO
/// and the MTU limit.
fn xdp_state(test: &mut TestLab) -> (&'static str, usize, String, u32) {
    let shown = test.in_host(Side::Receiver, "ip", &["-d", "link", "show", "em0"]);
    let mode = match (shown.contains("xdpgeneric"), shown.contains("xdp")) {
        (true, _) => "generic",
        (false, true) => "native",
        (false, false) => "off",
    };
    let settings = test.lab.settings().unwrap();
    (
        mode,
        test.lab.receiver.napis().unwrap().len(),
        settings["sender: feature tx-tcp-segmentation (active)"].clone(),
        settings["sender: greatest mtu"].parse().unwrap(),
    )
}

#[test]
fn an_xdp_program_is_there_under_its_level_alone_and_what_it_does_to_the_other_end_is_seen() {
    needs!(Root, PerNapi, Ip);
    let file = StudyFile::parse(XDP).unwrap();
    let mut test = TestLab::build();
    let before = xdp_state(&mut test);
    assert_eq!((before.0, before.1, before.2.as_str()), ("off", 0, "true"));
    for (level, napis, has_tso) in [("native", 1, "false"), ("generic", 0, "true")] {
        let setting = file.design.setting(level).unwrap();
        let facts = setting.facts();
        assert!(facts.writes[0].2.contains(level), "{:?}", facts.writes);
        apply(&mut test.lab, setting, None).unwrap();
        // As when a timeout is adjusted.
        apply(&mut test.lab, setting, None).unwrap();
        let during = xdp_state(&mut test);
        assert_eq!(
            (during.0, during.1, during.2.as_str()),
            (level, napis, has_tso)
        );
        assert_eq!(during.3 < before.3, level == "native");
        test.lab.restore().unwrap();
        assert_eq!(xdp_state(&mut test), before);
    }
}

#[test]
fn a_program_of_the_users_own_drops_what_it_drops() {
    needs!(Root, PerNapi);
    let object = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../observe/bpf/xdp_drop_eighth.bpf.o"
    );
    let own = format!("{{ object = \"{object}\", program = \"drop_every_eighth_frame\" }}");
    let text = XDP.replacen("{ mode = \"native\" }", &own, 1);
    let file = StudyFile::parse(&text).unwrap();
    let mut test = TestLab::build();
    apply(&mut test.lab, file.design.setting("native").unwrap(), None).unwrap();
    let traffic = WorkloadRequest::Udp(UdpWorkload {
        payload_bytes: 64,
        packets_per_second: NonZeroU64::new(4000),
        receive_buffer_bytes: Some(8 << 20),
    });
    let quiet = Duration::from_millis(10);
    let books = test.traffic(&traffic, Duration::from_millis(200), quiet);
    let (offered, delivered) = books.packets.unwrap();
    // The ends of a stream count for frames too.
    let dropped = 8 * (offered - delivered);
    assert!(
        dropped.abs_diff(offered) <= 16 && offered > 100,
        "{offered}, {delivered}"
    );
    test.lab.restore().unwrap();
}

#[test]
fn a_delay_is_made_where_the_kernel_can_and_refused_with_its_line_where_it_cannot() {
    needs!(Root, PerNapi);
    let text = XDP.replacen("[[factor]]", "[topology]\ndelay = \"20ms\"\n[[factor]]", 1);
    let file = StudyFile::parse(&text).unwrap();
    match file.check(&text, &file.look().unwrap()) {
        Err(error) => {
            assert_eq!(error.line, 3);
            assert!(error.message.contains("modprobe sch_netem"), "{error}");
        }
        Ok(()) => {
            let _alone = TestLab::alone();
            let state = tempfile::tempdir().unwrap();
            let journal = Journal::at(state.path().join("state"));
            let veth = Arc::new(Veth::of(&file.design.topology).unwrap());
            let mut lab =
                Lab::local(veth.link(), &journal, Owner::this_process().unwrap()).unwrap();
            let rr = &file.design.workloads[0];
            let mut running = Running::start(&mut lab, rr, Duration::from_millis(300)).unwrap();
            let never = AtomicBool::new(false);
            running.wait_for_sender(&mut lab, &never).unwrap();
            let books = running.drain(&mut lab, Duration::from_millis(50)).unwrap();
            let trips = books.round_trip.unwrap();
            assert!(trips.quantiles.min_ns >= Some(40_000_000), "{trips:?}");
        }
    }
    let plan = file.plan(Seed(1)).unwrap().plan;
    // Both ways of a straggler, plus the minimum of any link.
    assert_eq!(plan.drain_seconds, 0.042);
    let own = format!("drain = \"100ms\"\n{text}");
    let own = StudyFile::parse(&own).unwrap().plan(Seed(1)).unwrap().plan;
    assert_eq!(own.drain_seconds, 0.1);
    assert!(own.estimated_trial_seconds[0] > plan.estimated_trial_seconds[0] + 0.3);
    let long = format!("drain = \"9s\"\n{text}");
    let refused = StudyFile::parse(&long).unwrap_err();
    assert!(refused.to_string().contains("2ms to 2s"), "{refused}");
}

const ENGINE: &str = r#"
question = "What does the engine cost?"
blocks = 1
trial = "150ms"
[common]
sender = { tso = "off" }
receiver = { gro = "on" }
[[setting]]
name = "socket"
[[setting]]
name = "engine"
engine = { discipline = "polling", hz = 2000 }
[[workload]]
name = "udp"
spinner = true
traffic = { kind = "udp", payload_bytes = 64, packets_per_second = 4000 }
"#;

#[test]
fn the_engine_receives_in_place_of_the_socket_and_has_the_same_figures() {
    needs!(Root, PerNapi, Ip);
    let file = StudyFile::parse(ENGINE).unwrap();
    let plan = file.plan(Seed(1)).unwrap().plan;
    let mut test = TestLab::build();
    let before = xdp_state(&mut test);
    let never = AtomicBool::new(false);
    for (sequence, setting) in (1..).zip(["socket", "engine"]) {
        let mut trials = Trials::new(&mut test.lab, &file.design, &plan, &never).unwrap();
        let trial = trials.run(TrialPlace {
            sequence,
            block: 1,
            workload: String::from("udp"),
            setting: String::from(setting),
        });
        let trial = trial.unwrap();
        assert_eq!(trial.validity.failure, None, "{setting}: {trial:?}");
        assert_eq!(trial.validity.ledger_void, None, "{setting}: {trial:?}");
        let figures = trial.figures.unwrap();
        assert_eq!(figures.ledger.residual_packets, Some(0), "{setting}");
        let (offered, delivered) = (figures.offered_packets, figures.delivered_packets);
        assert!(
            offered.unwrap() > 100 && delivered.unwrap() > 100,
            "{figures:?}"
        );
        // Only their entry differs: UDP counts a socket's datagrams.
        let delays = figures.one_way_delays.unwrap();
        assert_eq!(delays.entries.iter().sum::<u64>(), delivered.unwrap());
        let spinner = figures.spinner.unwrap();
        assert!(
            spinner.cpu_ratio > 0.0 && spinner.cpu_ratio <= 1.0,
            "{spinner:?}"
        );
        assert!(figures.cpu.unwrap().busy_ns_per_packet.unwrap() > 0.0);
        assert_eq!(xdp_state(&mut test), before);
    }
    let engine = file.design.setting("engine").unwrap();
    apply(&mut test.lab, engine, None).unwrap();
    assert_eq!(xdp_state(&mut test).0, "native");
    test.lab.restore().unwrap();
    assert_eq!(xdp_state(&mut test), before);
}
