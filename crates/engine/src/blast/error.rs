//! Why frames cannot be sent.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use nicpoll_wire::pcap::PcapError;
use thiserror::Error;

/// Why frames cannot be sent.
#[derive(Debug, Error)]
pub enum BlastError {
    /// The interface is down.
    #[error("interface '{interface}' is down; bring it up first: ip link set {interface} up")]
    Down {
        /// Its name.
        interface: String,
    },
    /// No route leads there.
    #[error(
        "no route to {to} from '{interface}': {source}; add one ('ip route add {to} dev {interface}' where the receiver \
         is on the link, 'ip route add {to} via ROUTER' where it is not), or name the receiver's hardware address and an \
         address to send from: --mac MAC --from ADDRESS"
    )]
    NoRoute {
        /// The interface's name.
        interface: String,
        /// The receiver.
        to: IpAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The address is not one host's, or this one's.
    #[error(
        "{to} is not the address of one other host; frames to a group or to this host need --mac MAC and \
         --from ADDRESS"
    )]
    NotOneHost {
        /// The receiver.
        to: IpAddr,
    },
    /// The interface has no address to send from.
    #[error(
        "interface '{interface}' has no address to reach {to} from; give it one, or name one: --from ADDRESS"
    )]
    NoAddress {
        /// The interface's name.
        interface: String,
        /// The receiver.
        to: IpAddr,
    },
    /// One address is IPv4's and the other IPv6's.
    #[error("{from} and {to} are not of one family")]
    MixedFamilies {
        /// The sender.
        from: IpAddr,
        /// The receiver.
        to: IpAddr,
    },
    /// The hardware address of the receiver or its router cannot be had.
    #[error(
        "the hardware address of {address} at '{interface}' cannot be had: {why}; name it: --mac MAC"
    )]
    NoNeighbour {
        /// The interface's name.
        interface: String,
        /// Receiver or router.
        address: IpAddr,
        /// Why not.
        why: String,
    },
    /// A frame is longer than the interface sends.
    #[error(
        "frames of {frame_bytes} bytes are longer than '{interface}' sends: its MTU of {mtu_bytes} bytes allows \
         {frame_bytes_max} with header and FCS; send shorter ones, or raise the MTU"
    )]
    FrameTooLong {
        /// The interface's name.
        interface: String,
        /// The longest frame that was asked for, with FCS.
        frame_bytes: u32,
        /// The interface's MTU.
        mtu_bytes: u32,
        /// What it allows.
        frame_bytes_max: u32,
    },
    /// A frame is too short for what it has to carry.
    #[error(
        "frames of {frame_bytes} bytes are too short: headers, number and time to {to} take {frame_bytes_min} with FCS"
    )]
    FrameTooShort {
        /// The shortest frame that was asked for, with FCS.
        frame_bytes: u32,
        /// The receiver.
        to: IpAddr,
        /// The shortest that is possible.
        frame_bytes_min: u32,
    },
    /// Frames cannot go that way.
    #[error("'{interface}' cannot send by {path}: {why}")]
    NoPath {
        /// The interface's name.
        interface: String,
        /// The way, by name.
        path: &'static str,
        /// Why not, and what to do.
        why: String,
    },
    /// The capture cannot be read.
    #[error("cannot read {}: {source}", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is no capture.
    #[error("cannot replay {}: {source}", .file.display())]
    Capture {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: PcapError,
    },
    /// It holds nothing that could be sent.
    #[error("cannot replay {}: {why}", .file.display())]
    NothingToReplay {
        /// The file.
        file: PathBuf,
        /// Why not, and what to do.
        why: &'static str,
    },
}

impl BlastError {
    /// Whether the file to replay is missing, cannot be read or is no capture.
    pub fn is_of_file(&self) -> bool {
        matches!(
            self,
            BlastError::Read { .. }
                | BlastError::Capture { .. }
                | BlastError::NothingToReplay { .. }
        )
    }
}
