//! AF_PACKET: copies of an interface's frames. The kernel goes on with each frame as if nobody had looked, so receiving
//! this way takes nothing from anybody and saves the kernel no work.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nicpoll_model::engine::SinkFates;
use nicpoll_sys::packet::{FILTER_PORTS_MAX, FrameFilter, PacketRing, PacketSocket, ReceiverDrops};
use rustix::io::Errno;

use crate::device::interface::link_of;
use crate::device::port::{
    DeviceKind, Intake, Opened, PacketInput, Port, ReceiveQueue, Reception, Take,
};
use crate::error::EngineError;

/// Opens an interface of the calling thread's network namespace, all its receive queues by one socket. It keeps fewer
/// frames than asked where they are long.
///
/// # Errors
/// When there is no such interface, more ports are asked for than a filter can, or a privilege is missing.
pub(super) fn open<I: PacketInput + Send + 'static>(
    reception: &Reception<'_>,
    input: I,
) -> Result<Opened<I>, EngineError> {
    let (interface, frames) = (reception.interface, reception.frames);
    let (link, mtu_bytes) = link_of(interface)?;
    let filter = filter_of(reception.take)?;
    let socket = PacketSocket::new(&filter).and_then(|socket| {
        let socket = Arc::new(socket);
        let ring = PacketRing::new(Arc::clone(&socket), link.ifindex(), frames, mtu_bytes)?;
        Ok((socket, ring))
    });
    let (socket, ring) = socket.map_err(|source| refusal(interface, source))?;
    let port = Port::new(ring, link, input);
    Ok(Opened::by(DeviceKind::AfPacket, port, socket))
}

fn filter_of(take: &Take) -> Result<FrameFilter, EngineError> {
    match take {
        Take::AllUdp => Ok(FrameFilter::all_udp()),
        Take::Ports(ports) if ports.len() > FILTER_PORTS_MAX => Err(EngineError::Usage(format!(
            "{} UDP ports by AF_PACKET: EINVAL: 2000 are the most; --all-udp takes all of them",
            ports.len()
        ))),
        Take::Ports(ports) => Ok(FrameFilter::udp_ports(ports.iter().copied())),
    }
}

pub(crate) fn refusal(interface: &str, source: io::Error) -> EngineError {
    EngineError::device(
        format!("interface '{interface}' gets no AF_PACKET socket"),
        ("opening an AF_PACKET socket", "CAP_NET_RAW"),
        &[
            (Errno::NETDOWN, "; bring the interface up first"),
            (
                Errno::NOMEM,
                "; the kernel has no memory for its ring or filter",
            ),
        ],
        source,
    )
}

impl<I: PacketInput> ReceiveQueue<I> for PacketRing {
    fn receive(&mut self, most: u32, input: &mut I) -> u32 {
        PacketRing::receive(self, most, |frame| input.packet(frame))
    }

    fn waiting(&self) -> u32 {
        PacketRing::waiting(self)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }

    fn drops(&self) -> io::Result<ReceiverDrops> {
        Ok(ReceiverDrops {
            ring_full: self.socket().counts()?.ring_full,
            no_memory: self.too_long(),
        })
    }
}

impl Intake for Arc<PacketSocket> {
    fn stop(&mut self) {
        // The filter of an open socket can always be replaced.
        let _ = PacketSocket::stop(self);
    }

    fn fates(&self) -> Result<SinkFates, EngineError> {
        let doing = "reading what the AF_PACKET socket counted";
        let counts = self
            .counts()
            .map_err(|error| EngineError::io(doing, &error));
        Ok(SinkFates {
            taken_packets: counts?.taken,
            passed_packets: None,
            ..SinkFates::default()
        })
    }
}
