//! Every knob that a switch may change: one row each.
//!
//! What must hold: everything that nicpoll knows of a knob is in its row. Nothing outside this folder asks which
//! knob it has before it, only what the row says of it; so a new knob is a new row.

use super::options::{KnobOption, flag};
use super::place::{Lacking, Place, Scoped};
use super::row::{Disturbance, KnobRow, Manner, Phase};
use super::value::{Unit, Value, parse_cpus, parse_fifo, parse_nice, parse_share};

/// So many empty polls that the interrupt stays masked once the timer runs.
pub const DEFER_HARD_IRQS_MAX: u32 = i32::MAX as u32;
/// `threaded` of threads that poll without end.
pub const THREADED_BUSY_POLL: u64 = 2;

/// What most rows have in common.
pub(super) const ROW: KnobRow = KnobRow {
    name: "",
    unit: Unit::Count,
    max: u32::MAX as u64,
    place: Place::Link,
    phase: Phase::Card,
    manner: Manner::Plain,
    disturbs: Disturbance::Quiet,
    freebsd: None,
    options: &[],
    help: "",
};

/// Whether the interface is up.
pub static UP: KnobRow = KnobRow {
    name: "up",
    unit: Unit::Switch,
    max: 1,
    place: Place::Link,
    phase: Phase::Link,
    disturbs: Disturbance::TakesLinkDown,
    freebsd: Some("ifconfig IF up"),
    help: "whether the interface is up",
    ..ROW
};

/// GRO, without which a veth has no receive NAPI.
pub static GRO: KnobRow = KnobRow {
    name: "gro",
    unit: Unit::Switch,
    max: 1,
    place: Place::Feature("rx-gro"),
    phase: Phase::Feature,
    disturbs: Disturbance::ResetsQueues,
    help: "generic receive offload (GRO): received packets are merged",
    ..ROW
};

/// TSO, all of its bits: `NETIF_F_ALL_TSO` by the names that the kernel gives them.
pub static TSO: KnobRow = KnobRow {
    name: "tso",
    unit: Unit::Switch,
    max: 1,
    place: Place::Feature("tx-tcp*-segmentation"),
    phase: Phase::Feature,
    freebsd: Some("ifconfig IF tso"),
    help: "TCP segmentation offload (TSO): the card cuts TCP segments",
    ..ROW
};

/// Whether threads poll.
pub static THREADED: KnobRow = KnobRow {
    name: "threaded",
    max: THREADED_BUSY_POLL,
    place: Place::Napi(Scoped {
        // The file takes 0 and 1 only.
        file: Some(("threaded", 1)),
        key: "threaded",
        attribute: 8,
        lacking: &[
            Lacking {
                from: THREADED_BUSY_POLL,
                reason: "this kernel has no threads that poll without end",
                remedy: "use --threaded, with a short --period to poll often",
            },
            Lacking {
                from: 0,
                reason: "this kernel cannot give a single NAPI instance a thread",
                remedy: "name the interface alone; Linux 6.17 or later can",
            },
        ],
    }),
    phase: Phase::Napi,
    disturbs: Disturbance::DependsOnDriver,
    freebsd: Some("kern.polling.idle_poll (2)"),
    options: &[
        flag(
            "threaded",
            "Poll in kernel threads, which the scheduler can see",
            |_| Ok(Value::Number(1)),
        ),
        flag(
            "busy-poll",
            "Poll in kernel threads without pause; each takes a whole CPU",
            |_| Ok(Value::Number(THREADED_BUSY_POLL)),
        ),
    ],
    help: "0: softirqs poll; 1: kernel threads do; 2: threads that never sleep",
    ..ROW
};

/// How many empty polls keep the interrupt masked.
pub static DEFER_HARD_IRQS: KnobRow = KnobRow {
    name: "napi_defer_hard_irqs",
    max: DEFER_HARD_IRQS_MAX as u64,
    place: Place::Napi(Scoped {
        file: Some(("napi_defer_hard_irqs", u64::MAX)),
        key: "defer_hard_irqs",
        attribute: 5,
        lacking: &[],
    }),
    phase: Phase::Napi,
    manner: Manner::Deferral,
    options: &[KnobOption {
        long: "defer",
        value_name: Some("N"),
        help: "Empty polls until the card's interrupt comes back (napi_defer_hard_irqs) [polling: never]",
        conflicts: &[],
        parse: |text| DEFER_HARD_IRQS.parse(text),
    }],
    help: "empty polls until the interrupt is unmasked",
    ..ROW
};

/// From the end of one round to the next poll; 0: no timer.
pub static GRO_FLUSH_TIMEOUT: KnobRow = KnobRow {
    name: "gro_flush_timeout",
    unit: Unit::Time,
    max: u64::MAX,
    place: Place::Napi(Scoped {
        file: Some(("gro_flush_timeout", u64::MAX)),
        key: "gro_flush_timeout",
        attribute: 6,
        lacking: &[],
    }),
    phase: Phase::Napi,
    manner: Manner::Deferral,
    freebsd: Some("kern.hz"),
    options: &[KnobOption {
        long: "period",
        value_name: Some("TIME"),
        help: "Time from the end of one round to the next poll (gro_flush_timeout)",
        conflicts: &[],
        parse: |text| GRO_FLUSH_TIMEOUT.parse(text),
    }],
    help: "time from the end of one round of polls to the next poll; 0: no timer",
    ..ROW
};

/// How long an application may keep interrupts off.
pub static IRQ_SUSPEND_TIMEOUT: KnobRow = KnobRow {
    name: "irq-suspend-timeout",
    unit: Unit::Time,
    max: u64::MAX,
    place: Place::Napi(Scoped {
        file: None,
        key: "irq_suspend_timeout",
        attribute: 7,
        lacking: &[Lacking {
            from: 0,
            reason: "this kernel has no irq-suspend-timeout",
            remedy: "Linux 6.13 or later has it",
        }],
    }),
    phase: Phase::Napi,
    options: &[KnobOption {
        long: "suspend",
        value_name: Some("TIME"),
        help: "How long an application that polls may keep interrupts off (irq-suspend-timeout)",
        conflicts: &[],
        parse: |text| IRQ_SUSPEND_TIMEOUT.parse(text),
    }],
    help: "how long an application that busy-polls by epoll keeps interrupts off",
    ..ROW
};

/// A parameter of interrupt moderation, by its number in `ETHTOOL_A_COALESCE_*`.
const fn coalescing(name: &'static str, attribute: u16, help: &'static str) -> KnobRow {
    KnobRow {
        name,
        place: Place::Coalescing { attribute },
        disturbs: Disturbance::DependsOnDriver,
        help,
        ..ROW
    }
}

/// A parameter that moves its neighbours by itself.
const fn adaptive(name: &'static str, attribute: u16, help: &'static str) -> KnobRow {
    KnobRow {
        unit: Unit::Switch,
        max: 1,
        manner: Manner::Adaptive,
        ..coalescing(name, attribute, help)
    }
}

/// Longest wait before a receive interrupt.
pub static RX_USECS: KnobRow = coalescing(
    "rx-usecs",
    2,
    "longest wait before a receive interrupt, in us",
);
static RX_FRAMES: KnobRow = coalescing(
    "rx-frames",
    3,
    "received packets that raise an interrupt at once",
);
static RX_USECS_IRQ: KnobRow = coalescing(
    "rx-usecs-irq",
    4,
    "as rx-usecs, while an interrupt is handled",
);
static RX_FRAMES_IRQ: KnobRow = coalescing(
    "rx-frames-irq",
    5,
    "as rx-frames, while an interrupt is handled",
);
/// Longest wait before a transmit interrupt.
pub static TX_USECS: KnobRow = coalescing(
    "tx-usecs",
    6,
    "longest wait before a transmit interrupt, in us",
);
static TX_FRAMES: KnobRow = coalescing(
    "tx-frames",
    7,
    "sent packets that raise an interrupt at once",
);
/// Whether the driver moves the receive values by itself.
pub static ADAPTIVE_RX: KnobRow =
    adaptive("adaptive-rx", 11, "whether the driver adapts the rx values");
/// Whether the driver moves the transmit values by itself.
pub static ADAPTIVE_TX: KnobRow =
    adaptive("adaptive-tx", 12, "whether the driver adapts the tx values");

/// The size of a ring, by its number in `ETHTOOL_A_RINGS_*`.
const fn ring(name: &'static str, attribute: u16, help: &'static str) -> KnobRow {
    KnobRow {
        name,
        place: Place::Ring { attribute },
        disturbs: Disturbance::ResetsQueues,
        help,
        ..ROW
    }
}

/// Slots of each receive ring.
pub static RX_RING: KnobRow = KnobRow {
    freebsd: Some("kern.polling.burst_max"),
    ..ring("rx-ring", 6, "slots of each receive ring")
};
/// Slots of each transmit ring.
pub static TX_RING: KnobRow = ring("tx-ring", 9, "slots of each transmit ring");

/// The CPUs of the threads that poll.
pub static THREAD_CPUS: KnobRow = KnobRow {
    name: "thread_cpus",
    unit: Unit::Cpus,
    place: Place::ThreadCpus,
    phase: Phase::Thread,
    options: &[KnobOption {
        long: "threaded-cpus",
        value_name: Some("LIST"),
        help: "CPUs of the threads, such as 1 or 2-3,6",
        conflicts: &[],
        parse: parse_cpus,
    }],
    help: "CPUs that the threads napi/IF-ID may use",
    ..ROW
};

/// How the threads that poll are scheduled.
pub static THREAD_POLICY: KnobRow = KnobRow {
    name: "thread_policy",
    unit: Unit::Scheduling,
    place: Place::ThreadPolicy,
    phase: Phase::Thread,
    freebsd: Some("100 - kern.polling.user_frac (share)"),
    options: &[
        KnobOption {
            long: "nice",
            value_name: Some("N"),
            help: "Nice value of the threads, -20 to 19",
            conflicts: &[],
            parse: parse_nice,
        },
        KnobOption {
            long: "rt",
            value_name: Some("PRIO"),
            help: "Real-time priority of the threads (SCHED_FIFO), 1 to 99",
            conflicts: &[],
            parse: parse_fifo,
        },
        KnobOption {
            long: "cpu-share",
            value_name: Some("PERCENT"),
            help: "Upper limit of each thread's CPU time (SCHED_DEADLINE): 100 - user_frac, 1 to 95",
            // A thread of that class may use every CPU.
            conflicts: &["threaded-cpus"],
            parse: parse_share,
        },
    ],
    help: "scheduling class and priority of the threads napi/IF-ID",
    ..ROW
};

/// Every row. What stands earlier is written earlier within its phase.
pub static TABLE: [&KnobRow; 19] = [
    &UP,
    &GRO,
    &TSO,
    &THREADED,
    &DEFER_HARD_IRQS,
    &GRO_FLUSH_TIMEOUT,
    &IRQ_SUSPEND_TIMEOUT,
    &RX_USECS,
    &RX_FRAMES,
    &RX_USECS_IRQ,
    &RX_FRAMES_IRQ,
    &TX_USECS,
    &TX_FRAMES,
    &ADAPTIVE_RX,
    &ADAPTIVE_TX,
    &RX_RING,
    &TX_RING,
    &THREAD_POLICY,
    &THREAD_CPUS,
];

/// The row of a name.
pub fn named(name: &str) -> Option<&'static KnobRow> {
    TABLE.iter().copied().find(|row| row.name == name)
}

/// Where a row stands: what stands earlier is written earlier.
pub(crate) fn place_of(row: &KnobRow) -> usize {
    let place = TABLE.iter().position(|known| *known == row);
    place.unwrap_or(TABLE.len())
}
