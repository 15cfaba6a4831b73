//! A UDP server against datagrams written by hand. They are queued before the server runs, so that
//! nothing depends on time.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use nicpoll_iperf::udp::Server;
use nicpoll_iperf::wire::{self, ClientHeader};
use nicpoll_iperf::{Amount, End, Error, Total};
use nicpoll_traffic::Signals;

mod common;
use common::{LOOPBACK, server_config};

struct Bench {
    server: Server,
    client: UdpSocket,
}

impl Bench {
    fn new() -> Self {
        Self::with_idle_timeout(Duration::from_secs(5))
    }

    fn with_idle_timeout(idle_timeout: Duration) -> Self {
        let mut config = server_config(Ipv4Addr::LOCALHOST);
        config.idle_timeout = idle_timeout;
        let server = Server::bind(&config).unwrap();
        let client = UdpSocket::bind(LOOPBACK).unwrap();
        client.connect(server.local_addr()).unwrap();
        client.set_nonblocking(true).unwrap();
        Bench { server, client }
    }

    fn send(&self, id: i64, length: usize) {
        self.client.send(&datagram(id, length)).unwrap();
    }

    /// Runs the server on what is queued. Returns its report and its answers.
    fn run(self) -> (Total, Vec<Vec<u8>>) {
        let signals = Signals::default();
        signals.sender_done.store(true, Ordering::Release);
        let report = self.server.run(&signals).unwrap();
        let mut answers = Vec::new();
        let mut buffer = [0; 2048];
        while let Ok(length) = self.client.recv(&mut buffer) {
            answers.push(buffer[..length].to_vec());
        }
        (report, answers)
    }
}

fn datagram(id: i64, length: usize) -> Vec<u8> {
    let client = ClientHeader::for_udp(5001, Amount::Time(Duration::from_millis(10)), 0);
    common::datagram(id, length, &client)
}

#[test]
fn data_is_counted_and_the_fin_answered() {
    let bench = Bench::new();
    [1, 2, 5, 4, 4]
        .into_iter()
        .for_each(|id| bench.send(id, 100));
    bench.send(-7, 100);
    let (report, answers) = bench.run();
    assert_eq!((report.whole.datagrams, report.whole.bytes), (5, 500));
    // 3 and 6 are missing; 4 came late and then again.
    assert_eq!(
        (report.receipt().lost, report.receipt().out_of_order),
        (2, 1)
    );
    assert_eq!(report.receipt().duplicates, 1);
    assert_eq!((report.fins, report.fin_answers), (1, 1));
    assert_eq!(report.end, Some(End::SenderDone));
    let [answer] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(answer.len(), wire::ServerReport::BYTES);
    let stated = wire::ServerReport::parse(answer, wire::Dialect::V2_1).unwrap();
    assert_eq!((stated.bytes, stated.datagrams), (500, 6));
    assert_eq!((stated.lost, stated.out_of_order), (2, 1));
}

#[test]
fn datagrams_that_end_within_the_flag_word_are_counted() {
    let bench = Bench::new();
    // As 2.1.8 sends them with -l 18: the first one has room for the whole header.
    bench.send(1, 76);
    (2..11).for_each(|id| bench.send(id, 18));
    bench.send(-11, 18);
    let (report, answers) = bench.run();
    assert_eq!((report.whole.datagrams, report.whole.bytes), (10, 238));
    assert_eq!((report.receipt().lost, report.receipt().expected), (0, 10));
    assert_eq!(report.fins, 1);
    let stated = wire::ServerReport::parse(&answers[0], wire::Dialect::V2_1).unwrap();
    assert_eq!((stated.lost, stated.datagrams, stated.bytes), (0, 10, 238));
}

#[test]
fn answers_never_outweigh_what_the_client_sent() {
    let bench = Bench::new();
    bench.send(1, 20);
    // 20 + 5 x 20 = 120 bytes: not yet worth an answer of 128.
    (2..7).for_each(|id| bench.send(-id, 20));
    let (report, answers) = bench.run();
    assert_eq!((report.fins, report.fin_answers), (5, 0));
    assert!(answers.is_empty());

    let bench = Bench::new();
    bench.send(1, 20);
    (2..14).for_each(|id| bench.send(-id, 20));
    let (report, answers) = bench.run();
    // 20 + 6 x 20 = 140 pays the first answer, 260 the second.
    assert_eq!((report.fins, report.fin_answers), (12, 2));
    assert_eq!(answers.len(), 2);
}

#[test]
fn nine_fins_are_answered_and_no_more() {
    let bench = Bench::new();
    bench.send(1, 200);
    (2..22).for_each(|id| bench.send(-id, 200));
    let (report, answers) = bench.run();
    assert_eq!((report.fins, report.fin_answers), (20, 9));
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(answers.len(), 9);
}

#[test]
fn what_is_not_of_the_session_is_counted_apart() {
    let bench = Bench::new();
    let stranger = UdpSocket::bind(LOOPBACK).unwrap();
    stranger.connect(bench.server.local_addr()).unwrap();
    // A FIN of an earlier session, nothing at all, too short, and an id that cannot be.
    stranger.send(&datagram(-9, 100)).unwrap();
    stranger.send(&[]).unwrap();
    stranger.send(&[0; 11]).unwrap();
    stranger.send(&datagram(1 << 60, 100)).unwrap();
    bench.send(1, 100);
    stranger.send(&datagram(2, 100)).unwrap();
    stranger.send(&datagram(-3, 100)).unwrap();
    bench.client.send(b"short").unwrap();
    bench.send(-2, 100);
    let (report, answers) = bench.run();
    assert_eq!((report.whole.datagrams, report.receipt().lost), (1, 0));
    assert_eq!(report.fins, 1);
    assert_eq!(report.foreign_datagrams, 7);
    assert_eq!(answers.len(), 1);
    stranger.set_nonblocking(true).unwrap();
    assert!(stranger.recv(&mut [0; 8]).is_err());
}

#[test]
fn id_zero_of_old_clients_is_data_without_a_place_in_the_sequence() {
    let bench = Bench::new();
    (0..3).for_each(|id| bench.send(id, 100));
    bench.send(-3, 100);
    let (report, _) = bench.run();
    assert_eq!((report.whole.datagrams, report.receipt().lost), (3, 0));
    assert_eq!(
        (report.receipt().out_of_order, report.receipt().duplicates),
        (0, 0)
    );
}

#[test]
fn a_server_that_nobody_came_to_has_counted_nothing() {
    let bench = Bench::with_idle_timeout(Duration::from_millis(30));
    let report = bench.server.run(&Signals::default()).unwrap();
    assert_eq!(report.end, Some(End::Idle));
    assert_eq!((report.whole.datagrams, report.receipt().lost), (0, 0));
    assert_eq!(report.receipt().jitter_seconds, None);
}

#[test]
fn a_client_that_goes_without_fin_is_waited_for_and_then_given_up() {
    let bench = Bench::with_idle_timeout(Duration::from_millis(50));
    bench.send(1, 100);
    let report = bench.server.run(&Signals::default()).unwrap();
    assert_eq!((report.whole.datagrams, report.end), (1, Some(End::Idle)));
}

#[test]
fn silence_after_the_fin_ends_the_session() {
    let bench = Bench::new();
    bench.send(1, 100);
    bench.send(-2, 100);
    let report = bench.server.run(&Signals::default()).unwrap();
    assert_eq!((report.whole.datagrams, report.end), (1, Some(End::Closed)));
}

#[test]
fn cancel_ends_a_server_in_session_and_before() {
    for ids in [&[][..], &[1, 2]] {
        let bench = Bench::new();
        ids.iter().for_each(|&id| bench.send(id, 100));
        let signals = Signals::default();
        let error = thread::scope(|scope| {
            let running = scope.spawn(|| bench.server.run(&signals));
            thread::sleep(Duration::from_millis(30));
            assert!(!running.is_finished());
            signals.cancel.store(true, Ordering::Relaxed);
            running.join().unwrap().unwrap_err()
        });
        assert!(matches!(error, Error::Cancelled), "{error}");
    }
}
