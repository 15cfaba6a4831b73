//! Payload from elsewhere, bursts, times, and a server that reads slowly: on this machine's loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nicpoll_iperf::{Amount, ClientConfig, Input, Listen, ListenerConfig, Total, tcp, udp};
use nicpoll_model::{Protocol, Rate};
use nicpoll_traffic::Signals;

mod common;
use common::{LOOPBACK, RECEIVE_BUFFER_BYTES, faults, roomy, server_config, stream};

const NO_TIME: Amount = Amount::Time(Duration::ZERO);

/// A file of so many bytes that are not the pattern. It goes with the value.
struct Payload(PathBuf);

impl Payload {
    fn new(test: &str, bytes: usize) -> Self {
        let name = format!("nicpoll-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, vec![0xa5; bytes]).unwrap();
        Payload(path)
    }

    fn input(&self) -> Option<Input> {
        Some(Input::File(self.0.clone()))
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn tcp_listener(rate: Option<Rate>) -> tcp::Listener {
    let mut config = ListenerConfig::tcp(server_config(Ipv4Addr::LOCALHOST));
    config.stream.rate = rate;
    tcp::Listener::bind(&config).unwrap()
}

#[test]
fn a_file_goes_over_tcp_behind_the_header_to_its_last_byte() {
    let payload = Payload::new("tcp", 300_001);
    let mut listener = tcp_listener(None);
    let mut config = ClientConfig::tcp(listener.local_addr(), NO_TIME);
    config.stream.input = payload.input();
    let (sent, received) = stream(&mut listener, &config);
    assert_eq!(sent.whole.bytes, 60 + 300_001);
    assert_eq!(received.whole.bytes, sent.whole.bytes);
    assert!(sent.whole.calls.done >= 4 && sent.whole.tcp.is_some());
    let reads: u64 = received.whole.calls.read_sizes.iter().sum();
    assert!(reads > 0 && received.whole.tcp.is_none());
}

#[test]
fn a_missing_file_is_told_before_anybody_connects() {
    let nobody = LOOPBACK.into();
    let input = Some(Input::File("/nonexistent/payload".into()));
    let signals = Signals::default();
    let refused = |mut config: ClientConfig| {
        config.stream.input = input.clone();
        match config.stream.protocol {
            Protocol::Tcp => tcp::run_client(&config, &signals, &mut ()),
            Protocol::Udp => udp::run_client(&config, &signals, &mut ()),
        }
    };
    for config in [
        ClientConfig::tcp(nobody, NO_TIME),
        ClientConfig::udp(nobody, 100, NO_TIME),
    ] {
        let error = refused(config).unwrap_err().to_string();
        assert!(error.contains("cannot read the payload"), "{error}");
    }
}

#[test]
fn a_server_with_a_rate_reads_no_faster() {
    let mut listener = tcp_listener(Rate::bits_per_second(8_000_000));
    let amount = Amount::Bytes(400_000);
    let config = ClientConfig::tcp(listener.local_addr(), amount);
    let begun = Instant::now();
    let (_, received) = stream(&mut listener, &config);
    assert_eq!(received.whole.bytes, 400_000);
    // At a megabyte a second, the last read, of 131072 bytes at most, being due when the others are
    // paid for.
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
fn a_file_goes_over_udp_after_a_first_datagram_with_the_header() {
    // Three whole datagrams of 84 bytes each, and one of a byte.
    let payload = Payload::new("udp", 3 * 84 + 1);
    let (sent, received) = udp_stream(|peer| {
        let mut config = ClientConfig::udp(peer, 100, NO_TIME);
        config.stream.input = payload.input();
        config
    });
    assert_eq!(sent.whole.datagrams, 5);
    assert_eq!(sent.whole.bytes, 4 * 100 + 17);
    assert_eq!(received.whole.datagrams, 5);
    assert_eq!(received.whole.bytes, sent.whole.bytes);
    assert_eq!(faults(&received), [0; 4]);
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
        config.stream.has_shared_clock = true;
        config
    });
    assert_eq!(sent.whole.datagrams, 10 * BURSTS);
    let gaps = sent.gaps.unwrap();
    assert_eq!(gaps.samples, 10 * BURSTS - 1);
    // Datagrams of one burst are handed over together, later bursts too when they are late.
    assert!(gaps.zero_samples >= 9 * BURSTS, "{gaps:?}");
    // No burst is early: from the first to the last there are 19 periods of 10 ms.
    let from_first_to_last = gaps.mean_seconds * gaps.samples as f64;
    assert!(from_first_to_last >= (BURSTS - 1) as f64 * 0.01, "{gaps:?}");
    assert!(sent.whole.calls.done <= BURSTS);

    let arrivals = received.gaps.unwrap();
    assert_eq!(arrivals.samples, received.whole.datagrams - 1);
    let delays = received.one_way_delays.unwrap();
    assert_eq!(delays.samples, received.whole.datagrams);
    let receipt = received.whole.receipt.unwrap();
    assert_eq!(receipt.transit.unwrap().datagrams, delays.samples);
}

#[test]
fn delays_are_told_only_when_the_client_says_that_the_clock_is_one() {
    let (sent, received) = udp_stream(|peer| ClientConfig::udp(peer, 200, Amount::Bytes(2000)));
    assert_eq!(sent.gaps, None);
    assert!(received.gaps.is_some() && received.one_way_delays.is_none());
}
