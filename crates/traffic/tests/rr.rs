//! Request and response over loopback.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use nicpoll_traffic::Signals;
use nicpoll_traffic::rr::{
    ClientError, ClientReport, End, RrClientConfig, Server, ServerConfig, ServerError, run_client,
};
use nicpoll_wire::rr::{Message, MessageKind};

const LOOPBACK: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

fn server(idle_timeout: Duration) -> Server {
    let config = ServerConfig {
        bind: LOOPBACK.into(),
        receive_buffer_bytes: None,
        idle_timeout,
    };
    Server::bind(&config).unwrap()
}

fn ask(config: &RrClientConfig, signals: &Signals) -> Result<ClientReport, ClientError> {
    run_client(config, signals, &mut |_| {})
}

/// A plain socket, whose receives end also when what they wait for does not come.
fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(LOOPBACK).unwrap();
    let patience = Some(Duration::from_secs(10));
    socket.set_read_timeout(patience).unwrap();
    socket
}

fn request(sequence: u64) -> Message {
    Message::request(sequence, 7)
}

#[test]
fn both_ends_count_the_same_transactions() {
    let server = server(Duration::from_secs(5));
    let config = RrClientConfig::udp(server.local_addr(), Duration::from_millis(30));
    let signals = Signals::default();
    let (asked, answered) = thread::scope(|scope| {
        let answering = scope.spawn(|| server.run(&signals).unwrap());
        let asked = ask(&config, &signals).unwrap();
        signals.sender_done.store(true, Ordering::Release);
        (asked, answering.join().unwrap())
    });
    assert!(asked.requests_sent > 0);
    assert_eq!(answered.requests_received, asked.requests_sent);
    assert_eq!(answered.responses_sent, asked.responses_received);
    assert_eq!(answered.foreign_datagrams + asked.foreign_messages, 0);
    assert_eq!(answered.end, End::SenderDone);
    let round_trip = asked.round_trip().unwrap();
    assert_eq!(
        round_trip.transactions + asked.late_responses,
        asked.responses_received
    );
    let quantiles = [
        round_trip.quantiles.min_ns,
        round_trip.quantiles.p50_ns,
        round_trip.quantiles.p99_ns,
        round_trip.quantiles.p999_ns,
        round_trip.quantiles.max_ns,
    ];
    assert!(quantiles.is_sorted(), "{quantiles:?}");
    assert!(round_trip.quantiles.min_ns > Some(0));
}

#[test]
fn a_late_answer_is_known_as_late_and_a_repeated_one_as_foreign() {
    let server = socket();
    let config = RrClientConfig::udp(server.local_addr().unwrap(), Duration::ZERO);
    let asked = thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&config, &Signals::default()));
        let mut datagram = [0; Message::BYTES];
        let (_, client) = server.recv_from(&mut datagram).unwrap();
        let asked = Message::parse(&datagram).unwrap();
        assert_eq!((asked.kind, asked.sequence), (MessageKind::Request, 1));
        // Later than the time-out, sooner than the end of the wait for late ones.
        thread::sleep(Duration::from_millis(150));
        for _ in 0..2 {
            server
                .send_to(&asked.response().to_bytes(), client)
                .unwrap();
        }
        asking.join().unwrap().unwrap()
    });
    assert_eq!((asked.requests_sent, asked.timeouts), (1, 1));
    assert_eq!((asked.responses_received, asked.late_responses), (1, 1));
    assert!(asked.round_trip().is_none());
}

#[test]
fn what_answers_nothing_is_not_taken_for_an_answer() {
    let server = socket();
    let config = RrClientConfig::udp(server.local_addr().unwrap(), Duration::ZERO);
    let asked = thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&config, &Signals::default()));
        let mut datagram = [0; Message::BYTES];
        let (_, client) = server.recv_from(&mut datagram).unwrap();
        let mut longer = request(1).response().to_bytes().to_vec();
        longer.push(0);
        for foreign in [
            &b"short"[..],
            &longer,
            &datagram,
            &request(2).response().to_bytes(),
        ] {
            server.send_to(foreign, client).unwrap();
        }
        server
            .send_to(&request(1).response().to_bytes(), client)
            .unwrap();
        asking.join().unwrap().unwrap()
    });
    assert_eq!(asked.foreign_messages, 4);
    assert_eq!(asked.round_trip().unwrap().transactions, 1);
    assert_eq!((asked.timeouts, asked.late_responses), (0, 0));
}

#[test]
fn a_server_answers_its_first_requester_and_nobody_else() {
    let server = server(Duration::from_secs(5));
    let address = server.local_addr();
    let [client, stranger] = [socket(), socket()];
    stranger.send_to(b"noise", address).unwrap();
    let response = request(1).response().to_bytes();
    stranger.send_to(&response, address).unwrap();
    client.send_to(&request(1).to_bytes(), address).unwrap();
    stranger.send_to(&request(2).to_bytes(), address).unwrap();
    client.send_to(&request(3).to_bytes(), address).unwrap();

    let signals = Signals::default();
    signals.sender_done.store(true, Ordering::Release);
    let report = server.run(&signals).unwrap();
    assert_eq!(report.peer, Some(client.local_addr().unwrap()));
    assert_eq!((report.requests_received, report.responses_sent), (2, 2));
    assert_eq!(report.foreign_datagrams, 3);
    for sequence in [1, 3] {
        let mut datagram = [0; 128];
        assert_eq!(client.recv(&mut datagram).unwrap(), Message::BYTES);
        let answer = Message::parse(&datagram[..Message::BYTES]).unwrap();
        assert_eq!(answer, request(sequence).response());
    }
    stranger.set_nonblocking(true).unwrap();
    assert!(stranger.recv(&mut [0; 128]).is_err());
}

#[test]
fn a_server_that_nobody_asks_ends() {
    let report = server(Duration::from_millis(30))
        .run(&Signals::default())
        .unwrap();
    assert_eq!((report.peer, report.end), (None, End::Idle));
}

#[test]
fn cancel_ends_both_ends() {
    let silent = UdpSocket::bind(LOOPBACK).unwrap();
    let config = RrClientConfig::udp(silent.local_addr().unwrap(), Duration::from_secs(60));
    let server = server(Duration::from_secs(60));
    let signals = Signals::default();
    thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&config, &signals));
        let answering = scope.spawn(|| server.run(&signals));
        thread::sleep(Duration::from_millis(50));
        assert!(!asking.is_finished() && !answering.is_finished());
        signals.cancel.store(true, Ordering::Relaxed);
        let asked = asking.join().unwrap().unwrap_err();
        assert!(matches!(asked, ClientError::Cancelled), "{asked}");
        let answered = answering.join().unwrap().unwrap_err();
        assert!(matches!(answered, ServerError::Cancelled), "{answered}");
    });
}
