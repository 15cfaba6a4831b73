//! Many streams, intervals, amounts and rates over loopback, with both ends from this crate.

use std::error::Error as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_iperf::wire::DatagramHeader;
use nicpoll_iperf::{
    Amount, ClientConfig, Connected, End, Error, IntervalRecord, Listen, ListenerConfig, Observer,
    tcp, udp,
};
use nicpoll_model::Rate;
use nicpoll_testkit::needs;
use nicpoll_traffic::{ClientRefusal, Signals};

mod common;
use common::{PATIENCE, RECEIVE_BUFFER_BYTES, accepted, faults, observed, roomy, server_config};

const INTERVAL: Duration = Duration::from_millis(20);

/// Remembers everything.
#[derive(Default)]
struct Log {
    connected: Vec<Connected>,
    records: Vec<IntervalRecord>,
}

impl Observer for Log {
    fn connected(&mut self, connected: &Connected) {
        assert!(self.records.is_empty());
        self.connected.push(*connected);
    }

    fn interval(&mut self, record: &IntervalRecord) {
        self.records.push(*record);
    }
}

impl Log {
    /// Checks that the records are contiguous and add up to `bytes` and `datagrams`.
    fn check(&self, bytes: u64, datagrams: u64) {
        let mut end = 0.0;
        for (index, record) in self.records.iter().enumerate() {
            assert_eq!(record.start, end);
            end = record.end;
            let boundary = INTERVAL * (index as u32 + 1);
            assert!(record.is_partial || end == boundary.as_secs_f64());
            assert!(!record.is_partial || index + 1 == self.records.len());
        }
        let bytes_recorded: u64 = self.records.iter().map(|record| record.bytes).sum();
        let datagrams_recorded: u64 = self.records.iter().map(|record| record.datagrams).sum();
        assert_eq!((bytes_recorded, datagrams_recorded), (bytes, datagrams));
    }
}

fn loopback(ip: impl Into<IpAddr>) -> SocketAddr {
    SocketAddr::new(ip.into(), 0)
}

fn tcp_listener(ip: impl Into<IpAddr>) -> tcp::Listener {
    let mut config = ListenerConfig::tcp(server_config(ip));
    config.stream.is_batched = true;
    config.stream.interval = Some(INTERVAL);
    tcp::Listener::bind(&config).unwrap()
}

fn udp_listener(ip: impl Into<IpAddr>) -> udp::Listener {
    let mut config = ListenerConfig::udp(roomy(ip, RECEIVE_BUFFER_BYTES));
    config.stream.interval = Some(INTERVAL);
    udp::Listener::bind(&config).unwrap()
}

/// Runs one stream to a listener; returns each end's total and records.
fn tcp_stream(config: &ClientConfig, listener: &mut tcp::Listener) -> [(u64, Log); 2] {
    let [mut at_client, mut at_server] = [(); 2].map(|()| Log::default());
    let (sent, received) = observed(listener, config, [&mut at_client, &mut at_server]);
    assert_eq!(received.end, Some(End::Closed));
    [
        (sent.whole.bytes, at_client),
        (received.whole.bytes, at_server),
    ]
}

#[test]
fn tcp_intervals_add_up_at_both_ends() {
    for ip in [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ] {
        let mut listener = tcp_listener(ip);
        let amount = Amount::Time(Duration::from_millis(70));
        let mut config = ClientConfig::tcp(listener.local_addr(), amount);
        config.stream.interval = Some(INTERVAL);
        config.bind = Some(loopback(ip));
        config.stream.socket.device = Some(String::from("lo"));
        config.stream.socket.type_of_service = Some(0x10);
        config.stream.socket.time_to_live = Some(3);
        config.stream.no_delay = true;
        config.stream.max_segment_bytes = Some(1400);
        let [(sent, at_client), (received, at_server)] = tcp_stream(&config, &mut listener);
        assert_eq!(sent, received);
        at_client.check(sent, 0);
        at_server.check(received, 0);
        assert!(at_client.records.len() >= 4);
        let [client, server] = [at_client.connected[0], at_server.connected[0]];
        assert_eq!((client.local, client.peer), (server.peer, server.local));
        let start = client.tcp.unwrap();
        assert!((1..=1400).contains(&start.mss_bytes));
        assert!(start.connect_seconds.is_some() && start.congestion_window_bytes > 0);
    }
}

#[test]
fn tcp_sends_exactly_as_many_bytes_as_asked_for() {
    let mut listener = tcp_listener(Ipv4Addr::LOCALHOST);
    for (bytes, write_bytes, has_header) in [
        (0, 131_072, true),
        (59, 10, true),
        (60, 131_072, true),
        (300_001, 131_072, true),
        (5_000, 7, true),
        (131_073, 131_072, false),
    ] {
        let amount = Amount::Bytes(bytes);
        let mut config = ClientConfig::tcp(listener.local_addr(), amount);
        config.stream.length_bytes = write_bytes;
        config.stream.has_header = has_header;
        let [(sent, _), (received, at_server)] = tcp_stream(&config, &mut listener);
        assert_eq!((sent, received), (bytes, bytes));
        at_server.check(bytes, 0);
    }
}

#[test]
fn tcp_keeps_to_its_rate_and_intervals_end_in_silence() {
    let mut listener = tcp_listener(Ipv4Addr::LOCALHOST);
    let amount = Amount::Time(Duration::from_millis(150));
    let mut config = ClientConfig::tcp(listener.local_addr(), amount);
    config.stream.length_bytes = 1_000;
    config.stream.interval = Some(INTERVAL);
    // One write per 50 ms, starting with the header's share.
    config.stream.rate = Rate::bits_per_second(160_000);
    let [(sent, at_client), (received, at_server)] = tcp_stream(&config, &mut listener);
    assert!(sent <= 60 + 3 * 1_000, "{sent}");
    at_client.check(sent, 0);
    at_server.check(received, 0);
    assert!(at_client.records.iter().any(|record| record.bytes == 0));
    assert!(at_server.records.len() >= 7);
}

#[test]
fn a_client_told_to_finish_ends_its_stream_well() {
    let mut listener = tcp_listener(Ipv4Addr::LOCALHOST);
    let amount = Amount::Time(Duration::from_secs(60));
    let config = ClientConfig::tcp(listener.local_addr(), amount);
    let [to_client, to_server] = [(); 2].map(|()| Signals::default());
    let (sent, received) = thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let incoming = accepted(&mut listener, &to_server).incoming.unwrap();
            incoming(&to_server, &mut ()).unwrap()
        });
        let sending = scope.spawn(|| tcp::run_client(&config, &to_client, &mut ()).unwrap());
        thread::sleep(Duration::from_millis(30));
        to_client.finish.store(true, Ordering::Relaxed);
        (sending.join().unwrap(), receiving.join().unwrap())
    });
    assert_eq!(sent.whole.bytes, received.whole.bytes);
    assert!(sent.close_seconds.is_some());
}

#[test]
fn a_paced_udp_stream_is_never_ahead_of_its_schedule() {
    let receiver = UdpSocket::bind(loopback(Ipv4Addr::LOCALHOST)).unwrap();
    let peer = receiver.local_addr().unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let duration = Duration::from_millis(300);
    let mut config = ClientConfig::udp(peer, 64, Amount::Time(duration));
    config.stream.rate = Rate::packets_per_second(1000);
    config.stream.interval = Some(INTERVAL);
    config.stream.has_header = false;
    let begun = Instant::now();
    let (report, log, data) = thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut data = 0;
            let mut datagram = [0; 128];
            loop {
                let (length, client) = receiver.recv_from(&mut datagram).unwrap();
                // Zeros in place of the header.
                assert_eq!(datagram[16..length], [0; 48]);
                let id = DatagramHeader::parse(&datagram[..length]).unwrap().id;
                if id < 0 {
                    receiver.send_to(b"an answer", client).unwrap();
                    return data;
                }
                data += 1;
                assert_eq!(id, data);
                let allowed = 1.0 + begun.elapsed().as_secs_f64() * 1000.0 + 1.0;
                assert!((data as f64) < allowed);
            }
        });
        let mut log = Log::default();
        let report = udp::run_client(&config, &Signals::default(), &mut log).unwrap();
        (report, log, receiving.join().unwrap())
    });
    assert_eq!(report.whole.datagrams, data as u64);
    assert!(report.whole.datagrams <= 301, "{}", report.whole.datagrams);
    log.check(report.whole.bytes, report.whole.datagrams);
    assert_eq!(log.connected[0].peer, peer);
}

#[test]
fn many_udp_clients_are_served_at_once_and_every_datagram_counts_once() {
    needs!(ReceiveBuffer);
    const CLIENTS: usize = 20;
    for ip in [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ] {
        let mut listener = udp_listener(ip);
        let peer = listener.local_addr();
        let signals = Signals::default();
        let client = || {
            let mut config = ClientConfig::udp(peer, 200, Amount::Bytes(9_900));
            config.stream.rate = Rate::packets_per_second(1000);
            config.stream.interval = Some(INTERVAL);
            let mut log = Log::default();
            let sent = udp::run_client(&config, &signals, &mut log).unwrap();
            assert_eq!((sent.whole.datagrams, sent.whole.bytes), (50, 9_900));
            log.check(9_900, 50);
            let told = sent.server_report.unwrap();
            assert_eq!((told.lost, told.out_of_order), (0, 0));
            log.connected[0].local
        };
        thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
            let servers: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    let incoming = accepted(&mut listener, &signals).incoming.unwrap();
                    let signals = &signals;
                    scope.spawn(move || {
                        let mut log = Log::default();
                        let report = incoming(signals, &mut log).unwrap();
                        (report, log)
                    })
                })
                .collect();
            let mut sources: Vec<_> = clients.into_iter().map(|end| end.join().unwrap()).collect();
            for server in servers {
                let (report, log) = server.join().unwrap();
                assert_eq!(
                    (report.whole.datagrams, report.receipt().expected),
                    (50, 50)
                );
                assert_eq!(faults(&report), [0; 4]);
                assert!(report.whole.end >= report.seconds);
                log.check(9_900, 50);
                let expected: u64 = log
                    .records
                    .iter()
                    .map(|record| record.receipt.unwrap().expected)
                    .sum();
                assert_eq!(expected, 50);
                sources.retain(|source| *source != log.connected[0].peer);
            }
            assert!(sources.is_empty());
        });
        assert_eq!(listener.stray_datagrams(), 0);
    }
}

#[test]
fn udp_listeners_do_not_share_a_port() {
    let listener = udp_listener(Ipv4Addr::LOCALHOST);
    let mut config = ListenerConfig::udp(server_config(Ipv4Addr::LOCALHOST));
    config.bind = listener.local_addr();
    let error = udp::Listener::bind(&config).err().unwrap();
    assert!(matches!(error, Error::Bind { .. }), "{error}");
}

#[test]
fn the_option_that_a_udp_listener_cannot_set_is_named() {
    let mut config = ListenerConfig::udp(server_config(Ipv4Addr::LOCALHOST));
    config.stream.socket.device = Some(String::from("no-such-device"));
    let error = udp::Listener::bind(&config).err().unwrap();
    let cause = error.source().unwrap().to_string();
    assert!(
        cause.starts_with("setting SO_BINDTODEVICE on the socket: "),
        "{cause}"
    );
}

#[test]
fn no_more_clients_are_served_than_the_limit() {
    let limit = nicpoll_iperf::CLIENTS_MAX;
    let signals = Signals::default();
    let mut listener = udp_listener(Ipv4Addr::LOCALHOST);
    let header = DatagramHeader::at(1, Duration::ZERO);
    let mut datagram = [0; 64];
    header.write_to(&mut datagram);
    let mut sessions = Vec::new();
    let mut clients = Vec::new();
    for index in 0..=limit {
        let host = Ipv4Addr::new(127, 0, 0, 1 + (index % 2) as u8);
        let client = UdpSocket::bind(loopback(host)).unwrap();
        client.send_to(&datagram, listener.local_addr()).unwrap();
        clients.push(client);
        let session = listener.accept(&signals, Duration::ZERO).unwrap();
        assert_eq!(session.is_some(), index < limit);
        sessions.extend(session);
    }
    assert_eq!(listener.stray_datagrams(), 1);
    assert!(matches!(
        listener.refusal(),
        Some(ClientRefusal::Full { .. })
    ));
    sessions.pop();
    let last = clients.last().unwrap();
    last.send_to(&datagram, listener.local_addr()).unwrap();
    let session = listener.accept(&signals, PATIENCE).unwrap().unwrap();
    assert_eq!(session.peer, last.local_addr().unwrap());
}

#[test]
fn listeners_whom_nobody_comes_to_say_so() {
    for is_cancelled in [false, true] {
        let signals = Signals::default();
        signals.cancel.store(is_cancelled, Ordering::Relaxed);
        let (mut tcp, mut udp) = (
            tcp_listener(Ipv4Addr::LOCALHOST),
            udp_listener(Ipv4Addr::LOCALHOST),
        );
        let listeners: [&mut dyn Listen; 2] = [&mut tcp, &mut udp];
        for listener in listeners {
            let taken = listener.accept(&signals, Duration::from_millis(10));
            assert_eq!(taken.is_err(), is_cancelled);
            assert!(taken.is_ok_and(|taken| taken.is_none()) || is_cancelled);
        }
    }
}
