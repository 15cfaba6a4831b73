//! What the running kernel's receive path costs, kind of work by kind of work.
//!
//! One run tells what all work on a packet costs together. Here runs mix the kinds in different parts: polls
//! without packets, packets with a poll each, many packets a poll, receivers that sleep for each packet and
//! receivers that never do. What each kind costs follows by least squares, anew for each repeat.
//!
//! What must hold: no run polls by timer at the load that one sender makes at full speed, nor request and response:
//! what is later predicted for them was not looked at. Settings are put back whatever happens.

mod costs;
mod probe;
mod regression;
mod switching;

use std::mem;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use nicpoll_model::sim_fit_host::MeasuredCost;
use nicpoll_model::{Setting, Workload};
use nicpoll_observe::{ExactCpu, ExactCpuOptions, TimedRuns, start_timing};

use crate::lab::Lab;
use crate::link;
use crate::run::{Run, Running};
use crate::setting;
use crate::study::Cancelled;
use probe::{Probe, look, look_at, look_at_nobody};

pub use switching::ticks_per_second;

const REPEATS: u32 = 5;
const RUN: Duration = Duration::from_millis(200);
const QUICK_REPEATS: u32 = 3;
const QUICK_RUN: Duration = Duration::from_millis(100);
/// Kernel timeouts of polling without traffic.
const EMPTY_NS: [u64; 3] = [100_000, 300_000, 1_000_000];
/// Kernel timeouts and packets a second of polling with some traffic.
const TIMED: [(u64, u64); 2] = [(300_000, 40_000), (500_000, 80_000)];
/// Packets a second with a poll each.
const PACED: [u64; 2] = [50_000, 100_000];

/// Everything measured once.
#[derive(Clone, Debug, Default)]
struct Block {
    /// With the kernel's timeout.
    empty: Vec<(u64, Probe)>,
    timed: Vec<Probe>,
    paced: Vec<Probe>,
    small: Probe,
    large: Probe,
    nobody: Probe,
    /// What one event of the account of CPU time takes.
    event_ns: Option<f64>,
    round_trip_ns: Option<f64>,
    switch_ns: f64,
    wake_ns: f64,
    tick_ns: Option<f64>,
}

impl Block {
    fn probes(&self) -> impl Iterator<Item = &Probe> {
        let empty = self.empty.iter().map(|(_, probe)| probe);
        let paced = self.timed.iter().chain(&self.paced);
        empty
            .chain(paced)
            .chain([&self.small, &self.large, &self.nobody])
    }
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct HostCosts {
    /// Times that everything was measured.
    pub repeats: u32,
    /// What other programs took of the two processors meanwhile, 0 to 1; `None` without any look.
    pub others_ratio: Option<f64>,
    /// Every kind, in the order of [`nicpoll_model::sim_fit_host::HostCost::ALL`].
    pub costs: Vec<MeasuredCost>,
}

/// Measures every kind of cost on a lab whose settings are as they came up, and leaves them so. Tells the
/// repeat that begins, and how many there are.
///
/// # Errors
/// [`Cancelled`] when `cancel` became true; when CPU time cannot be accounted for exactly; when a run fails.
pub fn measure_costs(
    lab: &mut Lab,
    quick: bool,
    cancel: &AtomicBool,
    progress: impl FnMut(u32, u32),
) -> Result<HostCosts> {
    // The lab's own account leaves threads out, which makes it cheaper; here their times are needed.
    let with_threads = ExactCpu::load(&ExactCpuOptions {
        has_threads: true,
        ..ExactCpuOptions::default()
    });
    let without = mem::replace(&mut lab.exact_cpu, with_threads);
    let costs = measure_blocks(lab, quick, cancel, progress);
    lab.exact_cpu = without;
    costs
}

fn measure_blocks(
    lab: &mut Lab,
    quick: bool,
    cancel: &AtomicBool,
    mut progress: impl FnMut(u32, u32),
) -> Result<HostCosts> {
    probe::account(lab)?;
    let nobody = link::add_nobody(&lab.sender)?;
    let repeats = if quick { QUICK_REPEATS } else { REPEATS };
    let mut blocks = Vec::new();
    for repeat in 1..=repeats {
        if cancel.load(Ordering::Relaxed) {
            return Err(Cancelled.into());
        }
        progress(repeat, repeats);
        let mut fit = Fit {
            lab,
            cancel,
            nobody,
            run: if quick { QUICK_RUN } else { RUN },
        };
        let block = fit.block();
        let detached = fit.account(false);
        // Also after an error: the link must be as it came up.
        let restored = fit.lab.restore();
        blocks.push(block.with_context(|| format!("measuring costs, repeat {repeat}"))?);
        detached?;
        restored?;
    }
    Ok(HostCosts {
        repeats,
        others_ratio: costs::others_ratio(&blocks),
        costs: costs::of(&blocks),
    })
}

struct Fit<'a> {
    lab: &'a mut Lab,
    cancel: &'a AtomicBool,
    nobody: IpAddr,
    /// Length of the traffic of a run.
    run: Duration,
}

impl Fit<'_> {
    fn block(&mut self) -> Result<Block> {
        let mut block = Block {
            switch_ns: switching::switch_ns(self.lab.receiver_cpu)?,
            wake_ns: switching::wake_ns(self.lab.sender_cpu, self.lab.receiver_cpu)?,
            ..Block::default()
        };
        self.apply(Setting::Interrupt, 0)?;
        self.without_account(&mut block)?;
        self.account(true)?;
        self.one_packet_a_poll(&mut block)?;
        self.lab.restore()?;
        self.by_timer(&mut block)?;
        let exact = probe::account(self.lab)?;
        block.tick_ns = switching::tick_ns(exact, self.lab.sender_cpu, self.run)?;
        Ok(block)
    }

    fn apply(&mut self, setting: Setting, timeout_ns: u64) -> Result<u32> {
        let applied = setting::apply(self.lab, setting, timeout_ns)?;
        let netns_inode = self.lab.receiver.netns().inode();
        self.lab.polls.watch(netns_inode, applied.napi_id)?;
        Ok(applied.napi_id.unwrap_or_default())
    }

    fn account(&mut self, is_wanted: bool) -> Result<()> {
        if let Ok(exact) = &mut self.lab.exact_cpu {
            if is_wanted {
                exact.attach()?;
            } else {
                exact.detach()?;
            }
        }
        Ok(())
    }

    /// The account would lengthen a round trip.
    fn without_account(&mut self, block: &mut Block) -> Result<()> {
        self.account(false)?;
        let trips = self.unobserved(Workload::Rr)?.round_trip;
        block.round_trip_ns = trips.map(|trips| trips.p50_ns as f64);
        Ok(())
    }

    /// The kernel times the account's programs, where they have most to do.
    fn event_ns(&mut self) -> Result<Option<f64>> {
        let timing = start_timing()?;
        let before = timed_runs(self.lab)?;
        self.unobserved(Workload::Udp64)?;
        let runs = timed_runs(self.lab)?.since(before);
        drop(timing);
        Ok(runs.map(|runs| runs.ns_per_run))
    }

    fn unobserved(&self, workload: Workload) -> Result<Run> {
        let mut running = Running::start(self.lab, workload, self.run)?;
        running.wait_for_sender(self.cancel)?;
        running.drain(probe::QUIET)
    }

    fn one_packet_a_poll(&mut self, block: &mut Block) -> Result<()> {
        block.event_ns = self.event_ns()?;
        let full_speed = |workload| {
            look_at(self.lab, self.run, self.cancel, |lab, time| {
                Running::start(lab, workload, time)
            })
        };
        block.small = full_speed(Workload::Udp64)?;
        block.large = full_speed(Workload::Udp1470)?;
        block.nobody = look_at_nobody(self.lab, self.run, self.nobody)?;
        for pps in PACED {
            block.paced.push(self.paced(pps)?);
        }
        Ok(())
    }

    fn by_timer(&mut self, block: &mut Block) -> Result<()> {
        let napi_id = self.apply(Setting::Polling, EMPTY_NS[0])?;
        for timeout_ns in EMPTY_NS {
            setting::set_timeout(self.lab, napi_id, timeout_ns)?;
            probe::touch(self.lab, self.nobody)?;
            block
                .empty
                .push((timeout_ns, look(self.lab, self.run / 2)?));
        }
        for (timeout_ns, pps) in TIMED {
            setting::set_timeout(self.lab, napi_id, timeout_ns)?;
            block.timed.push(self.paced(pps)?);
        }
        Ok(())
    }

    fn paced(&self, pps: u64) -> Result<Probe> {
        let start = |lab: &Lab, time| Running::start_paced(lab, pps, time);
        look_at(self.lab, self.run, self.cancel, start)
    }
}

fn timed_runs(lab: &mut Lab) -> Result<TimedRuns> {
    Ok(match &mut lab.exact_cpu {
        Ok(exact) => exact.timed_runs()?,
        Err(_) => TimedRuns::default(),
    })
}
