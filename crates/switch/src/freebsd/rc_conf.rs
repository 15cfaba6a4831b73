//! The word `polling` in the host's /etc/rc.conf, in the line that configures an interface at boot.
//!
//! rc.conf is a shell script. Only a line of the plain form is changed, all others are refused: a misread line could
//! leave the host without its network. The file is replaced as a whole, keeps its mode and owner, and only if its
//! checksum is still the one read. The old line is in the journal before the write.

use super::change::{leave, take};
use super::host::FreebsdHost;
use super::record::{Changed, HostRecord};
use super::target::FreebsdTarget;
use crate::error::SwitchError;
use crate::journal::{Journal, fault_point};
use crate::knob::ValueError;

/// ifconfig(8)'s word.
const POLLING: &str = "polling";

/// Returns the interface's line as it is and with the word `polling`; `None` if the word is there already.
///
/// # Errors
/// Why the line cannot be changed automatically, and what to do.
pub fn with_polling(text: &str, interface: &str) -> Result<Option<(String, String)>, ValueError> {
    let start = format!("ifconfig_{interface}=");
    let mut lines = text
        .lines()
        .filter(|line| line.trim_start().starts_with(&start));
    let line = lines.next().ok_or_else(|| {
        ValueError(format!(
            "there is no line {start}\"...\", and a new one would override the present configuration of {interface}; write one with \
             the word polling in it"
        ))
    })?;
    if lines.next().is_some() {
        let several = format!("{start} is there more than once; leave one line");
        return Err(ValueError(several));
    }
    let plain = ValueError(format!(
        "{line}: only a line of the form {start}\"...\" is changed; add polling by hand"
    ));
    let (before, rest) = line.split_once('=').ok_or_else(|| plain.clone())?;
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let quote = quote.ok_or_else(|| plain.clone())?;
    let (value, after) = rest[1..].split_once(quote).ok_or_else(|| plain.clone())?;
    let is_comment = after.trim().is_empty() || after.trim_start().starts_with('#');
    let is_plain = !value.contains(['\\', '$', '`', '"', '\'']);
    if !is_comment || !is_plain {
        return Err(plain);
    }
    if value.split_whitespace().any(|word| word == POLLING) {
        return Ok(None);
    }
    let words: Vec<&str> = value.split_whitespace().chain([POLLING]).collect();
    let changed = format!("{before}={quote}{}{quote}{after}", words.join(" "));
    Ok(Some((String::from(line), changed)))
}

/// Returns the text with one line replaced; `None` unless the line is there exactly once.
fn replaced(text: &str, from: &str, to: &str) -> Option<String> {
    if text.lines().filter(|line| *line == from).count() != 1 {
        return None;
    }
    let replace = |line: &str| {
        let end = &line[line.trim_end_matches(['\n', '\r']).len()..];
        match line.trim_end_matches(['\n', '\r']) == from {
            true => format!("{to}{end}"),
            false => String::from(line),
        }
    };
    Some(text.split_inclusive('\n').map(replace).collect())
}

/// Prints the checksum first: a later write compares it to see whether somebody else wrote meanwhile.
const READ: &str = "/bin/sh -c 'cksum </etc/rc.conf && cat /etc/rc.conf'";

/// Returns the change of a host's /etc/rc.conf, as `diff -u` would mark it.
pub fn diff(target: &FreebsdTarget, change: &Changed<String>) -> String {
    let (host, Changed { before, written }) = (target.host(), change);
    format!("--- {host}:/etc/rc.conf\n+++ {host}:/etc/rc.conf\n-{before}\n+{written}\n")
}

/// The checksum and the text.
fn read(host: &FreebsdHost) -> Result<(String, String), SwitchError> {
    let text = host.run(READ, "")?;
    let (checksum, text) = text.split_once('\n').unwrap_or_default();
    let is_checksum = checksum.split(' ').count() == 2
        && checksum
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b' ');
    if !is_checksum || text.contains(char::REPLACEMENT_CHARACTER) {
        let reason =
            "its text or its checksum cannot be read, so it is not changed; edit it by hand";
        return Err(refused(host, ValueError(String::from(reason))));
    }
    Ok((String::from(checksum), String::from(text)))
}

fn refused(host: &FreebsdHost, reason: ValueError) -> SwitchError {
    SwitchError::Failed(format!("/etc/rc.conf of {}: {reason}", host.name))
}

/// Returns the change that [`persist`] would make; `None` if the word is there already.
pub fn would_persist(
    host: &FreebsdHost,
    target: &FreebsdTarget,
) -> Result<Option<Changed<String>>, SwitchError> {
    let lines = with_polling(&read(host)?.1, target.interface());
    let lines = lines.map_err(|reason| refused(host, reason))?;
    Ok(lines.map(|(before, written)| Changed { before, written }))
}

/// Makes a change that [`would_persist`] returned.
pub fn persist(
    journal: &Journal,
    host: &FreebsdHost,
    target: &FreebsdTarget,
    change: &Changed<String>,
) -> Result<(), SwitchError> {
    let mut entry = take(journal, target.host())?;
    let earlier = entry.record().clone();
    // The present line is recorded as the old one: a line with nicpoll's word in it would need no change.
    entry.update(|record| {
        record.interface(target.interface()).rc_conf = Some(change.clone());
    })?;
    fault_point();
    let Err(error) = write(host, change) else {
        return Ok(());
    };
    // The write may have succeeded before the error.
    if !is_there(host, &change.written)? {
        leave(entry, |record| *record = earlier)?;
    }
    Err(error)
}

/// Returns the change that [`no_persist`] would make; `None` if nicpoll changed nothing there.
pub fn would_no_persist(
    journal: &Journal,
    target: &FreebsdTarget,
) -> Result<Option<Changed<String>>, SwitchError> {
    let path = journal.directory().join(HostRecord::file_of(target.host()));
    let Some(entry) = journal.lock_as::<HostRecord>(&path)? else {
        return Ok(None);
    };
    let interface = entry.record().interfaces.get(target.interface());
    let line = interface.and_then(|interface| interface.rc_conf.as_ref());
    Ok(line.map(|line| Changed {
        before: line.written.clone(),
        written: line.before.clone(),
    }))
}

/// Restores the line that [`persist`] changed, unless it is restored already.
pub fn no_persist(
    journal: &Journal,
    host: &FreebsdHost,
    target: &FreebsdTarget,
    change: &Changed<String>,
) -> Result<(), SwitchError> {
    let entry = take(journal, target.host())?;
    if !is_there(host, &change.written)? {
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

fn is_there(host: &FreebsdHost, wanted: &str) -> Result<bool, SwitchError> {
    let (_, text) = read(host)?;
    Ok(text.lines().any(|line| line == wanted))
}

fn write(host: &FreebsdHost, change: &Changed<String>) -> Result<(), SwitchError> {
    let (checksum, text) = read(host)?;
    let text = replaced(&text, &change.before, &change.written).ok_or_else(|| {
        let line = &change.before;
        let reason = format!(
            "the line '{line}' is not there exactly once, so nothing was changed; repeat the command, or edit the file"
        );
        refused(host, ValueError(reason))
    })?;
    // A broken connection looks like the end of the text, so the command checks the length.
    let length = text.len();
    let command = format!(
        "/bin/sh -c 'test \"$(cksum </etc/rc.conf)\" = \"{checksum}\" && \
         cp -p /etc/rc.conf /etc/rc.conf.nicpoll && cat >/etc/rc.conf.nicpoll && \
         test $(wc -c </etc/rc.conf.nicpoll) -eq {length} && \
         mv -f /etc/rc.conf.nicpoll /etc/rc.conf'"
    );
    host.run(&command, &text)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("../../../../fuzz/seeds/freebsd_output/rc_conf");

    #[test]
    fn one_word_is_added_and_nothing_else_changes() {
        let (from, to) = with_polling(TEXT, "em0").unwrap().unwrap();
        assert_eq!(
            to,
            "ifconfig_em0=\"inet 192.0.2.1 netmask 255.255.255.0 polling\"  # uplink"
        );
        let changed = replaced(TEXT, &from, &to).unwrap();
        assert_eq!(changed, TEXT.replace("255.0\"  #", "255.0 polling\"  #"));
        assert_eq!(with_polling(&changed, "em0"), Ok(None));
        assert_eq!(replaced(&changed, &to, &from).as_deref(), Some(TEXT));
        assert_eq!(replaced(&changed, &from, &to), None);
        let (_, to) = with_polling(TEXT, "em1").unwrap().unwrap();
        assert_eq!(to, "ifconfig_em1=\"DHCP polling\"");
        // A last line without an end stays so.
        assert_eq!(replaced("a\nb", "b", "c").as_deref(), Some("a\nc"));
    }

    #[test]
    fn what_the_shell_may_read_otherwise_is_refused() {
        for text in [
            "",
            "# ifconfig_em0=\"up\"\n",
            "ifconfig_em0=DHCP\n",
            "ifconfig_em0=\"inet 192.0.2.1\n",
            "ifconfig_em0=\"inet $address\"\n",
            "ifconfig_em0=\"up\"; reboot\n",
            "ifconfig_em0=\"up\"\nifconfig_em0=\"down\"\n",
            "ifconfig_em0=\n",
        ] {
            assert!(with_polling(text, "em0").is_err(), "{text}");
        }
    }
}
