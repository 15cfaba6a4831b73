//! Why the engine cannot drive an interface, or send by it.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use nicpoll_core::Errno;
use nicpoll_wire::pcap::PcapError;
use thiserror::Error;

use crate::knobs::KnobRefusal;

/// The engine's thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the engine's thread has ended")]
pub struct EngineEnded;

/// What went wrong with the kernel's side of receiving.
pub type SetupError = Box<dyn std::error::Error + Send + Sync>;

/// Why the engine cannot drive an interface, or send by it.
#[derive(Debug, Error)]
pub enum EngineError {
    /// There is no such interface.
    #[error(
        "there is no interface '{interface}' here; 'ip link' lists those of this network namespace"
    )]
    NoInterface {
        /// Its name.
        interface: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Another program's XDP program is there.
    #[error(
        "interface '{interface}' has an XDP program of another program, which nicpoll does not replace; stop the \
         program that attached it ('ip link show {interface}' shows it)"
    )]
    ForeignProgram {
        /// Its name.
        interface: String,
    },
    /// An interface was named twice.
    #[error("interface '{interface}' is named twice; a router needs two different ones at least")]
    SameInterface {
        /// Its name.
        interface: String,
    },
    /// Options of the engine were given for a path that has none.
    #[error(
        "only the engine has {}; '--path xdp' forwards without it, so leave {} out, or give '--path user'",
        .options.join(", "),
        if .options.len() == 1 { "that" } else { "those" }
    )]
    NoEngine {
        /// Their names.
        options: Vec<&'static str>,
    },
    /// An interface has no Ethernet frames.
    #[error(
        "interface '{interface}' is no Ethernet, and nicpoll sends and forwards frames of Ethernet only"
    )]
    NoEthernet {
        /// Its name.
        interface: String,
    },
    /// Its driver runs no XDP program.
    #[error(
        "the driver of interface '{interface}' runs no XDP programs, and one in the kernel's generic code would forward \
         no faster than the kernel does"
    )]
    NoDriverProgram {
        /// Its name.
        interface: String,
    },
    /// Forwarded packets would go around the kernel's packet filter.
    #[error(
        "the kernel's packet filter has something for packets that are forwarded, and they would not come to it: \
         {filters}; '--past-filters' forwards them all the same"
    )]
    PacketFilter {
        /// What it has.
        filters: String,
    },
    /// The kernel forwards nothing at any of the interfaces.
    #[error(
        "the kernel forwards nothing here, so neither does nicpoll; turn it on with 'sysctl net.ipv4.ip_forward=1' and, \
         for IPv6, 'sysctl net.ipv6.conf.all.forwarding=1'"
    )]
    ForwardingOff,
    /// Frames may be longer than what can be received.
    #[error(
        "interface '{interface}' has an MTU of {mtu_bytes} bytes, and {mtu_bytes_max} are the most that can be received \
         here; lower the MTU with 'ip link set {interface} mtu {mtu_bytes_max}'"
    )]
    Mtu {
        /// Its name.
        interface: String,
        /// Its MTU.
        mtu_bytes: u32,
        /// The largest that would do.
        mtu_bytes_max: u32,
    },
    /// The privileges are not there.
    #[error("{doing} takes {capabilities}; run nicpoll as root")]
    Privileges {
        /// What was being done.
        doing: &'static str,
        /// What it takes.
        capabilities: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel refused the XDP program.
    #[error("the kernel refused the XDP program for '{interface}': {why}")]
    Program {
        /// The interface's name.
        interface: String,
        /// The kernel's reason.
        why: String,
    },
    /// A device, such as the socket of a queue, cannot be had.
    #[error("{device}: {source}{remedy}")]
    Device {
        /// What cannot be had, of which interface.
        device: String,
        /// What the kernel said.
        source: io::Error,
        /// What to do about it, after a semicolon; may be empty.
        remedy: &'static str,
    },
    /// A setting is out of range.
    #[error("{what}: {errno}: {range}")]
    Setting {
        /// The setting.
        what: String,
        /// What the core said.
        errno: Errno,
        /// What is allowed.
        range: &'static str,
    },
    /// A knob is out of range.
    #[error(transparent)]
    Knob(#[from] KnobRefusal),
    /// The kernel's side of receiving could not be changed.
    #[error("the kernel's side of '{interface}' cannot be set to {side}: {source}")]
    KernelSide {
        /// The interface's name.
        interface: String,
        /// What was asked for.
        side: &'static str,
        /// Why not.
        source: SetupError,
    },
    /// CPUs were given for threads that there are none of.
    #[error(
        "'--kernel-side {side}' has no kernel threads that '--kernel-cpu' could be for; leave that out, or give \
         '--kernel-side threaded'"
    )]
    NoKernelThreads {
        /// What was asked for.
        side: &'static str,
    },
    /// What was changed of the kernel's side is still changed.
    #[error(
        "what was changed of the kernel's side of '{interface}' (to {side}) could not be put back: {source}; 'nicpoll \
         restore' tries again"
    )]
    PutBack {
        /// The interface's name.
        interface: String,
        /// What it is now.
        side: String,
        /// Why.
        source: SetupError,
    },
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
    /// The thread cannot run as it has to.
    #[error("{doing}: {source}")]
    Thread {
        /// What was being done.
        doing: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl EngineError {
    /// Whether another device may have the interface all the same.
    pub(crate) fn is_of_device(&self) -> bool {
        matches!(
            self,
            EngineError::ForeignProgram { .. }
                | EngineError::Mtu { .. }
                | EngineError::Privileges { .. }
                | EngineError::Program { .. }
                | EngineError::Device { .. }
        )
    }

    /// Whether the file to replay is missing, cannot be read or is no capture.
    pub fn is_of_file(&self) -> bool {
        matches!(
            self,
            EngineError::Read { .. }
                | EngineError::Capture { .. }
                | EngineError::NothingToReplay { .. }
        )
    }

    /// Whether a privilege or a kernel feature is missing.
    pub fn is_missing(&self) -> bool {
        matches!(self, EngineError::Privileges { .. })
    }
}

impl From<EngineEnded> for EngineError {
    fn from(ended: EngineEnded) -> Self {
        EngineError::Thread {
            doing: String::from("asking the engine"),
            source: io::Error::other(ended),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_option_is_left_out_and_so_are_several() {
        for (options, told) in [
            (vec!["--hz"], ["has --hz;", "leave that out"]),
            (
                vec!["--hz", "--set"],
                ["has --hz, --set;", "leave those out"],
            ),
        ] {
            let text = EngineError::NoEngine { options }.to_string();
            assert!(told.iter().all(|words| text.contains(words)), "{text}");
        }
    }
}
