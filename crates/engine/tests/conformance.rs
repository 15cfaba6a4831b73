//! The core's conformance suite on every real device: AF_XDP and AF_PACKET at one end of a veth, and a TAP interface;
//! and what happens to each when its interface does not stay as it was.

mod common;

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use nicpoll_core::conformance::{Bench, check};
use nicpoll_core::{Command, Device};
use nicpoll_engine::{
    DeviceChoice, DeviceKind, EngineError, Intake, Opened, PacketInput, Port, Reception, Take,
};
use nicpoll_sys::link::LinkState;
use nicpoll_sys::netns::{NetNamespace, NetnsThread};
use nicpoll_testkit::{assert_has, needs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use common::{PATIENCE, PORT, Pair, RECEIVER, Side, attach, await_that, run, send, send_one};

const KINDS: [DeviceKind; 3] = [DeviceKind::AfXdp, DeviceKind::AfPacket, DeviceKind::Tap];
/// Frames that the port keeps.
const ROOM: u32 = 64;
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

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Where a device is tried, one at a time: a child that a test forks has the descriptors of all tests until it runs its
/// program, and a TAP interface is busy for as long, whoever has closed its end.
struct Site {
    place: Place,
    _alone: MutexGuard<'static, ()>,
}

enum Place {
    /// At the receiving end of a veth.
    Veth(Pair),
    /// The kernel sends, through an interface of which the device is the other end.
    Own(Side),
}

impl Place {
    fn of(kind: DeviceKind) -> Self {
        if kind != DeviceKind::Tap {
            return Place::Veth(Pair::new());
        }
        let side = NetnsThread::enter(NetNamespace::create().unwrap(), || ()).unwrap();
        run(
            &side,
            "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6",
        );
        Place::Own(side)
    }
}

impl Site {
    fn of(kind: DeviceKind) -> Self {
        let alone = ONE_AT_A_TIME.lock();
        Site {
            _alone: alone.unwrap_or_else(PoisonError::into_inner),
            place: Place::of(kind),
        }
    }

    /// Where the device is.
    fn receiver(&self) -> &Side {
        match &self.place {
            Place::Veth(pair) => &pair.receiver,
            Place::Own(side) => side,
        }
    }

    fn sender(&self) -> &Side {
        match &self.place {
            Place::Veth(pair) => &pair.sender,
            Place::Own(side) => side,
        }
    }

    /// Makes what goes with the device, or with its interface when that goes down.
    fn prepare(&self) {
        match &self.place {
            Place::Veth(pair) => pair.await_carrier(),
            Place::Own(side) => {
                // The kernel gives the places of frames that were read back 16 at a time.
                let lines = "ip link set em0 txqueuelen 80 up\n\
                     ip addr replace 198.18.0.1/24 dev em0\n\
                     ip neigh replace 198.18.0.2 lladdr 02:00:00:00:00:02 dev em0";
                run(side, lines);
            }
        }
    }

    fn open(&self, kind: DeviceKind, take: Take) -> Result<Opened<Numbers>, EngineError> {
        let open = move |(): &mut ()| {
            let reception = Reception {
                interface: "em0",
                take: &take,
                frames: ROOM,
                transmit_frames: 0,
            };
            DeviceChoice::Only(kind).receive(&reception, Numbers::default)
        };
        self.receiver().run(open).unwrap()
    }
}

/// A port, and a sender at the other end.
struct Wire<'a> {
    site: &'a Site,
    kind: DeviceKind,
    intake: Box<dyn Intake>,
    port: Port<Numbers>,
    sent: u64,
    taken: u64,
    interrupts: u64,
}

impl<'a> Wire<'a> {
    fn new(site: &'a Site, kind: DeviceKind) -> Self {
        let opened = site.open(kind, Take::Ports([PORT].into())).unwrap();
        site.prepare();
        let mut ports = opened.ports;
        assert_eq!(ports.len(), 1);
        Wire {
            site,
            kind,
            intake: opened.intake,
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
        send(self.site.sender(), self.sent, count);
        self.sent += u64::from(count);
        if self.kind == DeviceKind::Tap {
            // The kernel puts a frame into its queue before the sender's call returns.
            return;
        }
        await_that("what was sent", || {
            let here = self.taken + u64::from(self.port.queue.waiting());
            here + self.port.drops().frames() == self.sent
        });
    }

    fn handed_up(&mut self) -> Option<u64> {
        self.port.input.0.pop_front()
    }

    /// A look with poll(2), which is how these devices interrupt.
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
fn each_device_does_what_every_device_must() {
    needs!(Root, Ip);
    for kind in KINDS {
        let site = Site::of(kind);
        let outcome = check(|| Wire::new(&site, kind));
        outcome.unwrap_or_else(|violation| panic!("{kind:?}: {violation}"));
    }
}

#[test]
fn an_interface_that_goes_down_and_away_is_counted_and_survived() {
    needs!(Root, Ip);
    for kind in KINDS {
        let site = Site::of(kind);
        let mut wire = Wire::new(&site, kind);
        let status = |wire: &mut Wire| {
            check_status(wire);
            (wire.port.watch.state, wire.port.watch.losses)
        };
        assert_eq!(status(&mut wire), (LinkState::Up, 0), "{kind:?}");
        run(site.receiver(), "ip link set em0 down");
        assert_eq!(status(&mut wire), (LinkState::Down, 1), "{kind:?}");
        assert_eq!(status(&mut wire), (LinkState::Down, 1), "{kind:?}");
        run(site.receiver(), "ip link set em0 up");
        assert_eq!(status(&mut wire), (LinkState::Up, 1), "{kind:?}");
        site.prepare();
        wire.arrive(3);
        assert_eq!(wire.poll(Command::PollOnly, 5), 3, "{kind:?}");
        run(site.receiver(), "ip link del em0");
        assert_eq!(status(&mut wire), (LinkState::Gone, 2), "{kind:?}");
        assert!(wire.port.wake_up().is_none());
        assert_eq!(wire.poll(Command::PollOnly, 5), 0, "{kind:?}");
    }
}

/// Polls and checks the status once.
fn check_status(wire: &mut Wire) {
    wire.poll(Command::PollAndCheckStatus, 5);
}

#[test]
fn a_change_of_the_mtu_is_counted_and_survived() {
    needs!(Root, Ip);
    for kind in KINDS {
        let site = Site::of(kind);
        let mut wire = Wire::new(&site, kind);
        let changes = |wire: &mut Wire| {
            check_status(wire);
            wire.port.watch.mtu_changes
        };
        assert_eq!(changes(&mut wire), 0, "{kind:?}");
        for side in [site.sender(), site.receiver()] {
            run(side, "ip link set em0 mtu 2200");
        }
        // It is longer than the memory that the port has for a frame.
        send_one(site.sender(), vec![0; 2000], PORT);
        await_that("the loss", || {
            assert_eq!(wire.poll(Command::PollOnly, 5), 0, "{kind:?}");
            let (drops, fates) = (wire.port.drops(), wire.intake.fates().unwrap());
            drops.no_memory + fates.too_long_packets == 1
        });
        wire.sent += wire.port.drops().frames();
        assert_eq!(changes(&mut wire), 1, "{kind:?}");
        assert_eq!(changes(&mut wire), 1, "{kind:?}");
        wire.arrive(3);
        assert_eq!(wire.poll(Command::PollOnly, 5), 3, "{kind:?}");
    }
}

#[test]
fn jumbo_frames_come_whole() {
    needs!(Root, Ip);
    for kind in KINDS {
        let site = Site::of(kind);
        if kind == DeviceKind::Tap {
            run(site.receiver(), "ip tuntap add em0 mode tap");
        }
        for side in [site.sender(), site.receiver()] {
            run(side, "ip link set em0 mtu 9000");
        }
        let (frames, seen) = mpsc::channel();
        let open = move |(): &mut ()| {
            let input = || {
                let frames = frames.clone();
                move |frame: &[u8]| {
                    let payload = &frame[42..];
                    let is_whole = payload.iter().all(|byte| *byte == payload[0]);
                    frames.send((frame.len(), payload[0], is_whole)).unwrap();
                }
            };
            let reception = Reception {
                interface: "em0",
                take: &Take::Ports([PORT].into()),
                frames: ROOM,
                transmit_frames: 0,
            };
            DeviceChoice::Only(kind).receive(&reception, input).unwrap()
        };
        let mut opened = site.receiver().run(open).unwrap();
        site.prepare();
        let wanted = [(8942, 1, true), (106, 2, true), (4042, 3, true)];
        for (frame_bytes, byte, _) in wanted {
            send_one(site.sender(), vec![byte; frame_bytes - 42], PORT);
        }
        let mut received = 0;
        await_that("all frames", || {
            received += opened.ports[0].poll(Command::PollOnly, 1);
            received == wanted.len() as u32
        });
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), wanted, "{kind:?}");
        assert_eq!(opened.intake.fates().unwrap().taken_packets, 3, "{kind:?}");
    }
}

#[test]
fn what_was_taken_is_received_or_lost_at_one_place_and_nothing_comes_after_the_stop() {
    needs!(Root, Ip);
    for kind in KINDS {
        let site = Site::of(kind);
        let mut wire = Wire::new(&site, kind);
        send_one(site.sender(), vec![0; 64], PORT + 1);
        wire.arrive(2 * ROOM);
        wire.intake.stop();
        let stopped = wire.sent;
        send(site.sender(), stopped, 5);
        while wire.poll(Command::PollOnly, 5) > 0 {}
        let (fates, drops) = (wire.intake.fates().unwrap(), wire.port.drops());
        assert!(
            wire.taken >= u64::from(ROOM - 1),
            "{kind:?}: {}",
            wire.taken
        );
        assert!(drops.frames() > 0, "{kind:?}");
        assert_eq!(fates.taken_packets, wire.taken + drops.frames(), "{kind:?}");
        assert_eq!(wire.taken + drops.frames(), stopped, "{kind:?}");
        assert!(
            fates.passed_packets.is_none_or(|passed| passed > 0),
            "{kind:?}"
        );
    }
}

#[test]
fn only_what_was_asked_for_is_taken_and_a_program_that_is_there_stays() {
    needs!(Root, Ip);
    let site = Site::of(DeviceKind::AfXdp);
    let Place::Veth(pair) = &site.place else {
        return;
    };
    let wire = Wire::new(&site, DeviceKind::AfXdp);
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
    assert_eq!(wire.port.queue.waiting(), 0);
    let refused = |site: &Site| {
        let outcome = site.open(DeviceKind::AfXdp, Take::AllUdp);
        outcome.map(|_| ()).unwrap_err().to_string()
    };
    let refusal = refused(&site);
    assert!(refusal.contains("queue 0"), "{refusal}");
    drop(wire);
    let shown = run(&pair.receiver, "ip link show em0");
    assert!(!shown.contains("xdp"), "{shown}");

    attach(pair, "xdp_drop_eighth");
    let before = run(&pair.receiver, "ip link show em0");
    let refusal = refused(&site);
    assert_has(&refusal, "has an XDP program of another program");
    assert_eq!(run(&pair.receiver, "ip link show em0"), before);
}

#[test]
fn a_tap_interface_goes_with_its_program_and_one_that_was_there_stays() {
    needs!(Root, Ip);
    let site = Site::of(DeviceKind::Tap);
    let names = |site: &Site| run(site.receiver(), "ip -o link | cut -d: -f2");
    let opened = site.open(DeviceKind::Tap, Take::AllUdp).unwrap();
    assert!(names(&site).contains("em0"));
    drop(opened);
    assert!(!names(&site).contains("em0"));
    run(site.receiver(), "ip tuntap add em0 mode tap");
    let opened = site.open(DeviceKind::Tap, Take::AllUdp).unwrap();
    let second = site.open(DeviceKind::Tap, Take::AllUdp).map(|_| ());
    let refusal = second.unwrap_err().to_string();
    assert!(refusal.contains("another program has its end"), "{refusal}");
    drop(opened);
    assert!(names(&site).contains("em0"));
}
