//! Every kind of workload on loopback: both ends' counts agree.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use nicpoll_iperf::{TcpWorkload, UdpWorkload};
use nicpoll_lab::WorkloadRequest;
use nicpoll_model::{ControlKind, Side, WorkUnit};
use nicpoll_traffic::Signals;
use nicpoll_traffic::netrate::NetrateWorkload;
use nicpoll_traffic::rr::RrWorkload;
use nicpoll_traffic::workload::{Books, EndTerms};

const DURATION: Duration = Duration::from_millis(200);

/// Runs a workload like a host, without pinned threads. The request goes through JSON first.
fn run(request: &WorkloadRequest) -> Books {
    let json = serde_json::to_string(request).unwrap();
    let request: WorkloadRequest = serde_json::from_str(&json).unwrap();
    let receiver = EndTerms {
        side: Side::Receiver,
        receiver: free_address(),
        duration: DURATION,
        link_delay: Duration::ZERO,
        receiver_ahead_ns: 0,
    };
    let sender = EndTerms {
        side: Side::Sender,
        ..receiver
    };
    let done = Signals::default();
    thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (request, done) = (&request, &done);
        let receiving = scope.spawn(move || {
            let prepared = request.workload().prepare(&receiver).unwrap();
            ready.send(()).unwrap();
            prepared.run(done).unwrap()
        });
        is_ready.recv().unwrap();
        let prepared = request.workload().prepare(&sender).unwrap();
        let sent = prepared.run(&Signals::default()).unwrap();
        thread::sleep(Duration::from_millis(10));
        done.sender_done.store(true, Ordering::Release);
        Books::of(sent, receiving.join().unwrap())
    })
}

/// Returns a loopback address of this process alone: on 127.0.0.1 another test's TCP connection may hold a port that
/// is free for UDP.
fn free_address() -> SocketAddr {
    let [.., high, low] = std::process::id().to_be_bytes();
    let socket = UdpSocket::bind((Ipv4Addr::new(127, 64 | (high & 63), low, 1), 0)).unwrap();
    socket.local_addr().unwrap()
}

fn udp(packets_per_second: Option<u64>) -> WorkloadRequest {
    WorkloadRequest::Udp(UdpWorkload {
        payload_bytes: 64,
        packets_per_second: packets_per_second.and_then(NonZeroU64::new),
        receive_buffer_bytes: Some(8 << 20),
    })
}

#[test]
fn datagrams_one_way_are_counted_at_both_ends() {
    let books = run(&udp(Some(1000)));
    let (offered, delivered) = books.packets.unwrap();
    assert!((150..=250).contains(&offered), "{books:?}");
    // The first one has 76 bytes, as 2.1.8's, for the client's header.
    let bytes = 64 * offered + 12;
    assert_eq!((offered, books.offered_bytes), (delivered, bytes));
    assert!(books.jitter_seconds.is_some() && books.undrained.is_none());
    let kinds: Vec<ControlKind> = books.control.iter().map(|line| line.kind).collect();
    use ControlKind::{Filtered, Fin, FinAcknowledgement, Refused};
    // Sends that the kernel refused, at either end, and those that a filter stopped.
    assert_eq!(kinds, [Fin, Refused, FinAcknowledgement, Refused, Filtered]);
    assert_eq!(
        books.control[0].sent_packets,
        books.control[0].received_packets
    );
    assert!(run(&udp(None)).packets.unwrap().0 > offered);
}

#[test]
fn a_stream_is_counted_in_bytes() {
    let books = run(&WorkloadRequest::Tcp(TcpWorkload {}));
    assert_eq!(books.packets, None);
    assert!(books.offered_bytes > 100_000);
    assert_eq!(books.offered_bytes, books.delivered_bytes);
    assert_eq!(books.undrained, None);
}

#[test]
fn requests_and_responses_count_both_ways() {
    let request = WorkloadRequest::Rr(RrWorkload::default());
    let books = run(&request);
    let trips = books.round_trip.unwrap();
    let (offered, delivered) = books.packets.unwrap();
    assert!(trips.transactions > 10, "{books:?}");
    assert_eq!(offered, 2 * (trips.transactions + trips.timeouts));
    assert!(delivered <= offered);
    assert_eq!(request.workload().unit(), WorkUnit::Transactions);
}

#[test]
fn netblast_is_received_by_netreceive() {
    let request = WorkloadRequest::Netrate(NetrateWorkload { payload_bytes: 64 });
    let books = run(&request);
    let (offered, delivered) = books.packets.unwrap();
    assert!(delivered > 100 && delivered <= offered, "{books:?}");
    assert_eq!(books.delivered_bytes, 64 * delivered);
    assert!(
        books.receiver.seconds <= books.sender.seconds + 0.1,
        "{books:?}"
    );
}

#[test]
fn a_cancelled_end_says_so() {
    let signals = Signals::default();
    signals.cancel.store(true, Ordering::Relaxed);
    for request in [
        udp(None),
        WorkloadRequest::Rr(RrWorkload::default()),
        WorkloadRequest::Netrate(NetrateWorkload { payload_bytes: 64 }),
    ] {
        let end = EndTerms {
            side: Side::Receiver,
            receiver: free_address(),
            duration: DURATION,
            link_delay: Duration::ZERO,
            receiver_ahead_ns: 0,
        };
        let error = request.workload().prepare(&end).unwrap().run(&signals);
        assert_eq!(error.unwrap_err().to_string(), "cancelled", "{request:?}");
    }
}

#[test]
fn what_no_workload_has_is_refused() {
    for wrong in [
        r#"{"kind": "sctp"}"#,
        r#"{"kind": "udp"}"#,
        r#"{"kind": "rr", "receive_buffer_bytes": null, "rate": 1}"#,
    ] {
        assert!(
            serde_json::from_str::<WorkloadRequest>(wrong).is_err(),
            "{wrong}"
        );
    }
}
