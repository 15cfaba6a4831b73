//! The state of a kernel's receive discipline: FreeBSD's interrupt threads, netisr and poller; Linux's NAPI.

use std::collections::VecDeque;

use nicpoll_core::{Command, NS_PER_SECOND, Poller, StormDetector};

use crate::spec::discipline::NapiOptions;
use crate::spec::host::HostModel;

/// FreeBSD's state. With a poller cards never interrupt.
#[derive(Clone, Debug)]
pub struct Freebsd {
    /// The interrupt thread of each card.
    pub sources: Vec<SourceState>,
    /// Threads that wait for another one to end, in the order in which they woke.
    pub waiting: VecDeque<Turn>,
    /// The thread that runs, or ran last.
    pub current: Turn,
    pub poller: Option<Poller>,
    /// Requests to the cards, of the poller and of the idle thread.
    pub asked: VecDeque<PollRequest>,
    pub asked_idle: VecDeque<PollRequest>,
}

/// A thread of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Its interrupt thread.
    Handler(usize),
    /// The task that continues for it.
    Task(usize),
}

/// The interrupt thread of a card.
#[derive(Clone, Debug)]
pub struct SourceState {
    pub storm: StormDetector,
    /// Whether its thread sleeps a tick because of a storm.
    pub is_throttled: bool,
    /// Whether an interrupt has come meanwhile, which only `card.hands_over` makes possible.
    pub is_needed: bool,
}

/// A request of the poller: card, command and packets. The packets are moved later, one by one, since each takes
/// time.
#[derive(Clone, Copy, Debug)]
pub struct PollRequest(pub usize, pub Command, pub u32);

impl Freebsd {
    pub fn new(poller: Option<Poller>, host: &HostModel, cards: usize) -> Self {
        let source = SourceState {
            // Both ranges end far below 2^32.
            storm: StormDetector::new(host.storm.threshold as u32, host.cpu.hz as u32),
            is_throttled: false,
            is_needed: false,
        };
        Freebsd {
            sources: vec![source; cards],
            waiting: VecDeque::new(),
            current: Turn::Handler(0),
            poller,
            asked: VecDeque::new(),
            asked_idle: VecDeque::new(),
        }
    }
}

/// NAPI's state.
#[derive(Clone, Debug)]
pub struct NapiState {
    pub options: NapiOptions,
    /// The longest pass.
    pub budget_ns: u64,
    /// Cards whose NAPI is on the list; they are masked.
    pub list: VecDeque<usize>,
    /// The softirq in progress, or the last one.
    pub softirq: Softirq,
    pub is_in_softirq: bool,
    /// Empty polls until interrupts come back, for each card.
    pub deferred_left: Vec<u64>,
    /// When the program gives up polling in vain.
    pub spins_until_ns: u64,
    /// Whether the program is polling.
    pub is_busy_polling: bool,
}

/// A softirq.
#[derive(Clone, Copy, Debug, Default)]
pub struct Softirq {
    pub passes_left: u32,
    pub ends_ns: u64,
    /// Packets left of the pass.
    pub budget_left: u64,
    pub pass_ends_ns: u64,
    /// Packets taken by the poll.
    pub work: u64,
}

impl NapiState {
    pub fn new(options: NapiOptions, host: &HostModel, cards: usize) -> Self {
        NapiState {
            options,
            // netdev_budget_usecs is two ticks by default.
            budget_ns: options.budget_ns.unwrap_or(2 * NS_PER_SECOND / host.cpu.hz),
            list: VecDeque::new(),
            softirq: Softirq::default(),
            is_in_softirq: false,
            deferred_left: vec![0; cards],
            spins_until_ns: 0,
            is_busy_polling: false,
        }
    }

    pub fn is_scheduled(&self, card: usize) -> bool {
        self.list.contains(&card)
    }

    /// Whether a softirq has to begin.
    pub fn waits(&self) -> bool {
        !self.list.is_empty() && !self.is_in_softirq
    }
}
