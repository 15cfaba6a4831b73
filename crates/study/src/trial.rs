//! One trial: apply the setting, warm up, measure, and put back.
//!
//! What must hold: both hosts are quiet at both ends of the measured window, so that the ledger's
//! counters cover exactly the packets of that window; no rate is measured while CPU time is accounted
//! for; the setting is put back whatever happens.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::{Calibration, Plan, Side, Trial, Warmup};
use nicpoll_observe::HostSnapshot;

use crate::calibrate::{Memory, calibrate, gap_ns};
use crate::cpu_window::CpuWindow;
use crate::design::{Design, NamedSetting, NamedWorkload};
use crate::error::{Doing, StudyError};
use crate::host::Counter;
use crate::judge::{Measured, judge, watched};
use crate::lab::Lab;
use crate::run::Running;

/// Time for stragglers of a run to be counted, beyond two periods.
const QUIET: Duration = Duration::from_millis(2);

/// Warm-ups that a workload is rehearsed with.
const REHEARSALS: u32 = 2;

/// Where in the study a trial stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Position in the study, from 1.
    pub sequence: u32,
    /// Block, from 1.
    pub block: u32,
    /// What the traffic is.
    pub workload: String,
    /// What is in force.
    pub setting: String,
}

/// Both hosts' counters and settings while everything is quiet.
pub struct Accounts {
    /// The sender's counters.
    pub sender: HostSnapshot,
    /// The receiver's counters.
    pub receiver: HostSnapshot,
    /// Every setting of both interfaces.
    pub settings: BTreeMap<String, String>,
}

/// Runs trials on a lab and remembers what calibration found.
pub struct Trials<'a> {
    lab: &'a mut Lab,
    design: &'a Design,
    plan: &'a Plan,
    cancel: &'a AtomicBool,
    netns_inode: u64,
    /// By workload and setting.
    memories: BTreeMap<(String, String), Memory>,
}

/// What one trial is about.
#[derive(Clone, Copy)]
struct Subject<'a> {
    workload: &'a NamedWorkload,
    setting: &'a NamedSetting,
}

impl<'a> Trials<'a> {
    /// Trials of `plan`, which is of `design`; they end early, with an error, when `cancel` becomes true.
    ///
    /// # Errors
    /// When the receiver does not say what it is.
    pub fn new(
        lab: &'a mut Lab,
        design: &'a Design,
        plan: &'a Plan,
        cancel: &'a AtomicBool,
    ) -> Result<Self, StudyError> {
        let netns_inode = lab.receiver.facts()?.netns_inode;
        Ok(Trials {
            lab,
            design,
            plan,
            cancel,
            netns_inode,
            memories: BTreeMap::new(),
        })
    }

    /// Lets calibration find its feet under each workload, so that the first trials are as well set as
    /// the last ones.
    pub fn rehearse(&mut self) -> Result<(), StudyError> {
        for name in &self.plan.workloads {
            let workload = self.workload(name)?;
            for setting in self.design.timed() {
                let outcome = self.rehearse_one(Subject { workload, setting });
                self.lab.restore()?;
                outcome.doing(|| format!("rehearsing {name} under {}", setting.name()))?;
            }
        }
        Ok(())
    }

    fn rehearse_one(&mut self, subject: Subject<'_>) -> Result<(), StudyError> {
        let mut memory = Memory::default();
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
    pub fn run(&mut self, place: Place) -> Result<Trial, StudyError> {
        let subject = Subject {
            workload: self.workload(&place.workload)?,
            setting: self.setting(&place.setting)?,
        };
        let what = format!(
            "trial {}: {} under {}",
            place.sequence, place.workload, place.setting
        );
        let outcome = self.measure(place, subject);
        // Also after an error: the next trial, or the user, must find the link as it came up.
        let restored = self.lab.restore();
        let trial = outcome.doing(|| what)?;
        restored?;
        Ok(trial)
    }

    fn measure(&mut self, place: Place, subject: Subject<'_>) -> Result<Trial, StudyError> {
        let of_both = (place.workload.clone(), place.setting.clone());
        let mut memory = self.memories.get(&of_both).copied().unwrap_or_default();
        let napis = self.apply(subject, &memory)?;
        let (warmup, calibration) = self.warm_up(subject, &mut memory)?;

        let duration = Duration::from_secs_f64(self.plan.trial_seconds);
        let before = self.accounts()?;
        let opened = self.lab.receiver.edge()?;
        let mut running = Running::start(self.lab, &subject.workload.request, duration)?;
        running.wait_for_sender(self.lab, self.cancel)?;
        let closed = self.lab.receiver.edge()?;
        let books = running.drain(self.lab, self.quiet_time())?;
        thread::sleep(self.quiet_time());
        let after = self.accounts()?;
        if let Some(calibration) = &calibration {
            // The measured window is the longest look there is; the next trial begins with it.
            if let Some(gap_ns) = gap_ns(&opened.polls, &closed.polls) {
                let timeout_ns = calibration.gro_flush_timeout_ns;
                memory.learn_from_window(timeout_ns, gap_ns, calibration.period_ns);
            }
            self.remember(subject, memory);
        }
        let cpu_window = self.cpu_window(subject.workload)?;
        Ok(judge(Measured {
            place,
            workload: subject.workload,
            setting: subject.setting,
            lab: self.lab,
            netns_inode: self.netns_inode,
            napis,
            warmup,
            proof_attempts: 1,
            calibration,
            books,
            accounts: [before, after],
            cpu_window,
            edges: [opened, closed],
        }))
    }

    /// A short run of the trial's traffic, in which CPU time is accounted for. `None` when it cannot be
    /// exactly.
    fn cpu_window(&mut self, workload: &NamedWorkload) -> Result<Option<CpuWindow>, StudyError> {
        if self.lab.exact_cpu_refused.is_some() {
            return Ok(None);
        }
        self.lab.receiver.count(Counter::Cpu, true)?;
        let window = self.accounted_run(workload);
        // Also after an error: what is measured next must not pay for it.
        self.lab.receiver.count(Counter::Cpu, false)?;
        window.map(Some)
    }

    fn accounted_run(&mut self, workload: &NamedWorkload) -> Result<CpuWindow, StudyError> {
        let duration = Duration::from_secs_f64(self.plan.cpu_window_seconds);
        self.lab.receiver.open_cpu_window()?;
        let mut running = Running::start(self.lab, &workload.request, duration)?;
        running.wait_for_sender(self.lab, self.cancel)?;
        let cpus = self.lab.cpus().to_vec();
        let times = self.lab.receiver.close_cpu_window(cpus)?;
        let books = running.drain(self.lab, self.quiet_time())?;
        Ok(CpuWindow { times, books })
    }

    /// Traffic that nobody counts, during which the timer is set right. Afterwards all is quiet.
    fn warm_up(
        &mut self,
        subject: Subject<'_>,
        memory: &mut Memory,
    ) -> Result<(Warmup, Option<Calibration>), StudyError> {
        let begin = Instant::now();
        let duration = Duration::from_secs_f64(self.plan.warmup_seconds);
        let mut running = Running::start(self.lab, &subject.workload.request, duration)?;
        let calibration = match subject.setting.period_ns() {
            Some(period_ns) => Some(calibrate(
                self.lab,
                subject.setting,
                period_ns,
                memory,
                begin + duration,
            )?),
            None => None,
        };
        running.wait_for_sender(self.lab, self.cancel)?;
        let books = running.drain(self.lab, self.quiet_time())?;
        thread::sleep(self.quiet_time());
        let warmup = Warmup {
            seconds: begin.elapsed().as_secs_f64(),
            delivered_bytes: books.delivered_bytes,
        };
        Ok((warmup, calibration))
    }

    /// Puts a setting in force and counts its polls from now on. Returns the receiver's NAPI instances.
    fn apply(&mut self, subject: Subject<'_>, memory: &Memory) -> Result<Vec<u32>, StudyError> {
        let setting = subject.setting;
        let period_ns = setting.period_ns();
        let timeout_ns = period_ns.map(|period_ns| memory.timeout_ns(period_ns));
        apply(self.lab, setting, timeout_ns)?;
        let napis = self.lab.receiver.napis()?;
        self.lab.receiver.watch_polls(watched(&napis))?;
        Ok(napis)
    }

    fn remember(&mut self, subject: Subject<'_>, memory: Memory) {
        let of_both = (
            subject.workload.name.clone(),
            String::from(subject.setting.name()),
        );
        self.memories.insert(of_both, memory);
    }

    fn workload(&self, name: &str) -> Result<&'a NamedWorkload, StudyError> {
        let unknown = || StudyError::Unexpected(format!("the study has no workload {name}"));
        self.design.workload(name).ok_or_else(unknown)
    }

    fn setting(&self, name: &str) -> Result<&'a NamedSetting, StudyError> {
        let unknown = || StudyError::Unexpected(format!("the study has no setting {name}"));
        self.design.setting(name).ok_or_else(unknown)
    }

    /// Long enough for what waits in the ring to be polled, twice over.
    fn quiet_time(&self) -> Duration {
        QUIET + 2 * Duration::from_nanos(self.plan.period_ns)
    }

    fn accounts(&mut self) -> Result<Accounts, StudyError> {
        Ok(Accounts {
            sender: self.lab.sender.counters()?,
            receiver: self.lab.receiver.counters()?,
            settings: self.lab.settings()?,
        })
    }
}

/// Puts a setting in force at every host that it concerns, the sender first: what it sends must suit the
/// receiver's NAPI as soon as there is one. May be called again to move a timeout.
pub fn apply(
    lab: &mut Lab,
    setting: &NamedSetting,
    timeout_ns: Option<u64>,
) -> Result<(), StudyError> {
    for side in [Side::Sender, Side::Receiver] {
        let host = lab.host(side);
        if let Some(request) = setting.request(host.name(), timeout_ns) {
            host.apply(request)?;
        }
    }
    Ok(())
}
