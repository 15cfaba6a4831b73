//! The only hand-written `unsafe` of nicpoll, behind safe functions: namespaces, affinity, scheduling,
//! privileges, sockets, standard output and error, what the process used, leaving the terminal,
//! AF_XDP, AF_PACKET, TAP, and the layouts of BPF maps.
//!
//! What must hold: every `unsafe` block says why it is sound, and nothing here knows of studies,
//! trials or settings.

pub mod affinity;
pub mod bpf_maps;
pub mod daemon;
pub mod ethtool;
mod ifreq;
pub mod link;
pub mod memory;
pub mod netns;
pub mod packet;
pub mod privilege;
pub mod schedule;
pub mod socket;
pub mod stderr;
pub mod stdout;
pub mod tap;
pub mod usage;
pub mod xdp;
