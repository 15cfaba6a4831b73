//! Numbered datagrams from one network namespace to another, and ports that are no interfaces.
#![allow(dead_code, unused_imports)] // Each test program uses a part of it.

use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_core::{Command, Controller, Device};
use nicpoll_engine::{Drive, Engine, LinkWatch, Port, PortRunner, RunnerSettings};
use nicpoll_sys::netns::NetnsThread;
use nicpoll_sys::packet::Drops;
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
    pub has_interrupts: AtomicBool,
    pub wake_ups: AtomicU64,
    pub status_checks: AtomicU64,
}

/// A port that is no interface. Of so many packets that it is asked for it moves as many as `poll` says.
pub struct FakePort<F> {
    pub poll: F,
    pub asked: Arc<Asked>,
    /// Packets that wait, whatever is taken.
    pub waiting: u32,
    /// What wakes it without end, if anything does.
    pub storm: Option<UnixStream>,
}

impl<F: FnMut(u32) -> u32 + Send + 'static> FakePort<F> {
    pub fn new(poll: F) -> Self {
        FakePort {
            poll,
            asked: Arc::default(),
            waiting: 0,
            storm: None,
        }
    }

    /// Its runner.
    pub fn runner(self, settings: RunnerSettings) -> PortRunner<()> {
        PortRunner::new(settings, vec![Box::new(self)]).unwrap()
    }

    /// Its engine, on the last CPU.
    pub fn engine(self, settings: RunnerSettings) -> Engine<()> {
        Engine::start(self.runner(settings), last_cpu()).unwrap()
    }
}

impl<F: FnMut(u32) -> u32> Device for FakePort<F> {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        let is_check = command == Command::PollAndCheckStatus;
        let checks = &self.asked.status_checks;
        checks.fetch_add(u64::from(is_check), Ordering::Relaxed);
        (self.poll)(count)
    }

    fn set_interrupts(&mut self, on: bool) {
        self.asked.has_interrupts.store(on, Ordering::Relaxed);
    }
}

impl<F: FnMut(u32) -> u32 + Send> Port for FakePort<F> {
    type Input = ();

    fn input(&self) -> &() {
        &()
    }

    fn input_mut(&mut self) -> &mut () {
        unreachable!("it hands nothing on")
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn wake_up(&self) -> Option<BorrowedFd<'_>> {
        self.asked.wake_ups.fetch_add(1, Ordering::Relaxed);
        self.storm.as_ref().map(AsFd::as_fd)
    }

    fn link(&self) -> LinkWatch {
        LinkWatch::up()
    }

    fn drops(&self) -> Drops {
        Drops::default()
    }
}
