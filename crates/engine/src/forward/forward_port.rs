//! A receive queue whose frames are forwarded: each goes from the memory of the socket that it came to into that of the
//! one that it leaves by, in batches.
//!
//! What must hold: each frame that the socket gave out is handed to an exit, given back to the kernel, or counted as lost
//! at one place. A batch is one poll's; an exit gets each batch with as few system calls as it takes.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nicpoll_core::{Command, Device};
use nicpoll_sys::link::LinkState;
use nicpoll_sys::xdp::XdpSocket;

use super::exits::Exits;
use super::handed::{place, write_to_send};
use super::leftovers::Leftovers;
use crate::port::{LinkWatch, Port, PortDrops};

/// What became of the frames of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Routed {
    /// Handed to their exits.
    pub(super) forwarded: u64,
    /// Given back to the kernel: their exit was gone.
    pub(super) given_back: u64,
    /// Their exit was gone, and the kernel did not take them back.
    pub(super) exit_refused: u64,
    /// Their exit had no room.
    pub(super) exit_full: u64,
}

/// A frame that is to leave.
#[derive(Clone, Copy)]
struct Staged {
    exit: usize,
    begin: usize,
    bytes: usize,
}

/// The frames of one poll.
#[derive(Default)]
struct Batch {
    staged: Vec<Staged>,
    bytes: Vec<u8>,
}

impl Batch {
    fn add(&mut self, frame: &[u8], exit: usize) {
        self.staged.push(Staged {
            exit,
            begin: self.bytes.len(),
            bytes: frame.len(),
        });
        self.bytes.extend_from_slice(frame);
    }

    /// The frames for an exit, in the order in which they came.
    fn of_exit(&self, exit: usize) -> impl Iterator<Item = &[u8]> + Clone {
        let staged = self.staged.iter().filter(move |frame| frame.exit == exit);
        staged.filter_map(|frame| self.bytes.get(frame.begin..frame.begin + frame.bytes))
    }

    fn clear(&mut self) {
        self.staged.clear();
        self.bytes.clear();
    }
}

/// Where the frames of all queues go.
pub(super) struct Ways {
    pub(super) exits: Exits,
    /// `None` where the kernel has no TAP interfaces.
    pub(super) leftovers: Option<Leftovers>,
}

/// A receive queue whose frames are forwarded.
pub(super) struct ForwardPort {
    socket: XdpSocket,
    /// Its interface, by its place.
    interface: usize,
    /// Its number at the interface.
    queue: usize,
    ways: Arc<Ways>,
    batch: Batch,
    memory: Vec<u8>,
    routed: Routed,
    has_interrupts: bool,
    link: LinkWatch,
    /// As of when the interface went, if it did: it has no counters any more.
    last_drops: PortDrops,
}

impl ForwardPort {
    /// The port of a queue of an interface, both by their numbers.
    pub(super) fn new(socket: XdpSocket, interface: usize, queue: usize, ways: Arc<Ways>) -> Self {
        ForwardPort {
            socket,
            interface,
            queue,
            ways,
            batch: Batch::default(),
            memory: Vec::new(),
            routed: Routed::default(),
            has_interrupts: true,
            link: LinkWatch::up(),
            last_drops: PortDrops::default(),
        }
    }

    /// Its interface, by its place.
    pub(super) fn interface(&self) -> usize {
        self.interface
    }

    /// What became of its frames.
    pub(super) fn routed(&self) -> Routed {
        self.routed
    }

    fn check_status(&mut self) {
        self.link.observe(self.socket.link_state());
        let is_up = self.link.state() == LinkState::Up;
        self.ways.exits.note_link(self.interface, is_up);
        self.last_drops = self.drops();
    }

    fn send(&mut self) {
        for exit in 0..self.ways.exits.count() {
            let mut frames = self.batch.of_exit(exit);
            let wanted = frames.clone().count() as u64;
            if wanted == 0 {
                continue;
            }
            let sent = self.ways.exits.send(exit, self.queue, wanted, |memory| {
                write_to_send(frames.next()?, memory)
            });
            self.routed.forwarded += sent.taken;
            self.routed.exit_full += sent.full;
        }
        self.batch.clear();
    }
}

impl Device for ForwardPort {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        if command == Command::PollAndCheckStatus {
            self.check_status();
        }
        // What the driver did not take yet.
        self.ways.exits.flush(self.interface, self.queue);
        let (ways, batch) = (&self.ways, &mut self.batch);
        let (routed, memory) = (&mut self.routed, &mut self.memory);
        let received = self.socket.receive(count, |frame| {
            let exit = place(frame).filter(|exit| ways.exits.takes(*exit, frame.len()));
            match (exit, &ways.leftovers) {
                (Some(exit), _) => batch.add(frame, exit),
                (None, Some(leftovers)) if leftovers.give_back(frame, memory) => {
                    routed.given_back += 1;
                }
                (None, _) => routed.exit_refused += 1,
            }
        });
        if received > 0 {
            self.send();
        }
        received
    }

    fn set_interrupts(&mut self, on: bool) {
        self.has_interrupts = on;
    }
}

impl Port for ForwardPort {
    fn waiting(&self) -> u32 {
        self.socket.waiting()
    }

    fn wake_up(&self) -> Option<BorrowedFd<'_>> {
        let can_wake = self.has_interrupts && self.link.state() != LinkState::Gone;
        can_wake.then(|| self.socket.as_fd())
    }

    fn link(&self) -> LinkWatch {
        self.link
    }

    fn drops(&self) -> PortDrops {
        self.socket.drops().map_or(self.last_drops, PortDrops::from)
    }
}
