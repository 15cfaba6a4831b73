//! Invariants of any host under any load.

#[path = "sim/common.rs"]
mod common;

use nicpoll_model::sim::{SimFigures, SimSlice};
use nicpoll_sim::{
    HostModel, PathHost, ReceiveDiscipline, Simulation, TrafficModel, explain, simulate,
};
use proptest::prelude::*;

/// Any host that keeps a run short enough to test: each field at a limit, or near the example's value.
fn host() -> impl Strategy<Value = HostModel> {
    let each: Vec<_> = HostModel::FIELDS
        .iter()
        .map(|field| {
            let usual = common::host().get(field.name).unwrap_or_default();
            let near = usual / 4..=usual.saturating_mul(4).max(10);
            // Not every discipline supports these.
            let is_one_of_several = matches!(
                field.name,
                "veth.pair" | "cpu.cpus" | "card.queues" | "application.cpu" | "network.gro"
            );
            let (min, max) = (
                field.min,
                if is_one_of_several {
                    field.min
                } else {
                    field.max
                },
            );
            prop_oneof![
                1 => Just(min),
                1 => Just(max.min(usual.saturating_mul(1000).max(1000))),
                6 => near.prop_map(move |value| value.clamp(min, max)),
            ]
        })
        .collect();
    each.prop_map(|values| {
        let mut host = common::host();
        for (field, value) in HostModel::FIELDS.iter().zip(values) {
            host.set(field.name, value).expect("it is in its range");
        }
        host
    })
}

fn discipline() -> impl Strategy<Value = ReceiveDiscipline> {
    prop_oneof![
        Just("freebsd-interrupt"),
        Just("freebsd-interrupt:storm.threshold=100"),
        Just("freebsd-polling"),
        Just("freebsd-polling:controller=share:idle_poll=1"),
        Just("freebsd-polling:burst_max=20000:each_burst=20000:user_frac=0"),
        Just("napi"),
        Just("napi:weight=1:budget=1"),
        Just("napi-timer:timeout=200us"),
        Just("napi-timer:defer=1:timeout=1us"),
        Just("busy-poll"),
        Just("busy-poll:busy_budget=1:spin=1"),
    ]
    .prop_map(|text| ReceiveDiscipline::parse(text).unwrap())
}

/// Options for the number of clients and of lines.
fn clients() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(String::new()),
        2 => (1..200u32).prop_map(|clients| format!(":clients={clients}")),
        2 => (1..=8u32, 0..50u32).prop_map(|(links, more)| {
            format!(":clients={}:links={links}", links + more)
        }),
    ]
}

fn workload() -> impl Strategy<Value = TrafficModel> {
    let pattern = prop_oneof![
        Just("constant:"),
        Just("poisson:"),
        Just("pulses:"),
        Just("pulses:period=10us:"),
    ];
    let rate = prop_oneof![1..1000u64, 1000..400_000u64];
    let received = (
        pattern,
        rate,
        prop_oneof![9 => 0..600u32, 1 => 1400..5000u32],
        prop_oneof![Just(4), Just(6)],
        clients(),
    )
        .prop_map(|(pattern, rate, payload, ip, clients)| {
            format!("{pattern}rate={rate}:payload={payload}:ip={ip}{clients}")
        });
    let asked = (prop_oneof![9 => 0..600u32, 1 => 1400..5000u32], clients())
        .prop_map(|(payload, clients)| format!("rr:payload={payload}{clients}"));
    let sent = (0..600u32).prop_map(|payload| format!("blast:payload={payload}"));
    prop_oneof![6 => received, 3 => asked, 1 => sent]
        .prop_map(|text| TrafficModel::parse(&text).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_and_every_nanosecond_is_accounted_for(
        host in host(),
        discipline in discipline(),
        workload in workload(),
        seed in any::<u64>(),
        warmup_ns in prop_oneof![Just(0), 0..20_000_000u64],
        duration_ns in 1..20_000_000u64,
        slices in 0..5u32,
    ) {
        let stops = vec![PathHost { host, discipline }];
        let plan = Simulation { stops, workload, duration_ns, warmup_ns, seed, slices: 0 };
        let Ok(figures) = simulate(&plan) else {
            // Not every host takes every packet; refusals are tested elsewhere.
            return Ok(());
        };
        let ledger = &figures.ledger;
        prop_assert!(ledger.is_closed(), "{:?}", ledger);
        let cpu = &figures.hosts[0].cpu;
        let shares = [cpu.user_ratio, cpu.system_ratio, cpu.interrupt_ratio, cpu.soft_interrupt_ratio, cpu.idle_ratio];
        prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{cpu:?}");
        prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{cpu:?}");
        prop_assert_eq!(figures.latency.samples, ledger.delivered_datagrams);
        for queue in &figures.hosts[0].queues {
            prop_assert!(queue.most_packets <= queue.limit_packets, "{queue:?}");
        }
        if let Some(clients) = figures.clients {
            prop_assert!(clients.served_least_packets * clients.clients <= ledger.delivered_datagrams, "{clients:?}");
            prop_assert!(clients.served_most_packets * clients.clients >= ledger.delivered_datagrams, "{clients:?}");
        }
        let interrupts: u64 = figures.hosts[0].cards.iter().map(|card| card.interrupts).sum();
        prop_assert_eq!(interrupts, figures.hosts[0].interrupts);
        // A repetition gives the same to the last digit, with slices, too.
        let parts = simulate(&Simulation { slices, ..plan.clone() }).unwrap();
        prop_assert_eq!(parts.slices.len(), slices as usize);
        let sum = |of: fn(&SimSlice) -> u64| parts.slices.iter().map(of).sum::<u64>();
        if slices > 0 {
            prop_assert_eq!(sum(|slice| slice.offered_packets), ledger.offered_datagrams);
            prop_assert_eq!(sum(|slice| slice.delivered_packets), ledger.delivered_datagrams);
            prop_assert_eq!(sum(|slice| slice.lost_packets), ledger.lost());
            let idle = parts.slices.iter().map(|slice| slice.cpu.idle_ratio).sum::<f64>();
            let idle = idle / f64::from(slices);
            prop_assert!((idle - figures.hosts[0].cpu.idle_ratio).abs() < 1e-6, "{}", idle);
        }
        prop_assert_eq!(&figures, &SimFigures { slices: Vec::new(), ..parts });
        prop_assert_eq!(Ok(figures), simulate(&plan));
    }
}

/// Workloads from one simulated host to another; long datagrams are fragmented.
fn path_workload() -> impl Strategy<Value = TrafficModel> {
    let name = prop_oneof![
        Just("netblast:"),
        Just("rr:"),
        Just("iperf-udp:rate=1m:"),
        Just("iperf-udp:rate=500m:"),
    ];
    let payload = prop_oneof![0..600u32, 1400..9000u32];
    let datagrams = (name, payload).prop_map(|(name, payload)| format!("{name}payload={payload}"));
    let window = prop_oneof![2048..10_000u32, 10_000..1_000_000u32];
    let streams = (window, 1..200_000u32, 0..2u32).prop_map(|(window, write, dual)| {
        format!("iperf-tcp:window={window}:write={write}:dual={dual}")
    });
    let each = prop_oneof![2 => datagrams, 1 => streams];
    (each, prop_oneof![Just(4), Just(6)])
        .prop_map(|(text, ip)| TrafficModel::parse(&format!("{text}:ip={ip}")).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_datagram_on_a_path_is_accounted_for(
        stops in prop::collection::vec((host(), discipline()), 2..=4),
        mtu_bytes in prop_oneof![Just(1500), 1280..9000u64],
        workload in path_workload(),
        warmup_ns in prop_oneof![Just(0), 0..10_000_000u64],
        duration_ns in 1..10_000_000u64,
        is_veth in any::<bool>(),
    ) {
        let stop = |(mut host, discipline): (HostModel, ReceiveDiscipline)| {
            host.link.mtu_bytes = mtu_bytes;
            host.veth.pair = u64::from(is_veth);
            PathHost { host, discipline }
        };
        let most = if is_veth { 2 } else { stops.len() };
        let stops = stops.into_iter().take(most).map(stop).collect();
        let plan = Simulation { stops, workload, duration_ns, warmup_ns, seed: 1, slices: 0 };
        let Ok(figures) = simulate(&plan) else {
            return Ok(());
        };
        common::assert_closed(&figures);
        for host in &figures.hosts {
            let cpu = &host.cpu;
            let sum = cpu.user_ratio + cpu.system_ratio + cpu.interrupt_ratio + cpu.soft_interrupt_ratio + cpu.idle_ratio;
            prop_assert!((sum - 1.0).abs() < 1e-9, "{cpu:?}");
            for queue in &host.queues {
                prop_assert!(queue.most_packets <= queue.limit_packets, "{queue:?}");
            }
        }
        let delivered: u64 = figures.flows.iter().map(|flow| flow.delivered_datagrams).sum();
        prop_assert_eq!(delivered, figures.ledger.delivered_datagrams);
        prop_assert!(figures.flows.iter().all(|flow| flow.out_of_order_datagrams == 0));
        for tcp in &figures.connections {
            prop_assert!(tcp.bytes.is_closed(), "{tcp:?}");
            let buffers = tcp.send_buffer_bytes + tcp.receive_buffer_bytes;
            let held = tcp.bytes.unsent_or_in_flight_at_end_bytes + tcp.bytes.unread_at_end_bytes;
            prop_assert!(held <= buffers, "{tcp:?}");
        }
        prop_assert_eq!(Ok(figures), simulate(&plan));
    }
}

#[test]
fn seeds_decide_and_nothing_else_does() {
    let run = |seed| {
        let mut plan = common::plan("napi", "poisson:rate=50k");
        plan.seed = seed;
        simulate(&plan).unwrap()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_run_is_the_sum_of_its_parts() {
    // A warm-up of half the time and the rest count together what the whole counts.
    let whole = common::plan("freebsd-polling", "poisson:rate=80k");
    let counted = |warmup_ns, duration_ns| {
        let plan = Simulation {
            warmup_ns,
            duration_ns,
            ..whole.clone()
        };
        simulate(&plan).unwrap().ledger
    };
    let (first, second, both) = (
        counted(0, 100_000_000),
        counted(100_000_000, 100_000_000),
        counted(0, 200_000_000),
    );
    assert_eq!(
        first.in_flight_at_end_datagrams,
        second.in_flight_at_start_datagrams
    );
    assert_eq!(
        first.offered_datagrams + second.offered_datagrams,
        both.offered_datagrams
    );
    assert_eq!(
        first.delivered_datagrams + second.delivered_datagrams,
        both.delivered_datagrams
    );
    assert_eq!(first.lost() + second.lost(), both.lost());
}

#[test]
fn the_bottleneck_is_named_and_what_moves_it_moves_it() {
    for [discipline, workload, resource] in common::cases(
        "
        freebsd-interrupt | poisson:rate=90k | processor
        freebsd-polling | poisson:rate=100k | user_frac
        freebsd-polling:burst_max=30 | poisson:rate=50k | burst_max
        freebsd-polling:cpu.hz=100:burst_max=1000:user_frac=0 | poisson:rate=40k | burst
        freebsd-polling:cpu.hz=100:burst_max=1000:controller=share | poisson:rate=50k | receive ring
        busy-poll:link.bits_per_second=10m | poisson:rate=50k | line
        freebsd-interrupt:storm.threshold=100 | poisson:rate=200k | storm throttling
        freebsd-polling:each_burst=150 | pulses:rate=20k:period=10ms | IP input queue
        napi:socket.buffer_bytes=1000 | pulses:rate=10k:period=10ms | socket buffer
        freebsd-polling:card.tx_ring=8:network.send_queue_packets=1 | blast | transmit ring
        freebsd-interrupt:link.bits_per_second=10m | blast | line
        ",
    ) {
        let plan = common::plan(discipline, workload);
        let figures = simulate(&plan).unwrap();
        let bottleneck = explain(&plan, &figures).unwrap();
        let case = format!("{discipline}, {workload}: {bottleneck:?}");
        assert_eq!(bottleneck.resource, resource, "{case}");
        assert!(
            bottleneck.is_binding && bottleneck.fullness_ratio > 0.95,
            "{case}"
        );
        let moves = bottleneck.moves.unwrap_or_default();
        let mut gains = moves.iter().filter_map(|tried| tried.ratio);
        assert!(gains.all(|ratio| ratio > 1.0), "{case}");
        assert!(!moves.is_empty(), "{case}");
    }
    let plan = common::plan("freebsd-polling", "poisson:rate=10k");
    let figures = simulate(&plan).unwrap();
    let easy = explain(&plan, &figures).unwrap();
    assert!(!easy.is_binding, "{easy:?}");
}
