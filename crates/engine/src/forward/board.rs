//! Where the frames of all ports change over: from the memory of the socket that they came to into that of the one that
//! they leave by, in batches.
//!
//! What must hold: each frame that a socket gave out is handed to an exit's driver, or counted as lost at one place. A
//! batch is one poll's; an exit gets each batch with as few system calls as it takes.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nicpoll_core::{Command, Device};
use nicpoll_sys::link::LinkState;
use nicpoll_sys::xdp::XdpSocket;
use nicpoll_wire::hop::{Route, routed_by, send_on};

use super::tables::{Exit, Newest, Tables, mixed};
use crate::port::{LinkWatch, Port, PortDrops};

/// Pairs of addresses whose exits are remembered; a power of two.
const REMEMBERED: usize = 1024;

/// What became of the frames that came to one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Routed {
    pub(super) forwarded: u64,
    pub(super) route_gone: u64,
    pub(super) exit_full: u64,
}

/// A frame that is to leave.
#[derive(Clone, Copy)]
struct Staged {
    exit: Exit,
    begin: usize,
    bytes: usize,
}

/// A queue of an interface.
struct Queue {
    /// Out of its place while it is read.
    socket: Option<XdpSocket>,
    interface: usize,
}

/// All sockets, and what is on its way between them.
pub(super) struct Board {
    queues: Vec<Queue>,
    newest: Arc<Newest>,
    generation: u64,
    tables: Arc<Tables>,
    remembered: Vec<Option<(Route, Exit)>>,
    staged: Vec<Staged>,
    bytes: Vec<u8>,
    routed: Vec<Routed>,
}

impl Board {
    /// A board for sockets, each with the place of its interface.
    pub(super) fn new(sockets: Vec<(usize, XdpSocket)>, newest: Arc<Newest>) -> Self {
        let interfaces = sockets.iter().map(|(interface, _)| interface + 1).max();
        Board {
            queues: sockets
                .into_iter()
                .map(|(interface, socket)| Queue {
                    socket: Some(socket),
                    interface,
                })
                .collect(),
            newest,
            generation: 0,
            tables: Arc::default(),
            remembered: vec![None; REMEMBERED],
            staged: Vec::new(),
            bytes: Vec::new(),
            routed: vec![Routed::default(); interfaces.unwrap_or(0)],
        }
    }

    /// What became of the frames, by interface.
    pub(super) fn routed(&self) -> &[Routed] {
        &self.routed
    }

    fn socket(&self, queue: usize) -> Option<&XdpSocket> {
        self.queues[queue].socket.as_ref()
    }

    /// Moves up to `count` frames of a queue to where they leave.
    fn poll(&mut self, queue: usize, count: u32) -> u32 {
        if let Some(tables) = self.newest.since(&mut self.generation) {
            self.tables = tables;
            self.remembered.fill(None);
        }
        let interface = self.queues[queue].interface;
        let Some(mut socket) = self.queues[queue].socket.take() else {
            return 0;
        };
        // What the driver did not take yet.
        let _ = socket.transmit(0, |_| None);
        let received = socket.receive(count, |frame| self.stage(interface, frame));
        self.queues[queue].socket = Some(socket);
        if received > 0 {
            self.send(queue);
        }
        received
    }

    fn stage(&mut self, interface: usize, frame: &[u8]) {
        let route = routed_by(frame);
        let exit = route.and_then(|route| self.exit(&route));
        let Some(exit) = exit else {
            self.routed[interface].route_gone += 1;
            return;
        };
        self.staged.push(Staged {
            exit,
            begin: self.bytes.len(),
            bytes: frame.len(),
        });
        self.bytes.extend_from_slice(frame);
    }

    fn exit(&mut self, route: &Route) -> Option<Exit> {
        let key = Route {
            packet_bytes: 0,
            ..*route
        };
        let place = mixed(route) as usize % REMEMBERED;
        let exit = match self.remembered[place] {
            Some((known, exit)) if known == key => exit,
            _ => {
                let exit = self.tables.exit(route)?;
                self.remembered[place] = Some((key, exit));
                exit
            }
        };
        (route.packet_bytes <= exit.mtu_bytes).then_some(exit)
    }

    /// Sends what is staged, exit by exit. A frame leaves by the queue that has the number of the one it came to, as far
    /// as the exit has as many.
    fn send(&mut self, came_to: usize) {
        let interface = self.queues[came_to].interface;
        let before = self.queues[..came_to].iter();
        let number = before.filter(|queue| queue.interface == interface).count();
        for exit in 0..self.routed.len() {
            let mut staged = self
                .staged
                .iter()
                .filter(|frame| frame.exit.interface == exit);
            let wanted = staged.clone().count() as u64;
            if wanted == 0 {
                continue;
            }
            let queues = self
                .queues
                .iter()
                .filter(|queue| queue.interface == exit)
                .count();
            let mut of_exit = self
                .queues
                .iter_mut()
                .filter(|queue| queue.interface == exit);
            let queue = of_exit.nth(number % queues.max(1));
            let (mut written, mut refused) = (0, 0);
            if let Some(socket) = queue.and_then(|queue| queue.socket.as_mut()) {
                let bytes = &self.bytes;
                let refused_before = socket.sent().refused;
                // When the exit is down, what was written waits in its ring.
                let _ = socket.transmit(wanted as u32, |memory| {
                    let frame = staged.next()?;
                    let whole = bytes.get(frame.begin..frame.begin + frame.bytes)?;
                    let room = memory.get_mut(..frame.bytes)?;
                    room.copy_from_slice(whole);
                    send_on(room, frame.exit.from, frame.exit.to);
                    written += 1;
                    Some(frame.bytes)
                });
                refused = (socket.sent().refused - refused_before).min(written);
            }
            let routed = &mut self.routed[interface];
            routed.forwarded += written - refused;
            routed.exit_full += wanted - written + refused;
        }
        self.staged.clear();
        self.bytes.clear();
    }
}

/// A receive queue whose frames are forwarded.
pub(super) struct ForwardPort {
    board: Arc<Mutex<Board>>,
    queue: usize,
    /// Of the queue's socket.
    wake_up: OwnedFd,
    has_interrupts: bool,
    link: LinkWatch,
    last_drops: PortDrops,
}

impl ForwardPort {
    /// The port of a queue of the board.
    pub(super) fn new(board: Arc<Mutex<Board>>, queue: usize, wake_up: OwnedFd) -> Self {
        ForwardPort {
            board,
            queue,
            wake_up,
            has_interrupts: true,
            link: LinkWatch::new(),
            last_drops: PortDrops::default(),
        }
    }

    /// Its interface, by its place.
    pub(super) fn interface(&self) -> usize {
        self.board().queues[self.queue].interface
    }

    /// The engine's thread alone takes it, but for a look at the counters.
    pub(super) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for ForwardPort {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        if command == Command::PollAndCheckStatus {
            let state = self.board().socket(self.queue).map(XdpSocket::link_state);
            self.link.observe(state.unwrap_or(LinkState::Gone));
            self.last_drops = self.drops();
        }
        self.board().poll(self.queue, count)
    }

    fn set_interrupts(&mut self, on: bool) {
        self.has_interrupts = on;
    }
}

impl Port for ForwardPort {
    fn waiting(&self) -> u32 {
        self.board()
            .socket(self.queue)
            .map_or(0, XdpSocket::waiting)
    }

    fn wake_up(&self) -> Option<BorrowedFd<'_>> {
        use std::os::fd::AsFd;
        let can_wake = self.has_interrupts && self.link.state() != LinkState::Gone;
        can_wake.then(|| self.wake_up.as_fd())
    }

    fn link_state(&self) -> LinkState {
        self.link.state()
    }

    fn link_losses(&self) -> u64 {
        self.link.losses()
    }

    fn drops(&self) -> PortDrops {
        let drops = self.board().socket(self.queue).map(XdpSocket::drops);
        match drops {
            Some(Ok(drops)) => PortDrops {
                ring_full: drops.ring_full,
                no_memory: drops.no_memory,
            },
            _ => self.last_drops,
        }
    }
}
