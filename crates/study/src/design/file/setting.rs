//! Makes settings of a file's entries: one of each entry, or one of each combination of levels.
//!
//! No value is set twice in a setting. A value that cannot work on the link is refused with its entry's line.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use nicpoll_lab::{
    Commands, Cpus, EngineRequest, INTERFACE, MACHINE, MACHINE_INTERFACE, RECEIVER, ROUTER, SENDER,
    XdpProgram,
};
use nicpoll_model::{FileError, LevelFacts};
use nicpoll_observe::XdpMode;
use nicpoll_switch::knob::table::{DEFER_HARD_IRQS, GRO, GRO_FLUSH_TIMEOUT};
use nicpoll_switch::knob::{Kind, KnobRow};
use nicpoll_switch::{KnobValues, Request, Setting, needs_napi};
use toml::Spanned;

use crate::design::file::needs::{Resource, ResourceNeed};
use crate::design::file::reader::{Parts, SettingEntry, StudyFileReader, XdpEntry};
use crate::design::{Evidence, NamedSetting};
use crate::plan::check_period;

/// Refusal of a router's part without a router.
const NO_ROUTER: &str = "there is no router here; add topology = { kind = \"router\" }";

/// The values of an entry, with its name and its position in the file.
#[derive(Clone, Default)]
pub(crate) struct Piece {
    pub name: String,
    noun: String,
    description: String,
    /// The position of its name.
    pub name_span: Range<usize>,
    /// The position of the studied host's part, or of the name if it has none.
    span: Range<usize>,
    hosts: BTreeMap<String, KnobValues>,
    cpus: Cpus,
    xdp: BTreeMap<String, XdpProgram>,
    variant: BTreeMap<String, String>,
    commands: Commands,
    engine: Option<EngineRequest>,
}

impl Piece {
    /// Returns this piece, overridden by another, whose name it takes.
    fn under(&self, over: Piece) -> Piece {
        let mut hosts = self.hosts.clone();
        for (host, values) in &over.hosts {
            let own = hosts.entry(host.clone()).or_default();
            for (row, value) in values.iter() {
                own.insert(row, value.clone());
            }
        }
        Piece {
            hosts,
            cpus: self.cpus.under(over.cpus),
            xdp: under(&self.xdp, &over.xdp),
            variant: under(&self.variant, &over.variant),
            commands: self.commands.around(&over.commands),
            engine: over.engine.clone().or_else(|| self.engine.clone()),
            ..over
        }
    }

    /// Returns what both pieces set, in words.
    fn common_with(&self, other: &Piece) -> Option<String> {
        for (host, values) in &self.hosts {
            let others = other.hosts.get(host);
            let is_twice =
                |row: &&'static KnobRow| others.is_some_and(|own| own.get(row).is_some());
            if let Some(row) = values.iter().map(|(row, _)| row).find(is_twice) {
                return Some(format!("{} of the {host}", row.name));
            }
        }
        let mut names = self.variant.keys();
        if let Some(name) = names.find(|name| other.variant.contains_key(*name)) {
            return Some(format!("{name} of the command"));
        }
        let mut hosts = self.xdp.keys();
        if let Some(host) = hosts.find(|host| other.xdp.contains_key(*host)) {
            return Some(format!("xdp of the {host}"));
        }
        if self.engine.is_some() && other.engine.is_some() {
            return Some(String::from("engine"));
        }
        let side = self.cpus.common_with(other.cpus)?;
        Some(format!("cpus of the {side}"))
    }
}

/// Returns a map overridden by another.
fn under<K: Ord + Clone, V: Clone>(map: &BTreeMap<K, V>, over: &BTreeMap<K, V>) -> BTreeMap<K, V> {
    map.clone().into_iter().chain(over.clone()).collect()
}

impl StudyFileReader<'_> {
    /// Makes the piece of an entry.
    pub(crate) fn piece(&self, entry: SettingEntry) -> Result<Piece, FileError> {
        let parts = Parts {
            sender: entry.sender,
            router: entry.router,
            receiver: entry.receiver,
            machine: entry.machine,
            cpus: entry.cpus,
            xdp: entry.xdp,
            engine: entry.engine,
            before: entry.before,
            after: entry.after,
        };
        let words: Vec<&str> = entry.variant.keys().map(String::as_str).collect();
        let name_span = entry.name.span();
        let name = entry.name.into_inner();
        let piece = Piece {
            noun: entry.noun.unwrap_or_else(|| name.clone()),
            name,
            description: entry.description,
            ..self.parts(parts, &words, name_span)?
        };
        Ok(Piece {
            variant: entry.variant,
            ..piece
        })
    }

    /// Makes the piece of an entry's parts. `words` are the names that its commands may have in braces, `name_span`
    /// is the position of its name.
    pub(crate) fn parts(
        &self,
        parts: Parts,
        words: &[&str],
        name_span: Range<usize>,
    ) -> Result<Piece, FileError> {
        let mut piece = Piece {
            commands: self.commands([parts.before, parts.after], words)?,
            span: name_span.clone(),
            name_span,
            ..Piece::default()
        };
        let all = [
            (SENDER, parts.sender),
            (ROUTER, parts.router),
            (RECEIVER, parts.receiver),
            (MACHINE, parts.machine),
        ];
        for (host, values) in all {
            let Some(values) = values else { continue };
            self.possible(host, &values)?;
            self.needs
                .borrow_mut()
                .extend(ResourceNeed::of_values(host, &values));
            if host == self.topology.studied() {
                piece.span = values.span();
            }
            piece.hosts.insert(String::from(host), values.into_inner());
        }
        if let Some(cpus) = parts.cpus {
            self.need(cpus.span(), Resource::Cpus(*cpus.get_ref()));
            piece.cpus = cpus.into_inner();
        }
        if let Some(xdp) = parts.xdp {
            piece.xdp = self.xdp(xdp)?;
        }
        if let Some(engine) = parts.engine {
            piece.engine = Some(self.engine_possible(engine)?);
        }
        Ok(piece)
    }

    /// Returns the XDP programs that an entry names.
    fn xdp(&self, entry: Spanned<XdpEntry>) -> Result<BTreeMap<String, XdpProgram>, FileError> {
        let span = entry.span();
        let entry = entry.into_inner();
        if entry.router.is_some() && !self.topology.is_routed() {
            return Err(self.error(span, NO_ROUTER));
        }
        let all = [
            (SENDER, entry.sender),
            (ROUTER, entry.router),
            (RECEIVER, entry.receiver),
        ];
        let mut programs = BTreeMap::new();
        for (host, program) in all {
            let Some(program) = program else { continue };
            let checked = program.check();
            checked.map_err(|error| self.error(span.clone(), error.to_string()))?;
            if let Some(object) = program.object.clone() {
                self.need(span.clone(), Resource::Object(object));
            }
            programs.insert(String::from(host), program);
        }
        Ok(programs)
    }

    /// Refuses values that this kind of host does not have.
    fn possible(&self, host: &str, values: &Spanned<KnobValues>) -> Result<(), FileError> {
        if host == ROUTER && !self.topology.is_routed() {
            return Err(self.error(values.span(), NO_ROUTER));
        }
        for (row, _) in values.get_ref().iter() {
            let is_sysctl = row.named_kind() == Some(Kind::Sysctl);
            let message = if host == MACHINE && !is_sysctl {
                format!(
                    "{} is an interface's: write it at the sender or the receiver; machine = {{ sysctl = {{ ... }} }} \
                     is for sysctls of the whole machine",
                    row.name
                )
            } else if row.is_of_card() && self.topology.kind.is_made() {
                format!(
                    "{} is a card's, and the study runs on a veth pair, which has neither rings of a size to choose nor \
                     interrupts to moderate",
                    row.name
                )
            } else {
                continue;
            };
            return Err(self.error(values.span(), message));
        }
        Ok(())
    }

    /// Makes a setting of one level of each factor, in the order of the factors.
    pub(crate) fn crossed(
        &self,
        common: &Piece,
        levels: &[(&str, &Piece)],
    ) -> Result<NamedSetting, FileError> {
        let mut whole = Piece::default();
        for (factor, level) in levels {
            if let Some(what) = whole.common_with(level) {
                let message = format!(
                    "two factors set {what}, and one of them is {factor}: a value belongs to one factor"
                );
                return Err(self.error(level.span.clone(), message));
            }
            let before = whole.span.clone();
            whole = whole.under((*level).clone());
            if !level.hosts.contains_key(self.topology.studied()) {
                whole.span = before;
            }
        }
        if whole.span.is_empty() {
            whole.span = levels
                .first()
                .map_or(0..0, |(_, level)| level.name_span.clone());
        }
        let join = |between: &str, of: fn(&Piece) -> &str| {
            let words = levels.iter().map(|(_, level)| of(level));
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            words.join(between)
        };
        whole.name = join("+", |level| &level.name);
        whole.noun = join(" with ", |level| &level.noun);
        whole.description = join("; ", |level| &level.description);
        let level_of = |(factor, level): &(&str, &Piece)| LevelFacts {
            factor: String::from(*factor),
            level: level.name.clone(),
        };
        Ok(NamedSetting {
            levels: levels.iter().map(level_of).collect(),
            ..self.setting(common, whole)?
        })
    }

    /// Makes the setting of a piece.
    pub(crate) fn setting(&self, common: &Piece, piece: Piece) -> Result<NamedSetting, FileError> {
        let piece = common.under(piece);
        let studied = piece.hosts.get(self.topology.studied()).cloned();
        let studied = studied.unwrap_or_default();
        let xdp = piece.xdp.get(self.topology.studied());
        if piece.engine.is_some() && xdp.is_some() {
            let message = format!(
                "the setting {} has the engine and an XDP program at the receiver, and an interface has one program: \
                 the engine's own takes its packets there",
                piece.name
            );
            return Err(self.error(piece.span, message));
        }
        let has_napi = studied.number(&GRO) == Some(1)
            || piece.engine.is_some()
            || xdp.is_some_and(|program| program.mode == XdpMode::Native);
        let is_made = self.topology.kind.is_made();
        let evidence = match evidence_of(&studied, has_napi) {
            Evidence::NoNapi if !is_made => Evidence::AsItIs,
            evidence => evidence,
        };
        if is_made && evidence != Evidence::NoNapi && !has_napi {
            let message = format!(
                "a veth has no NAPI while GRO is off and no native XDP program is there; add gro = \"on\" to the {}, \
                 and to that of the setting that it is compared with",
                self.topology.studied()
            );
            return Err(self.error(piece.span, message));
        }
        if let Evidence::Rounds { period_ns } = evidence {
            check_period(Duration::from_nanos(period_ns), self.trial)
                .map_err(|error| self.error(piece.span.clone(), error.0))?;
        }
        let hosts = piece.hosts.into_iter();
        let hosts = hosts.filter(|(_, set)| !set.is_empty());
        let hosts = hosts.map(|(host, set)| {
            let interface = match &*host {
                MACHINE => MACHINE_INTERFACE,
                _ => INTERFACE,
            };
            (host, Request::of(interface, set))
        });
        Ok(NamedSetting {
            noun: piece.noun,
            setting: Setting {
                name: piece.name,
                description: piece.description,
                hosts: hosts.collect(),
            },
            cpus: piece.cpus,
            xdp: piece.xdp,
            commands: piece.commands.with(&piece.variant),
            variant: piece.variant,
            engine: piece.engine,
            levels: Vec::new(),
            evidence,
        })
    }
}

/// Returns what a veth's polls must show under these values.
fn evidence_of(studied: &KnobValues, has_napi: bool) -> Evidence {
    let above_zero = |row| studied.number(row).filter(|number| *number > 0);
    match (above_zero(&DEFER_HARD_IRQS), above_zero(&GRO_FLUSH_TIMEOUT)) {
        (Some(_), Some(period_ns)) => Evidence::Rounds { period_ns },
        _ if has_napi || needs_napi(studied) => Evidence::Polls,
        _ => Evidence::NoNapi,
    }
}
