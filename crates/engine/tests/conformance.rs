//! The core's conformance suite on a real AF_XDP socket at a veth, and what happens to it when its interface does
//! not stay as it was.

mod common;

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use nicpoll_core::conformance::{Bench, check};
use nicpoll_core::{Command, Device};
use nicpoll_engine::{PacketInput, Port, Take, Taker, XdpPort};
use nicpoll_sys::xdp::LinkState;
use nicpoll_testkit::needs;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use common::{PORT, Pair, RECEIVER, run};

/// Frames that the port keeps.
const ROOM: u32 = 64;
/// What has not come after this will not.
const PATIENCE: Duration = Duration::from_secs(5);

/// Keeps the numbers that the datagrams carry.
#[derive(Default)]
struct Numbers(std::collections::VecDeque<u64>);

impl PacketInput for Numbers {
    fn packet(&mut self, frame: &[u8]) {
        let payload = &frame[14 + 20 + 8..];
        self.0
            .push_back(u64::from_be_bytes(payload[..8].try_into().unwrap()));
    }
}

/// A port at one end of a veth, and a sender at the other.
struct Wire<'a> {
    pair: &'a Pair,
    _taker: Taker,
    port: XdpPort<Numbers>,
    sent: u64,
    taken: u64,
    interrupts: u64,
}

impl<'a> Wire<'a> {
    fn new(pair: &'a Pair) -> Self {
        let (taker, mut ports) = pair
            .receiver
            .run(|()| {
                let take = Take::Ports([PORT].into());
                XdpPort::open("em0", &take, ROOM, Numbers::default).unwrap()
            })
            .unwrap();
        assert_eq!(ports.len(), 1);
        Wire {
            pair,
            _taker: taker,
            port: ports.remove(0),
            sent: 0,
            taken: 0,
            interrupts: 0,
        }
    }
}

impl Device for Wire<'_> {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        let work = self.port.poll(command, count);
        self.taken += u64::from(work);
        work
    }

    fn set_interrupts(&mut self, on: bool) {
        self.port.set_interrupts(on);
    }
}

impl Bench for Wire<'_> {
    fn room(&self) -> u32 {
        ROOM
    }

    fn arrive(&mut self, count: u32) {
        self.pair.send(self.sent, count);
        self.sent += u64::from(count);
        let began = Instant::now();
        loop {
            let here = self.taken + u64::from(self.port.waiting());
            if here + self.port.drops().frames() == self.sent {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{here} of {}", self.sent);
            std::thread::yield_now();
        }
    }

    fn handed_up(&mut self) -> Option<u64> {
        self.port.input_mut().0.pop_front()
    }

    /// A look with poll(2), which is how an AF_XDP socket interrupts.
    fn interrupts(&mut self) -> u64 {
        if let Some(fd) = self.port.wake_up() {
            let mut fds = [PollFd::new(&fd, PollFlags::IN)];
            let at_once = Timespec::default();
            self.interrupts += poll(&mut fds, Some(&at_once)).unwrap() as u64;
        }
        self.interrupts
    }
}

#[test]
fn an_af_xdp_socket_does_what_every_device_must() {
    needs!(Root, Ip);
    let pair = Pair::new();
    check(|| Wire::new(&pair)).unwrap_or_else(|violation| panic!("{violation}"));
}

#[test]
fn an_interface_that_goes_down_and_away_is_counted_and_survived() {
    needs!(Root, Ip);
    let pair = Pair::new();
    let mut wire = Wire::new(&pair);
    let status = |wire: &mut Wire| {
        wire.poll(Command::PollAndCheckStatus, 5);
        (wire.port.link_state(), wire.port.link_losses())
    };
    assert_eq!(status(&mut wire), (LinkState::Up, 0));
    run(&pair.receiver, "ip link set em0 down");
    assert_eq!(status(&mut wire), (LinkState::Down, 1));
    assert_eq!(status(&mut wire), (LinkState::Down, 1));
    run(&pair.receiver, "ip link set em0 up");
    assert_eq!(status(&mut wire), (LinkState::Up, 1));
    pair.await_carrier();
    wire.arrive(3);
    assert_eq!(wire.poll(Command::PollOnly, 5), 3);
    run(&pair.receiver, "ip link del em0");
    assert_eq!(status(&mut wire), (LinkState::Gone, 2));
    assert!(wire.port.wake_up().is_none());
    assert_eq!(wire.poll(Command::PollOnly, 5), 0);
}

#[test]
fn only_what_was_asked_for_is_taken_and_a_program_that_is_there_stays() {
    needs!(Root, Ip);
    let pair = Pair::new();
    let wire = Wire::new(&pair);
    // The sender has to ask for the address first: ARP passes, as do TCP and UDP to other ports.
    run(&pair.sender, "ip neigh del 198.18.0.2 dev em0");
    let listen = |(): &mut ()| {
        let other = UdpSocket::bind((RECEIVER, PORT + 1)).unwrap();
        other.set_read_timeout(Some(PATIENCE)).unwrap();
        (TcpListener::bind((RECEIVER, PORT)).unwrap(), other)
    };
    let (_listener, other) = pair.receiver.run(listen).unwrap();
    let connect = |(): &mut ()| {
        TcpStream::connect((RECEIVER, PORT)).unwrap();
        let socket = UdpSocket::bind("198.18.0.1:0").unwrap();
        socket.send_to(b"passes", (RECEIVER, PORT + 1)).unwrap();
    };
    pair.sender.run(connect).unwrap();
    assert_eq!(other.recv(&mut [0; 64]).unwrap(), 6);
    assert_eq!(wire.port.waiting(), 0);
    let second = pair
        .receiver
        .run(|()| XdpPort::open("em0", &Take::AllUdp, ROOM, Numbers::default).map(|_| ()))
        .unwrap();
    let refusal = second.unwrap_err().to_string();
    assert!(refusal.contains("queue 0"), "{refusal}");
    drop(wire);
    let shown = run(&pair.receiver, "ip link show em0");
    assert!(!shown.contains("xdp"), "{shown}");

    let object = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../observe/bpf/xdp_drop_eighth.bpf.o"
    );
    run(
        &pair.receiver,
        &format!("ip link set dev em0 xdpdrv obj {object} sec xdp"),
    );
    let before = run(&pair.receiver, "ip link show em0");
    let refused = pair
        .receiver
        .run(|()| XdpPort::open("em0", &Take::AllUdp, ROOM, Numbers::default).map(|_| ()))
        .unwrap();
    let refusal = refused.unwrap_err().to_string();
    assert!(
        refusal.contains("has an XDP program of another program"),
        "{refusal}"
    );
    assert_eq!(run(&pair.receiver, "ip link show em0"), before);
}
