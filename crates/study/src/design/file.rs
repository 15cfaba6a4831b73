//! Study files: a question, settings, workloads and comparisons in TOML.
//!
//! A wrong file is refused before anything is built, with the line and the valid values. `reader` has the file's keys
//! and the checks of names, `mistakes` words the errors of TOML's reader, `setting` makes settings of entries,
//! `compared` crosses factors and pairs settings, `needs` checks what the file asks of the machine.

pub mod compared;
pub mod mistakes;
pub mod needs;
pub mod reader;
pub mod setting;

use std::cell::RefCell;
use std::io;

use nicpoll_lab::{Hosts, RECEIVER, Refused, SENDER, Topology, TrafficOptions, WorkloadRequest};
use nicpoll_model::{FileError, STUDY_PLAN_SCHEMA, StudyPlan};
use nicpoll_stats::order::Seed;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::design::file::compared::ComparedSettings;
use crate::design::file::mistakes::file_error;
use crate::design::file::needs::{Here, Resource, ResourceNeed, check};
use crate::design::file::reader::{LengthsEntry, StudyDocument, StudyFileReader, WorkloadEntry};
use crate::design::sweep::SweepRates;
use crate::design::{Design, NamedSetting, NamedWorkload, drop_order};
use crate::judge::warnings::warnings_of_plan;
use crate::plan::{Lengths, outline, plan_of};

/// Limit of a file's bytes.
pub(crate) const BYTES_MAX: usize = 1 << 20;

/// A study as read from its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyFile {
    /// What it compares, and its question.
    pub design: Design,
    /// Its durations and repetitions.
    pub lengths: Lengths,
    /// Its durations and repetitions at full length; `None` if the file has one length only.
    pub full: Option<Lengths>,
    /// Seed of the order, if the file fixes it.
    pub seed: Option<u64>,
    /// What the machine must have.
    needs: Vec<ResourceNeed>,
}

impl StudyFile {
    /// Reads a file's text.
    ///
    /// # Errors
    /// [`FileError`] with the line: an unknown key, knob or name, a value out of range, a number without its unit, no
    /// two settings to compare.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        StudyFile::parse_on(text, None)
    }

    /// As [`StudyFile::parse`], with the study's hosts on these machines, whatever the file says of hosts and links.
    ///
    /// # Errors
    /// As [`StudyFile::parse`].
    pub(crate) fn parse_on(text: &str, hosts: Option<Hosts>) -> Result<Self, FileError> {
        if text.len() > BYTES_MAX {
            let message = format!("a study file has at most {BYTES_MAX} bytes");
            return Err(FileError { line: 1, message });
        }
        let mut document: StudyDocument =
            toml::from_str(text).map_err(|error| file_error(text, &error))?;
        join_hosts(text, &mut document, hosts)?;
        let topology = document.topology.as_ref().map(Spanned::get_ref);
        let reader = StudyFileReader {
            text,
            topology: topology.cloned().unwrap_or_default(),
            trial: document
                .trial
                .as_ref()
                .map_or(Lengths::default().trial, |trial| trial.get_ref().0),
            needs: RefCell::default(),
        };
        let file = reader.study(document)?;
        let needs = reader.needs.into_inner();
        Ok(StudyFile { needs, ..file })
    }

    /// Inspects this machine as far as the file needs it.
    ///
    /// # Errors
    /// When the allowed cores cannot be read.
    pub fn look(&self) -> io::Result<Here> {
        Here::look(&self.needs)
    }

    /// Refuses what the machine cannot do. `text` is what the file was read from.
    ///
    /// # Errors
    /// With the line, and what would be possible.
    pub fn check(&self, text: &str, here: &Here) -> Result<(), FileError> {
        check(&self.needs, text, here)
    }

    /// Returns the study at full length.
    ///
    /// # Errors
    /// If the file has none.
    pub fn at_full_length(self) -> Result<Self, Refused> {
        let why = "the study has one length only; leave out --full, or say in its file what is full: \
                   full = { blocks = 16, trial = \"60s\" }";
        let lengths = self.full.clone();
        let lengths = lengths.ok_or_else(|| Refused(String::from(why)))?;
        Ok(StudyFile { lengths, ..self })
    }

    /// Keeps only some of the workloads.
    ///
    /// # Errors
    /// As [`Design::with_workloads`].
    pub fn with_workloads(self, names: &[String]) -> Result<Self, Refused> {
        let design = self.design.with_workloads(names)?;
        Ok(StudyFile { design, ..self })
    }

    /// Sweeps every workload that has a rate over these.
    ///
    /// # Errors
    /// When none has a rate, or the file has a sweep of its own.
    pub fn swept_over(self, rates: &SweepRates) -> Result<Self, Refused> {
        let design = self.design.swept_over(rates)?;
        Ok(StudyFile { design, ..self })
    }

    /// Plans the study.
    ///
    /// # Errors
    /// As [`plan_of`].
    pub fn plan(&self, seed: Seed) -> Result<StudyPlan, Refused> {
        let design = &self.design;
        let mut workloads = design.workload_facts();
        for (facts, workload) in workloads.iter_mut().zip(&design.workloads) {
            if let Some(who) = workload.request.runs_as() {
                facts.description += &format!(", run {who}");
            }
        }
        Ok(StudyPlan {
            schema: String::from(STUDY_PLAN_SCHEMA),
            question: design.question.clone(),
            seed: seed.0,
            plan: plan_of(design, &self.lengths, seed)?,
            link: design.topology.describe(),
            warnings: warnings_of_plan(design),
            workloads,
            settings: design.settings.iter().map(NamedSetting::facts).collect(),
        })
    }
}

/// Makes the topology of a study whose hosts are machines of their own.
fn join_hosts(
    text: &str,
    document: &mut StudyDocument,
    asked: Option<Hosts>,
) -> Result<(), FileError> {
    let own = document.hosts.take();
    let was_routed = match (&document.topology, &own) {
        (Some(topology), None) => topology.get_ref().is_routed(),
        (Some(topology), Some(_)) => {
            let message =
                "[topology] says what the study makes, and [hosts] what exists: keep one of them";
            return Err(FileError::at(text, topology.span(), String::from(message)));
        }
        (None, own) => own.as_ref().is_some_and(|own| own.get_ref().is_routed()),
    };
    let span = own.as_ref().map_or(0..0, Spanned::span);
    let Some(hosts) = asked.or(own.map(Spanned::into_inner)) else {
        return Ok(());
    };
    if hosts.is_routed() != was_routed {
        let (has, lacks) = match was_routed {
            true => ("has a router", "name none"),
            false => ("has no router", "name one"),
        };
        let message = format!("the study {has}, and its hosts {lacks}");
        return Err(FileError::at(text, span, message));
    }
    document.topology = Some(Spanned::new(span, Topology::from(hosts)));
    Ok(())
}

/// Leaves out what all settings set alike at senders without nicpoll. Refuses what cannot be done at the study's hosts.
fn done_at_hosts(mut design: Design) -> Result<Design, Refused> {
    let hosts = design.topology.hosts.as_ref();
    let has_engine = design.settings.iter().any(|it| it.engine.is_some());
    if has_engine && hosts.is_some_and(|hosts| hosts.count(RECEIVER) > 1) {
        let why = "the engine receives at one host: name one [hosts.receiver]";
        return Err(Refused(String::from(why)));
    }
    if !hosts.is_some_and(Hosts::has_plain_sender) {
        return Ok(design);
    }
    let refused = |why: &str| Err(Refused(format!("[hosts.sender] has no nicpoll: {why}")));
    let set_there = |it: &NamedSetting| it.setting.hosts.get(SENDER).map(|own| own.set.clone());
    if design
        .settings
        .windows(2)
        .any(|pair| set_there(&pair[0]) != set_there(&pair[1]))
    {
        return refused("settings that differ there cannot be compared");
    }
    for it in &mut design.settings {
        it.setting.hosts.remove(SENDER);
    }
    let of_settings = design.settings.iter().map(|it| &it.commands);
    let mut commands = of_settings.chain(design.workloads.iter().map(|it| &it.commands));
    let has_program = design.settings.iter().any(|it| it.xdp.contains_key(SENDER));
    if has_program || commands.any(|own| own.words().any(|(host, ..)| host == SENDER)) {
        return refused("XDP programs and commands around the traffic cannot run there");
    }
    Ok(design)
}

impl StudyFileReader<'_> {
    fn study(&self, document: StudyDocument) -> Result<StudyFile, FileError> {
        let names: Vec<_> = document.workload.iter().map(|entry| &entry.name).collect();
        self.names("workloads", &names, 1)?;
        let reduced = LengthsEntry {
            blocks: document.blocks,
            trial: document.trial,
            warmup: document.warmup,
            drain: document.drain,
            time: document.time,
        };
        let mut lengths = reduced.over(&Lengths::default());
        let full = document.full.as_ref().map(Spanned::get_ref);
        let full_lengths = full.map(|full| full.over(&lengths));
        if let Some(stop) = &document.stop {
            self.stop(stop, &reduced, &mut lengths)?;
        }
        let at_most = document.stop.as_ref().map(|stop| stop.at_most.span());
        let at_most = at_most.unwrap_or_default();
        let unfit = |unfit| self.unfit(unfit, &reduced, at_most.clone());
        lengths.check().map_err(unfit)?;
        let topology = self.topology(document.topology)?;
        let ComparedSettings {
            settings,
            factors,
            contrasts,
        } = self.compared(
            document
                .common
                .map(|common| common.parts(self.topology.is_routed())),
            document.setting,
            document.factor,
            &document.compare,
        )?;
        let last_first = document.workload.iter().rev();
        let drop_order = drop_order(&contrasts, last_first.map(|it| it.name.get_ref().as_str()));
        for entry in &document.workload {
            self.names_in_command(entry, &settings)?;
            self.received_by_engine(entry, &settings)?;
        }
        let sweeps = sweeps_of(&document.workload);
        let workloads = document.workload.into_iter();
        let workloads = workloads.map(|entry| self.workload(entry, &settings));
        let workloads: Vec<NamedWorkload> = workloads.collect::<Result<_, _>>()?;
        self.measured(&document.compare, &workloads)?;
        let design = Design {
            question: document.question,
            topology,
            workloads,
            settings,
            factors,
            contrasts,
            drop_order,
        };
        let design = done_at_hosts(self.swept(design, &sweeps)?);
        let design = design.map_err(|error| self.error(0..0, error.to_string()))?;
        outline(&design, &lengths).map_err(unfit)?;
        if let (Some(entry), Some(full)) = (&document.full, &full_lengths) {
            let unfit = |unfit| self.unfit(unfit, entry.get_ref(), entry.span());
            outline(&design, full).map_err(unfit)?;
        }
        Ok(StudyFile {
            design,
            lengths,
            full: full_lengths,
            seed: document.seed,
            needs: Vec::new(),
        })
    }

    fn topology(&self, entry: Option<Spanned<Topology>>) -> Result<Topology, FileError> {
        let Some(entry) = entry else {
            return Ok(Topology::default());
        };
        let refused = |error: Refused| self.error(entry.span(), error.to_string());
        entry.get_ref().check().map_err(refused)?;
        let asked = entry.get_ref();
        if let Some(existing) = asked.existing() {
            self.need(entry.span(), Resource::Existing(existing));
        }
        if asked.impairs() {
            self.need(entry.span(), Resource::Netem);
        }
        Ok(entry.into_inner())
    }

    /// Refuses a name in braces for which some setting has no value, and records the programs as needs.
    fn names_in_command(
        &self,
        entry: &WorkloadEntry,
        settings: &[NamedSetting],
    ) -> Result<(), FileError> {
        let WorkloadRequest::Command(command) = entry.traffic.get_ref() else {
            return Ok(());
        };
        for setting in settings {
            let names: Vec<&str> = setting.variant.keys().map(String::as_str).collect();
            if let Some(name) = command.unknown_name(&names) {
                let message = format!(
                    "nothing stands for {{{name}}} under the setting {}: a command has {{receiver}}, {{port}} and \
                     {{seconds}}, and what each setting gives it, such as variant = {{ {name} = \"...\" }}",
                    setting.name()
                );
                return Err(self.error(entry.traffic.span(), message));
            }
            let command = command.clone().with(&setting.variant);
            let programs = [command.sender.first(), command.receiver.first()];
            for program in programs.into_iter().flatten() {
                let wanted = Resource::Program(program.clone());
                self.need(entry.traffic.span(), wanted);
            }
        }
        Ok(())
    }

    /// Applies the file's sweeps to the design.
    fn swept(&self, design: Design, sweeps: &[Swept]) -> Result<Design, FileError> {
        for (name, rates) in sweeps {
            if !design.workload(name).is_none_or(NamedWorkload::has_rate) {
                let message =
                    format!("{name} cannot be sent at a rate; udp, rr and pulses can be swept");
                return Err(self.error(rates.span(), message));
            }
        }
        let swept = design.swept(|workload| {
            let sweep = sweeps.iter().find(|(name, _)| *name == workload.name)?;
            Some(sweep.1.get_ref().clone())
        });
        swept.map_err(|error| {
            let span = sweeps.first().map(|(_, rates)| rates.span());
            self.error(span.unwrap_or_default(), error.to_string())
        })
    }

    fn workload(
        &self,
        entry: WorkloadEntry,
        settings: &[NamedSetting],
    ) -> Result<NamedWorkload, FileError> {
        let given = |name: &&str| settings.iter().all(|it| it.variant.contains_key(*name));
        let names = settings.iter().flat_map(|it| it.variant.keys());
        let names: Vec<&str> = names.map(String::as_str).filter(given).collect();
        let commands = self.commands([entry.before, entry.after], &names)?;
        let span = entry.traffic.span();
        let request = entry.traffic.into_inner();
        let is_paced = request.asked_per_second().is_some();
        if let (Some(sweep), true) = (&entry.sweep, is_paced && !needs_rate(&request)) {
            let message = "the sweep has the rates of this workload: leave out its packets_per_second or \
                           requests_per_second, or the sweep";
            return Err(self.error(sweep.span(), message));
        }
        let options = TrafficOptions {
            ip: entry.ip,
            both_ways: entry.both_ways,
            background: entry.background,
            spinner: entry.spinner,
        };
        options
            .check(&request)
            .map_err(|error| self.error(span, error.to_string()))?;
        let on_links = match self.topology.links() {
            1 => String::new(),
            links => format!("; the same on each of {links} links"),
        };
        Ok(NamedWorkload {
            name: entry.name.into_inner(),
            description: entry
                .description
                .unwrap_or_else(|| request.describe() + &options.words() + &on_links),
            request,
            options,
            load: None,
            commands,
        })
    }
}

/// Returns whether traffic must have a rate, also where a sweep gives it others.
fn needs_rate(request: &WorkloadRequest) -> bool {
    matches!(
        request,
        WorkloadRequest::Pulses(_) | WorkloadRequest::Mix(_)
    )
}

/// A workload and the rates of its sweep.
type Swept = (String, Spanned<SweepRates>);

fn sweeps_of(entries: &[WorkloadEntry]) -> Vec<Swept> {
    let of = |entry: &WorkloadEntry| Some((entry.name.get_ref().clone(), entry.sweep.clone()?));
    entries.iter().filter_map(of).collect()
}

#[cfg(test)]
pub mod tests;
