//! The design of a study: workloads, settings and comparisons as data.
//!
//! [`file::StudyFile`] makes a [`Design`] of a TOML file.

pub mod demo;
pub mod file;
pub mod frames;
pub(crate) mod measures;
pub mod ready;
pub mod simulate;
pub mod sweep;

use std::collections::BTreeMap;
use std::time::Duration;

use nicpoll_lab::{
    Commands, Cpus, EngineRequest, Hosts, MACHINE, NOT_SENT, ROUTER, Refused, SENDER, Topology,
    Traffic, TrafficOptions, WorkloadRequest, XdpProgram, sends_without_nicpoll,
};
use nicpoll_model::line::IpVersion;
use nicpoll_model::{
    ComparisonName, FactorFacts, LevelFacts, MainEffect, Measure, Metric, SettingFacts, Side,
    SweptLoad, TrafficKind, WorkloadFacts,
};
use nicpoll_observe::XdpMode;
use nicpoll_switch::knob::table::{GRO_FLUSH_TIMEOUT, TSO};
use nicpoll_switch::{Request, Setting, Value, did_you_mean};
use serde::{Deserialize, Serialize};

impl<'a> From<&'a NamedWorkload> for Traffic<'a> {
    fn from(workload: &'a NamedWorkload) -> Self {
        Traffic {
            request: &workload.request,
            options: &workload.options,
        }
    }
}

/// What a study compares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// The question that it answers.
    pub question: String,
    /// How the hosts are joined.
    #[serde(default)]
    pub topology: Topology,
    /// The workloads, in the order of the report.
    pub workloads: Vec<NamedWorkload>,
    /// The settings, in the order of the report.
    pub settings: Vec<NamedSetting>,
    /// The factors, if settings are made of them.
    #[serde(default)]
    pub factors: Vec<FactorFacts>,
    /// The comparisons made under each workload.
    pub contrasts: Vec<Versus>,
    /// Every comparison under every workload, in the order in which they are dropped if time runs out. The last is
    /// never dropped.
    pub drop_order: Vec<ComparisonName>,
}

/// Traffic with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedWorkload {
    /// Its name in reports.
    pub name: String,
    /// Description in one line.
    pub description: String,
    /// The traffic.
    pub request: WorkloadRequest,
    /// Version of IP, directions and background traffic.
    #[serde(default, rename = "extent")]
    pub options: TrafficOptions,
    /// Its rate, if it belongs to a sweep.
    #[serde(default)]
    pub load: Option<SweptLoad>,
    /// Commands around its traffic.
    #[serde(default)]
    pub commands: Commands,
}

/// A setting with everything that reports and trials need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedSetting {
    /// Its name, and the values for each host.
    pub setting: Setting,
    /// Its name in a sentence.
    pub noun: String,
    /// The cores of the traffic.
    #[serde(default)]
    pub cpus: Cpus,
    /// XDP programs on the interfaces of hosts, by the host's name.
    #[serde(default)]
    pub xdp: BTreeMap<String, XdpProgram>,
    /// The engine, if it receives datagrams in place of a socket.
    #[serde(default)]
    pub engine: Option<EngineRequest>,
    /// Values of names in braces in the user's command.
    #[serde(default)]
    pub variant: BTreeMap<String, String>,
    /// Commands around the traffic under it.
    #[serde(default)]
    pub commands: Commands,
    /// Its level of each factor; empty without factors.
    #[serde(default)]
    pub levels: Vec<LevelFacts>,
    /// What the receiver's polls must show under it.
    pub evidence: Evidence,
}

/// What the receiver's polls must show for a setting to be in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Nothing: how the interface receives is unknown.
    AsItIs,
    /// No NAPI instance, and no polls.
    NoNapi,
    /// Polls, whenever they come.
    Polls,
    /// One round of polls a period. The timer is adjusted to that.
    Rounds {
        /// The period.
        period_ns: u64,
    },
}

/// A setting and the reference that it is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versus {
    /// The setting.
    pub setting: String,
    /// The reference.
    pub reference: String,
    /// The measures that get a verdict; empty: those of the kind of traffic.
    #[serde(default)]
    pub measures: Vec<Measure>,
}

impl Versus {
    /// Compares one setting with another.
    pub(crate) fn of(setting: &str, reference: &str) -> Self {
        Versus {
            setting: String::from(setting),
            reference: String::from(reference),
            measures: Vec::new(),
        }
    }

    /// Returns whether another comparison has the same two settings.
    pub(crate) fn is_like(&self, other: &Versus) -> bool {
        (&self.setting, &self.reference) == (&other.setting, &other.reference)
    }
}

impl Design {
    /// Returns the settings that some comparison has, in the order of the report.
    pub(crate) fn compared(&self) -> impl Iterator<Item = &NamedSetting> {
        let is_in = |one: &&NamedSetting| {
            let name = one.name();
            let mut contrasts = self.contrasts.iter();
            contrasts.any(|it| it.setting == name || it.reference == name)
        };
        self.settings.iter().filter(is_in)
    }

    /// A workload by its name.
    pub fn workload(&self, name: &str) -> Option<&NamedWorkload> {
        self.workloads.iter().find(|workload| workload.name == name)
    }

    /// A setting by its name.
    pub fn setting(&self, name: &str) -> Option<&NamedSetting> {
        self.settings
            .iter()
            .find(|setting| setting.setting.name == name)
    }

    /// Keeps only some of the workloads. The name of a swept one selects all its rates.
    ///
    /// # Errors
    /// For a name that no workload has.
    pub fn with_workloads(mut self, names: &[String]) -> Result<Self, Refused> {
        let mut known: Vec<&str> = self.workloads.iter().map(NamedWorkload::asked_as).collect();
        if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
            known.dedup();
            return Err(Refused(format!(
                "there is no workload '{name}'; known are {}{}",
                known.join(", "),
                did_you_mean(name, known.iter().copied())
            )));
        }
        self.workloads
            .retain(|workload| names.iter().any(|name| name == workload.asked_as()));
        let kept = self.workloads.iter();
        let kept: Vec<&str> = kept.map(|workload| workload.name.as_str()).collect();
        self.drop_order
            .retain(|comparison| kept.contains(&comparison.workload.as_str()));
        Ok(self)
    }

    /// Refuses workloads that a sender without nicpoll cannot send. Those that were not chosen do not count.
    pub(crate) fn sent_at_hosts(&self) -> Result<(), Refused> {
        let hosts = self.topology.hosts.as_ref();
        if !hosts.is_some_and(Hosts::has_plain_sender) {
            return Ok(());
        }
        let is_sent = |it: &&NamedWorkload| {
            let is_one_way = !it.options.both_ways && it.options.background.is_empty();
            is_one_way && sends_without_nicpoll(&it.request)
        };
        let (sent, others): (Vec<_>, Vec<_>) = self.workloads.iter().partition(is_sent);
        let names = |of: &[&NamedWorkload]| {
            let mut names: Vec<&str> = of.iter().map(|it| it.asked_as()).collect();
            names.dedup();
            names.join(",")
        };
        let way_out = match sent.is_empty() {
            true => String::from("send from a host with nicpoll"),
            false => format!("leave that out with --workload {}", names(&sent)),
        };
        match others.is_empty() {
            true => Ok(()),
            false => Err(Refused(format!(
                "[hosts.sender] has no nicpoll and cannot send {}: {NOT_SENT}; {way_out}",
                names(&others)
            ))),
        }
    }

    /// Replaces the period of every setting whose timer begins the rounds.
    pub(crate) fn with_period(mut self, period: Duration) -> Self {
        let period_ns = period.as_nanos() as u64;
        let timed = |setting: &&mut NamedSetting| setting.period_ns().is_some();
        for setting in self.settings.iter_mut().filter(timed) {
            setting.evidence = Evidence::Rounds { period_ns };
            for request in setting.setting.hosts.values_mut() {
                if request.set.get(&GRO_FLUSH_TIMEOUT).is_some() {
                    request
                        .set
                        .insert(&GRO_FLUSH_TIMEOUT, Value::Number(period_ns));
                }
            }
        }
        self
    }

    /// Returns the levels that are compared over all combinations of the other factors: those with comparisons within
    /// two combinations or more.
    pub fn main_effects(&self) -> Vec<MainEffect> {
        let mut effects: Vec<MainEffect> = Vec::new();
        for versus in &self.contrasts {
            let Some((judged, reference)) = self.levels_of(versus) else {
                continue;
            };
            let settings = (versus.setting.clone(), versus.reference.clone());
            let is_same = |one: &&mut MainEffect| {
                (&one.factor, &one.level, &one.reference)
                    == (&judged.factor, &judged.level, &reference.level)
            };
            match effects.iter_mut().find(is_same) {
                Some(effect) => effect.settings.push(settings),
                None => effects.push(MainEffect {
                    factor: judged.factor.clone(),
                    level: judged.level.clone(),
                    reference: reference.level.clone(),
                    settings: vec![settings],
                }),
            }
        }
        effects.retain(|effect| effect.settings.len() > 1);
        effects
    }

    /// Returns the levels of the factor in which two settings differ.
    fn levels_of(&self, versus: &Versus) -> Option<(&LevelFacts, &LevelFacts)> {
        let judged = &self.setting(&versus.setting)?.levels;
        let reference = &self.setting(&versus.reference)?.levels;
        let mut levels = judged.iter().zip(reference);
        levels.find(|(one, other)| one != other)
    }

    /// Returns the metrics of a comparison that get a verdict. A workload that has none of the requested measures
    /// keeps its own.
    pub(crate) fn judged(&self, name: &ComparisonName) -> Vec<Metric> {
        let Some(workload) = self.workload(&name.workload) else {
            return Vec::new();
        };
        let pair = Versus::of(&name.setting, &name.reference);
        let mut contrasts = self.contrasts.iter();
        let asked = contrasts.find(|versus| versus.is_like(&pair));
        let asked = asked.map_or(&[][..], |versus| &versus.measures);
        match measures::judged_by(asked, &measures::metrics(workload)) {
            none if none.is_empty() => measures::judged_by_kind(workload),
            judged => judged,
        }
    }

    /// Descriptions of the workloads for the document.
    pub(crate) fn workload_facts(&self) -> Vec<WorkloadFacts> {
        let links = u64::from(self.topology.links());
        let workloads = self.workloads.iter();
        workloads.map(|it| it.facts(links)).collect()
    }

    /// Returns the order in which comparisons of these settings are dropped, with the workloads in this design's
    /// order.
    pub(crate) fn drop_order_of(&self, contrasts: &[Versus]) -> Vec<ComparisonName> {
        drop_order(contrasts, self.drop_order.iter().map(|one| &*one.workload))
    }

    /// Returns the settings that poll a NAPI which every packet bypasses.
    pub(crate) fn polled_in_vain(&self) -> impl Iterator<Item = &NamedSetting> {
        let is_made = self.topology.kind.is_made();
        let studied = self.topology.studied();
        let settings = self.settings.iter().filter(move |_| is_made);
        settings.filter(|setting| setting.is_polled_in_vain(studied))
    }

    /// Returns whether any traffic has commands around it.
    pub(crate) fn has_commands(&self) -> bool {
        let settings = self.settings.iter().map(|it| &it.commands);
        let workloads = self.workloads.iter().map(|it| &it.commands);
        settings.chain(workloads).any(|own| !own.is_empty())
    }

    /// Returns the settings whose timer is adjusted.
    pub fn timed(&self) -> impl Iterator<Item = &NamedSetting> {
        let settings = self.settings.iter();
        settings.filter(|setting| setting.period_ns().is_some())
    }
}

/// Returns the order in which comparisons are dropped: the last contrast under every workload, then the one above it.
/// A workload's position is its first.
pub(crate) fn drop_order<'a>(
    contrasts: &[Versus],
    workloads: impl Iterator<Item = &'a str>,
) -> Vec<ComparisonName> {
    let mut ordered: Vec<&str> = Vec::new();
    for workload in workloads {
        if !ordered.contains(&workload) {
            ordered.push(workload);
        }
    }
    let each = |versus: &Versus| -> Vec<ComparisonName> {
        let named = ordered.iter().map(|workload| ComparisonName {
            workload: String::from(*workload),
            setting: versus.setting.clone(),
            reference: versus.reference.clone(),
            metrics: Vec::new(),
        });
        named.collect()
    };
    contrasts.iter().rev().flat_map(each).collect()
}

impl NamedWorkload {
    /// Returns the name that selects it: of one rate of a sweep, the sweep's.
    fn asked_as(&self) -> &str {
        let load = self.load.as_ref();
        load.map_or(&self.name, |load| &load.sweep)
    }

    /// Returns the traffic under a setting.
    pub fn under(&self, setting: &NamedSetting) -> NamedWorkload {
        NamedWorkload {
            request: self.request.clone().with(&setting.variant),
            commands: self.commands.clone().with(&setting.variant),
            ..self.clone()
        }
    }

    /// Describes it for the document, when it runs over this many links.
    pub fn facts(&self, links: u64) -> WorkloadFacts {
        let workload = self.request.workload();
        let asked = self.request.asked_per_second();
        WorkloadFacts {
            workload: self.name.clone(),
            description: self.description.clone() + &self.command_words(),
            unit: workload.unit(),
            datagram_bytes: workload.datagram_bytes(),
            asked_per_second: asked.map(|rate| rate * links * self.options.ways()),
            metrics: measures::metrics(self),
            judged: measures::judged_by_kind(self),
            load: self.load.clone(),
            kind: self.kind(),
        }
    }

    /// Returns the commands around it, in words.
    fn command_words(&self) -> String {
        let words = self.commands.words();
        words
            .map(|(host, when, words)| format!("; {when} it at the {host}: {words}"))
            .collect()
    }

    /// Returns an import's name for this kind of traffic; `None` for a rate of a sweep, and with background traffic.
    fn kind(&self) -> Option<String> {
        let (tool, payload_bytes) = match &self.request {
            WorkloadRequest::Tcp(_) => ("iperf-tcp", None),
            WorkloadRequest::Udp(udp) => ("iperf-udp", Some(udp.payload_bytes.to_string())),
            WorkloadRequest::Netrate(it) => ("netblast", Some(it.payload_bytes.to_string())),
            _ => return None,
        };
        let kind = TrafficKind {
            tool,
            payload_bytes: payload_bytes.as_deref(),
            is_ipv6: self.options.ip == IpVersion::V6,
            streams: None,
            is_both_ways: self.options.both_ways,
        };
        (self.load.is_none() && self.options.background.is_empty()).then(|| kind.to_string())
    }
}

impl NamedSetting {
    /// Its name in reports.
    pub fn name(&self) -> &str {
        &self.setting.name
    }

    /// Returns the period of its rounds.
    pub fn period_ns(&self) -> Option<u64> {
        match self.evidence {
            Evidence::Rounds { period_ns } => Some(period_ns),
            Evidence::AsItIs | Evidence::NoNapi | Evidence::Polls => None,
        }
    }

    /// Returns whether every packet of a veth bypasses the NAPI that polls it.
    fn is_polled_in_vain(&self, studied: &str) -> bool {
        let is_polling = matches!(self.evidence, Evidence::Polls | Evidence::Rounds { .. });
        let sender = self.setting.hosts.get(SENDER);
        let has_tso = sender.and_then(|request| request.set.number(&TSO)) != Some(0);
        // A native program turns TSO off at the other end.
        let takes_all = self.engine.is_some()
            || self
                .xdp
                .get(studied)
                .is_some_and(|it| it.mode == XdpMode::Native);
        is_polling && has_tso && !takes_all
    }

    /// Returns the request to a host, with the adjusted timeout, if there is one, in place of the setting's.
    pub fn request(&self, host: &str, timeout_ns: Option<u64>) -> Option<Request> {
        let mut request = self.setting.hosts.get(host)?.clone();
        let timeout_ns = timeout_ns.filter(|_| request.set.get(&GRO_FLUSH_TIMEOUT).is_some());
        if let Some(timeout_ns) = timeout_ns {
            request.set = request.set.with(&GRO_FLUSH_TIMEOUT, timeout_ns);
        }
        Some(request)
    }

    /// Description for the document.
    pub fn facts(&self) -> SettingFacts {
        let mut writes = Vec::new();
        for side in Side::ALL {
            let mut own = self.writes(&side.to_string());
            if let (Some(engine), Side::Receiver) = (&self.engine, side) {
                own.push((String::from("engine"), engine.words()));
            }
            let cpu = self.cpus.of(side);
            own.extend(cpu.map(|cpu| (String::from("CPU of the traffic"), cpu.to_string())));
            writes.extend(own.into_iter().map(|(name, value)| (side, name, value)));
        }
        SettingFacts {
            setting: self.setting.name.clone(),
            noun: self.noun.clone(),
            description: self.setting.description.clone(),
            writes,
            machine_writes: self.writes(MACHINE),
            router_writes: self.writes(ROUTER),
            variant: self.variant.clone(),
            levels: self.levels.clone(),
        }
    }

    /// Returns a host's knobs with their values, its commands and its XDP program.
    fn writes(&self, host: &str) -> Vec<(String, String)> {
        let request = self.setting.hosts.get(host);
        let mut writes = request.map_or_else(Vec::new, |request| request.set.list());
        if let Some(period_ns) = self.period_ns() {
            for (name, value) in &mut writes {
                if name == GRO_FLUSH_TIMEOUT.name {
                    *value = format!("calibrated in warm-up to one round in {period_ns} ns");
                }
            }
        }
        let commands = self.commands.words();
        let commands = commands.filter(|(at, ..)| *at == host);
        writes.extend(
            commands.map(|(_, when, words)| (format!("the command {when} traffic"), words)),
        );
        let program = self.xdp.get(host);
        writes.extend(program.map(|program| (String::from("XDP program"), program.words())));
        writes
    }
}
