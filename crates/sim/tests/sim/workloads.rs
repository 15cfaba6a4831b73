//! Many clients at the far end, several lines to the host, and recorded traces.

use std::sync::Arc;

use nicpoll_model::LossPlace;
use nicpoll_model::sim::{SimClients, SimFigures};
use nicpoll_sim::{HostModel, Simulation, Trace, TraceReader, TrafficModel, explain, simulate};

use crate::common::*;

fn clients(figures: &SimFigures) -> SimClients {
    figures.clients.unwrap()
}

/// A second of a plan on a host, its ledger closed.
fn second(host: &HostModel, discipline: &str, workload: &str) -> SimFigures {
    let plan = Simulation {
        duration_ns: 1_000_000_000,
        ..plan(discipline, workload)
    };
    figures(&on(host, &plan))
}

#[test]
fn clients_share_the_rate_and_are_served_alike_when_nothing_is_lost() {
    for workload in ["constant", "poisson", "pulses"] {
        let figures = run("napi", &format!("{workload}:rate=20k:clients=40"));
        let served = clients(&figures);
        assert_eq!(served.clients, 40, "{workload}");
        // 100 each in a fifth of a second; six standard deviations where that is chance.
        let spread = if workload == "poisson" { 60 } else { 2 };
        within(served.served_least_packets, 100 - spread..);
        within(served.served_most_packets, ..=100 + spread);
        assert!(figures.ledger.offered_datagrams.abs_diff(4000) <= 40 * spread);
    }
}

#[test]
fn the_pulses_of_many_clients_are_no_pulse() {
    let ring = |figures: &SimFigures| {
        let mut queues = figures.hosts[0].queues.iter();
        queues
            .find(|queue| queue.name == "receive ring")
            .unwrap()
            .most_packets
    };
    let one = run("napi", "pulses:rate=20k:period=10ms");
    let many = run("napi", "pulses:rate=20k:period=10ms:clients=200");
    // 200 packets at once from one; one from each of 200, at times of their own.
    assert!(ring(&one) > 100, "{}", ring(&one));
    assert!(ring(&many) < 10, "{}", ring(&many));
    assert!(many.latency.p50_ns < one.latency.p50_ns);
    // Clients with a tenth of a packet a pulse do not all send in the same one.
    let few = run("napi", "pulses:rate=2k:period=10ms:clients=200");
    assert!(
        few.ledger.offered_datagrams.abs_diff(400) <= 1,
        "{:?}",
        few.ledger
    );
    assert!(ring(&few) < 10, "{}", ring(&few));
}

#[test]
fn livelock_starves_every_client_and_a_quota_none() {
    let workload = "poisson:rate=200k:clients=100";
    let livelock = clients(&run("freebsd-interrupt", workload));
    assert_eq!(livelock.served_median_packets, 0.0, "{livelock:?}");
    let polled = run("freebsd-polling:burst_max=60:user_frac=0", workload);
    let served = clients(&polled);
    // 60 a tick, 12,000 in a fifth of a second.
    assert!(
        (served.served_median_packets - 120.0).abs() < 12.0,
        "{served:?}"
    );
    assert!(served.served_least_packets > 60, "{served:?}");
}

#[test]
fn a_closed_loop_keeps_littles_law() {
    for (discipline, workload) in [
        ("freebsd-interrupt", "rr:clients=1"),
        ("freebsd-interrupt", "rr:clients=50"),
        ("freebsd-polling", "rr:clients=50"),
        ("napi:link.delay_ns=1ms", "rr:clients=20"),
        ("napi-timer", "rr:clients=100:links=4"),
        ("busy-poll", "rr:clients=7:payload=4000"),
    ] {
        let figures = second(&host(), discipline, workload);
        let waiting = clients(&figures).clients;
        assert_eq!(figures.ledger.lost(), 0, "{discipline}, {workload}");
        let mean_s = figures.latency.mean_ns.unwrap() / 1e9;
        let in_system = figures.delivered_packets_per_second * mean_s;
        let error = (in_system / waiting as f64 - 1.0).abs();
        assert!(error < 0.01, "{discipline}, {workload}: {in_system}");
        // Some requests may be between line and client, where they are not packets.
        assert!(figures.ledger.in_flight_at_end_datagrams <= waiting);
        // With several cards one may fall out of step with the others, and its clients are served less.
        let served = clients(&figures);
        let is_one_card = figures.hosts[0].cards.len() == 1;
        assert!(
            !is_one_card || served.served_most_packets - served.served_least_packets <= 3,
            "{served:?}"
        );
    }
}

#[test]
fn more_clients_bring_more_until_the_processor_is_full() {
    let delayed = "napi:link.delay_ns=1ms";
    let answered = |clients: u64| {
        let figures = second(&host(), delayed, &format!("rr:clients={clients}"));
        figures.delivered_packets_per_second
    };
    let (one, ten, hundred, more) = (answered(1), answered(10), answered(100), answered(400));
    // Two milliseconds of lines, and some work.
    assert!((450.0..500.0).contains(&one), "{one}");
    assert!((9.0..=10.0).contains(&(ten / one)), "{ten}");
    assert!(hundred < 100.0 * one && hundred > ten, "{hundred}");
    // A closed loop does not fall.
    assert!((more / hundred - 1.0).abs() < 0.05, "{hundred} {more}");
}

#[test]
fn a_client_whose_request_is_lost_asks_again_after_a_second() {
    // Few packets fit into socket and ring, and all ask at once.
    let mut small = host();
    small.set("socket.buffer_bytes", 1000).unwrap();
    let mut plan = Simulation {
        duration_ns: 900_000_000,
        warmup_ns: 0,
        ..plan("napi", "rr:clients=500")
    };
    let before = simulate(&on(&small, &plan)).unwrap();
    let lost = before.ledger.lost();
    assert!(lost > 400, "{lost}");
    assert_eq!(clients(&before).served_least_packets, 0);
    plan.duration_ns = 1_100_000_000;
    let after = simulate(&on(&small, &plan)).unwrap();
    assert!(after.ledger.is_closed(), "{:?}", after.ledger);
    // Every one of them has sent its second request.
    assert!(after.ledger.offered_datagrams >= before.ledger.offered_datagrams + lost);
}

#[test]
fn the_bottleneck_of_a_server_is_named_though_nothing_is_lost() {
    for (discipline, workload, resource) in [
        ("napi", "rr:clients=100", "processor"),
        ("napi:link.delay_ns=10ms", "rr:clients=10", "waiting"),
        ("napi:link.bits_per_second=1m", "rr:clients=10", "line"),
    ] {
        let plan = plan(discipline, workload);
        let figures = simulate(&plan).unwrap();
        let bottleneck = explain(&plan, &figures).unwrap();
        assert_eq!(bottleneck.resource, resource, "{bottleneck:?}");
        assert!(bottleneck.is_binding && bottleneck.moves.is_some_and(|moves| !moves.is_empty()));
    }
}

/// Returns the packets of each card per interrupt.
fn an_interrupt(figures: &SimFigures) -> Vec<f64> {
    let cards = figures.hosts[0].cards.iter();
    cards
        .map(|card| card.received_packets as f64 / card.interrupts as f64)
        .collect()
}

#[test]
fn the_same_load_on_four_cards_is_fewer_packets_an_interrupt() {
    let moderated = "napi:card.moderation_ns=200us";
    let one = run(moderated, "constant:rate=40k");
    let four = run(moderated, "constant:rate=40k:links=4");
    assert_eq!(
        (one.hosts[0].cards.len(), four.hosts[0].cards.len()),
        (1, 4)
    );
    // Eight packets in 200 us, or two.
    near(an_interrupt(&one)[0], 8.0, 0.5);
    for ratio in an_interrupt(&four) {
        assert!((ratio - 2.0).abs() < 0.2, "{:?}", four.hosts[0].cards);
    }
    assert!(four.hosts[0].interrupts > 3 * one.hosts[0].interrupts);
    assert!(cpu(&four).interrupt_ratio > 2.0 * cpu(&one).interrupt_ratio);
    assert_eq!(
        four.hosts[0]
            .cards
            .iter()
            .map(|card| card.interrupts)
            .sum::<u64>(),
        four.hosts[0].interrupts
    );
}

#[test]
fn the_poller_takes_as_many_from_each_card() {
    // The first card has two of five clients, the others one each: all have more than their share.
    let figures = run("freebsd-polling", "constant:rate=200k:clients=5:links=4");
    assert_eq!(figures.hosts[0].polling.as_ref().unwrap().cycles, 200);
    let taken: Vec<u64> = figures.hosts[0]
        .cards
        .iter()
        .map(|card| card.received_packets - card.ring_lost_packets)
        .collect();
    assert!(
        figures.hosts[0].cards[0].received_packets
            > 3 * figures.hosts[0].cards[1].received_packets / 2
    );
    let burst = figures.hosts[0]
        .polling
        .clone()
        .unwrap()
        .burst_max_reached_packets
        .unwrap();
    let spread = taken.iter().max().unwrap() - taken.iter().min().unwrap();
    assert!(spread <= u64::from(burst), "{taken:?}");
    assert!(taken[0] > 1000, "{taken:?}");
}

#[test]
fn a_program_that_polls_one_card_gets_the_packets_of_all() {
    // A light load: most polls find nothing, and cards are left to their timers.
    for (workload, delivered) in [("poisson:rate=2k:links=4", 2000), ("rr:links=4", 10_000)] {
        let figures = second(&host(), "busy-poll", workload);
        assert_eq!(figures.ledger.lost(), 0);
        assert!(figures.ledger.in_flight_at_end_datagrams < 10);
        assert!(
            figures.ledger.delivered_datagrams > delivered * 9 / 10,
            "{figures:?}"
        );
        let received = figures.hosts[0]
            .cards
            .iter()
            .map(|card| card.received_packets);
        assert!(received.min().unwrap() > delivered / 8, "{figures:?}");
        assert!(figures.hosts[0].napi.unwrap().busy_polls > 0);
    }
}

#[test]
fn each_line_carries_its_part() {
    let slow = "napi:link.bits_per_second=10m";
    let one = run(slow, "constant:rate=30k");
    let four = run(slow, "constant:rate=30k:links=4");
    assert!(lost(&one, LossPlace::FarQueue) > 0);
    assert_eq!(four.ledger.lost(), 0);
    let line_ratio = |figures: &SimFigures| figures.hosts[0].line_ratio().unwrap();
    assert!(line_ratio(&one) > 0.99 && line_ratio(&four) < 0.8);
    for card in &four.hosts[0].cards {
        near(card.line_ratio.unwrap(), line_ratio(&four), 0.01);
    }
}

#[test]
fn clients_and_lines_take_memory() {
    let bytes = |workload: &str| plan("napi", workload).memory_bytes();
    assert!(bytes("rr:clients=10k") > bytes("rr") + 1e6);
    assert!(bytes("poisson:rate=1m:links=8") > bytes("poisson:rate=1m"));
}

fn trace(text: &str) -> Arc<Trace> {
    let mut reader = TraceReader::default();
    for line in text.lines() {
        reader.line(line.as_bytes()).unwrap();
    }
    Arc::new(reader.finish("test").unwrap())
}

fn replayed(workload: TrafficModel, duration_ns: u64) -> Simulation {
    Simulation {
        workload,
        duration_ns,
        warmup_ns: 0,
        ..plan("napi", "rr")
    }
}

fn replay(text: &str, options: &[(&str, &str)], duration_ns: u64) -> SimFigures {
    let workload = TrafficModel::replay(trace(text), options).unwrap();
    figures(&replayed(workload, duration_ns))
}

#[test]
fn each_packet_of_a_trace_comes_once_with_its_own_size() {
    let figures = replay("0 64\n0.001 1000\n0.002 10", &[], 1_000_000_000);
    assert_eq!(
        (
            figures.ledger.offered_datagrams,
            figures.ledger.delivered_datagrams
        ),
        (3, 3)
    );
    let bits = 8.0 * (64.0 + 1000.0 + 10.0);
    assert!((figures.delivered_payload_bits_per_second - bits).abs() < 1e-6);
}

#[test]
fn a_trace_that_repeats_keeps_its_rhythm() {
    // Three packets in 2 ms, and a mean gap of 1 ms: a round takes 3 ms.
    let figures = replay("5 64\n5.001 64\n5.002 64", &[("repeat", "1")], 300_000_000);
    assert_eq!(figures.ledger.offered_datagrams, 300);
    assert_eq!(
        figures.ledger.delivered_datagrams + figures.ledger.in_flight_at_end_datagrams,
        300
    );
}

#[test]
fn a_trace_of_equal_gaps_is_a_constant_rate() {
    let lines: Vec<_> = (0..1000)
        .map(|packet| format!("{}ns 64", packet * 20_000))
        .collect();
    let traced = replay(&lines.join("\n"), &[], 20_000_000);
    let constant = TrafficModel::parse("constant:rate=50k").unwrap();
    let constant = simulate(&replayed(constant, 20_000_000)).unwrap();
    assert!(
        traced
            .ledger
            .offered_datagrams
            .abs_diff(constant.ledger.offered_datagrams)
            <= 1
    );
    assert!((cpu(&traced).idle_ratio - cpu(&constant).idle_ratio).abs() < 0.01);
}

#[test]
fn a_bottleneck_is_one_place_whoever_recorded_it() {
    // All at once: more than the ring holds.
    let text = "0 64\n".repeat(5000);
    let figures = replay(&text, &[], 1_000_000_000);
    assert_eq!(figures.ledger.offered_datagrams, 5000);
    assert!(figures.ledger.lost() > 0);
}
