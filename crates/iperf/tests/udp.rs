//! UDP streams over loopback, client to server.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use nicpoll_iperf::udp::{Server, run_client};
use nicpoll_iperf::wire::{self, ClientHeader, DatagramHeader};
use nicpoll_iperf::{Amount, ClientConfig, End, Error, Total};
use nicpoll_testkit::{assert_has, needs};
use nicpoll_traffic::Signals;

mod common;
use common::{LOOPBACK, datagram, faults, roomy};
mod relay;
use relay::{Direction, Relay};

/// Room for all that a client sends in [`DURATION`], even if the server does not run meanwhile.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;
const DURATION: Duration = Duration::from_millis(30);

fn server() -> Server {
    Server::bind(&roomy(Ipv4Addr::LOCALHOST, RECEIVE_BUFFER_BYTES)).unwrap()
}

fn client_config(peer: SocketAddr, payload_bytes: usize) -> ClientConfig {
    ClientConfig::udp(peer, payload_bytes, Amount::Time(DURATION))
}

/// A stream of 64-byte datagrams through a relay; `is_passed` returns how many copies it passes on.
fn through_relay(is_passed: impl FnMut(Direction, &[u8]) -> u32 + Send) -> (Total, Total) {
    let server = server();
    let relay = Relay::to(server.local_addr());
    let config = client_config(relay.address(), 64);
    let [to_relay, to_server] = [(); 2].map(|()| Signals::default());
    thread::scope(|scope| {
        let receiving = scope.spawn(|| server.run(&to_server).unwrap());
        let passing = scope.spawn(|| relay.run(&to_relay, is_passed));
        let sent = run_client(&config, &to_relay, &mut ()).unwrap();
        to_relay.sender_done.store(true, Ordering::Release);
        passing.join().unwrap();
        to_server.sender_done.store(true, Ordering::Release);
        (sent, receiving.join().unwrap())
    })
}

fn is_fin(datagram: &[u8]) -> bool {
    DatagramHeader::parse(datagram).unwrap().id < 0
}

#[test]
fn both_ends_count_the_same_datagrams() {
    needs!(ReceiveBuffer);
    for payload_bytes in [16, 18, 64, 1470] {
        let server = server();
        let config = client_config(server.local_addr(), payload_bytes);
        let signals = Signals::default();
        let (sent, received) = thread::scope(|scope| {
            let receiving = scope.spawn(|| server.run(&signals).unwrap());
            let sent = run_client(&config, &signals, &mut ()).unwrap();
            signals.sender_done.store(true, Ordering::Release);
            (sent, receiving.join().unwrap())
        });
        assert!(sent.whole.datagrams > 0);
        assert_eq!(received.whole.datagrams, sent.whole.datagrams);
        assert_eq!(received.whole.bytes, sent.whole.bytes);
        // The first datagram has the whole header.
        let rest = (sent.whole.datagrams - 1) * payload_bytes as u64;
        assert_eq!(sent.whole.bytes, rest + payload_bytes.max(76) as u64);
        assert_eq!(faults(&received), [0; 4]);
        assert_eq!(received.fins, sent.fins);
        assert!((1..=received.fin_answers).contains(&sent.fin_answers));
        assert_eq!(received.end, Some(End::SenderDone));
        assert!(received.receipt().jitter_seconds.is_some());
        let report = sent.server_report.unwrap();
        assert_eq!(report.datagrams, received.receipt().expected);
        assert_eq!(report.datagrams, sent.whole.datagrams);
        assert_eq!(report.bytes, sent.whole.bytes);
        assert_eq!((report.lost, report.out_of_order), (0, 0));
    }
}

#[test]
fn a_lost_fin_is_sent_again_and_changes_no_figure() {
    needs!(ReceiveBuffer);
    let mut fins = Vec::new();
    let (sent, received) = through_relay(|_, datagram| {
        let is_client_fin = datagram.len() == 64 && is_fin(datagram);
        if is_client_fin {
            fins.push(DatagramHeader::parse(datagram).unwrap().id);
        }
        u32::from(!is_client_fin || fins.len() > 3)
    });
    let first = -(sent.whole.datagrams as i64 + 1);
    assert_eq!(fins[..4], [first; 4]);
    assert_eq!(sent.fins, fins.len() as u64);
    assert_eq!(received.fins, sent.fins - 3);
    assert_eq!(received.whole.datagrams, sent.whole.datagrams);
    let report = sent.server_report.unwrap();
    assert_eq!((received.receipt().lost, report.lost), (0, 0));
    assert_eq!(report.datagrams, sent.whole.datagrams);
    assert_eq!(received.receipt().expected, sent.whole.datagrams);
}

#[test]
fn a_fin_that_comes_again_is_counted_by_neither_end() {
    needs!(ReceiveBuffer);
    let (sent, received) = through_relay(|_, datagram| {
        let is_client_fin = datagram.len() == 64 && is_fin(datagram);
        if is_client_fin { 3 } else { 1 }
    });
    let report = sent.server_report.unwrap();
    assert_eq!(faults(&received), [0; 4]);
    assert_eq!(report.datagrams, sent.whole.datagrams);
    assert_eq!(report.bytes, received.whole.bytes);
    assert_eq!(received.receipt().expected, sent.whole.datagrams);
}

#[test]
fn a_lost_answer_is_asked_for_again() {
    needs!(ReceiveBuffer);
    let mut answers = 0;
    let (sent, received) = through_relay(|direction, _| {
        answers += u32::from(direction == Direction::ToClient);
        u32::from(direction == Direction::ToServer || answers > 2)
    });
    assert!(sent.fins >= 3);
    assert_eq!(received.fins, sent.fins);
    assert!(received.fin_answers >= sent.fin_answers + 2);
    assert_eq!(received.receipt().lost, 0);
    let report = sent.server_report.unwrap();
    assert_eq!(report.datagrams, sent.whole.datagrams);
}

#[test]
fn lost_and_repeated_datagrams_are_counted_as_such() {
    needs!(ReceiveBuffer);
    let (sent, received) = through_relay(|direction, datagram| {
        let id = match direction {
            Direction::ToServer => DatagramHeader::parse(datagram).unwrap().id,
            Direction::ToClient => 0,
        };
        match id {
            2 => 0,
            3 => 2,
            _ => 1,
        }
    });
    assert!(sent.whole.datagrams >= 3);
    assert_eq!(received.whole.datagrams, sent.whole.datagrams);
    let [lost, _, again, _] = faults(&received);
    assert_eq!((lost, again), (1, 1));
    assert_eq!(sent.server_report.unwrap().lost, 1);
}

#[test]
fn cancel_ends_a_client_that_sends() {
    let silent = UdpSocket::bind(LOOPBACK).unwrap();
    let mut config = client_config(silent.local_addr().unwrap(), 64);
    config.stream.amount = Amount::Time(Duration::from_secs(60));
    let signals = Signals::default();
    let error = thread::scope(|scope| {
        let sending = scope.spawn(|| run_client(&config, &signals, &mut ()));
        thread::sleep(Duration::from_millis(20));
        signals.cancel.store(true, Ordering::Relaxed);
        sending.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, Error::Cancelled), "{error}");
}

#[test]
fn a_client_without_answer_goes_on_asking_until_it_is_cancelled() {
    let silent = UdpSocket::bind(LOOPBACK).unwrap();
    silent
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut config = client_config(silent.local_addr().unwrap(), 64);
    config.stream.amount = Amount::Time(Duration::ZERO);
    let signals = Signals::default();
    let error = thread::scope(|scope| {
        let sending = scope.spawn(|| run_client(&config, &signals, &mut ()));
        for _ in 0..5 {
            let mut datagram = [0; 64];
            assert_eq!(silent.recv(&mut datagram).unwrap(), 64);
            assert_eq!(DatagramHeader::parse(&datagram).unwrap().id, -1);
        }
        signals.cancel.store(true, Ordering::Relaxed);
        sending.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, Error::Cancelled), "{error}");
}

#[test]
fn answers_of_other_dialects_end_the_stream_too() {
    let header_ack = nicpoll_iperf::wire::HeaderAck {
        version: wire::Version::V2_1_8,
    };
    let server = UdpSocket::bind(LOOPBACK).unwrap();
    let patience = Some(Duration::from_secs(10));
    server.set_read_timeout(patience).unwrap();
    let mut config = client_config(server.local_addr().unwrap(), 64);
    config.stream.amount = Amount::Time(Duration::ZERO);
    let sent = thread::scope(|scope| {
        let sending = scope.spawn(|| run_client(&config, &Signals::default(), &mut ()));
        let mut datagram = [0; 64];
        let (_, client) = server.recv_from(&mut datagram).unwrap();
        server.send_to(&header_ack.to_bytes(), client).unwrap();
        server.send_to(&datagram, client).unwrap();
        sending.join().unwrap().unwrap()
    });
    // The header acknowledgement does not answer a FIN; the echo does, without a report.
    assert_eq!(sent.fin_answers, 1);
    assert_eq!(sent.server_report, None);
    assert_eq!(sent.whole.datagrams, 0);
}

#[test]
fn a_closed_port_refuses_sends_without_using_up_ids() {
    let taken = UdpSocket::bind(LOOPBACK).unwrap();
    // Connected elsewhere, it receives nothing from the client, and no other test gets the port.
    taken.connect(taken.local_addr().unwrap()).unwrap();
    let mut config = client_config(taken.local_addr().unwrap(), 64);
    config.stream.amount = Amount::Time(Duration::from_millis(20));
    let signals = Signals::default();
    thread::scope(|scope| {
        let sending = scope.spawn(|| run_client(&config, &signals, &mut ()));
        thread::sleep(Duration::from_millis(60));
        signals.cancel.store(true, Ordering::Relaxed);
        let error = sending.join().unwrap().unwrap_err();
        // Refused sends are no failure: the client got as far as its FINs.
        assert!(matches!(error, Error::Cancelled), "{error}");
    });
}

#[test]
fn a_payload_without_room_for_the_headers_is_refused() {
    for payload_bytes in [0, 15, 65_508] {
        let config = client_config(LOOPBACK.into(), payload_bytes);
        let error = run_client(&config, &Signals::default(), &mut ()).unwrap_err();
        assert_has(&error, "bytes cannot carry an iperf stream");
    }
}

#[test]
fn a_whole_datagram_of_the_greatest_length_arrives() {
    let server = server();
    let sender = UdpSocket::bind(LOOPBACK).unwrap();
    let client = ClientHeader::for_udp(5001, Amount::Time(DURATION), 0);
    let payload = datagram(1, 65_507, &client);
    sender.send_to(&payload, server.local_addr()).unwrap();
    let signals = Signals::default();
    signals.sender_done.store(true, Ordering::Release);
    assert_eq!(server.run(&signals).unwrap().whole.bytes, 65_507);
}
