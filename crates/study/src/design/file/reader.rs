//! A study file's keys, and the checks that all parts share.
//!
//! All keys are listed here; others are refused with the known ones.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use nicpoll_lab::{
    BackgroundTraffic, Commands, Cpus, EngineEntry, EngineRequest, HostCommand, Hosts, RECEIVER,
    ROUTER, Refused, SENDER, Topology, WorkloadRequest, XdpProgram, check_words,
};
use nicpoll_model::FileError;
use nicpoll_model::line::IpVersion;
use nicpoll_model::units::{NoQuantity, parse_length, parse_time};
use nicpoll_switch::knob::table::{GRO, TSO};
use nicpoll_switch::{KnobValues, did_you_mean};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::design::NamedSetting;
use crate::design::file::needs::{Resource, ResourceNeed};
use crate::design::sweep::SweepRates;
use crate::plan::{Lengths, Unfit};

/// Settings or workloads of a file.
pub const ENTRIES_MAX: usize = 16;

/// Most characters of a name, which heads columns.
const NAME_MAX: usize = 24;

/// Most characters of the name of a setting made of levels.
pub const CROSSED_NAME_MAX: usize = 32;

/// The text of a document, for the positions of errors.
pub struct StudyFileReader<'a> {
    pub text: &'a str,
    /// Hosts and links; without a section those by default.
    pub topology: Topology,
    /// Length of a trial.
    pub trial: Duration,
    /// The needs read so far.
    pub needs: RefCell<Vec<ResourceNeed>>,
}

impl StudyFileReader<'_> {
    /// Records a need of the entry at `span`.
    pub fn need(&self, span: Range<usize>, wanted: Resource) {
        self.needs
            .borrow_mut()
            .push(ResourceNeed::new(span, wanted));
    }

    pub fn error(&self, span: Range<usize>, message: impl Into<String>) -> FileError {
        FileError::at(self.text, span, message.into())
    }

    /// Refuses too few or too many names, invalid ones, and duplicates.
    pub fn names(
        &self,
        what: &str,
        names: &[&Spanned<String>],
        min: usize,
    ) -> Result<(), FileError> {
        if !(min..=ENTRIES_MAX).contains(&names.len()) {
            let message = format!(
                "a study has {min} to {ENTRIES_MAX} {what}; here it has {}",
                names.len()
            );
            return Err(self.error(0..0, message));
        }
        for (index, name) in names.iter().enumerate() {
            let word = name.get_ref();
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
            if word.is_empty() || word.len() > NAME_MAX || !word.chars().all(is_of_name) {
                let message = format!(
                    "a name has 1 to {NAME_MAX} letters, digits, '-', '_', '.' and '+', such as udp64"
                );
                return Err(self.error(name.span(), message));
            }
            if names[..index].iter().any(|other| other.get_ref() == word) {
                let message = format!("two {what} have the name {word}; give one of them another");
                return Err(self.error(name.span(), message));
            }
        }
        Ok(())
    }

    pub fn known(
        &self,
        what: &str,
        name: &Spanned<String>,
        known: &[&str],
    ) -> Result<String, FileError> {
        let word = name.get_ref();
        if known.contains(&word.as_str()) {
            return Ok(word.clone());
        }
        let meant = did_you_mean(word, known.iter().copied());
        let message = format!(
            "there is no {what} {word}; the file has {}{meant}",
            known.join(", ")
        );
        Err(self.error(name.span(), message))
    }
}

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudyDocument {
    pub question: String,
    pub blocks: Option<Spanned<u32>>,
    pub trial: Option<Spanned<StudyTime>>,
    pub warmup: Option<Spanned<StudyTime>>,
    pub drain: Option<Spanned<StudyTime>>,
    pub time: Option<Spanned<StudyLength>>,
    pub full: Option<Spanned<LengthsEntry>>,
    pub stop: Option<StopEntry>,
    pub seed: Option<u64>,
    pub topology: Option<Spanned<Topology>>,
    pub hosts: Option<Spanned<Hosts>>,
    pub common: Option<Common>,
    #[serde(default)]
    pub setting: Vec<SettingEntry>,
    #[serde(default)]
    pub factor: Vec<FactorEntry>,
    pub workload: Vec<WorkloadEntry>,
    #[serde(default)]
    pub compare: Vec<CompareEntry>,
}

/// The part that all settings share.
pub(crate) enum Common {
    /// The needs of a veth: `common = "veth"`.
    Veth,
    /// The entries of `[common]`.
    Parts(Box<Parts>),
}

impl<'de> Deserialize<'de> for Common {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CommonVisitor)
    }
}

struct CommonVisitor;

impl<'de> Visitor<'de> for CommonVisitor {
    type Value = Common;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"veth\", or a table [common]")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Common, E> {
        match word {
            "veth" => Ok(Common::Veth),
            word => Err(E::unknown_variant(word, &["veth"])),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Common, A::Error> {
        // Not untagged: that would lose the positions.
        let parts = Parts::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Common::Parts(Box::new(parts)))
    }
}

impl Common {
    /// Returns its values for each host.
    pub fn parts(self, is_routed: bool) -> Parts {
        let set = |values: KnobValues| Some(Spanned::new(0..0, values));
        let without_tso = || KnobValues::new().with(&TSO, 0);
        match (self, is_routed) {
            (Common::Parts(parts), _) => *parts,
            (Common::Veth, false) => Parts {
                sender: set(without_tso()),
                receiver: set(KnobValues::new().with(&GRO, 1)),
                ..Parts::default()
            },
            (Common::Veth, true) => Parts {
                sender: set(without_tso()),
                router: set(without_tso().with(&GRO, 1)),
                receiver: set(without_tso()),
                ..Parts::default()
            },
        }
    }
}

/// The values of an entry for each host; `[common]` is one.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parts {
    pub sender: Option<Spanned<KnobValues>>,
    pub router: Option<Spanned<KnobValues>>,
    pub receiver: Option<Spanned<KnobValues>>,
    pub machine: Option<Spanned<KnobValues>>,
    pub cpus: Option<Spanned<Cpus>>,
    pub xdp: Option<Spanned<XdpEntry>>,
    pub engine: Option<Spanned<EngineEntry>>,
    #[serde(default)]
    pub before: Vec<CommandEntry>,
    #[serde(default)]
    pub after: Vec<CommandEntry>,
}

/// A command at a host.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandEntry {
    pub host: Spanned<String>,
    pub command: Spanned<Vec<String>>,
}

/// The XDP programs of an entry, by host.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct XdpEntry {
    pub sender: Option<XdpProgram>,
    pub router: Option<XdpProgram>,
    pub receiver: Option<XdpProgram>,
}

/// A setting, or a level of a factor: one part of a setting.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingEntry {
    pub name: Spanned<String>,
    pub noun: Option<String>,
    #[serde(default)]
    pub description: String,
    pub sender: Option<Spanned<KnobValues>>,
    pub router: Option<Spanned<KnobValues>>,
    pub receiver: Option<Spanned<KnobValues>>,
    pub machine: Option<Spanned<KnobValues>>,
    pub cpus: Option<Spanned<Cpus>>,
    pub xdp: Option<Spanned<XdpEntry>>,
    #[serde(default)]
    pub variant: BTreeMap<String, String>,
    pub engine: Option<Spanned<EngineEntry>>,
    #[serde(default)]
    pub before: Vec<CommandEntry>,
    #[serde(default)]
    pub after: Vec<CommandEntry>,
}

/// One thing that differs between settings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactorEntry {
    pub name: Spanned<String>,
    pub levels: Vec<SettingEntry>,
}

/// Traffic.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkloadEntry {
    pub name: Spanned<String>,
    pub description: Option<String>,
    pub traffic: Spanned<WorkloadRequest>,
    #[serde(default)]
    pub ip: IpVersion,
    #[serde(default)]
    pub both_ways: bool,
    #[serde(default, rename = "beside")]
    pub background: Vec<BackgroundTraffic>,
    #[serde(default)]
    pub spinner: bool,
    pub sweep: Option<Spanned<SweepRates>>,
    #[serde(default)]
    pub before: Vec<CommandEntry>,
    #[serde(default)]
    pub after: Vec<CommandEntry>,
}

/// A comparison: two settings, or two levels of a factor.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompareEntry {
    pub setting: Option<Spanned<String>>,
    pub factor: Option<Spanned<String>>,
    pub level: Option<Spanned<String>>,
    pub reference: Spanned<String>,
    pub measure: Option<Spanned<Measures>>,
}

/// The measures of a comparison: one, or a list of two or three.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "measure is a word such as \"cost\", or a list of two or three"
)]
pub(crate) enum Measures {
    One(String),
    Several(Vec<String>),
}

/// Returns names with their positions.
pub(crate) fn names_of(entries: &[SettingEntry]) -> Vec<&Spanned<String>> {
    entries.iter().map(|entry| &entry.name).collect()
}

/// Lengths as a file has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LengthsEntry {
    pub blocks: Option<Spanned<u32>>,
    pub trial: Option<Spanned<StudyTime>>,
    pub warmup: Option<Spanned<StudyTime>>,
    pub drain: Option<Spanned<StudyTime>>,
    pub time: Option<Spanned<StudyLength>>,
}

impl LengthsEntry {
    /// Returns `base` overridden by the entry.
    pub fn over(&self, base: &Lengths) -> Lengths {
        let time = |entry: &Option<Spanned<StudyTime>>| entry.as_ref().map(|time| time.get_ref().0);
        let blocks = self.blocks.as_ref().map(|blocks| *blocks.get_ref());
        Lengths {
            blocks: blocks.unwrap_or(base.blocks),
            trial: time(&self.trial).unwrap_or(base.trial),
            warmup: time(&self.warmup).or(base.warmup),
            drain: time(&self.drain).or(base.drain),
            limit: self.time.as_ref().map(|length| length.get_ref().0),
            ..base.clone()
        }
    }

    /// Returns the position of a key's value.
    fn span_of(&self, key: &str) -> Option<Range<usize>> {
        let time = |entry: &Option<Spanned<StudyTime>>| entry.as_ref().map(Spanned::span);
        match key {
            "blocks" => self.blocks.as_ref().map(Spanned::span),
            "trial" => time(&self.trial),
            "warmup" => time(&self.warmup),
            "drain" => time(&self.drain),
            _ => self.time.as_ref().map(Spanned::span),
        }
    }
}

/// A time of a file, with its unit.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct StudyTime(pub Duration);

impl TryFrom<String> for StudyTime {
    type Error = NoQuantity;

    fn try_from(text: String) -> Result<Self, NoQuantity> {
        parse_time(&text).map(StudyTime)
    }
}

/// A length of a study, with its unit.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct StudyLength(Duration);

impl TryFrom<String> for StudyLength {
    type Error = NoQuantity;

    fn try_from(text: String) -> Result<Self, NoQuantity> {
        parse_length(&text).map(StudyLength)
    }
}

/// The narrowest interval of a stop rule, in percent: below it the machine's noise does not average out.
const WIDTH_MIN: f64 = 0.1;

/// The widest, in percent.
const WIDTH_MAX: f64 = 100.0;

/// The stop rule as a file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopEntry {
    width: Width,
    pub at_most: Spanned<StudyLength>,
}

/// A share of an estimate.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Width(f64);

impl TryFrom<String> for Width {
    type Error = Refused;

    fn try_from(text: String) -> Result<Self, Refused> {
        let percent = text.strip_suffix('%');
        let percent: Option<f64> = percent.and_then(|number| number.trim().parse().ok());
        let percent = percent.filter(|percent| (WIDTH_MIN..=WIDTH_MAX).contains(percent));
        percent.map(|percent| Width(percent / 100.0)).ok_or_else(|| {
            Refused(format!(
                "a width is a share of the estimate, from {WIDTH_MIN}% to {WIDTH_MAX}%, such as \"5%\""
            ))
        })
    }
}

impl StudyFileReader<'_> {
    /// Adds a stop rule to the lengths.
    pub(crate) fn stop(
        &self,
        entry: &StopEntry,
        with: &LengthsEntry,
        lengths: &mut Lengths,
    ) -> Result<(), FileError> {
        if lengths.limit.is_some() {
            let message = "a study has time or stop; at_most is the time of one with a stop rule";
            return Err(self.error(entry.at_most.span(), message));
        }
        if let Some(blocks) = &with.blocks {
            let message = "a study has blocks or stop: with stop it runs as many as fit into at_most; leave out blocks";
            return Err(self.error(blocks.span(), message));
        }
        lengths.limit = Some(entry.at_most.get_ref().0);
        lengths.stop_width = Some(entry.width.0);
        Ok(())
    }

    /// Makes the error of impossible lengths, at the entry's key; `other` is the position of a key that the entry
    /// does not have.
    pub(crate) fn unfit(
        &self,
        unfit: Unfit,
        entry: &LengthsEntry,
        other: Range<usize>,
    ) -> FileError {
        self.error(entry.span_of(unfit.key).unwrap_or(other), unfit.why.0)
    }

    /// Returns the commands of an entry. Refuses an unknown host, and an unknown name in braces.
    pub(crate) fn commands(
        &self,
        [before, after]: [Vec<CommandEntry>; 2],
        names: &[&str],
    ) -> Result<Commands, FileError> {
        let hosts: &[&str] = match self.topology.is_routed() {
            true => &[SENDER, ROUTER, RECEIVER],
            false => &[SENDER, RECEIVER],
        };
        let read = |entry: CommandEntry| {
            let span = entry.command.span();
            let command = HostCommand {
                host: self.known("host", &entry.host, hosts)?,
                command: entry.command.into_inner(),
            };
            let refused = |error: Refused| self.error(span.clone(), error.to_string());
            check_words(&command.command).map_err(refused)?;
            // What a variant gives is known with the setting alone.
            let program = command.command.first().filter(|it| !it.contains('{'));
            if let Some(program) = program {
                self.need(span.clone(), Resource::Program(program.clone()));
            }
            match command.unknown_name(names) {
                None => Ok(command),
                Some(name) => {
                    let message = format!(
                        "nothing stands for {{{name}}}: a command before or after traffic has {{interface}}, and what the \
                         variant of each setting gives it"
                    );
                    Err(self.error(span, message))
                }
            }
        };
        let all = |entries: Vec<CommandEntry>| -> Result<Vec<HostCommand>, FileError> {
            entries.into_iter().map(read).collect()
        };
        Ok(Commands {
            before: all(before)?,
            after: all(after)?,
        })
    }

    /// Returns an entry's engine. Refuses options that no engine has.
    pub(crate) fn engine_possible(
        &self,
        engine: Spanned<EngineEntry>,
    ) -> Result<EngineRequest, FileError> {
        let span = engine.span();
        if self.topology.is_routed() {
            let message = "the engine receives datagrams at the receiver, and here the router's receiving is what is studied; \
                 leave out topology.kind = \"router\"";
            return Err(self.error(span, message));
        }
        let request = EngineRequest::from(engine.into_inner());
        let refused = |error: Refused| self.error(span, error.to_string());
        request.settings().map_err(refused)?;
        Ok(request)
    }

    /// Refuses traffic that needs sockets at the receiver under a setting that has none.
    pub(crate) fn received_by_engine(
        &self,
        entry: &WorkloadEntry,
        settings: &[NamedSetting],
    ) -> Result<(), FileError> {
        let Some(setting) = settings.iter().find(|setting| setting.engine.is_some()) else {
            return Ok(());
        };
        let fits = entry.traffic.get_ref().workload().datagram_receiver();
        let why = if fits.is_none() {
            "traffic of kind udp"
        } else if entry.both_ways || !entry.background.is_empty() {
            "one stream one way, without both_ways and beside" // a key
        } else if self.topology.links() > 1 {
            "one link"
        } else {
            return Ok(());
        };
        let message = format!(
            "under the setting {} the engine receives, which takes {why}; make a study of its own of this workload",
            setting.name()
        );
        Err(self.error(entry.traffic.span(), message))
    }
}

#[cfg(test)]
mod tests {
    use crate::design::Evidence;
    use crate::design::file::StudyFile;
    use crate::design::file::tests::assert_refused;
    use nicpoll_model::Side;
    use nicpoll_stats::order::Seed;
    use nicpoll_testkit::assert_has;

    const ENGINES: &str = r#"
question = "What does the engine's polling cost?"
[[factor]]
name = "receiver"
levels = [
  { name = "socket", receiver = { gro = "on" } },
  { name = "engine", engine = { discipline = "polling", hz = 2000, knobs = { burst_max = 1000 } } },
]
[[workload]]
name = "udp"
spinner = true
traffic = { kind = "udp", payload_bytes = 64, packets_per_second = 1000 }
"#;

    #[test]
    fn an_engine_is_a_level_that_the_plan_names() {
        let file = StudyFile::parse(ENGINES).unwrap();
        let engine = file.design.setting("engine").unwrap();
        assert_eq!(engine.evidence, Evidence::Polls);
        let plan = file.plan(Seed(1)).unwrap();
        let words = "polling at 2000 Hz, burst_max=1000";
        let write = (Side::Receiver, String::from("engine"), String::from(words));
        assert_eq!(plan.settings[1].writes, [write]);
        assert_has(&plan.workloads[0].description, "has a program compute");
        // The run with a computing program takes time, too.
        let without = StudyFile::parse(&ENGINES.replace("spinner = true\n", "")).unwrap();
        let without = without.plan(Seed(1)).unwrap().plan;
        assert!(plan.plan.estimated_trial_seconds[0] > without.estimated_trial_seconds[0] + 0.1);
    }

    #[test]
    fn what_the_engine_cannot_receive_is_refused_with_its_line() {
        let changes = r#"
    7 | 10 to 20000 | burst_max = 1000 | burst_max = 5
    7 | discipline such as | hz = 2000 | hertz = 2000
    12 | traffic of kind udp | traffic = { kind = "udp", payload_bytes = 64, packets_per_second = 1000 } | traffic = { kind = "rr" }
    12 | one way | spinner = true | both_ways = true
    14 | one link | [[factor]] | [topology]\nlinks = 2\n[[factor]]
    9 | router's | [[factor]] | [topology]\nkind = "router"\n[[factor]]
    7 | one program | name = "engine", | name = "engine", xdp = { receiver = {} },
    11 | two factors set engine | [[workload]] | [[factor]]\nname = "two"\nlevels = [{ name = "a", engine = "polling" }, { name = "b" }]\n[[workload]]
    "#;
        assert_refused(ENGINES, changes);
    }
}
