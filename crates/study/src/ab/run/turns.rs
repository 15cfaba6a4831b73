//! The first changes of setting, before the first block: what they do to the interface, and how long the traffic takes
//! to settle after each.
//!
//! What must hold: a change that disturbs the interface is found out here, and the run ends.

use std::time::{Duration, Instant};

use nicpoll_model::Unseen;
use nicpoll_model::ab::AbEnd;
use nicpoll_stats::ab::{PollCount, settling_seconds};
use nicpoll_switch::Arm;

use super::{Halt, LOOK, Run};

/// So often each setting is changed to.
const TURNS: usize = 3;
/// Time after each change; less where blocks are shorter. What takes longer than half of it to settle is not measured.
const TURN_MAX: Duration = Duration::from_secs(2);

/// What was seen after a change.
struct Turn {
    polls: Vec<PollCount>,
    too_many: Option<AbEnd>,
}

impl Run<'_, '_> {
    /// Changes to the judged setting and back a few times. Returns how long polls take to settle, in seconds; `None`
    /// when it is not known.
    pub(super) fn first_turns(&mut self, unseen: &mut Vec<Unseen>) -> Result<Option<f64>, Halt> {
        let [shortest, _] = self.plan().block_seconds;
        let time = TURN_MAX.min(Duration::from_secs_f64(shortest));
        let mut turns = [Vec::new(), Vec::new()];
        for _ in 0..TURNS {
            for (arm, turns) in [Arm::Judged, Arm::Reference].into_iter().zip(&mut turns) {
                let turn = self.turn(arm, time);
                turns.push(turn.map_err(|halt| self.disturbing(halt))?);
            }
        }
        for turns in &mut turns {
            let is_each = turns.iter().all(|turn| turn.too_many.is_some());
            let last = turns.last_mut().and_then(|turn| turn.too_many.take());
            let is_too_many = is_each && !self.runner.request.is_disruptive;
            if let Some(end) = last.filter(|_| is_too_many) {
                return Err(self.disturbing(Halt::End(end)));
            }
        }
        unseen.extend(self.tried().into_iter().map(|name| Unseen {
            what: format!("what changes of {name} do to packets in the card"),
            why: String::from(
                "the first changes showed no loss of carrier, no new queues and no drops",
            ),
        }));
        let polls = turns.map(|turns| turns.into_iter().map(|turn| turn.polls).collect::<Vec<_>>());
        let is_seen = polls.iter().flatten().all(|polls| !polls.is_empty());
        let [judged, reference] = polls.map(|polls| settling_seconds(&polls));
        let settling = judged.zip(reference).map(|(one, other)| one.max(other));
        if is_seen && settling.is_none() {
            unseen.push(Unseen {
                what: String::from("how long polls take to settle after a change of setting"),
                why: format!(
                    "they had not settled after {:.1} s",
                    time.as_secs_f64() / 2.0
                ),
            });
        }
        Ok(settling)
    }

    fn turn(&mut self, arm: Arm, time: Duration) -> Result<Turn, Halt> {
        let before = self.counters()?;
        let began = before.at;
        self.turn_to(arm)?;
        if self.runner.request.is_disruptive {
            self.begin_anew()?;
        }
        let mut polls = Vec::new();
        while began.elapsed() < time {
            self.check_cancel()?;
            let until = (Instant::now() + LOOK).min(began + time);
            let more = self
                .room
                .run(move |meter| meter.follow_polls(began, until))??;
            polls.extend(more);
            self.look(Some(&before))?;
        }
        let lost = before.lost_until(&self.counters()?);
        let limits = self.limits.as_ref();
        Ok(Turn {
            polls,
            too_many: limits.and_then(|limits| limits.alone(&lost)),
        })
    }

    /// Rows whose change begins queues anew with some drivers.
    fn tried(&self) -> Vec<&'static str> {
        if self.runner.request.is_disruptive {
            return Vec::new();
        }
        let rows = self.runner.alternation.turns().to_be_tried();
        rows.iter().map(|row| row.name).collect()
    }

    /// What disturbed the interface is put down to the rows that do so with some drivers, where there are any.
    fn disturbing(&self, halt: Halt) -> Halt {
        let names = self.tried().join(", ");
        match halt {
            Halt::End(AbEnd { cause, text }) if cause.is_abort() && !names.is_empty() => {
                let what = text.unwrap_or_default();
                let remedy = "add --disruptive if the traffic may suffer that at every block";
                let text = format!("a first change of {names} disturbs it: {what}; {remedy}");
                Halt::End(AbEnd {
                    cause,
                    text: Some(text),
                })
            }
            other => other,
        }
    }
}
