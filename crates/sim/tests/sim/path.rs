//! Hosts in a row, in runs whose outcome can be computed by hand.

use nicpoll_model::LossPlace;
use nicpoll_model::sim::{SIM_PLACES, SimFigures};
use nicpoll_sim::{explain, simulate};

use crate::common::*;

/// A host that makes packets cheaply: call, driver, the program's own work, clearing the ring.
const FAST_SENDER: &str = "freebsd-interrupt:cpu.syscall_ns=100:network.output_ns=100:card.tx_packet_ns=100:\
                           card.tx_done_ns=0:application.packet_ns=0:card.moderation_ns=100us";

#[test]
fn a_lone_request_takes_the_sum_of_all_steps_both_ways() {
    // No tick comes between, and the transmit interrupt is over long before the reply arrives.
    let discipline = "freebsd-interrupt:cpu.hz=1:link.delay_ns=10ms:card.moderation_ns=0";
    let figures = run_path(&[discipline, discipline], "rr");
    let host = host();
    let copy = host.socket.copy_kib_ns * 64 / 1024;
    let call = host.cpu.syscall_ns + host.network.output_ns + copy + host.card.tx_packet_ns;
    // 64 + 8 + 20 + 14 + 4 + 8 + 12 bytes at a gigabit.
    let line = 130 * 8 + 10_000_000;
    let interrupt = host.cpu.interrupt_entry_ns + host.card.interrupt_ns + host.card.rx_packet_ns;
    let protocols = host.network.ipv4_ns + host.network.udp_ns;
    let read = host.cpu.syscall_ns + copy;
    let switches = 3 * host.cpu.context_switch_ns;
    let one_way = call + line + interrupt + protocols + read + switches;
    let own = host.application.packet_ns;
    let trip = figures.flows[0].round_trip.as_ref().unwrap();
    // From the call's end on: the histogram keeps three digits.
    let expected = 2 * one_way + own - (call - host.card.tx_packet_ns);
    close(trip.mean_ns.unwrap(), expected as f64, 0.002);
    close(
        figures.flows[0].delivered_packets_per_second,
        1e9 / (2 * one_way + 2 * own) as f64,
        0.02,
    );
    assert_eq!(figures.ledger.lost(), 0);
}

#[test]
fn a_blast_crosses_the_line_at_the_lines_rate() {
    for (workload, frame) in [
        ("netblast:payload=1470", 1512 + 24),
        // 1496 and 78 bytes of IP, each with 38 around it.
        ("netblast:payload=1470:ip=6", 1534 + 116),
    ] {
        let slow = "freebsd-interrupt:link.bits_per_second=100m:network.send_queue_packets=100";
        let figures = run_path(&[slow, slow], workload);
        let flow = &figures.flows[0];
        close(
            flow.delivered_packets_per_second,
            line_pps(100e6, frame),
            0.005,
        );
        close(figures.lines[0].forth_ratio, 1.0, 0.005);
        // Calls that fail have numbers too, which the receiver misses.
        assert!(flow.send_errors > 0, "{flow:?}");
        assert!(flow.missing_datagrams.abs_diff(flow.send_errors) < flow.send_errors / 10);
        let refused = figures.ledger.lost_at(0, LossPlace::SendQueue);
        assert_eq!(figures.ledger.lost(), refused);
        assert_eq!(flow.send_errors, refused);
    }
}

#[test]
fn ipv6_fragments_are_put_together_and_counted_once() {
    // 1470 + 8 bytes do not fit into 1500 - 40: 1448 and 30 bytes with headers of 48.
    let figures = run_path(
        &["freebsd-interrupt:card.rx_ring=8", "freebsd-polling"],
        "netblast:payload=1470:ip=6",
    );
    let receiver = &figures.hosts[1].ledger;
    let dropped = figures.ledger.lost_at(1, LossPlace::SocketBuffer);
    // The socket holds fewer than 50.
    assert!(receiver.merged_packets > 0);
    within(
        receiver
            .merged_packets
            .abs_diff(receiver.taken_packets + dropped),
        ..=50,
    );
    let sender = &figures.hosts[0].ledger;
    assert_eq!(sender.made_packets, 2 * figures.flows[0].calls);
    // Half of the fragments are lost on purpose: the ring takes one of two that come back to back.
    let lossy = "freebsd-polling:card.rx_ring=1";
    let figures = run_path(&["freebsd-interrupt", lossy], "netblast:payload=1470:ip=6");
    assert_eq!(figures.flows[0].delivered_datagrams, 0);
    let lost = figures.ledger.lost_at(1, LossPlace::RxRing);
    assert_eq!(figures.ledger.lost(), lost);
    within(lost.abs_diff(figures.flows[0].calls), ..=20);
    let unmatched = &figures.hosts[1].ledger.losses;
    let reassembly = unmatched
        .iter()
        .find(|loss| loss.place == LossPlace::Reassembly);
    assert!(reassembly.unwrap().packets > 0);
}

#[test]
fn a_checksum_takes_time_at_both_ends_and_none_of_a_refused_call() {
    let host = "freebsd-interrupt:link.bits_per_second=10m:network.checksum_kib_ns=50us";
    let [over_ipv4, over_ipv6] = ["netblast:payload=1024", "netblast:payload=1024:ip=6"]
        .map(|workload| run_path(&[host, host], workload));
    // The line takes about 1,100 of them a second, and the calls for the rest fail.
    let calls = |figures: &SimFigures| figures.flows[0].calls as f64;
    let seconds = path(&[host, host], "netblast").duration_ns as f64 / 1e9;
    assert!(calls(&over_ipv6) * 50e-6 < seconds, "{:?}", over_ipv6.flows);
    above(calls(&over_ipv4) * 50e-6, 2.0 * seconds);
    for figures in [over_ipv4, over_ipv6] {
        let spent = figures.flows[0].delivered_packets_per_second * 50e-6;
        let receiver = &figures.hosts[1].cpu;
        above(
            receiver.interrupt_ratio + receiver.soft_interrupt_ratio,
            spent,
        );
        assert!(receiver.system_ratio < spent, "{receiver:?}");
    }
}

#[test]
fn a_half_duplex_line_is_shared() {
    // Large requests and replies: the line is all that takes time.
    let discipline =
        |half| format!("freebsd-interrupt:link.bits_per_second=1m:link.half_duplex={half}");
    let full = run_path(&[&discipline(0), &discipline(0)], "rr:payload=1470");
    let half = run_path(&[&discipline(1), &discipline(0)], "rr:payload=1470");
    assert!(half.lines[0].is_half_duplex && !full.lines[0].is_half_duplex);
    // One packet is in flight at a time: sharing costs nothing here.
    close(
        half.flows[0].delivered_packets_per_second,
        full.flows[0].delivered_packets_per_second,
        0.02,
    );
    assert!(half.lines[0].forth_ratio + half.lines[0].back_ratio <= 1.01);
}

#[test]
fn the_gap_that_a_card_needs_bounds_what_it_sends() {
    let slow = "freebsd-interrupt:link.bits_per_second=100m:card.tx_gap_ns=7000";
    let figures = run_path(&[slow, slow], "netblast:payload=1470");
    let frame_ns = 1536.0 * 80.0;
    close(
        figures.flows[0].delivered_packets_per_second,
        1e9 / (frame_ns + 7000.0),
        0.005,
    );
}

#[test]
fn iperf_keeps_its_rate_in_whole_microseconds() {
    let figures = run_path(&[FAST_SENDER, "freebsd-polling"], "iperf-udp:rate=100m");
    // 1470 x 8 / 100 is 117.6: iperf takes 117.
    close(figures.flows[0].sent_packets_per_second, 1e6 / 117.0, 0.001);
    // iperf polls the clock during its pauses.
    below(cpu(&figures).idle_ratio, 0.01);
    // Or sleeps, and catches up with what a sleep is too long. A tick has as many datagrams as before.
    let sleeping = run_path(
        &[FAST_SENDER, "freebsd-polling"],
        "iperf-udp:rate=100m:sleep=1",
    );
    close(sleeping.flows[0].sent_packets_per_second, 1e6 / 117.0, 0.01);
    above(cpu(&sleeping).idle_ratio, 0.3);
    let asked_more = run_path(
        &["freebsd-interrupt", "freebsd-polling"],
        "iperf-udp:rate=100g",
    );
    let host = host();
    let call = host.cpu.syscall_ns + host.network.output_ns + host.card.tx_packet_ns;
    let copy = host.socket.copy_kib_ns * 1470 / 1024;
    let own = host.application.packet_ns + host.application.clock_ns;
    // And an interrupt, a clearing and two switches for each frame, for which the program waits.
    let after = host.cpu.interrupt_entry_ns + host.card.interrupt_ns + host.card.tx_done_ns;
    let each = call + copy + own + after + 2 * host.cpu.context_switch_ns;
    close(
        asked_more.flows[0].sent_packets_per_second,
        1e9 / each as f64,
        0.03,
    );
}

#[test]
fn a_router_forwards_what_its_processor_can() {
    let figures = run_path(
        &[
            FAST_SENDER,
            "napi",
            "freebsd-polling:user_frac=0:burst_max=1000",
        ],
        "netblast:payload=1000",
    );
    let router = &figures.hosts[1];
    assert_eq!(router.ledger.taken_packets, 0);
    // The router is overrun: it works without a pause, and loses what it cannot forward.
    assert!(router.cpu.idle_ratio < 0.01);
    let host = host();
    let each = host.card.rx_packet_ns
        + host.network.ipv4_ns
        + host.network.forward_ns
        + host.card.tx_packet_ns
        + host.card.tx_done_ns;
    let most = 1e9 / each as f64;
    // Polls and time squeezes take the rest.
    let forwarded = router.ledger.transmitted_packets as f64 / 0.2;
    assert!((0.9 * most..most).contains(&forwarded), "{forwarded}");
    let in_router: u64 = SIM_PLACES
        .iter()
        .map(|place| figures.ledger.lost_at(1, *place))
        .sum();
    let refused = figures.ledger.lost_at(0, LossPlace::SendQueue);
    let unread = figures.ledger.lost_at(2, LossPlace::SocketBuffer);
    assert!(in_router > 0);
    assert_eq!(figures.ledger.lost(), in_router + refused + unread);
}

#[test]
fn a_polling_router_holds_where_one_with_interrupts_falls() {
    let with = |router| {
        run_path(
            &[
                FAST_SENDER,
                router,
                "freebsd-polling:user_frac=0:burst_max=1000",
            ],
            "netblast",
        )
    };
    let polled = with("freebsd-polling:user_frac=0:burst_max=20000:each_burst=20");
    let woken = with("freebsd-interrupt");
    above(
        polled.flows[0].delivered_packets_per_second,
        2.0 * woken.flows[0].delivered_packets_per_second,
    );
    assert_eq!(polled.ledger.lost_at(1, LossPlace::IpQueue), 0);
}

#[test]
fn a_polled_router_gives_both_cards_their_share() {
    let polled = "freebsd-polling:burst_max=1000";
    let figures = run_path(&[polled, polled, polled], "rr");
    let knobs = &figures.hosts[1].polling.as_ref().unwrap().knobs;
    let handlers = knobs.iter().find(|knob| knob.name == "handlers").unwrap();
    assert_eq!(handlers.value, 2);
    let (requests, replies) = (&figures.flows[0], &figures.flows[1]);
    assert!(requests.delivered_datagrams > 0);
    assert!(
        requests
            .delivered_datagrams
            .abs_diff(replies.delivered_datagrams)
            <= 1
    );
    let polling = figures.hosts[1].polling.as_ref().unwrap();
    // Each card is asked for every burst.
    let bursts = polling.burst_mean_packets.unwrap() * polling.cycles as f64;
    close(polling.asked_packets as f64, 2.0 * bursts, 0.01);
}

#[test]
fn every_discipline_can_forward() {
    for router in [
        "freebsd-interrupt",
        "freebsd-polling",
        "freebsd-polling:idle_poll=1",
        "napi",
        "napi-timer",
    ] {
        let figures = run_path(&["freebsd-interrupt", router, "napi"], "rr");
        above(figures.flows[1].delivered_datagrams, 10);
        assert_eq!(figures.ledger.lost(), 0, "{router}");
    }
    let polls = run_path(&["busy-poll", "napi", "busy-poll"], "rr");
    assert!(polls.flows[1].delivered_datagrams > 100);
}

#[test]
fn the_bottleneck_is_named_over_the_whole_path() {
    for [disciplines, workload, resource] in cases(
        "
        freebsd-interrupt > freebsd-interrupt | netblast | processor of generic (host 2)
        freebsd-interrupt:link.bits_per_second=10m > freebsd-polling | netblast | line of generic (host 1)
        FAST > freebsd-interrupt > napi | netblast | processor of generic (host 2)
        freebsd-interrupt > freebsd-polling:burst_max=10 | netblast | burst_max of generic (host 2)
        freebsd-interrupt > freebsd-polling > freebsd-interrupt | netblast:payload=1000 | user_frac of generic (host 2)
        ",
    ) {
        let disciplines = disciplines.replace("FAST", FAST_SENDER);
        let plan = path(&Vec::from_iter(disciplines.split(" > ")), workload);
        let figures = simulate(&plan).unwrap();
        let bottleneck = explain(&plan, &figures).unwrap();
        assert_eq!(bottleneck.resource, resource, "{bottleneck:?}");
        assert!(bottleneck.is_binding);
    }
}
