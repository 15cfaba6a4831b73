//! What a cycle is charged for that happened before it began.
//!
//! The core sees how long a cycle took, by the clock. In a kernel that is all there is. A thread also wakes up, goes
//! to sleep and hears requests, and the kernel's own receive work may run on the same CPU: interrupts, soft interrupts,
//! NAPI threads. All of that is the network's part of a tick too, so the next cycle is told to have begun so much earlier.
//!
//! What must hold: no time is charged twice. Polling when the CPU is idle is not charged: nobody else wanted it.

use crate::clock::own_cpu_ns;

/// What the kernel does for the network on the engine's CPU.
pub trait CpuAccount: Send {
    /// Time that interrupts, soft interrupts and NAPI threads have taken on that CPU so far, in ns. It never falls.
    fn kernel_ns(&mut self) -> u64;

    /// Whether threads of the kernel that receive are bound to that CPU, and [`let_run`](Self::let_run) reaches them.
    fn can_hold_back(&self) -> bool {
        false
    }

    /// Lets those threads run before ordinary programs though after the engine, or else only when nobody wants the CPU.
    fn let_run(&mut self, _on: bool) {}
}

/// Where accounts come from.
pub trait CpuAccounts {
    /// The account of one CPU; `None` when there is none. Then only the engine's own time is charged.
    fn of_cpu(&self, cpu: u32) -> Option<Box<dyn CpuAccount>>;
}

/// There are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoAccounts;

impl CpuAccounts for NoAccounts {
    fn of_cpu(&self, _cpu: u32) -> Option<Box<dyn CpuAccount>> {
        None
    }
}

/// Time outside of cycles.
#[derive(Default)]
pub(crate) struct Charges {
    account: Option<Box<dyn CpuAccount>>,
    /// CPU time of the thread when the last cycle ended, idle polling left out.
    own_ns: u64,
    /// The account when the last cycle ended.
    kernel_ns: u64,
    /// What the account charged in all.
    kernel_charged_ns: u64,
    /// What the last cycle was charged: for the engine's thread, and in all.
    last_own_ns: u64,
    last_ns: u64,
}

impl Charges {
    pub(crate) fn set_account(&mut self, account: Box<dyn CpuAccount>) {
        self.account = Some(account);
    }

    /// What the account charged so far; `None` without one.
    pub(crate) fn kernel_charged_ns(&self) -> Option<u64> {
        self.account.as_ref().map(|_| self.kernel_charged_ns)
    }

    /// What the last cycle was charged.
    pub(crate) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// A cycle begins: what was used since the last one ended.
    pub(crate) fn begin(&mut self) -> u64 {
        let own_ns = own_cpu_ns().saturating_sub(self.own_ns);
        let kernel_ns = self.read_account().saturating_sub(self.kernel_ns);
        self.kernel_charged_ns += kernel_ns;
        self.last_own_ns = own_ns;
        self.last_ns = own_ns + kernel_ns;
        self.last_ns
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

    /// A cycle has ended.
    pub(crate) fn end(&mut self) {
        self.kernel_ns = self.read_account();
        self.own_ns = own_cpu_ns();
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
    use super::*;

    struct Script(Vec<u64>);

    impl CpuAccount for Script {
        fn kernel_ns(&mut self) -> u64 {
            self.0.remove(0)
        }
    }

    #[test]
    fn the_kernel_is_charged_for_what_lies_between_cycles() {
        let mut charges = Charges::default();
        assert_eq!(charges.kernel_charged_ns(), None);
        // The end of a cycle, then the begin and the end of two more.
        let readings = vec![1_000_000, 3_000_000, 9_000_000, 9_500_000, 9_500_000];
        charges.set_account(Box::new(Script(readings)));
        charges.end();
        let first_ns = charges.begin();
        assert!(first_ns >= 2_000_000 && first_ns == charges.last_ns());
        charges.end();
        // What ran during the first cycle is in its own time.
        charges.begin();
        charges.end();
        assert_eq!(charges.kernel_charged_ns(), Some(2_500_000));
    }

    #[test]
    fn own_time_between_cycles_is_charged_unless_it_is_left_out() {
        let spend = || {
            let began = own_cpu_ns();
            while own_cpu_ns() < began + 2_000_000 {}
        };
        let mut charges = Charges::default();
        charges.end();
        spend();
        assert!(charges.begin() >= 2_000_000);
        charges.end();
        charges.leave_out(spend);
        let left_out_ns = charges.begin();
        charges.end();
        spend();
        // However slow the machine is, what was left out is at least not all there.
        assert!(left_out_ns < charges.begin(), "{left_out_ns}");
    }
}
