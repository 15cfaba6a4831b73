//! Three namespaces in a row: a sender, a router and a receiver, and traffic between them.

use crate::common::prelude::*;
use crate::common::running::thread_of;
use nicpoll_sys::netns::NetNamespace;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, ipproto};
use std::net::IpAddr;

pub const SENDER: [&str; 2] = ["198.18.0.1", "2001:2::1"];
pub const ROUTER: [&str; 2] = ["198.18.0.2", "2001:2::2"];
pub const RECEIVER: [&str; 2] = ["198.18.1.1", "2001:2:0:1::1"];
/// An address behind the receiver; the router gets a route to it while it runs.
pub const BEHIND: &str = "198.51.100.1";
pub const PORT: u16 = 9000;
/// Time after which a missing answer is asked for again.
const ANSWER: Duration = Duration::from_millis(200);

pub type Host = NetnsThread<()>;

/// A sender, a router and a receiver. Hardware addresses end in 1; 2 and 3; 4.
pub struct Lab {
    pub sender: Host,
    pub router: Host,
    pub receiver: Host,
}

fn join(router: &Host, name: &str, host: &Host) {
    let tid = thread_of(host);
    let make = format!("ip link add {name} type veth peer name em0 netns {tid}");
    shell(router, &make);
}

fn address(host: &Host, device: &str, number: u32, [ipv4, ipv6]: [&str; 2]) {
    shell(
        host,
        &format!(
            "ip link set lo up\n\
             ip link set {device} address 02:00:00:00:00:0{number} up\n\
             ip addr add {ipv4}/24 dev {device}\n\
             ip addr add {ipv6}/64 dev {device} nodad"
        ),
    );
}

/// Turns checksum offload off and GRO on, which gives a veth a NAPI.
fn tune(host: &Host, network: u32) {
    shell(
        host,
        &format!(
            "ethtool -K em0 tx off gro on\n\
             ip route add default via 198.18.{network}.2\n\
             ip route add default via 2001:2:0:{network}::2"
        ),
    );
}

impl Lab {
    pub fn new() -> Self {
        let [sender, router, receiver] = [(), (), ()]
            .map(|()| NetnsThread::enter(NetNamespace::create().unwrap(), || ()).unwrap());
        shell(
            &router,
            "echo 1 > /proc/sys/net/ipv4/ip_forward\n\
             echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
        );
        let lab = Lab {
            sender,
            router,
            receiver,
        };
        lab.connect_sender();
        lab.connect_receiver();
        shell(&lab.receiver, &format!("ip addr add {BEHIND}/32 dev lo"));
        lab
    }

    fn connect_sender(&self) {
        join(&self.router, "em0", &self.sender);
        address(&self.sender, "em0", 1, SENDER);
        address(&self.router, "em0", 2, ROUTER);
        tune(&self.sender, 0);
    }

    /// Joins the router's `em1` and the receiver, also after it was removed.
    pub fn connect_receiver(&self) {
        join(&self.router, "em1", &self.receiver);
        address(&self.receiver, "em0", 4, RECEIVER);
        tune(&self.receiver, 1);
        self.address_exit();
    }

    /// Gives the router's `em1` its addresses.
    pub fn address_exit(&self) {
        address(&self.router, "em1", 3, ["198.18.1.2", "2001:2:0:1::2"]);
    }

    /// Answers every datagram to `PORT` at the receiver until the result is dropped.
    pub fn echo(&self) -> Echo {
        let (ready, is_ready) = mpsc::channel();
        let (ends, is_over) = mpsc::channel::<()>();
        let thread = self.receiver.spawn_pinned(0, "echo", move || {
            let socket = UdpSocket::bind(("::", PORT)).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_millis(20)))
                .unwrap();
            ready.send(()).unwrap();
            let mut payload = [0; 2000];
            while is_over.try_recv() == Err(mpsc::TryRecvError::Empty) {
                if let Ok((bytes, from)) = socket.recv_from(&mut payload) {
                    let _ = socket.send_to(&payload[..bytes], from);
                }
            }
        });
        is_ready.recv().unwrap();
        drop(thread);
        Echo { _ends: ends }
    }

    /// Asks until there is an answer.
    pub fn await_answer(&self, to: &str) {
        let to = SocketAddr::new(to.parse().unwrap(), PORT);
        let ask = move |(): &mut ()| {
            let socket = UdpSocket::bind((any(to.ip()), 0)).unwrap();
            socket.set_read_timeout(Some(ANSWER)).unwrap();
            let (began, mut answer) = (Instant::now(), [0; 64]);
            while began.elapsed() < PATIENCE {
                let _ = socket.send_to(b"are you there", to);
                if socket.recv(&mut answer).is_ok() {
                    return true;
                }
            }
            false
        };
        assert!(self.sender.run(ask).unwrap(), "no answer from {to}");
    }

    /// Sends datagrams with a TTL, as fast as it goes.
    pub fn send(&self, to: &str, datagrams: u32, bytes: usize, ttl: Option<u32>) {
        let to = SocketAddr::new(to.parse().unwrap(), PORT + 1);
        let send = move |(): &mut ()| {
            let socket = UdpSocket::bind((any(to.ip()), 0)).unwrap();
            if let Some(ttl) = ttl {
                socket.set_ttl(ttl).unwrap();
            }
            for _ in 0..datagrams {
                // Fails after an ICMP message: nobody listens.
                let _ = socket.send_to(&[7; 2800][..bytes], to);
            }
        };
        self.sender.run(send).unwrap();
    }
}

pub struct Echo {
    _ends: mpsc::Sender<()>,
}

fn any(like: IpAddr) -> &'static str {
    if like.is_ipv4() { "0.0.0.0" } else { "::" }
}

/// Captures whole frames of UDP to the port at the receiver.
pub fn capture(host: &Host, frames: usize) -> mpsc::Receiver<Vec<Vec<u8>>> {
    let (ready, is_ready) = mpsc::channel();
    let (captured, result) = mpsc::channel();
    let thread = host.spawn_pinned(0, "capture", move || {
        let all = Protocol::from_raw(std::num::NonZeroU32::new(0x0300).unwrap());
        let (family, kind) = (AddressFamily::PACKET, SocketType::RAW);
        let socket =
            rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, Some(all)).unwrap();
        ready.send(()).unwrap();
        let mut found = Vec::new();
        let mut frame = [0; 4000];
        while found.len() < frames {
            let (bytes, _) = rustix::net::recv(&socket, &mut frame, RecvFlags::empty()).unwrap();
            let frame = &frame[..bytes];
            if transport(frame).is_some_and(|udp| udp[2..4] == (PORT + 1).to_be_bytes()) {
                found.push(frame.to_vec());
            }
        }
        let _ = captured.send(found);
    });
    is_ready.recv().unwrap();
    drop(thread);
    result
}

/// Returns the UDP datagram of a frame.
pub fn transport(frame: &[u8]) -> Option<&[u8]> {
    match (&frame[12..14], frame[23], frame[20]) {
        ([8, 0], 17, _) => Some(&frame[34..]),
        ([0x86, 0xDD], _, 17) => Some(&frame[54..]),
        _ => None,
    }
}

/// Opens a connection to an address of the router or the receiver, and sends a word each way.
pub fn say_hello_by_tcp(lab: &Lab, to: &str) {
    let server = if ROUTER.contains(&to) {
        &lab.router
    } else {
        &lab.receiver
    };
    let listener = server
        .run(|()| TcpListener::bind(("0.0.0.0", 0)).unwrap())
        .unwrap();
    let to = SocketAddr::new(to.parse().unwrap(), listener.local_addr().unwrap().port());
    let answering = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut word = [0; 5];
        stream.read_exact(&mut word).unwrap();
        stream.write_all(&word).unwrap();
    });
    let ask = move |(): &mut ()| {
        let mut stream = TcpStream::connect_timeout(&to, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"hello").unwrap();
        let mut word = [0; 5];
        stream.read_exact(&mut word).unwrap();
        word
    };
    assert_eq!(&lab.sender.run(ask).unwrap(), b"hello");
    answering.join().unwrap();
}

/// Returns the sender of the first ICMP message of a type.
pub fn await_icmp(host: &Host, message: u8) -> mpsc::Receiver<String> {
    let (ready, is_ready) = mpsc::channel();
    let (came, result) = mpsc::channel();
    let thread = host.spawn_pinned(0, "icmp", move || {
        let (family, kind) = (AddressFamily::INET, SocketType::RAW);
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, kind, flags, Some(ipproto::ICMP)).unwrap();
        ready.send(()).unwrap();
        let mut packet = [0; 2000];
        while packet[20] != message {
            rustix::net::recv(&socket, &mut packet, RecvFlags::empty()).unwrap();
        }
        let from: [u8; 4] = packet[12..16].try_into().unwrap();
        let _ = came.send(IpAddr::from(from).to_string());
    });
    is_ready.recv().unwrap();
    drop(thread);
    result
}
