//! How the host learns of packets.

use std::fmt;

use nicpoll_core::{Access, Controller, Knob};

use crate::host::Host;
use crate::spec::{Spec, number, ranged};

const NAMES: &str = "freebsd-interrupt, freebsd-polling, napi, napi-timer, busy-poll";
/// The most empty polls that `napi_defer_hard_irqs` takes.
pub const DEFER_MAX: u64 = i32::MAX as u64;
/// A second: longer than any timeout that makes sense.
const TIME_MAX_NS: u64 = 1_000_000_000;

/// A receive discipline with its options, and numbers of the host that go with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discipline {
    text: String,
    pub(crate) kind: Kind,
    changes: Vec<(String, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Each interrupt wakes a thread that empties the card (FreeBSD).
    Interrupt,
    /// The clock's ticks poll the card (FreeBSD).
    Polling {
        /// Written in this order.
        knobs: Vec<(Knob, u32)>,
        controller: Controller,
    },
    /// An interrupt begins polling, and an empty card ends it (Linux).
    Napi(NapiOptions),
}

/// Options of NAPI. The defaults are the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NapiOptions {
    /// The most packets of a poll.
    pub(crate) weight: u64,
    /// The most packets of a pass (`net.core.netdev_budget`).
    pub(crate) budget: u64,
    /// The longest pass (`net.core.netdev_budget_usecs`); `None` for two ticks.
    pub(crate) budget_ns: Option<u64>,
    /// How long interrupts stay off when the card is empty.
    pub(crate) deferral: Option<Deferral>,
    /// How the program polls.
    pub(crate) busy: Option<Busy>,
}

/// Both must be above 0 to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deferral {
    /// Empty polls before interrupts come back (`napi_defer_hard_irqs`).
    pub(crate) defer: u64,
    /// Time from a round's end to the next poll (`gro_flush_timeout`).
    pub(crate) timeout_ns: u64,
}

/// Polling by the program while its socket is empty (`SO_BUSY_POLL` with `SO_PREFER_BUSY_POLL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy {
    /// How long it polls for nothing before it sleeps.
    pub(crate) spin_ns: u64,
    /// The most packets of a poll (`SO_BUSY_POLL_BUDGET`).
    pub(crate) budget: u64,
}

impl Default for NapiOptions {
    fn default() -> Self {
        NapiOptions {
            weight: 64,
            budget: 300,
            budget_ns: None,
            deferral: None,
            busy: None,
        }
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Discipline {
    /// Reads a name with its options: `freebsd-interrupt`, `freebsd-polling:user_frac=0:controller=share`,
    /// `napi:budget=64`, `napi-timer:timeout=200us`, `busy-poll:spin=50us`. Any of them takes numbers of
    /// the host too, as `freebsd-interrupt:card.moderation_ns=50us`.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(text: &str) -> Result<Discipline, String> {
        let spec = Spec::parse(text)?;
        let is_change = |(name, _): &&(&str, &str)| name.contains('.');
        let own = spec
            .options
            .iter()
            .filter(|option| !is_change(option))
            .copied();
        let kind = match spec.name {
            "freebsd-interrupt" => {
                refuse_all(own)?;
                Kind::Interrupt
            }
            "freebsd-polling" => polling(own)?,
            "napi" | "napi-timer" | "busy-poll" => Kind::Napi(napi(spec.name, own)?),
            old @ ("interrupt" | "polling") => {
                return Err(format!(
                    "no such discipline: '{old}'; FreeBSD's is freebsd-{old}, and what nicpoll set and the demo call \
                     {old} is {}",
                    if old == "polling" {
                        "napi-timer"
                    } else {
                        "napi"
                    }
                ));
            }
            other => return Err(format!("no such discipline: '{other}'; there are {NAMES}")),
        };
        let mut changes = Vec::new();
        for (name, value) in spec.options.iter().filter(is_change) {
            if *name == "veth.pair" {
                return Err(String::from(
                    "veth.pair says what the host is: it stands in the host file only",
                ));
            }
            let value = number(value).map_err(|error| format!("{name}: {error}"))?;
            // Name and range are wrong for every host or for none.
            Host::default().set(name, value)?;
            changes.push((String::from(*name), value));
        }
        Ok(Discipline {
            text: String::from(text),
            kind,
            changes,
        })
    }

    /// The host with the numbers that go with this discipline.
    pub fn applied_to(&self, host: &Host) -> Host {
        let mut host = host.clone();
        for (name, value) in &self.changes {
            // `parse` has seen that name and value are right.
            let _ = host.set(name, *value);
        }
        host
    }

    /// The same with another number of the host. Name and value must be right.
    pub(crate) fn with(&self, name: &str, value: u64) -> Discipline {
        let mut changed = self.clone();
        changed.changes.push((String::from(name), value));
        changed
    }

    /// The same with another knob, if it polls.
    pub(crate) fn with_knob(&self, knob: Knob, value: u32) -> Discipline {
        let mut changed = self.clone();
        if let Kind::Polling { knobs, .. } = &mut changed.kind {
            knobs.push((knob, value));
        }
        changed
    }

    /// The same with the numbers of the host that go with another.
    pub(crate) fn with_changes_of(mut self, other: &Discipline) -> Discipline {
        self.changes.extend_from_slice(&other.changes);
        self
    }
}

fn refuse_all<'a>(mut options: impl Iterator<Item = (&'a str, &'a str)>) -> Result<(), String> {
    match options.next() {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "freebsd-interrupt has no option '{name}'; numbers of the host have a dot: card.moderation_ns=50us"
        )),
    }
}

fn polling<'a>(options: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Kind, String> {
    let mut knobs = Vec::new();
    let mut controller = Controller::default();
    for (name, value) in options {
        if name == "controller" {
            controller = Controller::from_name(value).ok_or_else(|| {
                let known = Controller::ALL.map(Controller::name).join(", ");
                format!("no such controller: '{value}'; there are {known}")
            })?;
            continue;
        }
        let writable = |knob: &Knob| knob.access() == Access::ReadWrite;
        let knob = Knob::from_name(name).filter(writable).ok_or_else(|| {
            let names = Knob::ALL
                .iter()
                .filter(|knob| writable(knob))
                .map(|knob| knob.name());
            let known: Vec<_> = names.collect();
            format!(
                "freebsd-polling has no option '{name}'; it has controller, {}",
                known.join(", ")
            )
        })?;
        let value = ranged(name, value, 0, u64::from(u32::MAX))?;
        knobs.push((knob, value as u32));
    }
    Ok(Kind::Polling { knobs, controller })
}

fn napi<'a>(
    kind: &str,
    options: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<NapiOptions, String> {
    let mut napi = NapiOptions::default();
    match kind {
        // One period of the original's clock; interrupts stay off for a tenth of a second of silence.
        "napi-timer" => {
            napi.deferral = Some(Deferral {
                defer: 100,
                timeout_ns: 1_000_000,
            });
        }
        // The time that the kernel's documentation recommends, the socket option's default budget, and the
        // deferral that its developers' tests of preferred busy polling use.
        "busy-poll" => {
            napi.deferral = Some(Deferral {
                defer: 2,
                timeout_ns: 200_000,
            });
            napi.busy = Some(Busy {
                spin_ns: 50_000,
                budget: 8,
            });
        }
        _ => {}
    }
    for (name, value) in options {
        match (name, &mut napi.deferral, &mut napi.busy) {
            ("weight", ..) => napi.weight = ranged(name, value, 1, 65_535)?,
            ("budget", ..) => napi.budget = ranged(name, value, 1, 1_000_000)?,
            ("budget_time", ..) => napi.budget_ns = Some(ranged(name, value, 1, TIME_MAX_NS)?),
            ("defer", Some(deferral), _) => deferral.defer = ranged(name, value, 1, DEFER_MAX)?,
            ("timeout", Some(deferral), _) => {
                deferral.timeout_ns = ranged(name, value, 1_000, TIME_MAX_NS)?;
            }
            ("spin", _, Some(busy)) => busy.spin_ns = ranged(name, value, 1, TIME_MAX_NS)?,
            ("busy_budget", _, Some(busy)) => busy.budget = ranged(name, value, 1, 65_535)?,
            _ => {
                let more = match kind {
                    "napi-timer" => ", defer, timeout",
                    "busy-poll" => ", defer, timeout, spin, busy_budget",
                    _ => "",
                };
                return Err(format!(
                    "{kind} has no option '{name}'; it has weight, budget, budget_time{more}"
                ));
            }
        }
    }
    Ok(napi)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disciplines_are_read_with_their_options() {
        let polling = Discipline::parse("freebsd-polling:user_frac=0:controller=share").unwrap();
        let knobs = vec![(Knob::UserFrac, 0)];
        let controller = Controller::Share;
        assert_eq!(polling.kind, Kind::Polling { knobs, controller });
        let timer = Discipline::parse("napi-timer:timeout=200us").unwrap();
        let Kind::Napi(options) = timer.kind else {
            panic!("{timer}");
        };
        assert_eq!(
            options.deferral.map(|d| (d.defer, d.timeout_ns)),
            Some((100, 200_000))
        );
        let moderated = Discipline::parse("freebsd-interrupt:card.moderation_ns=50us").unwrap();
        let host = moderated.applied_to(&Host::default());
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
            let error = Discipline::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
