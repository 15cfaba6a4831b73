//! A receive queue whose frames are forwarded: each goes from the memory of the socket that it came to into that of the
//! one that it leaves by, in batches.
//!
//! What must hold: each frame that the socket gave out is handed to an exit, given back to the kernel, or counted as lost
//! at one place. A batch is one poll's; an exit gets each batch with as few system calls as it takes.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use nicpoll_core::{Command, Device};
use nicpoll_sys::link::LinkState;
use nicpoll_sys::xdp::XdpSocket;

use super::exits::Exits;
use super::handed::{place, write_to_send};
use super::leftovers::Leftovers;
use crate::port::{LinkWatch, Port, PortDrops};
use crate::xdp_queue::XdpQueue;

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
    queue: XdpQueue,
    /// Its interface, by its place.
    interface: usize,
    /// Its number at the interface.
    number: usize,
    ways: Arc<Ways>,
    batch: Batch,
    memory: Vec<u8>,
    routed: Routed,
}

impl ForwardPort {
    /// The port of a queue of an interface, both by their numbers.
    pub(super) fn new(socket: XdpSocket, interface: usize, number: usize, ways: Arc<Ways>) -> Self {
        ForwardPort {
            queue: XdpQueue::new(socket),
            interface,
            number,
            ways,
            batch: Batch::default(),
            memory: Vec::new(),
            routed: Routed::default(),
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
        self.queue.check_status();
        let is_up = self.queue.link().state() == LinkState::Up;
        self.ways.exits.note_link(self.interface, is_up);
    }

    fn send(&mut self) {
        for exit in 0..self.ways.exits.count() {
            let mut frames = self.batch.of_exit(exit);
            let wanted = frames.clone().count() as u64;
            if wanted == 0 {
                continue;
            }
            let sent = self.ways.exits.send(exit, self.number, wanted, |memory| {
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
        self.ways.exits.flush(self.interface, self.number);
        let (ways, batch) = (&self.ways, &mut self.batch);
        let (routed, memory) = (&mut self.routed, &mut self.memory);
        let received = self.queue.socket.receive(count, |frame| {
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
        self.queue.set_interrupts(on);
    }
}

impl Port for ForwardPort {
    fn waiting(&self) -> u32 {
        self.queue.waiting()
    }

    fn wake_up(&self) -> Option<BorrowedFd<'_>> {
        self.queue.wake_up()
    }

    fn link(&self) -> LinkWatch {
        self.queue.link()
    }

    fn drops(&self) -> PortDrops {
        self.queue.drops()
    }
}
