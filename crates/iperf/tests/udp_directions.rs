//! UDP streams from server to client over loopback, with both ends from this crate or a plain socket as the
//! client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_iperf::udp::{Listener, connect};
use nicpoll_iperf::wire::{ClientHeader, DatagramHeader, Dialect, Directions, ServerReport};
use nicpoll_iperf::{Amount, ClientConfig, End, Listen, ListenerConfig, Streams};
use nicpoll_model::Rate;
use nicpoll_testkit::assert_has;
use nicpoll_traffic::Signals;

mod common;
use common::{PATIENCE, RECEIVE_BUFFER_BYTES, accepted, datagram, roomy, udp_client};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PAYLOAD_BYTES: usize = 200;

fn listener_config(ip: IpAddr) -> ListenerConfig {
    ListenerConfig::udp(roomy(ip, RECEIVE_BUFFER_BYTES))
}

/// A server that may send to this host's addresses of `ip`'s family.
fn allowing(ip: IpAddr) -> Listener {
    let mut config = listener_config(ip);
    config.allow = vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()];
    Listener::bind(&config).unwrap()
}

fn client_config(peer: SocketAddr, directions: Directions) -> ClientConfig {
    let amount = Amount::Bytes(100 * PAYLOAD_BYTES as u64);
    let mut config = ClientConfig::udp(peer, PAYLOAD_BYTES, amount);
    config.stream.directions = directions;
    config.stream.rate = Rate::packets_per_second(2_000);
    config.stream.buffer_bytes = Some(RECEIVE_BUFFER_BYTES);
    config
}

/// Datagrams that one end counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    received: Option<u64>,
    sent: Option<u64>,
}

const ALL: Counted = Counted {
    received: Some(100),
    sent: Some(100),
};

/// Runs all streams except one over a separate socket.
fn run(streams: Streams, signals: &Signals) -> Counted {
    thread::scope(|scope| {
        let sending = streams
            .outgoing
            .map(|outgoing| scope.spawn(|| outgoing(signals, &mut ()).unwrap().whole.datagrams));
        let received = streams.incoming.map(|incoming| {
            let report = incoming(signals, &mut ()).unwrap();
            assert_eq!((report.end, report.receipt().lost), (Some(End::Closed), 0));
            assert_eq!(report.receipt().expected, report.whole.datagrams);
            report.whole.datagrams
        });
        Counted {
            received,
            sent: sending.map(|sending| sending.join().unwrap()),
        }
    })
}

#[test]
fn what_one_end_sends_over_the_socket_the_other_receives() {
    for ip in [LOCALHOST, IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        for directions in [Directions::Reverse, Directions::FullDuplex] {
            let mut listener = allowing(ip);
            let signals = Signals::default();
            let config = client_config(listener.local_addr(), directions);
            let (client, server) = thread::scope(|scope| {
                let serving = scope.spawn(|| run(accepted(&mut listener, &signals), &signals));
                let client = run(connect(&config).unwrap(), &signals);
                (client, serving.join().unwrap())
            });
            if directions == Directions::FullDuplex {
                assert_eq!((client, server), (ALL, ALL), "{ip}");
            } else {
                assert_eq!((client.received, client.sent), (Some(100), None), "{ip}");
                assert_eq!((server.received, server.sent), (None, Some(100)), "{ip}");
            }
        }
    }
}

/// The addresses of the two hosts, both on loopback.
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

#[test]
fn the_server_sends_back_to_where_the_client_came_from() {
    for (dialect, is_at_once) in [
        (Dialect::V2_1, true),
        (Dialect::V2_1, false),
        (Dialect::V2_0_2, true),
        (Dialect::V2_0_2, false),
        (Dialect::V2_0_8, true),
    ] {
        let signals = Signals::default();
        let mut server = allowing(SERVER);
        let mut config = listener_config(CLIENT);
        config.of_server = Some(server.local_addr());
        let mut back = Listener::bind(&config).unwrap();
        let port = back.local_addr().port();
        let directions = Directions::Dual { port, is_at_once };
        let mut config = client_config(server.local_addr(), directions);
        config.bind = Some(SocketAddr::new(CLIENT, 0));
        config.stream.dialect = dialect;
        thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let mut streams = accepted(&mut server, &signals);
                let way_back = streams.back.take().unwrap();
                assert_eq!(way_back.is_at_once, is_at_once);
                // The header of 2.0 states the rate in bits.
                let rate_bps = way_back.rate.unwrap().bits_of(8 * PAYLOAD_BYTES as u64);
                assert_eq!(rate_bps, 3_200_000, "{dialect:?}");
                let forward = run(streams, &signals);
                let (ends, outgoing) = (way_back.connect)(&signals).unwrap();
                assert_eq!((ends.local.ip(), ends.peer), (SERVER, back_address(port)));
                (forward, outgoing(&signals, &mut ()).unwrap())
            });
            let forward = run(connect(&config).unwrap(), &signals);
            let received = run(accepted(&mut back, &signals), &signals).received;
            let (at_server, sent_back) = serving.join().unwrap();
            assert_eq!((forward.sent, at_server.received), (Some(100), Some(100)));
            assert_eq!((received, sent_back.whole.datagrams), (Some(100), 100));
            // The client answered the server's FIN.
            let told = sent_back.server_report.unwrap();
            assert_eq!((told.lost, told.datagrams), (0, 100));
        });
    }
}

fn back_address(port: u16) -> SocketAddr {
    SocketAddr::new(CLIENT, port)
}

/// A client with a plain socket.
fn plain(server: &Listener) -> UdpSocket {
    udp_client(server.local_addr(), Duration::from_millis(100))
}

fn header(directions: Directions, amount: Amount, rate_bps: u64) -> ClientHeader {
    let mut header = ClientHeader::for_udp(5001, amount, rate_bps);
    header.ask_for(directions);
    header
}

/// Sends a datagram with this request.
fn send(client: &UdpSocket, asked: &ClientHeader, id: i64) {
    client.send(&datagram(id, PAYLOAD_BYTES, asked)).unwrap();
}

#[test]
fn a_client_that_is_not_allowed_gets_no_byte_of_data() {
    let back = UdpSocket::bind((LOCALHOST, 0)).unwrap();
    back.set_nonblocking(true).unwrap();
    let port = back.local_addr().unwrap().port();
    for (directions, is_served) in [
        (Directions::Reverse, false),
        (Directions::FullDuplex, true),
        (
            Directions::Dual {
                port,
                is_at_once: true,
            },
            true,
        ),
        (
            Directions::Dual {
                port,
                is_at_once: false,
            },
            true,
        ),
    ] {
        // Allowing others is not enough.
        let mut config = listener_config(LOCALHOST);
        config.allow = vec!["127.0.0.2".parse().unwrap(), "::/0".parse().unwrap()];
        let mut server = Listener::bind(&config).unwrap();
        let client = plain(&server);
        let signals = Signals::default();
        let asked = header(directions, Amount::Time(Duration::from_secs(1)), 1 << 30);
        for id in [1, 2, -3] {
            send(&client, &asked, id);
        }
        let accepted = server.accept(&signals, Duration::ZERO).unwrap();
        assert_eq!(server.not_allowed(), Some(client.local_addr().unwrap()));
        assert_eq!(accepted.is_some(), is_served, "{directions:?}");
        if let Some(accepted) = accepted {
            let streams = (accepted.open)(&signals).unwrap();
            assert!(streams.outgoing.is_none() && streams.back.is_none());
            let report = streams.incoming.unwrap()(&signals, &mut ()).unwrap();
            assert_eq!(report.whole.datagrams, 2);
        }
        // Only the answer to the FIN comes, no longer than what was sent.
        let mut got = 0;
        while let Ok(length) = client.recv(&mut [0; 2048]) {
            assert_eq!(length, ServerReport::BYTES);
            got += length;
        }
        assert!(got <= 3 * PAYLOAD_BYTES, "{directions:?}: {got}");
        assert!(back.recv(&mut [0; 8]).is_err(), "{directions:?}");
    }
}

#[test]
fn a_server_keeps_to_its_own_time_and_to_lengths_that_there_are() {
    for (buffer_bytes, length) in [(u32::MAX, 65_507), (1, 16), (0, 1470)] {
        let mut config = listener_config(LOCALHOST);
        config.allow = vec!["127.0.0.1/32".parse().unwrap()];
        config.stream.time_max = Duration::from_millis(50);
        let mut server = Listener::bind(&config).unwrap();
        let client = plain(&server);
        let signals = Signals::default();
        // Over UDP, a rate of 0 means the original's default, not unlimited.
        let mut asked = header(
            Directions::Reverse,
            Amount::Time(Duration::from_secs(21_474_836)),
            0,
        );
        asked.buffer_bytes = buffer_bytes;
        send(&client, &asked, 1);
        let outgoing = accepted(&mut server, &signals).outgoing.unwrap();
        let report = outgoing(&signals, &mut ()).unwrap();
        assert!(
            report.whole.bytes <= 1 + 65_507 + (1 << 20) / 8,
            "{report:?}"
        );
        let mut buffer = vec![0; 70_000];
        assert_eq!(client.recv(&mut buffer).unwrap(), length);
        // As in 2.1.8: no client header, filler in its place.
        let filler = &b"6789"[..(length - 16).min(4)];
        assert_eq!(&buffer[16..16 + filler.len()], filler);
        assert_eq!(DatagramHeader::parse(&buffer[..length]).unwrap().id, 1);
    }
}

#[test]
fn a_client_that_goes_away_is_sent_no_more() {
    let mut server = allowing(LOCALHOST);
    let client = plain(&server);
    let signals = Signals::default();
    let asked = header(
        Directions::Reverse,
        Amount::Time(Duration::from_secs(21_474_836)),
        1 << 20,
    );
    send(&client, &asked, 1);
    let accepted = server.accept(&signals, PATIENCE).unwrap().unwrap();
    let outgoing = (accepted.open)(&signals).unwrap().outgoing.unwrap();
    drop(client);
    let error = outgoing(&signals, &mut ()).unwrap_err();
    assert_has(&error, "closed its port after");
}

#[test]
fn a_client_takes_datagrams_of_its_server_only() {
    let mut config = listener_config(LOCALHOST);
    config.of_server = Some(SocketAddr::new(SERVER, 1));
    let mut back = Listener::bind(&config).unwrap();
    let stranger = plain(&back);
    let asked = header(
        Directions::Forward,
        Amount::Time(Duration::from_millis(10)),
        0,
    );
    send(&stranger, &asked, 1);
    let signals = Signals::default();
    assert!(back.accept(&signals, PATIENCE / 50).unwrap().is_none());
    assert_eq!(back.stray_datagrams(), 1);
}

#[test]
fn client_and_server_on_one_host_need_two_ports() {
    let server = allowing(LOCALHOST);
    let mut config = listener_config(Ipv4Addr::UNSPECIFIED.into());
    config.bind.set_port(server.local_addr().port());
    config.of_server = Some(server.local_addr());
    let error = Listener::bind(&config).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("-L"), "{error}");
}

#[test]
fn a_client_asks_until_it_gets_data_and_not_for_ever() {
    let silent = UdpSocket::bind((LOCALHOST, 0)).unwrap();
    silent.set_nonblocking(true).unwrap();
    let config = client_config(silent.local_addr().unwrap(), Directions::Reverse);
    let signals = Signals::default();
    let begun = Instant::now();
    let incoming = connect(&config).unwrap().incoming.unwrap();
    let error = incoming(&signals, &mut ()).unwrap_err();
    assert!(error.to_string().contains("no data came from"), "{error}");
    assert!(error.to_string().contains("--allow"), "{error}");
    assert!(begun.elapsed() < PATIENCE);
    // The same datagram is repeated.
    let mut payload = [0; PAYLOAD_BYTES];
    let mut requests = 0;
    while let Ok(length) = silent.recv(&mut payload) {
        requests += 1;
        assert_eq!(DatagramHeader::parse(&payload[..length]).unwrap().id, 1);
        let asked = ClientHeader::parse_udp(&payload[..length]).unwrap();
        assert_eq!(asked.directions(), Ok(Directions::Reverse));
        assert_eq!(asked.buffer_bytes, PAYLOAD_BYTES as u32);
    }
    assert_eq!(requests, 100);
}
