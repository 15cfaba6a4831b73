//! What is found out before the first block: what is usual under the reference, and how much of a block has to be left
//! out.

use std::time::{Duration, Instant};

use nicpoll_model::Unseen;
use nicpoll_model::ab::{AbDelayKind, LiveAb};
use nicpoll_switch::Arm;

use super::{Halt, LOOK, Run, Runner};
use crate::ab::alarm::{Limits, Lost};
use crate::ab::bracket::look;
use crate::ab::meter::Meter;
use crate::ab::plan::most_left_out;

/// So many of TCP's round trips are left out at the beginning of a block, as far as a block has room for them.
const ROUND_TRIPS: f64 = 10.0;
/// So many times the time that polls take to settle is left out, likewise.
const SETTLING_TIMES: f64 = 3.0;

impl Run<'_, '_> {
    /// What is lost under the reference, before anything else: the limits follow from it. Returns the median of TCP's
    /// round trips.
    pub(super) fn learn(&mut self, unseen: &mut Vec<Unseen>) -> Result<Option<f64>, Halt> {
        let [shortest, longest] = self.plan().block_seconds;
        let rate = self.usual_for(LOOK)?.packets_per_second();
        unseen.extend(self.room.run(move |meter| meter.begin_delays(rate))?);
        let delays = |meter: &mut Meter| meter.read().map(|now| now.delays);
        let before = self.room.run(delays)??;
        let usual = self.usual_for(Duration::from_secs_f64(shortest))?;
        let factor = self.runner.request.loss_factor;
        self.limits = Some(Limits::new(factor, longest, &usual));
        let after = self.room.run(delays)??;
        let kind = AbDelayKind::SmoothedRoundTrip;
        let since = after.get(&kind).zip(before.get(&kind));
        Ok(since.and_then(|(now, then)| now.since(then).quantile_ns(0.5)))
    }

    fn usual_for(&mut self, time: Duration) -> Result<Lost, Halt> {
        let before = self.counters()?;
        self.wait_until(before.at + time, None)?;
        Ok(before.lost_until(&self.counters()?))
    }

    /// What is in flight or on its way to the new setting when a setting changes is in no figure.
    pub(super) fn leave_out(&mut self, round_trip_ns: Option<f64>, document: &mut LiveAb) {
        let [shortest, _] = self.plan().block_seconds;
        let most = most_left_out(shortest);
        let settling = document.plan.settling_seconds.unwrap_or(0.0);
        let wanted = [
            (
                "TCP in the first round trips after a change",
                "round trips",
                ROUND_TRIPS,
                round_trip_ns.unwrap_or(0.0) / 1e9,
            ),
            (
                "polls on their way to another setting",
                "times what they take to settle",
                SETTLING_TIMES,
                settling,
            ),
        ];
        let mut left_out = document.plan.left_out_seconds;
        for (what, unit, times, seconds) in wanted {
            let wanted = times * seconds;
            if wanted > most {
                document.unseen.push(Unseen {
                    what: String::from(what),
                    why: format!(
                        "{times:.0} {unit} last {wanted:.1} s, and only {most:.1} s of a block are left out; give a \
                         longer --block"
                    ),
                });
            }
            left_out = left_out.max(wanted.min(most));
        }
        document.plan.left_out_seconds = left_out;
        self.left_out = Duration::from_secs_f64(left_out);
    }

    /// A look at the traffic with what both settings need, where they need something.
    pub(super) fn look_with(&mut self) -> Result<(), Halt> {
        if self.runner.alternation.turns().once.is_empty() {
            return Ok(());
        }
        self.turn_to(Arm::Reference)?;
        self.wait_until(Instant::now() + self.left_out, None)?;
        let plan = self.plan();
        let Runner {
            members, cancel, ..
        } = &*self.runner;
        match look(self.room, members, &plan, cancel)? {
            Some(look) => self.runner.bracket.with(look),
            None => self.wait_until(Instant::now(), None)?,
        }
        Ok(())
    }

    /// A host that does not answer under the reference tells nothing under the other setting.
    pub(super) fn try_echo(&mut self, unseen: &mut Vec<Unseen>) -> Result<(), Halt> {
        let Some(client) = self.runner.client else {
            return Ok(());
        };
        if !self.is_echo_answered(client)? {
            self.runner.client = None;
            unseen.push(Unseen {
                what: String::from("whether your connection goes on under the other setting"),
                why: format!("{client}, which you came from by ssh, answers no echo request"),
            });
        }
        Ok(())
    }
}
