//! The ways for frames to leave, fastest first, and which is taken.
//!
//! What must hold: nobody else asks which way it is. Each says in words why it cannot be had.

use netlink_socket2::NetlinkSocket;
use nicpoll_model::blast::PathRefused;
use nicpoll_sys::packet::{Joining, PacketSender};
use nicpoll_wire::frame::ETHERNET_BYTES;

use super::error::BlastError;
use super::joined::{JoinedSender, NotJoined};
use super::live::{self, Live};
use super::outlet::{DeviceOutlet, Outlet};
use super::replay::Replay;
use super::stream::Stream;
use crate::error::EngineError;
use crate::interface::{Interface, takes_redirected};
use crate::names::{Choice, Named};
use crate::packet_port::refusal;
use crate::port::Transmit;
use crate::xdp_sender::open_sender;

/// A way for frames to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastPath {
    /// The kernel makes the frames itself (BPF_PROG_TEST_RUN with live frames).
    Live,
    /// An AF_XDP socket.
    AfXdp,
    /// An AF_PACKET socket.
    AfPacket,
}

/// The fastest first.
const PATHS: [(BlastPath, &str); 3] = [
    (BlastPath::Live, "live"),
    (BlastPath::AfXdp, "af-xdp"),
    (BlastPath::AfPacket, "af-packet"),
];

impl Named for BlastPath {
    fn all() -> impl Iterator<Item = (Self, &'static str)> {
        PATHS.into_iter()
    }
}

/// Frames a second up to which they are sent one by one: the kernel's own frames come in batches, which take a system
/// call of some 50 us each.
const ONE_BY_ONE_MAX: f64 = 250_000.0;

impl BlastPath {
    pub(super) fn no(self, interface: &Interface, why: &str) -> BlastError {
        BlastError::NoPath {
            interface: interface.name.clone(),
            path: self.name(),
            why: why.to_owned(),
        }
    }
}

/// What is to leave.
#[derive(Clone)]
pub(super) enum Frames {
    /// Datagrams, made as they are sent.
    Stream(Stream),
    /// Those of a capture.
    Replay(Replay),
}

impl Frames {
    /// How they can be handed over joined; `None` where one is not like the next.
    fn joining(&self) -> Option<Joining> {
        match self {
            Frames::Stream(stream) => stream.joining(),
            Frames::Replay(_) => None,
        }
    }
}

/// A way that was opened.
pub(super) struct Opened {
    pub(super) path: BlastPath,
    pub(super) way: Way,
    /// The faster ways that cannot be had, and why.
    pub(super) refused: Vec<PathRefused>,
}

/// What frames leave by, and how they are handed over.
pub(super) struct Way {
    pub(super) outlet: Box<dyn Outlet>,
    /// Whether the kernel is given many frames as one, and cuts them up.
    pub(super) is_cut_by_kernel: bool,
    /// Why not, where it could be.
    pub(super) not_joined: Option<NotJoined>,
}

impl Way {
    fn singly(outlet: Box<dyn Outlet>) -> Self {
        Way {
            outlet,
            is_cut_by_kernel: false,
            not_joined: None,
        }
    }
}

/// Opens the way that was asked for, or the best one for this rate.
///
/// # Errors
/// When none can be had.
pub(super) fn open(
    wanted: Choice<BlastPath>,
    interface: &Interface,
    frames: &Frames,
    frames_per_second: Option<f64>,
) -> Result<Opened, EngineError> {
    let mut refused = Vec::new();
    let mut failed = None;
    for (path, name) in BlastPath::all() {
        match wanted {
            Choice::Only(only) if only != path => continue,
            Choice::Auto if !suits(path, frames_per_second) => {
                refused.push(PathRefused {
                    path: String::from(name),
                    why: String::from("at this rate frames are better sent one by one"),
                });
                continue;
            }
            Choice::Only(_) | Choice::Auto => {}
        }
        match way(path, interface, frames) {
            Ok(way) => return Ok(Opened { path, way, refused }),
            Err(error) => {
                refused.push(PathRefused {
                    path: String::from(name),
                    why: error.to_string(),
                });
                failed = Some(error);
            }
        }
    }
    Err(failed.unwrap_or_else(|| BlastPath::AfXdp.no(interface, "it is not there").into()))
}

fn suits(path: BlastPath, frames_per_second: Option<f64>) -> bool {
    match path {
        BlastPath::Live => frames_per_second.is_none_or(|rate| rate > ONE_BY_ONE_MAX),
        BlastPath::AfXdp | BlastPath::AfPacket => true,
    }
}

fn way(path: BlastPath, interface: &Interface, frames: &Frames) -> Result<Way, EngineError> {
    match (path, frames) {
        (BlastPath::Live, Frames::Stream(stream)) => {
            check_live(interface, stream)?;
            Ok(Way::singly(Box::new(Live::open(interface, stream)?)))
        }
        (BlastPath::Live, Frames::Replay(_)) => {
            let why = "it makes its own frames and cannot replay those of a capture";
            Err(path.no(interface, why).into())
        }
        (BlastPath::AfXdp, frames) => {
            let device = open_sender(&interface.name, 0)?;
            Ok(Way::singly(by_device(device, frames)))
        }
        (BlastPath::AfPacket, frames) => {
            let frame_bytes_max = interface.mtu_bytes + ETHERNET_BYTES as u32;
            let joined = frames
                .joining()
                .map(|joining| JoinedSender::open(interface, frame_bytes_max, &joining));
            if let Some(Ok(device)) = joined {
                return Ok(Way {
                    is_cut_by_kernel: true,
                    ..Way::singly(by_device(device, frames))
                });
            }
            let device = PacketSender::new(interface.ifindex, frame_bytes_max);
            let device = device.map_err(|source| refusal(&interface.name, source))?;
            Ok(Way {
                not_joined: joined.and_then(Result::err),
                ..Way::singly(by_device(device, frames))
            })
        }
    }
}

fn by_device(device: impl Transmit + Send + 'static, frames: &Frames) -> Box<dyn Outlet> {
    match frames.clone() {
        Frames::Stream(stream) => Box::new(DeviceOutlet::new(device, stream)),
        Frames::Replay(replay) => Box::new(DeviceOutlet::new(device, replay)),
    }
}

/// Frames that the interface does not take would vanish, and nobody would say so.
fn check_live(interface: &Interface, stream: &Stream) -> Result<(), BlastError> {
    if takes_redirected(&mut NetlinkSocket::new(), interface.ifindex) == Some(false) {
        let why = "its driver takes no frames from XDP programs, and all would vanish. A veth does when its other end \
                   has a NAPI, for GRO or for an XDP program: ethtool -K PEER gro on";
        return Err(BlastPath::Live.no(interface, why));
    }
    if stream.longest().len() > live::FRAME_BYTES_MAX {
        let why = format!(
            "frames of {} bytes at most fit the kernel's memory",
            live::FRAME_BYTES_MAX
        );
        return Err(BlastPath::Live.no(interface, &why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_low_rate_are_sent_one_by_one() {
        assert!(suits(BlastPath::Live, None));
        assert!(suits(BlastPath::Live, Some(1e6)));
        assert!(!suits(BlastPath::Live, Some(1e4)));
        assert!(suits(BlastPath::AfXdp, None));
    }
}
