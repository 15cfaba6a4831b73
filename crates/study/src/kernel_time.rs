//! What the kernel's receive work takes of an engine's CPU: interrupts and network soft interrupts by events, NAPI
//! threads by their own clocks.
//!
//! What must hold: a thread is counted on a CPU only when it can run nowhere else. Without BPF the soft interrupts are
//! not known, and [`KernelTime::gap`] says so.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use nicpoll_engine::{CpuAccount, CpuAccounts, Drive, Helpers, KernelSide, NoAccounts};
use nicpoll_observe::{BpfError, ExactCpu, ExactCpuOptions, ExactSample, SOFTIRQ_NAMES};
use nicpoll_switch::{Journal, guard_of_this_program, recover};
use nicpoll_sys::schedule::{self, Policy};
use nicpoll_sys::usage;

use crate::kernel_side::{SwitchSetup, napi_threads};

/// How NAPI threads are scheduled in the network's part of a tick: before ordinary programs, after the engine.
const RECEIVING: Policy = Policy::Fifo { priority: 2 };

/// Accounts of the CPUs of an engine at interfaces of the calling thread's network namespace.
pub struct KernelTime {
    interfaces: Vec<String>,
    /// Loaded for the first engine: each event costs the CPUs something.
    events: OnceCell<Option<Arc<ExactCpu>>>,
    holds_back: bool,
    gap: RefCell<Option<String>>,
}

impl KernelTime {
    /// Counts from when the first engine asks: by programs that see interrupts and soft interrupts; where those cannot be
    /// had, NAPI threads alone. With `side` threaded, threads that were bound to an engine's CPU for it are told when to
    /// run.
    pub fn of(interfaces: &[&str], side: KernelSide) -> Self {
        KernelTime {
            interfaces: interfaces.iter().map(|name| String::from(*name)).collect(),
            events: OnceCell::new(),
            holds_back: side == KernelSide::Threaded,
            gap: RefCell::new(None),
        }
    }

    fn events(&self) -> Option<Arc<ExactCpu>> {
        let load = || match attached() {
            Ok(exact) => Some(Arc::new(exact)),
            Err(error) => {
                *self.gap.borrow_mut() = Some(error.to_string());
                None
            }
        };
        self.events.get_or_init(load).clone()
    }

    /// Why not everything is counted; `None` when it is, or there is no engine.
    pub fn gap(&self) -> Option<String> {
        self.gap.borrow().clone()
    }
}

/// What this crate gives an engine of a program that has a guard.
pub struct EngineSupport {
    accounts: Option<KernelTime>,
    setup: SwitchSetup,
}

impl EngineSupport {
    /// For an engine at interfaces of the calling thread's network namespace. Only one that polls by the clock is
    /// charged for the kernel's work. What an engine left that was killed together with its guard is put back first.
    pub fn of(interfaces: &[&str], drive: Drive, side: KernelSide) -> Self {
        // Without the privilege nothing can be put back; whoever has it tries again.
        let _ = recover(&Journal::of_this_machine());
        EngineSupport {
            accounts: drive.polls().then(|| KernelTime::of(interfaces, side)),
            setup: SwitchSetup::new(guard_of_this_program),
        }
    }

    /// As the engine takes it.
    pub fn helpers(&self) -> Helpers<'_> {
        Helpers {
            accounts: match &self.accounts {
                Some(accounts) => accounts,
                None => &NoAccounts,
            },
            setup: Some(&self.setup),
        }
    }

    /// What is not counted, in a sentence; `None` when nothing is missing.
    pub fn gap(&self) -> Option<String> {
        let why = self.accounts.as_ref()?.gap()?;
        Some(format!(
            "the kernel's soft interrupts on the engine's CPUs are not counted, nor charged to polling: {why}"
        ))
    }
}

fn attached() -> Result<ExactCpu, BpfError> {
    let mut exact = ExactCpu::load(&ExactCpuOptions {
        passes_over_syscalls: true,
        ..ExactCpuOptions::default()
    })?;
    exact.attach()?;
    Ok(exact)
}

impl CpuAccounts for KernelTime {
    fn of_cpu(&self, cpu: u32) -> Option<Box<dyn CpuAccount>> {
        let threads = self.interfaces.iter().map(|it| napi_threads(it));
        let threads: Vec<u32> = match threads.collect::<Result<Vec<_>, _>>() {
            Ok(threads) => threads.into_iter().flatten().collect(),
            Err(error) => {
                *self.gap.borrow_mut() = Some(format!("looking for NAPI threads: {error}"));
                Vec::new()
            }
        };
        let is_bound = |pid: &u32| schedule::cpus(*pid).is_ok_and(|cpus| cpus == [cpu]);
        let threads: Vec<u32> = threads.into_iter().filter(is_bound).collect();
        let events = self.events();
        if events.is_none() && threads.is_empty() {
            return None;
        }
        // Only what was recorded, and is put back, may be scheduled otherwise.
        let is_idle = |pid: &u32| schedule::policy(*pid).is_ok_and(|policy| policy == Policy::Idle);
        let can_hold_back = self.holds_back && !threads.is_empty() && threads.iter().all(is_idle);
        let first = events.as_ref().and_then(|exact| exact.read().ok());
        Some(Box::new(KernelTimeOfCpu {
            cpu,
            events: events.zip(first),
            threads,
            can_hold_back,
            latest_ns: 0,
        }))
    }
}

struct KernelTimeOfCpu {
    cpu: u32,
    /// With what it counted when the account began.
    events: Option<(Arc<ExactCpu>, ExactSample)>,
    /// NAPI threads that run on this CPU alone.
    threads: Vec<u32>,
    can_hold_back: bool,
    latest_ns: u64,
}

impl CpuAccount for KernelTimeOfCpu {
    fn kernel_ns(&mut self) -> u64 {
        let by_events = self.events.as_ref().and_then(|(exact, first)| {
            let times = exact.read().ok()?.since(first, &[self.cpu]);
            let times = times.first()?;
            let soft = times.softirq_ns.iter().zip(SOFTIRQ_NAMES);
            // Timers, RCU and the scheduler are not the network's.
            let soft = soft.filter(|(_, name)| name.starts_with("NET_"));
            Some(times.irq_ns + soft.map(|(ns, _)| ns).sum::<u64>())
        });
        let of_threads = self
            .threads
            .iter()
            .filter_map(|pid| usage::cpu_ns_of(*pid).ok());
        let now_ns = by_events.unwrap_or(0) + of_threads.sum::<u64>();
        // A thread that ends takes its time along.
        self.latest_ns = self.latest_ns.max(now_ns);
        self.latest_ns
    }

    fn can_hold_back(&self) -> bool {
        self.can_hold_back
    }

    fn let_run(&mut self, on: bool) {
        for pid in self.threads.iter().filter(|_| self.can_hold_back) {
            let policy = if on { RECEIVING } else { Policy::Idle };
            // One that is gone receives nothing.
            let _ = schedule::set_policy(*pid, policy);
        }
    }
}
