//! The ways for frames to leave, fastest first, and which is taken.
//!
//! What must hold: nobody else asks which way it is. Each says in words why it cannot be had.

use netlink_socket2::NetlinkSocket;
use nicpoll_model::blast::PathRefused;
use nicpoll_sys::packet::PacketSender;
use nicpoll_wire::frame::ETHERNET_BYTES;

use super::error::BlastError;
use super::joined::JoinedSender;
use super::live::{self, Live};
use super::outlet::{DeviceOutlet, Outlet};
use super::replay::Replay;
use super::stream::Stream;
use crate::error::EngineError;
use crate::interface::{Interface, takes_redirected};
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

struct Row {
    path: BlastPath,
    name: &'static str,
}

const TABLE: [Row; 3] = [
    Row {
        path: BlastPath::Live,
        name: "live",
    },
    Row {
        path: BlastPath::AfXdp,
        name: "af-xdp",
    },
    Row {
        path: BlastPath::AfPacket,
        name: "af-packet",
    },
];

/// The name for "the best that can be had".
const AUTO: &str = "auto";

/// Frames a second up to which they are sent one by one: the kernel's own frames come in batches, which take a system
/// call of some 50 us each.
const ONE_BY_ONE_MAX: f64 = 250_000.0;

impl BlastPath {
    /// The name by which it is chosen.
    pub fn name(self) -> &'static str {
        let mut rows = TABLE.iter();
        let row = rows.find(|row| row.path == self);
        row.expect("every path has its row").name
    }

    /// The names of all, and of the choice between them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|row| row.name).chain([AUTO])
    }

    /// The path of a name; `Some(None)` for `auto`.
    pub fn from_name(name: &str) -> Option<Option<BlastPath>> {
        let row = TABLE.iter().find(|row| row.name == name);
        match row {
            Some(row) => Some(Some(row.path)),
            None => (name == AUTO).then_some(None),
        }
    }

    fn no(self, interface: &Interface, why: &str) -> BlastError {
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

/// A way that was opened.
pub(super) struct Opened {
    pub(super) path: BlastPath,
    pub(super) outlet: Box<dyn Outlet>,
    /// Whether the kernel is given many frames as one, and cuts them up.
    pub(super) is_cut_by_kernel: bool,
    /// The faster ways that cannot be had, and why.
    pub(super) refused: Vec<PathRefused>,
}

/// Opens the way that was asked for, or the best one for this rate.
///
/// # Errors
/// When none can be had.
pub(super) fn open(
    wanted: Option<BlastPath>,
    interface: &Interface,
    frames: &Frames,
    frames_per_second: Option<f64>,
) -> Result<Opened, EngineError> {
    let mut refused = Vec::new();
    let mut failed = None;
    for row in &TABLE {
        if wanted.is_some_and(|wanted| wanted != row.path) {
            continue;
        }
        if wanted.is_none() && !suits(row.path, frames_per_second) {
            refused.push(PathRefused {
                path: String::from(row.name),
                why: String::from("at this rate frames are better sent one by one"),
            });
            continue;
        }
        match outlet(row.path, interface, frames) {
            Ok((outlet, is_cut_by_kernel)) => {
                return Ok(Opened {
                    path: row.path,
                    outlet,
                    is_cut_by_kernel,
                    refused,
                });
            }
            Err(error) => {
                refused.push(PathRefused {
                    path: String::from(row.name),
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

/// What frames leave by, and whether the kernel is given many as one.
fn outlet(
    path: BlastPath,
    interface: &Interface,
    frames: &Frames,
) -> Result<(Box<dyn Outlet>, bool), EngineError> {
    match (path, frames) {
        (BlastPath::Live, Frames::Stream(stream)) => {
            check_live(interface, stream)?;
            Ok((Box::new(Live::open(interface, stream)?), false))
        }
        (BlastPath::Live, Frames::Replay(_)) => {
            let why = "it makes its own frames and cannot replay those of a capture";
            Err(path.no(interface, why).into())
        }
        (BlastPath::AfXdp, frames) => {
            let device = open_sender(&interface.name, 0)?;
            Ok((by_device(device, frames), false))
        }
        (BlastPath::AfPacket, frames) => {
            let frame_bytes_max = interface.mtu_bytes + ETHERNET_BYTES as u32;
            if let Some(device) = joined(interface, frame_bytes_max, frames) {
                return Ok((by_device(device, frames), true));
            }
            let device = PacketSender::new(interface.ifindex, frame_bytes_max);
            let device = device.map_err(|source| refusal(&interface.name, source))?;
            Ok((by_device(device, frames), false))
        }
    }
}

/// A sender of frames that are handed over joined, where they can be.
fn joined(interface: &Interface, frame_bytes_max: u32, frames: &Frames) -> Option<JoinedSender> {
    match frames {
        Frames::Stream(stream) => {
            JoinedSender::open(interface, frame_bytes_max, &stream.joining()?)
        }
        Frames::Replay(_) => None,
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
    fn each_name_is_that_of_one_path() {
        for row in &TABLE {
            assert_eq!(BlastPath::from_name(row.name), Some(Some(row.path)));
            assert_eq!(row.path.name(), row.name);
        }
        assert_eq!(BlastPath::from_name("auto"), Some(None));
        assert_eq!(BlastPath::from_name("raw"), None);
        assert_eq!(BlastPath::names().count(), TABLE.len() + 1);
    }

    #[test]
    fn frames_of_a_low_rate_are_sent_one_by_one() {
        assert!(suits(BlastPath::Live, None));
        assert!(suits(BlastPath::Live, Some(1e6)));
        assert!(!suits(BlastPath::Live, Some(1e4)));
        assert!(suits(BlastPath::AfXdp, None));
    }
}
