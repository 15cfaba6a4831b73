//! AF_PACKET: copies of an interface's frames. The kernel goes on with each frame as if nobody had looked, so receiving
//! this way takes nothing from anybody and saves the kernel no work.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nicpoll_core::Errno;
use nicpoll_model::engine::SinkFates;
use nicpoll_sys::link::LinkState;
use nicpoll_sys::packet::{
    FILTER_PORTS_MAX, FrameFilter, PacketCounts, PacketRing, PacketSender, PacketSocket,
};

use crate::device::interface::{index_of, mtu_of};
use crate::device::port::{Intake, PacketInput, PortDrops, Queue, QueuePort, Transmit};
use crate::device::xdp::Take;
use crate::error::EngineError;

/// All receive queues of an interface, by one socket.
pub struct PacketQueue {
    ring: PacketRing,
    /// As of the last check of status.
    last_counts: PacketCounts,
}

/// All receive queues of an interface, whose packets go to `I`.
pub type PacketPort<I> = QueuePort<PacketQueue, I>;

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
        let queue = PacketQueue {
            ring,
            last_counts: PacketCounts::default(),
        };
        Ok((socket, QueuePort::new(queue, input)))
    }
}

impl PacketQueue {
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
    EngineError::Device {
        device: format!("interface '{interface}' gets no AF_PACKET socket"),
        source,
        remedy,
    }
}

impl Queue for PacketQueue {
    fn receive(&mut self, most: u32, each: impl FnMut(&[u8])) -> u32 {
        self.ring.receive(most, each)
    }

    fn waiting(&self) -> u32 {
        self.ring.waiting()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.ring.socket().as_fd()
    }

    fn check(&mut self) -> (LinkState, Option<u32>) {
        self.last_counts = self.counts();
        let socket = self.ring.socket();
        (socket.link_state(), socket.mtu_bytes().ok())
    }

    fn drops(&self) -> PortDrops {
        PortDrops {
            ring_full: self.counts().ring_full,
            no_memory: self.ring.too_long(),
        }
    }
}

impl Intake for Arc<PacketSocket> {
    fn stop(&mut self) {
        // The filter of an open socket can always be replaced.
        let _ = PacketSocket::stop(self);
    }

    fn fates(&self) -> Result<SinkFates, EngineError> {
        let counts = self.counts();
        let counts = counts.map_err(|source| EngineError::Thread {
            doing: String::from("reading what the AF_PACKET socket counted"),
            source,
        })?;
        Ok(SinkFates {
            taken_packets: counts.taken,
            passed_packets: None,
            ..SinkFates::default()
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
