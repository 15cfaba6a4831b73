//! `nicpoll rr -s` with more clients than it can serve, over loopback: excess clients are refused at once, standard
//! error says so once a minute, and the server goes on.

use crate::common::prelude::*;
use crate::common::serving::{is_closed, limit, status, unlimit};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::Resource;

/// Connections that a server accepts from one address.
const OF_ONE: usize = 112;
/// Connections that it accepts in all.
const OF_ALL: usize = 128;

struct Server {
    running: Running,
    address: SocketAddr,
}

impl Server {
    fn start() -> Self {
        let port = free_ports(1);
        let line = format!("rr -s -B 127.0.0.1 -p {port} --json-stream");
        let (running, _) = Running::of(nicpoll(words(&line)).spawn().unwrap());
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let server = Server { running, address };
        // All its threads are made then.
        assert!(server.serves());
        server
    }

    /// Opens connections from an address of this machine, 127.0.0.`host`.
    fn connections(&self, host: u8, count: usize) -> Vec<TcpStream> {
        let connect = |_| {
            // Close-on-exec: programs of other tests would hold it open.
            let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
            let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None);
            let socket = socket.unwrap();
            let local = SocketAddr::from(([127, 0, 0, host], 0));
            rustix::net::bind(&socket, &local).unwrap();
            rustix::net::connect(&socket, &self.address).unwrap();
            TcpStream::from(socket)
        };
        (0..count).map(connect).collect()
    }

    fn serves(&self) -> bool {
        let line = format!("rr -c 127.0.0.1 -p {} -n 10", self.address.port());
        let client = nicpoll(words(&line)).output();
        client.unwrap().status.success()
    }

    /// Ends the server; returns its standard error.
    fn end(mut self) -> String {
        let stderr = self.running.child.stderr.take().unwrap();
        self.running.interrupt();
        std::io::read_to_string(stderr).unwrap()
    }
}

#[test]
fn a_full_server_says_so_once() {
    let server = Server::start();
    let mut crowd = server.connections(1, OF_ONE);
    let rest = OF_ALL - OF_ONE;
    crowd.extend(server.connections(2, rest + 4));
    // On a slow host the first ones have been silent long enough to make room for the last ones.
    assert!(crowd[OF_ALL..].iter().any(is_closed));
    drop(crowd);
    assert!(server.serves());
    assert_eq!(
        server.end(),
        "nicpoll rr: all 128 connections are in use: 127.0.0.2 is refused; a connection that asks nothing for 1 s \
         makes room for the next one\n"
    );
}

#[test]
fn one_address_does_not_get_all_connections() {
    let server = Server::start();
    let crowd = server.connections(1, OF_ONE + 4);
    assert!(crowd[OF_ONE..].iter().any(is_closed));
    // There is room for others.
    let other = server.connections(2, 1);
    assert!(!is_closed(&other[0]));
    drop(crowd);
    assert_eq!(
        server.end(),
        "nicpoll rr: 127.0.0.1 is refused: it has 112 connections already, and the rest is for others\n"
    );
}

#[test]
fn silent_connections_make_room_for_a_client_of_their_address() {
    let server = Server::start();
    let _crowd = server.connections(1, OF_ALL);
    thread::sleep(Duration::from_millis(1500));
    assert!(server.serves());
    server.end();
}

#[test]
fn without_descriptors_a_client_is_refused_and_the_server_goes_on() {
    let server = Server::start();
    limit(&server.running.child, Resource::Nofile, 24);
    let crowd = server.connections(1, 40);
    let closed = crowd.iter().rev().take(10).filter(|one| is_closed(one));
    assert_eq!(closed.count(), 10);
    unlimit(&server.running.child, Resource::Nofile);
    assert!(server.serves());
    let told = server.end();
    assert_eq!(told.matches("is refused").count(), 1, "{told}");
    assert!(told.contains("open files"), "{told}");
}

#[test]
fn without_threads_a_client_is_refused_and_the_server_goes_on() {
    let server = Server::start();
    // These reuse the stacks of ended threads, which need no new memory.
    let _held = server.connections(1, 4);
    thread::sleep(Duration::from_millis(200));
    // Another thread's stack does not fit.
    let bytes = (status(&server.running.child, "VmSize") << 10) + (1 << 20);
    limit(&server.running.child, Resource::As, bytes);
    assert!(server.connections(1, 3).iter().all(is_closed));
    unlimit(&server.running.child, Resource::As);
    assert!(server.serves());
    let told = server.end();
    assert_eq!(told.matches("no thread could be made").count(), 1, "{told}");
}
