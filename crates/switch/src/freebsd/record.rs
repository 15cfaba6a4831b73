//! The record of a host: the changed interfaces, and the variables of kern.polling, which they share.
//!
//! Bytes that are not exactly a record of this version are refused: every name in a record may appear in a command.

use std::collections::BTreeMap;

use nicpoll_core::{Access, Knob};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::target::{is_host, is_interface};
use crate::journal::{Content, check_version};

const VERSION: u32 = 1;
/// The extension of record files.
pub(crate) const EXTENSION: &str = "host";

/// A value that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changed<T> {
    /// The value before.
    pub before: T,
    /// The value written.
    pub written: T,
}

impl<T> Changed<T> {
    /// Merges with an `earlier` change of the same value, whose old value counts.
    fn after(self, earlier: Option<Self>) -> Self {
        let before = earlier.map_or(self.before, |earlier| earlier.before);
        Changed { before, ..self }
    }
}

/// The changes of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InterfaceRecord {
    /// Whether a change of this interface, or one made with it, is in force.
    pub is_set: bool,
    /// The change of its polling; null if it was not changed.
    pub polling: Option<Changed<bool>>,
    /// The change of its line in /etc/rc.conf; null if it was not changed.
    pub rc_conf: Option<Changed<String>>,
}

/// Everything needed to restore one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRecord {
    version: u32,
    pub(crate) host: String,
    pub(crate) interfaces: BTreeMap<String, InterfaceRecord>,
    /// By name, without the prefix `kern.polling.`.
    pub(crate) knobs: BTreeMap<String, Changed<u32>>,
}

impl HostRecord {
    /// Creates a record of a host without changes.
    pub(crate) fn new(host: &str) -> Self {
        HostRecord {
            version: VERSION,
            host: String::from(host),
            interfaces: BTreeMap::new(),
            knobs: BTreeMap::new(),
        }
    }

    /// The name of a host's file. Every letter that a host's name may have is allowed in file names.
    pub(crate) fn file_of(host: &str) -> String {
        format!("{host}.{EXTENSION}")
    }

    /// Parses a record.
    ///
    /// # Errors
    /// When the bytes are not exactly a record of this version. No input panics.
    pub fn parse(bytes: &[u8]) -> Result<HostRecord, serde_json::Error> {
        let record: HostRecord = serde_json::from_slice(bytes)?;
        check_version(record.version, VERSION)?;
        let is_writable = |name: &String| {
            Knob::ALL
                .iter()
                .any(|knob| knob.name() == name && knob.access() == Access::ReadWrite)
        };
        let is_line = |line: &String| !line.contains(['\n', '\r', '\0']);
        let are_lines = record.interfaces.values().all(|interface| {
            let rc_conf = interface.rc_conf.as_ref();
            rc_conf.is_none_or(|line| is_line(&line.before) && is_line(&line.written))
        });
        let are_names = is_host(&record.host)
            && record.interfaces.keys().all(|name| is_interface(name))
            && record.knobs.keys().all(is_writable);
        if are_names && are_lines {
            Ok(record)
        } else {
            let why = "it has names that nicpoll does not write";
            Err(serde_json::Error::custom(why))
        }
    }

    /// Returns the changes of an interface, empty ones if it is new.
    pub(crate) fn interface(&mut self, name: &str) -> &mut InterfaceRecord {
        self.interfaces.entry(String::from(name)).or_default()
    }

    pub(crate) fn note_polling(&mut self, interface: &str, changed: Changed<bool>) {
        let polling = &mut self.interface(interface).polling;
        *polling = Some(changed.after(polling.take()));
    }

    pub(crate) fn note_knob(&mut self, knob: Knob, changed: Changed<u32>) {
        let earlier = self.knobs.remove(knob.name());
        let changed = changed.after(earlier);
        self.knobs.insert(String::from(knob.name()), changed);
    }

    /// Whether any change is in force on the host.
    pub(crate) fn is_set(&self) -> bool {
        self.interfaces.values().any(|interface| interface.is_set)
    }

    /// Removes interfaces whose values have all been restored.
    pub(crate) fn tidy(&mut self) {
        self.interfaces
            .retain(|_, interface| interface.is_set || interface.rc_conf.is_some());
    }

    /// Whether nothing is left to restore.
    pub(crate) fn is_empty(&self) -> bool {
        self.interfaces.is_empty() && self.knobs.is_empty()
    }
}

impl Content for HostRecord {
    fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        HostRecord::parse(bytes)
    }

    fn file_name(&self) -> String {
        Self::file_of(&self.host)
    }

    fn busy(&self) -> String {
        let host = &self.host;
        format!("{host} is being changed by another nicpoll; wait until it ends")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_as_it_was_written_and_a_foreign_one_is_refused() {
        let mut record = HostRecord::new("root@bsd");
        let (before, written) = (false, true);
        record.note_polling("em0", Changed { before, written });
        for (before, written) in [(50, 20), (20, 10)] {
            record.note_knob(Knob::UserFrac, Changed { before, written });
        }
        record.interface("em0").rc_conf = Some(Changed {
            before: String::from("ifconfig_em0=\"up\""),
            written: String::from("ifconfig_em0=\"up polling\""),
        });
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(HostRecord::parse(text.as_bytes()).unwrap(), record);
        let user_frac = &record.knobs["user_frac"];
        assert_eq!((user_frac.before, user_frac.written), (50, 10));
        for (from, to) in [
            ("root@bsd", "-oProxyCommand=x"),
            ("\"em0\"", "\"em0;reboot\""),
            ("user_frac", "burst"),
            ("user_frac", "x y"),
            ("\"version\":1", "\"version\":2"),
            ("\"knobs\"", "\"other\":1,\"knobs\""),
            ("=\\\"up\\\"", "\\nreboot"),
        ] {
            let foreign = text.replace(from, to);
            assert_ne!(foreign, text, "{from}");
            assert!(HostRecord::parse(foreign.as_bytes()).is_err(), "{to}");
        }
        assert!(HostRecord::parse(&text.as_bytes()[..text.len() / 2]).is_err());
    }
}
