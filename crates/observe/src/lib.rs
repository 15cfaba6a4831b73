//! Counters of the kernel: what happened to packets, where CPU time went, how often NAPI polled.
//!
//! What must hold: observing changes nothing that is observed, beyond a cost that is itself measured;
//! a counter that cannot be read is absent, never 0.
#![forbid(unsafe_code)]

mod account;
mod bpf;
mod card_clock;
mod cpu;
mod drop_reasons;
mod exact_cpu;
mod flow;
mod forward_filter;
mod host;
mod interrupts;
mod iptables;
mod kernel_types;
mod ledger;
mod losses;
mod nftables;
mod octaves;
mod packet_delay;
mod polls;
mod proc_files;
mod qdiscs;
mod queue_counters;
pub mod reference;
mod rhythm;
mod run_queue;
mod tasks;
mod xdp;

pub use account::HostAccount;
pub use bpf::{BpfError, RunTime, TimedPrograms, TimedRuns, start_timing};
pub use card_clock::{CardClock, CardClockError};
pub use cpu::{CpuDelta, CpuSample, TICKS_PER_SECOND};
pub use drop_reasons::{
    DropCounts, DropGroup, DropReasons, DropReasonsError, DroppedPackets, DroppedProtocol,
    KernelSymbols, Meaning, ReasonNames,
};
pub use exact_cpu::{
    CpuTimes, ExactCpu, ExactCpuOptions, ExactSample, FoldOptions, InterruptCounts,
    InterruptSource, Interrupts, SOFTIRQ_NAMES, TaskTimes, ThreadTimes, by_process,
};
pub use flow::{FlowReader, FlowReading};
pub use forward_filter::forward_filters;
pub use host::{HostCounters, HostSnapshot, InterfaceCounters, LinkCounters};
pub use interrupts::{InterruptLine, parse_interrupts};
pub use ledger::{CountedDatagrams, Hosts, packet_ledger, tcp_ledger};
pub use losses::Account;
pub use octaves::Histogram;
pub use packet_delay::{PacketDelays, Stamped};
pub use polls::{PollCounter, PollCounts, PollReader};
pub use proc_files::{
    CoreTicks, ProcError, ProcStat, Softnet, parse_net_dev, parse_snmp, parse_snmp6, parse_softnet,
    parse_stat,
};
pub use queue_counters::{QueueCounters, queue_counters};
pub use rhythm::{PollRhythm, RhythmWatch};
pub use run_queue::RunQueue;
pub use tasks::{parse_allowed_cpus, parse_task_stat, thread};
pub use xdp::{AttachedXdp, XdpMode};
