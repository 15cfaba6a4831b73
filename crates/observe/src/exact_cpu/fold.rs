//! CPU time by the phase of a period: what follows upon a pulse, and when.

use crate::map_types::{self, FOLD_BINS};

/// What is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldOptions {
    /// The period; phase 0 is at its multiples of `CLOCK_MONOTONIC`. At least 1 us.
    pub period_ns: u64,
    /// The process whose time is folded. Interrupts are, whomever they came upon.
    pub tgid: u32,
}

/// Time of all CPUs together, by bin of the period. Each list has one value a bin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fold {
    /// The period.
    pub period_ns: u64,
    /// The process in user mode.
    pub user_ns: Vec<u64>,
    /// The process in the kernel.
    pub system_ns: Vec<u64>,
    /// Hard interrupts.
    pub irq_ns: Vec<u64>,
    /// Soft interrupts.
    pub softirq_ns: Vec<u64>,
}

impl Fold {
    pub(super) fn new(options: FoldOptions, by_cpu: &[map_types::Fold]) -> Self {
        let row = |row: usize| -> Vec<u64> {
            let bin = |bin: usize| by_cpu.iter().map(|fold| fold.ns[row][bin]).sum();
            (0..FOLD_BINS).map(bin).collect()
        };
        Fold {
            period_ns: options.period_ns,
            user_ns: row(0),
            system_ns: row(1),
            irq_ns: row(2),
            softirq_ns: row(3),
        }
    }

    /// Time in the kernel by bin: system, hard and soft interrupts.
    pub fn kernel_ns(&self) -> Vec<u64> {
        let rows = self
            .system_ns
            .iter()
            .zip(&self.irq_ns)
            .zip(&self.softirq_ns);
        rows.map(|((system, irq), softirq)| system + irq + softirq)
            .collect()
    }

    /// Where in the period a bin begins.
    pub fn phase_ns(&self, bin: usize) -> u64 {
        bin as u64 * (self.period_ns / FOLD_BINS as u64)
    }
}
