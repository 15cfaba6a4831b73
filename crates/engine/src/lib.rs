//! The polling core on real interfaces: what FreeBSD's polling(4) was for a kernel, for a program of Linux, without
//! taking the card from its driver.
//!
//! A [`Port`] is an interface's receive queue as `nicpoll-core` polls it. A [`PortRunner`] is what a kernel is around the
//! core: it brings the ticks, or sleeps until packets come, by the [`Drive`] that was asked for. An [`Engine`] is
//! a runner on a thread of its own. [`Sink`] receives and counts; [`blast::Blast`] sends; [`Forward`] routes.
//!
//! What must hold: the core runs unchanged. A frame that the XDP program took is delivered or counted as lost at one
//! place. When the program ends, in whatever way, the interface is as it was before.
#![forbid(unsafe_code)]

mod adapt;
mod application;
pub mod blast;
mod charge;
mod check;
mod clock;
mod device;
mod drive;
mod engine;
mod engines;
mod error;
mod forward;
mod idle;
mod interface;
mod knob_socket;
mod knobs;
mod names;
mod packet_port;
mod port;
mod program;
mod receive_setup;
mod runner;
mod sink;
mod take;
mod tallies;
mod tap_port;
mod work;
mod xdp_port;
mod xdp_queue;
mod xdp_sender;

pub use application::EngineApplication;
pub use charge::{CpuAccount, CpuAccounts, NoAccounts};
pub use check::{CheckedStreams, MarkIds, PacketCheck, STREAMS_MAX};
pub use device::{DeviceChoice, DeviceKind, Intake, Opened, Reception};
pub use drive::{Drive, Scheduling};
pub use engine::{Engine, EngineEnded};
pub use engines::{EngineSettings, Engines, knob_of_all};
pub use error::EngineError;
pub use forward::{Forward, ForwardPath, ForwardSettings};
pub use idle::IdlePolling;
pub use knob_socket::{KnobAnswer, RunningEngine};
pub use knobs::{
    KnobNameError, KnobRefusal, KnobSettingError, over_all_cpus, parse_knob, parse_knob_setting,
    write_knob,
};
pub use names::{Choice, Named, UnknownName};
pub use packet_port::PacketPort;
pub use port::{AnyPort, BusyPolling, LinkWatch, PacketInput, Port, PortDrops, PortInto, Transmit};
pub use receive_setup::{GrantedSetup, Helpers, KernelSide, ReceiveSetup, ReceiveWish, SetupError};
pub use runner::{PortRunner, RunnerSettings};
pub use sink::{Sink, SinkSettings};
pub use take::{Fates, Take, Taker};
pub use tallies::Tallies;
pub use tap_port::{TapEnd, TapPort};
pub use work::Work;
pub use xdp_port::{FRAMES_MAX, XdpPort};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
