//! Every knob that nicpoll changes: one row each.
//!
//! A row has all facts about its knob. Other code asks the row and never checks which knob it is, so a new knob is a
//! new row. Sysctls and offload features outside the table get a row when a request names them.

use std::sync::{Mutex, PoisonError};

use super::row::{
    CardTable, Disturbance, Kind, KnobOption, KnobPlace, KnobRow, Lacking, NapiPlace, WriteRule,
};
use super::value::{KnobUnit, Value, ValueError, parse_cpus, parse_fifo, parse_nice, parse_share};

/// The largest number of empty polls: in effect the interrupt stays masked while the timer runs.
pub const DEFER_HARD_IRQS_MAX: u32 = i32::MAX as u32;
/// The value of `threaded` for threads that never sleep.
pub const THREADED_BUSY_POLL: u64 = 2;

/// The defaults of a row.
const ROW: KnobRow = KnobRow {
    name: "",
    unit: KnobUnit::Count,
    max: u32::MAX as u64,
    place: KnobPlace::Link,
    rule: WriteRule::Plain,
    disturbs: Disturbance::Quiet,
    freebsd: None,
    options: &[],
    help: "",
};

const fn option(
    long: &'static str,
    value_name: Option<&'static str>,
    help: &'static str,
    parse: fn(&str) -> Result<Value, ValueError>,
) -> KnobOption {
    KnobOption {
        long,
        value_name,
        help,
        conflicts: &[],
        parse,
    }
}

/// Whether the interface is up.
pub(crate) static UP: KnobRow = KnobRow {
    name: "up",
    unit: KnobUnit::Switch,
    place: KnobPlace::Link,
    disturbs: Disturbance::TakesLinkDown,
    freebsd: Some("ifconfig IF up"),
    help: "whether the interface is up",
    ..ROW
};

/// GRO, without which a veth has no receive NAPI.
pub static GRO: KnobRow = KnobRow {
    name: "gro",
    unit: KnobUnit::Switch,
    place: KnobPlace::Feature("rx-gro"),
    disturbs: Disturbance::ResetsQueues,
    help: "generic receive offload (GRO): received packets are merged",
    ..ROW
};

/// TSO, all of its bits: `NETIF_F_ALL_TSO` by the names that the kernel gives them.
pub static TSO: KnobRow = KnobRow {
    name: "tso",
    unit: KnobUnit::Switch,
    place: KnobPlace::Feature("tx-tcp*-segmentation"),
    freebsd: Some("ifconfig IF tso"),
    help: "TCP segmentation offload (TSO): the card cuts TCP segments",
    ..ROW
};

/// Whether threads poll.
pub static THREADED: KnobRow = KnobRow {
    name: "threaded",
    max: THREADED_BUSY_POLL,
    place: KnobPlace::Napi(NapiPlace {
        // The file takes 0 and 1 only.
        file: Some(("threaded", 1, "5.12")),
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
    disturbs: Disturbance::DependsOnDriver,
    freebsd: Some("kern.polling.idle_poll (2)"),
    options: &[
        option(
            "threaded",
            None,
            "Poll in kernel threads, which the scheduler can see",
            |_| Ok(Value::Number(1)),
        ),
        option(
            "busy-poll",
            None,
            "Poll in kernel threads without pause; each takes a whole CPU",
            |_| Ok(Value::Number(THREADED_BUSY_POLL)),
        ),
    ],
    help: "0: softirqs poll; 1: kernel threads do; 2: threads that never sleep",
    ..ROW
};

/// Empty polls for which the interrupt stays masked.
pub static DEFER_HARD_IRQS: KnobRow = KnobRow {
    name: "napi_defer_hard_irqs",
    max: DEFER_HARD_IRQS_MAX as u64,
    place: KnobPlace::Napi(NapiPlace {
        file: Some(("napi_defer_hard_irqs", u64::MAX, "5.8")),
        key: "defer_hard_irqs",
        attribute: 5,
        lacking: &[],
    }),
    rule: WriteRule::FromRest,
    options: &[option(
        "defer",
        Some("N"),
        "Empty polls until the card's interrupt comes back (napi_defer_hard_irqs) [polling: never]",
        |text| DEFER_HARD_IRQS.parse(text),
    )],
    help: "empty polls until the interrupt is unmasked",
    ..ROW
};

/// Time from the end of one round to the next poll, in ns; 0: no timer.
pub static GRO_FLUSH_TIMEOUT: KnobRow = KnobRow {
    name: "gro_flush_timeout",
    unit: KnobUnit::Time,
    max: u64::MAX,
    place: KnobPlace::Napi(NapiPlace {
        file: Some(("gro_flush_timeout", u64::MAX, "3.19")),
        key: "gro_flush_timeout",
        attribute: 6,
        lacking: &[],
    }),
    rule: WriteRule::FromRest,
    freebsd: Some("kern.hz"),
    options: &[option(
        "period",
        Some("TIME"),
        "Time from the end of one round to the next poll (gro_flush_timeout)",
        |text| GRO_FLUSH_TIMEOUT.parse(text),
    )],
    help: "time from the end of one round of polls to the next poll; 0: no timer",
    ..ROW
};

/// How long an application may keep interrupts masked.
pub static IRQ_SUSPEND_TIMEOUT: KnobRow = KnobRow {
    name: "irq-suspend-timeout",
    unit: KnobUnit::Time,
    max: u64::MAX,
    place: KnobPlace::Napi(NapiPlace {
        file: None,
        key: "irq_suspend_timeout",
        attribute: 7,
        lacking: &[Lacking {
            from: 0,
            reason: "this kernel has no irq-suspend-timeout",
            remedy: "Linux 6.13 or later has it",
        }],
    }),
    options: &[option(
        "suspend",
        Some("TIME"),
        "How long an application that polls may keep interrupts off (irq-suspend-timeout)",
        |text| IRQ_SUSPEND_TIMEOUT.parse(text),
    )],
    help: "how long an application that busy-polls by epoll keeps interrupts off",
    ..ROW
};

/// A parameter of interrupt moderation, by its number in `ETHTOOL_A_COALESCE_*`.
const fn coalescing(name: &'static str, attribute: u16, help: &'static str) -> KnobRow {
    KnobRow {
        name,
        place: KnobPlace::Card(CardTable::Coalescing, attribute),
        disturbs: Disturbance::DependsOnDriver,
        help,
        ..ROW
    }
}

/// A parameter with which the driver moves neighbouring values itself.
const fn adaptive(name: &'static str, attribute: u16, help: &'static str) -> KnobRow {
    KnobRow {
        unit: KnobUnit::Switch,
        rule: WriteRule::Adaptive,
        ..coalescing(name, attribute, help)
    }
}

/// Longest wait before a receive interrupt.
pub(crate) static RX_USECS: KnobRow = coalescing(
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
pub(crate) static TX_USECS: KnobRow = coalescing(
    "tx-usecs",
    6,
    "longest wait before a transmit interrupt, in us",
);
static TX_FRAMES: KnobRow = coalescing(
    "tx-frames",
    7,
    "sent packets that raise an interrupt at once",
);
/// Whether the driver moves the receive values itself.
pub(crate) static ADAPTIVE_RX: KnobRow =
    adaptive("adaptive-rx", 11, "whether the driver adapts the rx values");
/// Whether the driver moves the transmit values itself.
pub(crate) static ADAPTIVE_TX: KnobRow =
    adaptive("adaptive-tx", 12, "whether the driver adapts the tx values");

/// The size of a ring, by its number in `ETHTOOL_A_RINGS_*`.
const fn ring(name: &'static str, attribute: u16, help: &'static str) -> KnobRow {
    KnobRow {
        name,
        place: KnobPlace::Card(CardTable::Rings, attribute),
        disturbs: Disturbance::ResetsQueues,
        help,
        ..ROW
    }
}

/// Slots of each receive ring.
pub(crate) static RX_RING: KnobRow = KnobRow {
    freebsd: Some("kern.polling.burst_max"),
    ..ring("rx-ring", 6, "slots of each receive ring")
};
/// Slots of each transmit ring.
pub(crate) static TX_RING: KnobRow = ring("tx-ring", 9, "slots of each transmit ring");

/// The CPUs of the threads that poll.
pub static THREAD_CPUS: KnobRow = KnobRow {
    name: "thread_cpus",
    unit: KnobUnit::Cpus,
    place: KnobPlace::ThreadCpus,
    options: &[option(
        "threaded-cpus",
        Some("LIST"),
        "CPUs of the threads, such as 1 or 2-3,6",
        parse_cpus,
    )],
    help: "CPUs that the threads napi/IF-ID may use",
    ..ROW
};

/// How the threads that poll are scheduled.
pub static THREAD_POLICY: KnobRow = KnobRow {
    name: "thread_policy",
    unit: KnobUnit::Scheduling,
    place: KnobPlace::ThreadPolicy,
    freebsd: Some("100 - kern.polling.user_frac (share)"),
    options: &[
        option(
            "nice",
            Some("N"),
            "Nice value of the threads, -20 to 19",
            parse_nice,
        ),
        option(
            "rt",
            Some("PRIO"),
            "Real-time priority of the threads (SCHED_FIFO), 1 to 99",
            parse_fifo,
        ),
        KnobOption {
            long: "cpu-share",
            value_name: Some("PERCENT"),
            help: "Upper limit of each thread's CPU time (SCHED_DEADLINE): 100 - user_frac, 1 to 95",
            // A SCHED_DEADLINE thread may use every CPU.
            conflicts: &["threaded-cpus"],
            parse: parse_share,
        },
    ],
    help: "scheduling class and priority of the threads napi/IF-ID",
    ..ROW
};

/// Every row. Within their phase, rows are written in this order.
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

/// The word for every adaptive parameter in a list of knobs.
const ADAPTIVE: &str = "adaptive";
/// Names without a row that a program may request. Their rows stay allocated until it ends.
const NAMED_ROWS_MAX: usize = 1024;
/// Longer than any sysctl or feature of the kernel.
const NAME_LENGTH_MAX: usize = 128;

static NAMED_ROWS: Mutex<Vec<&'static KnobRow>> = Mutex::new(Vec::new());

/// Returns the row of a name.
pub fn named(name: &str) -> Option<&'static KnobRow> {
    TABLE.iter().copied().find(|row| row.name == name)
}

/// Iterates over the rows of the table, then those created for names.
pub(crate) fn all_rows() -> impl Iterator<Item = &'static KnobRow> {
    let made = NAMED_ROWS.lock().unwrap_or_else(PoisonError::into_inner);
    TABLE.into_iter().chain(made.clone())
}

/// Returns the position of a row, in order of writing.
pub(crate) fn position_of(row: &KnobRow) -> usize {
    let position = TABLE.iter().position(|known| *known == row);
    position.unwrap_or(TABLE.len())
}

/// Returns the row of a name outside the table, creating it if needed. A name that could lead out of `/proc/sys` is
/// refused.
///
/// # Errors
/// When the kernel can have nothing of that name, or the table has another name for it.
pub(crate) fn row_of(kind: Kind, name: &str) -> Result<&'static KnobRow, ValueError> {
    let refused = |why: String| ValueError(format!("{} '{name}': {why}", kind.key()));
    if name.len() > NAME_LENGTH_MAX || !accepts(kind, name) {
        let example = match kind {
            Kind::Sysctl => "a sysctl is named as sysctl(8) does, such as net.ipv4.tcp_ecn",
            Kind::Feature => "a feature is named as ethtool -k does, such as rx-checksum",
        };
        return Err(refused(String::from(example)));
    }
    let covers = |row: &&&KnobRow| row.stands_for(name) || row.name == name;
    if let Some(row) = TABLE.iter().find(covers).filter(|_| kind == Kind::Feature) {
        return Err(refused(format!("set it by its own name, {}", row.name)));
    }
    let mut rows = NAMED_ROWS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(row) = rows.iter().find(|row| row.name == name) {
        return Ok(row);
    }
    if rows.len() >= NAMED_ROWS_MAX {
        return Err(refused(format!(
            "this program knows {NAMED_ROWS_MAX} other names already, which is its limit"
        )));
    }
    let name: &'static str = Box::leak(Box::from(name));
    let row: &'static KnobRow = Box::leak(Box::new(named_row(kind, name)));
    rows.push(row);
    Ok(row)
}

fn accepts(kind: Kind, name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match kind {
        Kind::Feature => name.chars().all(is_letter) && is_part(name),
        Kind::Sysctl => {
            // As in sysctl(8): in a name with slashes, dots belong to an interface's name.
            let between = if name.contains('/') { '/' } else { '.' };
            name.split(between).count() > 1
                && name.split(between).all(is_part)
                && name.chars().all(|c| is_letter(c) || "./@:".contains(c))
        }
    }
}

fn named_row(kind: Kind, name: &'static str) -> KnobRow {
    match kind {
        Kind::Sysctl => KnobRow {
            name,
            unit: KnobUnit::Text,
            place: KnobPlace::Sysctl(name),
            help: "a sysctl",
            ..ROW
        },
        Kind::Feature => KnobRow {
            name,
            unit: KnobUnit::Switch,
            place: KnobPlace::Feature(name),
            disturbs: Disturbance::ResetsQueues,
            help: "an offload feature",
            ..ROW
        },
    }
}

/// Iterates over every option with its row, in the order of the table.
pub fn options() -> impl Iterator<Item = (&'static KnobRow, &'static KnobOption)> {
    let of = |row: &'static KnobRow| row.options.iter().map(move |option| (row, option));
    TABLE.iter().copied().flat_map(of)
}

/// Parses `NAME=VALUE,...` of `--moderation` and `--knob`. `is_meant` selects the rows that may be named; the name
/// `adaptive` stands for every adaptive one of them.
pub fn parse_list(
    text: &str,
    is_meant: impl Fn(&KnobRow) -> bool,
) -> Result<Vec<(&'static KnobRow, Value)>, ValueError> {
    let rows = || TABLE.iter().copied().filter(|row| is_meant(row));
    let mut given: Vec<(&'static KnobRow, Value)> = Vec::new();
    for piece in text.split(',') {
        let (name, value) = piece
            .split_once('=')
            .ok_or_else(|| ValueError(format!("'{piece}' has no value, such as rx-usecs=50")))?;
        let mut named = rows()
            .filter(|row| row.name == name || (name == ADAPTIVE && row.is_adaptive()))
            .peekable();
        if named.peek().is_none() {
            let known: Vec<&str> = rows().map(|row| row.name).collect();
            return Err(ValueError(format!(
                "'{name}' is not known; known are {} and {ADAPTIVE}",
                known.join(", ")
            )));
        }
        for row in named {
            let value = row.parse(value).map_err(|error| error.of(row.name))?;
            given.retain(|(known, _)| *known != row);
            given.push((row, value));
        }
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_row_and_a_name_that_leads_elsewhere_has_none() {
        let row = row_of(Kind::Sysctl, "net.ipv4.tcp_ecn").unwrap();
        assert_eq!(row_of(Kind::Sysctl, "net.ipv4.tcp_ecn").unwrap(), row);
        assert!(row_of(Kind::Sysctl, "net/ipv4/conf/eth0.7/rp_filter").is_ok());
        for wrong in [
            "",
            "net",
            "net..core",
            "net.core.",
            "../etc/passwd",
            "net/../../etc/passwd",
            "net/./x",
            "/etc/passwd",
            "net.core.x y",
            "net.core.\u{e9}",
        ] {
            assert!(row_of(Kind::Sysctl, wrong).is_err(), "{wrong}");
        }
        assert!(row_of(Kind::Sysctl, &"a.".repeat(100)).is_err());
    }

    #[test]
    fn what_the_table_has_goes_by_the_tables_name() {
        for (name, own) in [
            ("rx-gro", "gro"),
            ("tx-tcp6-segmentation", "tso"),
            ("gro", "gro"),
        ] {
            let error = row_of(Kind::Feature, name).unwrap_err().to_string();
            assert!(
                error.ends_with(&format!("by its own name, {own}")),
                "{error}"
            );
        }
        assert!(row_of(Kind::Feature, "rx-udp-gro-forwarding").is_ok());
        assert!(row_of(Kind::Feature, "rx/../x").is_err());
    }
}
