//! CPU time, exact to the event: BPF programs on the kernel's switch, interrupt and system call events.
//!
//! On most kernels `/proc/stat` samples a CPU once per clock tick. Here each change of state adds the time since the
//! last one to the state that ends; an interrupt's time is not counted for the interrupted task. Data reach user space
//! only when read. The states of a CPU add up to wall time. A copy that does not was taken during an event and is read
//! again; [`CpuTimes::residual_ns`] shows what remains.

use std::{fs, thread};

use aya::maps::{HashMap, MapData, PerCpuArray, PerCpuValues};
use aya::{Btf, EbpfLoader};
use nicpoll_model::{CoreStateTimes, CpuStates, FoldBin};
use nicpoll_sys::bpf_maps::{self, CoreTimes, FOLD_BINS, SourceInterrupts, Thread, state};
use nicpoll_sys::schedule;
use serde::{Deserialize, Serialize};

use crate::bpf::{self, BpfError, OrRefused, Programs, RunTime};
use crate::clock::monotonic_ns;

/// What the programs count, as named in errors.
const CPU_TIME: &str = "CPU time";
/// Programs and their tracepoints, in order of attaching: an exit without its entry is ignored, but an entry without
/// its exit would be counted.
const PROGRAMS: [(&str, &str); 5] = [
    ("on_switch", "sched_switch"),
    ("on_irq_exit", "irq_handler_exit"),
    ("on_irq_entry", "irq_handler_entry"),
    ("on_softirq_exit", "softirq_exit"),
    ("on_softirq_entry", "softirq_entry"),
];
/// Programs that separate a task's system calls from its user time. Attached first: on old kernels, where a thread keeps
/// what it was interrupted in is seen at a system call.
const SYSCALL_PROGRAMS: [(&str, &str); 2] =
    [("on_sys_exit", "sys_exit"), ("on_sys_enter", "sys_enter")];
/// Keeps thread names up to date; loaded with the account of threads.
const RENAME_PROGRAM: (&str, &str) = ("on_rename", "task_rename");
/// Does nothing, at an event that every machine has.
const IDLE_PROGRAM: (&str, &str) = ("on_switch_do_nothing", "sched_switch");
/// Interrupts of the CPU's own vectors, in source order. Not every kernel has events for all of them; without events
/// their time counts for the interrupted state.
const VECTORS: [&str; 5] = [
    "local_timer",
    "reschedule",
    "call_function",
    "call_function_single",
    "irq_work",
];
/// Slots for interrupts set up after the programs were loaded.
const SPARE_SOURCES: u32 = 64;
/// Longest time that an interrupt's entry and exit take from the interrupted task, without the task having run.
const BACK_TO_BACK_NS: u64 = 2_000;
/// How often an inconsistent copy is read again.
const READS_MAX: u32 = 64;

/// Options of the exact account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactCpuOptions {
    /// Folds time by the phase of a period, if set.
    pub fold: Option<FoldOptions>,
    /// Whether to keep an account of each thread, a third of the cost of a switch.
    pub has_threads: bool,
    /// Whether to ignore system calls: then user and system time of tasks are not separated, and a system call costs
    /// nothing.
    pub passes_over_syscalls: bool,
    /// Back-to-back handler entries from which on they are a storm, as FreeBSD's `hw.intr_storm_threshold`; 0:
    /// detection is off.
    pub storm_threshold: u64,
}

/// The loaded programs.
pub struct ExactCpu {
    // Declared first: the programs are detached before their maps are closed.
    /// The BPF programs.
    pub programs: Programs,
    cpus: PerCpuArray<MapData, CoreTimes>,
    sources: PerCpuArray<MapData, SourceInterrupts>,
    threads: HashMap<MapData, u32, Thread>,
    fold: PerCpuArray<MapData, bpf_maps::Fold>,
    options: ExactCpuOptions,
    unseen_vectors: Vec<&'static str>,
}

impl ExactCpu {
    /// Loads the programs. They count nothing until [`ExactCpu::attach`].
    ///
    /// # Errors
    /// When the kernel has no type description, or refuses: CAP_BPF and CAP_PERFMON are needed.
    /// [`CpuSample`](crate::proc::CpuSample) is the alternative.
    pub fn load(options: &ExactCpuOptions) -> Result<Self, BpfError> {
        let btf = bpf::tracepoints(CPU_TIME)?;
        let object = aya::include_bytes_aligned!("../bpf/cpu_time.bpf.o");
        Self::of_object(object, &btf, options).or_else(|_| Self::for_old_kernels(&btf, options))
    }

    /// Loads what does without instructions and helpers that kernels before 5.15 lack.
    fn for_old_kernels(btf: &Btf, options: &ExactCpuOptions) -> Result<Self, BpfError> {
        let object = aya::include_bytes_aligned!("../bpf/cpu_time_old.bpf.o");
        Self::of_object(object, btf, options)
    }

    fn of_object(object: &[u8], btf: &Btf, options: &ExactCpuOptions) -> Result<Self, BpfError> {
        let sources = VECTORS.len() as u32 + irq_numbers_end() + SPARE_SOURCES;
        let (period_ns, tgid) = options
            .fold
            .map_or((0, 0), |fold| (fold.period_ns, fold.tgid));
        let has_threads = u32::from(options.has_threads);
        let mut loader = EbpfLoader::new();
        loader
            .map_max_entries("SOURCES", sources)
            .override_global("FOLD_PERIOD_NS", &period_ns, true)
            .override_global("FOLD_TGID", &tgid, true)
            .override_global("COUNT_THREADS", &has_threads, true)
            .override_global("STORM_THRESHOLD", &options.storm_threshold, true)
            .override_global("BACK_TO_BACK_NS", &BACK_TO_BACK_NS, true);
        let mut programs = Programs::of(CPU_TIME, &mut loader, object)?;
        programs.load_apart(btf, IDLE_PROGRAM.0, IDLE_PROGRAM.1)?;
        if !options.passes_over_syscalls {
            programs.require(btf, &SYSCALL_PROGRAMS)?;
        }
        programs.require(btf, &PROGRAMS)?;
        if options.has_threads {
            // A locked down kernel keeps the name from it, and threads have their first one.
            match programs.require(btf, &[RENAME_PROGRAM]) {
                Err(BpfError::LockedDown { .. }) => {}
                loaded => loaded?,
            }
        }
        let mut unseen_vectors = Vec::new();
        for vector in VECTORS {
            for edge in ["exit", "entry"] {
                let tracepoint = format!("{vector}_{edge}");
                if !programs.load(btf, &format!("on_{tracepoint}"), &tracepoint)? {
                    unseen_vectors.push(vector);
                    break;
                }
            }
        }
        Ok(ExactCpu {
            cpus: programs.map("CPUS")?,
            sources: programs.map("SOURCES")?,
            threads: programs.map("THREADS")?,
            fold: programs.map("FOLD")?,
            options: *options,
            programs,
            unseen_vectors,
        })
    }

    /// Attaches the programs, unless they are attached already. All states start from 0.
    pub fn attach(&mut self) -> Result<(), BpfError> {
        if self.programs.is_attached() {
            return Ok(());
        }
        let zeros = vec![CoreTimes::default(); self.copies()?.len()];
        let zeros = PerCpuValues::try_from(zeros).or_refused(CPU_TIME)?;
        self.cpus.set(0, zeros, 0).or_refused(CPU_TIME)?;
        self.programs.attach()?;
        visit_every_cpu();
        Ok(())
    }

    /// Detaches the programs in reverse order.
    pub fn detach(&mut self) -> Result<(), BpfError> {
        self.programs.detach()
    }

    /// Reads every CPU's account.
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

    /// Reads hard interrupts by source since the programs were loaded.
    pub fn interrupts(&self) -> Result<Interrupts, BpfError> {
        let mut interrupts = Interrupts::default();
        for index in 0..self.sources.len() {
            let by_cpu = self.sources.get(&index, 0).or_refused(CPU_TIME)?;
            interrupts.add(index, &by_cpu);
        }
        Ok(interrupts)
    }

    /// Reads the CPU time of each thread since the programs were loaded, including the present slice of running
    /// threads. A thread that switches meanwhile may have one slice too much. Empty unless the options request it.
    pub fn threads(&self) -> Result<Vec<ThreadTimes>, BpfError> {
        if !self.options.has_threads {
            return Ok(Vec::new());
        }
        let running = self.read()?;
        let mut threads = Vec::new();
        for entry in self.threads.iter() {
            let (tid, thread) = entry.or_refused(CPU_TIME)?;
            threads.push(ThreadTimes::new(tid, &thread));
        }
        running.add_running(&mut threads);
        Ok(threads)
    }

    /// Reads time by phase of the period; `None` unless the options request it.
    pub fn fold(&self) -> Result<Option<Vec<FoldBin>>, BpfError> {
        let Some(options) = self.options.fold else {
            return Ok(None);
        };
        let by_cpu = self.fold.get(&0, 0).or_refused(CPU_TIME)?;
        Ok(Some(bins(options, &by_cpu)))
    }

    /// Times a program that does nothing while `work` runs: its mean run is what the kernel's timing adds to each run.
    /// Returns that with the result of `work`.
    ///
    /// # Errors
    /// Includes those of `work`.
    pub fn with_idle_program<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, BpfError>,
    ) -> Result<(T, Option<RunTime>), BpfError> {
        let (name, _) = IDLE_PROGRAM;
        let before = self.programs.timed_runs_of(name)?;
        let link = self.programs.program_mut(name)?.attach();
        let link = link.or_refused(CPU_TIME)?;
        let done = work(self);
        let after = self.programs.timed_runs_of(name)?;
        let detached = self.programs.program_mut(name)?.detach(link);
        detached.or_refused(CPU_TIME)?;
        Ok((done?, after.since(before)))
    }

    /// Returns the vectors without events in this kernel: their time counts for the interrupted state.
    pub fn unseen_vectors(&self) -> &[&'static str] {
        &self.unseen_vectors
    }

    fn copies(&self) -> Result<PerCpuValues<CoreTimes>, BpfError> {
        self.cpus.get(&0, 0).or_refused(CPU_TIME)
    }
}

/// Runs a thread on each permitted CPU in turn. A CPU's account begins with its first event, and an idle CPU may have
/// none for seconds. Other CPUs begin by themselves.
fn visit_every_cpu() {
    let visitor = thread::spawn(|| {
        for cpu in schedule::allowed_cpus().unwrap_or_default() {
            // A CPU that went offline meanwhile has no account.
            let _ = schedule::pin(cpu);
        }
    });
    // It cannot panic and returns nothing.
    let _ = visitor.join();
}

/// Names of the soft interrupt vectors, as in `/proc/softirqs`.
pub const SOFTIRQ_NAMES: [&str; state::SOFTIRQ_VECTORS] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// One core's record in the kernel, with the time of the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuCopy {
    pub cpu: CoreTimes,
    pub at_ns: u64,
}

impl CpuCopy {
    fn is_consistent(&self) -> bool {
        let sum = self
            .cpu
            .ns
            .iter()
            .fold(0u64, |sum, ns| sum.wrapping_add(*ns));
        sum == self.cpu.last_ns.wrapping_sub(self.cpu.start_ns)
    }

    /// The core's state after its latest event.
    fn state(&self) -> usize {
        match self.cpu {
            cpu if cpu.irq_depth > 0 => state::IRQ,
            cpu if cpu.softirq > 0 => state::SOFTIRQ - 1 + cpu.softirq as usize,
            cpu => cpu.task as usize,
        }
    }

    /// Time since the latest event, in no state yet.
    fn open_ns(&self) -> u64 {
        self.at_ns.saturating_sub(self.cpu.last_ns)
    }

    /// Time by state until the copy was made.
    fn ns(&self) -> [u64; state::ALL] {
        let mut ns = self.cpu.ns;
        if let Some(ns) = ns.get_mut(self.state()) {
            *ns = ns.wrapping_add(self.open_ns());
        }
        ns
    }
}

/// The accounts of all CPUs at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactSample {
    /// By core number; `None` before its first event.
    cpus: Vec<Option<CpuCopy>>,
}

/// The times of one core between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// Number of the core.
    pub core: u32,
    /// Time between the samples, by `CLOCK_MONOTONIC`.
    pub wall_ns: u64,
    /// User programs at normal priority, including interruptions that are not interrupts, such as page faults.
    pub user_ns: u64,
    /// User programs at lowered priority.
    pub nice_ns: u64,
    /// System calls, and kernel threads.
    pub system_ns: u64,
    /// Handlers of hard interrupts.
    pub irq_ns: u64,
    /// Soft interrupts by vector, in the order of [`SOFTIRQ_NAMES`].
    pub softirq_ns: [u64; state::SOFTIRQ_VECTORS],
    /// The idle task.
    pub idle_ns: u64,
    /// Time between the samples that no state accounts for; negative if they account for too much.
    pub residual_ns: i64,
    /// Switches from one thread to another.
    pub context_switches: u64,
}

/// Times of one or several threads, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTimes {
    /// In user mode at normal priority.
    pub user_ns: u64,
    /// In user mode at lowered priority.
    pub nice_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
}

/// Converts one of the kernel's sums, which count modulo 2^64. A nested event moves some time from one state to the
/// next, and a record copied during a switch has a later start than its times, so a thread that hardly ran can have a
/// negative time.
fn not_below_zero(ns: u64) -> u64 {
    ns.cast_signed().max(0).cast_unsigned()
}

impl TaskTimes {
    pub(crate) fn of(ns: &[u64; state::TASKS]) -> Self {
        TaskTimes {
            user_ns: not_below_zero(ns[state::USER]),
            nice_ns: not_below_zero(ns[state::NICE]),
            system_ns: not_below_zero(ns[state::SYSTEM]),
        }
    }

    /// Returns the sum.
    pub fn total_ns(&self) -> u64 {
        self.user_ns + self.nice_ns + self.system_ns
    }

    /// Adds another thread's times.
    pub fn plus(self, other: TaskTimes) -> TaskTimes {
        TaskTimes {
            user_ns: self.user_ns + other.user_ns,
            nice_ns: self.nice_ns + other.nice_ns,
            system_ns: self.system_ns + other.system_ns,
        }
    }
}

impl ExactSample {
    /// Keeps a copy of a core's record unless it has a consistent one.
    fn take(&mut self, core: usize, copy: CpuCopy) {
        if self.cpus.len() <= core {
            self.cpus.resize(core + 1, None);
        }
        let kept = &mut self.cpus[core];
        if copy.cpu.start_ns > 0 && !kept.is_some_and(|kept| kept.is_consistent()) {
            *kept = Some(copy);
        }
    }

    fn is_consistent(&self) -> bool {
        self.cpus.iter().flatten().all(CpuCopy::is_consistent)
    }

    /// Adds the present slice to each running thread.
    fn add_running(&self, threads: &mut Vec<ThreadTimes>) {
        for copy in self.cpus.iter().flatten() {
            let cpu = &copy.cpu;
            if cpu.pid == 0 {
                continue;
            }
            let now = copy.ns();
            let mut slice = [0; state::TASKS];
            for (index, ns) in slice.iter_mut().enumerate() {
                *ns = now[index].wrapping_sub(cpu.slice_ns[index]);
            }
            let used = TaskTimes::of(&slice);
            match threads.iter_mut().find(|thread| thread.tid == cpu.pid) {
                Some(thread) => thread.times = thread.times.plus(used),
                None => threads.push(ThreadTimes {
                    tid: cpu.pid,
                    pid: cpu.tgid,
                    starter_pid: None,
                    name: String::new(),
                    times: used,
                    slices: 0,
                }),
            }
        }
    }

    /// Returns the times of `cores` since `earlier`. Cores without an account in one of the samples are left out.
    pub fn since(&self, earlier: &ExactSample, cores: &[u32]) -> Vec<CpuTimes> {
        let find = |sample: &ExactSample, core: u32| *sample.cpus.get(core as usize)?;
        cores
            .iter()
            .filter_map(|&core| Some(between(core, &find(earlier, core)?, &find(self, core)?)))
            .collect()
    }

    /// Returns the numbers of cores with an account.
    pub fn cores(&self) -> Vec<u32> {
        let with_account = self.cpus.iter().enumerate();
        with_account
            .filter(|(_, cpu)| cpu.is_some())
            .map(|(core, _)| core as u32)
            .collect()
    }
}

fn between(core: u32, before: &CpuCopy, after: &CpuCopy) -> CpuTimes {
    let (then, now) = (before.ns(), after.ns());
    // The next event can take back extrapolated time of a running state.
    let ns = |state: usize| now[state].saturating_sub(then[state]);
    let mut softirq_ns = [0; state::SOFTIRQ_VECTORS];
    for (vector, softirq_ns) in softirq_ns.iter_mut().enumerate() {
        *softirq_ns = ns(state::SOFTIRQ + vector);
    }
    let mut times = CpuTimes {
        core,
        wall_ns: after.at_ns.saturating_sub(before.at_ns),
        user_ns: ns(state::USER),
        nice_ns: ns(state::NICE),
        system_ns: ns(state::SYSTEM),
        irq_ns: ns(state::IRQ),
        softirq_ns,
        idle_ns: ns(state::IDLE),
        residual_ns: 0,
        context_switches: after.cpu.switches.saturating_sub(before.cpu.switches),
    };
    times.residual_ns = times.wall_ns as i64 - (times.busy_ns() + times.idle_ns) as i64;
    times
}

impl CpuTimes {
    /// Returns the time in soft interrupts of all vectors.
    pub fn softirq_total_ns(&self) -> u64 {
        self.softirq_ns.iter().sum()
    }

    /// Returns the time in which the core was busy: all but idle.
    pub fn busy_ns(&self) -> u64 {
        self.user_ns + self.nice_ns + self.system_ns + self.irq_ns + self.softirq_total_ns()
    }

    /// Returns the time of each state.
    pub fn by_state(&self) -> CoreStateTimes {
        CoreStateTimes {
            core: self.core,
            user_ns: self.user_ns,
            nice_ns: self.nice_ns,
            system_ns: self.system_ns,
            irq_ns: self.irq_ns,
            softirq_ns: self.softirq_total_ns(),
            idle_ns: self.idle_ns,
        }
    }

    /// Returns shares of the time between the samples. `steal` is from `/proc/stat`: no event shows it, so it lies
    /// within the other states.
    pub fn shares(&self, steal: f64) -> CpuStates {
        let share = |ns: u64| {
            if self.wall_ns == 0 {
                0.0
            } else {
                ns as f64 / self.wall_ns as f64
            }
        };
        CpuStates {
            core: self.core,
            user_ratio: share(self.user_ns),
            nice_ratio: share(self.nice_ns),
            system_ratio: share(self.system_ns),
            irq_ratio: share(self.irq_ns),
            softirq_ratio: share(self.softirq_total_ns()),
            idle_ratio: share(self.idle_ns),
            steal_ratio: steal,
        }
    }
}

/// Options of folding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldOptions {
    /// The period, at least 1 us. Phase 0 is at its multiples of `CLOCK_MONOTONIC`.
    pub period_ns: u64,
    /// The process whose time is folded. Interrupts are always folded, whichever thread they interrupt.
    pub tgid: u32,
}

/// Times of all CPUs summed, by bin of the period.
fn bins(options: FoldOptions, by_cpu: &[bpf_maps::Fold]) -> Vec<FoldBin> {
    let bin = |bin: usize| {
        let row = |row: usize| by_cpu.iter().map(|fold| fold.ns[row][bin]).sum();
        FoldBin {
            phase_ns: bin as u64 * (options.period_ns / FOLD_BINS as u64),
            user_ns: row(0),
            system_ns: row(1),
            irq_ns: row(2),
            softirq_ns: row(3),
        }
    };
    (0..FOLD_BINS).map(bin).collect()
}

/// The kernel's directory of interrupts and their handlers.
const IRQ_DIRECTORY: &str = "/sys/kernel/irq";

/// Source of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InterruptSource {
    /// One of the CPU's own vectors, by the name of its tracepoint, such as `local_timer`.
    Vector(&'static str),
    /// An interrupt line, by its number in `/proc/interrupts`.
    Irq(u32),
}

/// Counts of one interrupt source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptCounts {
    /// The source.
    pub source: InterruptSource,
    /// Entries of its handlers.
    pub entries: u64,
    /// Time in its handlers, summed over all CPUs.
    pub ns: u64,
    /// Entries at or beyond the threshold of back-to-back entries; 0 also without a threshold.
    pub storm_entries: u64,
}

/// Counts of every source with interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts(pub Vec<InterruptCounts>);

impl InterruptSource {
    fn of(index: u32) -> Self {
        match VECTORS.get(index as usize) {
            Some(name) => InterruptSource::Vector(name),
            None => InterruptSource::Irq(index - VECTORS.len() as u32),
        }
    }

    /// Returns the vector's name, or the present names of the line's handlers; empty without handlers.
    pub fn name(&self) -> String {
        match self {
            InterruptSource::Vector(name) => String::from(*name),
            InterruptSource::Irq(number) => {
                let path = format!("{IRQ_DIRECTORY}/{number}/actions");
                String::from(fs::read_to_string(path).unwrap_or_default().trim_end())
            }
        }
    }
}

impl Interrupts {
    /// Adds the per-CPU counts of the source at `index`.
    pub(crate) fn add(&mut self, index: u32, by_cpu: &[SourceInterrupts]) {
        let entries = by_cpu.iter().map(|source| source.entries).sum();
        if entries == 0 {
            return;
        }
        self.0.push(InterruptCounts {
            source: InterruptSource::of(index),
            entries,
            ns: by_cpu.iter().map(|source| source.ns).sum(),
            storm_entries: by_cpu.iter().map(|source| source.storm_entries).sum(),
        });
    }
}

/// One more than the greatest interrupt line number at present.
fn irq_numbers_end() -> u32 {
    let directory = fs::read_dir(IRQ_DIRECTORY).into_iter().flatten().flatten();
    let numbers = directory.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.max().map_or(0, |greatest| greatest + 1)
}

/// CPU time of one thread, without interrupts during it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Thread id in the initial PID namespace.
    pub tid: u32,
    /// Process id.
    pub pid: u32,
    /// Id of the process that started its container with [`nicpoll_sys::program::spawn_contained`]: the grandparent of
    /// the first process in its PID namespace. `None` before it first leaves a CPU.
    pub starter_pid: Option<u32>,
    /// The thread's latest name; empty before it first leaves a CPU.
    pub name: String,
    /// Its time by state.
    pub times: TaskTimes,
    /// How often it left a CPU.
    pub slices: u64,
}

impl ThreadTimes {
    pub(crate) fn new(tid: u32, thread: &Thread) -> Self {
        let name = thread.comm.split(|byte| *byte == 0).next();
        ThreadTimes {
            tid,
            pid: thread.tgid,
            starter_pid: Some(thread.starter_tgid),
            name: String::from_utf8_lossy(name.unwrap_or_default()).into_owned(),
            times: TaskTimes::of(&thread.ns),
            slices: thread.slices,
        }
    }
}

#[cfg(test)]
mod tests {
    use nicpoll_testkit::needs;

    use super::*;

    fn copy(at_ns: u64, last_ns: u64, ns: &[(usize, u64)]) -> CpuCopy {
        let mut cpu = CoreTimes {
            start_ns: 1_000,
            last_ns,
            ..CoreTimes::default()
        };
        for &(state, value) in ns {
            cpu.ns[state] = value;
        }
        CpuCopy { cpu, at_ns }
    }

    fn sample(copies: &[CpuCopy]) -> ExactSample {
        let mut sample = ExactSample::default();
        for (core, copy) in copies.iter().enumerate() {
            sample.take(core, *copy);
        }
        sample
    }

    #[test]
    fn states_add_up_to_the_time_between_the_samples() {
        let mut before = copy(2_500, 2_000, &[(state::IDLE, 600), (state::USER, 400)]);
        before.cpu.task = state::USER as u32;
        let mut after = copy(
            5_300,
            5_000,
            &[
                (state::IDLE, 700),
                (state::USER, 1_900),
                (state::SYSTEM, 500),
                (state::IRQ, 300),
                (state::SOFTIRQ + 3, 600),
            ],
        );
        after.cpu.task = state::USER as u32;
        after.cpu.softirq = 4;
        after.cpu.switches = 7;
        let times = sample(&[after]).since(&sample(&[before]), &[0]);
        let [times] = times[..] else {
            panic!("{times:?}")
        };
        assert_eq!(times.wall_ns, 2_800);
        // 500 of the user time were in the first sample already, although no event had counted them.
        assert_eq!((times.user_ns, times.system_ns), (1_000, 500));
        assert_eq!((times.irq_ns, times.idle_ns), (300, 100));
        // The unfinished soft interrupt has the time since the latest event, not the task below it.
        assert_eq!(times.softirq_ns[3], 900);
        assert_eq!(times.busy_ns(), 2_700);
        assert_eq!(times.residual_ns, 0);
        assert_eq!(times.context_switches, 7);
        let shares = times.shares(0.25);
        assert_eq!(shares.softirq_ratio, 900.0 / 2_800.0);
        assert_eq!(shares.steal_ratio, 0.25);
    }

    /// Both see the same events.
    #[test]
    fn the_account_for_old_kernels_is_that_of_others() {
        needs!(Root);
        let (options, btf) = (ExactCpuOptions::default(), bpf::tracepoints(CPU_TIME));
        let old = ExactCpu::for_old_kernels(&btf.unwrap(), &options).unwrap();
        let mut both = [ExactCpu::load(&options).unwrap(), old];
        both.iter_mut().for_each(|exact| exact.attach().unwrap());
        let before = both.each_ref().map(|exact| exact.read().unwrap());
        let until = monotonic_ns() + 200_000_000;
        while monotonic_ns() < until {
            crate::clock::spin_until(monotonic_ns() + 300_000);
            thread::sleep(std::time::Duration::from_micros(200));
            fs::read(bpf::KERNEL_TYPES).unwrap();
        }
        let after = both.each_ref().map(|exact| exact.read().unwrap());
        let cores = after[0].cores();
        let [new, old] = [0, 1].map(|one| after[one].since(&before[one], &cores));
        let of_all = |state: fn(&CpuTimes) -> u64| old.iter().map(state).sum::<u64>();
        assert!(of_all(|core| core.user_ns + core.nice_ns) > 0 && of_all(|core| core.irq_ns) > 0);
        for (new, old) in new.iter().zip(&old) {
            assert_eq!(old.residual_ns, 0, "{old:?}");
            // They are not read at the same moment.
            let read_ns = |both: &[ExactSample; 2]| {
                let at = both.each_ref().map(|sample| sample.cpus[old.core as usize]);
                at[1].unwrap().at_ns - at[0].unwrap().at_ns
            };
            let apart_ns = read_ns(&before) + read_ns(&after) + new.wall_ns / 100;
            let states: [fn(&CpuTimes) -> u64; 5] = [
                |times| times.user_ns + times.nice_ns,
                |times| times.system_ns,
                |times| times.irq_ns,
                CpuTimes::softirq_total_ns,
                |times| times.idle_ns,
            ];
            for state in states {
                assert!(
                    state(new).abs_diff(state(old)) < apart_ns,
                    "{new:?} {old:?}"
                );
            }
        }
    }

    #[test]
    fn a_hard_interrupt_is_on_top_of_a_soft_one() {
        let mut copy = copy(1_400, 1_000, &[]);
        copy.cpu.softirq = 1;
        copy.cpu.irq_depth = 1;
        assert_eq!(copy.ns()[state::IRQ], 400);
    }

    #[test]
    fn a_copy_that_was_read_half_way_is_replaced_and_otherwise_shows_in_the_residual() {
        let torn = copy(2_000, 2_000, &[(state::IDLE, 900)]);
        let whole = copy(2_000, 2_000, &[(state::IDLE, 1_000)]);
        assert!(!torn.is_consistent() && whole.is_consistent());
        let mut kept = sample(&[torn]);
        assert!(!kept.is_consistent());
        kept.take(0, whole);
        assert!(kept.is_consistent());
        // A consistent copy stays: the sample is of one moment as far as possible.
        kept.take(0, copy(3_000, 3_000, &[(state::IDLE, 2_000)]));
        assert_eq!(kept.cpus[0], Some(whole));

        let after = copy(3_000, 3_000, &[(state::IDLE, 2_000)]);
        let times = sample(&[after]).since(&sample(&[torn]), &[0]);
        assert_eq!(times[0].residual_ns, -100);
    }

    #[test]
    fn a_core_without_events_has_no_account() {
        let mut silent = copy(2_000, 0, &[]);
        silent.cpu.start_ns = 0;
        let busy = copy(2_000, 1_000, &[]);
        let sample = sample(&[silent, busy]);
        assert_eq!(sample.cores(), [1]);
        assert!(sample.since(&sample, &[0, 9]).is_empty());
    }

    #[test]
    fn a_running_thread_is_given_its_slice_so_far() {
        let mut copy = copy(1_900, 1_500, &[(state::USER, 300), (state::SYSTEM, 200)]);
        copy.cpu.task = state::SYSTEM as u32;
        copy.cpu.pid = 42;
        copy.cpu.tgid = 40;
        copy.cpu.slice_ns[state::USER] = 100;
        let mut threads = Vec::new();
        sample(&[copy]).add_running(&mut threads);
        assert_eq!((threads[0].tid, threads[0].pid), (42, 40));
        assert_eq!(threads[0].times.user_ns, 200);
        assert_eq!(threads[0].times.system_ns, 600);
        sample(&[copy]).add_running(&mut threads);
        assert_eq!(threads.len(), 1);
        assert_eq!(threads[0].times.total_ns(), 1_600);
    }

    #[test]
    fn a_record_that_was_copied_in_mid_switch_gives_its_thread_no_time_rather_than_all() {
        let mut torn = copy(1_500, 1_500, &[(state::USER, 300), (state::SYSTEM, 200)]);
        torn.cpu.pid = 42;
        torn.cpu.slice_ns[state::USER] = 310;
        torn.cpu.slice_ns[state::SYSTEM] = 150;
        let mut threads = Vec::new();
        sample(&[torn]).add_running(&mut threads);
        assert_eq!(threads[0].times.user_ns, 0);
        assert_eq!(threads[0].times.system_ns, 50);
    }

    #[test]
    fn sources_are_vectors_first_then_lines() {
        assert_eq!(InterruptSource::of(0).name(), "local_timer");
        assert_eq!(InterruptSource::of(5), InterruptSource::Irq(0));
        assert_eq!(InterruptSource::of(16), InterruptSource::Irq(11));
    }

    #[test]
    fn cpus_are_added_and_a_source_without_interrupts_is_left_out() {
        let of = |entries| SourceInterrupts {
            entries,
            ns: 10 * entries,
            storm_entries: 1,
            ..SourceInterrupts::default()
        };
        let mut interrupts = Interrupts::default();
        interrupts.add(7, &[of(3), of(4)]);
        interrupts.add(8, &[SourceInterrupts::default()]);
        assert_eq!(
            interrupts.0,
            [InterruptCounts {
                source: InterruptSource::Irq(2),
                entries: 7,
                ns: 70,
                storm_entries: 2,
            }]
        );
    }

    #[test]
    fn a_name_ends_with_its_first_zero() {
        let mut thread = Thread {
            ns: [9, 1, 2, 3],
            ..Thread::default()
        };
        thread.comm[..6].copy_from_slice(b"sh\0old");
        let times = ThreadTimes::new(7, &thread);
        assert_eq!(times.name, "sh");
        assert_eq!(times.times.total_ns(), 6);
    }
}
