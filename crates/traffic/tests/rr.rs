//! Request and response over loopback.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use nicpoll_model::Side;
use nicpoll_testkit::assert_has;
use nicpoll_traffic::Signals;
use nicpoll_traffic::rr::{ClientReport, RrClientConfig, RrWorkload, run_client};
use nicpoll_traffic::workload::{
    Books, EndBooks, EndTerms, IDLE_TIMEOUT, PreparedEnd, Workload, WorkloadError,
};
use nicpoll_wire::rr::{Message, MessageKind};

const LOOPBACK: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// An end of the workload with the shortest messages; the receiver's port is free.
fn prepared(side: Side, receiver: SocketAddr) -> Box<dyn PreparedEnd> {
    let end = EndTerms {
        side,
        receiver,
        duration: Duration::from_millis(30),
        link_delay: Duration::ZERO,
        receiver_ahead_ns: 0,
    };
    RrWorkload::default().prepare(&end).unwrap()
}

fn ask(config: &RrClientConfig, signals: &Signals) -> Result<ClientReport, WorkloadError> {
    run_client(config, signals, &mut |_| {})
}

/// A plain socket with a receive timeout.
fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(LOOPBACK).unwrap();
    let patience = Some(Duration::from_secs(10));
    socket.set_read_timeout(patience).unwrap();
    socket
}

fn request(sequence: u64) -> Message {
    Message::request(sequence, 7)
}

/// Runs a responder at a free port while `ask` uses its address.
fn answering<T>(
    ask: impl FnOnce(SocketAddr, &Signals) -> T,
) -> (T, Result<EndBooks, WorkloadError>) {
    let address = socket().local_addr().unwrap();
    let signals = Signals::default();
    thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let signals = &signals;
        let answering = scope.spawn(move || {
            let server = prepared(Side::Receiver, address);
            ready.send(()).unwrap();
            server.run(signals)
        });
        is_ready.recv().unwrap();
        let asked = ask(address, signals);
        signals.sender_done.store(true, Ordering::Release);
        (asked, answering.join().unwrap())
    })
}

#[test]
fn both_ends_count_the_same_transactions() {
    let (asked, answered) =
        answering(|address, signals| prepared(Side::Sender, address).run(signals).unwrap());
    let (round_trip, books) = (
        asked.round_trip.unwrap(),
        Books::of(asked, answered.unwrap()),
    );
    // What was requested and what was answered, each once.
    let (offered, delivered) = books.packets.unwrap();
    assert!(offered > 0);
    assert_eq!((offered, books.undrained), (delivered, None));
    assert_eq!(offered, 2 * round_trip.transactions);
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
        // After the timeout, but before the wait for late answers ends.
        thread::sleep(Duration::from_millis(150));
        for _ in 0..2 {
            server
                .send_to(&asked.response().to_bytes(), client)
                .unwrap();
        }
        asking.join().unwrap().unwrap()
    });
    let requests = asked.requests;
    assert_eq!((requests.sent, requests.answered, requests.lost), (1, 0, 1));
    assert_eq!(requests.late, 1);
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
    assert_eq!(asked.requests.foreign, 4);
    assert_eq!(asked.round_trip().unwrap().transactions, 1);
    assert_eq!((asked.requests.lost, asked.requests.late), (0, 0));
}

#[test]
fn what_is_queued_when_the_requesters_are_done_is_answered_and_noise_is_not() {
    let (client, address) = (socket(), socket().local_addr().unwrap());
    let server = prepared(Side::Receiver, address);
    let response = request(1).response().to_bytes();
    let requests = [1, 3].map(|sequence| request(sequence).to_bytes());
    for datagram in [&b"noise"[..], &response, &requests[0], &requests[1]] {
        client.send_to(datagram, address).unwrap();
    }
    let signals = Signals::default();
    signals.sender_done.store(true, Ordering::Release);
    let books = server.run(&signals).unwrap();
    assert_eq!(
        (books.received.packets, books.sent.packets),
        (Some(2), Some(2))
    );
    for sequence in [1, 3] {
        let mut datagram = [0; 128];
        assert_eq!(client.recv(&mut datagram).unwrap(), Message::BYTES);
        let answer = Message::parse(&datagram[..Message::BYTES]).unwrap();
        assert_eq!(answer, request(sequence).response());
    }
}

#[test]
fn a_server_that_nobody_asks_ends_and_says_so() {
    let address = socket().local_addr().unwrap();
    let began = std::time::Instant::now();
    let books = prepared(Side::Receiver, address).run(&Signals::default());
    let undrained = books.unwrap().undrained.unwrap();
    assert_has(&undrained, "heard nothing for too long");
    assert!(began.elapsed() >= IDLE_TIMEOUT);
}

#[test]
fn cancel_ends_both_ends() {
    let silent = socket();
    let config = RrClientConfig::udp(silent.local_addr().unwrap(), Duration::from_secs(60));
    let (asked, answered) = answering(|_, signals| {
        thread::scope(|scope| {
            let asking = scope.spawn(|| ask(&config, signals));
            thread::sleep(Duration::from_millis(50));
            assert!(!asking.is_finished());
            signals.cancel.store(true, Ordering::Relaxed);
            asking.join().unwrap().unwrap_err()
        })
    });
    assert!(matches!(asked, WorkloadError::Cancelled), "{asked}");
    let answered = answered.unwrap_err();
    assert!(matches!(answered, WorkloadError::Cancelled), "{answered}");
}
