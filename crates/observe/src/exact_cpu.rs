//! Where each CPU's time went, exact to the event, by BPF programs on the kernel's switch and interrupt
//! events.
//!
//! `/proc/stat` looks at a CPU once a clock tick on most kernels. Here every change of state gives the
//! time since the last one to the state that ends: a hard interrupt is taken off the soft interrupt or
//! the task that it came upon, a soft interrupt off its task. Nothing crosses into user space until
//! someone reads.
//!
//! What must hold: the states of each CPU add up to wall time. A copy that does not was read while an
//! event changed it, and is read again; should that never end, [`CpuTimes::residual_ns`] shows it.

mod account;
mod fold;
mod interrupts;
mod tasks;

use std::thread;

use aya::maps::{HashMap, MapData, PerCpuArray, PerCpuValues};
use aya::programs::BtfTracePoint;
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::{Btf, Ebpf, EbpfLoader};
use nicpoll_model::FoldBin;
use nicpoll_sys::affinity;

use crate::bpf::{self, BpfError, RunTime, TimedRuns};
use crate::reference::monotonic_ns;
use nicpoll_sys::bpf_maps;

pub use account::{CpuTimes, ExactSample, SOFTIRQ_NAMES, TaskTimes};
pub use fold::FoldOptions;
pub use interrupts::{InterruptCounts, InterruptSource, Interrupts};
pub use tasks::{ThreadTimes, by_process};

use account::CpuCopy;

/// What errors say the programs are for.
const WHAT: &str = "CPU time";
/// Programs and their tracepoints, in the order in which they are attached: an exit without its entry
/// is ignored, an entry without its exit would be believed.
const PROGRAMS: [(&str, &str); 5] = [
    ("on_switch", "sched_switch"),
    ("on_irq_exit", "irq_handler_exit"),
    ("on_irq_entry", "irq_handler_entry"),
    ("on_softirq_exit", "softirq_exit"),
    ("on_softirq_entry", "softirq_entry"),
];
/// Those that tell a task's system calls from the rest of it.
const SYSCALL_PROGRAMS: [(&str, &str); 2] =
    [("on_sys_exit", "sys_exit"), ("on_sys_enter", "sys_enter")];
/// Keeps the names of threads right; loaded when there is an account of threads.
const RENAME_PROGRAM: (&str, &str) = ("on_rename", "task_rename");
/// Does nothing, at the event that comes on every machine.
const IDLE_PROGRAM: (&str, &str) = ("on_switch_do_nothing", "sched_switch");
/// Interrupts of the CPU's own vectors, in the order of their sources. Not every kernel has events of
/// all; without, their time stays with what they came upon.
const VECTORS: [&str; 5] = [
    "local_timer",
    "reschedule",
    "call_function",
    "call_function_single",
    "irq_work",
];
/// Room for interrupts that are set up after the programs were loaded.
const SPARE_SOURCES: u32 = 64;
/// What an interrupt's entry and exit take of the task that it comes upon, and no task ran.
const BACK_TO_BACK_NS: u64 = 2_000;
/// How often a copy that was read half-way is read again.
const READS_MAX: u32 = 64;

/// What is counted beside the states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactCpuOptions {
    /// Folds time by the phase of a period.
    pub fold: Option<FoldOptions>,
    /// Whether an account of each thread is kept, which a third of a switch's cost is.
    pub has_threads: bool,
    /// Whether system calls are passed over: user and system time of tasks are not told apart then, and a system call
    /// costs nothing.
    pub passes_over_syscalls: bool,
    /// Handler entries back to back from which on they are a storm, as FreeBSD's
    /// `hw.intr_storm_threshold`; 0: none is.
    pub storm_threshold: u64,
}

/// The loaded programs.
pub struct ExactCpu {
    // Declared first: programs are detached before their maps go.
    ebpf: Ebpf,
    links: Vec<(String, BtfTracePointLinkId)>,
    /// What can be attached here, in order.
    programs: Vec<String>,
    cpus: PerCpuArray<MapData, bpf_maps::Cpu>,
    sources: PerCpuArray<MapData, bpf_maps::Source>,
    threads: HashMap<MapData, u32, bpf_maps::Thread>,
    fold: PerCpuArray<MapData, bpf_maps::Fold>,
    has_threads: bool,
    fold_options: Option<FoldOptions>,
    unseen_vectors: Vec<&'static str>,
}

impl ExactCpu {
    /// Loads the programs. They count nothing until [`ExactCpu::attach`].
    ///
    /// # Errors
    /// When the kernel describes no types, or refuses: CAP_BPF and CAP_PERFMON are needed. Then
    /// [`CpuSample`](crate::CpuSample) is what there is.
    pub fn load(options: &ExactCpuOptions) -> Result<Self, BpfError> {
        let btf = bpf::tracepoints(WHAT)?;
        let sources = VECTORS.len() as u32 + interrupts::irq_numbers_end() + SPARE_SOURCES;
        let (period_ns, tgid) = options
            .fold
            .map_or((0, 0), |fold| (fold.period_ns, fold.tgid));
        let mut ebpf = EbpfLoader::new()
            .map_max_entries("SOURCES", sources)
            .override_global("FOLD_PERIOD_NS", &period_ns, true)
            .override_global("FOLD_TGID", &tgid, true)
            .override_global("COUNT_THREADS", &u32::from(options.has_threads), true)
            .override_global("STORM_THRESHOLD", &options.storm_threshold, true)
            .override_global("BACK_TO_BACK_NS", &BACK_TO_BACK_NS, true)
            .load(aya::include_bytes_aligned!("../bpf/cpu_time.bpf.o"))
            .map_err(|error| refused(&error))?;
        let mut exact = ExactCpu {
            cpus: bpf::take_map(&mut ebpf, WHAT, "CPUS")?,
            sources: bpf::take_map(&mut ebpf, WHAT, "SOURCES")?,
            threads: bpf::take_map(&mut ebpf, WHAT, "THREADS")?,
            fold: bpf::take_map(&mut ebpf, WHAT, "FOLD")?,
            has_threads: options.has_threads,
            fold_options: options.fold,
            ebpf,
            links: Vec::new(),
            programs: Vec::new(),
            unseen_vectors: Vec::new(),
        };
        exact.load_programs(&btf, options.passes_over_syscalls)?;
        Ok(exact)
    }

    fn load_programs(&mut self, btf: &Btf, passes_over_syscalls: bool) -> Result<(), BpfError> {
        let (idle, tracepoint) = IDLE_PROGRAM;
        self.program(idle)
            .and_then(|program| Ok(program.load(tracepoint, btf)?))
            .map_err(|error| refused(&error))?;
        let of_threads = self.has_threads.then_some(RENAME_PROGRAM);
        let of_syscalls = SYSCALL_PROGRAMS
            .into_iter()
            .filter(|_| !passes_over_syscalls);
        for (program, tracepoint) in PROGRAMS.into_iter().chain(of_syscalls).chain(of_threads) {
            self.load_program(program, tracepoint, btf)
                .map_err(|error| refused(&error))?;
        }
        for vector in VECTORS {
            let edges = ["exit", "entry"].map(|edge| format!("{vector}_{edge}"));
            let loaded = edges.iter().try_for_each(|tracepoint| {
                self.load_program(&format!("on_{tracepoint}"), tracepoint, btf)
            });
            match loaded {
                Err(error) if bpf::lacks_tracepoint(&error) => self.unseen_vectors.push(vector),
                loaded => loaded.map_err(|error| refused(&error))?,
            }
        }
        Ok(())
    }

    fn load_program(
        &mut self,
        name: &str,
        tracepoint: &str,
        btf: &Btf,
    ) -> Result<(), aya::EbpfError> {
        self.program(name)?.load(tracepoint, btf)?;
        self.programs.push(String::from(name));
        Ok(())
    }

    /// Attaches the programs; nothing happens when they are attached. All states count from 0 again.
    pub fn attach(&mut self) -> Result<(), BpfError> {
        if !self.links.is_empty() {
            return Ok(());
        }
        let cpus = self.copies()?.len();
        PerCpuValues::try_from(vec![bpf_maps::Cpu::default(); cpus])
            .map_err(|error| refused(&error))
            .and_then(|zeros| self.cpus.set(0, zeros, 0).map_err(|error| refused(&error)))?;
        for name in self.programs.clone() {
            let link = self
                .program(&name)
                .and_then(|program| Ok(program.attach()?));
            let link = link.map_err(|error| refused(&error))?;
            self.links.push((name, link));
        }
        visit_every_cpu();
        Ok(())
    }

    /// Takes the programs out of the kernel's way, in the opposite order.
    pub fn detach(&mut self) -> Result<(), BpfError> {
        while let Some((name, link)) = self.links.pop() {
            self.program(&name)
                .and_then(|program| Ok(program.detach(link)?))
                .map_err(|error| refused(&error))?;
        }
        Ok(())
    }

    /// Every CPU's account now.
    pub fn read(&self) -> Result<ExactSample, BpfError> {
        let mut sample = ExactSample::default();
        for _ in 0..READS_MAX {
            let copies = self.copies()?;
            let at_ns = monotonic_ns();
            for (core, cpu) in copies.iter().enumerate() {
                sample.take(core, CpuCopy { cpu: *cpu, at_ns });
            }
            if sample.is_consistent() {
                break;
            }
        }
        Ok(sample)
    }

    /// Hard interrupts by source since the programs were loaded.
    pub fn interrupts(&self) -> Result<Interrupts, BpfError> {
        let mut interrupts = Interrupts::default();
        for index in 0..self.sources.len() {
            let by_cpu = self
                .sources
                .get(&index, 0)
                .map_err(|error| refused(&error))?;
            interrupts.add(index, &by_cpu);
        }
        Ok(interrupts)
    }

    /// What each thread used since the programs were loaded, up to its latest switch and, when it is
    /// running, up to now. A thread that switches meanwhile may have one slice too much. Empty unless the options
    /// ask for it.
    pub fn threads(&self) -> Result<Vec<ThreadTimes>, BpfError> {
        if !self.has_threads {
            return Ok(Vec::new());
        }
        let running = self.read()?;
        let mut threads = Vec::new();
        for entry in self.threads.iter() {
            let (tid, thread) = entry.map_err(|error| refused(&error))?;
            threads.push(ThreadTimes::new(tid, &thread));
        }
        running.add_running(&mut threads);
        Ok(threads)
    }

    /// Time by phase of the period; `None` unless the options asked for it.
    pub fn fold(&self) -> Result<Option<Vec<FoldBin>>, BpfError> {
        let Some(options) = self.fold_options else {
            return Ok(None);
        };
        let by_cpu = self.fold.get(&0, 0).map_err(|error| refused(&error))?;
        Ok(Some(fold::bins(options, &by_cpu)))
    }

    /// What the runs of all programs that were timed so far took.
    pub fn timed_runs(&mut self) -> Result<TimedRuns, BpfError> {
        let programs = self.timed_runs_by_program()?;
        let runs = programs.iter().map(|(_, runs)| *runs);
        Ok(runs.fold(TimedRuns::default(), TimedRuns::plus))
    }

    /// The same for each program, by its name.
    pub fn timed_runs_by_program(&mut self) -> Result<Vec<(String, TimedRuns)>, BpfError> {
        let mut all = Vec::new();
        for name in self.programs.clone() {
            let info = self.program(&name).and_then(|program| Ok(program.info()?));
            let runs = TimedRuns::of(&info.map_err(|error| refused(&error))?);
            all.push((name, runs));
        }
        Ok(all)
    }

    /// Times a program that does nothing while `work` goes on: its mean run is what the kernel's timing
    /// itself puts into each run. Returns that beside what `work` does.
    ///
    /// # Errors
    /// Those of `work`, too.
    pub fn beside_idle_program<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, BpfError>,
    ) -> Result<(T, Option<RunTime>), BpfError> {
        let (name, _) = IDLE_PROGRAM;
        let idle = self.program(name).map_err(|error| refused(&error))?;
        let runs = |program: &BtfTracePoint| program.info().map(|info| TimedRuns::of(&info));
        let before = runs(idle).map_err(|error| refused(&error))?;
        let link = idle.attach().map_err(|error| refused(&error))?;
        let done = work(self);
        let idle = self.program(name).map_err(|error| refused(&error))?;
        let after = runs(idle).map_err(|error| refused(&error))?;
        idle.detach(link).map_err(|error| refused(&error))?;
        Ok((done?, after.since(before)))
    }

    /// Vectors that this kernel has no events of: their time stays with what they came upon.
    pub fn unseen_vectors(&self) -> &[&'static str] {
        &self.unseen_vectors
    }

    fn copies(&self) -> Result<PerCpuValues<bpf_maps::Cpu>, BpfError> {
        self.cpus.get(&0, 0).map_err(|error| refused(&error))
    }

    fn program(&mut self, name: &str) -> Result<&mut BtfTracePoint, aya::EbpfError> {
        let program = self.ebpf.program_mut(name).ok_or(aya::EbpfError::NoBTF)?;
        Ok(program.try_into()?)
    }
}

/// A CPU's account begins with its first event; an idle CPU may have none for seconds. A thread that
/// comes and goes is one. CPUs that this process may not use begin by themselves.
fn visit_every_cpu() {
    let visitor = thread::spawn(|| {
        for cpu in affinity::allowed_cpus().unwrap_or_default() {
            // One that went offline meanwhile has no account.
            let _ = affinity::pin(cpu);
        }
    });
    // It cannot panic, and has nothing to say.
    let _ = visitor.join();
}

fn refused(error: &dyn std::error::Error) -> BpfError {
    BpfError::refused(WHAT, error)
}
