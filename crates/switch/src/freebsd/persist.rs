//! The word `polling` in the host's /etc/rc.conf, and taking it out again.
//!
//! What must hold: the file is replaced as a whole, keeps its mode and owner, and only if it is still the
//! one that was read; the line that was there is in the journal before.

use super::error::FreebsdError;
use super::host::FreebsdHost;
use super::rc_conf::{RcConfError, replaced, with_polling};
use super::record::HostRecord;
use super::switch::{leave, take};
use super::target::FreebsdTarget;
use crate::journal::Journal;
use crate::journal::fault_point;

/// A checksum first, by which it is seen that nobody wrote to it meanwhile.
const READ: &str = "/bin/sh -c 'cksum </etc/rc.conf && cat /etc/rc.conf'";

/// One line of /etc/rc.conf as it is, and as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineChange {
    /// The host.
    pub host: String,
    /// Now.
    pub before: String,
    /// To be.
    pub after: String,
}

impl LineChange {
    /// The difference, as `diff -u` would mark it.
    pub fn diff(&self) -> String {
        let LineChange {
            host,
            before,
            after,
        } = self;
        format!("--- {host}:/etc/rc.conf\n+++ {host}:/etc/rc.conf\n-{before}\n+{after}\n")
    }
}

struct RcConf {
    checksum: String,
    text: String,
}

fn read(host: &FreebsdHost) -> Result<RcConf, FreebsdError> {
    let text = host.ssh().run(READ)?;
    let (checksum, text) = text.split_once('\n').unwrap_or_default();
    let is_checksum = checksum.split(' ').count() == 2
        && checksum
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b' ');
    if !is_checksum || text.contains(char::REPLACEMENT_CHARACTER) {
        return Err(refused(host, RcConfError::Unread));
    }
    Ok(RcConf {
        checksum: String::from(checksum),
        text: String::from(text),
    })
}

fn refused(host: &FreebsdHost, reason: RcConfError) -> FreebsdError {
    FreebsdError::RcConf {
        host: String::from(host.ssh().host()),
        reason,
    }
}

/// What [`persist`] would change; `None` when the word is there already.
pub fn would_persist(
    host: &FreebsdHost,
    target: &FreebsdTarget,
) -> Result<Option<LineChange>, FreebsdError> {
    let lines = with_polling(&read(host)?.text, target.interface());
    let lines = lines.map_err(|reason| refused(host, reason))?;
    Ok(lines.map(|(before, after)| LineChange {
        host: String::from(target.host()),
        before,
        after,
    }))
}

/// Makes a change that was shown.
pub fn persist(
    journal: &Journal,
    host: &FreebsdHost,
    target: &FreebsdTarget,
    change: &LineChange,
) -> Result<(), FreebsdError> {
    let mut entry = take(journal, target.host())?;
    let earlier = entry.record().clone();
    entry.update(|record| record.note_line(target.interface(), &change.before, &change.after))?;
    fault_point();
    let Err(error) = write(host, change) else {
        return Ok(());
    };
    // What was sent may have arrived nevertheless.
    let is_written = read(host)?.text.lines().any(|line| line == change.after);
    if !is_written {
        leave(entry, |record| *record = earlier)?;
    }
    Err(error)
}

/// What [`no_persist`] would change; `None` when nicpoll changed nothing there.
pub fn would_no_persist(
    journal: &Journal,
    target: &FreebsdTarget,
) -> Result<Option<LineChange>, FreebsdError> {
    let path = journal.directory().join(HostRecord::file_of(target.host()));
    let Some(entry) = journal.lock_as::<HostRecord>(&path)? else {
        return Ok(None);
    };
    let interface = entry.record().interfaces.get(target.interface());
    let line = interface.and_then(|interface| interface.rc_conf.as_ref());
    Ok(line.map(|line| LineChange {
        host: String::from(target.host()),
        before: line.written.clone(),
        after: line.before.clone(),
    }))
}

/// Puts back the line that [`persist`] changed. One that was put back already is left.
pub fn no_persist(
    journal: &Journal,
    host: &FreebsdHost,
    target: &FreebsdTarget,
    change: &LineChange,
) -> Result<(), FreebsdError> {
    let entry = take(journal, target.host())?;
    let is_done = read(host)?.text.lines().any(|line| line == change.after);
    if !is_done {
        fault_point();
        write(host, change)?;
    }
    leave(entry, |record| {
        if let Some(interface) = record.interfaces.get_mut(target.interface()) {
            interface.rc_conf = None;
        }
    })?;
    Ok(())
}

fn write(host: &FreebsdHost, change: &LineChange) -> Result<(), FreebsdError> {
    let RcConf { checksum, text } = read(host)?;
    let text = replaced(&text, &change.before, &change.after)
        .ok_or_else(|| refused(host, RcConfError::Changed(change.before.clone())))?;
    // A connection that breaks looks like the end of the text, so its length is part of the command.
    let length = text.len();
    let command = format!(
        "/bin/sh -c 'test \"$(cksum </etc/rc.conf)\" = \"{checksum}\" && \
         cp -p /etc/rc.conf /etc/rc.conf.nicpoll && cat >/etc/rc.conf.nicpoll && \
         test $(wc -c </etc/rc.conf.nicpoll) -eq {length} && \
         mv -f /etc/rc.conf.nicpoll /etc/rc.conf'"
    );
    host.ssh().run_with(&command, &text)?;
    Ok(())
}
