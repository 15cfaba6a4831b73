//! Numbered datagrams from one network namespace to another, and ports that are no interfaces.
#![allow(dead_code, unused_imports)] // Each test program uses a part of it.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_core::Controller;
use nicpoll_engine::{Drive, Engine, Port, PortRunner, ReceiveQueue, RunnerSettings};
use nicpoll_sys::link::LinkHandle;
use nicpoll_sys::netns::NetnsThread;
use nicpoll_sys::packet::ReceiverDrops;
use nicpoll_sys::schedule;
use nicpoll_testkit::NetnsPair;

pub const RECEIVER: &str = "198.18.0.2";
pub const PORT: u16 = 9000;
/// What has not happened by then will not.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub type Side = NetnsThread<()>;
pub type Pair = NetnsPair<()>;

pub use nicpoll_testkit::shell as run;

/// Sends a datagram from the sender's end of a link.
pub fn send_one(from: &Side, payload: Vec<u8>, port: u16) {
    let send = move |(): &mut ()| {
        let socket = UdpSocket::bind("198.18.0.1:0").unwrap();
        socket.send_to(&payload, (RECEIVER, port)).unwrap();
    };
    from.run(send).unwrap();
}

/// Sends datagrams that carry their numbers, `first` and up.
pub fn send(from: &Side, first: u64, count: u32) {
    let send = move |(): &mut ()| {
        let socket = UdpSocket::bind("198.18.0.1:0").unwrap();
        for number in first..first + u64::from(count) {
            let mut payload = [0; 64];
            payload[..8].copy_from_slice(&number.to_be_bytes());
            socket.send_to(&payload, (RECEIVER, PORT)).unwrap();
        }
    };
    from.run(send).unwrap();
}

/// Attaches an XDP program of this repository at the receiver's end, which gives it a NAPI.
pub fn attach(pair: &Pair, program: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../observe/bpf");
    run(
        &pair.receiver,
        &format!("ip link set dev em0 xdpdrv obj {folder}/{program}.bpf.o sec xdp"),
    );
}

/// Waits until it is so.
pub fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub fn settings(drive: Drive, controller: Controller) -> RunnerSettings {
    RunnerSettings {
        drive,
        hz: 1000,
        controller,
        storm_threshold: 0,
    }
}

pub fn last_cpu() -> u32 {
    *schedule::allowed_cpus().unwrap().last().unwrap()
}

/// What a port was asked for.
#[derive(Default)]
pub struct Asked {
    pub wake_ups: AtomicU64,
    pub status_checks: AtomicU64,
}

/// Gets no packets.
pub type Nobody = fn(&[u8]);

/// A queue that is none of an interface. Of so many packets that it is asked for it moves as many as `poll` says.
pub struct FakePort<F> {
    pub poll: F,
    pub asked: Arc<Asked>,
    /// Packets that wait, whatever is taken.
    pub waiting: u32,
    /// What is written to the second end wakes the port without end.
    pub wire: (UnixStream, UnixStream),
}

impl<F: FnMut(u32) -> u32 + Send + 'static> FakePort<F> {
    pub fn new(poll: F) -> Self {
        FakePort {
            poll,
            asked: Arc::default(),
            waiting: 0,
            wire: UnixStream::pair().unwrap(),
        }
    }

    /// Its runner.
    pub fn runner(self, settings: RunnerSettings) -> PortRunner<Nobody> {
        let nobody: Nobody = |_| ();
        let port = Port::new(self, LinkHandle::named("lo").unwrap(), nobody);
        PortRunner::new(settings, vec![port]).unwrap()
    }

    /// Its engine, on the last CPU.
    pub fn engine(self, settings: RunnerSettings) -> Engine<Nobody> {
        Engine::start(self.runner(settings), last_cpu()).unwrap()
    }
}

impl<I, F: FnMut(u32) -> u32 + Send> ReceiveQueue<I> for FakePort<F> {
    fn receive(&mut self, most: u32, _input: &mut I) -> u32 {
        (self.poll)(most)
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.asked.wake_ups.fetch_add(1, Ordering::Relaxed);
        self.wire.0.as_fd()
    }

    fn drops(&self) -> io::Result<ReceiverDrops> {
        Ok(ReceiverDrops::default())
    }

    fn note_check(&mut self, _mtu_bytes: Option<u32>) {
        self.asked.status_checks.fetch_add(1, Ordering::Relaxed);
    }
}
