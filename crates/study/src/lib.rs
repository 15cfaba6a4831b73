//! Studies: hosts and the link between them, settings and workloads as data, trials, and the runner.
//!
//! What must hold: the host machine's own interfaces are never touched; whatever ends a study, every
//! setting is put back, and nothing outlives the process unless it was asked to be kept.
#![forbid(unsafe_code)]

pub mod ab;
mod calibrate;
mod command;
mod comparisons;
mod conduct;
mod confounders;
mod cost;
mod cpu_window;
mod decided;
pub mod demo;
mod design;
mod engine;
mod error;
mod evenness;
mod existing;
mod extent;
mod facts;
mod fail_on;
mod file;
mod fit;
mod foreign;
mod host;
mod judge;
mod keep;
mod kernel_side;
mod kernel_time;
mod lab;
mod link;
mod other_end;
mod packet_check;
mod plan;
mod ready;
mod reckon;
mod results;
mod run;
mod schedule;
mod seed;
mod series;
mod setting_findings;
mod sitting;
mod spinner_run;
mod stop;
mod study;
mod sweep;
mod to_simulate;
mod topology;
mod trial;
mod veth;
mod warnings;
mod wiring;
mod workload;
mod xdp;

pub use command::{CommandOutputError, CommandRefused, CommandWorkload, FigureUnit};
pub use decided::is_decided;
pub use design::{Cpus, Design, Evidence, NamedSetting, NamedWorkload, UnknownWorkload, Versus};
pub use engine::{EngineRefusal, EngineRequest, HZ_DEFAULT};
pub use error::{Doing, StudyError};
pub use existing::{Existing, ExistingError};
pub use extent::{Beside, Extent};
pub use fail_on::{FailOn, Gate, NoLimit};
pub use file::{Here, OneLength, StudyFile};
pub use fit::{HostCosts, measure_costs, ticks_per_second};
pub use foreign::CoreTime;
pub use host::{
    Answer, Changes, Counter, Edge, Facts, Host, HostClient, HostEvent, HostFailure, HostMessage,
    HostRequest, LocalHost, Polls, Timed,
};
pub use keep::{Keeper, shown, still_runs, this_runner};
pub use kernel_side::SwitchSetup;
pub use kernel_time::{EngineSupport, KernelTime};
pub use lab::{Lab, require_lab, require_state};
pub use link::{Link, LocalLink};
pub use nicpoll_import::Correction;
pub use other_end::{OtherEnd, SinkWithOtherEnd};
pub use packet_check::check_of;
pub use plan::{
    DEFAULT_BLOCKS, DEFAULT_PERIOD, DemoOptions, Lengths, PlanError, QUICK_BLOCKS, QUICK_LIMIT,
    plan, plan_of,
};
pub use ready::{READY, StudyFileError, ready_studies};
pub use results::{
    ImportError, ResultError, ResultName, ResultSource, compare_results, import_transcripts,
};
pub use run::{Running, Traffic};
pub use seed::draw_seed;
pub use sitting::{Ended, Sitting, StoredPlace};
pub use study::{Identity, Progress, SoFar, run_study};
pub use sweep::{SweepError, SweepRate, SweepRates};
pub use to_simulate::NothingToSimulate;
pub use topology::{
    ExistingInterfaces, LineRate, LinkDelay, LossShare, OwnInterface, Topology, TopologyError,
    TopologyKind,
};
pub use trial::{TrialPlace, Trials, apply};
pub use veth::Veth;
pub use wiring::Addresses;
pub use workload::{WorkloadMistake, WorkloadRequest};
pub use xdp::XdpProgram;

/// The name of both ends of the link.
pub const INTERFACE: &str = "em0";
