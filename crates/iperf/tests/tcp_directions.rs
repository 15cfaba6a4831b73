//! TCP streams from server to client over loopback, with both ends from this crate or one of them a plain
//! socket.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_iperf::tcp::{Listener, connect};
use nicpoll_iperf::wire::{ClientHeader, Directions};
use nicpoll_iperf::{
    Amount, CLIENTS_PER_ADDRESS, ClientConfig, End, Error, Listen, ListenerConfig, Streams,
};
use nicpoll_testkit::assert_has;
use nicpoll_traffic::{ClientRefusal, Signals};

mod common;
use common::{PATIENCE, accepted, server_config};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn listener_config(ip: IpAddr) -> ListenerConfig {
    ListenerConfig::tcp(server_config(ip))
}

fn listener() -> Listener {
    Listener::bind(&listener_config(LOCALHOST)).unwrap()
}

/// What one end counted of its streams.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    received: Option<u64>,
    sent: Option<u64>,
}

/// Runs all streams except one over a separate connection.
fn run(streams: Streams, signals: &Signals) -> Counted {
    thread::scope(|scope| {
        let sending = streams
            .outgoing
            .map(|outgoing| scope.spawn(|| outgoing(signals, &mut ()).unwrap().whole.bytes));
        let received = streams.incoming.map(|incoming| {
            let report = incoming(signals, &mut ()).unwrap();
            assert_eq!(report.end, Some(End::Closed));
            report.whole.bytes
        });
        Counted {
            received,
            sent: sending.map(|sending| sending.join().unwrap()),
        }
    })
}

/// Runs a test over one connection; returns the counts of client and server.
fn over_one_socket(ip: IpAddr, directions: Directions, amount: Amount) -> [Counted; 2] {
    let mut listener = Listener::bind(&listener_config(ip)).unwrap();
    let signals = Signals::default();
    let mut config = ClientConfig::tcp(listener.local_addr(), amount);
    config.stream.directions = directions;
    thread::scope(|scope| {
        let serving = scope.spawn(|| run(accepted(&mut listener, &signals), &signals));
        let client = run(connect(&config, &signals).unwrap(), &signals);
        [client, serving.join().unwrap()]
    })
}

#[test]
fn the_server_sends_what_the_client_receives() {
    for ip in [LOCALHOST, IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        for amount in [
            Amount::Bytes(0),
            Amount::Bytes(59),
            Amount::Bytes(300_001),
            Amount::Time(Duration::from_millis(50)),
        ] {
            let [client, server] = over_one_socket(ip, Directions::Reverse, amount);
            assert_eq!((client.sent, server.received), (None, None));
            assert_eq!(client.received, server.sent, "{amount:?}");
            match amount {
                Amount::Bytes(bytes) => assert_eq!(client.received, Some(bytes)),
                Amount::Time(_) => assert!(client.received > Some(0)),
            }
        }
    }
}

#[test]
fn both_send_over_one_socket() {
    for amount in [
        Amount::Bytes(300_001),
        Amount::Time(Duration::from_millis(50)),
    ] {
        let [client, server] = over_one_socket(LOCALHOST, Directions::FullDuplex, amount);
        assert_eq!(client.received, server.sent, "{amount:?}");
        assert_eq!(client.sent, server.received, "{amount:?}");
        if let Amount::Bytes(bytes) = amount {
            assert_eq!((client.sent, client.received), (Some(bytes), Some(bytes)));
        }
    }
}

/// The configuration of a client's listener for streams from its server.
fn of_server(config: ListenerConfig, server: SocketAddr) -> ListenerConfig {
    ListenerConfig {
        of_server: Some(server),
        ..config
    }
}

/// The addresses of the two hosts, both on loopback.
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

#[test]
fn the_server_connects_back_to_where_the_client_came_from() {
    for is_at_once in [true, false] {
        let signals = Signals::default();
        // The server's address must be one of several.
        let mut server = Listener::bind(&listener_config(Ipv4Addr::UNSPECIFIED.into())).unwrap();
        let server_address = SocketAddr::new(SERVER, server.local_addr().port());
        let mut back = Listener::bind(&of_server(listener_config(CLIENT), server_address)).unwrap();
        let back_address = back.local_addr();
        let mut config = ClientConfig::tcp(server_address, Amount::Bytes(200_000));
        config.stream.directions = Directions::Dual {
            port: back_address.port(),
            is_at_once,
        };
        config.bind = Some(SocketAddr::new(CLIENT, 0));
        thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let mut streams = accepted(&mut server, &signals);
                let way_back = streams.back.take().unwrap();
                assert_eq!(way_back.is_at_once, is_at_once);
                let forward = run(streams, &signals);
                let (ends, outgoing) = (way_back.connect)(&signals).unwrap();
                assert_eq!((ends.local.ip(), ends.peer), (SERVER, back_address));
                (forward, outgoing(&signals, &mut ()).unwrap().whole.bytes)
            });
            let forward = run(connect(&config, &signals).unwrap(), &signals);
            let incoming = accepted(&mut back, &signals).incoming.unwrap();
            let report = incoming(&signals, &mut ()).unwrap();
            let (at_server, sent_back) = serving.join().unwrap();
            assert_eq!(forward.sent, at_server.received);
            assert_eq!((report.whole.bytes, sent_back), (200_000, 200_000));
        });
    }
}

#[test]
fn a_client_that_listens_late_is_reached() {
    let signals = Signals::default();
    let mut server = listener();
    // An address on which nobody else takes a port meanwhile.
    let reserved = TcpListener::bind((CLIENT, 0)).unwrap();
    let late = reserved.local_addr().unwrap();
    drop(reserved);
    let server_address = server.local_addr();
    let mut config = ClientConfig::tcp(server_address, Amount::Bytes(1000));
    config.stream.directions = Directions::Dual {
        port: late.port(),
        is_at_once: true,
    };
    config.bind = Some(SocketAddr::new(CLIENT, 0));
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut streams = accepted(&mut server, &signals);
            let way_back = streams.back.take().unwrap();
            scope.spawn(|| run(streams, &signals));
            (way_back.connect)(&signals).map(drop)
        });
        run(connect(&config, &signals).unwrap(), &signals);
        thread::sleep(Duration::from_millis(120));
        let mut late_config = listener_config(CLIENT);
        late_config.bind = late;
        let mut back = Listener::bind(&of_server(late_config, server_address)).unwrap();
        assert!(accepted(&mut back, &signals).incoming.is_some());
        serving.join().unwrap().unwrap();
    });
}

#[test]
fn a_client_takes_connections_of_its_server_only() {
    let signals = Signals::default();
    let server = SocketAddr::new(SERVER, 1);
    let mut back = Listener::bind(&of_server(listener_config(LOCALHOST), server)).unwrap();
    // Loopback picks 127.0.0.1 as the source address.
    let mut stranger = TcpStream::connect(back.local_addr()).unwrap();
    let patience = Duration::from_millis(50);
    assert!(back.accept(&signals, patience).unwrap().is_none());
    // It was not left waiting.
    stranger.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(stranger.read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn client_and_server_on_one_host_need_two_ports() {
    let server = listener();
    let mut config = listener_config(Ipv4Addr::UNSPECIFIED.into());
    config.bind.set_port(server.local_addr().port());
    let error = Listener::bind(&of_server(config.clone(), server.local_addr())).unwrap_err();
    assert!(error.to_string().contains("-L"), "{error}");
    // With the server elsewhere, the kernel refuses the address.
    let elsewhere = SocketAddr::from(([192, 0, 2, 1], config.bind.port()));
    let error = Listener::bind(&of_server(config, elsewhere)).unwrap_err();
    assert!(matches!(error, Error::Bind { .. }), "{error}");
}

fn header(directions: Directions, amount: Amount) -> ClientHeader {
    let mut header = ClientHeader::for_tcp(5001, amount);
    header.ask_for(directions);
    header
}

/// A client with a plain socket that sends this request.
fn ask(listener: &Listener, header: &ClientHeader) -> TcpStream {
    let mut bytes = [0; ClientHeader::BYTES];
    header.write_to(&mut bytes);
    let mut stream = TcpStream::connect(listener.local_addr()).unwrap();
    stream.write_all(&bytes).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn what_is_sent_is_filler_from_the_first_byte() {
    let mut listener = listener();
    let signals = Signals::default();
    let asked = header(Directions::Reverse, Amount::Bytes(25));
    let mut stream = ask(&listener, &asked);
    stream.shutdown(Shutdown::Write).unwrap();
    run(accepted(&mut listener, &signals), &signals);
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"0123456789012345678901234");
}

#[test]
fn a_server_keeps_to_its_own_time_whatever_is_asked_for() {
    let mut config = listener_config(LOCALHOST);
    config.stream.time_max = Duration::from_millis(30);
    let mut listener = Listener::bind(&config).unwrap();
    let signals = Signals::default();
    for amount in [
        Amount::Time(Duration::from_secs(21_474_836)),
        Amount::Bytes(1 << 30),
    ] {
        let mut asked = header(Directions::Reverse, amount);
        // The longest write, one per 100 ms: below the requested rate.
        asked.buffer_bytes = u32::MAX;
        if let Some(extension) = &mut asked.extension {
            extension.rate_bps = 80 << 20;
        }
        let mut stream = ask(&listener, &asked);
        let sent = thread::scope(|scope| {
            let serving = scope.spawn(|| run(accepted(&mut listener, &signals), &signals).sent);
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap();
            drop(stream);
            let sent = serving.join().unwrap();
            assert_eq!(sent, Some(got.len() as u64));
            sent
        });
        assert!(sent < Some(1 << 30), "{sent:?}");
    }
}

#[test]
fn a_client_that_resets_what_it_asked_for_has_ended_it() {
    let mut listener = listener();
    let signals = Signals::default();
    let back = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let directions = Directions::Dual {
        port: back.local_addr().unwrap().port(),
        is_at_once: true,
    };
    let asked = header(directions, Amount::Time(Duration::from_secs(60)));
    let _stream = ask(&listener, &asked);
    let way_back = accepted(&mut listener, &signals).back.unwrap();
    let sent = thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let (_, outgoing) = (way_back.connect)(&signals).unwrap();
            outgoing(&signals, &mut ()).unwrap()
        });
        let (mut stream, _) = back.accept().unwrap();
        stream.read_exact(&mut [0; 300_000]).unwrap();
        // As 2.0.9 to 2.0.13 end it: closing with data unread resets the connection.
        drop(stream);
        serving.join().unwrap()
    });
    assert!(sent.whole.bytes >= 300_000, "{sent:?}");
    assert!(sent.whole.end < 60.0, "{sent:?}");
}

#[test]
fn a_client_that_does_not_read_is_given_up() {
    let mut listener = listener();
    let signals = Signals::default();
    let asked = header(
        Directions::Reverse,
        Amount::Time(Duration::from_secs(21_474_836)),
    );
    let _silent = ask(&listener, &asked);
    let outgoing = accepted(&mut listener, &signals).outgoing.unwrap();
    let error = outgoing(&signals, &mut ()).unwrap_err();
    assert_has(&error, "has not taken a byte");
}

#[test]
fn a_client_whose_server_does_not_know_the_other_direction_gives_up() {
    let silent = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let mut config = ClientConfig::tcp(
        silent.local_addr().unwrap(),
        Amount::Time(Duration::from_millis(20)),
    );
    config.stream.directions = Directions::Reverse;
    let signals = Signals::default();
    let begun = Instant::now();
    let incoming = connect(&config, &signals).unwrap().incoming.unwrap();
    let error = incoming(&signals, &mut ()).unwrap_err();
    assert!(error.to_string().contains("fell silent"), "{error}");
    assert!(begun.elapsed() >= Duration::from_secs(2));
}

#[test]
fn a_port_that_cannot_be_is_refused() {
    let mut listener = listener();
    let signals = Signals::default();
    let dual = Directions::Dual {
        port: 1,
        is_at_once: true,
    };
    let mut asked = header(dual, Amount::Bytes(1));
    asked.port = 65_536;
    let _stream = ask(&listener, &asked);
    let accepted = listener.accept(&signals, PATIENCE).unwrap().unwrap();
    let error = (accepted.open)(&signals).err().unwrap();
    assert!(error.to_string().contains("its port 65536"), "{error}");
}

#[test]
fn streams_to_clients_are_counted_like_those_from_them() {
    let mut listener = listener();
    let signals = Signals::default();
    let asked = header(Directions::FullDuplex, Amount::Bytes(1));
    // Two streams each.
    let mut clients: Vec<_> = (0..CLIENTS_PER_ADDRESS / 2)
        .map(|_| {
            let stream = ask(&listener, &asked);
            (stream, accepted(&mut listener, &signals))
        })
        .collect();
    // The one beyond the limit gets an error.
    let mut late = ask(&listener, &asked);
    let now = Duration::ZERO;
    assert!(listener.accept(&signals, now).unwrap().is_none());
    assert!(matches!(
        listener.refusal(),
        Some(ClientRefusal::Share { .. })
    ));
    assert!(matches!(late.read(&mut [0; 8]), Ok(0) | Err(_)));
    // One stream less leaves room for one, not for two.
    clients[0].1.outgoing = None;
    let mut late = ask(&listener, &asked);
    let one = listener.accept(&signals, PATIENCE).unwrap().unwrap();
    let error = (one.open)(&signals).err().unwrap();
    assert_has(&error, "asks for a stream while all are");
    assert_eq!(late.read(&mut [0; 8]).unwrap(), 0);
}
