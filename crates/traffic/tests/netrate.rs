//! netblast's and netsend's datagrams as received by a plain socket, and netreceive's counts.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Rate;
use nicpoll_traffic::Signals;
use nicpoll_traffic::netrate::blast::Blaster;
use nicpoll_traffic::netrate::options::NetrateOptions;
use nicpoll_traffic::netrate::receive::{ReceiveCount, listen, receive};
use nicpoll_traffic::netrate::send::PacedSender;
use nicpoll_traffic::netrate::{SendCount, connect_first};
use rustix::io::Errno;

fn socket(ip: &str) -> UdpSocket {
    let socket = UdpSocket::bind((ip, 0)).unwrap();
    let timeout = Some(Duration::from_secs(5));
    socket.set_read_timeout(timeout).unwrap();
    socket
}

fn blaster(peer: SocketAddr, payload_bytes: usize, is_batched: bool) -> Blaster {
    let (socket, peer) = connect_first(&[peer]).unwrap();
    let options = NetrateOptions {
        payload_bytes,
        is_batched,
        ..NetrateOptions::default()
    };
    Blaster::new(socket, peer, &options).unwrap()
}

/// Blasts until `enough` returns; returns the counts.
fn blast_until(blaster: &mut Blaster, enough: impl FnOnce()) -> SendCount {
    let signals = Signals::default();
    thread::scope(|scope| {
        let sending = scope.spawn(|| blaster.run(&signals));
        enough();
        signals.finish.store(true, Ordering::Relaxed);
        sending.join().unwrap()
    })
}

#[test]
fn each_datagram_is_zeros_behind_a_counter_of_its_own() {
    for (ip, is_batched) in [
        ("127.0.0.1", false),
        ("127.0.0.1", true),
        ("::1", false),
        ("::1", true),
    ] {
        let receiver = socket(ip);
        let mut blaster = blaster(receiver.local_addr().unwrap(), 64, is_batched);
        let datagrams = if is_batched { 64 } else { 1 };
        assert_eq!(blaster.datagrams_per_system_call(), datagrams);
        let mut seen = Vec::new();
        let count = blast_until(&mut blaster, || {
            // Fewer than the socket buffer holds, so none before them is lost.
            for _ in 0..100 {
                let mut datagram = [1; 128];
                assert_eq!(receiver.recv(&mut datagram).unwrap(), 64);
                let (counter, zeros) = datagram[..64].split_at(4);
                assert_eq!(zeros, [0; 60]);
                seen.push(u32::from_be_bytes(counter.try_into().unwrap()));
            }
        });
        assert_eq!(seen, (0..100).collect::<Vec<u32>>());
        assert!(count.calls >= 100);
        // Less than a full batch is sent when a full one would let more wait than single sends.
        let calls = count.calls.div_ceil(datagrams as u64)..=count.calls + 1;
        assert!(calls.contains(&count.system_calls), "{count:?}");
    }
}

#[test]
fn a_payload_without_room_for_a_counter_is_zeros() {
    for payload_bytes in [0, 3] {
        let receiver = socket("127.0.0.1");
        let mut blaster = blaster(receiver.local_addr().unwrap(), payload_bytes, true);
        blast_until(&mut blaster, || {
            for _ in 0..10 {
                let mut datagram = [1; 8];
                assert_eq!(receiver.recv(&mut datagram).unwrap(), payload_bytes);
                assert!(datagram[..payload_bytes].iter().all(|&byte| byte == 0));
            }
        });
    }
}

#[test]
fn a_closed_port_is_counted_by_its_error() {
    // Bound and connected elsewhere: nobody else can take the port, and nothing arrives.
    let taken = socket("127.0.0.1");
    taken.connect("127.0.0.1:9").unwrap();
    let mut blaster = blaster(taken.local_addr().unwrap(), 64, false);
    let count = blast_until(&mut blaster, || thread::sleep(Duration::from_millis(50)));
    let refused = Errno::CONNREFUSED.raw_os_error();
    let known = count.errors_by_number.iter();
    let known = known.filter(|(number, count)| *number == refused && *count > 0);
    assert_eq!(known.count(), 1, "{count:?}");
    assert!(count.errors < count.calls, "{count:?}");
}

#[test]
fn netreceive_counts_both_families_and_knows_what_was_dropped() {
    let sockets = loop {
        // The port is free if both families can bind it.
        let port = socket("127.0.0.1").local_addr().unwrap().port();
        let sockets = listen(port).unwrap();
        if sockets.len() == 2 {
            break sockets;
        }
    };
    let port = sockets[0].local_addr().unwrap().port();
    let counts = [ReceiveCount::default(), ReceiveCount::default()];
    let signals = Signals::default();
    let sent = thread::scope(|scope| {
        for (socket, count) in sockets.iter().zip(&counts) {
            scope.spawn(|| receive(socket, count, &signals, Instant::now()).unwrap());
        }
        let sent = ["127.0.0.1", "::1"].map(|ip| {
            let peer = SocketAddr::new(ip.parse().unwrap(), port);
            let mut blaster = blaster(peer, 64, true);
            blast_until(&mut blaster, || thread::sleep(Duration::from_millis(50))).successes()
        });
        signals.finish.store(true, Ordering::Relaxed);
        sent
    });
    for ((socket, count), sent) in sockets.iter().rev().zip(counts.iter().rev()).zip(sent) {
        let dropped = nicpoll_sys::socket::receive_drops(socket).unwrap();
        let count = count.look();
        assert!(count.datagrams > 0);
        assert_eq!(count.datagrams + u64::from(dropped), sent);
        assert_eq!(count.bytes, 64 * count.datagrams);
        let (first, last) = count.first_and_last.unwrap();
        assert!(first <= last);
    }
}

#[test]
fn netsend_goes_through_its_ports_and_gives_each_every_number() {
    // Two adjacent free ports.
    let (first, second) = loop {
        let first = socket("127.0.0.1");
        let port = first.local_addr().unwrap().port();
        if let Some(second) = port
            .checked_add(1)
            .and_then(|next| UdpSocket::bind(("127.0.0.1", next)).ok())
        {
            break (first, second);
        }
    };
    let options = NetrateOptions {
        port_max: second.local_addr().unwrap().port(),
        payload_bytes: 4,
        rate: Rate::packets_per_second(100),
        ..NetrateOptions::default()
    };
    let mut sender = PacedSender::new(first.local_addr().unwrap(), &options).unwrap();
    let signals = Signals::default();
    let timeout = Some(Duration::from_secs(5));
    second.set_read_timeout(timeout).unwrap();
    let sent = thread::scope(|scope| {
        let sending = scope.spawn(|| sender.run(&signals));
        for number in 0..3u32 {
            for socket in [&first, &second] {
                let mut datagram = [0; 4];
                assert_eq!(socket.recv(&mut datagram).unwrap(), 4);
                assert_eq!(datagram, number.to_be_bytes());
            }
        }
        signals.finish.store(true, Ordering::Relaxed);
        sending.join().unwrap()
    });
    assert!(sent.count.calls >= 6 && sent.count.errors == 0, "{sent:?}");
    assert_eq!(sent.start.subsec_nanos(), 0);
    assert!(sent.finish > sent.start && sent.waited > 0);
}
