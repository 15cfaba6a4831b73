//! Changes and restores the settings of a FreeBSD host.
//!
//! The old values are in the journal before the first write. If a command fails, the host is restored, or the message
//! says that it could not be. Only recorded values are restored, and they are read back.

use std::fmt;

use nicpoll_core::{Knob, Poller};
use nicpoll_model::SwitchRestored;

use super::host::{FreebsdHost, Survey};
use super::record::{Changed, EXTENSION, HostRecord};
use super::target::FreebsdTarget;
use crate::error::SwitchError;
use crate::journal::{Entry, Journal, fault_point};

/// A writable variable under kern.polling.
#[derive(Debug)]
pub struct WritableVariable {
    /// The variable.
    pub knob: Knob,
    /// The option of `nicpoll set` that sets it, without the dashes.
    pub option: &'static str,
    /// The largest meaningful value, if the kernel itself has no limit.
    pub max: Option<u32>,
    /// Its range, as text.
    pub range: &'static str,
    /// Its help text.
    pub help: &'static str,
    /// Its counterpart on Linux.
    pub on_linux: &'static str,
}

/// Every writable variable. In this order any values can be written: `each_burst` may not exceed `burst_max`, and
/// lowering `burst_max` lowers it.
static TABLE: [WritableVariable; 5] = [
    WritableVariable {
        knob: Knob::BurstMax,
        option: "burst-max",
        max: None,
        range: "10 to 20000",
        help: "Maximum packets per tick (kern.polling.burst_max), 10 to 20000",
        on_linux: "on Linux the card's ring limits a round (ethtool -G), and net.core.netdev_budget",
    },
    WritableVariable {
        knob: Knob::EachBurst,
        option: "each-burst",
        max: None,
        range: "1 to burst_max",
        help: "Maximum packets per call (kern.polling.each_burst), 1 to burst_max",
        on_linux: "on Linux a poll takes at most 64 packets, which cannot be changed",
    },
    WritableVariable {
        knob: Knob::IdlePoll,
        option: "idle-poll",
        max: Some(1),
        range: "0 or 1",
        help: "Also poll while the CPU is idle (kern.polling.idle_poll), 0 or 1",
        on_linux: "use --busy-poll",
    },
    WritableVariable {
        knob: Knob::UserFrac,
        option: "user-frac",
        max: None,
        range: "0 to 99",
        help: "CPU share reserved for user programs, in percent (kern.polling.user_frac), 0 to 99",
        on_linux: "use --threaded --cpu-share PERCENT, which is 100 - user_frac",
    },
    WritableVariable {
        knob: Knob::RegFrac,
        option: "reg-frac",
        max: None,
        range: "1 to hz",
        help: "Ticks between checks of the card's status (kern.polling.reg_frac), 1 to hz",
        on_linux: "on Linux drivers check the card's status elsewhere",
    },
];

/// Returns every writable variable, in an order in which any values can be written.
pub fn variables() -> impl Iterator<Item = &'static WritableVariable> {
    TABLE.iter()
}

impl WritableVariable {
    /// Its name without the prefix `kern.polling.`.
    pub fn name(&self) -> &'static str {
        self.knob.name()
    }

    /// The table's entry of a variable, if it is writable.
    pub(crate) fn of(knob: Knob) -> Option<&'static WritableVariable> {
        TABLE.iter().find(|variable| variable.knob == knob)
    }
}

/// A requested change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreebsdChange {
    /// Whether the interface is to poll.
    pub polling: bool,
    /// Variables under kern.polling.
    pub knobs: Vec<(Knob, u32)>,
}

/// One value that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreebsdWrite {
    /// A variable under kern.polling, which all interfaces of the host share; `None` stands for the interface's
    /// polling, 0 or 1.
    knob: Option<Knob>,
    from: u32,
    to: u32,
}

impl FreebsdWrite {
    fn new(knob: Option<Knob>, from: impl Into<u32>, to: impl Into<u32>) -> Self {
        let (from, to) = (from.into(), to.into());
        FreebsdWrite { knob, from, to }
    }

    /// Returns the command that makes this write.
    pub fn command(&self, interface: &str) -> String {
        match self.knob {
            Some(_) => format!("sysctl {}={}", self.name(), self.to),
            None if self.to == 0 => format!("ifconfig {interface} -polling"),
            None => format!("ifconfig {interface} polling"),
        }
    }

    fn back(&self) -> FreebsdWrite {
        FreebsdWrite::new(self.knob, self.to, self.from)
    }

    fn name(&self) -> String {
        match self.knob {
            Some(knob) => format!("kern.polling.{}", knob.name()),
            None => String::from("polling"),
        }
    }

    /// The present value on the host; `None` if the kernel has no such variable.
    fn now(&self, survey: &Survey) -> Option<i64> {
        match self.knob {
            Some(knob) => survey.polling.get(knob),
            None => Some(survey.interface.is_polling.into()),
        }
    }

    fn show(&self, value: impl Into<Option<i64>>) -> String {
        match (self.knob, value.into()) {
            (_, None) => String::from("gone"),
            (Some(_), Some(value)) => value.to_string(),
            (None, Some(0)) => String::from("off"),
            (None, Some(_)) => String::from("on"),
        }
    }
}

impl fmt::Display for FreebsdWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, to] = [self.from, self.to].map(|value| self.show(i64::from(value)));
        write!(f, "{} {from} -> {to}", self.name())
    }
}

/// Returns the writes of a requested change. The kernel's own rules ([`nicpoll_core`]) decide the ranges and the side
/// effects.
pub fn plan(
    survey: &Survey,
    target: &FreebsdTarget,
    asked: &FreebsdChange,
) -> Result<Vec<FreebsdWrite>, SwitchError> {
    survey.check(target)?;
    let mut rules = Poller::new(survey.hz).map_err(|_| range(survey, target, Knob::RegFrac, 0))?;
    let now: Vec<(Knob, u32)> = survey.polling.writable().collect();
    for values in [&now, &asked.knobs] {
        for knob in order() {
            for (_, value) in values.iter().filter(|(own, _)| *own == knob) {
                let written = rules.write(knob, *value);
                written.map_err(|_| range(survey, target, knob, *value))?;
            }
        }
    }
    let mut writes = Vec::new();
    for knob in order() {
        let from = now.iter().find(|(known, _)| *known == knob);
        writes.extend(from.map(|(_, from)| FreebsdWrite::new(Some(knob), *from, rules.read(knob))));
    }
    let is_polling = survey.interface.is_polling;
    writes.push(FreebsdWrite::new(
        None,
        is_polling,
        is_polling || asked.polling,
    ));
    writes.retain(|write| write.from != write.to);
    Ok(writes)
}

fn order() -> impl Iterator<Item = Knob> {
    variables().map(|variable| variable.knob)
}

fn range(survey: &Survey, target: &FreebsdTarget, knob: Knob, value: u32) -> SwitchError {
    let range = match WritableVariable::of(knob) {
        Some(variable) if knob == Knob::RegFrac => {
            format!("{}, which is {}", variable.range, survey.hz)
        }
        variable => String::from(variable.map_or("", |variable| variable.range)),
    };
    SwitchError::Failed(format!(
        "kern.polling.{}={value} is out of range on {}: {range}",
        knob.name(),
        target.host()
    ))
}

pub(crate) fn take(journal: &Journal, host: &str) -> Result<Entry<HostRecord>, SwitchError> {
    let new = || Ok(HostRecord::new(host));
    journal.take_as(&HostRecord::file_of(host), |_| Ok(true), new)
}

/// Saves a changed record, or removes it if nothing is left to restore.
pub(crate) fn leave(
    mut entry: Entry<HostRecord>,
    change: impl FnOnce(&mut HostRecord),
) -> Result<(), SwitchError> {
    let mut record = entry.record().clone();
    change(&mut record);
    record.tidy();
    if record.is_empty() {
        return entry.close();
    }
    entry.update(|old| *old = record)
}

/// Makes the changes and checks that they took effect.
///
/// # Errors
/// When a write failed. The old values have been restored then, unless the message says otherwise.
pub fn set(
    journal: &Journal,
    host: &FreebsdHost,
    target: &FreebsdTarget,
    writes: &[FreebsdWrite],
) -> Result<(), SwitchError> {
    if writes.is_empty() {
        return Ok(());
    }
    let mut entry = take(journal, target.host())?;
    let earlier = entry.record().clone();
    entry.update(|record| {
        record.interface(target.interface()).is_set = true;
        for FreebsdWrite { knob, from, to } in writes {
            let (before, written) = (*from, *to);
            match knob {
                Some(knob) => record.note_knob(*knob, Changed { before, written }),
                None => {
                    let (before, written) = (before != 0, written != 0);
                    record.note_polling(target.interface(), Changed { before, written });
                }
            }
        }
    })?;
    let Err(first) = carry_out(host, target, writes) else {
        return Ok(());
    };
    let back: Vec<FreebsdWrite> = writes.iter().map(FreebsdWrite::back).collect();
    if let Err(second) = carry_out(host, target, &back) {
        return Err(first.and_back(&second, &format!(" {target}")));
    }
    leave(entry, |record| *record = earlier)?;
    Err(first)
}

fn carry_out(
    host: &FreebsdHost,
    target: &FreebsdTarget,
    writes: &[FreebsdWrite],
) -> Result<(), SwitchError> {
    for write in writes {
        fault_point();
        host.run(&write.command(target.interface()), "")?;
    }
    let now = host.survey(target.interface())?;
    let is_missed = |write: &&FreebsdWrite| write.now(&now) != Some(write.to.into());
    match writes.iter().find(is_missed) {
        None => Ok(()),
        Some(write) => Err(SwitchError::Failed(format!(
            "{}: {} is {} after it was set to {}; something else changes it too",
            target.host(),
            write.name(),
            write.show(write.now(&now)),
            write.show(i64::from(write.to))
        ))),
    }
}

/// The result of restoring an interface.
#[derive(Clone, Debug, PartialEq)]
pub struct FreebsdRestored {
    /// The writes.
    pub writes: Vec<FreebsdWrite>,
    /// The result as documents have it, with the values that somebody else had changed. `is_as_before` is false if the
    /// kernel no longer has polling: the values went with the old kernel.
    pub document: SwitchRestored,
}

/// Returns the interfaces with a change in force, by the journal. Closes records of killed commands that had changed
/// nothing yet.
pub fn changed_targets(journal: &Journal) -> Result<Vec<FreebsdTarget>, SwitchError> {
    let mut targets = Vec::new();
    for path in journal.paths_ending(EXTENSION)? {
        if let Some(entry) = journal.lock_as::<HostRecord>(&path)? {
            let record = entry.record();
            let set = record.interfaces.iter().filter(|(_, one)| one.is_set);
            targets
                .extend(set.filter_map(|(name, _)| FreebsdTarget::from_parts(&record.host, name)));
            close_if_empty(entry)?;
        }
    }
    Ok(targets)
}

fn lock(
    journal: &Journal,
    target: &FreebsdTarget,
) -> Result<Option<Entry<HostRecord>>, SwitchError> {
    let path = journal.directory().join(HostRecord::file_of(target.host()));
    let entry = journal.lock_as::<HostRecord>(&path)?;
    let Some(entry) = entry else {
        return Ok(None);
    };
    let interface = entry.record().interfaces.get(target.interface());
    if interface.is_some_and(|interface| interface.is_set) {
        return Ok(Some(entry));
    }
    close_if_empty(entry)?;
    Ok(None)
}

/// Closes the record of a command that was killed before its first change.
fn close_if_empty(entry: Entry<HostRecord>) -> Result<(), SwitchError> {
    match entry.record().is_empty() {
        true => entry.close(),
        false => Ok(()),
    }
}

/// The changes of an interface: the record, the host, and the result that [`restore`] would have.
type HostChanges = (Entry<HostRecord>, FreebsdHost, FreebsdRestored);

fn find(journal: &Journal, target: &FreebsdTarget) -> Result<Option<HostChanges>, SwitchError> {
    let Some(entry) = lock(journal, target)? else {
        return Ok(None);
    };
    let host = FreebsdHost::reach(target)?;
    let restored = compare(&host, entry.record(), target)?;
    Ok(Some((entry, host, restored)))
}

/// Returns the result that [`restore`] would have; `None` if nothing was changed there.
pub fn would_restore(
    journal: &Journal,
    target: &FreebsdTarget,
) -> Result<Option<FreebsdRestored>, SwitchError> {
    Ok(find(journal, target)?.map(|(_, _, restored)| restored))
}

/// Restores an interface, and with the last interface of the host the variables of kern.polling; `None` if nothing was
/// changed there.
pub fn restore(
    journal: &Journal,
    target: &FreebsdTarget,
) -> Result<Option<FreebsdRestored>, SwitchError> {
    let Some((entry, host, restored)) = find(journal, target)? else {
        return Ok(None);
    };
    if restored.document.is_as_before {
        carry_out(&host, target, &restored.writes)?;
    }
    leave(entry, |record| {
        if let Some(interface) = record.interfaces.get_mut(target.interface()) {
            interface.is_set = false;
            interface.polling = None;
        }
        if !record.is_set() {
            record.knobs.clear();
        }
    })?;
    Ok(Some(restored))
}

/// Compares a host with its record.
fn compare(
    host: &FreebsdHost,
    record: &HostRecord,
    target: &FreebsdTarget,
) -> Result<FreebsdRestored, SwitchError> {
    let mut document = SwitchRestored {
        interface: target.to_string(),
        is_as_before: true,
        notes: Vec::new(),
    };
    let mut writes = Vec::new();
    let now = match host.survey(target.interface()) {
        Ok(now) => now,
        Err(SwitchError::Missing(_)) => {
            document.is_as_before = false;
            let gone = "its kernel no longer has polling, so there is nothing to put back";
            document.notes.push(String::from(gone));
            return Ok(FreebsdRestored { writes, document });
        }
        Err(error) => return Err(error),
    };
    let own = record.interfaces.get(target.interface());
    let polling = own.and_then(|own| own.polling.as_ref());
    // Each goes from the written value back to the old one.
    let mut recorded: Vec<FreebsdWrite> = Vec::new();
    recorded.extend(polling.map(|one| FreebsdWrite::new(None, one.written, one.before)));
    let mut others = record.interfaces.iter();
    if !others.any(|(name, one)| one.is_set && name != target.interface()) {
        let known = order().filter_map(|knob| Some((knob, record.knobs.get(knob.name())?)));
        let back = |(knob, one): (Knob, &Changed<u32>)| {
            FreebsdWrite::new(Some(knob), one.written, one.before)
        };
        recorded.extend(known.map(back));
    }
    for mut write in recorded {
        let written = i64::from(write.from);
        let Some(is) = write.now(&now) else {
            continue;
        };
        if is != written {
            document.notes.push(format!(
                "{} is {}; nicpoll had set it to {}, and a reboot or somebody else changed it since",
                write.name(),
                write.show(is),
                write.show(written)
            ));
        }
        write.from = u32::try_from(is).unwrap_or(write.from);
        writes.extend((write.from != write.to).then_some(write));
    }
    Ok(FreebsdRestored { writes, document })
}
