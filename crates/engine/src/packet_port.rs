//! An interface's frames by an AF_PACKET socket, and sending by one.
//!
//! What must hold: the socket is a tap. The kernel goes on with each frame as if nobody had looked, so a sink by it
//! takes nothing from anybody, and saves the kernel no work.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use nicpoll_core::{Command, Device, Errno};
use nicpoll_sys::packet::{
    FILTER_PORTS_MAX, FrameFilter, PacketCounts, PacketRing, PacketSender, PacketSocket,
};

use crate::device::Intake;
use crate::error::EngineError;
use crate::interface::{index_of, mtu_of};
use crate::port::{LinkWatch, PacketInput, Port, PortDrops, PortInto, PortState, Transmit};
use crate::take::{Fates, Take};

/// All receive queues of an interface, whose packets go to `I`.
pub struct PacketPort<I> {
    ring: PacketRing,
    input: I,
    state: PortState,
    /// As of the last check of status.
    last_counts: PacketCounts,
}

impl<I: PacketInput> PacketPort<I> {
    /// Opens an interface of the calling thread's network namespace. It keeps up to `frames`, a power of two; fewer
    /// where they are long.
    ///
    /// # Errors
    /// When there is no such interface, more ports are asked for than a filter can, or a privilege is missing.
    pub fn open(
        interface: &str,
        take: &Take,
        frames: u32,
        input: I,
    ) -> Result<(Arc<PacketSocket>, Self), EngineError> {
        let ifindex = index_of(interface)?;
        let mtu_bytes = mtu_of(interface)?;
        let filter = filter_of(take)?;
        let refused = |source| refusal(interface, source);
        let socket = Arc::new(PacketSocket::new(ifindex, &filter).map_err(refused)?);
        let ring = PacketRing::new(Arc::clone(&socket), frames, mtu_bytes).map_err(refused)?;
        let port = PacketPort {
            ring,
            input,
            state: PortState::opened(Some(mtu_bytes)),
            last_counts: PacketCounts::default(),
        };
        Ok((socket, port))
    }

    fn counts(&self) -> PacketCounts {
        self.ring.socket().counts().unwrap_or(self.last_counts)
    }
}

fn filter_of(take: &Take) -> Result<FrameFilter, EngineError> {
    match take {
        Take::AllUdp => Ok(FrameFilter::all_udp()),
        Take::Ports(ports) if ports.len() > FILTER_PORTS_MAX => Err(EngineError::Setting {
            what: format!("{} UDP ports by AF_PACKET", ports.len()),
            errno: Errno::Einval,
            range: "2000 are the most; --all-udp takes all of them",
        }),
        Take::Ports(ports) => Ok(FrameFilter::udp_ports(ports.iter().copied())),
    }
}

pub(crate) fn refusal(interface: &str, source: io::Error) -> EngineError {
    let remedy = match rustix::io::Errno::from_io_error(&source) {
        Some(rustix::io::Errno::PERM) => {
            return EngineError::Privileges {
                doing: "opening an AF_PACKET socket",
                capabilities: "CAP_NET_RAW",
                source,
            };
        }
        Some(rustix::io::Errno::NETDOWN) => "; bring the interface up first",
        Some(rustix::io::Errno::NOMEM) => "; the kernel has no memory for its ring or filter",
        _ => "",
    };
    EngineError::PacketSocket {
        interface: interface.to_owned(),
        source,
        remedy,
    }
}

impl<I: PacketInput> Device for PacketPort<I> {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        if command == Command::PollAndCheckStatus {
            let socket = self.ring.socket();
            self.state
                .check(socket.link_state(), socket.mtu_bytes().ok());
            self.last_counts = self.counts();
        }
        let input = &mut self.input;
        self.ring.receive(count, |frame| input.packet(frame))
    }

    fn set_interrupts(&mut self, on: bool) {
        self.state.set_interrupts(on);
    }
}

impl<I: PacketInput> Port for PacketPort<I> {
    fn waiting(&self) -> u32 {
        self.ring.waiting()
    }

    fn wake_up(&self) -> Option<BorrowedFd<'_>> {
        self.state.wake_up(self.ring.socket())
    }

    fn link(&self) -> LinkWatch {
        self.state.link()
    }

    fn drops(&self) -> PortDrops {
        PortDrops {
            ring_full: self.counts().ring_full,
            no_memory: self.ring.too_long(),
        }
    }
}

impl<I: PacketInput> PortInto<I> for PacketPort<I> {
    fn input(&self) -> &I {
        &self.input
    }

    fn input_mut(&mut self) -> &mut I {
        &mut self.input
    }
}

impl Intake for Arc<PacketSocket> {
    fn stop(&mut self) {
        // The filter of an open socket can always be replaced.
        let _ = PacketSocket::stop(self);
    }

    fn fates(&self) -> Result<Fates, EngineError> {
        let counts = self.counts();
        let counts = counts.map_err(|source| EngineError::Thread {
            doing: String::from("reading what the AF_PACKET socket counted"),
            source,
        })?;
        Ok(Fates {
            taken: counts.taken,
            passed: None,
            ..Fates::default()
        })
    }
}

impl Transmit for PacketSender {
    fn room(&mut self) -> u32 {
        PacketSender::room(self)
    }

    fn transmit(
        &mut self,
        most: u32,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        self.send(most, fill)
    }

    fn sent(&self) -> u64 {
        PacketSender::sent(self)
    }
}
