//! The udev rule: sets the deferral when a device appears, before any nicpoll process runs.
//!
//! The rule saves the old and new values in udev's database. From there the journal gets a record, as if `nicpoll set`
//! had made the change. A change is taken over only if it is still in force and the interface has no record. A database
//! entry not exactly in the rule's form is ignored.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nicpoll_sys::netns::NetNamespace;

use crate::apply::Switch;
use crate::error::SwitchError;
use crate::journal::{Change, DEFAULT_DIRECTORY, Journal};
use crate::kernel::{Kernel, Machine, Target};
use crate::knob::{ScopedKnob, Value, table};
use crate::request::KnobValues;

/// udev's property with the old count and timeout.
const BEFORE: &str = "NICPOLL_BEFORE";
/// udev's property with the count and timeout that the rule set.
const SET: &str = "NICPOLL_SET";
/// udev's database of devices: `nIFINDEX` for an interface.
const DATABASE: &str = "/run/udev/data";
/// The namespace of the first process, whose devices udev sees.
const UDEV_NAMESPACE: &str = "/proc/1/ns/net";

/// The two values that defer interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deferral {
    /// `napi_defer_hard_irqs`.
    pub count: u64,
    /// `gro_flush_timeout`, in ns.
    pub timeout_ns: u64,
}

impl Deferral {
    /// Returns the deferral of a request, if it sets both values.
    pub fn of(values: &KnobValues) -> Option<Self> {
        Some(Deferral {
            count: values.number(&table::DEFER_HARD_IRQS)?,
            timeout_ns: values.number(&table::GRO_FLUSH_TIMEOUT)?,
        })
    }
}

/// The change that the rule made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EarlyChange {
    /// The driver's values.
    pub before: Deferral,
    /// The values set instead.
    pub set: Deferral,
}

impl EarlyChange {
    /// Parses udev's database entry of an interface; `None` if the rule did not act on it.
    pub fn parse(text: &str) -> Option<Self> {
        Some(EarlyChange {
            before: property(text, BEFORE)?,
            set: property(text, SET)?,
        })
    }

    fn changes(self) -> [Change; 2] {
        let change = |knob, before, written| Change {
            knob,
            before: Value::Number(before),
            written: Value::Number(written),
        };
        let EarlyChange { before, set } = self;
        let count = ScopedKnob::of_interface(&table::DEFER_HARD_IRQS);
        let timeout = ScopedKnob::of_interface(&table::GRO_FLUSH_TIMEOUT);
        [
            change(count, before.count, set.count),
            change(timeout, before.timeout_ns, set.timeout_ns),
        ]
    }
}

/// Parses `E:NAME=COUNT TIMEOUT`.
fn property(text: &str, name: &str) -> Option<Deferral> {
    let value = |line: &'_ str| -> Option<Deferral> {
        let (count, timeout) = line
            .strip_prefix("E:")?
            .strip_prefix(name)?
            .strip_prefix('=')?
            .split_once(' ')?;
        Some(Deferral {
            count: count.parse().ok()?,
            timeout_ns: timeout.parse().ok()?,
        })
    };
    text.lines().find_map(value)
}

/// Takes the rule's changes over into the journal. Another journal than the machine's does not know which interfaces
/// have a record, so it takes over nothing.
pub fn take_over(switch: &mut Switch) -> Result<(), SwitchError> {
    let journal = &switch.journal().clone();
    let machine = switch.machine();
    if journal.directory() != Path::new(DEFAULT_DIRECTORY) {
        return Ok(());
    }
    let entries = fs::read_dir(DATABASE).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let ifindex = name.to_str().and_then(|name| name.strip_prefix('n'));
        let Some(ifindex) = ifindex.and_then(|ifindex| ifindex.parse::<u32>().ok()) else {
            continue;
        };
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        if let Some(early) = EarlyChange::parse(&text) {
            take_over_one(journal, machine, ifindex, early)?;
        }
    }
    Ok(())
}

/// Opens udev's namespace. The unit has no right to look into the first process: there it is this thread's own.
fn udevs_namespace() -> io::Result<NetNamespace> {
    NetNamespace::open(Path::new(UDEV_NAMESPACE)).or_else(|error| {
        // Each namespace has files of its own there, which anybody may look at.
        let inode = |of| fs::metadata(format!("/proc/{of}/net/dev")).map(|it| it.ino());
        match inode("1")? == inode("thread-self")? {
            true => NetNamespace::current(),
            false => Err(error),
        }
    })
}

fn take_over_one(
    journal: &Journal,
    machine: &mut Machine,
    ifindex: u32,
    early: EarlyChange,
) -> Result<(), SwitchError> {
    let entered = udevs_namespace().and_then(|namespace| machine.enter(namespace));
    let doing = format!("entering the network namespace of the interface with ifindex {ifindex}");
    let netns_inode = entered.map_err(SwitchError::of_io(doing))?;
    let mut links = machine
        .run(netns_inode, |control| control.links())??
        .into_iter();
    let Some(link) = links.find(|link| link.interface.ifindex == ifindex) else {
        return Ok(());
    };
    let target = Target::new(netns_inode, link.interface);
    let changes = early.changes();
    for change in &changes {
        if machine.read(&target, &change.knob)?.as_ref() != Some(&change.written) {
            return Ok(());
        }
    }
    if journal.path_of(&target).exists() {
        return Ok(());
    }
    match journal.take(&target, |record| record.standing = changes.to_vec()) {
        // Another command is taking it over at this moment.
        Ok(_) | Err(SwitchError::Busy(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rules_own_entry_is_read() {
        let entry = "I:1234\nE:ID_NET_DRIVER=e1000\nE:NICPOLL_BEFORE=1 20000\n\
            E:NICPOLL_SET=2147483647 200000\nG:systemd\n";
        let early = EarlyChange::parse(entry).unwrap();
        assert_eq!(early.before.count, 1);
        assert_eq!(early.set.timeout_ns, 200_000);
        for wrong in [
            "",
            "E:NICPOLL_BEFORE=1 20000\n",
            "E:NICPOLL_BEFORE= \nE:NICPOLL_SET=1 2\n",
            "E:NICPOLL_BEFORE=1 -2\nE:NICPOLL_SET=1 2\n",
            "E:NICPOLL_BEFORE=1 2 3\nE:NICPOLL_SET=1 2\n",
            "X:NICPOLL_BEFORE=1 2\nE:NICPOLL_SET=1 2\n",
            "E:NICPOLL_BEFORE=1 99999999999999999999\nE:NICPOLL_SET=1 2\n",
        ] {
            assert_eq!(EarlyChange::parse(wrong), None, "{wrong}");
        }
    }
}
