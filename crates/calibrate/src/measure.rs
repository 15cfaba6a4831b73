//! Measures what the running kernel's receive path costs, by kind of work.
//!
//! One run shows only the total cost of all work on a packet. The runs here mix the kinds in different proportions:
//! polls without packets, packets with a poll each, many packets a poll, receivers that sleep for each packet and
//! receivers that never do. Least squares then give the cost of each kind, separately for each repeat.
//!
//! No run polls by timer under a sender at full speed or under request and response: those are predicted later.
//! Settings are restored, even after an error.

mod costs;
mod probe;
pub mod switching;

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nicpoll_iperf::UdpWorkload;
use nicpoll_lab::{
    Doing, HostRequest, Lab, LabError, RECEIVE_BUFFER_BYTES, Running, WorkloadRequest, udp, watched,
};
use nicpoll_model::sim::MeasuredCost;
use nicpoll_observe::{CpuSample, ExactCpu, ExactCpuOptions, PollCounter, start_timing};
use nicpoll_traffic::rr::RrWorkload;
use nicpoll_traffic::workload::Books;

use crate::measure::costs::{collect, measured_costs, others_ratio, steal_ratio, stolen_ratio};
use crate::measure::probe::{
    Instruments, ProbeBlock, QUIET, WorkProbe, look, look_at, look_at_nobody, touch,
};
use crate::measure::switching::{switch_ns, tick_ns, wake_ns};

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

/// The measured costs.
#[derive(Clone, Debug)]
pub struct HostCosts {
    /// Repeats of all measurements.
    pub repeats: u32,
    /// Share of the two processors that other programs took meanwhile, 0 to 1; `None` without any probe.
    pub others_ratio: Option<f64>,
    /// Share that the hypervisor kept (steal); `None` when unknown.
    pub steal_ratio: Option<f64>,
    /// The cost of every kind of work, in the order of [`nicpoll_model::sim::HostCost::ALL`].
    pub costs: Vec<MeasuredCost>,
}

/// Applies a setting to a lab: interrupts, or polling with this kernel timeout in nanoseconds.
pub type PutInForce<'a> = dyn Fn(&mut Lab, Option<u64>) -> Result<(), LabError> + 'a;

/// Measures every kind of cost on a lab with its initial settings, and restores them. `progress` gets the number of
/// the repeat that begins, and of those planned by then.
///
/// # Errors
/// [`LabError::Cancelled`] when `cancel` became true; when CPU time cannot be accounted for exactly; when a run
/// fails; when other programs or the hypervisor repeatedly take too much of the processors.
pub fn measure_costs(
    lab: &mut Lab,
    quick: bool,
    put_in_force: &PutInForce<'_>,
    cancel: &AtomicBool,
    mut progress: impl FnMut(u32, u32),
) -> Result<HostCosts, LabError> {
    let exact = ExactCpu::load(&ExactCpuOptions {
        has_threads: true,
        ..ExactCpuOptions::default()
    })
    .map_err(|refused| LabError::NoExactCpu(refused.to_string()))?;
    let nobody = lab.link.nobody.ok_or_else(|| {
        let what = "costs are measured on a link that nobody else is on";
        LabError::Unexpected(String::from(what))
    })?;
    let (nobody, mac) = nobody;
    let netns_inode = lab.receiver.facts()?.netns_inode;
    let neighbour = HostRequest::Neighbour {
        address: nobody,
        mac,
    };
    lab.sender.tell(neighbour)?;
    let mut fit = HostMeasurement {
        lab,
        instruments: Instruments {
            exact,
            polls: PollCounter::load()?,
        },
        put_in_force,
        netns_inode,
        cancel,
        nobody,
        run: if quick { QUICK_RUN } else { RUN },
    };
    let repeats = if quick { QUICK_REPEATS } else { REPEATS };
    let blocks = collect(repeats, |repeat, of| {
        LabError::unless(cancel)?;
        progress(repeat, of);
        let block = fit.block();
        let detached = fit.instruments.exact.detach();
        // Also after an error: the link must get its initial settings back.
        let restored = fit.lab.restore();
        let block = block.doing(|| format!("measuring costs, repeat {repeat}"))?;
        detached?;
        restored?;
        Ok(block)
    })?;
    Ok(HostCosts {
        repeats: blocks.len() as u32,
        others_ratio: others_ratio(&blocks),
        steal_ratio: steal_ratio(&blocks),
        costs: measured_costs(&blocks),
    })
}

struct HostMeasurement<'a> {
    lab: &'a mut Lab,
    instruments: Instruments,
    put_in_force: &'a PutInForce<'a>,
    /// The receiver's namespace.
    netns_inode: u64,
    cancel: &'a AtomicBool,
    nobody: IpAddr,
    /// Length of the traffic of a run.
    run: Duration,
}

impl HostMeasurement<'_> {
    fn block(&mut self) -> Result<ProbeBlock, LabError> {
        let begin = CpuSample::now()?;
        let mut block = ProbeBlock {
            switch_ns: switch_ns(self.lab.receiver_cpu)?,
            wake_ns: wake_ns(self.lab.sender_cpu, self.lab.receiver_cpu)?,
            ..ProbeBlock::default()
        };
        self.apply(None)?;
        self.without_account(&mut block)?;
        self.instruments.exact.attach()?;
        self.one_packet_a_poll(&mut block)?;
        self.lab.restore()?;
        self.by_timer(&mut block)?;
        let exact = &self.instruments.exact;
        block.tick_ns = tick_ns(exact, self.lab.sender_cpu, self.run)?;
        let sampled = CpuSample::now()?.since(&begin, &self.lab.cpus());
        block.steal_ratio = stolen_ratio(&sampled.states);
        Ok(block)
    }

    /// Applies interrupts, or polling with this timeout.
    fn apply(&mut self, timeout_ns: Option<u64>) -> Result<(), LabError> {
        (self.put_in_force)(self.lab, timeout_ns)?;
        let napi_id = watched(&self.lab.receiver.napis()?);
        self.instruments.polls.watch(self.netns_inode, napi_id)?;
        Ok(())
    }

    /// Measures round trips without the CPU account, which would lengthen them.
    fn without_account(&mut self, block: &mut ProbeBlock) -> Result<(), LabError> {
        self.instruments.exact.detach()?;
        let rr = WorkloadRequest::Rr(RrWorkload {
            receive_buffer_bytes: Some(RECEIVE_BUFFER_BYTES),
            ..RrWorkload::default()
        });
        let trips = self.unobserved(&rr)?.round_trip;
        block.round_trip_ns = trips.and_then(|trips| Some(trips.quantiles.p50_ns? as f64));
        Ok(())
    }

    /// Returns the time of one event of the CPU account: the kernel times its BPF programs, under the heaviest load.
    fn event_ns(&mut self) -> Result<Option<f64>, LabError> {
        let timing = start_timing()?;
        let before = self.instruments.exact.programs.timed_runs()?;
        self.unobserved(&udp(64))?;
        let runs = self.instruments.exact.programs.timed_runs()?.since(before);
        drop(timing);
        Ok(runs.map(|runs| runs.ns_per_run))
    }

    fn unobserved(&mut self, workload: &WorkloadRequest) -> Result<Books, LabError> {
        Running::to_end(self.lab, workload, self.run, QUIET, self.cancel)
    }

    fn one_packet_a_poll(&mut self, block: &mut ProbeBlock) -> Result<(), LabError> {
        block.event_ns = self.event_ns()?;
        block.small = self.look_at(&udp(64))?;
        block.large = self.look_at(&udp(1470))?;
        let (lab, instruments) = (&mut *self.lab, &self.instruments);
        block.nobody = look_at_nobody(lab, instruments, self.run, self.nobody, self.cancel)?;
        for pps in PACED {
            block.paced.push(self.look_at(&paced(pps))?);
        }
        Ok(())
    }

    fn by_timer(&mut self, block: &mut ProbeBlock) -> Result<(), LabError> {
        for timeout_ns in EMPTY_NS {
            self.apply(Some(timeout_ns))?;
            touch(self.lab, self.nobody, self.cancel)?;
            let probe = look(self.lab, &self.instruments, self.run / 2)?;
            block.empty.push((timeout_ns, probe));
        }
        for (timeout_ns, pps) in TIMED {
            self.apply(Some(timeout_ns))?;
            block.timed.push(self.look_at(&paced(pps))?);
        }
        Ok(())
    }

    fn look_at(&mut self, workload: &WorkloadRequest) -> Result<WorkProbe, LabError> {
        look_at(self.lab, &self.instruments, workload, self.run, self.cancel)
    }
}

/// Datagrams of 64 bytes at a rate.
fn paced(packets_per_second: u64) -> WorkloadRequest {
    WorkloadRequest::Udp(UdpWorkload {
        payload_bytes: 64,
        packets_per_second: NonZeroU64::new(packets_per_second),
        receive_buffer_bytes: Some(RECEIVE_BUFFER_BYTES),
    })
}
