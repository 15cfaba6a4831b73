//! The line of /etc/rc.conf that configures an interface at boot: `ifconfig_em0="... polling"`.
//!
//! rc.conf is a shell script. Only a line of the plain form is changed, all else is refused: a line that
//! reads otherwise than the shell reads it could leave the host without its network.

use thiserror::Error;

/// Why the line cannot be changed by rule, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RcConfError {
    /// There is none.
    #[error(
        "there is no line {start}\"...\", and a new one would hide what configures {interface} now; write one with \
         the word polling in it"
    )]
    NoLine {
        /// What the line begins with.
        start: String,
        /// The interface.
        interface: String,
    },
    /// The last one would count, and whoever reads the file may not know.
    #[error("{0} stands there more than once; leave one line")]
    Several(String),
    /// Only a shell knows what it means.
    #[error("{line}: only a line of the form {start}\"...\" is changed; add polling by hand")]
    NotPlain {
        /// The line.
        line: String,
        /// What it begins with.
        start: String,
    },
    /// What stands there cannot be read.
    #[error("its text or its checksum cannot be read, so it is not changed; edit it by hand")]
    Unread,
    /// Somebody changed the file.
    #[error(
        "the line '{0}' is not there once, so nothing was changed; say it again, or edit it by hand"
    )]
    Changed(String),
}

/// ifconfig(8)'s word.
const POLLING: &str = "polling";

/// The interface's line as it is, and with the word `polling`; `None` when the word is there.
///
/// # Errors
/// Why the line cannot be changed by rule, and what to do.
pub fn with_polling(text: &str, interface: &str) -> Result<Option<(String, String)>, RcConfError> {
    let start = format!("ifconfig_{interface}=");
    let mut lines = text
        .lines()
        .filter(|line| line.trim_start().starts_with(&start));
    let line = lines.next().ok_or_else(|| RcConfError::NoLine {
        start: start.clone(),
        interface: String::from(interface),
    })?;
    if lines.next().is_some() {
        return Err(RcConfError::Several(start));
    }
    let plain = RcConfError::NotPlain {
        line: String::from(line),
        start,
    };
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

/// The text with one line replaced; `None` when it is not there exactly once.
pub fn replaced(text: &str, from: &str, to: &str) -> Option<String> {
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
