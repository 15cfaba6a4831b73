//! Offered load against delivered: the rates that a sweep asks for, and what came of each.
//!
//! What must hold: a rate that the sender did not reach says nothing about the rate that a system holds, and is told
//! apart from one at which packets were lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WorkUnit;

/// The load at which one workload of a sweep runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweptLoad {
    /// The workload of the file that is swept.
    pub sweep: String,
    /// What is asked for: datagrams (`rr`: requests) a second, of all senders together. Null in a plan where it is a
    /// share of a knee that is sought first.
    pub asked_per_second: Option<u64>,
    /// What share of the knee that is: 0.5 is half of it. Null where the rate was asked for as it is.
    pub knee_ratio: Option<f64>,
}

/// A workload at several rates under every setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// The workload of the file that is swept.
    pub sweep: String,
    /// What the rates count.
    pub unit: WorkUnit,
    /// The rate at which CPU time is compared: the greatest of the sweep that is no more than half of the least rate
    /// that any setting holds. Null where there is none.
    pub fixed_load_per_second: Option<u64>,
    /// What each setting made of it, in the order of the study.
    pub settings: Vec<SweptSetting>,
}

/// What one setting made of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweptSetting {
    /// The setting.
    pub setting: String,
    /// The greatest rate asked for that is held, with every lower one: 99 % of it is offered, and 99 % of the offered
    /// delivered, in the median of the trials. Null where not even the lowest is.
    pub held_per_second: Option<u64>,
    /// Why no higher rate is held.
    pub ended_by: SweepEnd,
    /// CPU time a packet (`rr`: a transaction) at the study's fixed load; null where that was not measured.
    pub fixed_load_busy_ns_per_packet: Option<f64>,
    /// Each rate, the lowest first.
    pub points: Vec<SweepPoint>,
}

/// Why a sweep holds no higher rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweepEnd {
    /// More than 1 % of what was offered at the next rate was not delivered.
    Loss,
    /// The sender did not reach the next rate: what the system would have held is not known.
    Sender,
    /// The sweep has no higher rate: more may be held.
    Sweep,
    /// No trial at the next rate gave a result.
    NoResult,
}

/// One rate under one setting: medians of the trials with a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// The workload that has this rate.
    pub workload: String,
    /// What was asked for, a second.
    pub asked_per_second: u64,
    /// What the senders sent a second, by their own clock. Null without a trial that gave a result.
    pub offered_per_second: Option<f64>,
    /// What arrived (`rr`: was answered) a second.
    pub delivered_per_second: Option<f64>,
    /// Share of the offered that was delivered, 0 to 1.
    pub delivered_ratio: Option<f64>,
    /// CPU time of both cores over packets delivered (`rr`: transactions).
    pub busy_ns_per_packet: Option<f64>,
    /// Half of the datagrams took no longer to the receiver's program. Null where that is not measured, and for studies
    /// of earlier versions.
    #[serde(default)]
    pub one_way_p50_ns: Option<f64>,
    /// 99 of 100 datagrams took no longer.
    #[serde(default)]
    pub one_way_p99_ns: Option<f64>,
    /// Share of the receiver's core that a program beside it got, 0 to 1. Null where that is not measured.
    #[serde(default)]
    pub spinner_ratio: Option<f64>,
    /// Trials that gave a result.
    pub trials: u32,
}
