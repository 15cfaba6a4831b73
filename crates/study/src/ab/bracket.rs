//! What it costs to have what both settings need: looks at the traffic without and with it.
//!
//! What must hold: looks are under the reference, so that nothing differs but what both settings need. A run that ends
//! early has no bracket.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::ab::{AbBracket, AbPlan, AbWindow};
use nicpoll_switch::Target;
use nicpoll_sys::netns::NetnsThread;

use super::block::{Member, window};
use super::meter::Meter;
use crate::error::StudyError;

/// How long the programs that count are timed.
const TIMED: Duration = Duration::from_millis(100);
/// How often a signal is looked for.
const NAP: Duration = Duration::from_millis(20);

/// The looks so far.
#[derive(Debug, Default)]
pub struct Bracket {
    without: Vec<AbWindow>,
    with: Vec<AbWindow>,
}

impl Bracket {
    /// Adds a look at the traffic without what both settings need.
    pub fn without(&mut self, look: AbWindow) {
        self.without.push(look);
    }

    /// Adds a look with it.
    pub fn with(&mut self, look: AbWindow) {
        self.with.push(look);
    }

    /// Whether there was a first look without it.
    pub fn is_open(&self) -> bool {
        !self.without.is_empty()
    }

    /// Both looks at both.
    pub fn closed(&self) -> Option<AbBracket> {
        Some(AbBracket {
            without: self.without.as_slice().try_into().ok()?,
            with: self.with.as_slice().try_into().ok()?,
        })
    }
}

/// Looks at what the members carry and what is used for it, for as long as a mean block lasts. `None` when the user
/// asks to stop meanwhile.
pub fn look(
    room: &NetnsThread<Meter>,
    members: &[Target],
    plan: &AbPlan,
    cancel: &AtomicBool,
) -> Result<Option<AbWindow>, StudyError> {
    let [shortest, longest] = plan.block_seconds;
    let counting_cores = room.run(|meter| meter.counting_cores(TIMED))??;
    let first = room.run(Meter::read)??;
    let until = Instant::now() + Duration::from_secs_f64(f64::midpoint(shortest, longest));
    while Instant::now() < until {
        if cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        thread::sleep(NAP);
    }
    let last = room.run(Meter::read)??;
    Ok(Some(window(&first, &last, &named(members), counting_cores)))
}

/// Members by index, with their names.
pub fn named(members: &[Target]) -> Vec<Member> {
    let all = members.iter();
    all.map(|one| (one.interface.ifindex, one.interface.name.clone()))
        .collect()
}
