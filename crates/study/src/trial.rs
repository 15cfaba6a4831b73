//! One trial: apply the setting, warm up, measure, and put back.
//!
//! What must hold: both hosts are quiet at both ends of the measured window, so that the ledger's
//! counters cover exactly the packets of that window; no rate is measured while CPU time is accounted
//! for; the setting is put back whatever happens.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nicpoll_model::{Calibration, Plan, Setting, Trial, Warmup, Workload};
use nicpoll_observe::{CpuSample, HostSnapshot, PollCounts};
use rustix::time::{ClockId, clock_gettime};

use crate::calibrate::{Memory, calibrate};
use crate::cpu_window::CpuWindow;
use crate::host::Host;
use crate::judge::{Measured, judge};
use crate::lab::Lab;
use crate::run::Running;
use crate::setting::{self, Applied};

/// Time for stragglers of a run to be counted, beyond two periods.
const QUIET: Duration = Duration::from_millis(2);

/// Warm-ups that a workload is rehearsed with.
const REHEARSALS: u32 = 2;

/// Where in the study a trial stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Position in the study, from 1.
    pub sequence: u32,
    /// Block, from 1.
    pub block: u32,
    /// 1, or more when the block is run again.
    pub attempt: u32,
    /// What the traffic is.
    pub workload: Workload,
    /// What is in force.
    pub setting: Setting,
}

/// Both hosts' counters and settings while everything is quiet.
pub struct Books {
    /// The sender's counters.
    pub sender: HostSnapshot,
    /// The receiver's counters.
    pub receiver: HostSnapshot,
    /// Every setting of both interfaces.
    pub settings: BTreeMap<String, String>,
}

/// What is read at the very edges of the measured window.
pub struct Edge {
    /// When.
    pub at: Instant,
    /// Polls so far.
    pub polls: PollCounts,
    /// CPU time so far.
    pub cpu: CpuSample,
    /// How far the wall clock is ahead of the monotonic one.
    pub wall_ahead_ns: i128,
}

/// Runs trials on a lab and remembers what calibration found.
pub struct Trials<'a> {
    lab: &'a mut Lab,
    plan: &'a Plan,
    cancel: &'a AtomicBool,
    memories: BTreeMap<Workload, Memory>,
}

impl<'a> Trials<'a> {
    /// Trials of `plan`; they end early, with an error, when `cancel` becomes true.
    pub fn new(lab: &'a mut Lab, plan: &'a Plan, cancel: &'a AtomicBool) -> Self {
        Trials {
            lab,
            plan,
            cancel,
            memories: BTreeMap::new(),
        }
    }

    /// Lets calibration find its feet under each workload, so that the first trials are as well set as
    /// the last ones.
    pub fn rehearse(&mut self) -> Result<()> {
        for &workload in &self.plan.workloads {
            let outcome = self.rehearse_one(workload);
            self.lab.restore()?;
            outcome.with_context(|| format!("rehearsing {workload} under polling"))?;
        }
        Ok(())
    }

    fn rehearse_one(&mut self, workload: Workload) -> Result<()> {
        let mut memory = Memory::default();
        let timeout_ns = memory.timeout_ns(self.plan.period_ns);
        let applied = setting::apply(self.lab, Setting::Polling, timeout_ns)?;
        let netns_inode = self.lab.receiver.netns().inode();
        self.lab.polls.watch(netns_inode, applied.napi_id)?;
        for _ in 0..REHEARSALS {
            self.warm_up(workload, applied, &mut memory)?;
        }
        self.memories.insert(workload, memory);
        Ok(())
    }

    /// Runs one trial.
    ///
    /// # Errors
    /// When the trial could not be carried out at all, or was cancelled. A trial that was carried out
    /// and does not count is returned with its reason.
    pub fn run(&mut self, place: Place) -> Result<Trial> {
        let outcome = self.measure(place);
        // Also after an error: the next trial, or the user, must find the link as it came up.
        let restored = self.lab.restore();
        let trial = outcome.with_context(|| {
            format!(
                "trial {}: {} under {}",
                place.sequence, place.workload, place.setting
            )
        })?;
        restored?;
        Ok(trial)
    }

    fn measure(&mut self, place: Place) -> Result<Trial> {
        let period_ns = self.plan.period_ns;
        let mut memory = self
            .memories
            .get(&place.workload)
            .copied()
            .unwrap_or_default();
        let applied = setting::apply(self.lab, place.setting, memory.timeout_ns(period_ns))?;
        let napis = setting::napi_ids(self.lab)?.len();
        let netns_inode = self.lab.receiver.netns().inode();
        self.lab.polls.watch(netns_inode, applied.napi_id)?;
        let (warmup, calibration) = self.warm_up(place.workload, applied, &mut memory)?;

        let duration = Duration::from_secs_f64(self.plan.trial_seconds);
        let books_before = self.books()?;
        let opened = self.edge()?;
        let mut running = Running::start(self.lab, place.workload, duration)?;
        running.wait_for_sender(self.cancel)?;
        let closed = self.edge()?;
        let run = running.drain(self.quiet_time())?;
        thread::sleep(self.quiet_time());
        let books_after = self.books()?;
        if let Some(calibration) = &calibration {
            // The measured window is the longest look there is; the next trial begins with it.
            if let Some(gap_ns) = gap_ns(&opened, &closed) {
                memory.learn_from_window(calibration.gro_flush_timeout_ns, gap_ns, period_ns);
            }
            self.memories.insert(place.workload, memory);
        }
        let cpu_window = self.cpu_window(place.workload)?;
        Ok(judge(Measured {
            place,
            plan: self.plan,
            lab: self.lab,
            napis,
            applied,
            warmup,
            calibration,
            run,
            books: [books_before, books_after],
            cpu_window,
            edges: [opened, closed],
        }))
    }

    /// A short run of the trial's traffic, in which CPU time is accounted for. `None` when it cannot be
    /// exactly.
    fn cpu_window(&mut self, workload: Workload) -> Result<Option<CpuWindow>> {
        let Ok(exact) = &mut self.lab.exact_cpu else {
            return Ok(None);
        };
        exact.attach()?;
        let window = self.accounted_run(workload);
        // Also after an error: what is measured next must not pay for it.
        if let Ok(exact) = &mut self.lab.exact_cpu {
            exact.detach()?;
        }
        window
    }

    fn accounted_run(&self, workload: Workload) -> Result<Option<CpuWindow>> {
        let Ok(exact) = &self.lab.exact_cpu else {
            return Ok(None);
        };
        let duration = Duration::from_secs_f64(self.plan.cpu_window_seconds);
        let before = exact.read()?;
        let mut running = Running::start(self.lab, workload, duration)?;
        running.wait_for_sender(self.cancel)?;
        let after = exact.read()?;
        let run = running.drain(self.quiet_time())?;
        Ok(Some(CpuWindow {
            times: after.since(&before, &self.lab.cpus()),
            run,
        }))
    }

    /// Traffic that nobody counts, during which the timer is set right. Afterwards all is quiet.
    fn warm_up(
        &mut self,
        workload: Workload,
        applied: Applied,
        memory: &mut Memory,
    ) -> Result<(Warmup, Option<Calibration>)> {
        let begin = Instant::now();
        let duration = Duration::from_secs_f64(self.plan.warmup_seconds);
        let mut running = Running::start(self.lab, workload, duration)?;
        let calibration = match applied.napi_id {
            Some(napi_id) if applied.setting == Setting::Polling => Some(calibrate(
                self.lab,
                napi_id,
                self.plan.period_ns,
                memory,
                begin + duration,
            )?),
            _ => None,
        };
        running.wait_for_sender(self.cancel)?;
        let run = running.drain(self.quiet_time())?;
        thread::sleep(self.quiet_time());
        let warmup = Warmup {
            seconds: begin.elapsed().as_secs_f64(),
            delivered_bytes: run.delivered_bytes,
        };
        Ok((warmup, calibration))
    }

    /// Long enough for what waits in the ring to be polled, twice over.
    fn quiet_time(&self) -> Duration {
        QUIET + 2 * Duration::from_nanos(self.plan.period_ns)
    }

    fn books(&self) -> Result<Books> {
        Ok(Books {
            sender: counters(&self.lab.sender)?,
            receiver: counters(&self.lab.receiver)?,
            settings: self.lab.settings()?,
        })
    }

    fn edge(&self) -> Result<Edge> {
        let nanos = |clock| {
            let time = clock_gettime(clock);
            i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
        };
        Ok(Edge {
            at: Instant::now(),
            polls: self.lab.polls.read()?,
            cpu: CpuSample::now().context("reading /proc/stat")?,
            wall_ahead_ns: nanos(ClockId::Realtime) - nanos(ClockId::Monotonic),
        })
    }
}

/// Mean time from round to round between two edges; `None` without rounds.
fn gap_ns(opened: &Edge, closed: &Edge) -> Option<u64> {
    let rounds = closed.polls.since(&opened.polls).rounds;
    (closed.at - opened.at)
        .as_nanos()
        .checked_div(rounds.into())
        .map(|gap| gap as u64)
}

fn counters(host: &Host) -> Result<HostSnapshot> {
    Ok(host.run(|resident| resident.counters.snapshot())?)
}
