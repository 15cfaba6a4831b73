//! The blocks of a live comparison, one after the other, and what is watched meanwhile.
//!
//! What must hold: before each block a setting is put in force, and within a fifth of a second of anything that
//! harms the traffic or the interface the run is given up. The caller puts everything back, whatever is returned.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::ab::{AbAnswer, AbBlock, AbEnd, AbEndCause, AbPair, AbPlan, LiveAb};
use nicpoll_observe::HostSnapshot;
use nicpoll_stats::ab::{Draw, DrawnPair, answer};
use nicpoll_switch::{Alternation, Arm, Owner, Switch, SwitchError, Target, Vitals};
use nicpoll_sys::netns::NetnsThread;

use super::AbRequest;
use super::alarm::{Limits, Lost, disturbed};
use super::block::{Readings, Times, block};
use super::bracket::{Bracket, named};
use super::echo::is_answered;
use super::keep::Keep;
use super::meter::Meter;
use super::plan::{Next, next};
use crate::error::StudyError;

mod before;
mod turns;

/// How often the traffic and the interface are looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How often a signal is looked for.
const NAP: Duration = Duration::from_millis(20);
/// How long the programs that count are timed in a block, at most.
const TIMED_MAX: Duration = Duration::from_millis(100);
/// How long the user's host has to answer, and how often it is asked.
const ECHO_TIME: Duration = Duration::from_millis(500);
const ECHOES: u16 = 3;
/// After so long it can be told how long a run has to be.
const FIRST_WORD: Duration = Duration::from_secs(60);

/// What a run tells while it goes on.
#[derive(Clone, Debug)]
pub enum AbProgress<'a> {
    /// It is found out how much is lost under the reference.
    Begins,
    /// It is found out whether a change of setting disturbs the interface, and how long the traffic takes to settle.
    FirstChanges,
    /// A block begins.
    Block {
        /// Pairs that are complete.
        pairs: usize,
        /// Whether it is one of the judged setting.
        is_judged: bool,
        /// How long the run goes on.
        left: Duration,
    },
    /// Nothing is measured for so long, and the setting that was there is in force.
    Pause(Duration),
    /// What the pairs of the first minute say, once.
    FirstMinute(&'a AbAnswer),
}

/// Why blocks end before their time.
enum Halt {
    /// The run is over.
    End(AbEnd),
    /// Nothing can be measured.
    Failed(StudyError),
}

impl<E: Into<StudyError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Halt::Failed(error.into())
    }
}

fn end(cause: AbEndCause, text: String) -> Halt {
    Halt::End(AbEnd {
        cause,
        text: Some(text),
    })
}

/// Interfaces that are taken for a run.
pub struct Runner<'a> {
    /// What is compared.
    pub request: &'a AbRequest,
    /// Whose alternation it is.
    pub switch: &'a mut Switch,
    /// The two settings.
    pub alternation: Alternation,
    /// The interfaces whose traffic is measured.
    pub members: Vec<Target>,
    /// Who puts everything back when this process is killed.
    pub guard: Owner,
    /// The host that the user works from, when the connection comes by one of the members.
    pub client: Option<IpAddr>,
    /// Becomes true when the user asks to stop.
    pub cancel: &'a AtomicBool,
    /// What counts.
    pub room: &'a NetnsThread<Meter>,
    /// What it costs to have what both settings need.
    pub bracket: &'a mut Bracket,
    /// Where pairs are stored.
    pub keep: &'a mut Keep,
}

/// A run on its way.
struct Run<'a, 'b> {
    runner: &'b mut Runner<'a>,
    room: &'a NetnsThread<Meter>,
    left_out: Duration,
    vitals: Vec<Vitals>,
    /// `None` until it is known what is usual.
    limits: Option<Limits>,
    begin: Instant,
}

/// The counters of one moment.
struct Counted {
    at: Instant,
    host: HostSnapshot,
}

impl Counted {
    fn lost_until(&self, later: &Counted) -> Lost {
        let seconds = later.at.duration_since(self.at).as_secs_f64();
        Lost::between(&self.host, &later.host, seconds)
    }
}

/// What a block was, and what was lost from the write that began it on.
type Block = (AbBlock, Lost);

impl Runner<'_> {
    /// Runs pairs of blocks until the time is over or something ends them, and adds them to the document.
    ///
    /// # Errors
    /// When nothing can be measured.
    pub fn measure(
        &mut self,
        document: &mut LiveAb,
        progress: &mut dyn FnMut(AbProgress<'_>),
    ) -> Result<AbEnd, StudyError> {
        self.room.run(Meter::watch_instances)?;
        let unseen = self.room.run(|meter| meter.unseen().to_vec())?;
        document.unseen.extend(unseen);
        let room = self.room;
        let left_out = Duration::from_secs_f64(self.request.plan.left_out_seconds);
        let mut run = Run {
            runner: self,
            room,
            left_out,
            vitals: Vec::new(),
            limits: None,
            begin: Instant::now(),
        };
        match run.all(document, progress) {
            Ok(()) => Ok(AbEnd {
                cause: AbEndCause::Planned,
                text: None,
            }),
            Err(Halt::End(end)) => Ok(end),
            Err(Halt::Failed(error)) => Err(error),
        }
    }
}

impl Run<'_, '_> {
    fn plan(&self) -> AbPlan {
        self.runner.request.plan
    }

    fn all(
        &mut self,
        document: &mut LiveAb,
        progress: &mut dyn FnMut(AbProgress<'_>),
    ) -> Result<(), Halt> {
        progress(AbProgress::Begins);
        self.vitals = self.ask_vitals()?;
        self.try_echo(&mut document.unseen)?;
        let round_trip_ns = self.learn(&mut document.unseen)?;
        self.look_with()?;
        progress(AbProgress::FirstChanges);
        document.plan.settling_seconds = self.first_turns(&mut document.unseen)?;
        self.leave_out(round_trip_ns, document);
        self.pairs(document, progress)?;
        self.look_with()
    }

    fn pairs(
        &mut self,
        document: &mut LiveAb,
        progress: &mut dyn FnMut(AbProgress<'_>),
    ) -> Result<(), Halt> {
        let plan = document.plan;
        self.begin = Instant::now();
        let mut has_said = false;
        for drawn in Draw::new(&plan) {
            loop {
                match next(&plan, self.begin.elapsed().as_secs_f64(), drawn.seconds()) {
                    Next::Pair => break,
                    Next::Pause(until) => self.pause(Duration::from_secs_f64(until), progress)?,
                    Next::End => return Ok(()),
                }
            }
            let (pair, end_of_run) = self.pair(drawn, document.pairs.len(), progress)?;
            document.pairs.push(pair);
            let taken = Duration::from_secs_f64(drawn.seconds());
            if let Err(error) = self.runner.keep.pair(document, taken) {
                let text = format!("it can no longer be stored: {error}");
                self.runner.keep.failed_with(error);
                return Err(end(AbEndCause::Interrupted, text));
            }
            if let Some(end) = end_of_run {
                return Err(Halt::End(end));
            }
            if !has_said && self.begin.elapsed() >= FIRST_WORD {
                has_said = true;
                let answer = answer(&document.pairs, &plan, None);
                progress(AbProgress::FirstMinute(&answer));
            }
        }
        Ok(())
    }

    /// The setting that was there is in force until so long after the start, and nothing is counted.
    fn pause(
        &mut self,
        until: Duration,
        progress: &mut dyn FnMut(AbProgress<'_>),
    ) -> Result<(), Halt> {
        progress(AbProgress::Pause(
            until.saturating_sub(self.begin.elapsed()),
        ));
        self.turn_to(Arm::Reference)?;
        self.room.run(Meter::pause)??;
        self.wait_until(self.begin + until, None)?;
        Ok(self.room.run(Meter::resume)??)
    }

    /// Runs a pair. Returns also why the run ends with it, when it lost too much.
    fn pair(
        &mut self,
        drawn: DrawnPair,
        pairs: usize,
        progress: &mut dyn FnMut(AbProgress<'_>),
    ) -> Result<(AbPair, Option<AbEnd>), Halt> {
        let order = match drawn.is_judged_first {
            true => [Arm::Judged, Arm::Reference],
            false => [Arm::Reference, Arm::Judged],
        };
        let mut set_aside_because = None;
        let mut blocks = Vec::new();
        for (arm, seconds) in order.into_iter().zip(drawn.block_seconds) {
            let all = Duration::from_secs_f64(self.plan().duration_seconds);
            progress(AbProgress::Block {
                pairs,
                is_judged: arm == Arm::Judged,
                left: all.saturating_sub(self.begin.elapsed()),
            });
            blocks.push((arm, self.block(arm, seconds)?));
            if let Some(words) = self.drift()? {
                set_aside_because = Some(words);
            }
        }
        blocks.sort_by_key(|(arm, _)| *arm == Arm::Judged);
        let mut blocks = blocks.into_iter().map(|(_, block)| block);
        match (blocks.next(), blocks.next()) {
            (Some((reference, lost)), Some((judged, lost_judged))) => {
                let limits = self.limits.as_mut();
                let end = limits.and_then(|limits| limits.pair(&lost, &lost_judged));
                let pair = AbPair {
                    is_judged_first: drawn.is_judged_first,
                    reference,
                    judged,
                    set_aside_because,
                };
                Ok((pair, end))
            }
            _ => Err(StudyError::Unexpected(String::from("a pair has two blocks")).into()),
        }
    }

    fn block(&mut self, arm: Arm, seconds: f64) -> Result<Block, Halt> {
        let began = Instant::now();
        let start_seconds = began.duration_since(self.begin).as_secs_f64();
        let before = self.counters()?;
        self.turn_to(arm)?;
        if self.runner.request.is_disruptive {
            self.begin_anew()?;
        }
        self.check_echo()?;
        let left_out = self.left_out;
        let timed = TIMED_MAX.min(left_out / 4);
        let counting_cores = self.room.run(move |meter| meter.counting_cores(timed))??;
        self.wait_until(began + left_out, Some(&before))?;
        let first = self.room.run(Meter::read)??;
        let length = Duration::from_secs_f64(seconds);
        let later = if length > 3 * left_out {
            self.wait_until(began + 2 * left_out, Some(&before))?;
            Some(self.room.run(Meter::read)??)
        } else {
            None
        };
        self.wait_until(began + length, Some(&before))?;
        let last = self.room.run(Meter::read)??;
        let readings = Readings {
            first: &first,
            later: later.as_ref(),
            last: &last,
        };
        let times = Times {
            start_seconds,
            duration_seconds: began.elapsed().as_secs_f64(),
            left_out_seconds: first.at.duration_since(began).as_secs_f64(),
            counting_cores,
        };
        let instances = self.room.run(|meter| meter.instances().to_vec())?;
        let members = named(&self.runner.members);
        let lost = before.lost_until(&Counted {
            at: last.at,
            host: last.host.clone(),
        });
        Ok((block(times, &readings, &members, &instances), lost))
    }

    fn check_echo(&mut self) -> Result<(), Halt> {
        match self.runner.client {
            Some(client) if !self.is_echo_answered(client)? => {
                let text = format!("{client}, which you came from by ssh, no longer answers");
                Err(end(AbEndCause::EchoLost, text))
            }
            _ => Ok(()),
        }
    }

    fn is_echo_answered(&self, client: IpAddr) -> Result<bool, Halt> {
        let ask = move |_: &mut Meter| {
            let mut numbers = 1..=ECHOES;
            // A host that cannot be reached at all does not answer.
            numbers.any(|number| is_answered(client, number, ECHO_TIME).unwrap_or(false))
        };
        Ok(self.room.run(ask)?)
    }

    /// Queues that begin anew with each turn have other instances from then on.
    fn begin_anew(&mut self) -> Result<(), Halt> {
        self.room.run(Meter::watch_instances)?;
        self.vitals = self.ask_vitals()?;
        Ok(())
    }

    fn counters(&mut self) -> Result<Counted, Halt> {
        let host = self.room.run(Meter::counters)?;
        Ok(Counted {
            at: Instant::now(),
            host,
        })
    }

    fn turn_to(&mut self, arm: Arm) -> Result<(), Halt> {
        let Runner {
            switch,
            alternation,
            ..
        } = &mut *self.runner;
        let turned = alternation.turn_to(switch, arm);
        turned.map_err(|error| self.explained(error))
    }

    /// What somebody else changed in the block that ended, in words.
    fn drift(&mut self) -> Result<Option<String>, Halt> {
        let Runner {
            switch,
            alternation,
            ..
        } = &mut *self.runner;
        let drift = match alternation.drift(switch) {
            Ok(drift) => drift,
            Err(error) => return Err(self.explained(error)),
        };
        let words: Vec<String> = drift
            .iter()
            .map(|(target, drift)| drift.describe(&target.interface.name))
            .collect();
        Ok((!words.is_empty()).then(|| words.join("; ")))
    }

    /// A write or a reading that failed, or better what became of the interface.
    fn explained(&mut self, error: SwitchError) -> Halt {
        if let Err(halt @ Halt::End(_)) = self.look(None) {
            return halt;
        }
        let error = StudyError::from(error).with_causes();
        end(AbEndCause::SettingFailed, error)
    }

    /// Waits, and looks meanwhile. Losses are held against the counters of `before`, the beginning of a block.
    fn wait_until(&mut self, until: Instant, before: Option<&Counted>) -> Result<(), Halt> {
        loop {
            let look = (Instant::now() + LOOK).min(until);
            while let Some(left) = look.checked_duration_since(Instant::now()) {
                self.check_cancel()?;
                thread::sleep(left.min(NAP));
                if left.is_zero() {
                    break;
                }
            }
            self.look(before)?;
            if Instant::now() >= until {
                return Ok(());
            }
        }
    }

    fn check_cancel(&self) -> Result<(), Halt> {
        match self.runner.cancel.load(Ordering::Relaxed) {
            true => {
                let text = String::from("it was stopped before its time was over");
                Err(end(AbEndCause::Interrupted, text))
            }
            false => Ok(()),
        }
    }

    /// Whether all is well.
    fn look(&mut self, before: Option<&Counted>) -> Result<(), Halt> {
        let now = self.read_vitals()?;
        for ((member, then), now) in self.runner.members.iter().zip(&self.vitals).zip(&now) {
            if let Some(end) = disturbed(&member.interface.name, then, now.as_ref()) {
                return Err(Halt::End(end));
            }
        }
        if !self.runner.guard.is_alive()? {
            let text = "the process that puts settings back when this one is killed was ended";
            return Err(end(AbEndCause::SettingFailed, String::from(text)));
        }
        let Some(before) = before else {
            return Ok(());
        };
        let lost = before.lost_until(&self.counters()?);
        let limits = self.limits.as_ref();
        match limits.and_then(|limits| limits.at_once(&lost)) {
            Some(end) => Err(Halt::End(end)),
            None => Ok(()),
        }
    }

    fn read_vitals(&mut self) -> Result<Vec<Option<Vitals>>, Halt> {
        let mut all = Vec::new();
        for Target {
            netns_inode,
            interface,
        } in self.runner.members.clone()
        {
            let machine = self.runner.switch.machine();
            all.push(machine.run(netns_inode, move |control| control.vitals(&interface))??);
        }
        Ok(all)
    }

    /// The state of every member, each of which has to be there.
    fn ask_vitals(&mut self) -> Result<Vec<Vitals>, Halt> {
        let now = self.read_vitals()?.into_iter();
        let names = self.runner.members.iter();
        now.zip(names)
            .map(|(vitals, member)| {
                let name = &member.interface.name;
                let gone = || format!("{name} is no more, or no longer in this network namespace");
                vitals.ok_or_else(|| end(AbEndCause::InterfaceChanged, gone()))
            })
            .collect()
    }
}
