//! Counters of the kernel: fates of packets, CPU time, and NAPI polls.
//!
//! Observation changes nothing except for its cost, which is measured as well. A counter that cannot be read is absent,
//! never 0.
//!
//! `host` takes snapshots; `losses` and `ledger` make accounts from two of them. `exact_cpu`, `polls`, `delays` and
//! `drop_reasons` count events with BPF programs, which `bpf` loads.

mod bpf;
pub mod clock;
mod delays;
mod drop_reasons;
mod exact_cpu;
mod filters;
mod flow;
mod host;
mod ledger;
mod losses;
mod polls;
mod proc;

pub use bpf::{
    AttachedXdp, BpfError, Histogram, Programs, RunTime, TimedRuns, XdpMode, start_timing,
};
pub use clock::{CardClock, CardClockError};
pub use delays::{PacketDelays, RunQueue, Stamped};
pub use drop_reasons::{DropReasons, DropReasonsError};
pub use exact_cpu::{
    CpuTimes, ExactCpu, ExactCpuOptions, ExactSample, FoldOptions, InterruptCounts,
    InterruptSource, Interrupts, SOFTIRQ_NAMES, TaskTimes, ThreadTimes,
};
pub use filters::forward_filters;
pub use flow::{FlowReader, FlowReading};
pub use host::{HostCounters, HostSnapshot, InterfaceCounters, QueueCounters, queue_counters};
pub use ledger::{Between, CountedDatagrams, LedgerHosts, packet_ledger, tcp_ledger};
pub use losses::{Account, HostAccount};
pub use polls::{PollCounter, PollCounts, PollReader, PollRhythm, RhythmWatch};
pub use proc::{
    CoreTicks, CpuDelta, CpuSample, InterruptLine, LinkCounters, ProcError, Softnet,
    TICKS_PER_SECOND, parse_allowed_cpus, parse_interrupts, parse_net_dev, parse_snmp, parse_snmp6,
    parse_softnet, parse_stat, parse_task_stat, processes, thread,
};
