//! `HOST:IF`: an interface of a host that is reached by ssh.

use std::fmt;

use crate::knob::ValueError;

/// FreeBSD's IFNAMSIZ without the terminating zero.
const INTERFACE_LENGTH_MAX: usize = 15;
/// Longer than any DNS name with a user before it.
const HOST_LENGTH_MAX: usize = 200;
/// Prefixes that name a part of an interface of this machine, such as `eth0:rx0-3`.
const PARTS: [&str; 3] = ["rx", "tx", "napi"];

/// An interface of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FreebsdTarget {
    host: String,
    interface: String,
}

impl FreebsdTarget {
    /// Parses `[user@]name:IF`, with an IPv6 address in brackets. `None` if the word has another form: the name of an
    /// interface of this machine, or of a part of one.
    ///
    /// # Errors
    /// When the host's part is not a valid name.
    pub fn parse(word: &str) -> Result<Option<FreebsdTarget>, ValueError> {
        let Some((host, interface)) = word.rsplit_once(':') else {
            return Ok(None);
        };
        let is_part = PARTS.iter().any(|part| interface.starts_with(part));
        if is_part || !is_interface(interface) {
            return Ok(None);
        }
        let (user, name) = match host.rsplit_once('@') {
            Some((user, name)) => (Some(user), name),
            None => (None, host),
        };
        let bare = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        if bare.is_none() && name.contains(':') {
            return Err(ValueError(format!(
                "{word}: an IPv6 address is written in brackets, such as [2001:db8::1]:em0"
            )));
        }
        let name = bare.unwrap_or(name);
        let host = match user {
            Some(user) => format!("{user}@{name}"),
            None => String::from(name),
        };
        Self::from_parts(&host, interface)
            .map(Some)
            .ok_or_else(|| ValueError(format!("{word}: '{host}' cannot be a host's name for ssh")))
    }

    /// Finds the FreeBSD interface among the words; `None` if all name interfaces of this machine.
    pub fn among(words: &[String]) -> Result<Option<FreebsdTarget>, ValueError> {
        let targets = words
            .iter()
            .filter_map(|word| FreebsdTarget::parse(word).transpose());
        let mut targets = targets.collect::<Result<Vec<FreebsdTarget>, ValueError>>()?;
        match targets.pop() {
            Some(_) if words.len() > 1 => Err(ValueError(String::from(
                "an interface of a FreeBSD host (HOST:em0) is named alone, one a command",
            ))),
            target => Ok(target),
        }
    }

    /// Makes a target of two names, if they are valid.
    pub(super) fn from_parts(host: &str, interface: &str) -> Option<FreebsdTarget> {
        let is_good = is_host(host) && is_interface(interface);
        is_good.then(|| FreebsdTarget {
            host: String::from(host),
            interface: String::from(interface),
        })
    }

    /// The host as ssh(1) takes it: `[user@]name`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// The driver, by the interface's name without its number; wrong for a renamed interface.
    pub fn driver(&self) -> &str {
        let name = self.interface.split('.').next().unwrap_or_default();
        name.trim_end_matches(|c: char| c.is_ascii_digit())
    }
}

impl fmt::Display for FreebsdTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (user, name) = match self.host.rsplit_once('@') {
            Some((user, name)) => (format!("{user}@"), name),
            None => (String::new(), self.host.as_str()),
        };
        if name.contains(':') {
            write!(f, "{user}[{name}]:{}", self.interface)
        } else {
            write!(f, "{user}{name}:{}", self.interface)
        }
    }
}

/// Whether the name has only letters that ssh, a shell and a file system all take literally.
pub(crate) fn is_host(host: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:%@".contains(c);
    let name = host.split('@').next_back().unwrap_or_default();
    host.len() <= HOST_LENGTH_MAX
        && host.split('@').count() <= 2
        && host.split('@').all(|part| !part.is_empty())
        && !host.starts_with(['-', '.'])
        && !name.starts_with('-')
        && host.chars().all(is_plain)
}

pub(crate) fn is_interface(name: &str) -> bool {
    name.len() <= INTERFACE_LENGTH_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(word: &str) -> Option<String> {
        let target = FreebsdTarget::parse(word).unwrap()?;
        assert_eq!(target.to_string(), word);
        Some(format!("{} {}", target.host(), target.interface()))
    }

    #[test]
    fn a_host_is_what_ssh_takes() {
        assert_eq!(shown("bsd:em0").as_deref(), Some("bsd em0"));
        assert_eq!(
            shown("root@r.example.org:vr1").as_deref(),
            Some("root@r.example.org vr1")
        );
        assert_eq!(
            shown("root@[2001:db8::1]:em0").as_deref(),
            Some("root@2001:db8::1 em0")
        );
        assert_eq!(shown("bsd:em0.7").as_deref(), Some("bsd em0.7"));
    }

    #[test]
    fn parts_of_interfaces_here_are_no_hosts() {
        for word in [
            "eth0",
            "eth0:rx0-3",
            "eth0:rx",
            "eth0:tx0",
            "eth0:napi257",
            "eth0:",
            "eth0:0",
        ] {
            assert_eq!(shown(word), None, "{word}");
        }
    }

    #[test]
    fn what_ssh_or_a_shell_could_take_for_something_else_is_refused() {
        for word in [
            "-oProxyCommand=x:em0",
            "u@-l:em0",
            "::1:em0",
            "a b:em0",
            "a;b:em0",
            "a/b:em0",
            ":em0",
            "@h:em0",
            "u@:em0",
            "a@b@c:em0",
            "..:em0",
        ] {
            assert!(FreebsdTarget::parse(word).is_err(), "{word}");
        }
        for interface in ["em0;reboot", "em0 -polling", "$em", "a23456789012345x"] {
            assert_eq!(
                FreebsdTarget::from_parts("bsd", interface),
                None,
                "{interface}"
            );
        }
    }

    #[test]
    fn the_driver_is_the_name_without_its_number() {
        let driver = |name| {
            let target = FreebsdTarget::from_parts("bsd", name).unwrap();
            String::from(target.driver())
        };
        assert_eq!(driver("em0"), "em");
        assert_eq!(driver("fwip12"), "fwip");
        assert_eq!(driver("em0.7"), "em");
    }
}
