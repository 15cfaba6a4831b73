//! iperf 2.0.5 to 2.0.13 at the other end, imitated byte for byte.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use nicpoll_iperf::wire::Dialect;
use nicpoll_iperf::{Amount, ClientConfig, End, Listen, ListenerConfig, Total, tcp, udp};
use nicpoll_model::Rate;
use nicpoll_traffic::Signals;

mod common;
mod fake;
use common::{accepted, faults};
use fake::udp_client::{self, Client};
use fake::{ALL, Header, Report, V2_0_5, V2_0_8, V2_0_10, V2_0_12, V2_0_13, Version};

/// Datagrams per stream: few enough for any receive buffer.
const SENT: u32 = 20;

fn server_config() -> udp::ServerConfig {
    common::server_config(Ipv4Addr::LOCALHOST)
}

/// A client of an old version against our server.
fn serve(client: &Client) -> (Total, udp_client::Outcome) {
    let server = udp::Server::bind(&server_config()).unwrap();
    let address = server.local_addr();
    let signals = Signals::default();
    thread::scope(|scope| {
        let receiving = scope.spawn(|| server.run(&signals).unwrap());
        let outcome = client.run(address);
        signals.sender_done.store(true, Ordering::Release);
        (receiving.join().unwrap(), outcome)
    })
}

/// The client's report: lost, datagrams, bytes.
fn figures(outcome: &udp_client::Outcome) -> (u64, u64, u64) {
    let Some(report) = outcome.report else {
        panic!("no report where the client looks for it: {outcome:x?}");
    };
    // Jitter never reaches a second on loopback; a misread word would.
    assert_eq!(report.jitter.0, 0, "{report:?}");
    assert!(report.jitter.1 < 1_000_000 && report.elapsed.1 < 1_000_000);
    (report.lost, report.datagrams, report.bytes)
}

#[test]
fn a_stream_of_any_version_is_counted_whole_and_reported_where_it_looks() {
    for version in ALL {
        let (received, outcome) = serve(&Client::new(version, SENT));
        let counts = (received.whole.datagrams, received.receipt().expected);
        assert_eq!(counts, (20, 20), "{version:?}");
        assert_eq!(faults(&received), [0; 4], "{version:?}");
        assert_eq!((received.fins, received.fin_answers), (1, 1));
        assert_eq!(figures(&outcome), (0, 20, 20 * 1470), "{version:?}");
    }
}

#[test]
fn a_stream_without_client_header_is_counted_too() {
    for version in ALL {
        let client = Client {
            header: Header::LeftOut,
            ..Client::new(version, SENT)
        };
        let (received, outcome) = serve(&client);
        assert_eq!(received.receipt().expected, 20, "{version:?}");
        assert_eq!(
            (received.receipt().lost, received.fins),
            (0, 1),
            "{version:?}"
        );
        // 2.0.10 to 2.0.12 then look like 2.0.5, and expect the report elsewhere.
        if version != V2_0_10 && version != V2_0_12 {
            assert_eq!(figures(&outcome), (0, 20, 20 * 1470), "{version:?}");
        }
    }
}

#[test]
fn loss_order_and_duplicates_are_told_in_every_dialect() {
    for version in ALL {
        let client = Client {
            // 3 is missing, 6 comes late, 7 twice; 9 and 10 at the end are missing, too.
            ids: vec![0, 1, 2, 4, 5, 7, 6, 7, 8],
            ..Client::new(version, 11)
        };
        let (received, outcome) = serve(&client);
        assert_eq!(faults(&received), [3, 1, 1, 0], "{version:?}");
        assert_eq!(received.receipt().expected, 11, "{version:?}");
        assert_eq!(figures(&outcome), (3, 11, 9 * 1470), "{version:?}");
        assert_eq!(outcome.report.unwrap().out_of_order, 2);
    }
}

#[test]
fn a_lost_first_datagram_counts_as_lost() {
    for version in ALL {
        let client = Client {
            ids: (1..SENT).collect(),
            ..Client::new(version, SENT)
        };
        let (received, outcome) = serve(&client);
        assert_eq!(
            (received.receipt().lost, received.receipt().expected),
            (1, 20),
            "{version:?}"
        );
        assert_eq!(figures(&outcome), (1, 20, 19 * 1470), "{version:?}");
    }
}

#[test]
fn fins_are_answered_for_as_long_as_old_clients_repeat_them() {
    for version in [V2_0_5, V2_0_12, V2_0_13] {
        let client = Client {
            fins_lost: 1,
            answers_lost: 2,
            ..Client::new(version, SENT)
        };
        let (received, outcome) = serve(&client);
        // More of them when the host is busy.
        assert!(outcome.fins_sent >= 4, "{version:?}");
        let arrived = u64::from(outcome.fins_sent - 1);
        let (fins, acks) = (received.fins, received.fin_answers);
        assert_eq!((fins, acks), (arrived, arrived), "{version:?}");
        // 2.0.13's second FIN states one more, as if a datagram had been lost.
        let lost = u64::from(version == V2_0_13);
        assert_eq!(
            (received.receipt().lost, received.receipt().expected),
            (lost as i64, 20 + lost)
        );
        assert_eq!(
            figures(&outcome),
            (lost, 20 + lost, 20 * 1470),
            "{version:?}"
        );
    }
}

#[test]
fn a_session_of_an_old_client_ends_by_itself() {
    let server = udp::Server::bind(&server_config()).unwrap();
    let address = server.local_addr();
    let received = thread::scope(|scope| {
        let receiving = scope.spawn(|| server.run(&Signals::default()).unwrap());
        Client::new(V2_0_5, SENT).run(address);
        receiving.join().unwrap()
    });
    assert_eq!(
        (received.end, received.receipt().lost),
        (Some(End::Closed), 0)
    );
}

#[test]
fn short_datagrams_never_buy_a_longer_answer() {
    for (version, payload_bytes, sent) in [(V2_0_5, 12, 4), (V2_0_5, 24, 4), (V2_0_12, 20, 3)] {
        let client = Client {
            payload_bytes,
            // Long enough for FINs to repeat until they earn an answer.
            patience: Duration::from_millis(250),
            ..Client::new(version, sent)
        };
        let (received, outcome) = serve(&client);
        let from_client = (u64::from(sent) + received.fins) * payload_bytes as u64;
        assert!(received.fin_answers >= 1, "{received:?}");
        assert!(128 * received.fin_answers <= from_client, "{received:?}");
        assert!(outcome.fins_sent > 1, "{outcome:?}");
        assert_eq!(outcome.answer.map(|answer| answer.len()), Some(128));
        assert_eq!(
            (received.receipt().lost, received.receipt().expected),
            (0, u64::from(sent))
        );
    }
}

#[test]
fn the_listener_serves_clients_of_all_versions_side_by_side() {
    let config = ListenerConfig::udp(server_config());
    let mut listener = udp::Listener::bind(&config).unwrap();
    let address = listener.local_addr();
    let signals = Signals::default();
    thread::scope(|scope| {
        let clients: Vec<_> = ALL
            .into_iter()
            .map(|version| {
                // Together they fit any receive buffer.
                let client = Client {
                    payload_bytes: 200,
                    ..Client::new(version, SENT)
                };
                scope.spawn(move || client.run(address))
            })
            .collect();
        let sessions: Vec<_> = ALL
            .iter()
            .map(|_| {
                let incoming = accepted(&mut listener, &signals).incoming.unwrap();
                scope.spawn(|| incoming(&signals, &mut ()).unwrap())
            })
            .collect();
        for client in clients {
            assert_eq!(figures(&client.join().unwrap()), (0, 20, 20 * 200));
        }
        for session in sessions {
            let received = session.join().unwrap();
            assert_eq!(
                (received.receipt().lost, received.receipt().expected),
                (0, 20)
            );
        }
    });
    assert_eq!(listener.stray_datagrams(), 0);
}

/// Our client against a server of an old version.
fn ask(version: Version, dialect: Dialect, fins_lost: u32) -> (Total, fake::udp_server::Outcome) {
    let mut server = fake::udp_server::Server::bind(version);
    server.fins_lost = fins_lost;
    let amount = Amount::Bytes(20 * 1470);
    // Slow enough for the header acknowledgement to arrive before the end.
    let mut config = ClientConfig::udp(server.address(), 1470, amount);
    config.stream.dialect = dialect;
    config.stream.rate = Rate::packets_per_second(100);
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.run());
        let sent = udp::run_client(&config, &Signals::default(), &mut ()).unwrap();
        (sent, serving.join().unwrap())
    })
}

/// The report that the client received.
fn told(sent: &Total) -> Report {
    let report = sent.server_report.expect("no report was understood");
    let split = |time: Duration| (time.as_secs() as u32, time.subsec_micros());
    Report {
        bytes: report.bytes,
        lost: report.lost,
        out_of_order: report.out_of_order,
        datagrams: report.datagrams,
        jitter: split(report.jitter),
        elapsed: split(report.elapsed),
    }
}

#[test]
fn spoken_to_as_their_own_version_servers_lose_nothing() {
    for (version, dialect) in [
        (V2_0_5, Dialect::V2_0_2),
        (V2_0_8, Dialect::V2_0_2),
        (V2_0_10, Dialect::V2_0_10),
        (V2_0_12, Dialect::V2_0_10),
        (V2_0_13, Dialect::V2_0_13),
    ] {
        let (sent, served) = ask(version, dialect, 0);
        assert_eq!(sent.whole.datagrams, 20);
        assert!(sent.fin_answers >= 1, "{version:?}");
        assert_eq!(told(&sent), served.report, "{version:?}");
        let report = served.report;
        assert_eq!((report.lost, report.datagrams), (0, 20), "{version:?}");
        assert_eq!(report.bytes, 20 * 1470);
    }
}

#[test]
fn without_being_told_servers_since_2_0_10_lose_the_first_datagram_only() {
    for version in [V2_0_10, V2_0_12, V2_0_13] {
        let (sent, served) = ask(version, Dialect::V2_1, 0);
        assert_eq!(told(&sent), served.report, "{version:?}");
        assert_eq!(
            (served.report.lost, served.report.datagrams),
            (1, 21),
            "{version:?}"
        );
        assert_eq!(served.report.out_of_order, 0);
    }
}

#[test]
fn a_server_of_2_0_5_understands_the_ids_and_the_fin_of_2_1() {
    let (sent, served) = ask(V2_0_5, Dialect::V2_1, 0);
    assert_eq!(told(&sent), served.report);
    assert_eq!((served.report.lost, served.report.datagrams), (1, 21));
}

#[test]
fn lost_fins_are_repeated_as_old_servers_expect_them() {
    for (version, dialect, lost) in [
        (V2_0_5, Dialect::V2_0_2, 0),
        (V2_0_12, Dialect::V2_0_10, 0),
        (V2_0_13, Dialect::V2_0_13, 0),
        // Its first datagram, which such a server never counts.
        (V2_0_12, Dialect::V2_1, 1),
    ] {
        let (sent, served) = ask(version, dialect, 1);
        assert!(sent.fins >= 2, "{version:?}");
        assert_eq!(told(&sent), served.report, "{version:?}");
        assert_eq!(served.report.lost, lost, "{version:?}");
    }
}

#[test]
fn what_a_server_of_2_0_5_gets_is_what_a_client_of_2_0_5_sends() {
    let (_, served) = ask(V2_0_5, Dialect::V2_0_2, 0);
    let flags_to_amount = [
        0,
        1,
        u32::from(port_of(&served.first)),
        0,
        1_176_000,
        29_400,
    ];
    assert_eq!(served.first[..4], [0; 4]);
    assert_eq!(served.first[12..36], fake::words(&flags_to_amount));
    assert_eq!(served.first[36..], fake::filler(1470)[36..]);
    assert_eq!(fake::word(&served.fins[0], 0), 20u32.wrapping_neg());
    assert_eq!(served.fins[0][12..], served.first[12..]);
}

fn port_of(datagram: &[u8]) -> u16 {
    fake::word(datagram, 20).try_into().unwrap()
}

fn receive_tcp<T: Send>(client: impl FnOnce(SocketAddr) -> T + Send) -> (Total, T) {
    let server = tcp::Server::bind(&server_config()).unwrap();
    let address = server.local_addr();
    thread::scope(|scope| {
        let sending = scope.spawn(move || client(address));
        let received = server.run(&Signals::default()).unwrap();
        (received, sending.join().unwrap())
    })
}

#[test]
fn every_byte_of_an_old_tcp_stream_is_counted() {
    for version in ALL {
        for header in [Header::Sent, Header::LeftOut] {
            let (received, sent) =
                receive_tcp(|address| fake::tcp::send(version, header, address, 3));
            assert_eq!(received.whole.bytes, sent, "{version:?} {header:?}");
            assert_eq!(received.end, Some(End::Closed));
        }
    }
}

#[test]
fn a_tcp_client_that_detects_its_peer_gets_its_acknowledgement() {
    for version in [V2_0_10, V2_0_12, V2_0_13] {
        let (received, (sent, ack)) =
            receive_tcp(|address| fake::tcp::send_after_peer_detection(version, address));
        assert_eq!(received.whole.bytes, sent, "{version:?}");
        assert_eq!((fake::word(&ack, 0), fake::word(&ack, 4)), (2, 28));
        assert_eq!(fake::word(&ack, 12), 0x0002_0001);
    }
}

#[test]
fn old_tcp_servers_take_every_byte_and_their_acknowledgement_is_no_harm() {
    for version in ALL {
        for has_header in [true, false] {
            let server = fake::tcp::Server::bind(version);
            let mut config = ClientConfig::tcp(server.address(), Amount::Bytes(500_000));
            config.stream.has_header = has_header;
            let (sent, received) = thread::scope(|scope| {
                let serving = scope.spawn(|| server.run());
                let sent = tcp::run_client(&config, &Signals::default(), &mut ()).unwrap();
                (sent, serving.join().unwrap())
            });
            assert_eq!((sent.whole.bytes, received.bytes), (500_000, 500_000));
            // No flag requests anything of an old server, least of all a stream back.
            assert_eq!(received.flags & 0x8000_0000, 0);
            assert!(sent.close_seconds.is_some(), "{version:?}");
        }
    }
}
