//! CPU time by the phase of a period: what follows upon a pulse, and when.

use nicpoll_model::FoldBin;

use nicpoll_sys::bpf_maps::{self, FOLD_BINS};

/// What is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldOptions {
    /// The period; phase 0 is at its multiples of `CLOCK_MONOTONIC`. At least 1 us.
    pub period_ns: u64,
    /// The process whose time is folded. Interrupts are, whomever they came upon.
    pub tgid: u32,
}

/// Time of all CPUs together, by bin of the period.
pub(super) fn bins(options: FoldOptions, by_cpu: &[bpf_maps::Fold]) -> Vec<FoldBin> {
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
