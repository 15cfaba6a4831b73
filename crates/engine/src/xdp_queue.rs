//! A receive queue by an AF_XDP socket: what every port that receives by one has of [`Port`](crate::port::Port).

use std::os::fd::BorrowedFd;

use nicpoll_sys::xdp::XdpSocket;

use crate::port::{LinkWatch, PortDrops, PortState};

/// A socket, and what is known of its interface.
pub(crate) struct XdpQueue {
    pub(crate) socket: XdpSocket,
    state: PortState,
    /// As of when the interface went, if it did: it has no counters any more.
    last_drops: PortDrops,
}

impl XdpQueue {
    pub(crate) fn new(socket: XdpSocket) -> Self {
        XdpQueue {
            state: PortState::opened(socket.mtu_bytes().ok()),
            socket,
            last_drops: PortDrops::default(),
        }
    }

    pub(crate) fn check_status(&mut self) {
        let (link, mtu_bytes) = (self.socket.link_state(), self.socket.mtu_bytes());
        self.state.check(link, mtu_bytes.ok());
        self.last_drops = self.drops();
    }

    pub(crate) fn set_interrupts(&mut self, on: bool) {
        self.state.set_interrupts(on);
    }

    pub(crate) fn waiting(&self) -> u32 {
        self.socket.waiting()
    }

    pub(crate) fn wake_up(&self) -> Option<BorrowedFd<'_>> {
        self.state.wake_up(&self.socket)
    }

    pub(crate) fn link(&self) -> LinkWatch {
        self.state.link()
    }

    pub(crate) fn drops(&self) -> PortDrops {
        self.socket.drops().map_or(self.last_drops, PortDrops::from)
    }
}
