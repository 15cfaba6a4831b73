//! A study file as TOML has it, before anything in it is looked at together.
//!
//! What must hold: every key that a file may have stands here; any other one is refused with those that there are.

use nicpoll_model::line::IpVersion;
use std::collections::BTreeMap;

use nicpoll_switch::Values;
use serde::Deserialize;
use toml::Spanned;

use super::lengths::LengthsEntry;
use super::stop::StopEntry;
use crate::design::Cpus;
use crate::engine::EngineRequest;
use crate::extent::Beside;
use crate::sweep::SweepRates;
use crate::topology::Topology;
use crate::workload::WorkloadRequest;
use crate::xdp::XdpProgram;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub question: String,
    pub blocks: Option<u32>,
    pub trial: Option<Spanned<String>>,
    pub warmup: Option<Spanned<String>>,
    pub drain: Option<Spanned<String>>,
    pub time: Option<Spanned<String>>,
    pub full: Option<LengthsEntry>,
    pub stop: Option<StopEntry>,
    pub seed: Option<u64>,
    #[serde(default)]
    pub give_up_first: Vec<Spanned<String>>,
    pub topology: Option<Spanned<Topology>>,
    pub common: Option<Parts>,
    #[serde(default)]
    pub setting: Vec<SettingEntry>,
    #[serde(default)]
    pub factor: Vec<FactorEntry>,
    pub workload: Vec<WorkloadEntry>,
    #[serde(default)]
    pub compare: Vec<CompareEntry>,
}

/// What an entry sets at each host; `[common]` is one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parts {
    pub sender: Option<Spanned<Values>>,
    pub router: Option<Spanned<Values>>,
    pub receiver: Option<Spanned<Values>>,
    pub machine: Option<Spanned<Values>>,
    pub cpus: Option<Spanned<Cpus>>,
    pub xdp: Option<Spanned<XdpEntry>>,
    pub engine: Option<Spanned<EngineRequest>>,
}

/// The XDP programs of an entry, by host.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct XdpEntry {
    pub sender: Option<XdpProgram>,
    pub router: Option<XdpProgram>,
    pub receiver: Option<XdpProgram>,
}

/// A setting, or a level of a factor: one part of a setting.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SettingEntry {
    pub name: Spanned<String>,
    pub noun: Option<String>,
    #[serde(default)]
    pub description: String,
    pub sender: Option<Spanned<Values>>,
    pub router: Option<Spanned<Values>>,
    pub receiver: Option<Spanned<Values>>,
    pub machine: Option<Spanned<Values>>,
    pub cpus: Option<Spanned<Cpus>>,
    pub xdp: Option<Spanned<XdpEntry>>,
    #[serde(default)]
    pub variant: BTreeMap<String, String>,
    pub engine: Option<Spanned<EngineRequest>>,
}

/// One thing that differs between settings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FactorEntry {
    pub name: Spanned<String>,
    pub levels: Vec<SettingEntry>,
}

/// Traffic.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadEntry {
    pub name: Spanned<String>,
    pub description: Option<String>,
    pub traffic: Spanned<WorkloadRequest>,
    #[serde(default)]
    pub ip: IpVersion,
    #[serde(default)]
    pub both_ways: bool,
    #[serde(default)]
    pub beside: Vec<Beside>,
    #[serde(default)]
    pub spinner: bool,
    pub sweep: Option<Spanned<SweepRates>>,
}

/// What is held against what: two settings, or two levels of a factor.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompareEntry {
    pub setting: Option<Spanned<String>>,
    pub factor: Option<Spanned<String>>,
    pub level: Option<Spanned<String>>,
    pub reference: Spanned<String>,
}

/// Names with where they stand.
pub(super) fn names_of(entries: &[SettingEntry]) -> Vec<&Spanned<String>> {
    entries.iter().map(|entry| &entry.name).collect()
}
