//! What is asked for.

use std::collections::BTreeMap;

use nicpoll_sys::schedule::Policy;

use crate::knob::{Knob, Scope};
use crate::moderation::Moderation;

/// Which NAPI instances of an interface are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All, those that come later included.
    Whole,
    /// Those of receive queues.
    RxQueues(Vec<u32>),
    /// Those of these ids.
    Napis(Vec<u32>),
}

/// Knobs that are recorded together: putting one of them back disturbs the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Whether threads poll.
    Threads,
    /// Count and timeout. Both are set to 0 on the way back, whichever was changed.
    Deferral,
}

/// Values to be set; null: not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `napi_defer_hard_irqs`.
    pub defer_hard_irqs: Option<u32>,
    /// `gro_flush_timeout`, in ns.
    pub gro_flush_timeout_ns: Option<u64>,
    /// 0 without threads, 1 with, 2 with threads that poll without end.
    pub threaded: Option<u32>,
    /// CPUs of the threads.
    pub thread_cpus: Option<Vec<u32>>,
    /// Scheduling of the threads.
    pub thread_policy: Option<Policy>,
    /// `irq-suspend-timeout`, in ns.
    pub irq_suspend_timeout_ns: Option<u64>,
    /// Interrupt moderation.
    pub moderation: BTreeMap<Moderation, u32>,
}

impl Request {
    /// Whether any of it is a setting of NAPI instances.
    pub fn needs_napi(&self) -> bool {
        self.defer_hard_irqs.is_some()
            || self.gro_flush_timeout_ns.is_some()
            || self.threaded.is_some()
            || self.irq_suspend_timeout_ns.is_some()
            || self.is_about_threads()
    }

    /// Whether it says how threads run.
    pub fn is_about_threads(&self) -> bool {
        self.thread_cpus.is_some() || self.thread_policy.is_some()
    }

    /// The knobs of a group in a scope, with what is asked for; none when nothing of the group is.
    pub fn group(&self, group: Group, scope: Scope) -> Vec<(Knob, Option<u64>)> {
        let knobs = match group {
            Group::Threads => vec![(Knob::Threaded(scope), self.threaded.map(u64::from))],
            Group::Deferral => vec![
                (
                    Knob::DeferHardIrqs(scope),
                    self.defer_hard_irqs.map(u64::from),
                ),
                (Knob::GroFlushTimeout(scope), self.gro_flush_timeout_ns),
            ],
        };
        if knobs.iter().any(|(_, asked)| asked.is_some()) {
            knobs
        } else {
            Vec::new()
        }
    }
}
