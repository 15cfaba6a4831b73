//! Changes of a host, and putting them back.
//!
//! What must hold: what was there is in the journal before the first command that changes something; a
//! command line that fails leaves the host as it found it, or says that it could not; what is put back is
//! what the record says, and is read again.

use std::fmt;

use nicpoll_core::{Knob, Poller};

use super::error::FreebsdError;
use super::host::{FreebsdHost, Survey};
use super::record::{EXTENSION, HostRecord};
use super::ssh::Ssh;
use super::target::FreebsdTarget;
use super::variables::{Variable, variables};
use crate::journal::fault_point;
use crate::journal::{Entry, Journal, JournalError};

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreebsdChange {
    /// The interface is to poll.
    pub polling: bool,
    /// Variables under kern.polling.
    pub knobs: Vec<(Knob, u32)>,
}

/// One value that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreebsdWrite {
    /// Whether the interface polls.
    Polling {
        /// Now.
        from: bool,
        /// To be.
        to: bool,
    },
    /// A variable under kern.polling, for all interfaces of the host.
    Knob {
        /// Which.
        knob: Knob,
        /// Now.
        from: u32,
        /// To be.
        to: u32,
    },
}

impl FreebsdWrite {
    /// The command that makes it.
    pub fn command(&self, interface: &str) -> String {
        match self {
            FreebsdWrite::Polling { to: true, .. } => format!("ifconfig {interface} polling"),
            FreebsdWrite::Polling { to: false, .. } => format!("ifconfig {interface} -polling"),
            FreebsdWrite::Knob { knob, to, .. } => {
                format!("sysctl kern.polling.{}={to}", knob.name())
            }
        }
    }

    fn back(&self) -> FreebsdWrite {
        match *self {
            FreebsdWrite::Polling { from, to } => FreebsdWrite::Polling { from: to, to: from },
            FreebsdWrite::Knob { knob, from, to } => FreebsdWrite::Knob {
                knob,
                from: to,
                to: from,
            },
        }
    }

    /// The value's name, with what it is on the host and what it was to be, if that differs.
    fn missed(&self, now: &Survey) -> Option<(String, String, String)> {
        match *self {
            FreebsdWrite::Polling { to, .. } => {
                let is = now.interface.is_polling;
                let name = String::from("polling");
                (is != to).then(|| (name, on_off(to).into(), on_off(is).into()))
            }
            FreebsdWrite::Knob { knob, to, .. } => {
                let is = now.polling.get(knob);
                let shown = is.map_or_else(|| String::from("gone"), |is| is.to_string());
                (is != Some(i64::from(to))).then(|| (name_of(knob), to.to_string(), shown))
            }
        }
    }
}

impl fmt::Display for FreebsdWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FreebsdWrite::Polling { from, to } => {
                write!(f, "polling {} -> {}", on_off(*from), on_off(*to))
            }
            FreebsdWrite::Knob { knob, from, to } => write!(f, "{} {from} -> {to}", name_of(*knob)),
        }
    }
}

fn on_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

fn name_of(knob: Knob) -> String {
    format!("kern.polling.{}", knob.name())
}

/// What has to be written so that the host is as asked. The kernel's own rules decide what is in range and
/// what changes along: they are those of [`nicpoll_core`].
pub fn plan(
    survey: &Survey,
    target: &FreebsdTarget,
    asked: &FreebsdChange,
) -> Result<Vec<FreebsdWrite>, FreebsdError> {
    survey.check(target)?;
    let mut rules = Poller::new(survey.hz).map_err(|_| range(survey, target, Knob::RegFrac, 0))?;
    let now: Vec<(Knob, u32)> = survey.polling.writable().collect();
    for knob in order() {
        if let Some((_, value)) = now.iter().find(|(known, _)| *known == knob) {
            let written = rules.write(knob, *value);
            written.map_err(|_| range(survey, target, knob, *value))?;
        }
    }
    for knob in order() {
        for (_, value) in asked.knobs.iter().filter(|(wanted, _)| *wanted == knob) {
            let written = rules.write(knob, *value);
            written.map_err(|_| range(survey, target, knob, *value))?;
        }
    }
    let mut writes = Vec::new();
    for knob in order() {
        let to = rules.read(knob);
        let from = now.iter().find(|(known, _)| *known == knob);
        if let Some((_, from)) = from.filter(|(_, from)| *from != to) {
            writes.push(FreebsdWrite::Knob {
                knob,
                from: *from,
                to,
            });
        }
    }
    if asked.polling && !survey.interface.is_polling {
        writes.push(FreebsdWrite::Polling {
            from: false,
            to: true,
        });
    }
    Ok(writes)
}

fn order() -> impl Iterator<Item = Knob> {
    variables().map(|variable| variable.knob)
}

fn range(survey: &Survey, target: &FreebsdTarget, knob: Knob, value: u32) -> FreebsdError {
    let range = match Variable::of(knob) {
        Some(variable) if knob == Knob::RegFrac => {
            format!("{}, which is {}", variable.range, survey.hz)
        }
        variable => String::from(variable.map_or("", |variable| variable.range)),
    };
    FreebsdError::Range {
        host: String::from(target.host()),
        knob: knob.name(),
        value,
        range,
    }
}

pub(crate) fn take(journal: &Journal, host: &str) -> Result<Entry<HostRecord>, JournalError> {
    let new = || Ok(HostRecord::new(host));
    journal.take_as(&HostRecord::file_of(host), |_| Ok(true), new)
}

/// Leaves a record as it is to be, or none when it says nothing.
pub(crate) fn leave(
    mut entry: Entry<HostRecord>,
    change: impl FnOnce(&mut HostRecord),
) -> Result<(), JournalError> {
    let mut record = entry.record().clone();
    change(&mut record);
    record.tidy();
    if record.is_empty() {
        return entry.close();
    }
    entry.update(|old| *old = record)
}

/// Makes the changes, and sees that they were taken.
///
/// # Errors
/// Everything has been put back then, unless it is [`FreebsdError::AndBack`].
pub fn set(
    journal: &Journal,
    host: &FreebsdHost,
    target: &FreebsdTarget,
    writes: &[FreebsdWrite],
) -> Result<(), FreebsdError> {
    if writes.is_empty() {
        return Ok(());
    }
    let mut entry = take(journal, target.host())?;
    let earlier = entry.record().clone();
    entry.update(|record| {
        let name = String::from(target.interface());
        record.interfaces.entry(name).or_default().is_set = true;
        for write in writes {
            match *write {
                FreebsdWrite::Polling { from, to } => {
                    record.note_polling(target.interface(), from, to)
                }
                FreebsdWrite::Knob { knob, from, to } => record.note_knob(knob, from, to),
            }
        }
    })?;
    let Err(first) = carry_out(host, target, writes) else {
        return Ok(());
    };
    let back: Vec<FreebsdWrite> = writes.iter().map(FreebsdWrite::back).collect();
    if let Err(second) = carry_out(host, target, &back) {
        return Err(FreebsdError::AndBack {
            target: target.to_string(),
            first: Box::new(first),
            second: Box::new(second),
        });
    }
    leave(entry, |record| *record = earlier)?;
    Err(first)
}

fn carry_out(
    host: &FreebsdHost,
    target: &FreebsdTarget,
    writes: &[FreebsdWrite],
) -> Result<(), FreebsdError> {
    for write in writes {
        fault_point();
        host.ssh().run(&write.command(target.interface()))?;
    }
    let now = host.survey(target.interface())?;
    match writes.iter().find_map(|write| write.missed(&now)) {
        None => Ok(()),
        Some((what, asked, is)) => Err(FreebsdError::NotTaken {
            host: String::from(target.host()),
            what,
            asked,
            is,
        }),
    }
}

/// What became of an interface that was to be put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreebsdRestored {
    /// What is written.
    pub writes: Vec<FreebsdWrite>,
    /// Values that somebody else had changed since, in words.
    pub drift: Vec<String>,
    /// Whether the kernel has polling no more, so that every value went with the one that had.
    pub is_gone: bool,
}

/// The interfaces on which something is in force, by the journal. Records of killed commands that had changed
/// nothing yet are closed.
pub fn changed_targets(journal: &Journal) -> Result<Vec<FreebsdTarget>, FreebsdError> {
    let mut targets = Vec::new();
    for path in journal.paths_ending(EXTENSION)? {
        if let Some(entry) = journal.lock_as::<HostRecord>(&path)? {
            let record = entry.record();
            let set = record.interfaces.iter().filter(|(_, one)| one.is_set);
            targets
                .extend(set.filter_map(|(name, _)| FreebsdTarget::from_parts(&record.host, name)));
            if record.is_empty() {
                // Its writer was killed before it had changed anything.
                entry.close()?;
            }
        }
    }
    Ok(targets)
}

fn lock(
    journal: &Journal,
    target: &FreebsdTarget,
) -> Result<Option<Entry<HostRecord>>, JournalError> {
    let path = journal.directory().join(HostRecord::file_of(target.host()));
    let entry = journal.lock_as::<HostRecord>(&path)?;
    let Some(entry) = entry else {
        return Ok(None);
    };
    let interface = entry.record().interfaces.get(target.interface());
    if interface.is_some_and(|interface| interface.is_set) {
        return Ok(Some(entry));
    }
    if entry.record().is_empty() {
        // Its writer was killed before it had changed anything.
        entry.close()?;
    }
    Ok(None)
}

/// What [`restore`] would do; `None` when nothing was changed there.
pub fn would_restore(
    journal: &Journal,
    target: &FreebsdTarget,
) -> Result<Option<FreebsdRestored>, FreebsdError> {
    let Some(entry) = lock(journal, target)? else {
        return Ok(None);
    };
    let host = FreebsdHost::reach(Ssh::to(target))?;
    compare(&host, entry.record(), target).map(Some)
}

/// Puts an interface back, and the variables of kern.polling with the last interface of the host; `None`
/// when nothing was changed there.
pub fn restore(
    journal: &Journal,
    target: &FreebsdTarget,
) -> Result<Option<FreebsdRestored>, FreebsdError> {
    let Some(entry) = lock(journal, target)? else {
        return Ok(None);
    };
    let host = FreebsdHost::reach(Ssh::to(target))?;
    let restored = compare(&host, entry.record(), target)?;
    if !restored.is_gone {
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
) -> Result<FreebsdRestored, FreebsdError> {
    let mut restored = FreebsdRestored {
        writes: Vec::new(),
        drift: Vec::new(),
        is_gone: false,
    };
    let now = match host.survey(target.interface()) {
        Ok(now) => now,
        Err(FreebsdError::NoDevicePolling { .. }) => {
            restored.is_gone = true;
            return Ok(restored);
        }
        Err(error) => return Err(error),
    };
    let mut note = |name: &str, is: String, written: String| {
        if is != written {
            restored.drift.push(format!(
                "{name} is {is}; nicpoll had set it to {written}, and a reboot or somebody else changed it since"
            ));
        }
    };
    let own = record.interfaces.get(target.interface());
    if let Some(polling) = own.and_then(|own| own.polling.as_ref()) {
        let from = now.interface.is_polling;
        note(
            "polling",
            on_off(from).into(),
            on_off(polling.written).into(),
        );
        let to = polling.before;
        restored
            .writes
            .extend((from != to).then_some(FreebsdWrite::Polling { from, to }));
    }
    let others = record.interfaces.iter();
    let is_last = !others
        .clone()
        .any(|(name, one)| one.is_set && name != target.interface());
    let values: Vec<(Knob, u32)> = now.polling.writable().collect();
    for knob in order().filter(|_| is_last) {
        let recorded = record.knobs.get(knob.name());
        let is = values.iter().find(|(known, _)| *known == knob);
        let (Some(recorded), Some((_, from))) = (recorded, is) else {
            continue;
        };
        note(
            &name_of(knob),
            from.to_string(),
            recorded.written.to_string(),
        );
        let (from, to) = (*from, recorded.before);
        restored
            .writes
            .extend((from != to).then_some(FreebsdWrite::Knob { knob, from, to }));
    }
    Ok(restored)
}
