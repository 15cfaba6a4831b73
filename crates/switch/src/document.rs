//! What was done, as the documents of [`nicpoll_model`].

use std::path::Path;

use nicpoll_model::{DriftShow, SwitchFile, SwitchRestored, SwitchValue, SwitchWrite};
use nicpoll_sys::netns::{self, NetNamespace};

use crate::kernel::Target;
use crate::knob::Value;
use crate::persist::FileChange;
use crate::record::Change;
use crate::recover::Restored;
use crate::transaction::Write;
use crate::undo::Drift;

impl From<&Write> for SwitchWrite {
    fn from(write: &Write) -> Self {
        SwitchWrite {
            interface: write.target.interface.name.clone(),
            netns_inode: write.target.netns_inode,
            napi_id: write.knob.napi_id(),
            name: write.knob.name().into_owned(),
            before: SwitchValue::from(&write.from),
            after: SwitchValue::from(&write.to),
            is_implied: write.is_implied,
        }
    }
}

impl From<&Value> for SwitchValue {
    fn from(value: &Value) -> Self {
        match value {
            Value::Number(number) => SwitchValue::Number(*number),
            Value::Cpus(cpus) => SwitchValue::Cpus(cpus.clone()),
            Value::Policy(_) | Value::Text(_) => SwitchValue::Words(value.to_string()),
        }
    }
}

impl From<&FileChange> for SwitchFile {
    fn from(change: &FileChange) -> Self {
        SwitchFile {
            path: change.path.display().to_string(),
            before: change.before.clone(),
            after: change.after.clone(),
        }
    }
}

impl Target {
    /// What a command needs to name the interface's namespace: ` --netns lab`, or nothing in the program's own.
    pub fn netns_option(&self) -> String {
        self.named_netns()
            .map_or_else(String::new, |netns| format!(" --netns {netns}"))
    }

    /// The command that brings the interface up.
    pub(crate) fn bring_up(&self) -> String {
        let netns = self
            .named_netns()
            .map_or_else(String::new, |netns| format!(" -n {netns}"));
        format!("ip{netns} link set {} up", self.interface.name)
    }

    /// The name of the interface's namespace, when that is not the program's own and has one.
    fn named_netns(&self) -> Option<String> {
        let own = NetNamespace::open(Path::new("/proc/self/ns/net"));
        if own.is_ok_and(|own| own.inode() == self.netns_inode) {
            return None;
        }
        netns::name_of(self.netns_inode)
    }

    /// The interface's name, with its namespace when that is another one: both ends of a pair may have one name.
    pub fn label(&self, own_netns_inode: u64) -> String {
        label(&self.interface.name, self.netns_inode, own_netns_inode)
    }
}

/// An interface's name as seen from a namespace.
pub fn label(interface: &str, netns_inode: u64, own_netns_inode: u64) -> String {
    if netns_inode == own_netns_inode {
        return String::from(interface);
    }
    match netns::name_of(netns_inode) {
        Some(netns) => format!("{interface} (netns {netns})"),
        None => format!("{interface} (net:[{netns_inode}])"),
    }
}

impl From<&Drift> for DriftShow {
    fn from(drift: &Drift) -> Self {
        DriftShow {
            name: drift.knob.to_string(),
            written: drift.written.to_string(),
            now: drift.now.as_ref().map(Value::to_string),
        }
    }
}

impl Drift {
    /// What somebody else changed, in words.
    pub fn describe(&self, interface: &str) -> String {
        let Drift { knob, written, now } = self;
        match now {
            Some(now) => format!(
                "{interface}: {knob} is {now}; nicpoll had set it to {written}, and somebody else changed it since"
            ),
            None => format!("{interface}: {knob} is gone; nicpoll had set it to {written}"),
        }
    }
}

impl Restored {
    /// What was put back, as seen from a namespace.
    pub fn document(&self, own_netns_inode: u64) -> SwitchRestored {
        let interface = self.target.label(own_netns_inode);
        let drift = self.drift.iter();
        let mut notes: Vec<String> = drift.map(|drift| drift.describe(&interface)).collect();
        let was = self.recorded.label(own_netns_inode);
        if was != interface {
            notes.push(format!(
                "{was} was moved or renamed, and is {interface} now"
            ));
        }
        if self.is_gone {
            notes.push(format!(
                "{interface} is gone, and what was set on it went along"
            ));
        }
        SwitchRestored {
            interface,
            is_as_before: !self.is_gone,
            notes,
        }
    }

    /// Each value: from what it held just before to what it had held at first.
    pub fn writes(&self) -> Vec<SwitchWrite> {
        let of = |change: &Change| {
            let drift = self.drift.iter().find(|one| one.knob == change.knob);
            let now = match drift {
                Some(drift) => drift.now.as_ref()?,
                None => &change.written,
            };
            (*now != change.before).then(|| back(&self.target, change, now))
        };
        self.changes.iter().filter_map(of).collect()
    }
}

/// What would be put back of changes that are in force.
pub fn writes_back(target: &Target, changes: &[Change]) -> Vec<SwitchWrite> {
    let changed = changes.iter().filter(|one| one.before != one.written);
    changed
        .map(|change| back(target, change, &change.written))
        .collect()
}

/// What holds of changes that are kept.
pub fn writes_kept(target: &Target, changes: &[Change]) -> Vec<SwitchWrite> {
    let changed = changes.iter().filter(|one| one.before != one.written);
    changed
        .map(|change| {
            SwitchWrite::from(&Write {
                target: target.clone(),
                knob: change.knob.clone(),
                from: change.before.clone(),
                to: change.written.clone(),
                is_implied: change.knob.of_device().is_some(),
            })
        })
        .collect()
}

fn back(target: &Target, change: &Change, now: &Value) -> SwitchWrite {
    SwitchWrite::from(&Write {
        target: target.clone(),
        knob: change.knob.clone(),
        from: now.clone(),
        to: change.before.clone(),
        is_implied: false,
    })
}
