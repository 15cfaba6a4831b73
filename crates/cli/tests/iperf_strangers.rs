//! `nicpoll iperf -s` among strangers: forged datagrams, connections that say nothing, and a system that
//! has no more to give. All of it is on loopback, every address of which is this host's, so that a
//! socket of each stands for a forged source.

mod common;

use crate::common::prelude::*;
use crate::common::serving::{Serving, is_closed};
use nicpoll_iperf::wire::DatagramHeader;
use rustix::process::Resource;

/// What a server may hold, whatever comes.
const MEMORY_KIB_MAX: u64 = 64 << 10;
/// More peers than a server has streams for.
const PEERS: u32 = 300;
/// Nobody waits longer for a free stream.
const SOON: Duration = Duration::from_secs(20);

/// A socket at one of this host's many addresses.
fn stranger(index: u32, server: SocketAddr) -> UdpSocket {
    let address = Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 9, 0, 1)) + index);
    let socket = UdpSocket::bind((address, 0)).unwrap();
    socket.connect(server).unwrap();
    socket
}

fn datagram(id: i64, bytes: usize) -> Vec<u8> {
    let mut payload = vec![0; bytes];
    let header = DatagramHeader {
        id,
        sent_seconds: 1,
        sent_microseconds: 0,
    };
    header.write_to(&mut payload);
    payload
}

/// A short test with our own client; whether it was told what the server received.
fn is_served(server: SocketAddr, more: &[&str]) -> bool {
    let client = crate::common::serving::client(server, more);
    let text = String::from_utf8_lossy(&client.stdout);
    let is_answered = text.contains("Server Report") || !more.contains(&"-u");
    client.status.success() && text.contains("sec") && is_answered
}

/// Whether a client is served at last that begins anew each time it has waited in vain. On a busy machine it may.
fn is_served_soon(server: SocketAddr, more: &[&str]) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < SOON {
        if is_served(server, more) {
            return true;
        }
    }
    false
}

#[test]
fn waves_of_forged_peers_take_bounded_memory() {
    let server = Serving::start(&["-u"]);
    for wave in 0..3 {
        let peers: Vec<_> = (0..PEERS)
            .map(|index| stranger(index + wave * PEERS, server.address))
            .collect();
        for id in 1..=10 {
            for peer in &peers {
                peer.send(&datagram(id, 60_000)).unwrap();
            }
        }
        for peer in &peers {
            peer.send(&datagram(-11, 60_000)).unwrap();
        }
        // Sessions end by their FINs, and their memory is there for the next ones.
        thread::sleep(Duration::from_millis(1500));
    }
    let used = server.status("VmHWM");
    assert!(used < MEMORY_KIB_MAX, "{used} KiB");
    assert!(is_served(server.address, &["-u", "-b", "1m", "-t", "0.2"]));
}

#[test]
fn forged_datagrams_do_not_keep_a_client_out() {
    let mut server = Serving::start(&["-u"]);
    let strangers: Vec<_> = (0..PEERS)
        .map(|index| stranger(index, server.address))
        .collect();
    for stranger in &strangers {
        stranger.send(&datagram(1, 16)).unwrap();
    }
    // It sends for long enough to meet a free stream.
    let begun = Instant::now();
    let client = ["-u", "-b", "1m", "-t", "3", "-i", "0"];
    assert!(is_served(server.address, &client));
    assert!(begun.elapsed() < SOON);
    let told = server.stop();
    assert!(told.matches("streams are in use").count() <= 1, "{told}");
}

#[test]
fn connections_that_send_next_to_nothing_do_not_keep_a_client_out() {
    let mut server = Serving::start(&[]);
    let mut slow: Vec<_> = (0..PEERS)
        .map(|index| slow_connection(index, server.address))
        .collect();
    for stream in &mut slow {
        // No header, and a stream from there on.
        stream.write_all(&[0; 8]).unwrap();
    }
    assert!(is_served_soon(server.address, &["-n", "100K"]));
    // Whom it replaced learns of it within a moment.
    thread::sleep(Duration::from_millis(500));
    let told = server.stop();
    assert!(told.matches("streams are in use").count() <= 1, "{told}");
    assert!(told.contains("makes room for another client"), "{told}");
}

/// A connection from one of several addresses, none of which has more than its share.
fn slow_connection(index: u32, server: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let host = Ipv4Addr::new(127, 9, 1, 1 + (index % 4) as u8);
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&fd, &SocketAddr::from((host, 0))).unwrap();
    connect(&fd, &server).unwrap();
    TcpStream::from(fd)
}

#[test]
fn one_address_gets_no_more_than_its_share() {
    let mut server = Serving::start(&[]);
    let own: Vec<_> = (0..PEERS)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            // It sends enough not to be replaced. A refused one is closed already.
            let _ = stream.write_all(&[0; 2_000]);
            stream
        })
        .collect();
    let other = slow_connection(0, server.address);
    let mut other_waits = other.try_clone().unwrap();
    other_waits
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    assert!(other_waits.read(&mut [0; 8]).is_err(), "it was closed");
    drop(own);
    let told = server.stop();
    assert_eq!(told.matches("the rest is for others").count(), 1, "{told}");
}

#[test]
fn silent_connections_make_room_for_a_client_of_their_address() {
    for says in [&[][..], &[0; 20]] {
        let server = Serving::start(&[]);
        let silent = (0..PEERS).map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            let _ = stream.write_all(says);
            stream
        });
        let _silent: Vec<_> = silent.collect();
        // Longer than any of them may be silent when another client comes, not as long as when none does.
        thread::sleep(Duration::from_millis(1500));
        assert!(is_served(server.address, &["-n", "100K"]), "{says:?}");
    }
}

#[test]
fn a_forged_datagram_is_no_test() {
    for options in [&["-u", "-1"][..], &["-u", "-P", "1"]] {
        let server = Serving::start(options);
        let forged = stranger(0, server.address);
        forged.send(&datagram(1, 16)).unwrap();
        // The server has seen it, and would take it for the one test that it is to serve.
        thread::sleep(Duration::from_millis(400));
        let begun = Instant::now();
        let client = ["-u", "-b", "1m", "-t", "0.3"];
        assert!(is_served(server.address, &client), "{options:?}");
        assert!(begun.elapsed() < Duration::from_secs(4), "{options:?}");
    }
}

#[test]
fn a_server_ends_after_so_many_tests() {
    let mut server = Serving::start(&["-u", "-P", "1"]);
    assert!(is_served(server.address, &["-u", "-b", "1m", "-t", "0.2"]));
    assert!(server.has_ended_within(Duration::from_secs(5)));
}

#[test]
fn without_descriptors_a_client_is_refused_and_the_server_goes_on() {
    for protocol in [&[][..], &["-u"]] {
        let mut server = Serving::start(protocol);
        server.limit(Resource::Nofile, 24);
        if protocol.is_empty() {
            let crowd: Vec<_> = (0..40)
                .map(|_| TcpStream::connect(server.address).unwrap())
                .collect();
            let closed = crowd.iter().filter(|stream| is_closed(stream)).count();
            assert!(closed > 10, "{closed} of 40 were refused");
        } else {
            for index in 0..40 {
                let peer = stranger(index, server.address);
                peer.send(&datagram(1, 16)).unwrap();
            }
            thread::sleep(Duration::from_millis(300));
        }
        server.unlimit(Resource::Nofile);
        let client = [protocol, &["-n", "100K"]].concat();
        assert!(is_served(server.address, &client), "{protocol:?}");
        let told = server.stop();
        let lines = told.matches("is refused").count();
        assert_eq!(lines, 1, "{told}");
        assert!(told.contains("open files"), "{told}");
    }
}

#[test]
fn without_threads_a_client_is_refused_and_the_server_goes_on() {
    for protocol in [&[][..], &["-u"]] {
        let mut server = Serving::start(protocol);
        // A thread's stack does not fit any more.
        let bytes = (server.status("VmSize") << 10) + (1 << 20);
        server.limit(Resource::As, bytes);
        if protocol.is_empty() {
            let refused = TcpStream::connect(server.address).unwrap();
            assert!(is_closed(&refused));
        } else {
            stranger(0, server.address).send(&datagram(1, 16)).unwrap();
            thread::sleep(Duration::from_millis(300));
        }
        server.unlimit(Resource::As);
        let client = [protocol, &["-n", "100K"]].concat();
        assert!(is_served(server.address, &client), "{protocol:?}");
        let told = server.stop();
        assert_eq!(told.matches("no thread could be made").count(), 1, "{told}");
    }
}
