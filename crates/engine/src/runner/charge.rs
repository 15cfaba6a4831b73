//! What a cycle is charged for that happened before it began.
//!
//! The core sees how long a cycle took by the clock. A thread also wakes up, sleeps and answers requests, and the kernel's
//! receive work (interrupts, soft interrupts, NAPI threads) may run on the same CPU. All of that belongs to the network's
//! part of a tick, so the next cycle is told that it began that much earlier.
//!
//! No time is charged twice. What exceeds a cycle's part of the tick is charged to the cycles after it. Polling while the
//! CPU is idle is not charged: nobody else wanted it.

use crate::runner::clock::own_cpu_ns;

/// What the kernel does for the network on the engine's CPU.
pub trait CpuAccount: Send {
    /// Time that interrupts, soft interrupts and NAPI threads have taken on that CPU so far, in ns. It never falls.
    fn kernel_ns(&mut self) -> u64;

    /// Whether threads of the kernel that receive are bound to that CPU, and [`let_run`](Self::let_run) reaches them.
    fn can_hold_back(&self) -> bool {
        false
    }

    /// Lets those threads run before ordinary programs though after the engine, or else only when nobody wants the CPU:
    /// what they take of it then is not in [`kernel_ns`](Self::kernel_ns).
    fn let_run(&mut self, _on: bool) {}

    /// Time that others have had on that CPU so far, in ns: neither the calling thread, which is the engine's, nor
    /// threads of the kernel that receive, nor interrupts. Only differences mean anything; `None` where it cannot be seen.
    fn others_ns(&mut self) -> Option<i64> {
        None
    }
}

/// A reading costs as much as a wake-up, or twice that. While cycles are short the account is read so often a second, or
/// at every cycle of a slower clock.
const READINGS_PER_SECOND: u32 = 20;

/// What is left to be charged fills so many cycles at most: what an overload of the past used is forgotten then.
const CYCLES_LEFT_MAX: u64 = 10;

/// Time outside of cycles.
#[derive(Default)]
pub(crate) struct Charges {
    /// While cycles are short, the account is read at every so many.
    seldom: u32,
    pub(crate) account: Option<Box<dyn CpuAccount>>,
    /// CPU time of the thread when the last cycle ended, idle polling left out.
    own_ns: u64,
    /// The account when it was last read: at the end of a long cycle, or at the begin of one.
    kernel_ns: u64,
    /// Whether the last cycle was a long one.
    was_long: bool,
    /// Cycles that have begun since the account was read.
    unread: u32,
    /// What the kernel took between two cycles, as of the last reading.
    mean_ns: u64,
    /// What the account charged in all.
    kernel_charged_ns: u64,
    /// What the engine's thread used between the last two cycles.
    last_own_ns: u64,
    /// What the last cycle was charged in all, and what was left for those after it.
    last_ns: u64,
    left_ns: u64,
}

impl Charges {
    /// Nothing is charged yet; a cycle begins so often a second.
    pub(crate) fn at(hz: u32) -> Self {
        Charges {
            seldom: (hz / READINGS_PER_SECOND).max(1),
            ..Charges::default()
        }
    }

    /// What the account charged so far; `None` without one.
    pub(crate) fn kernel_charged_ns(&self) -> Option<u64> {
        self.account.as_ref().map(|_| self.kernel_charged_ns)
    }

    /// What the last cycle was charged.
    pub(crate) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// A cycle begins that can be charged for `most_ns`: what was used since the last one ended, and what was left to be
    /// charged.
    pub(crate) fn begin(&mut self, most_ns: u64) -> u64 {
        self.last_own_ns = own_cpu_ns().saturating_sub(self.own_ns);
        let used_ns = self.last_own_ns + self.kernel_since_last() + self.left_ns;
        self.last_ns = used_ns.min(most_ns);
        self.left_ns = (used_ns - self.last_ns).min(most_ns.saturating_mul(CYCLES_LEFT_MAX));
        self.last_ns
    }

    fn kernel_since_last(&mut self) -> u64 {
        if self.account.is_none() {
            return 0;
        }
        self.unread += 1;
        if self.was_long || self.unread >= self.seldom {
            let now_ns = self.read_account();
            let taken_ns = now_ns.saturating_sub(self.kernel_ns);
            self.kernel_charged_ns += taken_ns;
            self.mean_ns = taken_ns / u64::from(self.unread);
            (self.kernel_ns, self.unread) = (now_ns, 0);
        }
        self.mean_ns
    }

    /// A cycle has ended, which was long enough for interrupts that came upon it to count: they are in its own time.
    pub(crate) fn end(&mut self, was_long: bool) {
        let can_hold_back = self.account.as_ref().is_some_and(|one| one.can_hold_back());
        // First: to read the account takes a while, which is no cycle's.
        self.own_ns = own_cpu_ns();
        self.was_long = was_long || can_hold_back;
        if self.was_long {
            (self.kernel_ns, self.unread) = (self.read_account(), 0);
        }
    }

    /// So many cycles were slept over, which used nothing.
    pub(crate) fn pass(&mut self, cycles: u32) {
        self.unread = self.unread.saturating_add(cycles);
    }

    /// Until when the kernel's threads may run in a tick that began at `tick_ns` and leaves the network `share_ns`; `None`
    /// when nobody holds them back.
    pub(crate) fn kernel_until_ns(&self, tick_ns: u64, share_ns: u64) -> Option<u64> {
        let account = self.account.as_ref()?;
        let until_ns = (tick_ns + share_ns).saturating_sub(self.last_own_ns);
        account.can_hold_back().then_some(until_ns)
    }

    /// Lets the kernel's threads run, or holds them back.
    pub(crate) fn let_kernel_run(&mut self, on: bool) {
        if let Some(account) = &mut self.account {
            account.let_run(on);
        }
    }

    /// Time that others have had on the CPU so far; `None` where nobody sees that.
    pub(crate) fn others_ns(&mut self) -> Option<i64> {
        self.account.as_mut()?.others_ns()
    }

    /// Does what is not to be charged.
    pub(crate) fn leave_out<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before = own_cpu_ns();
        let done = work();
        self.own_ns += own_cpu_ns().saturating_sub(before);
        done
    }

    fn read_account(&mut self) -> u64 {
        self.account
            .as_mut()
            .map_or(0, |account| account.kernel_ns())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    struct Script(Vec<u64>);

    impl CpuAccount for Script {
        fn kernel_ns(&mut self) -> u64 {
            self.0.remove(0)
        }
    }

    #[test]
    fn the_kernel_is_charged_for_what_lies_between_cycles() {
        let mut charges = Charges::at(320);
        assert_eq!(charges.kernel_charged_ns(), None);
        // The end of a cycle, then the begin and the end of two more.
        let readings = vec![1_000_000, 3_000_000, 9_000_000, 9_500_000, 9_500_000];
        charges.account = Some(Box::new(Script(readings)));
        charges.end(true);
        let first_ns = charges.begin(u64::MAX);
        assert!(first_ns >= 2_000_000 && first_ns == charges.last_ns());
        charges.end(true);
        // What ran during the first cycle is in its own time.
        charges.begin(u64::MAX);
        charges.end(true);
        assert_eq!(charges.kernel_charged_ns(), Some(2_500_000));
    }

    #[test]
    fn between_short_cycles_the_account_is_read_now_and_then() {
        let mut charges = Charges::at(320);
        charges.account = Some(Box::new(Script(vec![1_000_000, 33_000_000, 34_600_000])));
        charges.end(true);
        charges.was_long = false;
        let begin = |charges: &mut Charges| {
            charges.begin(u64::MAX);
            charges.end(false);
            charges.last_ns - charges.last_own_ns
        };
        let first: Vec<u64> = (1..16).map(|_| begin(&mut charges)).collect();
        assert!(first.iter().all(|ns| *ns == 0));
        // 32 ms in 16 cycles, and so on until the next reading.
        assert_eq!(begin(&mut charges), 2_000_000);
        assert!((1..16).all(|_| begin(&mut charges) == 2_000_000));
        assert_eq!(begin(&mut charges), 100_000);
        assert_eq!(charges.kernel_charged_ns(), Some(33_600_000));
    }

    /// Counts how often it is read.
    struct Counted(Arc<AtomicU32>);

    impl CpuAccount for Counted {
        fn kernel_ns(&mut self) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed).into()
        }
    }

    #[test]
    fn a_faster_clock_has_the_account_read_no_more_often() {
        for (hz, readings_per_second) in [(10, 10), (100, 20), (1_000, 20), (10_000, 20)] {
            let readings = Arc::default();
            let mut charges = Charges::at(hz);
            charges.account = Some(Box::new(Counted(Arc::clone(&readings))));
            for _ in 0..hz {
                charges.begin(u64::MAX);
                charges.end(false);
            }
            let readings = readings.load(Ordering::Relaxed);
            assert_eq!(readings, readings_per_second, "{hz}");
        }
    }

    fn spend() {
        let began = own_cpu_ns();
        while own_cpu_ns() < began + 2_000_000 {}
    }

    /// An account that takes 2 ms to read.
    struct Slow;

    impl CpuAccount for Slow {
        fn kernel_ns(&mut self) -> u64 {
            spend();
            0
        }
    }

    #[test]
    fn what_is_more_than_a_cycle_can_bear_is_charged_to_those_after_it() {
        let mut charges = Charges::at(320);
        let readings = vec![0, 5_000_000, 5_000_000, 5_000_000, 5_000_000, 5_000_000];
        charges.account = Some(Box::new(Script(readings)));
        charges.end(true);
        assert_eq!(charges.begin(2_000_000), 2_000_000);
        charges.end(true);
        assert_eq!(charges.begin(2_000_000), 2_000_000);
        charges.end(true);
        let last_ns = charges.begin(u64::MAX);
        assert!(last_ns >= 1_000_000 && charges.left_ns == 0, "{last_ns}");
        assert_eq!(charges.kernel_charged_ns(), Some(5_000_000));
    }

    #[test]
    fn to_read_the_account_when_a_cycle_ends_is_charged() {
        let mut charges = Charges::at(320);
        charges.account = Some(Box::new(Slow));
        charges.end(true);
        assert!(charges.begin(u64::MAX) >= 2_000_000);
    }

    #[test]
    fn own_time_between_cycles_is_charged_unless_it_is_left_out() {
        let mut charges = Charges::at(320);
        charges.end(true);
        spend();
        assert!(charges.begin(u64::MAX) >= 2_000_000);
        charges.end(true);
        charges.leave_out(spend);
        let left_out_ns = charges.begin(u64::MAX);
        charges.end(true);
        spend();
        // However slow the machine is, what was left out is at least not all there.
        assert!(left_out_ns < charges.begin(u64::MAX), "{left_out_ns}");
    }
}
