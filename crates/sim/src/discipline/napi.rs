//! Linux's disciplines: NAPI as it comes, with deferred interrupts, and with programs that poll.

use std::sync::Arc;

use super::{Method, Options};
use crate::host::HostModel;
use crate::machine::{Napi, Node, Setup, machine};
use crate::plan::SimulationError;
use crate::spec::{SpecError, ranged};
use crate::work::per_second;

/// The most empty polls that `napi_defer_hard_irqs` takes.
pub const DEFER_MAX: u64 = i32::MAX as u64;
/// A second: longer than any timeout that makes sense.
const TIME_MAX_NS: u64 = 1_000_000_000;

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

/// An interrupt begins polling, and an empty card ends it.
pub(super) fn napi(options: &Options<'_>) -> Result<Arc<dyn Method>, SpecError> {
    read("napi", "", NapiOptions::default(), options)
}

/// The same with interrupts deferred: by one period of the original's clock, until a tenth of a second of silence.
pub(super) fn timer(options: &Options<'_>) -> Result<Arc<dyn Method>, SpecError> {
    let defaults = NapiOptions {
        deferral: Some(Deferral {
            defer: 100,
            timeout_ns: 1_000_000,
        }),
        ..NapiOptions::default()
    };
    read("napi-timer", ", defer, timeout", defaults, options)
}

/// The same with programs that poll: the time that the kernel's documentation recommends, the socket option's
/// default budget, and the deferral that its developers' tests of preferred busy polling use.
pub(super) fn busy_poll(options: &Options<'_>) -> Result<Arc<dyn Method>, SpecError> {
    let defaults = NapiOptions {
        deferral: Some(Deferral {
            defer: 2,
            timeout_ns: 200_000,
        }),
        busy: Some(Busy {
            spin_ns: 50_000,
            budget: 8,
        }),
        ..NapiOptions::default()
    };
    let more = ", defer, timeout, spin, busy_budget";
    read("busy-poll", more, defaults, options)
}

/// Reads options over defaults. `more` are the names of those that not every NAPI has.
fn read(
    discipline: &str,
    more: &str,
    mut napi: NapiOptions,
    options: &Options<'_>,
) -> Result<Arc<dyn Method>, SpecError> {
    for &(name, value) in options {
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
                return Err(SpecError(format!(
                    "{discipline} has no option '{name}'; it has weight, budget, budget_time{more}"
                )));
            }
        }
    }
    Ok(Arc::new(napi))
}

impl Method for NapiOptions {
    fn machine(&self, setup: Setup) -> Result<Box<dyn Node>, SimulationError> {
        let discipline = Napi::new(*self, &setup.host, setup.attachments.len());
        Ok(machine(setup, discipline))
    }

    fn knows_several_processors(&self) -> bool {
        true
    }

    fn is_program_polling(&self) -> bool {
        self.busy.is_some()
    }

    fn looks_per_second(&self, host: &HostModel) -> f64 {
        match (self.busy, self.deferral) {
            (Some(_), _) => per_second(host.card.poll_ns),
            (None, Some(deferral)) => per_second(deferral.timeout_ns),
            (None, None) => 0.0,
        }
    }

    fn serves_without_interrupts(&self) -> bool {
        self.busy.is_none()
    }
}
