//! Runs whose outcome can be computed by hand.

use nicpoll_model::LossPlace;
use nicpoll_model::sim::SimFigures;
use nicpoll_sim::simulate;

use crate::common::*;

#[test]
fn a_lone_packet_takes_the_sum_of_its_steps() {
    let mut host = host();
    // No tick comes between.
    host.cpu.hz = 1;
    let mut alone = plan("freebsd-interrupt", "constant:rate=1000");
    alone.warmup_ns = 0;
    let figures = simulate(&on(&host, &alone)).unwrap();
    let host = &host;
    let interrupt = host.cpu.interrupt_entry_ns + host.card.interrupt_ns + host.card.rx_packet_ns;
    let protocols = host.network.ipv4_ns + host.network.udp_ns;
    let read = host.cpu.syscall_ns + host.socket.copy_kib_ns * 64 / 1024;
    // To the interrupt thread, to netisr, to the program.
    let switches = 3 * host.cpu.context_switch_ns;
    let expected = interrupt + protocols + read + switches;
    // The histogram keeps three digits.
    let close = |ns: Option<u64>| ns.unwrap().abs_diff(expected) <= expected / 500;
    let latency = figures.latency;
    assert!(
        close(latency.min_ns) && close(latency.max_ns),
        "{latency:?}, {expected}"
    );
    assert_eq!(figures.jitter_ns, Some(0.0));
    // And back to the idle thread.
    assert_eq!(
        figures.hosts[0].context_switches,
        4 * figures.ledger.delivered_datagrams
    );
    assert_eq!(
        figures.hosts[0].interrupts,
        figures.ledger.delivered_datagrams
    );
}

#[test]
fn time_is_spent_on_what_was_done() {
    let figures = run("freebsd-polling", "constant:rate=20k");
    let host = host();
    let ticks = 200.0;
    let packets = figures.ledger.delivered_datagrams as f64;
    let window_ns = 2e8;
    let clock = ticks * (host.cpu.interrupt_entry_ns + host.cpu.tick_ns) as f64 / window_ns;
    near(cpu(&figures).interrupt_ratio, clock, 1e-3);
    let program = packets * host.application.packet_ns as f64 / window_ns;
    near(cpu(&figures).user_ratio, program, 1e-3);
    let cpu = cpu(&figures);
    let sum = cpu.user_ratio
        + cpu.system_ratio
        + cpu.interrupt_ratio
        + cpu.soft_interrupt_ratio
        + cpu.idle_ratio;
    assert!((sum - 1.0).abs() < 1e-12);
    let polling = figures.hosts[0].polling.clone().unwrap();
    assert_eq!(polling.cycles, 200);
    let knob = |name| {
        polling
            .knobs
            .iter()
            .find(|knob| knob.name == name)
            .unwrap()
            .value
    };
    assert_eq!(
        (knob("short_ticks"), knob("lost_polls"), knob("handlers")),
        (0, 0, 1)
    );
}

#[test]
fn no_more_comes_through_than_the_line_carries() {
    let on_slow_line = "busy-poll:link.bits_per_second=10m";
    let figures = run(on_slow_line, "constant:rate=20k:payload=1000");
    // 1000 + 8 + 20 + 14 + 4 + 8 + 12 bytes.
    let line_pps = 10e6 / (8.0 * 1066.0);
    near(figures.delivered_packets_per_second, line_pps, 5.0);
    near(figures.hosts[0].line_ratio().unwrap(), 1.0, 0.01);
    assert_eq!(figures.ledger.lost(), lost(&figures, LossPlace::FarQueue));
}

#[test]
fn a_blast_fills_the_line_and_what_does_not_fit_is_enobufs() {
    let slow_line = "link.bits_per_second=100m";
    let figures = run(
        &format!("freebsd-interrupt:{slow_line}"),
        "blast:payload=1470",
    );
    let line_pps = 100e6 / (8.0 * 1536.0);
    near(figures.delivered_packets_per_second, line_pps, 10.0);
    let failed = lost(&figures, LossPlace::SendQueue);
    assert!(
        failed > figures.ledger.delivered_datagrams,
        "{:?}",
        figures.ledger
    );
    assert_eq!(figures.ledger.lost(), failed);
}

#[test]
fn a_polled_sender_is_bound_by_how_often_its_ring_is_cleared() {
    let small = "card.tx_ring=8:network.send_queue_packets=8";
    // A cycle of one chunk looks at the card once.
    let polled = run(&format!("freebsd-polling:each_burst=150:{small}"), "blast");
    // Each tick clears 8 descriptors and refills them.
    within(polled.delivered_packets_per_second, ..=8.0 * 1001.0);
    let woken = run(&format!("freebsd-interrupt:{small}"), "blast");
    above(
        woken.delivered_packets_per_second,
        2.0 * polled.delivered_packets_per_second,
    );
}

#[test]
fn pulses_wait_in_the_ring_and_beyond_it_are_lost() {
    let figures = run(
        "freebsd-polling:card.rx_ring=64:burst_max=1000",
        "pulses:rate=100k",
    );
    // Of 100 packets, 64 find a descriptor, and some of these are taken meanwhile.
    let delivered =
        figures.ledger.delivered_datagrams as f64 / figures.ledger.offered_datagrams as f64;
    assert!((0.3..0.9).contains(&delivered), "{delivered}");
    assert!(lost(&figures, LossPlace::RxRing) > 0);
}

#[test]
fn background_work_comes_before_the_program_and_is_bounded() {
    let plain = run("freebsd-interrupt", "constant:rate=20k");
    let harvest = run(
        "freebsd-interrupt:background.interrupt_ns=10us",
        "constant:rate=20k",
    );
    let added = cpu(&harvest).system_ratio - cpu(&plain).system_ratio;
    // 20,000 interrupts of 10 us are 0.2, and every harvest is a switch.
    assert!((0.19..0.35).contains(&added), "{added}");
    let endless = run(
        "freebsd-interrupt:background.interrupt_ns=1ms",
        "constant:rate=20k",
    );
    assert!(endless.delivered_packets_per_second < 0.1 * plain.delivered_packets_per_second);
    let forgotten = "freebsd-interrupt:background.interrupt_ns=1ms:background.queue_events=0";
    assert_eq!(
        run(forgotten, "constant:rate=20k").delivered_packets_per_second,
        plain.delivered_packets_per_second
    );
}

#[test]
fn idle_polling_takes_what_is_left_and_shortens_the_wait() {
    let plain = run("freebsd-polling", "poisson:rate=20k");
    let idle = run("freebsd-polling:idle_poll=1", "poisson:rate=20k");
    assert!(cpu(&idle).idle_ratio < 0.01, "{:?}", cpu(&idle));
    assert!(idle.latency.p50_ns < plain.latency.p50_ns.map(|ns| ns / 5));
}

#[test]
fn idle_polling_takes_no_tick_from_the_cycles() {
    // A tick that comes while the poller's work ends begins its cycle, as `netisr_poll` does.
    for rate in ["5k", "20k", "30k"] {
        let plan = plan(
            "freebsd-polling:idle_poll=1",
            &format!("poisson:rate={rate}"),
        );
        let hosts = simulate(&plan).unwrap().hosts;
        assert_eq!(hosts[0].polling.as_ref().unwrap().cycles, 200, "{rate}");
    }
}

#[test]
fn a_datagram_in_fragments_is_one_datagram() {
    // 1473 bytes are one too many for a frame: 1480 bytes of IP payload, and 1.
    let figures = run("freebsd-polling", "constant:rate=10k:payload=1473");
    assert_eq!(figures.ledger.lost(), 0, "{:?}", figures.ledger);
    assert!((figures.delivered_packets_per_second - 10_000.0).abs() <= 10.0);
    // 1538 bytes of line, and 84 for the shortest frame.
    let used = 10_000.0 * 8.0 * (1538.0 + 84.0) / 1e9;
    near(figures.hosts[0].line_ratio().unwrap(), used, 1e-3);
    // A ring of one descriptor has room for the first fragment only: each datagram is lost once.
    let lossy = run(
        "freebsd-polling:card.rx_ring=1",
        "constant:rate=10k:payload=1473",
    );
    assert!(lossy.ledger.lost() > 0 && lossy.ledger.lost() <= lossy.ledger.offered_datagrams);
    assert_eq!(lossy.ledger.lost(), lost(&lossy, LossPlace::RxRing));
}

#[test]
fn a_run_of_no_length_is_refused() {
    let mut nothing = plan("napi", "constant:rate=1k");
    nothing.duration_ns = 0;
    assert_refused(&nothing, "give a duration above 0");
}

// What a preempted thread pays for its caches.

const REFILL_NS: u64 = 20_000;

fn with_refill(discipline: &str, workload: &str) -> SimFigures {
    run(&format!("{discipline}:cpu.refill_ns={REFILL_NS}"), workload)
}

/// Returns how much longer a program that never waits takes for a call, in nanoseconds.
fn longer_ns(discipline: &str) -> f64 {
    let call_ns = |figures: SimFigures| 1e9 / figures.offered_packets_per_second;
    call_ns(with_refill(discipline, "blast")) - call_ns(run(discipline, "blast"))
}

#[test]
fn an_interrupt_for_each_frame_costs_its_sender_a_refill_each() {
    // Interrupt and thread make one preemption; the clock's ticks are none.
    close(longer_ns("freebsd-interrupt"), REFILL_NS as f64, 0.01);
    // A softirq has no thread of its own, and still evicts the caches.
    close(longer_ns("napi"), REFILL_NS as f64, 0.01);
}

#[test]
fn polling_costs_a_program_a_refill_a_tick() {
    let without = run("freebsd-polling", "blast");
    let with = with_refill("freebsd-polling", "blast");
    let ticks = host().cpu.hz as f64;
    let refilled = ticks * REFILL_NS as f64 / 1e9;
    // The refills come out of the program's own time: it makes fewer calls.
    let own = |figures: &SimFigures| cpu(figures).user_ratio + cpu(figures).system_ratio;
    let left = own(&without) - refilled;
    close(
        with.offered_packets_per_second / without.offered_packets_per_second,
        left / own(&without),
        0.01,
    );
    close(own(&with), own(&without), 0.01);
}

#[test]
fn ticks_alone_take_no_caches() {
    // The card interrupts ten times a second.
    let quiet = "freebsd-interrupt:card.moderation_ns=100ms";
    let calls = |figures: SimFigures| figures.offered_packets_per_second;
    let without = calls(run(quiet, "blast"));
    let with = calls(with_refill(quiet, "blast"));
    let refilled = 10.0 * REFILL_NS as f64 / 1e9;
    close(with, without * (1.0 - refilled), 0.001);
}

#[test]
fn who_was_not_preempted_pays_nothing() {
    // Each packet finds the host asleep, and is read before the next one comes.
    for discipline in ["freebsd-interrupt", "napi"] {
        let mut host = host();
        host.cpu.hz = 1;
        let plan = plan(discipline, "constant:rate=1000");
        let without = simulate(&on(&host, &plan)).unwrap();
        host.cpu.refill_ns = REFILL_NS;
        assert_eq!(
            simulate(&on(&host, &plan)).unwrap(),
            without,
            "{discipline}"
        );
    }
}

#[test]
fn a_program_that_never_gets_through_its_refill_owes_one() {
    // In a pulse a frame comes every 0.1 ms. It preempts the program, which fetches for 1 ms.
    let line =
        "freebsd-interrupt:link.bits_per_second=10m:application.packet_ns=100us:cpu.refill_ns=1ms";
    let mut plan = plan(line, "pulses:rate=2k:period=100ms");
    plan.duration_ns = 1_000_000_000;
    let figures = simulate(&plan).unwrap();
    assert_eq!(figures.ledger.lost(), 0);
    let packets = 200.0;
    let pulse_s = packets * f64::from(130 * 8) / 10e6;
    // After the pulse it takes all that waits in one go, and sleeps. What is left of ten periods:
    let working_s = packets * 120e-6;
    let rest = (0.1 - pulse_s - working_s) / 0.1;
    above(cpu(&figures).idle_ratio, 0.9 * rest);
    // In the pulse it was never asleep.
    below(cpu(&figures).idle_ratio, 1.0 - pulse_s / 0.1);
}
