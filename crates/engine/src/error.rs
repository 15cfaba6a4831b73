//! Why the engine cannot drive an interface.

use std::io;

use nicpoll_core::Errno;
use thiserror::Error;

use crate::knobs::KnobRefusal;

/// Why the engine cannot drive an interface.
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
    /// A queue has no socket.
    #[error("queue {queue} of interface '{interface}' gets no AF_XDP socket: {source}{remedy}")]
    Socket {
        /// The interface's name.
        interface: String,
        /// The queue.
        queue: u32,
        /// What the kernel said.
        source: io::Error,
        /// What to do about it, after a semicolon; may be empty.
        remedy: &'static str,
    },
    /// The interface has no AF_PACKET socket.
    #[error("interface '{interface}' gets no AF_PACKET socket: {source}{remedy}")]
    PacketSocket {
        /// The interface's name.
        interface: String,
        /// What the kernel said.
        source: io::Error,
        /// What to do about it, after a semicolon; may be empty.
        remedy: &'static str,
    },
    /// This end of the link is not to be had.
    #[error("'{interface}' cannot be a TAP interface of nicpoll's: {source}{remedy}")]
    Tap {
        /// The interface's name.
        interface: String,
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
        source: crate::SetupError,
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
        source: crate::SetupError,
    },
    /// Frames cannot be sent.
    #[error(transparent)]
    Blast(#[from] crate::blast::BlastError),
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
                | EngineError::Socket { .. }
        )
    }

    /// Whether a privilege or a kernel feature is missing.
    pub fn is_missing(&self) -> bool {
        matches!(self, EngineError::Privileges { .. })
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
