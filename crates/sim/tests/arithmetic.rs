//! Runs whose outcome can be computed by hand.

mod common;

use common::{assert_refused, host, lost, plan, run};
use nicpoll_model::LossPlace;
use nicpoll_sim::simulate;

#[test]
fn a_lone_packet_takes_the_sum_of_its_steps() {
    let mut host = host();
    // No tick comes between.
    host.cpu.hz = 1;
    let mut alone = plan("freebsd-interrupt", "constant:rate=1000");
    alone.warmup_ns = 0;
    let figures = simulate(&common::on(&host, &alone)).unwrap();
    let host = &host;
    let interrupt = host.cpu.interrupt_entry_ns + host.card.interrupt_ns + host.card.rx_packet_ns;
    let protocols = host.network.ipv4_ns + host.network.udp_ns;
    let read = host.cpu.syscall_ns + host.socket.copy_kib_ns * 64 / 1024;
    // To the interrupt thread, to netisr, to the program.
    let switches = 3 * host.cpu.context_switch_ns;
    let expected = interrupt + protocols + read + switches;
    // The histogram keeps three digits.
    let close = |ns: Option<u64>| ns.unwrap().abs_diff(expected) <= expected / 500;
    assert!(
        close(figures.latency.min_ns),
        "{:?}, {expected}",
        figures.latency
    );
    assert!(
        close(figures.latency.max_ns),
        "{:?}, {expected}",
        figures.latency
    );
    assert_eq!(figures.jitter_ns, Some(0.0));
    // And back to the idle thread.
    assert_eq!(
        figures.hosts[0].context_switches,
        4 * figures.ledger.delivered
    );
    assert_eq!(figures.hosts[0].interrupts, figures.ledger.delivered);
}

#[test]
fn time_is_spent_on_what_was_done() {
    let figures = run("freebsd-polling", "constant:rate=20k");
    let host = host();
    let ticks = 200.0;
    let packets = figures.ledger.delivered as f64;
    let window_ns = 2e8;
    let clock = ticks * (host.cpu.interrupt_entry_ns + host.cpu.tick_ns) as f64 / window_ns;
    assert!(
        (figures.hosts[0].cpu.interrupt - clock).abs() < 1e-3,
        "{:?}",
        figures.hosts[0].cpu
    );
    let program = packets * host.application.packet_ns as f64 / window_ns;
    assert!(
        (figures.hosts[0].cpu.user - program).abs() < 1e-3,
        "{:?}",
        figures.hosts[0].cpu
    );
    let cpu = &figures.hosts[0].cpu;
    let sum = cpu.user + cpu.system + cpu.interrupt + cpu.soft_interrupt + cpu.idle;
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
    assert!(
        (figures.delivered_pps - line_pps).abs() <= 5.0,
        "{}",
        figures.delivered_pps
    );
    assert!(
        (figures.hosts[0].line_ratio().unwrap() - 1.0).abs() < 0.01,
        "{}",
        figures.hosts[0].line_ratio().unwrap()
    );
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
    assert!(
        (figures.delivered_pps - line_pps).abs() <= 10.0,
        "{}",
        figures.delivered_pps
    );
    let failed = lost(&figures, LossPlace::SendQueue);
    assert!(failed > figures.ledger.delivered, "{:?}", figures.ledger);
    assert_eq!(figures.ledger.lost(), failed);
}

#[test]
fn a_polled_sender_is_bound_by_how_often_its_ring_is_cleared() {
    let small = "card.tx_ring=8:network.send_queue_packets=8";
    // A cycle of one chunk looks at the card once.
    let polled = run(&format!("freebsd-polling:each_burst=150:{small}"), "blast");
    // Each tick clears 8 descriptors and refills them.
    assert!(
        polled.delivered_pps <= 8.0 * 1001.0,
        "{}",
        polled.delivered_pps
    );
    let woken = run(&format!("freebsd-interrupt:{small}"), "blast");
    assert!(
        woken.delivered_pps > 2.0 * polled.delivered_pps,
        "{}",
        woken.delivered_pps
    );
}

#[test]
fn pulses_wait_in_the_ring_and_beyond_it_are_lost() {
    let figures = run(
        "freebsd-polling:card.rx_ring=64:burst_max=1000",
        "pulses:rate=100k",
    );
    // Of 100 packets, 64 find a descriptor, and some of these are taken meanwhile.
    let delivered = figures.ledger.delivered as f64 / figures.ledger.offered as f64;
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
    let added = harvest.hosts[0].cpu.system - plain.hosts[0].cpu.system;
    // 20,000 interrupts of 10 us are 0.2, and every harvest is a switch.
    assert!((0.19..0.35).contains(&added), "{added}");
    let endless = run(
        "freebsd-interrupt:background.interrupt_ns=1ms",
        "constant:rate=20k",
    );
    assert!(endless.delivered_pps < 0.1 * plain.delivered_pps);
    let forgotten = "freebsd-interrupt:background.interrupt_ns=1ms:background.queue_events=0";
    assert_eq!(
        run(forgotten, "constant:rate=20k").delivered_pps,
        plain.delivered_pps
    );
}

#[test]
fn idle_polling_takes_what_is_left_and_shortens_the_wait() {
    let plain = run("freebsd-polling", "poisson:rate=20k");
    let idle = run("freebsd-polling:idle_poll=1", "poisson:rate=20k");
    assert!(idle.hosts[0].cpu.idle < 0.01, "{:?}", idle.hosts[0].cpu);
    assert!(idle.latency.p50_ns < plain.latency.p50_ns.map(|ns| ns / 5));
}

#[test]
fn a_datagram_in_fragments_is_one_datagram() {
    // 1473 bytes are one too many for a frame: 1480 bytes of IP payload, and 1.
    let figures = run("freebsd-polling", "constant:rate=10k:payload=1473");
    assert_eq!(figures.ledger.lost(), 0, "{:?}", figures.ledger);
    assert!((figures.delivered_pps - 10_000.0).abs() <= 10.0);
    // 1538 bytes of line, and 84 for the shortest frame.
    let used = 10_000.0 * 8.0 * (1538.0 + 84.0) / 1e9;
    assert!(
        (figures.hosts[0].line_ratio().unwrap() - used).abs() < 1e-3,
        "{}",
        figures.hosts[0].line_ratio().unwrap()
    );
    // A ring of one descriptor has room for the first fragment only: each datagram is lost once.
    let lossy = run(
        "freebsd-polling:card.rx_ring=1",
        "constant:rate=10k:payload=1473",
    );
    assert!(lossy.ledger.lost() > 0 && lossy.ledger.lost() <= lossy.ledger.offered);
    assert_eq!(lossy.ledger.lost(), lost(&lossy, LossPlace::RxRing));
}

#[test]
fn what_a_host_cannot_do_is_refused() {
    for (discipline, workload, words) in [
        ("napi", "constant:rate=1k:payload=65535", "65507"),
        ("napi:socket.buffer_bytes=64", "constant:rate=1k", "80"),
        ("napi", "poisson", "poisson:rate="),
        ("napi", "iperf-udp", "--peer"),
        ("busy-poll", "blast", "under busy-poll a program polls"),
        (
            "freebsd-polling:each_burst=1000",
            "constant:rate=1k",
            "each_burst = 1000 is refused (EINVAL)",
        ),
    ] {
        assert_refused(&plan(discipline, workload), words);
    }
    let mut nothing = plan("napi", "constant:rate=1k");
    nothing.duration_ns = 0;
    assert_refused(&nothing, "give a duration above 0");
}
