//! Bursts, gaps, and a server that reads slowly, over this host's loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use nicpoll_iperf::{Amount, ClientConfig, Listen, ListenerConfig, Total, tcp, udp};
use nicpoll_model::Rate;

mod common;
use common::{RECEIVE_BUFFER_BYTES, roomy, server_config, stream};

#[test]
fn a_server_with_a_rate_reads_no_faster() {
    let mut config = ListenerConfig::tcp(server_config(Ipv4Addr::LOCALHOST));
    config.stream.rate = Rate::bits_per_second(8_000_000);
    let mut listener = tcp::Listener::bind(&config).unwrap();
    let amount = Amount::Bytes(400_000);
    let config = ClientConfig::tcp(listener.local_addr(), amount);
    let begun = Instant::now();
    let (_, received) = stream(&mut listener, &config);
    assert_eq!(received.whole.bytes, 400_000);
    // At a megabyte per second. The last read, at most 131072 bytes, is due when the others are paid for.
    assert!(begun.elapsed() >= Duration::from_micros(400_000 - 131_072));
}

fn udp_stream(config: impl FnOnce(SocketAddr) -> ClientConfig) -> (Total, Total) {
    let server = roomy(Ipv4Addr::LOCALHOST, RECEIVE_BUFFER_BYTES);
    let mut server = ListenerConfig::udp(server);
    server.stream.records_times = true;
    let mut listener = udp::Listener::bind(&server).unwrap();
    let config = config(listener.local_addr());
    stream(&mut listener, &config)
}

#[test]
fn bursts_leave_as_many_long_gaps_as_there_are_periods() {
    const BURSTS: u64 = 20;
    let (sent, received) = udp_stream(|peer| {
        let mut config = ClientConfig::udp(peer, 200, Amount::Bytes(BURSTS * 10 * 200));
        config.stream.rate = Rate::packets_per_second(1000);
        config.stream.burst_datagrams = 10;
        config.stream.is_batched = true;
        config.stream.records_times = true;
        config
    });
    assert_eq!(sent.whole.datagrams, 10 * BURSTS);
    let gaps = sent.gaps.unwrap();
    assert_eq!(gaps.samples, 10 * BURSTS - 1);
    // A burst's datagrams leave together; so do late bursts.
    assert!(gaps.zero_samples >= 9 * BURSTS, "{gaps:?}");
    // No burst is early: from the first to the last there are 19 periods of 10 ms.
    let from_first_to_last = gaps.mean_seconds * gaps.samples as f64;
    assert!(from_first_to_last >= (BURSTS - 1) as f64 * 0.01, "{gaps:?}");
    assert!(sent.whole.calls.done <= BURSTS);

    let arrivals = received.gaps.unwrap();
    assert_eq!(arrivals.samples, received.whole.datagrams - 1);
    let receipt = received.whole.receipt.unwrap();
    assert_eq!(receipt.transit.unwrap().datagrams, received.whole.datagrams);
}

#[test]
fn gaps_are_told_where_they_are_recorded() {
    let (sent, received) = udp_stream(|peer| ClientConfig::udp(peer, 200, Amount::Bytes(2000)));
    assert_eq!(sent.gaps, None);
    assert!(received.gaps.is_some());
}
