//! TCP streams over loopback, with a plain socket as the peer where it must misbehave.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use nicpoll_iperf::tcp::{Server, run_client};
use nicpoll_iperf::wire::ClientHeader;
use nicpoll_iperf::{Amount, ClientConfig, End, Error, Total};
use nicpoll_testkit::assert_has;
use nicpoll_traffic::Signals;

mod common;
use common::{LOOPBACK, roomy, server_config};

/// Long enough that only an outside stop explains an early end.
const LONG: Duration = Duration::from_secs(60);

fn server() -> Server {
    Server::bind(&roomy(Ipv4Addr::LOCALHOST, 100_000)).unwrap()
}

fn client_config(peer: SocketAddr, duration: Duration) -> ClientConfig {
    let mut config = ClientConfig::tcp(peer, Amount::Time(duration));
    config.stream.buffer_bytes = Some(100_000);
    config.connect_timeout = Duration::from_secs(2);
    config
}

/// Runs a server against a plain socket, which `play` uses and then closes.
fn serve(play: impl FnOnce(&mut TcpStream)) -> Result<Total, Error> {
    let server = server();
    let mut stream = TcpStream::connect(server.local_addr()).unwrap();
    thread::scope(|scope| {
        let running = scope.spawn(|| server.run(&Signals::default()));
        play(&mut stream);
        drop(stream);
        running.join().unwrap()
    })
}

/// Sets `cancel` while `run` runs; `run` must not have ended by itself.
fn cancelled<T: Send>(run: impl FnOnce(&Signals) -> T + Send) -> T {
    let signals = Signals::default();
    thread::scope(|scope| {
        let running = scope.spawn(|| run(&signals));
        thread::sleep(Duration::from_millis(50));
        assert!(!running.is_finished());
        signals.cancel.store(true, Ordering::Relaxed);
        running.join().unwrap()
    })
}

#[test]
fn both_ends_count_the_same_bytes() {
    let server = server();
    let config = client_config(server.local_addr(), Duration::from_millis(50));
    let (sent, received) = thread::scope(|scope| {
        let receiving = scope.spawn(|| server.run(&Signals::default()).unwrap());
        let sent = run_client(&config, &Signals::default(), &mut ()).unwrap();
        (sent, receiving.join().unwrap())
    });
    assert_eq!(received.whole.bytes, sent.whole.bytes);
    assert!(sent.whole.bytes > 60);
    assert_eq!(received.end, Some(End::Closed));
    assert!(sent.close_seconds.unwrap() >= sent.seconds);
    assert_eq!(sent.buffer.asked_bytes, Some(100_000));
    assert_eq!(sent.buffer.granted_bytes, 200_000);
    assert_eq!(received.buffer.granted_bytes, 200_000);
}

#[test]
fn every_byte_of_a_stream_without_header_counts() {
    let report = serve(|stream| stream.write_all(&[b'0'; 2004]).unwrap()).unwrap();
    assert_eq!(report.whole.bytes, 2004);
    assert_eq!(report.end, Some(End::Closed));
}

#[test]
fn a_header_in_pieces_is_read_and_acknowledged() {
    let mut bytes = [0; 60];
    ClientHeader::for_tcp(5001, Amount::Bytes(60)).write_to(&mut bytes);
    let mut ack = Vec::new();
    let report = serve(|stream| {
        for piece in [&bytes[..2], &bytes[2..4], &bytes[4..59], &bytes[59..]] {
            stream.write_all(piece).unwrap();
            thread::sleep(Duration::from_millis(2));
        }
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_to_end(&mut ack).unwrap();
    })
    .unwrap();
    assert_eq!(report.whole.bytes, 60);
    assert_eq!(ack.len(), 28);
}

#[test]
fn a_stream_that_ends_in_its_header_is_counted_as_far_as_it_came() {
    let mut bytes = [0; 60];
    ClientHeader::for_tcp(5001, Amount::Bytes(60)).write_to(&mut bytes);
    for length in [0, 3, 4, 59] {
        let report = serve(|stream| stream.write_all(&bytes[..length]).unwrap()).unwrap();
        assert_eq!(report.whole.bytes, length as u64);
        assert_eq!(report.end, Some(End::Closed));
    }
}

#[test]
fn a_header_that_cannot_be_is_refused() {
    let error = serve(|stream| stream.write_all(&[0x40, 1, 0, 2]).unwrap()).unwrap_err();
    assert!(error.to_string().contains("has no valid header"), "{error}");
}

#[test]
fn a_client_that_wants_the_other_direction_is_refused() {
    let mut reverse = [0; 60];
    ClientHeader::for_tcp(5001, Amount::Time(Duration::from_millis(10))).write_to(&mut reverse);
    (reverse[0], reverse[32]) = (0x44, 0x04);
    let mut dual = [0; 24];
    (dual[0], dual[11]) = (0x80, 1);
    for header in [&reverse[..], &dual] {
        let error = serve(|stream| stream.write_all(header).unwrap()).unwrap_err();
        assert_has(&error, "asks for traffic towards itself");
    }
}

#[test]
fn a_server_whose_sender_is_done_does_not_wait_for_the_connection_to_close() {
    let server = server();
    let signals = Signals::default();
    let mut stream = TcpStream::connect(server.local_addr()).unwrap();
    stream.write_all(&[b'0'; 1000]).unwrap();
    signals.sender_done.store(true, Ordering::Release);
    let report = server.run(&signals).unwrap();
    assert_eq!(report.whole.bytes, 1000);
    assert_eq!(report.end, Some(End::SenderDone));
}

#[test]
fn a_server_without_client_says_so() {
    let mut config = server_config(Ipv4Addr::LOCALHOST);
    config.idle_timeout = Duration::from_millis(30);
    let server = Server::bind(&config).unwrap();
    config.bind = server.local_addr();
    let taken = Server::bind(&config).unwrap_err();
    assert!(matches!(taken, Error::Bind { .. }), "{taken}");
    let error = server.run(&Signals::default()).unwrap_err();
    assert_has(&error, "no client connected to");
}

#[test]
fn a_silent_client_is_given_up() {
    let mut config = server_config(Ipv4Addr::LOCALHOST);
    config.idle_timeout = Duration::from_millis(50);
    let server = Server::bind(&config).unwrap();
    let mut stream = TcpStream::connect(server.local_addr()).unwrap();
    stream.write_all(b"0123").unwrap();
    let error = server.run(&Signals::default()).unwrap_err();
    assert_has(&error, "fell silent after 4 bytes");
}

#[test]
fn a_client_without_server_says_so() {
    // A port that is bound, so no other test gets it, but not listening.
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let taken = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let unused = taken.local_addr().unwrap();
    let error = run_client(&client_config(unused, LONG), &Signals::default(), &mut ()).unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
}

#[test]
fn a_client_whose_server_goes_says_so() {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let config = client_config(listener.local_addr().unwrap(), LONG);
    thread::scope(|scope| {
        let sending = scope.spawn(|| run_client(&config, &Signals::default(), &mut ()));
        drop(listener.accept().unwrap());
        let error = sending.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("broke after"), "{error}");
    });
}

#[test]
fn cancel_ends_a_client_whose_server_does_not_read() {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let config = client_config(listener.local_addr().unwrap(), LONG);
    let error = cancelled(|signals| run_client(&config, signals, &mut ())).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
}

#[test]
fn cancel_ends_a_client_that_waits_for_the_server_to_close() {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let config = client_config(listener.local_addr().unwrap(), Duration::ZERO);
    let error = cancelled(|signals| run_client(&config, signals, &mut ())).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
}

#[test]
fn cancel_ends_a_server_with_and_without_client() {
    let waiting = server();
    let error = cancelled(|signals| waiting.run(signals)).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
    let serving = server();
    let _silent = TcpStream::connect(serving.local_addr()).unwrap();
    let error = cancelled(|signals| serving.run(signals)).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
}
