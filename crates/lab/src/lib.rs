//! Hosts, links and the traffic between them.
//!
//! [`Lab`] is two hosts (perhaps with a router between them) and the link that joins them. A [`Host`] takes serialisable
//! requests and returns events; it is a network namespace of this machine ([`LocalHost`]), or a machine reached by ssh, with an agent there ([`serve_controller`]). A [`Link`] is made
//! of veth pairs ([`Veth`]) or taken as it is ([`open_existing`]). [`Running`] is a workload's traffic on its way between the
//! hosts of a lab.
//!
//! The machine's own interfaces are touched only where a file names them. However a lab ends, every setting is
//! restored, and nothing outlives the process unless the caller keeps it.

mod engine_support;
mod error;
mod host;
mod join;
mod lab;
mod link;
mod machine;
mod receive;
mod run;
mod workload;

pub use engine_support::{EngineSupport, OtherEnd, SinkWithOtherEnd, check_of};
pub use error::{Doing, HostFailure, LabError, Refused};
pub use host::agent::{obey_controller, serve_controller};
pub use host::changes::Changes;
pub use host::cpu::{CoreTime, KERNEL_RECEIVERS, own_process};
pub use host::deploy::run_there;
pub use host::local::LocalHost;
pub use host::plain::{NOT_SENT, sends_without_nicpoll};
pub use host::protocol::{FromAgent, ToAgent, line_of, message_of, next_line, request_of};
pub use host::threads::{RECEIVER_THREAD, SENDER_THREAD};
pub use host::{
    ClockOffset, Commands, Counter, Cpus, Edge, Facts, Host, HostClient, HostCommand, HostEvent,
    HostMessage, HostRequest, INTERFACE, MACHINE, MACHINE_INTERFACE, Polls, RECEIVER, ROUTER,
    RefusedCounters, SENDER, Timed,
};
pub use join::open_existing;
pub use lab::{Lab, watched};
pub use link::hosts::{HostPlace, Hosts};
pub use link::veth::{Veth, try_netem};
pub use link::{
    ExistingInterfaces, LineRate, Link, LinkDelay, LinkEnd, LossShare, OwnInterface, Topology,
    TopologyKind,
};
pub use machine::{draw_seed, require_lab, require_state, still_runs, this_runner};
pub use receive::{EngineEntry, EngineRequest, HZ_DEFAULT, XdpProgram};
pub use run::{Running, Traffic};
pub use workload::command::{CommandWorkload, FigureUnit, check_words, whole_seconds};
pub use workload::{
    BackgroundTraffic, RATE_MAX, RECEIVE_BUFFER_BYTES, TrafficOptions, WorkloadRequest, bounds_of,
    udp,
};
