//! From what entries of a file set to settings: one entry each, or one level of each factor.
//!
//! What must hold: no value is set twice in a setting; whatever can be known to be impossible on a veth pair is refused
//! with the line of the entry that asks for it.

use std::collections::BTreeMap;
use std::ops::Range;

use nicpoll_model::{FileError, LevelFacts, Side};
use nicpoll_switch::knob::Row;
use nicpoll_switch::knob::table::{DEFER_HARD_IRQS, GRO, GRO_FLUSH_TIMEOUT};
use nicpoll_switch::{Request, Setting, Values, needs_napi};
use toml::Spanned;

use super::Reader;
use super::claim::{Claim, Wanted};
use super::entry::{CommonEntry, SettingEntry};
use crate::INTERFACE;
use crate::design::{Cpus, Evidence, NamedSetting};

/// What an entry sets, with where it stands.
#[derive(Clone, Default)]
pub(super) struct Piece {
    span: Range<usize>,
    sender: Values,
    receiver: Values,
    cpus: Cpus,
}

/// A piece with what it is called.
#[derive(Clone)]
pub(super) struct NamedPiece {
    pub name: Spanned<String>,
    noun: Option<String>,
    description: String,
    piece: Piece,
}

impl Piece {
    /// What every setting has.
    pub fn common(entry: Option<CommonEntry>, claims: &mut Vec<Claim>) -> Self {
        let Some(entry) = entry else {
            return Piece::default();
        };
        let (span, receiver) = spanned(entry.receiver, 0..0);
        Piece {
            span,
            sender: entry.sender,
            receiver,
            cpus: claimed(entry.cpus, claims),
        }
    }

    /// This piece with another one in force over it.
    pub fn under(&self, over: &Piece) -> Piece {
        let both = |mut values: Values, over: &Values| {
            for (row, value) in over.iter() {
                values.insert(row, value.clone());
            }
            values
        };
        Piece {
            span: over.span.clone(),
            sender: both(self.sender.clone(), &over.sender),
            receiver: both(self.receiver.clone(), &over.receiver),
            cpus: self.cpus.under(over.cpus),
        }
    }

    /// What both of two pieces set, in words.
    fn common_with(&self, other: &Piece) -> Option<String> {
        let of = |side: Side, own: &Values, others: &Values| {
            let is_twice = |row: &&'static Row| others.get(row).is_some();
            let row = own.iter().map(|(row, _)| row).find(is_twice)?;
            Some(format!("{} of the {side}", row.name))
        };
        of(Side::Sender, &self.sender, &other.sender)
            .or_else(|| of(Side::Receiver, &self.receiver, &other.receiver))
            .or_else(|| {
                let side = self.cpus.common_with(other.cpus)?;
                Some(format!("cpus of the {side}"))
            })
    }
}

fn spanned(values: Option<Spanned<Values>>, without: Range<usize>) -> (Range<usize>, Values) {
    values.map_or((without, Values::new()), |values| {
        (values.span(), values.into_inner())
    })
}

/// Cores, which the machine has to have.
fn claimed(cpus: Option<Spanned<Cpus>>, claims: &mut Vec<Claim>) -> Cpus {
    let Some(cpus) = cpus else {
        return Cpus::default();
    };
    let wants = Wanted::Cpus(*cpus.get_ref());
    claims.push(Claim::new(cpus.span(), wants));
    cpus.into_inner()
}

impl Reader<'_> {
    /// What an entry says.
    pub(super) fn piece(
        &self,
        entry: SettingEntry,
        claims: &mut Vec<Claim>,
    ) -> Result<NamedPiece, FileError> {
        if let Some(discipline) = &entry.discipline {
            let message = format!(
                "the engine is not built yet, and nothing can receive by '{}'; a level may set what nicpoll set \
                 sets, sysctls, features and cpus",
                discipline.get_ref()
            );
            return Err(self.error(discipline.span(), message));
        }
        let (span, receiver) = spanned(entry.receiver, entry.name.span());
        Ok(NamedPiece {
            name: entry.name,
            noun: entry.noun,
            description: entry.description,
            piece: Piece {
                span,
                sender: entry.sender,
                receiver,
                cpus: claimed(entry.cpus, claims),
            },
        })
    }

    /// One setting of one entry.
    pub(super) fn setting(
        &self,
        common: &Piece,
        named: NamedPiece,
    ) -> Result<NamedSetting, FileError> {
        let NamedPiece {
            name,
            noun,
            description,
            piece,
        } = named;
        let name = name.into_inner();
        let noun = noun.unwrap_or_else(|| name.clone());
        self.named(common.under(&piece), name, noun, description, Vec::new())
    }

    /// One setting of a level of each factor, in the order of the factors.
    pub(super) fn crossed(
        &self,
        common: &Piece,
        levels: &[(&str, &NamedPiece)],
    ) -> Result<NamedSetting, FileError> {
        let mut whole = Piece::default();
        for (factor, level) in levels {
            if let Some(what) = whole.common_with(&level.piece) {
                let message = format!(
                    "two factors set {what}, and one of them is {factor}: a value belongs to one factor"
                );
                return Err(self.error(level.piece.span.clone(), message));
            }
            let span = level.piece.span.clone();
            let is_of_receiver = !level.piece.receiver.is_empty();
            let before = whole.span.clone();
            whole = whole.under(&level.piece);
            whole.span = if is_of_receiver { span } else { before };
        }
        if whole.span.is_empty() {
            whole.span = levels.first().map_or(0..0, |(_, level)| level.name.span());
        }
        let join = |between: &str, of: &dyn Fn(&NamedPiece) -> String| {
            let words = levels.iter().map(|(_, level)| of(level));
            let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
            words.join(between)
        };
        let name = join("+", &|level| level.name.get_ref().clone());
        let noun = join(" with ", &|level| {
            let name = || level.name.get_ref().clone();
            level.noun.clone().unwrap_or_else(name)
        });
        let description = join("; ", &|level| level.description.clone());
        let level_of = |(factor, level): &(&str, &NamedPiece)| LevelFacts {
            factor: String::from(*factor),
            level: level.name.get_ref().clone(),
        };
        let levels = levels.iter().map(level_of).collect();
        self.named(common.under(&whole), name, noun, description, levels)
    }

    fn named(
        &self,
        piece: Piece,
        name: String,
        noun: String,
        description: String,
        levels: Vec<LevelFacts>,
    ) -> Result<NamedSetting, FileError> {
        let evidence = evidence_of(&piece.receiver);
        if evidence != Evidence::NoNapi && piece.receiver.number(&GRO) != Some(1) {
            let message = String::from(
                "a veth has no NAPI while GRO is off; add gro = \"on\" to the receiver, and to that of the setting \
                 that it is compared with",
            );
            return Err(self.error(piece.span, message));
        }
        let hosts = [
            (Side::Sender, piece.sender),
            (Side::Receiver, piece.receiver),
        ];
        let hosts = hosts.into_iter().filter(|(_, set)| !set.is_empty());
        Ok(NamedSetting {
            noun,
            setting: Setting {
                name,
                description,
                hosts: hosts
                    .map(|(side, set)| (side.to_string(), Request::of(INTERFACE, set)))
                    .collect::<BTreeMap<_, _>>(),
            },
            cpus: piece.cpus,
            levels,
            evidence,
        })
    }
}

/// What must be seen of a veth's polls for these values to be in force.
fn evidence_of(receiver: &Values) -> Evidence {
    let above_zero = |row| receiver.number(row).filter(|number| *number > 0);
    match (above_zero(&DEFER_HARD_IRQS), above_zero(&GRO_FLUSH_TIMEOUT)) {
        (Some(_), Some(period_ns)) => Evidence::Rounds { period_ns },
        _ if receiver.number(&GRO) == Some(1) || needs_napi(receiver) => Evidence::Polls,
        _ => Evidence::NoNapi,
    }
}
