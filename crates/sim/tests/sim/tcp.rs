//! TCP along a path: hand calculations, and invariants.

use nicpoll_model::LossPlace;
use nicpoll_model::sim::{SimFigures, SimTcp};
use nicpoll_sim::{Simulation, explain};

use crate::common::*;

/// Half a second, after a warm-up of half a second.
fn long(disciplines: &[&str], workload: &str) -> Simulation {
    Simulation {
        duration_ns: 500_000_000,
        warmup_ns: 500_000_000,
        ..path(disciplines, workload)
    }
}

/// Runs a plan, and asserts that every byte and every packet is accounted for.
fn figures(plan: &Simulation) -> SimFigures {
    let figures = crate::common::figures(plan);
    for tcp in &figures.connections {
        assert!(tcp.bytes.is_closed(), "{:?}", tcp.bytes);
    }
    for flow in &figures.flows {
        assert_eq!(
            flow.out_of_order_datagrams, 0,
            "lines and queues keep the order: {flow:?}"
        );
    }
    figures
}

fn only(figures: &SimFigures) -> &SimTcp {
    assert_eq!(figures.connections.len(), 1);
    &figures.connections[0]
}

#[test]
fn a_window_a_round_trip_is_what_a_long_line_carries() {
    let host = "freebsd-interrupt:link.delay_ns=10ms";
    let figures = figures(&long(&[host, host], "iperf-tcp:window=64k"));
    let tcp = only(&figures);
    // 20 ms on the line; the window arrives in 0.54 ms and takes some work at both ends.
    let round_trip_ns = tcp.round_trip_mean_ns.unwrap();
    assert!((20e6..22e6).contains(&round_trip_ns), "{round_trip_ns}");
    // Whole segments of 64,000 bytes, one of which may wait for its second.
    let expected = 43.5 * 1448.0 * 8e9 / round_trip_ns;
    close(tcp.goodput_bits_per_second, expected, 0.05);
    assert_eq!((tcp.retransmitted_segments, figures.ledger.lost()), (0, 0));
    assert!(
        tcp.held.send_buffer_ratio + tcp.held.window_ratio > 0.9,
        "{tcp:?}"
    );
}

#[test]
fn a_slow_line_is_filled_with_whole_segments() {
    for (workload, data) in [
        ("iperf-tcp:window=64k", 1448.0),
        ("iperf-tcp:window=64k:ip=6", 1428.0),
    ] {
        let host = "freebsd-interrupt:link.bits_per_second=10m";
        let figures = figures(&long(&[host, host], workload));
        // 1,500 bytes of IP take 1,538 of the line.
        let expected = 10e6 * data / 1538.0;
        close(only(&figures).goodput_bits_per_second, expected, 0.005);
        close(figures.lines[0].forth_ratio, 1.0, 0.005);
    }
}

#[test]
fn each_segment_read_and_each_cluster_written_takes_its_buffer() {
    let system = |buffer: &str| {
        let host = format!("freebsd-interrupt:link.bits_per_second=10m:tcp.buffer_ns={buffer}");
        let figures = figures(&long(&[&host, &host], "iperf-tcp:window=64k"));
        [0, 1].map(|host: usize| figures.hosts[host].cpu.system_ratio)
    };
    let [writing_free, reading_free] = system("0");
    let [writing, reading] = system("100us");
    // 1,500 bytes of IP take 1,538 of the line and are read as they come; two pieces are not written as one.
    let segments = 10e6 / (1538.0 * 8.0);
    close(reading - reading_free, segments * 100e-6, 0.02);
    close(
        writing - writing_free,
        segments * 1448.0 / 2048.0 * 100e-6,
        0.1,
    );
}

#[test]
fn both_ways_a_full_duplex_line_is_filled_but_for_the_acknowledgements() {
    let host = "freebsd-interrupt:link.bits_per_second=10m";
    let figures = figures(&long(&[host, host], "iperf-tcp:window=64k:dual=1"));
    let [forth, back] = &figures.connections[..] else {
        panic!("{:?}", figures.connections);
    };
    assert_eq!((&forth.from, &forth.to), (&back.to, &back.from));
    for (tcp, line) in [
        (forth, figures.lines[0].forth_ratio),
        (back, figures.lines[0].back_ratio),
    ] {
        close(line, 1.0, 0.01);
        // An acknowledgement of 84 bytes with each one or two segments.
        let least = 10e6 * 1448.0 / (1538.0 + 84.0);
        let most = 10e6 * 1448.0 / (1538.0 + 42.0);
        let rate = tcp.goodput_bits_per_second;
        assert!((0.99 * least..1.01 * most).contains(&rate), "{tcp:?}");
    }
}

#[test]
fn a_processor_that_takes_long_for_a_segment_decides() {
    let receiver = "freebsd-interrupt:tcp.segment_ns=1ms";
    let plan = long(&["freebsd-interrupt", receiver], "iperf-tcp:window=64k");
    let figures = figures(&plan);
    // All other work on a segment is some tens of microseconds.
    let rate = only(&figures).goodput_bits_per_second / (1448.0 * 8.0);
    assert!((930.0..1000.0).contains(&rate), "{rate}");
    let bottleneck = explain(&plan, &figures).unwrap();
    assert_eq!(bottleneck.resource, "processor of generic (host 2)");
    assert!(bottleneck.is_binding);
}

#[test]
fn polled_hosts_move_a_window_in_a_few_ticks_and_more_ticks_help() {
    let rate = |hz: u64| {
        let host = format!("freebsd-polling:cpu.hz={hz}");
        let plan = long(&[&host, &host], "iperf-tcp:window=32k");
        let figures = figures(&plan);
        let bottleneck = explain(&plan, &figures).unwrap();
        let tcp = only(&figures);
        assert_eq!(bottleneck.resource, "send buffer of generic (host 1)");
        assert!(bottleneck.explanation.contains("ms: "), "{bottleneck:?}");
        let ticks = tcp.round_trip_mean_ns.unwrap() * hz as f64 / 1e9;
        assert!((0.5..3.0).contains(&ticks), "{ticks} ticks");
        tcp.goodput_bits_per_second
    };
    let (slow, fast) = (rate(250), rate(500));
    close(fast / slow, 2.0, 0.25);
}

#[test]
fn clocks_that_wander_past_each_other_make_polled_tcp_swing() {
    let swing = |ppm: u64| {
        let late = format!("freebsd-polling:cpu.tick_slow_ppm={ppm}");
        let plan = Simulation {
            // The ticks pass each other in 1 ms / 1000 PPM.
            duration_ns: 1_000_000_000,
            slices: 10,
            ..long(&["freebsd-polling", &late], "iperf-tcp:window=32k")
        };
        let figures = figures(&plan);
        let tcp = only(&figures);
        let parts = tcp.slices.iter().map(|slice| slice.read_bytes);
        assert_eq!(parts.clone().sum::<u64>(), tcp.bytes.read_bytes);
        let (least, most) = (parts.clone().min().unwrap(), parts.max().unwrap());
        most as f64 / least as f64
    };
    let (steady, swinging) = (swing(0), swing(1000));
    assert!(steady < 1.1, "{steady}");
    assert!(swinging > 1.25 * steady, "{swinging} after {steady}");
}

#[test]
fn what_is_lost_is_sent_again_and_every_byte_comes_through() {
    // A window arrives at a slow line at once, and the queues before it are short.
    let host =
        "freebsd-interrupt:link.bits_per_second=10m:card.tx_ring=4:network.send_queue_packets=4";
    let plan = Simulation {
        duration_ns: 5_000_000_000,
        ..long(&[host, host], "iperf-tcp:window=64k")
    };
    let figures = figures(&plan);
    let tcp = only(&figures);
    let lost = figures.ledger.lost_at(0, LossPlace::SendQueue);
    assert!(lost > 0, "{:?}", figures.ledger);
    assert!(tcp.fast_retransmits > 0, "{tcp:?}");
    // Each loss is repaired once, but for what was on its way at the edges; a timeout repeats more.
    assert!(tcp.retransmitted_segments + 50 >= lost, "{lost} {tcp:?}");
    // What the program read cannot exceed what the line carries.
    let most = 10e6 * 1448.0 / 1538.0;
    let rate = tcp.goodput_bits_per_second;
    assert!((0.5 * most..=1.01 * most).contains(&rate), "{tcp:?}");
    let bottleneck = explain(&plan, &figures).unwrap();
    let resources = ["line of generic (host 1)", "send queue of generic (host 1)"];
    assert!(resources.contains(&&*bottleneck.resource), "{bottleneck:?}");
}

#[test]
fn two_connections_between_equal_hosts_share_alike() {
    for host in ["napi", "napi-timer:timeout=200us"] {
        let figures = figures(&long(&[host, host], "iperf-tcp:dual=1"));
        let rates: Vec<_> = figures
            .connections
            .iter()
            .map(|tcp| tcp.goodput_bits_per_second)
            .collect();
        close(rates[0] / rates[1], 1.0, 0.25);
    }
}

#[test]
fn a_program_that_writes_keeps_its_share_beside_one_that_reads() {
    // Copying leaves little of the second host's processor; it reads as fast as it can.
    let slow = "freebsd-interrupt:socket.copy_kib_ns=50us";
    let figures = figures(&long(&["freebsd-interrupt", slow], "iperf-tcp:dual=1"));
    below(figures.hosts[1].cpu.idle_ratio, 0.01);
    let [forth, back] = &figures.connections[..] else {
        panic!("{:?}", figures.connections);
    };
    let share = back.goodput_bits_per_second / forth.goodput_bits_per_second;
    assert!((0.5..2.5).contains(&share), "{forth:?} {back:?}");
}

#[test]
fn a_router_forwards_both_protocols() {
    for workload in ["iperf-tcp:window=64k", "iperf-tcp:window=64k:ip=6:dual=1"] {
        for router in ["freebsd-interrupt", "freebsd-polling", "napi"] {
            let plan = long(
                &["freebsd-interrupt", router, "freebsd-interrupt"],
                workload,
            );
            let figures = figures(&plan);
            for tcp in &figures.connections {
                assert!(tcp.goodput_bits_per_second > 10e6, "{router}: {tcp:?}");
            }
            let forwarded = &figures.hosts[1].ledger;
            assert_eq!((forwarded.made_packets, forwarded.taken_packets), (0, 0));
            assert!(forwarded.transmitted_packets > 1000, "{forwarded:?}");
        }
    }
}

#[test]
fn small_writes_wait_for_the_delayed_acknowledgement_of_the_last_segment() {
    // Nagle's rule: data written while a segment is in flight wait for its acknowledgement, which the receiver delays
    // for 100 ms, to a tick.
    let host = "freebsd-interrupt:application.packet_ns=10ms";
    let plan = Simulation {
        duration_ns: 2_000_000_000,
        ..long(&[host, host], "iperf-tcp:write=100")
    };
    let tcp = only(&figures(&plan)).clone();
    assert!((18..=20).contains(&tcp.segments), "{tcp:?}");
    assert!((18..=20).contains(&tcp.acknowledgements), "{tcp:?}");
    // A write each 10 ms.
    assert!(tcp.bytes.written_bytes.abs_diff(20_000) < 500, "{tcp:?}");
}
