//! The only hand-written `unsafe` of nicpoll, behind safe functions.
//!
//! Every `unsafe` block says why it is sound. Nothing here knows of studies, trials or settings. Start with [`packet`]
//! and [`xdp`] for frames, [`socket`] for datagrams, [`netns`] for network namespaces, [`program`] for running other
//! programs.

pub mod bpf_maps;
pub mod ethtool;
mod kernel;
pub mod link;
pub mod netns;
pub mod packet;
pub mod privilege;
pub mod program;
pub mod schedule;
pub mod socket;
pub mod stdio;
pub mod xdp;
