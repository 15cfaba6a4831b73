//! The arithmetic of a CPU's account: what happened between two samples, and that it adds up.

use nicpoll_model::CpuStates;
use serde::{Deserialize, Serialize};

use super::tasks::ThreadTimes;
use nicpoll_sys::bpf_maps::{Cpu, state};

/// Names of the soft interrupt vectors, as in `/proc/softirqs`.
pub const SOFTIRQ_NAMES: [&str; state::SOFTIRQ_VECTORS] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// One core's record in the kernel, and when it was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuCopy {
    pub cpu: Cpu,
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

    /// The state that the core was in after its latest event.
    fn state(&self) -> usize {
        match self.cpu {
            cpu if cpu.irq_depth > 0 => state::IRQ,
            cpu if cpu.softirq > 0 => state::SOFTIRQ - 1 + cpu.softirq as usize,
            cpu => cpu.task as usize,
        }
    }

    /// Time that no event has accounted for yet.
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

/// Every CPU's account at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactSample {
    /// By number of the core; `None` before its first event.
    cpus: Vec<Option<CpuCopy>>,
}

/// What one core did between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// Number of the core.
    pub core: u32,
    /// Time between the samples, by `CLOCK_MONOTONIC`.
    pub wall_ns: u64,
    /// User programs at normal priority. What interrupts them without being an interrupt, such as a
    /// page fault, is in it.
    pub user_ns: u64,
    /// User programs at lowered priority.
    pub nice_ns: u64,
    /// System calls, and threads of the kernel.
    pub system_ns: u64,
    /// Handlers of hard interrupts.
    pub irq_ns: u64,
    /// Soft interrupts by vector, in the order of [`SOFTIRQ_NAMES`].
    pub softirq_ns: [u64; state::SOFTIRQ_VECTORS],
    /// The idle task.
    pub idle_ns: u64,
    /// What is missing to the time between the samples, or negative, too much.
    pub residual_ns: i64,
    /// Switches from one thread to another.
    pub context_switches: u64,
}

/// Time of one thread or of several, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTimes {
    /// In user mode at normal priority.
    pub user_ns: u64,
    /// In user mode at lowered priority.
    pub nice_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
}

/// A sum of the kernel's, which counts modulo 2^64. An event within another moves some time from one state to
/// the next, and a record that was copied in the middle of a switch has a younger start than its times: a
/// thread that hardly ran can come out below nothing.
fn not_below_zero(ns: u64) -> u64 {
    ns.cast_signed().max(0).cast_unsigned()
}

impl TaskTimes {
    pub(super) fn of(ns: &[u64; state::TASKS]) -> Self {
        TaskTimes {
            user_ns: not_below_zero(ns[state::USER]),
            nice_ns: not_below_zero(ns[state::NICE]),
            system_ns: not_below_zero(ns[state::SYSTEM]),
        }
    }

    /// All of it.
    pub fn total_ns(&self) -> u64 {
        self.user_ns + self.nice_ns + self.system_ns
    }

    /// Both together.
    pub fn plus(self, other: TaskTimes) -> TaskTimes {
        TaskTimes {
            user_ns: self.user_ns + other.user_ns,
            nice_ns: self.nice_ns + other.nice_ns,
            system_ns: self.system_ns + other.system_ns,
        }
    }
}

impl ExactSample {
    /// Takes a copy of a core's record unless there is a consistent one.
    pub(super) fn take(&mut self, core: usize, copy: CpuCopy) {
        if self.cpus.len() <= core {
            self.cpus.resize(core + 1, None);
        }
        let kept = &mut self.cpus[core];
        if copy.cpu.start_ns > 0 && !kept.is_some_and(|kept| kept.is_consistent()) {
            *kept = Some(copy);
        }
    }

    pub(super) fn is_consistent(&self) -> bool {
        self.cpus.iter().flatten().all(CpuCopy::is_consistent)
    }

    /// Adds to each thread that is running what it used since it was switched to.
    pub(super) fn add_running(&self, threads: &mut Vec<ThreadTimes>) {
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
                    name: String::new(),
                    times: used,
                    slices: 0,
                }),
            }
        }
    }

    /// What `cores` did since `earlier`. A core without an account in either sample is left out.
    pub fn since(&self, earlier: &ExactSample, cores: &[u32]) -> Vec<CpuTimes> {
        let find = |sample: &ExactSample, core: u32| *sample.cpus.get(core as usize)?;
        cores
            .iter()
            .filter_map(|&core| Some(between(core, &find(earlier, core)?, &find(self, core)?)))
            .collect()
    }

    /// Numbers of the cores that have an account.
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
    // Extrapolated time of a running state can be taken back by the event that follows it.
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
    /// Time in soft interrupts of all vectors.
    pub fn softirq_total_ns(&self) -> u64 {
        self.softirq_ns.iter().sum()
    }

    /// Time in which the core worked: all but idle.
    pub fn busy_ns(&self) -> u64 {
        self.user_ns + self.nice_ns + self.system_ns + self.irq_ns + self.softirq_total_ns()
    }

    /// Shares of the time between the samples. `steal` is `/proc/stat`'s: no event shows it, so it
    /// lies within the other states.
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
            user: share(self.user_ns),
            nice: share(self.nice_ns),
            system: share(self.system_ns),
            irq: share(self.irq_ns),
            softirq: share(self.softirq_total_ns()),
            idle: share(self.idle_ns),
            steal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(at_ns: u64, last_ns: u64, ns: &[(usize, u64)]) -> CpuCopy {
        let mut cpu = Cpu {
            start_ns: 1_000,
            last_ns,
            ..Cpu::default()
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
        // 500 of the user time were in the first sample already, though no event had told of it.
        assert_eq!((times.user_ns, times.system_ns), (1_000, 500));
        assert_eq!((times.irq_ns, times.idle_ns), (300, 100));
        // The soft interrupt that goes on has the time since the latest event, not the task below.
        assert_eq!(times.softirq_ns[3], 900);
        assert_eq!(times.busy_ns(), 2_700);
        assert_eq!(times.residual_ns, 0);
        assert_eq!(times.context_switches, 7);
        let shares = times.shares(0.25);
        assert_eq!(shares.softirq, 900.0 / 2_800.0);
        assert_eq!(shares.steal, 0.25);
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
        // A consistent copy stays, so that the sample is of one moment as far as it can be.
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
}
