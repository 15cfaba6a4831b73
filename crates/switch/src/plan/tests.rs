//! The writes of each request, or the reason of its refusal.

use super::*;
use crate::kernel::{Interface, LinkInfo};
use crate::request::Name;
use nicpoll_sys::schedule::Policy;
use std::collections::BTreeMap;

fn target(ifindex: u32, driver: &str) -> Target {
    Target {
        netns_inode: 7,
        interface: Interface {
            ifindex,
            name: format!("if{ifindex}"),
            driver: String::from(driver),
            device_id: Some(1),
            ..Interface::default()
        },
    }
}

fn napi(id: u32, defer_hard_irqs: u32, gro_flush_timeout_ns: u64) -> Napi {
    Napi {
        id,
        defer_hard_irqs: Some(defer_hard_irqs),
        gro_flush_timeout_ns: Some(gro_flush_timeout_ns),
        irq_suspend_timeout_ns: Some(0),
        threaded: Some(0),
        ..Napi::default()
    }
}

/// A card with two queues whose driver starts with a deferral, as some do.
pub(crate) fn card() -> InterfaceFacts {
    let target = target(2, "");
    InterfaceFacts {
        link: LinkInfo {
            interface: target.interface.clone(),
            is_up: true,
            ..LinkInfo::default()
        },
        asked: Order {
            target,
            part: InterfacePart::Whole,
            values: KnobValues::new(),
        },
        has_gro: true,
        values: [
            (&table::THREADED, 0),
            (&table::DEFER_HARD_IRQS, 1),
            (&table::GRO_FLUSH_TIMEOUT, 20_000),
            (&table::RX_USECS, 3),
            (&table::ADAPTIVE_RX, 1),
        ]
        .map(|(row, number)| (ScopedKnob::of_interface(row), Value::Number(number)))
        .into(),
        napis: Some(vec![napi(300, 1, 20_000), napi(301, 7, 20_000)]),
        rx_queues: BTreeMap::from([(0, 300), (1, 301)]),
        ring_slots: Some(1024),
        peer: None,
    }
}

fn veth() -> InterfaceFacts {
    let mut facts = card();
    facts.asked.target = target(2, "veth");
    facts.link.interface = facts.asked.target.interface.clone();
    facts.has_gro = false;
    facts.napis = Some(Vec::new());
    facts.peer = Some(Peer {
        target: Some(target(3, "veth")),
        tso_features_on: vec![String::from("tx-tcp-segmentation")],
        ..Peer::default()
    });
    facts
}

/// Makes the interface that a word stands for.
fn facts(word: &str) -> InterfaceFacts {
    let mut facts = if word.starts_with("veth") {
        veth()
    } else {
        card()
    };
    match word {
        "card" | "veth" => {}
        // With an XDP program a veth has an instance without GRO, and its peer no TSO.
        "veth-xdp" => facts.napis = Some(vec![napi(300, 0, 0)]),
        "veth-alone" => facts.peer = Some(Peer::default()),
        "loopback" => facts.link.is_loopback = true,
        "tap" => facts.link.interface.driver = "tun".into(),
        "wireguard" => {
            facts.link.interface.driver = "wireguard".into();
            facts.napis = Some(Vec::new());
        }
        "bridge" => facts.link.interface.driver = "bridge".into(),
        "no-napi" => facts.napis = Some(Vec::new()),
        // From a kernel that lists no instances.
        "old" => {
            facts.napis = None;
            facts.rx_queues.clear();
        }
        // Before threaded NAPI.
        "older" => {
            facts.napis = Some(vec![Napi {
                id: 300,
                ..Napi::default()
            }]);
            facts
                .values
                .remove(&ScopedKnob::of_interface(&table::THREADED));
        }
        "threaded" => {
            let polled = napi(300, 0, 0);
            facts.napis = Some(vec![Napi {
                thread_pid: Some(44),
                ..polled
            }]);
            let fair = Value::Policy(Policy::Fair { nice: 0 });
            let values = [
                (&table::THREAD_CPUS, Value::Cpus(vec![0, 1])),
                (&table::THREAD_POLICY, fair),
            ];
            let of = |(row, value)| (ScopedKnob::of_thread(row, 44), value);
            facts.values.extend(values.map(of));
        }
        _ => panic!("{word}"),
    }
    facts
}

/// Returns all writes of a request, in order.
fn plan(word: &str, needs: Needs, name: &str, set: &str) -> Result<Vec<Write>, Refusal> {
    let mut facts = facts(word);
    facts.asked.part = Name::parse(name).unwrap().part;
    facts.asked.values = toml::from_str(&set.replace(", ", "\n")).unwrap();
    let able = Abilities {
        has_napi_set: true,
        threaded_max: Some(1),
        has_suspend: true,
    };
    let abilities = if word.starts_with("old") {
        Abilities::default()
    } else {
        able
    };
    check(&facts, &abilities)?;
    let mut writes = preconditions_of(&facts, &[], needs)?;
    writes.extend(settings(&facts)?);
    writes.extend(threads(&facts)?);
    Ok(writes)
}

/// Shows writes, one a line; those that are only recorded in brackets.
fn line(write: &Write) -> String {
    let (name, change) = (&write.target.interface.name, &write.change);
    let line = format!(
        "{name} {} {}->{}",
        change.knob, change.before, change.written
    );
    match write.is_implied {
        true => format!("[{line}]"),
        false => line,
    }
}

const POLLING: &str = "napi_defer_hard_irqs = 1000, gro_flush_timeout = '200us'";

/// Cases `interface | name | values`, then the writes, or words of the refusal after `!`, or after `kernel!` if another
/// kernel would take it. Preconditions are fixed, unless the name has a question mark.
const PLANS: &str = "
    card | if2 | POLLING
        if2 napi_defer_hard_irqs 1->1000
        if2 gro_flush_timeout 20000->200000
        [if2 NAPI 300 napi_defer_hard_irqs 1->1000]
        [if2 NAPI 300 gro_flush_timeout 20000->200000]
        [if2 NAPI 301 napi_defer_hard_irqs 7->1000]
        [if2 NAPI 301 gro_flush_timeout 20000->200000]
    card | if2:napi301 | gro_flush_timeout = '200us'
        [if2 NAPI 301 napi_defer_hard_irqs 7->7]
        if2 NAPI 301 gro_flush_timeout 20000->200000
    card | if2 | gro_flush_timeout = '20us', rx-usecs = 3
    card | if2:rx1 | POLLING
        if2 NAPI 301 napi_defer_hard_irqs 7->1000
        if2 NAPI 301 gro_flush_timeout 20000->200000
    card | if2:rx0,2 | POLLING
        ! rx0, rx1
    card | if2:napi9 | POLLING
        ! 300, 301
    card | if2 | rx-usecs = 50, adaptive-rx = 'off'
        if2 coalescing adaptive-rx 1->0
        if2 coalescing rx-usecs 3->50
    veth | if2? | POLLING
        ! GRO is off
        ! TSO is on
        ! --fix
    veth | if2 | POLLING
        if2 feature rx-gro 0->1
        if3 feature tx-tcp-segmentation 1->0
        if2 napi_defer_hard_irqs 1->1000
        if2 gro_flush_timeout 20000->200000
    veth-xdp | if2? | POLLING
        if2 napi_defer_hard_irqs 1->1000
        if2 gro_flush_timeout 20000->200000
        [if2 NAPI 300 napi_defer_hard_irqs 0->1000]
        [if2 NAPI 300 gro_flush_timeout 0->200000]
    veth | if2? | rx-usecs = 3
    veth-alone | if2 | POLLING
        ! ip netns attach
    loopback | if2 | POLLING
        ! loopback
    tap | if2 | POLLING
        ! tap
    wireguard | if2? | threaded = 1
        if2 threaded 0->1
    wireguard | if2 | threaded = 1, POLLING
        ! --threaded
    wireguard | if2 | thread_cpus = '1'
        ! lists no
    bridge | if2 | POLLING
        ! below
    no-napi | if2 | POLLING
        ! no NAPI
    card | if2 | tx-usecs = 1
        ! rx-usecs, adaptive-rx
    card | if2 | threaded = 2
        kernel! without end
    old | if2? | POLLING
        if2 napi_defer_hard_irqs 1->1000
        if2 gro_flush_timeout 20000->200000
    older | if2 | threaded = 1
        kernel! Linux 5.12
    older | if2 | threaded = 0, POLLING
        if2 napi_defer_hard_irqs 1->1000
        if2 gro_flush_timeout 20000->200000
    old | if2:rx0 | POLLING
        kernel! a single NAPI instance
    old | if2 | irq-suspend-timeout = '1ns'
        kernel! irq-suspend-timeout
    old | if2 | thread_cpus = '0'
        kernel! which threads poll it
    card | if2 | thread_cpus = '1', thread_policy = 'fifo 5'
        ! --threaded
    threaded | if2 | thread_cpus = '1', thread_policy = 'fifo 5'
        if2 thread 44 scheduling nice 0->FIFO 5
        if2 thread 44 CPUs 0,1->1
";

#[test]
fn each_request_has_its_writes_or_its_refusal() {
    let mut lines = PLANS.lines().map(str::trim).peekable();
    while let Some(case) = lines.next() {
        let Some((interface, asked)) = case.split_once(" | ") else {
            continue;
        };
        let (name, set) = asked.split_once(" | ").unwrap();
        let needs = match name.ends_with('?') {
            true => Needs::Refuse,
            false => Needs::Fix,
        };
        let set = set.replace("POLLING", POLLING);
        let planned = plan(interface, needs, name.trim_end_matches('?'), &set);
        let is_outcome = |line: &&str| !line.is_empty() && !line.contains(" | ");
        let mut wanted = Vec::new();
        while let Some(line) = lines.next_if(is_outcome) {
            wanted.push(line);
        }
        match planned {
            Ok(writes) => assert_eq!(
                writes.iter().map(line).collect::<Vec<_>>(),
                wanted,
                "{case}"
            ),
            Err(refusal) => {
                let mark = if refusal.is_of_kernel {
                    "kernel! "
                } else {
                    "! "
                };
                assert!(!wanted.is_empty(), "{case}: {refusal}");
                for line in wanted {
                    let words = line.strip_prefix(mark);
                    let is_so = words.is_some_and(|words| refusal.to_string().contains(words));
                    assert!(is_so, "{case}: {line}: {refusal}");
                }
            }
        }
    }
}

#[test]
fn what_a_study_writes_without_asking_first_is_refused_too() {
    let mut facts = facts("older");
    facts.asked.values = KnobValues::new().with(&table::THREADED, 1);
    assert!(settings(&facts).unwrap_err().is_of_kernel);
}
