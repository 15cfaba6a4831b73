//! One trial: apply the setting, warm up, measure, restore.
//!
//! Both hosts are quiet at both edges of the measured window, so the ledger's counters cover exactly its packets. No
//! rate is measured while CPU time is counted or a program computes next to the receiver: each has a short run of its
//! own. The setting is always restored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_lab::{Changes, Counter, Doing, Edge, HostClient, HostRequest, Lab, LabError, Running};
use nicpoll_model::{
    Calibration, Plan, SettingChanges, Side, SpinnerShare, Trial, TrialFigures, Validity, Warmup,
};
use nicpoll_traffic::workload::Books;

use crate::design::{Design, NamedSetting, NamedWorkload};
use crate::judge::confounders::SeenValues;
use crate::judge::trial::{
    CpuWindow, HostReadings, MeasuredTrial, TrialPlace, Window, disturbed, judge, rhythm, unproven,
    validity,
};
use crate::plan::durations::{REHEARSALS, SPINNER_RUN};
use crate::run::series::{MachineReadings, RunningReadings};
use crate::run::timer::{TimerMemory, apply, begin_commands, calibrate, gap_ns};

/// Attempts to prove a setting before the traffic counts.
const PROOF_ATTEMPTS_MAX: u32 = 2;

/// Result of a warm-up.
struct Warmed {
    warmup: Warmup,
    calibration: Option<Calibration>,
    /// Polls and rounds a second at its end; `None` if not seen.
    rhythm: Option<(f64, f64)>,
}

/// Runs trials on a lab and remembers the calibrated timeouts.
pub struct Trials<'a> {
    lab: &'a mut Lab,
    design: &'a Design,
    plan: &'a Plan,
    cancel: &'a AtomicBool,
    netns_inode: u64,
    /// Values of both interfaces under each setting, when it was first in force.
    pub(crate) seen: SeenValues,
    /// What each setting changed, when it was first in force.
    pub(crate) changes: Vec<SettingChanges>,
    /// By workload and setting.
    memories: BTreeMap<(String, String), TimerMemory>,
    /// Whether the trial has made its own changes: later ones are another process's.
    is_settled: bool,
    /// How long a lost host took from the study's time, until its owner takes it out.
    pub(crate) lost_time: Duration,
}

/// Workload and setting of a trial.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub workload: &'a NamedWorkload,
    pub setting: &'a NamedSetting,
}

/// A setting in force for several runs.
pub(super) struct HeldSetting {
    napis: Vec<u32>,
    memory: TimerMemory,
}

/// One run of a setting that is in force.
pub(super) struct HeldRun {
    pub books: Books,
    /// What others changed meanwhile.
    pub disturbed: Option<String>,
    /// Why the setting is not proven to have been in force.
    pub unproven: Option<String>,
}

impl<'a> Trials<'a> {
    /// Prepares the trials of `plan`, made of `design`. They end early, with an error, when `cancel` becomes true.
    ///
    /// # Errors
    /// When the receiver does not describe itself.
    pub fn new(
        lab: &'a mut Lab,
        design: &'a Design,
        plan: &'a Plan,
        cancel: &'a AtomicBool,
    ) -> Result<Self, LabError> {
        let netns_inode = lab.studied().facts()?.netns_inode;
        Ok(Trials {
            lab,
            design,
            plan,
            cancel,
            netns_inode,
            seen: SeenValues::new(),
            changes: Vec::new(),
            memories: BTreeMap::new(),
            is_settled: false,
            lost_time: Duration::ZERO,
        })
    }

    /// Sets the time by which traffic ends.
    pub(crate) fn end_by(&mut self, deadline: Instant) {
        self.lab.deadline = Some(deadline);
    }

    /// Calibrates the timer under each workload, to tune the first trials like the last. Starts nothing after the
    /// deadline.
    pub fn rehearse(&mut self, deadline: Instant) -> Result<(), LabError> {
        for name in &self.plan.workloads {
            let workload = self.workload(name)?;
            for setting in self.design.timed() {
                if Instant::now() > deadline {
                    return Ok(());
                }
                let outcome = self.rehearse_one(Subject { workload, setting });
                self.lab.restore()?;
                match outcome {
                    // The trials will report this failure.
                    Err(error) if error.of_traffic().is_some() || error.is_out_of_time() => {}
                    outcome => {
                        outcome.doing(|| format!("rehearsing {name} under {}", setting.name()))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn rehearse_one(&mut self, subject: Subject<'_>) -> Result<(), LabError> {
        let mut memory = TimerMemory::default();
        self.apply(subject, &memory)?;
        for _ in 0..REHEARSALS {
            self.warm_up(subject, &mut memory)?;
        }
        self.remember(subject, memory);
        Ok(())
    }

    /// Runs one trial.
    ///
    /// # Errors
    /// When the trial could not be carried out at all, or was cancelled. A trial that was carried out
    /// and does not count is returned with its reason.
    pub fn run(&mut self, place: TrialPlace) -> Result<Trial, LabError> {
        let subject = Subject {
            workload: self.workload(&place.workload)?,
            setting: self.setting(&place.setting)?,
        };
        let what = format!(
            "trial {}: {} under {}",
            place.sequence, place.workload, place.setting
        );
        self.is_settled = false;
        let begin = Instant::now();
        let outcome = self.measure(place.clone(), subject);
        let changes = match &outcome {
            Err(error) if error.of_traffic().is_some() => self.others_changes().map(Some),
            _ => Ok(None),
        };
        // Its peer may fail first.
        let errors = [outcome.as_ref().err(), changes.as_ref().err()];
        if let Some(why) = errors
            .into_iter()
            .flatten()
            .find_map(LabError::of_lost_host)
        {
            return self.cut_off(place, why, begin);
        }
        let changes = changes?;
        // Also after an error: the next trial, or the user, needs the link as it came up.
        let restored = self.lab.restore();
        let trial = match (outcome, changes) {
            (Err(error), Some(changes)) => self.failed(place, &error, &changes),
            (outcome, _) => outcome.doing(|| what)?,
        };
        restored?;
        Ok(trial)
    }

    /// Applies a setting and warms up. It stays in force until the lab is restored.
    pub(super) fn hold(&mut self, subject: Subject<'_>) -> Result<HeldSetting, LabError> {
        let mut memory = TimerMemory::default();
        let napis = self.apply(subject, &memory)?;
        self.warm_up(subject, &mut memory)?;
        Ok(HeldSetting { napis, memory })
    }

    /// Runs traffic under a held setting, whose timer is tuned to it first. CPU time and losses are not accounted for.
    pub(super) fn run_held(
        &mut self,
        subject: Subject<'_>,
        held: &mut HeldSetting,
        seconds: f64,
    ) -> Result<HeldRun, LabError> {
        if subject.setting.period_ns().is_some() {
            self.warm_up(subject, &mut held.memory)?;
        }
        // Changes until here are the study's own.
        self.lab.changes()?;
        let opened = self.lab.studied().polls()?;
        let workload = subject.workload.under(subject.setting);
        let duration = Duration::from_secs_f64(seconds);
        let mut running = Running::start(self.lab, &workload, duration)?;
        running.wait_for_sender(self.lab, self.cancel)?;
        let rhythm = rhythm(&opened, &self.lab.studied().polls()?);
        let books = running.drain(self.lab, self.quiet_time())?;
        thread::sleep(self.quiet_time());
        Ok(HeldRun {
            books,
            disturbed: disturbed(&self.lab.changes()?),
            unproven: unproven(subject.setting.evidence, held.napis.len(), rhythm),
        })
    }

    /// Puts every setting back.
    pub(super) fn restore(&mut self) -> Result<(), LabError> {
        self.lab.restore()
    }

    /// Returns what commands changed and nobody undid, in words.
    pub(crate) fn left(&self) -> &BTreeSet<String> {
        &self.lab.left
    }

    /// Returns other processes' changes since the trial began. Before it is settled, only changes that it never makes
    /// count.
    fn others_changes(&mut self) -> Result<Changes, LabError> {
        let mut changes = self.lab.changes()?;
        if !self.is_settled {
            changes.others.clear();
        }
        Ok(changes)
    }

    /// Makes the trial during which a host was lost, restores the other hosts, and connects it again.
    fn cut_off(&mut self, place: TrialPlace, why: &str, begin: Instant) -> Result<Trial, LabError> {
        let trial = Trial {
            validity: Validity {
                external: Some(String::from(why)),
                ..Validity::default()
            },
            ..place.trial(self.lab)
        };
        self.lab.restore()?;
        self.lab.reopen(self.cancel)?;
        self.lost_time = begin.elapsed();
        self.lab.deadline = self.lab.deadline.map(|deadline| deadline + self.lost_time);
        Ok(trial)
    }

    /// Makes a trial without a result: an end of its traffic failed.
    fn failed(&self, place: TrialPlace, error: &LabError, changes: &Changes) -> Trial {
        let reason = error.of_traffic().unwrap_or_default();
        let lost = changes
            .has_lost_carrier
            .then_some("the link lost its carrier");
        Trial {
            validity: Validity {
                external: disturbed(changes),
                failure: Some(String::from(lost.unwrap_or(reason))),
                ..Validity::default()
            },
            ..place.trial(self.lab)
        }
    }

    fn measure(&mut self, place: TrialPlace, subject: Subject<'_>) -> Result<Trial, LabError> {
        let of_both = (place.workload.clone(), place.setting.clone());
        let mut memory = self.memories.get(&of_both).copied().unwrap_or_default();
        let napis = self.apply(subject, &memory)?;
        let (warmed, proof_attempts) = self.prove(subject, &napis, &mut memory)?;
        // Changes until here are the study's own.
        self.lab.changes()?;
        self.is_settled = true;

        // The runs of a trial alternate in order: the cost of one to the other cancels.
        let is_cpu_first = place.block.is_multiple_of(2);
        let early = match is_cpu_first {
            true => self.cpu_window(subject)?,
            false => None,
        };
        let duration = Duration::from_secs_f64(self.plan.trial_seconds);
        let before = self.readings()?;
        if !self.seen.contains_key(&place.setting) {
            self.changes.extend(self.lab.changed_by(&place.setting)?);
            let mut seen = before.settings.clone();
            // Changes by commands were asked for.
            seen.extend(self.lab.values_before_commands()?);
            self.seen.insert(place.setting.clone(), seen);
        }
        let machines = MachineReadings::open(self.lab)?;
        let opened = self.lab.studied().edge()?;
        let mut running =
            Running::start(self.lab, &subject.workload.under(subject.setting), duration)?;
        let readings = RunningReadings::open(self.lab, duration, subject.workload.options.ip)?;
        running.wait_for_sender(self.lab, self.cancel)?;
        let unit = subject.workload.request.workload().unit();
        let series = readings.map(|readings| readings.close(self.lab, &machines, unit));
        let series = series.transpose()?.flatten();
        let closed = self.lab.studied().edge()?;
        let hosts = machines.close(self.lab)?;
        let window = self.end_window(running, before, [opened, closed])?;
        if let Some(calibration) = &warmed.calibration {
            // The measured window is the longest measurement of the gap; the next trial begins with its result.
            if let Some(gap_ns) = gap_ns(&window.edges[0].polls, &window.edges[1].polls) {
                let timeout_ns = calibration.gro_flush_timeout_ns;
                memory.learn_from_window(timeout_ns, gap_ns, calibration.period_ns);
            }
            self.remember(subject, memory);
        }
        let cpu_window = match is_cpu_first {
            true => early,
            false => self.cpu_window(subject)?,
        };
        let spinner = self.spinner_run(subject)?;
        let known = TrialFigures {
            calibration: warmed.calibration,
            spinner,
            series,
            hosts,
            ..TrialFigures::default()
        };
        let trial = Trial {
            warmup: warmed.warmup,
            proof_attempts,
            ..place.trial(self.lab)
        };
        let measured = MeasuredTrial {
            workload: subject.workload,
            setting: subject.setting,
            lab: self.lab,
            netns_inode: self.netns_inode,
            napis,
            window,
            cpu_window,
        };
        Ok(judge(trial, known, &measured))
    }

    /// Warms up until the setting is proven to be in force, or attempts run out. The measurement itself is never
    /// repeated.
    fn prove(
        &mut self,
        subject: Subject<'_>,
        napis: &[u32],
        memory: &mut TimerMemory,
    ) -> Result<(Warmed, u32), LabError> {
        let evidence = subject.setting.evidence;
        for attempt in 1.. {
            let warmed = self.warm_up(subject, memory)?;
            let missing =
                (warmed.rhythm).and_then(|rhythm| unproven(evidence, napis.len(), Some(rhythm)));
            if missing.is_none() || attempt == PROOF_ATTEMPTS_MAX {
                return Ok((warmed, attempt));
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Measures the CPU share of a program on the receiver's core; `None` if the workload does not ask for it.
    fn spinner_run(&mut self, subject: Subject<'_>) -> Result<Option<SpinnerShare>, LabError> {
        if !subject.workload.options.spinner {
            return Ok(None);
        }
        let (workload, quiet) = (subject.workload.under(subject.setting), self.quiet_time());
        spinner_run(self.lab, &workload, quiet, self.cancel).map(Some)
    }

    /// Runs the trial's traffic briefly with CPU accounting. `None` if CPU time cannot be counted exactly.
    fn cpu_window(&mut self, subject: Subject<'_>) -> Result<Option<CpuWindow>, LabError> {
        if self.lab.refused.exact_cpu.is_some() {
            return Ok(None);
        }
        let before = self.readings()?;
        self.lab.count(Counter::Cpu, true)?;
        let window = self.accounted_run(subject, before);
        // Also after an error: the next measurement must not pay for it.
        self.lab.count(Counter::Cpu, false)?;
        window.map(Some)
    }

    fn accounted_run(
        &mut self,
        subject: Subject<'_>,
        before: HostReadings,
    ) -> Result<CpuWindow, LabError> {
        let duration = Duration::from_secs_f64(self.plan.cpu_window_seconds);
        let opened = self.lab.studied().edge()?;
        self.lab.studied().tell(HostRequest::OpenCpuWindow)?;
        let mut running =
            Running::start(self.lab, &subject.workload.under(subject.setting), duration)?;
        running.wait_for_sender(self.lab, self.cancel)?;
        let (cpus, bound) = (self.lab.cpus(), self.lab.bound_cpus());
        let cores = HostRequest::CloseCpuWindow { cpus, bound };
        let cores = self.lab.studied().ask(cores)?;
        let closed = self.lab.studied().edge()?;
        let window = self.end_window(running, before, [opened, closed])?;
        let napis = &window.quiet[0].napis;
        Ok(CpuWindow {
            cores,
            validity: validity(subject.setting.evidence, napis, &window, None),
            books: window.books,
        })
    }

    /// Drains the traffic, and reads the hosts once all is quiet.
    fn end_window(
        &mut self,
        running: Running,
        before: HostReadings,
        edges: [Edge; 2],
    ) -> Result<Window, LabError> {
        let books = running.drain(self.lab, self.quiet_time())?;
        thread::sleep(self.quiet_time());
        Ok(Window {
            quiet: [before, self.readings()?],
            edges,
            books,
            changes: self.lab.changes()?,
        })
    }

    /// Runs uncounted traffic, during which the timer is tuned. All is quiet afterwards.
    fn warm_up(
        &mut self,
        subject: Subject<'_>,
        memory: &mut TimerMemory,
    ) -> Result<Warmed, LabError> {
        let begin = Instant::now();
        let duration = Duration::from_secs_f64(self.plan.warmup_seconds);
        let opened = self.lab.studied().polls()?;
        let mut running =
            Running::start(self.lab, &subject.workload.under(subject.setting), duration)?;
        // Counted from here: on a busy machine preparing both ends takes long, and no time would be left for
        // calibration.
        let traffic_ends = Instant::now() + duration;
        let setting = subject.setting;
        let calibrate = |period_ns| calibrate(self.lab, setting, period_ns, memory, traffic_ends);
        let period_ns = setting.period_ns().filter(|_| opened.counts.is_some());
        let calibration = period_ns.map(calibrate).transpose()?;
        running.wait_for_sender(self.lab, self.cancel)?;
        let closed = self.lab.studied().polls()?;
        let books = running.drain(self.lab, self.quiet_time())?;
        thread::sleep(self.quiet_time());
        let rhythm = match &calibration {
            // The timeout changed meanwhile; the last step is its result.
            Some(calibration) => calibration.steps_ns.last().map(|gap_ns| {
                let rounds = 1e9 / *gap_ns as f64;
                (rounds, rounds)
            }),
            None => rhythm(&opened, &closed),
        };
        Ok(Warmed {
            warmup: Warmup {
                seconds: begin.elapsed().as_secs_f64(),
                delivered_bytes: books.delivered_bytes,
            },
            calibration,
            rhythm,
        })
    }

    /// Applies a setting and starts counting polls. Returns the NAPI instances.
    fn apply(&mut self, subject: Subject<'_>, memory: &TimerMemory) -> Result<Vec<u32>, LabError> {
        let setting = subject.setting;
        let period_ns = setting.period_ns();
        let timeout_ns = period_ns.map(|period_ns| memory.timeout_ns(period_ns));
        apply(self.lab, setting, timeout_ns)?;
        begin_commands(self.lab, subject.workload, setting, self.cancel)?;
        self.lab.watch_polls()
    }

    fn remember(&mut self, subject: Subject<'_>, memory: TimerMemory) {
        let of_both = (
            subject.workload.name.clone(),
            String::from(subject.setting.name()),
        );
        self.memories.insert(of_both, memory);
    }

    fn workload(&self, name: &str) -> Result<&'a NamedWorkload, LabError> {
        let unknown = || LabError::Unexpected(format!("the study has no workload {name}"));
        self.design.workload(name).ok_or_else(unknown)
    }

    fn setting(&self, name: &str) -> Result<&'a NamedSetting, LabError> {
        let unknown = || LabError::Unexpected(format!("the study has no setting {name}"));
        self.design.setting(name).ok_or_else(unknown)
    }

    /// Returns the drain time plus two periods, in which polls empty the ring.
    fn quiet_time(&self) -> Duration {
        let drain = Duration::from_secs_f64(self.plan.drain_seconds);
        drain + 2 * Duration::from_nanos(self.plan.period_ns.unwrap_or(0))
    }

    fn readings(&mut self) -> Result<HostReadings, LabError> {
        let link = Arc::clone(&self.lab.link);
        let router = self.lab.router.as_mut();
        let router = router.map(HostClient::counters).transpose()?;
        Ok(HostReadings {
            sender: self.lab.counters(Side::Sender)?,
            receiver: self.lab.counters(Side::Receiver)?,
            router: router
                .zip(link.router())
                .map(|(all, end)| link.own(all, end)),
            settings: self.lab.settings()?,
            napis: self.lab.studied().napis()?,
        })
    }
}

/// Runs the traffic while a program computes on the receiver's core, and waits until all is quiet. Only this run has
/// the program, which would change rates and delays.
pub fn spinner_run(
    lab: &mut Lab,
    workload: &NamedWorkload,
    quiet: Duration,
    cancel: &AtomicBool,
) -> Result<SpinnerShare, LabError> {
    let mut running = Running::start(lab, workload, SPINNER_RUN)?;
    let (cpu, duration) = (lab.receiver_cpu, SPINNER_RUN);
    lab.receiver
        .tell(HostRequest::StartSpinner { cpu, duration })?;
    let cpu_ratio = lab.receiver.ask(HostRequest::EndSpinner)?;
    running.wait_for_sender(lab, cancel)?;
    let books = running.drain(lab, quiet)?;
    thread::sleep(quiet);
    Ok(SpinnerShare {
        seconds: SPINNER_RUN.as_secs_f64(),
        cpu_ratio,
        delivered_packets_per_second: books.receiver.packets_per_second,
    })
}
