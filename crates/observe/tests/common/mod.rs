//! Two namespaces, a veth between them, and datagrams from one to the other.
#![allow(dead_code)] // Each test program uses a part of it.

use std::net::UdpSocket;
use std::ops::Deref;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_observe::HostAccount;
use nicpoll_sys::netns::NetnsThread;
use nicpoll_sys::socket;
use nicpoll_testkit::NetnsPair;
pub use nicpoll_testkit::shell as run;

pub const SENDER: &str = "198.18.0.1";
pub const RECEIVER: &str = "198.18.0.2";
pub const PORT: u16 = 9000;
pub const PAYLOAD_BYTES: usize = 100;
/// After this time no packet arrives any more.
pub const QUIET: Duration = Duration::from_millis(20);
/// Wait of a receiver that has everything.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Packets in a CPU's backlog or a veth's ring at a time: far fewer than either holds.
pub const BURST: u64 = 50;

/// A test's state in a namespace.
#[derive(Default)]
pub struct State {
    pub sockets: Vec<UdpSocket>,
    pub account: Option<HostAccount>,
}

pub type Side = NetnsThread<State>;

/// Two namespaces with the tests' operations on them.
pub struct Pair(NetnsPair<State>);

impl Deref for Pair {
    type Target = NetnsPair<State>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Pair {
    pub fn new() -> Self {
        Pair(NetnsPair::new())
    }

    /// Opens a socket that receives on the port.
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

    /// Sends datagrams, with a pause after every few to exclude losses for other reasons.
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
                // Some kernels report drops by the sender's own filter or queue.
                let _ = socket.send_to(&[0; PAYLOAD_BYTES], (to, PORT));
            }
        };
        self.sender.run(send).unwrap();
    }

    /// Reads what has arrived at the last socket: waits for the expected number, then for more.
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

/// Rules for a chain at a filter hook.
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

/// A source to which the receiver has no route by the incoming interface.
pub const NO_WAY_BACK: &str = "203.0.113.1";

/// Makes the receiver refuse such sources, and the sender use one.
pub fn refuse_reverse_paths(pair: &Pair) {
    run(
        &pair.sender,
        &format!("ip addr add {NO_WAY_BACK}/32 dev em0"),
    );
    let setting = "/proc/sys/net/ipv4/conf/all/rp_filter";
    run(&pair.receiver, &format!("echo 1 > {setting}"));
}

/// Attaches an XDP program to the receiver that drops one frame in eight.
pub fn drop_eighth(pair: &Pair, mode: &str) {
    let object = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/xdp_drop_eighth.bpf.o");
    let attach = format!("ip link set dev em0 {mode} obj {object} sec xdp");
    run(&pair.receiver, &attach);
}

/// Empties the receiver's ring, which holds 256 packets, only once in 200 ms.
pub fn poll_seldom(pair: &Pair) {
    let defer = "/sys/class/net/em0/napi_defer_hard_irqs";
    let timeout = "/sys/class/net/em0/gro_flush_timeout";
    let lines = format!("ethtool -K em0 gro on\necho 1000 > {defer}\necho 200000000 > {timeout}");
    run(&pair.receiver, &lines);
    run(&pair.sender, "ethtool -K em0 tso off");
}
