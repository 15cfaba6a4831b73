//! How a host learns of packets: the table of receive disciplines, and reading one with its options.

use std::fmt;

use nicpoll_core::{Access, Controller, DeviceId, Knob, NS_PER_SECOND, Poller};

use super::host::HostModel;
use super::options::{NameAndOptions, SimError, number, ranged, refuse};

/// Every discipline with its defaults.
const TABLE: [(&str, Method); 5] = [
    ("freebsd-interrupt", Method::FreebsdInterrupt),
    (
        "freebsd-polling",
        Method::FreebsdPolling {
            knobs: Vec::new(),
            controller: Controller::Freebsd,
        },
    ),
    ("napi", Method::Napi(NAPI)),
    // Defers by 1 ms, the period of FreeBSD's clock, until a tenth of a second of silence.
    ("napi-timer", Method::Napi(deferred(100, 1_000_000, None))),
    // The spin time that the kernel's documentation recommends, the socket option's default budget, and the deferral
    // of its developers' tests of preferred busy polling.
    (
        "busy-poll",
        Method::Napi(deferred(
            2,
            200_000,
            Some(Busy {
                spin_ns: 50_000,
                budget: 8,
            }),
        )),
    ),
];
/// Words of `nicpoll set` and the demo, each with the disciplines that come nearest: FreeBSD's and Linux's.
const WORDS: [(&str, &str, &str); 2] = [
    ("interrupt", "freebsd-interrupt", "napi"),
    ("polling", "freebsd-polling", "napi-timer"),
];
/// Largest value of `napi_defer_hard_irqs`, in empty polls.
pub const DEFER_MAX: u64 = i32::MAX as u64;
/// A second: longer than any useful timeout.
const TIME_MAX_NS: u64 = NS_PER_SECOND;

/// A receive discipline with its options, and the numbers of the host that it overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveDiscipline {
    text: String,
    name: &'static str,
    pub(crate) method: Method,
    changes: Vec<(String, u64)>,
}

/// Which kernel a host runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostKernel {
    /// Software interrupts have a thread of their own, and packets may wait in a queue before IP.
    Freebsd,
    /// Software interrupts run in the thread that they interrupt, and pass packets on at once.
    Linux,
}

/// The mechanism of a discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Each interrupt wakes a thread that empties the card.
    FreebsdInterrupt,
    /// The clock's ticks poll the card.
    FreebsdPolling {
        /// Knobs to write, in this order.
        knobs: Vec<(Knob, u32)>,
        controller: Controller,
    },
    /// An interrupt begins polling, and an empty card ends it.
    Napi(NapiOptions),
}

/// Options of NAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NapiOptions {
    /// Most packets of a poll.
    pub(crate) weight: u64,
    /// Most packets of a softirq pass (`net.core.netdev_budget`).
    pub(crate) budget: u64,
    /// Longest pass (`net.core.netdev_budget_usecs`); `None` for two ticks.
    pub(crate) budget_ns: Option<u64>,
    /// How long interrupts stay off when the card is empty.
    pub(crate) deferral: Option<HostDeferral>,
    /// Busy polling by the program.
    pub(crate) busy: Option<Busy>,
}

/// Deferral of interrupts; it acts only if both are above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostDeferral {
    /// Empty polls before interrupts come back (`napi_defer_hard_irqs`).
    pub(crate) defer: u64,
    /// Time from a round's end to the next poll (`gro_flush_timeout`).
    pub(crate) timeout_ns: u64,
}

/// Polling by the program while its socket is empty (`SO_BUSY_POLL` with `SO_PREFER_BUSY_POLL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy {
    /// How long it polls in vain before it sleeps.
    pub(crate) spin_ns: u64,
    /// Most packets of a poll (`SO_BUSY_POLL_BUDGET`).
    pub(crate) budget: u64,
}

/// The kernel's defaults.
const NAPI: NapiOptions = NapiOptions {
    weight: 64,
    budget: 300,
    budget_ns: None,
    deferral: None,
    busy: None,
};

const fn deferred(defer: u64, timeout_ns: u64, busy: Option<Busy>) -> NapiOptions {
    NapiOptions {
        deferral: Some(HostDeferral { defer, timeout_ns }),
        busy,
        ..NAPI
    }
}

impl Method {
    /// Sets an option; `discipline` is the name for messages.
    fn set(&mut self, discipline: &str, name: &str, value: &str) -> Result<(), SimError> {
        match self {
            Method::FreebsdInterrupt => refuse(format!(
                "freebsd-interrupt has no option '{name}'; numbers of the host have a dot: card.moderation_ns=50us"
            )),
            Method::FreebsdPolling { controller, .. } if name == "controller" => {
                *controller = Controller::from_name(value).ok_or_else(|| {
                    let known = Controller::ALL.map(Controller::name).join(", ");
                    format!("no such controller: '{value}'; there are {known}")
                })?;
                Ok(())
            }
            Method::FreebsdPolling { knobs, .. } => {
                let writable = |knob: &Knob| knob.access() == Access::ReadWrite;
                let Some(knob) = Knob::from_name(name).filter(writable) else {
                    let known = Knob::ALL.iter().filter(|knob| writable(knob));
                    let known: Vec<_> = known.map(|knob| knob.name()).collect();
                    return refuse(format!(
                        "freebsd-polling has no option '{name}'; it has controller, {}",
                        known.join(", ")
                    ));
                };
                let value = ranged(name, value, 0, u64::from(u32::MAX))?;
                knobs.push((knob, value as u32));
                Ok(())
            }
            Method::Napi(napi) => napi.set(discipline, name, value),
        }
    }

    /// Returns its poller with every card registered, if it has one. `host` includes the discipline's overrides.
    ///
    /// # Errors
    /// The knob that the poller refuses on this host.
    pub(crate) fn poller(&self, host: &HostModel, cards: u32) -> Result<Option<Poller>, SimError> {
        let Method::FreebsdPolling { knobs, controller } = self else {
            return Ok(None);
        };
        // The limit of `cpu.hz` is far below the poller's.
        let mut poller = Poller::new(host.cpu.hz as u32).expect("a host's clock ticks");
        for &(knob, value) in knobs {
            poller.write(knob, value).map_err(|errno| {
                format!(
                    "kern.polling.{} = {value} is refused ({errno}): burst_max takes 10 to 20000, each_burst 1 \
                     to burst_max, user_frac 0 to 99, reg_frac 1 to cpu.hz; knobs are written in the order given",
                    knob.name()
                )
            })?;
        }
        poller.set_controller(*controller);
        for card in 0..cards {
            let registered = poller.register(DeviceId(card));
            let _ = registered.expect("the list has room, and no card twice");
        }
        Ok(Some(poller))
    }

    /// Returns what a machine needs: the kernel, the poller if there is one, and the options of NAPI.
    ///
    /// # Errors
    /// The knob that the poller refuses on this host.
    pub(crate) fn kernel(
        &self,
        host: &HostModel,
        cards: u32,
    ) -> Result<(HostKernel, Option<Poller>, NapiOptions), SimError> {
        Ok(match self {
            Method::Napi(options) => (HostKernel::Linux, None, *options),
            _ => (HostKernel::Freebsd, self.poller(host, cards)?, NAPI),
        })
    }

    /// Whether it is Linux's, the only kind with queues on several processors, GRO, and veth pairs.
    pub(crate) fn is_napi(&self) -> bool {
        matches!(self, Method::Napi(_))
    }

    /// Whether programs poll for what they read.
    pub(crate) fn is_program_polling(&self) -> bool {
        matches!(self, Method::Napi(napi) if napi.busy.is_some())
    }

    /// Whether packets wait for the clock's ticks.
    pub(crate) fn waits_for_ticks(&self) -> bool {
        matches!(self, Method::FreebsdPolling { .. })
    }
}

impl NapiOptions {
    fn set(&mut self, discipline: &str, name: &str, value: &str) -> Result<(), SimError> {
        match (name, &mut self.deferral, &mut self.busy) {
            ("weight", ..) => self.weight = ranged(name, value, 1, 65_535)?,
            ("budget", ..) => self.budget = ranged(name, value, 1, 1_000_000)?,
            ("budget_time", ..) => self.budget_ns = Some(ranged(name, value, 1, TIME_MAX_NS)?),
            ("defer", Some(deferral), _) => deferral.defer = ranged(name, value, 1, DEFER_MAX)?,
            ("timeout", Some(deferral), _) => {
                deferral.timeout_ns = ranged(name, value, 1_000, TIME_MAX_NS)?;
            }
            ("spin", _, Some(busy)) => busy.spin_ns = ranged(name, value, 1, TIME_MAX_NS)?,
            ("busy_budget", _, Some(busy)) => busy.budget = ranged(name, value, 1, 65_535)?,
            (_, deferral, busy) => {
                let more = match (deferral, busy) {
                    (_, Some(_)) => ", defer, timeout, spin, busy_budget",
                    (Some(_), None) => ", defer, timeout",
                    (None, None) => "",
                };
                return refuse(format!(
                    "{discipline} has no option '{name}'; it has weight, budget, budget_time{more}"
                ));
            }
        }
        Ok(())
    }
}

impl fmt::Display for ReceiveDiscipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl ReceiveDiscipline {
    /// Reads a name with its options: `freebsd-interrupt`, `freebsd-polling:user_frac=0:controller=share`,
    /// `napi:budget=64`, `napi-timer:timeout=200us`, `busy-poll:spin=50us`. Each also overrides numbers of the host:
    /// `freebsd-interrupt:card.moderation_ns=50us`.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(text: &str) -> Result<ReceiveDiscipline, SimError> {
        let spec = NameAndOptions::parse(text)?;
        let Some((name, method)) = TABLE.into_iter().find(|(name, _)| *name == spec.name) else {
            return Err(unknown(spec.name));
        };
        let mut discipline = ReceiveDiscipline {
            text: String::from(text),
            name,
            method,
            changes: Vec::new(),
        };
        let (of_host, own): (Vec<_>, Vec<_>) = spec
            .options
            .into_iter()
            .partition(|(name, _)| name.contains('.'));
        for (option, value) in own {
            discipline.method.set(name, option, value)?;
        }
        for option in of_host {
            discipline.changes.push(change(option)?);
        }
        Ok(discipline)
    }

    /// All disciplines, with their defaults.
    pub fn all() -> Vec<ReceiveDiscipline> {
        let parsed = TABLE.map(|(name, _)| ReceiveDiscipline::parse(name));
        parsed.into_iter().filter_map(Result::ok).collect()
    }

    /// Its name, without options.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns `host` with this discipline's overrides.
    pub(crate) fn applied_to(&self, host: &HostModel) -> HostModel {
        let mut host = host.clone();
        for (name, value) in &self.changes {
            // `parse` has checked name and value.
            let _ = host.set(name, *value);
        }
        host
    }

    /// Returns the discipline with one more override. Name and value must be valid.
    pub(crate) fn with(&self, name: &str, value: u64) -> ReceiveDiscipline {
        let mut changed = self.clone();
        changed.changes.push((String::from(name), value));
        changed
    }

    /// Returns the discipline with one more knob, if it is `freebsd-polling`.
    pub(crate) fn with_knob(&self, knob: Knob, value: u32) -> ReceiveDiscipline {
        let mut changed = self.clone();
        if let Method::FreebsdPolling { knobs, .. } = &mut changed.method {
            knobs.push((knob, value));
        }
        changed
    }

    /// Adds the overrides of another discipline.
    pub(crate) fn with_changes_of(mut self, other: &ReceiveDiscipline) -> ReceiveDiscipline {
        self.changes.extend_from_slice(&other.changes);
        self
    }
}

fn unknown(name: &str) -> SimError {
    if let Some((word, freebsd, linux)) = WORDS.iter().find(|(word, ..)| *word == name) {
        return SimError::from(format!(
            "no such discipline: '{word}'; FreeBSD's is {freebsd}, and what nicpoll set and the demo call {word} \
             is {linux}"
        ));
    }
    let known = TABLE.map(|(name, _)| name).join(", ");
    SimError::from(format!("no such discipline: '{name}'; there are {known}"))
}

/// Parses an override of a host's number.
fn change((name, value): (&str, &str)) -> Result<(String, u64), SimError> {
    if name == "veth.pair" {
        return refuse("veth.pair describes the host: set it in the host file");
    }
    let value = number(value).map_err(|error| format!("{name}: {error}"))?;
    // All hosts have the same names and ranges.
    HostModel::default().set(name, value)?;
    Ok((String::from(name), value))
}

/// Returns the initial value of a variable under `kern.polling`; `None` for an unknown name.
pub fn initial_knob(name: &str) -> Option<u32> {
    // Initial values do not depend on the clock.
    let poller = Poller::new(1000).ok()?;
    Knob::from_name(name).map(|knob| poller.read(knob))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_discipline_says_is_put_into_the_poller_and_the_host() {
        let polling =
            ReceiveDiscipline::parse("freebsd-polling:user_frac=0:controller=share").unwrap();
        let mut host = HostModel::default();
        host.set("cpu.hz", 1000).unwrap();
        let poller = polling.method.poller(&host, 1).unwrap().unwrap();
        assert_eq!(poller.read(Knob::UserFrac), 0);
        assert_eq!(poller.controller(), Controller::Share);
        let moderated = polling.with("card.moderation_ns", 50_000);
        assert_eq!(moderated.applied_to(&host).card.moderation_ns, 50_000);
        let all = ReceiveDiscipline::all();
        let names: Vec<_> = all.iter().map(ReceiveDiscipline::name).collect();
        assert_eq!(names, TABLE.map(|(name, _)| name));
    }
}
