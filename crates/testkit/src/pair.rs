//! Two network namespaces with a veth between them, for tests that send something from one to the other.
//!
//! The namespaces end with the value. Nothing in them reaches the host.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_sys::netns::{NetNamespace, NetnsThread};
use rustix::thread::gettid;

/// What is not there after this will not come.
const PATIENCE: Duration = Duration::from_secs(10);

/// Two namespaces and a veth between them, each of whose ends is called em0. What a test keeps in a namespace is an `S`.
pub struct NetnsPair<S: 'static> {
    /// 198.18.0.1 and 2001:2::1, 02:00:00:00:00:01.
    pub sender: NetnsThread<S>,
    /// 198.18.0.2 and 2001:2::2, 02:00:00:00:00:02.
    pub receiver: NetnsThread<S>,
}

impl<S: Default> Default for NetnsPair<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Default> NetnsPair<S> {
    /// Makes them. The ends know each other's addresses, so that nothing has to be asked for.
    ///
    /// # Panics
    /// In the test, without root or ip(8).
    pub fn new() -> Self {
        Self::with_queues(1)
    }

    /// The same, with so many queues to send and to receive at each end.
    ///
    /// # Panics
    /// In the test, without root or ip(8).
    pub fn with_queues(queues: u32) -> Self {
        let side = || NetnsThread::enter(NetNamespace::create().unwrap(), S::default).unwrap();
        let (sender, receiver) = (side(), side());
        let tid = receiver.run(|_| gettid().as_raw_nonzero().get()).unwrap();
        let counts = format!("numrxqueues {queues} numtxqueues {queues}");
        shell(
            &sender,
            &format!("ip link add em0 {counts} type veth peer name em0 {counts} netns {tid}"),
        );
        for (side, host) in [(&sender, 1), (&receiver, 2)] {
            let peer = 3 - host;
            shell(
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
        let pair = NetnsPair { sender, receiver };
        pair.await_carrier();
        pair
    }

    /// Waits until the sender may send: its end notices the other's state a little later.
    ///
    /// # Panics
    /// In the test, when there is no carrier after ten seconds.
    pub fn await_carrier(&self) {
        let began = Instant::now();
        while shell(&self.sender, "cat /sys/class/net/em0/operstate").trim() != "up" {
            assert!(began.elapsed() < PATIENCE, "no carrier");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Runs lines of a shell in a namespace, and returns what they print.
///
/// # Panics
/// In the test, when one of them fails.
pub fn shell<S: 'static>(side: &NetnsThread<S>, lines: &str) -> String {
    let script = format!("set -e\n{lines}");
    side.run(move |_| {
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{complaints}");
        String::from_utf8(output.stdout).unwrap()
    })
    .unwrap()
}
