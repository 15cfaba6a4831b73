//! Runs the blocks of a live comparison and watches the traffic meanwhile.
//!
//! A setting is put in force before each block. Anything that harms the traffic or the interface ends the run within
//! a fifth of a second. Each pair is stored before the next begins. The caller restores everything, whatever is
//! returned.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use nicpoll_lab::LabError;
use nicpoll_model::ab::{
    AbAnswer, AbBlock, AbDelayKind, AbEnd, AbEndCause, AbPair, AbPlan, AbTimeNeeded, AbWindow,
    LiveAb,
};
use nicpoll_model::{StudyKind, Unseen};
use nicpoll_observe::HostSnapshot;
use nicpoll_stats::ab::{Draw, DrawnPair, PollCount, answer, settling_seconds};
use nicpoll_store::{Ended, Recording, Store, StoreError};
use nicpoll_switch::{Alternation, Arm, LinkHealth, Owner, Switch, SwitchError, Target};
use nicpoll_sys::netns::NetnsThread;

use crate::alarm::{GONE, Limits, LostPackets, disturbed, end_of, is_answered};
use crate::block::{Readings, block, window};
use crate::meter::{Meter, unseen};
use crate::plan::{AbRequest, Next, most_left_out, next};

/// Name of the present setting.
pub const AS_IT_IS: &str = "as it is";

/// Name of the present setting if it is compared with itself.
pub const THE_SAME: &str = "the same";

/// Interval of checks of the traffic and the interface.
const LOOK: Duration = Duration::from_millis(200);

/// Interval of checks for a signal.
const NAP: Duration = Duration::from_millis(20);

/// Limit of the time for timing the counting programs in a block.
const TIMED_MAX: Duration = Duration::from_millis(100);

/// Time for the user's host to answer an echo request, and the number of requests.
const ECHO_TIME: Duration = Duration::from_millis(500);

const ECHOES: u16 = 3;

/// Time after which the necessary length of a run can be estimated.
const FIRST_WORD: Duration = Duration::from_secs(60);

/// Progress of a run.
#[derive(Clone, Debug)]
pub enum AbProgress<'a> {
    /// Losses under the reference are measured.
    Begins,
    /// The first changes of setting show whether they disturb the interface, and how long the traffic takes to settle.
    FirstChanges,
    /// A block begins.
    Block {
        /// Pairs that are complete.
        pairs: usize,
        /// Whether the block is under the judged setting.
        is_judged: bool,
        /// Remaining time of the run.
        left: Duration,
    },
    /// A pause of this length under the original setting.
    Pause(Duration),
    /// The answer after the first minute, once.
    FirstMinute(&'a AbAnswer),
}

/// Reasons for which blocks end before their time.
enum Halt {
    /// The run is over.
    End(AbEnd),
    /// Nothing can be measured.
    Failed(LabError),
}

impl<E: Into<LabError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Halt::Failed(error.into())
    }
}

fn end(cause: AbEndCause, text: String) -> Halt {
    Halt::End(end_of(cause, text))
}

/// A run: its interfaces, and their state.
pub struct Run<'a> {
    /// What is compared.
    pub request: &'a AbRequest,
    /// Makes the writes.
    pub switch: &'a mut Switch,
    /// The two settings.
    pub alternation: Alternation,
    /// The interfaces whose traffic is measured.
    pub members: Vec<Target>,
    /// The guard that restores everything if this process is killed.
    pub guard: Owner,
    /// The user's host, if its ssh connection comes through one of the members.
    pub client: Option<IpAddr>,
    /// Becomes true when the user asks to stop.
    pub cancel: &'a AtomicBool,
    /// Reads every counter, in the interfaces' namespace.
    pub meter: &'a NetnsThread<Meter>,
    /// Windows of traffic under the changes that both settings need.
    pub with: Vec<AbWindow>,
    /// Where pairs are stored.
    pub recording: &'a mut PairRecording,
    /// The part at the start of each block that no figure includes.
    pub left_out: Duration,
    /// State of the members at the beginning.
    pub health: Vec<LinkHealth>,
    /// `None` until the usual losses are known.
    pub limits: Option<Limits>,
    /// When the first block began.
    pub begin: Instant,
}

/// The counters of one moment.
struct CountersAt {
    at: Instant,
    host: HostSnapshot,
}

impl CountersAt {
    fn lost_until(&self, later: &CountersAt) -> LostPackets {
        let seconds = later.at.duration_since(self.at).as_secs_f64();
        LostPackets::between(&self.host, &later.host, seconds)
    }
}

/// A block, and its losses since the write that began it.
type MeasuredBlock = (AbBlock, LostPackets);

impl Run<'_> {
    /// Runs pairs of blocks until the time is over or something ends them, and adds them to the document.
    ///
    /// # Errors
    /// When nothing can be measured.
    pub fn measure(
        &mut self,
        document: &mut LiveAb,
        progress: &mut dyn FnMut(AbProgress<'_>),
    ) -> Result<AbEnd, LabError> {
        self.meter.run(Meter::watch_instances)?;
        let unseen = self.meter.run(|meter| meter.unseen.clone())?;
        document.unseen.extend(unseen);
        match self.all(document, progress) {
            Ok(()) => Ok(AbEnd {
                cause: AbEndCause::Planned,
                text: None,
            }),
            Err(Halt::End(end)) => Ok(end),
            Err(Halt::Failed(error)) => Err(error),
        }
    }

    fn plan(&self) -> AbPlan {
        self.request.plan
    }

    fn all(
        &mut self,
        document: &mut LiveAb,
        progress: &mut dyn FnMut(AbProgress<'_>),
    ) -> Result<(), Halt> {
        progress(AbProgress::Begins);
        self.health = self.ask_health()?;
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
            self.recording.pair(document, taken)?;
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

    /// Applies the original setting, and pauses until this long after the start.
    fn pause(
        &mut self,
        until: Duration,
        progress: &mut dyn FnMut(AbProgress<'_>),
    ) -> Result<(), Halt> {
        progress(AbProgress::Pause(
            until.saturating_sub(self.begin.elapsed()),
        ));
        self.turn_to(Arm::Reference)?;
        self.meter.run(Meter::pause)??;
        self.wait_until(self.begin + until, None)?;
        Ok(self.meter.run(Meter::resume)??)
    }

    /// Runs a pair. Also returns the end of the run if it lost too much.
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
        let mut blocks = [None, None];
        for (arm, seconds) in order.into_iter().zip(drawn.block_seconds) {
            let is_judged = arm == Arm::Judged;
            let all = Duration::from_secs_f64(self.plan().duration_seconds);
            progress(AbProgress::Block {
                pairs,
                is_judged,
                left: all.saturating_sub(self.begin.elapsed()),
            });
            blocks[usize::from(is_judged)] = Some(self.block(arm, seconds)?);
            set_aside_because = self.drift()?.or(set_aside_because);
        }
        let [Some((reference, lost)), Some((judged, lost_judged))] = blocks else {
            unreachable!("the order has both settings");
        };
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

    fn block(&mut self, arm: Arm, seconds: f64) -> Result<MeasuredBlock, Halt> {
        let began = Instant::now();
        let start_seconds = began.duration_since(self.begin).as_secs_f64();
        let before = self.counters()?;
        self.turn_to(arm)?;
        if self.request.is_disruptive {
            self.look_again()?;
        }
        self.check_echo()?;
        let left_out = self.left_out;
        let timed = TIMED_MAX.min(left_out / 4);
        let counting_cores = self.meter.run(move |meter| meter.counting_cores(timed))??;
        self.wait_until(began + left_out, Some(&before))?;
        let first = self.meter.run(Meter::read)??;
        let length = Duration::from_secs_f64(seconds);
        let later = if length > 3 * left_out {
            self.wait_until(began + 2 * left_out, Some(&before))?;
            Some(self.meter.run(Meter::read)??)
        } else {
            None
        };
        self.wait_until(began + length, Some(&before))?;
        let last = self.meter.run(Meter::read)??;
        let readings = Readings {
            start_seconds,
            duration_seconds: began.elapsed().as_secs_f64(),
            left_out_seconds: first.at.duration_since(began).as_secs_f64(),
            counting_cores,
            first: &first,
            later: later.as_ref(),
            last: &last,
        };
        let instances = self.meter.run(|meter| meter.instances.clone())?;
        let lost = before.lost_until(&CountersAt {
            at: last.at,
            host: last.host.clone(),
        });
        Ok((block(&readings, &self.members, &instances), lost))
    }

    fn check_echo(&mut self) -> Result<(), Halt> {
        match self.client {
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
            // An unreachable host counts as not answering.
            numbers.any(|number| is_answered(client, number, ECHO_TIME).unwrap_or(false))
        };
        Ok(self.meter.run(ask)?)
    }

    /// Finds the NAPI instances again, if queues restart with each turn.
    fn look_again(&mut self) -> Result<(), Halt> {
        self.meter.run(Meter::watch_instances)?;
        self.health = self.ask_health()?;
        Ok(())
    }

    fn counters(&mut self) -> Result<CountersAt, Halt> {
        let host = self.meter.run(Meter::counters)?;
        Ok(CountersAt {
            at: Instant::now(),
            host,
        })
    }

    fn turn_to(&mut self, arm: Arm) -> Result<(), Halt> {
        let turned = self.alternation.turn_to(self.switch, arm);
        turned.map_err(|error| self.explained(error))
    }

    /// Returns external changes in the last block, in words.
    fn drift(&mut self) -> Result<Option<String>, Halt> {
        let drift = self.alternation.drift(self.switch);
        let drift = drift.map_err(|error| self.explained(error))?;
        let words: Vec<String> = drift
            .iter()
            .map(|(target, drift)| drift.describe(&target.interface.name))
            .collect();
        Ok((!words.is_empty()).then(|| words.join("; ")))
    }

    /// Explains a failed write or reading by the state of the interface, if possible.
    fn explained(&mut self, error: SwitchError) -> Halt {
        if let Err(halt @ Halt::End(_)) = self.look(None) {
            return halt;
        }
        let error = LabError::from(error).with_causes();
        end(AbEndCause::SettingFailed, error)
    }

    /// Waits, and checks the traffic meanwhile. Losses count from `before`, the start of a block.
    fn wait_until(&mut self, until: Instant, before: Option<&CountersAt>) -> Result<(), Halt> {
        loop {
            self.check_cancel()?;
            let look = (Instant::now() + LOOK).min(until);
            while Instant::now() < look {
                thread::sleep(look.saturating_duration_since(Instant::now()).min(NAP));
                self.check_cancel()?;
            }
            self.look(before)?;
            if Instant::now() >= until {
                return Ok(());
            }
        }
    }

    fn check_cancel(&self) -> Result<(), Halt> {
        let text = "it was stopped before its time was over";
        match self.cancel.load(Ordering::Relaxed) {
            true => Err(end(AbEndCause::Interrupted, String::from(text))),
            false => Ok(()),
        }
    }

    /// Checks the interfaces, the guard and the losses.
    fn look(&mut self, before: Option<&CountersAt>) -> Result<(), Halt> {
        let now = self.read_health()?;
        for ((member, then), now) in self.members.iter().zip(&self.health).zip(&now) {
            if let Some(end) = disturbed(&member.interface.name, then, now.as_ref()) {
                return Err(Halt::End(end));
            }
        }
        if !self.guard.is_alive()? {
            let text = "the process that puts settings back when this one is killed was ended";
            return Err(end(AbEndCause::SettingFailed, String::from(text)));
        }
        let Some(before) = before else {
            return Ok(());
        };
        let lost = before.lost_until(&self.counters()?);
        let limits = self.limits.as_ref();
        let too_many = limits.and_then(|limits| limits.at_once(&lost));
        too_many.map_or(Ok(()), |end| Err(Halt::End(end)))
    }

    fn read_health(&mut self) -> Result<Vec<Option<LinkHealth>>, Halt> {
        let mut all = Vec::new();
        for Target {
            netns_inode,
            interface,
        } in self.members.clone()
        {
            let machine = self.switch.machine();
            all.push(machine.run(netns_inode, move |control| control.link_health(&interface))??);
        }
        Ok(all)
    }

    /// Returns the state of every member; a missing one ends the run.
    fn ask_health(&mut self) -> Result<Vec<LinkHealth>, Halt> {
        let now = self.read_health()?.into_iter().zip(&self.members);
        let found = now.map(|(health, member)| {
            let gone = || format!("{} {GONE}", member.interface.name);
            health.ok_or_else(|| end(AbEndCause::InterfaceChanged, gone()))
        });
        found.collect()
    }
}

/// TCP round trips left out at the start of a block, if it is long enough.
const ROUND_TRIPS: f64 = 10.0;

/// Multiple of the polls' settling time that is left out, likewise.
const SETTLING_TIMES: f64 = 3.0;

impl Run<'_> {
    /// Measures the losses under the reference first, which set the limits. Returns the median of TCP's round trips.
    fn learn(&mut self, unseen: &mut Vec<Unseen>) -> Result<Option<f64>, Halt> {
        let [shortest, longest] = self.plan().block_seconds;
        let rate = self.usual_for(LOOK)?.packets_per_second();
        unseen.extend(self.meter.run(move |meter| meter.begin_delays(rate))?);
        let delays = |meter: &mut Meter| meter.read().map(|now| now.delays);
        let before = self.meter.run(delays)??;
        let usual = self.usual_for(Duration::from_secs_f64(shortest))?;
        let factor = self.request.loss_factor;
        self.limits = Some(Limits::new(factor, longest, &usual));
        let after = self.meter.run(delays)??;
        let kind = AbDelayKind::SmoothedRoundTrip;
        let since = after.get(&kind).zip(before.get(&kind));
        Ok(since.and_then(|(now, then)| now.since(then).quantile_ns(0.5)))
    }

    fn usual_for(&mut self, time: Duration) -> Result<LostPackets, Halt> {
        let before = self.counters()?;
        self.wait_until(before.at + time, None)?;
        Ok(before.lost_until(&self.counters()?))
    }

    /// Sets the part left out at the start of blocks, for packets in flight and settling polls.
    fn leave_out(&mut self, round_trip_ns: Option<f64>, document: &mut LiveAb) {
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
                let why = format!(
                    "{times:.0} {unit} last {wanted:.1} s, and only {most:.1} s of a block are left out; give a \
                     longer --block"
                );
                document.unseen.push(unseen(what, why));
            }
            left_out = left_out.max(wanted.min(most));
        }
        document.plan.left_out_seconds = left_out;
        self.left_out = Duration::from_secs_f64(left_out);
    }

    /// Measures the traffic with the changes that both settings need, if there are any.
    fn look_with(&mut self) -> Result<(), Halt> {
        if self.alternation.turns().once.is_empty() {
            return Ok(());
        }
        self.turn_to(Arm::Reference)?;
        self.wait_until(Instant::now() + self.left_out, None)?;
        let plan = self.plan();
        match look(self.meter, &self.members, &plan, self.cancel)? {
            Some(look) => self.with.push(look),
            None => self.wait_until(Instant::now(), None)?,
        }
        Ok(())
    }

    /// Stops asking a host that does not answer under the reference.
    fn try_echo(&mut self, missing: &mut Vec<Unseen>) -> Result<(), Halt> {
        let Some(client) = self.client else {
            return Ok(());
        };
        if !self.is_echo_answered(client)? {
            self.client = None;
            missing.push(unseen(
                "whether your connection goes on under the other setting",
                format!("{client}, which you came from by ssh, answers no echo request"),
            ));
        }
        Ok(())
    }
}

/// Number of first changes to each setting.
const TURNS: usize = 3;

/// Time after each change; less if blocks are shorter. Settling times above half of it are not measured.
const TURN_MAX: Duration = Duration::from_secs(2);

/// The polls after a change, and the end of the run if too much was lost.
type TurnResult = (Vec<PollCount>, Option<AbEnd>);

impl Run<'_> {
    /// Changes to the judged setting and back a few times. Returns the settling time of polls in seconds; `None` if
    /// unknown.
    fn first_turns(&mut self, missing: &mut Vec<Unseen>) -> Result<Option<f64>, Halt> {
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
            let is_each = turns.iter().all(|(_, too_many)| too_many.is_some());
            let last = turns.last_mut().and_then(|(_, too_many)| too_many.take());
            let is_too_many = is_each && !self.request.is_disruptive;
            if let Some(end) = last.filter(|_| is_too_many) {
                return Err(self.disturbing(Halt::End(end)));
            }
        }
        let why = "the first changes showed no loss of carrier, no new queues and no drops";
        let tried = self.tried().into_iter();
        missing.extend(tried.map(|name| {
            let what = format!("what changes of {name} do to packets in the card");
            unseen(what, why)
        }));
        let polls = turns.map(|turns| {
            turns
                .into_iter()
                .map(|(polls, _)| polls)
                .collect::<Vec<_>>()
        });
        let is_seen = polls.iter().flatten().all(|polls| !polls.is_empty());
        let [judged, reference] = polls.map(|polls| settling_seconds(&polls));
        let settling = judged.zip(reference).map(|(one, other)| one.max(other));
        if is_seen && settling.is_none() {
            let half = time.as_secs_f64() / 2.0;
            missing.push(unseen(
                "how long polls take to settle after a change of setting",
                format!("they had not settled after {half:.1} s"),
            ));
        }
        Ok(settling)
    }

    fn turn(&mut self, arm: Arm, time: Duration) -> Result<TurnResult, Halt> {
        let before = self.counters()?;
        let began = before.at;
        self.turn_to(arm)?;
        if self.request.is_disruptive {
            self.look_again()?;
        }
        let mut polls = Vec::new();
        while began.elapsed() < time {
            self.check_cancel()?;
            let until = (Instant::now() + LOOK).min(began + time);
            let more = self
                .meter
                .run(move |meter| meter.follow_polls(began, until))??;
            polls.extend(more);
            self.look(Some(&before))?;
        }
        let lost = before.lost_until(&self.counters()?);
        let limits = self.limits.as_ref();
        Ok((polls, limits.and_then(|limits| limits.alone(&lost))))
    }

    /// Knobs whose change restarts the queues of some drivers.
    fn tried(&self) -> Vec<&'static str> {
        if self.request.is_disruptive {
            return Vec::new();
        }
        let rows = self.alternation.turns().to_be_tried();
        rows.iter().map(|row| row.name).collect()
    }

    /// Attributes a disturbance to the knobs that cause it with some drivers, if there are any.
    fn disturbing(&self, halt: Halt) -> Halt {
        let names = self.tried().join(", ");
        match halt {
            Halt::End(AbEnd { cause, text }) if cause.is_abort() && !names.is_empty() => {
                let what = text.unwrap_or_default();
                let remedy = "add --disruptive to accept that at every block";
                let text = format!("a first change of {names} disturbs it: {what}; {remedy}");
                end(cause, text)
            }
            other => other,
        }
    }
}

/// Time for timing the counting programs.
const TIMED: Duration = Duration::from_millis(100);

/// Measures traffic and CPU time of the members for a mean block. Returns `None` if the user stops it.
pub fn look(
    meter: &NetnsThread<Meter>,
    members: &[Target],
    plan: &AbPlan,
    cancel: &AtomicBool,
) -> Result<Option<AbWindow>, LabError> {
    let [shortest, longest] = plan.block_seconds;
    let counting_cores = meter.run(|meter| meter.counting_cores(TIMED))??;
    let first = meter.run(Meter::read)??;
    let until = Instant::now() + Duration::from_secs_f64(f64::midpoint(shortest, longest));
    while Instant::now() < until {
        if cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        thread::sleep(NAP);
    }
    let last = meter.run(Meter::read)??;
    Ok(Some(window(&first, &last, members, counting_cores)))
}

/// The recording of a comparison, if it is stored.
#[derive(Default)]
pub struct PairRecording {
    recording: Option<Recording>,
    failed: Option<StoreError>,
}

impl PairRecording {
    /// Starts storing a comparison, if there is a store.
    pub fn begin(
        store: Option<Store>,
        document: &LiveAb,
        runner: &str,
    ) -> Result<Self, StoreError> {
        let mut keep = PairRecording::default();
        if let Some(store) = store {
            let plan = &document.plan;
            let [measured, every] = plan.duty_seconds.unwrap_or([1.0; 2]);
            let of_pair: f64 = plan.block_seconds.iter().sum();
            let pairs = plan.duration_seconds * measured / every / of_pair;
            let head = head(document);
            keep.recording = Some(store.begin(StudyKind::Ab, &head, pairs as u32, "{}", runner)?);
        }
        Ok(keep)
    }

    /// Stores the end of the comparison.
    pub fn ended(self, outcome: Result<LiveAb, LabError>) -> Ended<LiveAb, LabError> {
        let ended = Ended::of(outcome, self.recording);
        Ended {
            unstored: self.failed.or(ended.unstored),
            ..ended
        }
    }

    /// Stores the last pair. If that fails, keeps the error and ends the run.
    fn pair(&mut self, document: &LiveAb, taken: Duration) -> Result<(), Halt> {
        let (Some(recording), Some(last)) = (&mut self.recording, document.pairs.last()) else {
            return Ok(());
        };
        let stored = recording.trial(&head(document), last, taken);
        stored.map_err(|error| {
            let text = format!("it can no longer be stored: {error}");
            self.failed = Some(error);
            end(AbEndCause::Interrupted, text)
        })
    }
}

/// Returns the document without its pairs, as of a running comparison.
fn head(document: &LiveAb) -> LiveAb {
    LiveAb {
        pairs: Vec::new(),
        end: AbEnd {
            cause: AbEndCause::Interrupted,
            text: Some(String::from("it was killed, or it still runs")),
        },
        answer: answer(&document.pairs, &document.plan, None),
        ..document.clone()
    }
}

impl fmt::Display for AbProgress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AbProgress::Begins => f.write_str("counting losses under the current setting"),
            AbProgress::FirstChanges => f.write_str(
                "switching back and forth, to measure how long the traffic takes to settle",
            ),
            AbProgress::Block {
                pairs,
                is_judged,
                left,
            } => {
                let setting = if *is_judged {
                    "the other setting"
                } else {
                    AS_IT_IS
                };
                let left = left.as_secs();
                write!(
                    f,
                    "{left} s left, {pairs} pairs of blocks done; now: {setting}"
                )
            }
            AbProgress::Pause(left) => {
                let minutes = left.as_secs().div_ceil(60);
                write!(f, "a pause of {minutes} min; now: {AS_IT_IS}")
            }
            AbProgress::FirstMinute(answer) => {
                let needed = answer.cpu.and_then(|cpu| cpu.time_needed);
                match needed {
                    Some(AbTimeNeeded {
                        aim_cores, seconds, ..
                    }) => write!(
                        f,
                        "after the first minute: {seconds:.0} s in all are needed to know the difference to \
                         {aim_cores:.3} cores"
                    ),
                    None => {
                        f.write_str("after the first minute: the necessary time is still unknown")
                    }
                }
            }
        }
    }
}
