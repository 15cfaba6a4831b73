//! A UDP server against hand-written datagrams. They are queued before the server runs, so nothing depends on
//! time.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use nicpoll_iperf::udp::Server;
use nicpoll_iperf::wire::{self, ClientHeader};
use nicpoll_iperf::{Amount, End, Error, Total};
use nicpoll_testkit::golden_cases;
use nicpoll_traffic::Signals;

mod common;
use common::{LOOPBACK, faults, server_config};

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

    /// Runs the server on the queued datagrams. Returns its report and its answers.
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

/// What the server counts and answers, without times.
fn told((report, answers): (Total, Vec<Vec<u8>>)) -> String {
    let stated = answers.first().map(|answer| {
        assert!(answers.iter().all(|other| other == answer));
        assert_eq!(answer.len(), wire::ServerReport::BYTES);
        let stated = wire::ServerReport::parse(answer, wire::Dialect::V2_1).unwrap();
        [
            stated.bytes,
            stated.datagrams,
            stated.lost,
            stated.out_of_order,
        ]
    });
    let (whole, receipt) = (report.whole, report.receipt());
    let [lost, late, again, foreign] = faults(&report);
    format!(
        "{} datagrams, {} bytes, {} expected, {lost} lost, {late} late, {again} again, {foreign} foreign\n\
         {} of {} FINs answered, the first one with {stated:?}; {:?}",
        whole.datagrams, whole.bytes, receipt.expected, report.fin_answers, report.fins, report.end
    )
}

/// A case lists words such as `2:100`, a datagram with id 2 and 100 bytes, or `-2..-7:20`, several of 20 bytes.
#[test]
fn datagrams_are_counted_and_answered_as_recorded() {
    golden_cases("tests/udp_server/cases.txt", |_, text| {
        let bench = Bench::new();
        for word in text.split_whitespace() {
            let (ids, length) = word.split_once(':').unwrap();
            let (first, last) = ids.split_once("..").unwrap_or((ids, ids));
            let [first, last]: [i64; 2] = [first, last].map(|id| id.parse().unwrap());
            let count = first.abs_diff(last) as i64;
            for step in 0..=count {
                bench.send(
                    first + step * (last - first).signum(),
                    length.parse().unwrap(),
                );
            }
        }
        told(bench.run())
    });
}

#[test]
fn what_is_not_of_the_session_is_counted_apart() {
    let bench = Bench::new();
    let stranger = UdpSocket::bind(LOOPBACK).unwrap();
    stranger.connect(bench.server.local_addr()).unwrap();
    // A FIN of an earlier session, an empty datagram, a short one, and one with an impossible id.
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
