//! nicpoll's shared types: measured quantities, and the JSON documents that studies and programs print.
//!
//! A *study* compares *settings* under *workloads*. One run of one workload under one setting is a *trial*; a trial
//! yields figures of both ends and one *ledger* that says where each offered packet ended. Nothing here measures,
//! prints or reads a clock.
//!
//! A figure that was not measured is `None` (JSON `null`), never 0. Field names carry their unit. Rates are of UDP or
//! TCP payload unless the name says otherwise.
//!
//! Read `document` first (parts that documents share), then `study`; `units` and `line` have the arithmetic.

pub mod ab;
pub mod cpu;
mod document;
pub mod engine;
mod interface;
pub mod line;
mod loss;
pub mod numbers;
pub mod sim;
mod study;
pub mod traffic;
pub mod units;

pub use cpu::{
    CPU_TRUTH_SCHEMA, CpuSource, CpuStates, CpuTruth, EXACT_POINTS_MAX, EventCost, FoldBin,
    FoldedPulses, TICK_SAMPLED_POINTS_MIN, TruthPhase, TruthVerdict,
};
pub use document::{
    FileError, HostFacts, Origin, Protocol, RunDocument, Side, TimeDistribution, WorkUnit,
};
pub use interface::{
    Ceiling, Check, CheckGroup, CheckStatus, DOCTOR_SCHEMA, Discipline, Doctor, DriftShow, Finding,
    InterfaceShow, InterruptShow, NapiShow, PendingShow, PollingVariable, Rhythm, SET_SCHEMA,
    SHOW_SCHEMA, Show, SwitchFile, SwitchProof, SwitchRestored, SwitchRun, SwitchValue,
    SwitchWrite, ThreadShow, Unseen, ValueSource, WATCH_SCHEMA, WatchCost, WatchCounter,
    WatchDrops, WatchEnd, WatchFlow, WatchInterface, WatchInterrupt, WatchSample, WatchStart,
};
pub use loss::{
    ControlKind, ControlLine, CrossCheck, DropProtocol, DropReason, DropReasonGaps, Drops, Ledger,
    LedgerLine, LossPlace, UncountedLoss, Way,
};
pub use study::{
    COMPARED_SCHEMA, Calibration, Compared, ComparedAlone, ComparedMethod, ComparedSets,
    ComparedSide, Comparison, ComparisonName, Confounder, CoreSeries, CountingCost,
    DroppedComparison, Ends, EventCounter, FactorFacts, Findings, ForeignCpu, HELD_SHARE,
    IMPORTED_SCHEMA, Imported, ImportedBasis, ImportedFigure, ImportedFile, ImportedInterval,
    ImportedReading, ImportedTrial, IntervalMethod, Knee, KneePoint, LabFacts, LevelFacts,
    MainEffect, Measure, Metric, MetricFacts, MetricKind, MetricSpread, Placement, Plan,
    PollEvidence, RateOverTime, ReadyStudy, RoundTrip, RoundTripQuantiles, SCHEMA, STEPS_MAX,
    STUDIES_SCHEMA, STUDY_PLAN_SCHEMA, Scenario, Sensitivity, SeriesTests, SettingChanges,
    SettingFacts, SettingFindings, Shares, SocketBuffers, SourcePlace, SpinnerShare, Studies,
    StudiesAction, Study, StudyEntry, StudyKind, StudyPlan, StudyState, Sweep, SweepEnd,
    SweepPoint, SweptLoad, SweptSetting, TrafficKind, Trial, TrialCpu, TrialFigures, TrialSeries,
    Unevenness, UnplacedFigure, Validity, Verdict, Warmup, Warning, WarningName, WindowRates,
    WorkloadFacts,
};
pub use traffic::{HostDelta, InterfaceDelta, ProcessCpu};
pub use units::{Pace, Rate, RateUnit, Refused};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
