//! What is found out before the first block: what is usual under the reference, and whether a change disturbs the
//! interface.

use std::time::{Duration, Instant};

use nicpoll_model::Unseen;
use nicpoll_model::ab::{AbDelayKind, AbEnd, LiveAb};
use nicpoll_switch::Arm;

use super::{Halt, LOOK, Run, Runner, end};
use crate::ab::alarm::Usual;
use crate::ab::bracket::look;
use crate::ab::meter::Meter;
use crate::ab::plan::most_left_out;

/// So many of TCP's round trips are left out at the beginning of a block, as far as a block has room for them.
const ROUND_TRIPS: f64 = 10.0;

impl Run<'_, '_> {
    /// What is lost under the reference, before anything else: the limits follow from it. And TCP's round trips: what
    /// is in flight when a setting changes is in no figure.
    pub(super) fn learn(&mut self, document: &mut LiveAb) -> Result<(), Halt> {
        let [shortest, _] = self.plan().block_seconds;
        let rate = self.usual_for(LOOK)?.packets_per_second;
        let unseen = self.room.run(move |meter| meter.begin_delays(rate))?;
        document.unseen.extend(unseen);
        let delays = |meter: &mut Meter| meter.read().map(|now| now.delays);
        let before = self.room.run(delays)??;
        self.usual = Some(self.usual_for(Duration::from_secs_f64(shortest))?);
        let after = self.room.run(delays)??;
        let kind = AbDelayKind::SmoothedRoundTrip;
        let since = after.get(&kind).zip(before.get(&kind));
        let round_trip_ns = since.and_then(|(now, then)| now.since(then).quantile_ns(0.5));
        let wanted = ROUND_TRIPS * round_trip_ns.unwrap_or(0.0) / 1e9;
        let most = most_left_out(shortest);
        if wanted > most {
            document.unseen.push(Unseen {
                what: String::from("TCP in the first round trips after a change"),
                why: format!(
                    "{ROUND_TRIPS:.0} of them last {wanted:.1} s, and only {most:.1} s of a block are left out; give a \
                     longer --block"
                ),
            });
        }
        let planned = document.plan.left_out_seconds;
        document.plan.left_out_seconds = wanted.min(most).max(planned);
        self.left_out = Duration::from_secs_f64(document.plan.left_out_seconds);
        Ok(())
    }

    fn usual_for(&mut self, time: Duration) -> Result<Usual, Halt> {
        let before = self.counters()?;
        let began = Instant::now();
        self.wait_until(began + time, None)?;
        let after = self.counters()?;
        Ok(Usual::between(
            &before,
            &after,
            began.elapsed().as_secs_f64(),
        ))
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

    /// Turns to the judged setting and back once, where some drivers begin their queues anew at that.
    pub(super) fn try_turn(&mut self, unseen: &mut Vec<Unseen>) -> Result<(), Halt> {
        let rows = self.runner.alternation.turns().to_be_tried();
        if rows.is_empty() || self.runner.request.is_disruptive {
            return Ok(());
        }
        let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        let names = names.join(", ");
        for arm in [Arm::Judged, Arm::Reference] {
            let before = self.counters()?;
            self.turn_to(arm)?;
            let tried = self.wait_until(Instant::now() + self.left_out, Some(&before));
            tried.map_err(|halt| match halt {
                Halt::End(AbEnd { cause, text }) if cause.is_abort() => {
                    let what = text.unwrap_or_default();
                    let remedy = "add --disruptive if the traffic may suffer that at every block";
                    end(
                        cause,
                        format!("a first change of {names} disturbs it: {what}; {remedy}"),
                    )
                }
                other => other,
            })?;
        }
        unseen.extend(rows.iter().map(|row| Unseen {
            what: format!("what changes of {} do to packets in the card", row.name),
            why: String::from(
                "a first change showed no loss of carrier, no new queues and no drops",
            ),
        }));
        Ok(())
    }
}
