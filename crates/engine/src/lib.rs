//! The polling core on real interfaces: what FreeBSD's polling(4) was for a kernel, for a program of Linux, without
//! taking the card from its driver.
//!
//! A [`Port`] is an interface's receive queue as `nicpoll-core` polls it (`device`). A [`PortRunner`] is what a kernel is
//! around the core: it brings the ticks, or sleeps until packets come, by the requested [`Drive`] (`runner`). An [`Engine`]
//! is a runner on a thread of its own (`engine`). [`Sink`] receives and counts; [`blast::Blast`] sends; [`Forward`] routes.
//!
//! The core runs unchanged. A frame that the XDP program took is delivered or counted as lost at one place. When the
//! program ends, in whatever way, the interface is as it was before.

mod application;
mod background;
pub mod blast;
mod device;
mod engine;
mod error;
mod forward;
mod knob_socket;
mod knobs;
mod names;
mod runner;
mod sink;

pub use application::{EngineApplication, GrantedSetup, Helpers, KernelSide, ReceiveWish};
pub use device::DeviceChoice;
pub use device::port::{
    BusyPolling, DeviceKind, Intake, LinkWatch, Opened, PacketInput, Port, ReceiveQueue, Reception,
    Take,
};
pub use device::presence::GonePolicy;
pub use device::xdp::FRAMES_MAX;
pub use engine::{Engine, EngineSettings, Engines, knob_of_all};
pub use error::{EngineEnded, EngineError, SetupError};
pub use forward::{Forward, ForwardPath, ForwardSettings};
pub use knob_socket::{RunningEngine, remove_sockets_of_the_dead};
pub use knobs::{KnobError, parse_knob, parse_knob_setting, write_knob};
pub use names::{Choice, Named, unknown_among};
pub use runner::charge::CpuAccount;
pub use runner::clock::Work;
pub use runner::idle::{IdlePolling, Scheduling};
pub use runner::{Drive, PortRunner, RunnerSettings, Tallies};
pub use sink::check::{CheckedStreams, MarkIds, PacketCheck, STREAMS_MAX};
pub use sink::{Sink, SinkSettings};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
