//! `nicpoll rr -s` among more clients than it can serve, over loopback: whoever cannot be served is refused
//! at once, standard error says so once a minute, and the server goes on.

use crate::common::prelude::*;
use crate::common::serving::{is_closed, limit, status, unlimit};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::Resource;

/// Connections that a server serves for one address.
const OF_ONE: usize = 112;
/// Those that it serves for all.
const OF_ALL: usize = 128;

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start() -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let port = address.port().to_string();
        let args = ["-s", "-B", "127.0.0.1", "-p", &port, "--json-stream"];
        let mut child = rr(&args).spawn().unwrap();
        let mut start = String::new();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        printed.read_line(&mut start).unwrap();
        assert!(start.contains("start"), "{start}");
        let server = Server { child, address };
        // All its threads are made then.
        assert!(server.serves());
        server
    }

    fn connections(&self, count: usize) -> Vec<TcpStream> {
        let connect = |_| TcpStream::connect(self.address).unwrap();
        (0..count).map(connect).collect()
    }

    /// From another address of this machine.
    fn connections_of(&self, address: Ipv4Addr, count: usize) -> Vec<TcpStream> {
        let connect = |_| {
            let socket =
                rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            rustix::net::bind(&socket, &SocketAddr::from((address, 0))).unwrap();
            rustix::net::connect(&socket, &self.address).unwrap();
            TcpStream::from(socket)
        };
        (0..count).map(connect).collect()
    }

    fn serves(&self) -> bool {
        let port = self.address.port().to_string();
        let client = rr(&["-c", "127.0.0.1", "-p", &port, "-n", "10"]).output();
        client.unwrap().status.success()
    }

    /// Ends the server; what it told on standard error.
    fn end(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let mut told = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut told).unwrap();
        self.child.wait().unwrap();
        told
    }
}

fn rr(args: &[&str]) -> Command {
    let mut command = Command::new(NICPOLL);
    command.arg("rr").args(args).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_full_server_says_so_once() {
    let server = Server::start();
    let mut crowd = server.connections(OF_ONE);
    let rest = OF_ALL - OF_ONE;
    crowd.extend(server.connections_of(Ipv4Addr::new(127, 0, 0, 2), rest + 4));
    // On a slow host the first ones have been silent for so long that they make room for the last ones.
    assert!(crowd[OF_ALL..].iter().any(is_closed));
    drop(crowd);
    assert!(server.serves());
    let told = server.end();
    let lines: Vec<&str> = told.lines().collect();
    let expected = "nicpoll rr: all 128 connections are in use: 127.0.0.2 is refused; a connection \
                    that asks nothing for 1 s makes room for the next one";
    assert_eq!(lines, [expected]);
}

#[test]
fn one_address_does_not_get_all_connections() {
    let server = Server::start();
    let crowd = server.connections(OF_ONE + 4);
    assert!(crowd[OF_ONE..].iter().any(is_closed));
    // There is room for others.
    let other = server.connections_of(Ipv4Addr::new(127, 0, 0, 2), 1);
    assert!(!is_closed(&other[0]));
    drop(crowd);
    let told = server.end();
    let lines: Vec<&str> = told.lines().collect();
    let expected = "nicpoll rr: 127.0.0.1 is refused: it has 112 connections already, and the rest is for others";
    assert_eq!(lines, [expected]);
}

#[test]
fn without_descriptors_a_client_is_refused_and_the_server_goes_on() {
    let server = Server::start();
    limit(&server.child, Resource::Nofile, 24);
    let crowd = server.connections(40);
    let closed = crowd.iter().rev().take(10).filter(|one| is_closed(one));
    assert_eq!(closed.count(), 10);
    unlimit(&server.child, Resource::Nofile);
    assert!(server.serves());
    let told = server.end();
    assert_eq!(told.matches("is refused").count(), 1, "{told}");
    assert!(told.contains("open files"), "{told}");
}

#[test]
fn without_threads_a_client_is_refused_and_the_server_goes_on() {
    let server = Server::start();
    // These have the stacks of threads that have ended, which would not have to be made.
    let _held = server.connections(4);
    thread::sleep(Duration::from_millis(200));
    // A thread's stack does not fit any more.
    let bytes = (status(&server.child, "VmSize") << 10) + (1 << 20);
    limit(&server.child, Resource::As, bytes);
    assert!(server.connections(3).iter().all(is_closed));
    unlimit(&server.child, Resource::As);
    assert!(server.serves());
    let told = server.end();
    assert_eq!(told.matches("no thread could be made").count(), 1, "{told}");
}
