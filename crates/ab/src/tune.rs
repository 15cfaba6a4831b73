//! The best setting of an interface under its own traffic.
//!
//! Each candidate takes turns with the present setting for a few pairs of blocks: one block of the race. Its value is
//! therefore relative to what the host has, measured in the same seconds, and a change of the load counts for nobody. The
//! alarms of a comparison hold for each candidate; one that sets them off is out at once. The winner has a comparison
//! of its own, which decides.

use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nicpoll_inspect::host_facts;
use nicpoll_lab::{LabError, Refused};
use nicpoll_model::ab::{
    AbBlock, AbDelayAnswer, AbDelayKind, AbEndCause, AbPair, AbQuantile, LiveAb,
};
use nicpoll_model::numbers::counted;
use nicpoll_model::tune::{
    KeptFigure, TUNE_SCHEMA, Tune, TuneCandidate, TuneDropped, TuneGoal, TuneLimit,
};
use nicpoll_model::units::show_time;
use nicpoll_model::{Origin, Unseen};
use nicpoll_stats::ab::MARGIN;
use nicpoll_stats::mean;
use nicpoll_stats::order::{Seed, shuffle};
use nicpoll_stats::search::race::{Race, RaceRule, RaceTrial};
use nicpoll_store::{Ended, Store};
use nicpoll_switch::{Candidate, Journal, KnobValues, Name, SwitchError};

use crate::comparison::{AbError, prepare};
use crate::plan::{AbRequest, plan};
use crate::run::{AS_IT_IS, AbProgress};

/// Pairs of blocks of a candidate in each block of the race, about: their lengths are random.
const PAIRS: u32 = 9;

/// What a candidate's turn takes besides its blocks, at most: losses are learnt, changes are tried.
const BESIDES: Duration = Duration::from_secs(5);

/// Share of the time that the final comparison has.
const FINAL_SHARE: f64 = 0.25;

/// Mean length of the final comparison's blocks.
const FINAL_BLOCK: Duration = Duration::from_secs(4);

/// Delays by which settings differ: those that a poll adds to are in them, the best first.
const DELAYS: [AbDelayKind; 3] = [
    AbDelayKind::UdpWireToRead,
    AbDelayKind::TcpWireToRead,
    AbDelayKind::SmoothedRoundTrip,
];

/// What to tune, and for what.
#[derive(Clone, Debug)]
pub struct LiveTuneRequest {
    /// The interface.
    pub name: Name,
    /// Network namespace, by its name for 'ip netns'; `None`: the caller's.
    pub netns: Option<String>,
    /// The settings to try.
    pub candidates: Vec<Candidate>,
    /// The goal. Throughput is the traffic's own here.
    pub goal: TuneGoal,
    /// The limits.
    pub limits: Vec<TuneLimit>,
    /// Time of all.
    pub duration: Duration,
    /// Mean length of the race's blocks.
    pub block: Duration,
    /// Seed of the orders.
    pub seed: u64,
    /// A candidate is out when it loses this many times as much as the present setting.
    pub loss_factor: f64,
}

/// What tuning reports while it goes on.
#[derive(Debug)]
pub enum LiveTuneProgress<'a> {
    /// This many candidates can be tried.
    Begins(usize),
    /// A candidate's turn.
    Turn {
        /// Block of the race, from 1.
        block: u32,
        /// Candidates left.
        left: usize,
        /// The candidate.
        candidate: &'a str,
        /// Its comparison.
        progress: AbProgress<'a>,
    },
    /// The winner is compared.
    Final(AbProgress<'a>),
}

impl LiveTuneRequest {
    fn ab(&self, candidate: &Candidate, duration: Duration, block: Duration) -> AbRequest {
        AbRequest {
            name: self.name.clone(),
            values: candidate.values.clone(),
            words: candidate.words.clone(),
            netns: self.netns.clone(),
            plan: plan(duration, block, None, self.seed),
            is_disruptive: false,
            loss_factor: self.loss_factor,
        }
    }

    fn turn(&self) -> Duration {
        2 * PAIRS * self.block
    }

    fn rule(&self) -> RaceRule {
        RaceRule {
            more_is_better: false,
            margin_ratio: 1.0 + MARGIN,
            limits: self.limits.iter().map(|it| it.at_most).collect(),
            trials_max: usize::MAX,
        }
    }

    /// Returns a candidate's figures of one turn, and the limited ones of the reference.
    fn results(&self, run: &LiveAb) -> (RaceTrial, Vec<Option<f64>>) {
        let value = match self.goal {
            TuneGoal::Latency => {
                delay(run, AbQuantile::P50).map(|[judged, reference]| judged / reference)
            }
            _ => run.answer.cpu.and_then(|cpu| Some(cpu.per_byte?.ratio)),
        };
        let both = self.limits.iter().map(|it| match it.figure {
            KeptFigure::DelayP50Ns => delay(run, AbQuantile::P50),
            KeptFigure::DelayP99Ns => delay(run, AbQuantile::P99),
            KeptFigure::LossRatio => lost_ratios(run),
            KeptFigure::BusyCores => run
                .answer
                .cpu
                .map(|it| [it.judged_cores, it.reference_cores]),
        });
        let both = both.map(|it| it.map_or((None, None), |[one, other]| (Some(one), Some(other))));
        let (limited, of_reference) = both.unzip();
        let value = value.filter(|it| *it > 0.0 && it.is_finite());
        (RaceTrial { value, limited }, of_reference)
    }
}

/// Returns the delay by which settings are compared.
fn delay_answer(run: &LiveAb, quantile: AbQuantile) -> Option<&AbDelayAnswer> {
    DELAYS.iter().find_map(|kind| {
        let mut all = run.answer.delays.iter();
        all.find(|it| it.kind == *kind && it.quantile == quantile)
    })
}

/// Returns that delay under the judged setting and under the reference.
fn delay(run: &LiveAb, quantile: AbQuantile) -> Option<[f64; 2]> {
    delay_answer(run, quantile).map(|it| [it.judged_ns, it.reference_ns])
}

/// Returns the share of received packets that was lost, under the judged setting and under the reference.
fn lost_ratios(run: &LiveAb) -> Option<[f64; 2]> {
    let counting = || run.pairs.iter().filter(|it| it.set_aside_because.is_none());
    let share = |of: fn(&AbPair) -> &AbBlock| {
        let lost = |it: &AbBlock| it.dropped_packets.0.values().flatten().sum::<u64>();
        let lost: u64 = counting().map(|it| lost(of(it))).sum();
        let received: u64 = counting().map(|it| of(it).window.rx_packets).sum();
        (received > 0).then(|| lost as f64 / (lost + received) as f64)
    };
    Some([share(|it| &it.judged)?, share(|it| &it.reference)?])
}

/// A race while it runs.
struct Running<'a> {
    request: &'a LiveTuneRequest,
    origin: &'a Origin,
    guard: &'a dyn Fn() -> io::Result<Command>,
    cancel: &'a AtomicBool,
    /// The candidates that can be tried. The present setting comes before them in the race.
    all: Vec<Candidate>,
    race: Race,
    runs: u32,
    /// Figures of each candidate's turns: busy cores, and the median delay.
    seen: Vec<[Vec<f64>; 2]>,
}

/// Tunes an interface, stores the final comparison, and puts everything back. `guard` makes the command of the process
/// that puts everything back if this one is killed.
///
/// # Errors
/// When nothing can be tried or measured.
pub fn tune_live(
    request: &LiveTuneRequest,
    origin: Origin,
    guard: &dyn Fn() -> io::Result<Command>,
    store: Option<Store>,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(LiveTuneProgress<'_>),
) -> Result<Ended<Tune, LabError>, AbError> {
    let begin = Instant::now();
    if request.goal == TuneGoal::Throughput {
        let why = "--goal throughput takes traffic of a study (--study): live traffic decides its own rate";
        return Err(LabError::from(Refused(String::from(why))).into());
    }
    let mut found = head(request, &origin)?;
    let all = possible(request, &mut found)?;
    progress(LiveTuneProgress::Begins(all.len()));
    let seen = vec![Default::default(); all.len() + 1];
    let race = Race::new(all.len() + 1, request.rule());
    let mut running = Running {
        request,
        origin: &origin,
        guard,
        cancel,
        all,
        race,
        runs: 0,
        seen,
    };
    let outcome = running.race(begin, &mut found.not_tried, progress);
    running.tell(&mut found);
    let winner = outcome?.then(|| running.winner(&mut found)).flatten();
    let mut ended = Ended {
        outcome: Ok(()),
        place: None,
        unstored: None,
    };
    if let Some(winner) = winner {
        let time = request.duration.mul_f64(FINAL_SHARE);
        let prepared = prepare(
            request.ab(winner, time, FINAL_BLOCK),
            Journal::of_this_machine(),
        )?;
        let last = &mut |it: AbProgress<'_>| progress(LiveTuneProgress::Final(it));
        let guard = guard().map_err(LabError::from)?;
        let compared = prepared.run(origin.clone(), guard, store, cancel, last)?;
        (ended.place, ended.unstored) = (compared.place, compared.unstored);
        match compared.outcome {
            Ok(compared) => decide(request, &mut found, compared),
            Err(error) => ended.outcome = Err(error),
        }
    }
    found.is_finished &= !cancel.load(Ordering::Relaxed);
    if !found.is_finished {
        found.because = String::from("it was ended before it was decided");
    }
    found.elapsed_seconds = begin.elapsed().as_secs_f64();
    Ok(Ended {
        outcome: ended.outcome.map(|()| found),
        place: ended.place,
        unstored: ended.unstored,
    })
}

fn head(request: &LiveTuneRequest, origin: &Origin) -> Result<Tune, LabError> {
    let Origin {
        nicpoll_version,
        argv,
        started_at,
    } = origin.clone();
    let own = TuneCandidate {
        name: String::from(AS_IT_IS),
        ..TuneCandidate::default()
    };
    Ok(Tune {
        schema: String::from(TUNE_SCHEMA),
        nicpoll_version,
        argv,
        started_at,
        interface: request.name.to_string(),
        host: host_facts()?,
        traffic: String::from("the traffic that it has"),
        goal: request.goal,
        limits: request.limits.clone(),
        reference: String::from(AS_IT_IS),
        candidates: vec![own],
        seed: request.seed,
        is_finished: true,
        ..Tune::default()
    })
}

/// Returns the candidates that can take turns with the present setting; the others are noted with the reason.
fn possible(request: &LiveTuneRequest, found: &mut Tune) -> Result<Vec<Candidate>, AbError> {
    let mut all = Vec::new();
    let empty = Candidate {
        name: String::new(),
        words: String::new(),
        values: KnobValues::polling(1),
    };
    // The interface itself, its namespace and privileges are asked for once, with their own messages.
    prepare(
        request.ab(&empty, request.turn(), request.block),
        Journal::of_this_machine(),
    )?;
    for candidate in request.candidates.clone() {
        if found.candidate(&candidate.name).is_some() {
            continue;
        }
        let own = request.ab(&candidate, request.turn(), request.block);
        match prepare(own, Journal::of_this_machine()) {
            Ok(_) => {
                found.add_candidate(&candidate.name, &candidate.words);
                all.push(candidate);
            }
            Err(error) => found.refuse_candidate(&candidate.name, error.with_causes()),
        }
    }
    let least = all.len() as u32 * (request.turn() + BESIDES);
    let needed = least.div_f64(1.0 - FINAL_SHARE);
    if needed > request.duration {
        return Err(LabError::from(Refused(format!(
            "{} candidates take {} at least: give a longer --for, or a shorter --block than {}",
            all.len(),
            show_time(needed.as_secs().next_multiple_of(60) * 1_000_000_000),
            show_time(request.block.as_nanos() as u64)
        )))
        .into());
    }
    Ok(all)
}

impl Running<'_> {
    /// Runs the race while there is time. Returns whether it came to its end.
    fn race(
        &mut self,
        begin: Instant,
        not_tried: &mut Vec<Unseen>,
        progress: &mut dyn FnMut(LiveTuneProgress<'_>),
    ) -> Result<bool, LabError> {
        let mut random = Seed(self.request.seed).generator();
        let time = self.request.duration.mul_f64(1.0 - FINAL_SHARE);
        let turn = self.request.turn() + BESIDES;
        let mut block = 0;
        while let Some(mut left) = self.race.next_block() {
            let needed = turn * (left.len() - usize::from(left[0] == 0)) as u32;
            if block > 0 && begin.elapsed() + needed > time {
                break;
            }
            let has_reference = left[0] == 0;
            left.retain(|it| *it > 0);
            shuffle(&mut left, &mut random);
            block += 1;
            let mut measured = Vec::new();
            let mut of_reference = Vec::new();
            for &at in &left {
                let turn = self.turn(at - 1, block, left.len(), progress);
                let (trial, limited) = match turn {
                    Err(
                        why @ (LabError::Switch(SwitchError::Refused(_)) | LabError::Refused(_)),
                    ) if block == 1 => {
                        self.race.drop_out(at, TuneDropped::Refused);
                        not_tried.push(Unseen {
                            what: self.all[at - 1].name.clone(),
                            why: why.to_string(),
                        });
                        continue;
                    }
                    turn => turn?,
                };
                if self.cancel.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                of_reference.push(limited);
                measured.push((at, trial));
            }
            let limited = (0..self.request.limits.len()).map(|limit| {
                let all: Vec<f64> = of_reference.iter().filter_map(|it| it[limit]).collect();
                mean(&all)
            });
            let reference = RaceTrial {
                value: Some(1.0),
                limited: limited.collect(),
            };
            measured.extend(has_reference.then_some((0, reference)));
            self.race.add_block(measured);
        }
        Ok(true)
    }

    /// Runs a candidate's turn. One that sets off an alarm is out.
    fn turn(
        &mut self,
        candidate: usize,
        block: u32,
        left: usize,
        progress: &mut dyn FnMut(LiveTuneProgress<'_>),
    ) -> Result<(RaceTrial, Vec<Option<f64>>), LabError> {
        let own = &self.all[candidate];
        let request = self
            .request
            .ab(own, self.request.turn(), self.request.block);
        let prepared = prepare(request, Journal::of_this_machine())?;
        let guard = (self.guard)()?;
        let ended = prepared.run(self.origin.clone(), guard, None, self.cancel, &mut |it| {
            progress(LiveTuneProgress::Turn {
                block,
                left,
                candidate: &own.name,
                progress: it,
            });
        });
        let run = match ended {
            Ok(ended) => ended.outcome?,
            Err(AbError::Lab(error)) => return Err(error),
            Err(AbError::Store(error)) => return Err(LabError::Unexpected(error.to_string())),
        };
        self.runs += 1;
        match run.end.cause {
            AbEndCause::Planned | AbEndCause::Interrupted => {}
            AbEndCause::Drops | AbEndCause::Retransmissions => {
                self.race.drop_out(candidate + 1, TuneDropped::Alarm);
            }
            // A driver that announces a value may still not take it.
            AbEndCause::SettingFailed => {
                return Err(Refused(run.end.text.unwrap_or_default()).into());
            }
            _ => {
                let why = run.end.text.unwrap_or_default();
                return Err(LabError::Unexpected(format!("under {}: {why}", own.name)));
            }
        }
        let [cores, delays] = &mut self.seen[candidate + 1];
        cores.extend(run.answer.cpu.map(|cpu| cpu.judged_cores));
        delays.extend(delay(&run, AbQuantile::P50).map(|[judged, _]| judged));
        let [cores, delays] = &mut self.seen[0];
        cores.extend(run.answer.cpu.map(|cpu| cpu.reference_cores));
        delays.extend(delay(&run, AbQuantile::P50).map(|[_, reference]| reference));
        Ok(self.request.results(&run))
    }

    /// Adds what the race found to the document.
    fn tell(&self, found: &mut Tune) {
        found.race_trials = self.runs;
        self.race.tell(&mut found.candidates);
        for (own, [cores, delays]) in found.candidates.iter_mut().zip(&self.seen) {
            (own.cpu, own.delay_p50_ns) = (mean(cores), mean(delays));
        }
    }

    /// Returns the winner if it is to be compared; else says why not.
    fn winner(&self, found: &mut Tune) -> Option<&Candidate> {
        let winner = self.race.choice();
        found.winner = winner.map(|it| found.candidates[it].name.clone());
        let has_figures = found
            .candidates
            .iter()
            .any(|it| it.blocks > 0 && !it.command.is_empty());
        found.because = match winner {
            _ if !has_figures && self.request.goal == TuneGoal::Latency => String::from(
                "no delay that a poll adds to can be seen here: it takes the card's time stamps, or TCP that this \
                 host sends",
            ),
            _ if !has_figures => String::from("CPU time could not be compared under any candidate"),
            None => format!(
                "nothing that was tried is shown to keep {}",
                found.limits_words()
            ),
            Some(0) => String::from("nothing that was tried is shown to be better"),
            Some(_) => String::new(),
        };
        self.all.get(winner?.checked_sub(1)?)
    }
}

/// Decides by the final comparison.
fn decide(request: &LiveTuneRequest, found: &mut Tune, compared: LiveAb) {
    let (result, _) = request.results(&compared);
    let mut limited = request.limits.iter().zip(&result.limited);
    let is_kept = limited.all(|(limit, it)| it.is_some_and(|it| it <= limit.at_most));
    // The same delay as in the race.
    let is_shorter = delay_answer(&compared, AbQuantile::P50)
        .and_then(|it| it.ratio?.ratio_high)
        .is_some_and(|high| high < 1.0);
    let is_better = match request.goal {
        TuneGoal::Latency => is_shorter,
        _ => compared.answer.is_recommended,
    };
    let pairs = format!("{} of blocks", counted(compared.answer.pairs, "pair"));
    found.conclude(is_kept, is_better, &pairs);
    found.ab = Some(compared);
}
