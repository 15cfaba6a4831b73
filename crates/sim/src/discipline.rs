//! How the host learns of packets: the table of receive disciplines, and reading one with its options.

mod freebsd;
mod napi;

use std::fmt;
use std::sync::Arc;

use nicpoll_core::{Knob, Poller};

use crate::host::HostModel;
use crate::machine::{Node, Setup};
use crate::plan::SimulationError;
use crate::spec::{Spec, SpecError, number};

pub use napi::DEFER_MAX;
pub(crate) use napi::{Busy, NapiOptions};

/// Every discipline: its name, and what reads its options.
const TABLE: [(&str, Read); 5] = [
    ("freebsd-interrupt", freebsd::interrupt),
    ("freebsd-polling", freebsd::polling),
    ("napi", napi::napi),
    ("napi-timer", napi::timer),
    ("busy-poll", napi::busy_poll),
];
/// Words of `nicpoll set` and the demo, FreeBSD's discipline of that name, and the one that they mean.
const WORDS: [(&str, &str, &str); 2] = [
    ("interrupt", "freebsd-interrupt", "napi"),
    ("polling", "freebsd-polling", "napi-timer"),
];

type Options<'a> = [(&'a str, &'a str)];
type Read = fn(&Options<'_>) -> Result<Arc<dyn Method>, SpecError>;

/// A receive discipline with its options, and numbers of the host that go with it.
#[derive(Clone, Debug)]
pub struct ReceiveDiscipline {
    text: String,
    name: &'static str,
    pub(crate) method: Arc<dyn Method>,
    changes: Vec<(String, u64)>,
}

/// What a discipline is to whoever plans and explains runs.
pub(crate) trait Method: fmt::Debug + Send + Sync {
    /// A machine under it.
    ///
    /// # Errors
    /// Why its options cannot be, on this host.
    fn machine(&self, setup: Setup) -> Result<Box<dyn Node>, SimulationError>;

    /// Its poller with every card registered, if it has one.
    ///
    /// # Errors
    /// Why its options cannot be, on this host.
    fn poller(&self, _host: &HostModel, _cards: u32) -> Result<Option<Poller>, SimulationError> {
        Ok(None)
    }

    /// The same with another knob; `None` when it has none.
    fn with_knob(&self, _knob: Knob, _value: u32) -> Option<Arc<dyn Method>> {
        None
    }

    /// Whether it serves queues on several processors, and merges segments.
    fn knows_several_processors(&self) -> bool {
        false
    }

    /// Whether programs poll for what they read.
    fn is_program_polling(&self) -> bool {
        false
    }

    /// Whether packets wait for the clock's ticks.
    fn waits_for_ticks(&self) -> bool {
        false
    }

    /// How often it looks at each card for nothing, at most.
    fn looks_per_second(&self, _host: &HostModel) -> f64 {
        0.0
    }

    /// Ticks after which what it adapts is where it stays.
    fn climb_ticks(&self, _host: &HostModel) -> u64 {
        0
    }

    /// Whether it serves cards that an interrupt is no part of, such as an end of a veth pair.
    fn serves_without_interrupts(&self) -> bool {
        false
    }
}

impl PartialEq for ReceiveDiscipline {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.changes == other.changes
    }
}

impl Eq for ReceiveDiscipline {}

impl fmt::Display for ReceiveDiscipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl ReceiveDiscipline {
    /// Reads a name with its options: `freebsd-interrupt`, `freebsd-polling:user_frac=0:controller=share`,
    /// `napi:budget=64`, `napi-timer:timeout=200us`, `busy-poll:spin=50us`. Any of them takes numbers of
    /// the host too, as `freebsd-interrupt:card.moderation_ns=50us`.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(text: &str) -> Result<ReceiveDiscipline, SpecError> {
        let spec = Spec::parse(text)?;
        let (of_host, own): (Vec<_>, Vec<_>) = spec
            .options
            .into_iter()
            .partition(|(name, _)| name.contains('.'));
        let found = TABLE.iter().find(|(name, _)| *name == spec.name);
        let (name, read) = found.ok_or_else(|| unknown(spec.name))?;
        Ok(ReceiveDiscipline {
            text: String::from(text),
            name,
            method: read(&own)?,
            changes: of_host
                .into_iter()
                .map(change)
                .collect::<Result<_, SpecError>>()?,
        })
    }

    /// Each discipline as it comes.
    pub fn all() -> Vec<ReceiveDiscipline> {
        let parsed = TABLE.iter().map(|(name, _)| ReceiveDiscipline::parse(name));
        parsed.filter_map(Result::ok).collect()
    }

    /// Its name, without options.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The host with the numbers that go with this discipline.
    pub fn applied_to(&self, host: &HostModel) -> HostModel {
        let mut host = host.clone();
        for (name, value) in &self.changes {
            // `parse` has seen that name and value are right.
            let _ = host.set(name, *value);
        }
        host
    }

    /// The same with another number of the host. Name and value must be right.
    pub(crate) fn with(&self, name: &str, value: u64) -> ReceiveDiscipline {
        let mut changed = self.clone();
        changed.changes.push((String::from(name), value));
        changed
    }

    /// The same with another knob, if it polls.
    pub(crate) fn with_knob(&self, knob: Knob, value: u32) -> ReceiveDiscipline {
        let method = self.method.with_knob(knob, value);
        ReceiveDiscipline {
            method: method.unwrap_or_else(|| Arc::clone(&self.method)),
            ..self.clone()
        }
    }

    /// The same with the numbers of the host that go with another.
    pub(crate) fn with_changes_of(mut self, other: &ReceiveDiscipline) -> ReceiveDiscipline {
        self.changes.extend_from_slice(&other.changes);
        self
    }
}

fn unknown(name: &str) -> SpecError {
    if let Some((word, freebsd, linux)) = WORDS.iter().find(|(word, ..)| *word == name) {
        return SpecError(format!(
            "no such discipline: '{word}'; FreeBSD's is {freebsd}, and what nicpoll set and the demo call {word} \
             is {linux}"
        ));
    }
    let known = TABLE.map(|(name, _)| name).join(", ");
    SpecError(format!("no such discipline: '{name}'; there are {known}"))
}

/// A number of the host that goes with a discipline.
fn change((name, value): (&str, &str)) -> Result<(String, u64), SpecError> {
    if name == "veth.pair" {
        return Err(SpecError(String::from(
            "veth.pair says what the host is: it stands in the host file only",
        )));
    }
    let value = number(value).map_err(|error| SpecError(format!("{name}: {error}")))?;
    // Name and range are wrong for every host or for none.
    HostModel::default().set(name, value)?;
    Ok((String::from(name), value))
}

#[cfg(test)]
mod tests {
    use nicpoll_core::Controller;

    use super::*;

    #[test]
    fn disciplines_are_read_with_their_options() {
        let polling =
            ReceiveDiscipline::parse("freebsd-polling:user_frac=0:controller=share").unwrap();
        let mut host = HostModel::default();
        host.set("cpu.hz", 1000).unwrap();
        let poller = polling.method.poller(&host, 1);
        let poller = poller.unwrap().unwrap();
        assert_eq!(poller.read(Knob::UserFrac), 0);
        assert_eq!(poller.controller(), Controller::Share);
        let timer = ReceiveDiscipline::parse("napi-timer:timeout=200us").unwrap();
        let shown = format!("{:?}", timer.method);
        assert!(shown.contains("defer: 100, timeout_ns: 200000"), "{shown}");
        let names: Vec<_> = ReceiveDiscipline::all()
            .iter()
            .map(ReceiveDiscipline::name)
            .collect();
        assert_eq!(names, TABLE.map(|(name, _)| name));
        let moderated =
            ReceiveDiscipline::parse("freebsd-interrupt:card.moderation_ns=50us").unwrap();
        let host = moderated.applied_to(&HostModel::default());
        assert_eq!(host.card.moderation_ns, 50_000);
        assert_eq!(
            moderated.to_string(),
            "freebsd-interrupt:card.moderation_ns=50us"
        );
    }

    #[test]
    fn what_is_wrong_is_refused_with_what_would_be_right() {
        for (text, words) in [
            ("interupt", "there are freebsd-interrupt, freebsd-polling"),
            ("interrupt", "FreeBSD's is freebsd-interrupt"),
            (
                "polling:user_frac=0",
                "what nicpoll set and the demo call polling is napi-timer",
            ),
            ("freebsd-interrupt:fast=1", "no option 'fast'"),
            ("freebsd-interrupt:card.rings=1", "card.rx_ring"),
            ("freebsd-interrupt:card.rx_ring=0", "from 1 to"),
            ("napi:veth.pair=1", "in the host file only"),
            ("freebsd-polling:burst=5", "it has controller, burst_max"),
            ("freebsd-polling:user_frac=many", "user_frac"),
            ("freebsd-polling:controller=pid", "freebsd, share"),
            ("napi:timeout=1ms", "it has weight, budget, budget_time"),
            ("napi-timer:timeout=0", "give 1000 to"),
            ("busy-poll:spin", "NAME=VALUE"),
        ] {
            let error = ReceiveDiscipline::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
