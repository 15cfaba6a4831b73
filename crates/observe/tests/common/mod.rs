//! Two namespaces, a veth between them, and datagrams from one to the other.
#![allow(dead_code)] // Each test program uses a part of it.

use std::net::UdpSocket;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_observe::HostAccount;
use nicpoll_sys::netns::{NetNamespace, NetnsThread};
use nicpoll_sys::socket;
use rustix::thread::gettid;

pub const SENDER: &str = "198.18.0.1";
pub const RECEIVER: &str = "198.18.0.2";
pub const PORT: u16 = 9000;
pub const PAYLOAD_BYTES: usize = 100;
/// A datagram with the headers of UDP and IPv4.
pub const IPV4_BYTES: u64 = PAYLOAD_BYTES as u64 + 28;
/// What is not there after this will not come.
pub const QUIET: Duration = Duration::from_millis(20);
/// A receiver that has all of it does not wait so long.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Packets in a CPU's backlog or a veth's ring at one time: far fewer than either holds.
pub const BURST: u64 = 50;

/// What a test has in a namespace.
#[derive(Default)]
pub struct State {
    pub sockets: Vec<UdpSocket>,
    pub account: Option<HostAccount>,
}

pub type Side = NetnsThread<State>;

/// Two namespaces and a veth between them.
pub struct Pair {
    pub sender: Side,
    pub receiver: Side,
}

impl Pair {
    pub fn new() -> Self {
        let [sender, receiver] = [(), ()]
            .map(|()| NetnsThread::enter(NetNamespace::create().unwrap(), State::default).unwrap());
        let tid = |side: &Side| side.run(|_| gettid().as_raw_nonzero().get()).unwrap();
        let add = format!(
            "link add em0 type veth peer name em0 netns {}",
            tid(&receiver)
        );
        run(&sender, &format!("ip {add}"));
        for (side, host) in [(&sender, 1), (&receiver, 2)] {
            let peer = 3 - host;
            run(
                side,
                &format!(
                    "echo 0 > /proc/sys/net/ipv6/conf/em0/accept_dad\n\
                     ip link set lo up\n\
                     ip link set em0 address 02:00:00:00:00:0{host} up\n\
                     ip addr add 198.18.0.{host}/24 dev em0\n\
                     ip addr add 2001:2::{host}/64 dev em0 nodad\n\
                     ip neigh replace 198.18.0.{peer} lladdr 02:00:00:00:00:0{peer} dev em0\n\
                     ip neigh replace 2001:2::{peer} lladdr 02:00:00:00:00:0{peer} dev em0"
                ),
            );
        }
        Pair { sender, receiver }
    }

    /// A socket that receives what is sent to the port.
    pub fn listen(&self, receive_buffer_bytes: usize) {
        self.receiver
            .run(move |state| {
                let socket = UdpSocket::bind((RECEIVER, PORT)).unwrap();
                socket::set_receive_buffer(&socket, receive_buffer_bytes).unwrap();
                socket.set_nonblocking(true).unwrap();
                state.sockets.push(socket);
            })
            .unwrap();
    }

    /// Sends datagrams, with a rest after each few so that they cannot be lost on the way for other reasons.
    pub fn send(&self, from: &'static str, to: &'static str, datagrams: u64) {
        for burst in 0..datagrams.div_ceil(BURST) {
            let left = datagrams - burst * BURST;
            self.send_at_once(from, to, left.min(BURST));
            thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn send_at_once(&self, from: &'static str, to: &'static str, datagrams: u64) {
        let send = move |_: &mut State| {
            let socket = UdpSocket::bind((from, 0)).unwrap();
            for _ in 0..datagrams {
                // Where the filter or a queue of the sender's own drops it, some kernels say so.
                let _ = socket.send_to(&[0; PAYLOAD_BYTES], (to, PORT));
            }
        };
        self.sender.run(send).unwrap();
    }

    /// Reads what has arrived at the last socket, waiting for as many as are expected and then for more.
    pub fn received(&self, expected: u64) -> u64 {
        let mut received = 0;
        let began = Instant::now();
        while received < expected && began.elapsed() < PATIENCE {
            received += self.arrived();
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(QUIET);
        received + self.arrived()
    }

    fn arrived(&self) -> u64 {
        let read_all = |state: &mut State| {
            let mut datagram = [0; 2048];
            let mut received = 0;
            while state.sockets[0].recv(&mut datagram).is_ok() {
                received += 1;
            }
            received
        };
        self.receiver.run(read_all).unwrap()
    }
}

/// Runs lines of a shell in a namespace.
pub fn run(side: &Side, lines: &str) -> String {
    let script = format!("set -e\n{lines}");
    side.run(move |_| {
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{complaints}");
        String::from_utf8(output.stdout).unwrap()
    })
    .unwrap()
}

/// Rules for a chain at a hook of the filter.
pub fn filter(side: &Side, chain: &str, rules: &[&str]) {
    let rules: String = rules
        .iter()
        .map(|rule| format!("nft 'add rule inet t c {rule}'\n"))
        .collect();
    run(
        side,
        &format!(
            "nft 'add table inet t; add chain inet t c {{ type filter hook {chain}; }}'\n{rules}"
        ),
    );
}

/// Has the receiver's ring, which holds 256, emptied once in 200 ms.
pub fn poll_seldom(pair: &Pair) {
    let defer = "/sys/class/net/em0/napi_defer_hard_irqs";
    let timeout = "/sys/class/net/em0/gro_flush_timeout";
    let lines = format!("ethtool -K em0 gro on\necho 1000 > {defer}\necho 200000000 > {timeout}");
    run(&pair.receiver, &lines);
    run(&pair.sender, "ethtool -K em0 tso off");
}
