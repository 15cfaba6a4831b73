//! nicpoll's vocabulary as types: what a study is made of and what its JSON holds.
//!
//! A *study* compares *settings* under *workloads*. One run of one workload under one setting is a
//! *trial*; a trial yields figures of both ends and one *ledger* that says where each offered packet
//! ended. Nothing here measures, prints or reads a clock.
//!
//! What must hold: a figure that was not measured is `None` (JSON `null`), never 0. Field names
//! carry their unit. Rates are of UDP or TCP payload unless the name says otherwise.
#![forbid(unsafe_code)]

pub mod ab;
pub mod blast;
mod compared;
mod comparison;
mod cpu;
mod cpu_truth;
mod distribution;
mod doctor;
mod drop_reason;
pub mod engine;
pub mod engine_benchmark;
mod evenness;
mod file_error;
pub mod forward;
mod host;
mod imported;
pub mod iperf;
mod ledger;
pub mod line;
mod loss;
pub mod netrate;
pub mod numbers;
mod origin;
mod pace;
mod rate;
pub mod repeat;
pub mod rr;
mod run_document;
mod setting_findings;
mod show;
pub mod sim;
pub mod sim_fit_host;
pub mod sim_published;
pub mod sink;
mod studies;
mod study;
mod study_plan;
mod sweep;
mod switch;
pub mod ticks;
pub mod time;
mod trial;
mod trial_series;
pub mod units;
mod vocabulary;
mod watch;

pub use compared::{
    COMPARED_SCHEMA, Compared, ComparedAlone, ComparedMethod, ComparedSets, ComparedSide,
};
pub use comparison::{
    Comparison, Ends, IntervalMethod, Metric, MetricKind, Scenario, Sensitivity, Verdict,
};
pub use cpu::{CpuSource, CpuStates};
pub use cpu_truth::{
    CPU_TRUTH_SCHEMA, CpuTruth, EXACT_POINTS_MAX, EventCost, FoldBin, FoldedPulses,
    TICK_SAMPLED_POINTS_MIN, TruthPhase, TruthVerdict,
};
pub use distribution::TimeDistribution;
pub use doctor::{Check, CheckGroup, CheckStatus, DOCTOR_SCHEMA, Doctor};
pub use drop_reason::{DropProtocol, DropReason, DropReasonGaps, UncountedLoss};
pub use evenness::{RateOverTime, SeriesTests, Unevenness};
pub use file_error::FileError;
pub use host::{HostDelta, InterfaceDelta, ProcessCpu};
pub use imported::{
    IMPORTED_SCHEMA, Imported, ImportedBasis, ImportedFigure, ImportedFile, ImportedInterval,
    ImportedReading, ImportedTrial, SourcePlace, TrafficKind, UnplacedFigure,
};
pub use ledger::{ControlKind, ControlLine, CrossCheck, Ledger, LedgerLine};
pub use loss::{Drops, LossPlace, Way};
pub use origin::Origin;
pub use pace::Pace;
pub use rate::{Rate, RateUnit};
pub use run_document::RunDocument;
pub use setting_findings::{SettingFindings, Shares};
pub use show::{
    Ceiling, Discipline, DriftShow, Finding, InterfaceShow, InterruptShow, NapiShow, PendingShow,
    PollingVariable, Rhythm, SHOW_SCHEMA, Show, ThreadShow, Unseen, ValueSource,
};
pub use studies::{
    ReadyStudy, STUDIES_SCHEMA, Studies, StudiesAction, StudyEntry, StudyKind, StudyState,
};
pub use study::{
    ComparisonName, Confounder, CountingCost, DroppedComparison, EventCounter, FactorFacts,
    HostFacts, LabFacts, LevelFacts, MainEffect, Plan, SCHEMA, SettingChanges, SettingFacts, Study,
    Warning, WarningName, WorkloadFacts,
};
pub use study_plan::{STUDY_PLAN_SCHEMA, StudyPlan};
pub use sweep::{Sweep, SweepEnd, SweepPoint, SweptLoad, SweptSetting};
pub use switch::{
    SET_SCHEMA, SwitchFile, SwitchProof, SwitchRestored, SwitchRun, SwitchValue, SwitchWrite,
};
pub use trial::{
    Calibration, Conduct, Findings, ForeignCpu, Placement, PollEvidence, RoundTrip,
    RoundTripQuantiles, SocketBuffers, SpinnerShare, Trial, TrialCpu, TrialFigures, Warmup,
    WindowRates,
};
pub use trial_series::{CoreSeries, STEPS_MAX, TrialSeries};
pub use vocabulary::{Protocol, Side, WorkUnit};
pub use watch::{
    WATCH_SCHEMA, WatchCost, WatchCounter, WatchDrops, WatchEnd, WatchFlow, WatchInterface,
    WatchInterrupt, WatchSample, WatchStart,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
