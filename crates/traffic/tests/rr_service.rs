//! The request/response service and its clients over loopback: both protocols, both loops, and what strangers
//! may do.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Protocol;
use nicpoll_model::Rate;
use nicpoll_traffic::Signals;
use nicpoll_traffic::rr::{
    ClientReport, Pacing, RrClientConfig, Served, Service, ServiceConfig, run_client,
};
use nicpoll_wire::rr::Message;
use rustix::net::{AddressFamily, SocketType};

const LOOPBACK: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
const PATIENCE: Duration = Duration::from_secs(20);
fn open(requests_per_second: u64) -> Pacing {
    Pacing::Open {
        rate: Rate::packets_per_second(requests_per_second).unwrap(),
    }
}

/// Runs `work` with a service, then ends the service.
fn with_service<T>(work: impl FnOnce(SocketAddr, &Served) -> T) -> (T, Served) {
    let config = ServiceConfig {
        bind: LOOPBACK.into(),
        duration: None,
    };
    let service = Service::bind(&config).unwrap();
    let signals = Signals::default();
    let served = Served::default();
    let done = thread::scope(|scope| {
        let serving = scope.spawn(|| service.run(&signals, &served).unwrap());
        // Also when `work` fails, or the scope would wait for the service for ever.
        let finish = Finish(&signals);
        let done = work(service.local_addr(), &served);
        drop(finish);
        serving.join().unwrap();
        done
    });
    (done, served)
}

/// Ends the service when dropped.
struct Finish<'a>(&'a Signals);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finish.store(true, Ordering::Relaxed);
    }
}

fn config(peer: SocketAddr, protocol: Protocol, pacing: Pacing) -> RrClientConfig {
    RrClientConfig {
        protocol,
        pacing,
        duration: None,
        requests: NonZeroU64::new(200),
        timeout: Duration::from_secs(5),
        ..RrClientConfig::udp(peer, Duration::ZERO)
    }
}

fn ask(config: &RrClientConfig) -> ClientReport {
    run_client(config, &Signals::default(), &mut |_| {}).unwrap()
}

fn closed(depth: u32) -> Pacing {
    Pacing::Closed {
        depth: NonZeroU32::new(depth).unwrap(),
    }
}

/// Connects from one of this host's addresses, 127.0.0.`host`.
fn connect_from(host: u8, peer: SocketAddr) -> TcpStream {
    let family = AddressFamily::INET;
    let fd = rustix::net::socket(family, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&fd, &SocketAddr::from(([127, 0, 0, host], 0))).unwrap();
    rustix::net::connect(&fd, &peer).unwrap();
    let stream = TcpStream::from(fd);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends one request over a connection; returns whether an answer came.
fn is_answered(mut stream: &TcpStream) -> bool {
    let written = stream.write_all(&Message::request(1, 1).to_bytes());
    let read = stream.read_exact(&mut [0; Message::BYTES]);
    written.and(read).is_ok()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "waited too long until {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn both_ends_count_the_same_over_both_protocols_in_both_loops() {
    for protocol in [Protocol::Udp, Protocol::Tcp] {
        for pacing in [closed(1), closed(16), open(2000)] {
            let (report, served) = with_service(|peer, _| {
                let mut config = config(peer, protocol, pacing);
                config.request_bytes = 700;
                config.response_bytes = 300;
                ask(&config)
            });
            let case = format!("{protocol:?} {pacing:?} {report:?} {served:?}");
            assert_eq!(report.requests.sent, 200, "{case}");
            assert_eq!(
                report.latencies.samples() + report.requests.lost,
                200,
                "{case}"
            );
            assert_eq!(
                (report.requests.lost, report.requests.foreign),
                (0, 0),
                "{case}"
            );
            let (asked, other) = match protocol {
                Protocol::Udp => (served.udp(), served.tcp()),
                Protocol::Tcp => (served.tcp(), served.udp()),
            };
            assert_eq!((asked.requests_received, asked.responses_sent), (200, 200));
            assert_eq!((asked.bytes_received, asked.bytes_sent), (140_000, 60_000));
            assert_eq!(other.requests_received, 0, "{case}");
            let scheduled = (pacing == open(2000)).then_some(200);
            assert_eq!(report.scheduled_requests, scheduled, "{case}");
            assert_eq!(report.send_lags.is_some(), pacing == open(2000));
        }
    }
}

#[test]
fn long_messages_pass_both_ways_at_once() {
    let (report, served) = with_service(|peer, _| {
        let mut config = config(peer, Protocol::Tcp, closed(32));
        config.request_bytes = 1 << 20;
        config.response_bytes = 1 << 20;
        config.requests = NonZeroU64::new(64);
        ask(&config)
    });
    assert_eq!(report.latencies.samples(), 64, "{report:?}");
    assert_eq!(served.tcp().bytes_sent, 64 << 20);
}

#[test]
fn intervals_add_up_to_the_whole() {
    let mut told = Vec::new();
    let (report, _) = with_service(|peer, _| {
        let config = RrClientConfig {
            interval: Some(Duration::from_millis(20)),
            ..config(peer, Protocol::Udp, open(2000))
        };
        run_client(&config, &Signals::default(), &mut |interval| {
            told.push(interval);
        })
        .unwrap()
    });
    assert!(told.len() >= 5, "{told:?}");
    for pair in told.windows(2) {
        assert_eq!(pair[0].end_seconds, pair[1].start_seconds);
    }
    let sum = |of: fn(&_) -> u64| told.iter().map(of).sum::<u64>();
    assert_eq!(sum(|one| one.requests_sent), report.requests.sent);
    assert_eq!(sum(|one| one.transactions), report.latencies.samples());
    assert_eq!(sum(|one| one.latency.samples), report.latencies.samples());
    assert_eq!(sum(|one| one.lost_requests), report.requests.lost);
}

/// Answers nothing for 150 ms after the first request, then everything.
fn answer_after_a_stall(server: &UdpSocket, requests: usize) {
    let mut buffer = [0; 128];
    for number in 0..requests {
        let (length, client) = server.recv_from(&mut buffer).unwrap();
        if number == 0 {
            thread::sleep(Duration::from_millis(150));
        }
        let request = Message::parse(&buffer[..length]).unwrap();
        let response = request.response().to_bytes();
        server.send_to(&response, client).unwrap();
    }
}

#[test]
fn a_stall_shows_in_the_latency_of_all_that_were_scheduled_meanwhile() {
    let server = UdpSocket::bind(LOOPBACK).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let peer = server.local_addr().unwrap();
    let pacing = open(100);
    let report = thread::scope(|scope| {
        scope.spawn(|| answer_after_a_stall(&server, 20));
        let mut config = config(peer, Protocol::Udp, pacing);
        config.requests = NonZeroU64::new(20);
        ask(&config)
    });
    assert_eq!(report.latencies.samples(), 20);
    // Those of the first 100 ms waited 50 ms or longer: 11 of 20. One at a time it would be one.
    let median = report.latencies.quantile_ns(0.5);
    assert!(median >= 49_900_000, "{median}");
}

#[test]
fn an_open_loop_that_nobody_answers_counts_every_request() {
    let silent = UdpSocket::bind(LOOPBACK).unwrap();
    let peer = silent.local_addr().unwrap();
    let mut config = config(peer, Protocol::Udp, open(2000));
    config.duration = Some(Duration::from_millis(100));
    config.requests = None;
    config.timeout = Duration::from_millis(50);
    let report = ask(&config);
    let scheduled = report.scheduled_requests.unwrap();
    assert_eq!(scheduled, 200);
    assert!(report.requests.sent > 0 && report.requests.sent <= scheduled);
    assert_eq!(report.requests.lost, report.requests.sent);
    assert_eq!(report.latencies.samples(), 0);
}

#[test]
fn a_connection_that_ends_early_is_told_and_nothing_is_left_open() {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let peer = listener.local_addr().unwrap();
    let report = thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; Message::BYTES];
            stream.read_exact(&mut head).unwrap();
            let request = Message::parse(&head).unwrap();
            stream.write_all(&request.response().to_bytes()).unwrap();
        });
        ask(&config(peer, Protocol::Tcp, closed(1)))
    });
    assert!(report.broken.is_some());
    assert_eq!(report.latencies.samples(), 1);
    assert_eq!(report.requests.sent, 1 + report.requests.lost);
}

#[test]
fn a_datagram_is_never_answered_with_more_than_it_had() {
    let client = UdpSocket::bind(LOOPBACK).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let ((), served) = with_service(|peer, _| {
        let greedy = Message {
            response_bytes: 65,
            ..Message::request(1, 0)
        };
        let response = Message::request(2, 0).response();
        for datagram in [&greedy.to_bytes()[..], &response.to_bytes(), b"noise", b""] {
            client.send_to(datagram, peer).unwrap();
        }
        let good = Message::request(3, 0);
        client.send_to(&good.to_bytes(), peer).unwrap();
        let mut buffer = [0; 256];
        // Only the last one is answered.
        let length = client.recv(&mut buffer).unwrap();
        assert_eq!(Message::parse(&buffer[..length]), Ok(good.response()));
    });
    assert_eq!(served.udp().foreign_messages, 4);
    assert!(served.udp().bytes_sent <= served.udp().bytes_received);
}

#[test]
fn noise_on_a_connection_ends_it_and_no_other() {
    let ((), served) = with_service(|peer, _| {
        let mut noisy = TcpStream::connect(peer).unwrap();
        noisy.set_read_timeout(Some(PATIENCE)).unwrap();
        noisy.write_all(&[b'x'; Message::BYTES]).unwrap();
        assert_eq!(noisy.read(&mut [0; 16]).unwrap(), 0);
        let report = ask(&config(peer, Protocol::Tcp, closed(1)));
        assert_eq!(report.latencies.samples(), 200);
    });
    assert_eq!(served.tcp().foreign_messages, 1);
    assert_eq!(served.connections(), 2);
}

/// A slow client keeps its connection only while nobody else needs one.
#[test]
fn whoever_asks_next_to_nothing_makes_room_for_those_who_are_refused() {
    with_service(|peer, served| {
        // No address may have all connections.
        let mut hosts = (1..=3).cycle();
        let mut connect = || connect_from(hosts.next().unwrap(), peer);
        let rare: Vec<TcpStream> = (0..127).map(|_| connect()).collect();
        assert!(rare.iter().all(is_answered));
        let busy = connect();
        let begun = Instant::now();
        let mut refused = 0;
        // Each try is refused, or replaces a silent connection.
        let newcomer = loop {
            assert!(begun.elapsed() < PATIENCE && is_answered(&busy));
            let newcomer = connect();
            if is_answered(&newcomer) {
                break newcomer;
            }
            refused += 1;
            thread::sleep(Duration::from_millis(100));
        };
        assert!(refused > 0 && is_answered(&busy) && is_answered(&newcomer));
        // One made room, and no more: it ends when it looks next.
        let is_open = |stream: &&TcpStream| {
            stream.set_nonblocking(true).unwrap();
            let seen = stream.peek(&mut [0; 1]);
            seen.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        };
        let closed = || 127 - rare.iter().filter(is_open).count();
        wait_until("the replaced connection has ended", || closed() > 0);
        assert_eq!(closed(), 1, "{refused} refused");
        assert_eq!(served.refused_connections(), refused as u64);
    });
}

#[test]
fn connections_are_bounded_and_silent_ones_do_not_keep_the_service() {
    let ((silent, time), served) = with_service(|peer, served| {
        let begun = Instant::now();
        let silent: Vec<TcpStream> = (0..140)
            .map(|number| connect_from(number % 2 + 1, peer))
            .collect();
        wait_until("all were taken or refused", || {
            served.connections() + served.refused_connections() == 140
        });
        (silent, begun.elapsed())
    });
    assert_eq!(silent.len(), 140);
    // On a slow host, the first ones may have been silent long enough to make room for the last.
    let is_exact = time < Duration::from_secs(1);
    assert!(served.refused_connections() == 12 || !is_exact && served.refused_connections() > 0);
    assert!(served.connections() == 128 || !is_exact && served.connections() > 128);
}

/// Whatever one address requests, others are served.
#[test]
fn one_address_has_its_share_of_the_connections_and_leaves_the_others() {
    with_service(|peer, served| {
        let begun = Instant::now();
        let own: Vec<TcpStream> = (0..140).map(|_| connect_from(1, peer)).collect();
        wait_until("all were taken or refused", || {
            served.connections() + served.refused_connections() == 140
        });
        // On a slow host, the first ones may have been silent long enough to make room for the last.
        let is_exact = begun.elapsed() < Duration::from_secs(1);
        assert!(
            served.refused_connections() == 28 || !is_exact && served.refused_connections() > 0
        );
        assert!(served.connections() == 112 || !is_exact && served.connections() > 112);
        let refusal = served.refusal().unwrap().to_string();
        let expected = "127.0.0.1 is refused: it has 112 connections already";
        assert!(refusal.starts_with(expected), "{refusal}");
        assert!(is_answered(&connect_from(2, peer)));
        drop(own);
        // A returned slot is available again.
        wait_until("there is room again", || {
            is_answered(&connect_from(1, peer))
        });
    });
}
