use super::*;
use crate::kernel::{Interface, LinkInfo};
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

/// A card of two queues that starts with a deferral of its own, as some drivers do.
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
            part: Part::Whole,
            values: Values::new(),
        },
        has_gro: true,
        values: [
            (&table::THREADED, 0),
            (&table::DEFER_HARD_IRQS, 1),
            (&table::GRO_FLUSH_TIMEOUT, 20_000),
            (&table::RX_USECS, 3),
            (&table::ADAPTIVE_RX, 1),
        ]
        .map(|(row, number)| (Knob::of_interface(row), Value::Number(number)))
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

fn polling() -> Values {
    one(&table::DEFER_HARD_IRQS, 1000).with(&table::GRO_FLUSH_TIMEOUT, 200_000)
}

/// The same, asked for values.
fn asked(mut facts: InterfaceFacts, values: &Values, part: Part) -> InterfaceFacts {
    facts.asked.values = values.clone();
    facts.asked.part = part;
    facts
}

/// The writes of the settings of a card.
fn of_card(values: &Values, part: Part) -> Result<Vec<Write>, Refusal> {
    settings(&asked(card(), values, part))
}

/// The writes that polling needs first.
fn needed(facts: InterfaceFacts, needs: Needs) -> Result<Vec<Write>, Refusal> {
    preconditions_of(&asked(facts, &polling(), Part::Whole), &[], needs)
}

fn one(row: &'static KnobRow, number: u64) -> Values {
    Values::new().with(row, number)
}

fn able() -> Abilities {
    Abilities {
        has_napi_set: true,
        threaded_max: Some(1),
        has_suspend: true,
    }
}

/// Writes as one line each; what is only recorded in brackets.
fn lines(writes: &[Write]) -> Vec<String> {
    writes
        .iter()
        .map(|write| {
            let (name, change) = (&write.target.interface.name, &write.change);
            let line = format!(
                "{name} {} {}->{}",
                change.knob, change.before, change.written
            );
            if write.is_implied {
                format!("[{line}]")
            } else {
                line
            }
        })
        .collect()
}

#[test]
fn a_whole_interface_is_written_once_and_every_instance_is_recorded() {
    let writes = of_card(&polling(), Part::Whole).unwrap();
    let wanted = [
        "if2 napi_defer_hard_irqs 1->1000",
        "if2 gro_flush_timeout 20000->200000",
        "if2 NAPI 300 napi_defer_hard_irqs 1->1000",
        "if2 NAPI 300 gro_flush_timeout 20000->200000",
        "if2 NAPI 301 napi_defer_hard_irqs 7->1000",
        "if2 NAPI 301 gro_flush_timeout 20000->200000",
    ];
    let is_device = |line: &String| !line.contains("NAPI");
    let lines: Vec<String> = lines(&writes);
    for (line, wanted) in lines.iter().zip(wanted) {
        let expected = if is_device(line) {
            String::from(wanted)
        } else {
            format!("[{wanted}]")
        };
        assert_eq!(*line, expected);
    }
    assert_eq!(lines.len(), wanted.len());
}

#[test]
fn one_of_the_pair_alone_has_the_other_recorded_with_it() {
    let request = one(&table::GRO_FLUSH_TIMEOUT, 200_000);
    let part = Part::Napis(vec![301]);
    assert_eq!(
        lines(&of_card(&request, part).unwrap()),
        [
            "[if2 NAPI 301 napi_defer_hard_irqs 7->7]",
            "if2 NAPI 301 gro_flush_timeout 20000->200000",
        ]
    );
}

#[test]
fn what_is_so_already_is_not_written() {
    let request = one(&table::GRO_FLUSH_TIMEOUT, 20_000).with(&table::RX_USECS, 3);
    assert!(of_card(&request, Part::Whole).unwrap().is_empty());
}

#[test]
fn queues_stand_for_the_instances_that_serve_them() {
    let part = |queues: &[u32]| Part::RxQueues(queues.to_vec());
    let writes = of_card(&polling(), part(&[1])).unwrap();
    assert!(lines(&writes).iter().all(|line| line.contains("NAPI 301")));
    assert_eq!(writes.len(), 2);
    let refusal = of_card(&polling(), part(&[0, 2])).unwrap_err();
    assert!(refusal.to_string().contains("rx0, rx1"), "{refusal}");
    let refusal = of_card(&polling(), Part::Napis(vec![9])).unwrap_err();
    assert!(refusal.to_string().contains("300, 301"), "{refusal}");
}

#[test]
fn the_driver_is_stopped_before_its_numbers_are_written() {
    let request = one(&table::RX_USECS, 50).with(&table::ADAPTIVE_RX, 0);
    assert_eq!(
        lines(&of_card(&request, Part::Whole).unwrap()),
        [
            "if2 coalescing adaptive-rx 1->0",
            "if2 coalescing rx-usecs 3->50"
        ]
    );
}

#[test]
fn a_veth_needs_gro_here_and_no_tso_there() {
    let refusal = needed(veth(), Needs::Refuse).unwrap_err();
    for words in ["GRO is off", "TSO is on", "--fix"] {
        assert!(refusal.to_string().contains(words), "{refusal}");
    }
    assert_eq!(
        lines(&needed(veth(), Needs::Fix).unwrap()),
        [
            "if2 feature rx-gro 0->1",
            "if3 feature tx-tcp-segmentation 1->0"
        ]
    );
    // With an XDP program it has an instance without GRO, and no TSO comes its way.
    let mut xdp = veth();
    xdp.napis = Some(vec![napi(300, 0, 0)]);
    assert!(needed(xdp, Needs::Refuse).unwrap().is_empty());
    // Interrupt moderation alone needs none of it.
    let request = one(&table::RX_USECS, 3);
    assert!(
        preconditions_of(&asked(veth(), &request, Part::Whole), &[], Needs::Refuse)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn the_end_of_a_pair_that_cannot_be_found_is_a_reason_even_with_fix() {
    let mut facts = veth();
    facts.peer = Some(Peer::default());
    let refusal = needed(facts, Needs::Fix).unwrap_err();
    assert!(refusal.to_string().contains("ip netns attach"), "{refusal}");
}

#[test]
fn what_cannot_work_is_refused_with_the_reason() {
    let of = |change: fn(&mut InterfaceFacts), request: &Values| {
        let mut facts = asked(card(), request, Part::Whole);
        change(&mut facts);
        let checked = check(&facts, &able());
        let prepared = checked.and_then(|()| preconditions_of(&facts, &[], Needs::Fix));
        prepared.map(|_| ()).unwrap_err()
    };
    type Alter = fn(&mut InterfaceFacts);
    let cases: [(Alter, &str); 4] = [
        (|f| f.link.is_loopback = true, "loopback"),
        (|f| f.link.interface.driver = "tun".into(), "tap"),
        (|f| f.link.interface.driver = "bridge".into(), "below"),
        (|f| f.napis = Some(Vec::new()), "no NAPI"),
    ];
    for (change, said) in cases {
        let refusal = of(change, &polling());
        assert!(refusal.reason.contains(said) && !refusal.is_of_kernel);
    }
    let refusal = of(|_| {}, &one(&table::TX_USECS, 1));
    assert!(refusal.to_string().contains("rx-usecs, adaptive-rx"));
    assert!(of(|_| {}, &one(&table::THREADED, 2)).is_of_kernel);
}

#[test]
fn an_old_kernel_takes_whole_interfaces_and_nothing_smaller() {
    let old = Abilities::default();
    let mut facts = card();
    facts.napis = None;
    facts.rx_queues.clear();
    assert_eq!(
        check(&asked(facts.clone(), &polling(), Part::Whole), &old),
        Ok(())
    );
    assert!(needed(facts.clone(), Needs::Refuse).unwrap().is_empty());
    assert_eq!(
        lines(&settings(&asked(facts.clone(), &polling(), Part::Whole)).unwrap()),
        [
            "if2 napi_defer_hard_irqs 1->1000",
            "if2 gro_flush_timeout 20000->200000"
        ]
    );
    let suspend = one(&table::IRQ_SUSPEND_TIMEOUT, 1);
    let mut bound = Values::new();
    bound.insert(&table::THREAD_CPUS, Value::Cpus(vec![0]));
    for (request, part) in [
        (&polling(), Part::RxQueues(vec![0])),
        (&suspend, Part::Whole),
        (&bound, Part::Whole),
    ] {
        let refusal = check(&asked(facts.clone(), request, part), &old).unwrap_err();
        assert!(refusal.is_of_kernel);
    }
}

#[test]
fn threads_are_looked_for_before_they_are_bound() {
    let mut request = Values::new();
    request.insert(&table::THREAD_CPUS, Value::Cpus(vec![1]));
    let fifo = Value::Policy(Policy::Fifo { priority: 5 });
    request.insert(&table::THREAD_POLICY, fifo);
    let refusal = threads(&asked(card(), &request, Part::Whole)).unwrap_err();
    assert!(refusal.to_string().contains("--threaded"), "{refusal}");
    let mut facts = card();
    facts.napis = Some(vec![Napi {
        thread_pid: Some(44),
        ..napi(300, 0, 0)
    }]);
    let fair = Value::Policy(Policy::Fair { nice: 0 });
    for (row, value) in [
        (&table::THREAD_CPUS, Value::Cpus(vec![0, 1])),
        (&table::THREAD_POLICY, fair),
    ] {
        facts.values.insert(Knob::of_thread(row, 44), value);
    }
    assert_eq!(
        lines(&threads(&asked(facts, &request, Part::Whole)).unwrap()),
        [
            "if2 thread 44 scheduling nice 0->FIFO 5",
            "if2 thread 44 CPUs 0,1->1"
        ]
    );
}
