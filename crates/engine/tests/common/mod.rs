//! Two namespaces, a veth between them, and numbered datagrams from one to the other.
#![allow(dead_code)] // Each test program uses a part of it.

use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use nicpoll_sys::netns::{NetNamespace, NetnsThread};
use rustix::thread::gettid;

pub const RECEIVER: &str = "198.18.0.2";
pub const PORT: u16 = 9000;

pub type Side = NetnsThread<()>;

/// Two namespaces and a veth between them.
pub struct Pair {
    pub sender: Side,
    pub receiver: Side,
}

impl Pair {
    pub fn new() -> Self {
        Self::with_queues(1)
    }

    /// The same, with so many queues to send and to receive at each end.
    pub fn with_queues(queues: u32) -> Self {
        let [sender, receiver] =
            [(), ()].map(|()| NetnsThread::enter(NetNamespace::create().unwrap(), || ()).unwrap());
        let tid = receiver.run(|()| gettid().as_raw_nonzero().get()).unwrap();
        let counts = format!("numrxqueues {queues} numtxqueues {queues}");
        run(
            &sender,
            &format!("ip link add em0 {counts} type veth peer name em0 {counts} netns {tid}"),
        );
        for (side, host) in [(&sender, 1), (&receiver, 2)] {
            let peer = 3 - host;
            run(
                side,
                &format!(
                    "echo 1 > /proc/sys/net/ipv6/conf/em0/disable_ipv6\n\
                     ip link set lo up\n\
                     ip link set em0 address 02:00:00:00:00:0{host} up\n\
                     ip addr add 198.18.0.{host}/24 dev em0\n\
                     ip neigh replace 198.18.0.{peer} lladdr 02:00:00:00:00:0{peer} dev em0"
                ),
            );
        }
        let pair = Pair { sender, receiver };
        pair.await_carrier();
        pair
    }

    /// Waits until the sender may send: its end notices the other's state a little later.
    pub fn await_carrier(&self) {
        let began = Instant::now();
        while run(&self.sender, "cat /sys/class/net/em0/operstate").trim() != "up" {
            assert!(began.elapsed() < Duration::from_secs(5), "no carrier");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Sends datagrams that carry their numbers, `first` and up.
    pub fn send(&self, first: u64, count: u32) {
        let send = move |(): &mut ()| {
            let socket = UdpSocket::bind("198.18.0.1:0").unwrap();
            for number in first..first + u64::from(count) {
                let mut payload = [0; 64];
                payload[..8].copy_from_slice(&number.to_be_bytes());
                socket.send_to(&payload, (RECEIVER, PORT)).unwrap();
            }
        };
        self.sender.run(send).unwrap();
    }
}

/// Runs lines of a shell in a namespace.
pub fn run(side: &Side, lines: &str) -> String {
    let script = format!("set -e\n{lines}");
    side.run(move |()| {
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{complaints}");
        String::from_utf8(output.stdout).unwrap()
    })
    .unwrap()
}
