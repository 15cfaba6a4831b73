//! What the benchmark of the engine keeps of a run, so that its plots can be drawn again.
//!
//! What must hold: figures are medians of rounds; what is simulated says so.

use serde::{Deserialize, Serialize};

/// What was measured last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineBenchmark {
    /// How long packets take; `None` when it was not measured yet.
    pub delays: Option<Delays>,
    /// What is delivered of a load that is more than can be received; `None` when it was not measured yet.
    pub overload: Option<Overload>,
}

/// How long packets take from sender to program, by receive discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// Where and how it was measured.
    pub facts: String,
    /// One for each load.
    pub loads: Vec<DelaysAtLoad>,
}

/// The disciplines at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelaysAtLoad {
    /// Packets a second that were asked of the sender.
    pub asked_pps: f64,
    /// One for each discipline, in the same order at every load.
    pub disciplines: Vec<DisciplineDelay>,
}

/// One discipline at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisciplineDelay {
    /// What it is called.
    pub name: String,
    /// Packets a second that came to the interface or were lost on the way there.
    pub fed_pps: f64,
    /// Packets a second that the program had.
    pub delivered_pps: f64,
    /// CPU time of the program's threads, in CPUs.
    pub program_cpu: f64,
    /// Half of the packets took no longer; `None` where too few came to tell.
    pub p50_ns: Option<f64>,
    /// 99 of 100.
    pub p99_ns: Option<f64>,
    /// 999 of 1000.
    pub p999_ns: Option<f64>,
}

/// Delivered against offered load, with work on each packet and the kernel's receive work on the receiver's CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    /// Where and how it was measured.
    pub facts: String,
    /// Measured ones, then those that were simulated.
    pub curves: Vec<LoadCurve>,
}

/// One receiver over the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadCurve {
    /// What it is called.
    pub name: String,
    /// Whether the simulator said so and nothing was measured.
    pub is_simulated: bool,
    /// In the order of the load.
    pub points: Vec<LoadPoint>,
}

/// One load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Packets a second that came to the interface or were lost on the way there.
    pub offered_pps: f64,
    /// Packets a second that the program had.
    pub delivered_pps: f64,
    /// Share of the receiver's CPU that an ordinary program got beside it; `None` without one.
    pub programs_share: Option<f64>,
}
