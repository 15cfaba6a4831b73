//! A user's own commands before and after traffic, and what they leave behind.
//!
//! Values are read before the first command. After the last one, changed values are restored where that is possible,
//! and the others reported. A command runs in its host's namespace, for a limited time.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use nicpoll_model::{SwitchValue, SwitchWrite};
use nicpoll_switch::{Control, supported};
use nicpoll_traffic::workload::WorkloadError;

use crate::error::{HostFailure, LabError};
use crate::host::{EACH_INTERFACE, HostCommand};
use crate::link::veth::{qdiscs, remove_root_qdisc};
use crate::workload::command::{Child, failed};

/// How long a command may take.
const COMMAND_MAX: Duration = Duration::from_secs(10);

/// Interval of checks whether a command has ended.
pub const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Prefix of the names of queueing disciplines' values.
pub const QDISC: &str = "tc qdisc";

/// The values of a host as they were before its commands, by name.
type HostValues = BTreeMap<String, String>;

/// A host between the commands before traffic and those after it.
pub struct Around {
    after: Vec<HostCommand>,
    values: HostValues,
}

impl Around {
    /// Records the values.
    pub fn begin(
        control: &mut Control,
        interfaces: &[String],
        after: Vec<HostCommand>,
    ) -> Result<Self, LabError> {
        let values = interface_values(control, interfaces)?;
        Ok(Around { after, values })
    }

    /// Returns the changed values, as they were before. Values of NAPI instances are part of the interface's.
    pub fn changed(
        &self,
        control: &mut Control,
        interfaces: &[String],
    ) -> Result<HostValues, LabError> {
        let now = interface_values(control, interfaces)?;
        let was = self.values.iter();
        let changed =
            was.filter(|(name, was)| !name.starts_with("NAPI ") && now.get(*name) != Some(was));
        Ok(changed
            .map(|(name, was)| (name.clone(), was.clone()))
            .collect())
    }

    /// Returns the changes in the form in which a setting's own writes are recorded.
    pub fn writes(
        &self,
        control: &mut Control,
        interfaces: &[String],
        netns_inode: u64,
    ) -> Result<Vec<SwitchWrite>, LabError> {
        let now = interface_values(control, interfaces)?;
        let changed = self.changed(control, interfaces)?.into_iter();
        let writes = changed.filter_map(|(name, was)| {
            let place = InterfaceValue::of(&name, interfaces)?;
            Some(SwitchWrite {
                interface: String::from(place.interface),
                netns_inode,
                napi_id: None,
                name: place.recorded()?,
                before: place.recorded_value(&was),
                after: place.recorded_value(now.get(&name)?),
                is_implied: false,
            })
        });
        Ok(writes.collect())
    }

    /// Runs the commands after traffic, and restores what they left changed. Returns what could not be done or
    /// undone.
    pub fn end(self, control: &mut Control, interfaces: &[String]) -> Vec<String> {
        let failed = self.after.iter();
        let failed = failed.filter_map(|one| run(one, interfaces).err());
        let mut notes: Vec<String> = failed.map(|why| format!("after: {why}")).collect();
        match self.restore(control, interfaces) {
            Ok(left) => notes.extend(left.into_iter().map(|(name, was)| {
                format!("the commands before traffic changed {name}, which was '{was}', and nothing put it back")
            })),
            Err(error) => notes.push(error.with_causes()),
        }
        notes
    }

    /// Restores what it can, and returns what is still changed.
    fn restore(
        &self,
        control: &mut Control,
        interfaces: &[String],
    ) -> Result<HostValues, LabError> {
        for (name, was) in self.changed(control, interfaces)? {
            if let Some(place) = InterfaceValue::of(&name, interfaces) {
                // The values are checked below.
                let _ = place.restore(control, &was);
            }
        }
        self.changed(control, interfaces)
    }
}

/// A value that [`interface_values`] reads: its kind, its interface and the kernel's name for it.
struct InterfaceValue<'a> {
    kind: &'a str,
    interface: &'a str,
    value: &'a str,
}

impl<'a> InterfaceValue<'a> {
    fn of(name: &'a str, interfaces: &'a [String]) -> Option<Self> {
        let (kind, value) = name.split_once(' ')?;
        let known = value.split_once(' ');
        let known = known.filter(|(first, _)| interfaces.iter().any(|one| one == first));
        let (interface, value) = known.unwrap_or((interfaces.first()?, value));
        let place = InterfaceValue {
            kind,
            interface,
            value,
        };
        Some(place)
    }

    /// Returns its name in a record of writes; `None` if it follows from another value.
    fn recorded(&self) -> Option<String> {
        match self.kind {
            "feature" => {
                let feature = self.value.strip_suffix(" (active)")?;
                Some(format!("feature {feature}"))
            }
            "sysctl" => Some(format!("sysctl {}", self.value)),
            "sysfs" | "tc" => Some(String::from(self.value)),
            _ => None,
        }
    }

    fn recorded_value(&self, text: &str) -> SwitchValue {
        match (self.kind, text.parse::<u64>()) {
            ("feature", _) => SwitchValue::Number(u64::from(text == "true")),
            ("sysfs", Ok(number)) => SwitchValue::Number(number),
            _ => SwitchValue::Words(String::from(text)),
        }
    }

    fn restore(&self, control: &mut Control, was: &str) -> Result<(), LabError> {
        match self.kind {
            "feature" => {
                let Some(feature) = self.value.strip_suffix(" (wanted)") else {
                    return Ok(());
                };
                let ifindex = control.interface(self.interface)?.ifindex;
                let change = BTreeMap::from([(String::from(feature), was == "true")]);
                control.set_features(ifindex, &change)?;
            }
            "sysfs" => {
                let folder = Path::new("/sys/class/net").join(self.interface);
                fs::write(folder.join(self.value), was)?;
            }
            "sysctl" => fs::write(format!("/proc/sys/{}", self.value.replace('.', "/")), was)?,
            // Then the kernel installs the interface's default.
            "tc" => remove_root_qdisc(control.interface(self.interface)?.ifindex)?,
            _ => {}
        }
        Ok(())
    }
}

/// A running command at the caller's host, as this process's user. Dropping it ends the command.
pub struct RunningCommand {
    /// Programs that have not begun.
    left: VecDeque<Vec<String>>,
    /// The running program, and its deadline.
    child: Option<(Child, Instant)>,
}

impl RunningCommand {
    /// Makes a command that begins with the first call of [`Self::has_ended`].
    pub fn new(command: &HostCommand, interfaces: &[String]) -> Self {
        let names = |interface: &String| {
            BTreeMap::from([(String::from(EACH_INTERFACE), interface.clone())])
        };
        let mut all: Vec<Vec<String>> = interfaces
            .iter()
            .map(|one| command.with(&names(one)))
            .collect();
        // Without the placeholder it is one command for all interfaces.
        all.dedup();
        RunningCommand {
            left: all.into(),
            child: None,
        }
    }

    /// Returns whether all programs have ended. Fails if one ended badly.
    pub fn has_ended(&mut self) -> Result<bool, HostFailure> {
        self.step().map_err(HostFailure::of)
    }

    fn step(&mut self) -> Result<bool, WorkloadError> {
        if let Some((child, deadline)) = &mut self.child {
            if !child.has_ended()? {
                return match Instant::now() > *deadline {
                    true => Err(failed(format!(
                        "it had not ended after {COMMAND_MAX:?}; it was ended"
                    ))),
                    false => Ok(false),
                };
            }
            child.succeeded()?;
        }
        let next = self.left.pop_front();
        let next = next.map(|words| Child::start(&words, None)).transpose()?;
        self.child = next.map(|child| (child, Instant::now() + COMMAND_MAX));
        Ok(self.child.is_none())
    }
}

/// Runs a command at the caller's host to its end.
fn run(command: &HostCommand, interfaces: &[String]) -> Result<(), HostFailure> {
    let mut running = RunningCommand::new(command, interfaces);
    while !running.has_ended()? {
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Reads the values of interfaces and sysctls of the caller's namespace; the studied interface is first.
pub fn interface_values(
    control: &mut Control,
    interfaces: &[String],
) -> Result<BTreeMap<String, String>, LabError> {
    let mut values = BTreeMap::new();
    for (index, interface) in interfaces.iter().enumerate() {
        let own = values_of(control, interface)?.into_iter();
        values.extend(own.map(|(name, value)| match index {
            0 => (name, value),
            // Names of other interfaces' values contain the interface.
            _ => (name.replacen(' ', &format!(" {interface} "), 1), value),
        }));
    }
    for (name, value) in nicpoll_inspect::sysctls() {
        values.insert(format!("sysctl {name}"), value);
    }
    Ok(values)
}

fn values_of(control: &mut Control, interface: &str) -> Result<BTreeMap<String, String>, LabError> {
    let link = control.link_named(interface)?;
    let ifindex = link.interface.ifindex;
    let mut values = sysfs_attributes(&Path::new("/sys/class/net").join(interface))?;
    if let Some(most) = link.max_mtu_bytes {
        values.insert(String::from("greatest mtu"), most.to_string());
    }
    let features = control.features(ifindex)?;
    for (kind, set) in [("wanted", features.wanted), ("active", features.active)] {
        for (name, on) in set {
            values.insert(format!("feature {name} ({kind})"), on.to_string());
        }
    }
    values.insert(String::from(QDISC), qdiscs(ifindex)?);
    let napis = supported(control.napis(ifindex))?.unwrap_or_default();
    for (index, napi) in napis.into_iter().enumerate() {
        values.insert(format!("NAPI {index}"), format!("{napi:?}"));
    }
    Ok(values)
}

/// Reads the files of an interface's directory. Files that give an error do not apply to the device.
fn sysfs_attributes(directory: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut attributes = BTreeMap::new();
    for file in fs::read_dir(directory)? {
        let path = file?.path();
        if let (true, Ok(value)) = (path.is_file(), fs::read_to_string(&path)) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            attributes.insert(format!("sysfs {name}"), String::from(value.trim_end()));
        }
    }
    Ok(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Commands;

    #[test]
    fn values_are_told_apart_by_interface() {
        let interfaces = [String::from("em0"), String::from("em1")];
        for (name, kind, interface, value, recorded) in [
            ("sysfs mtu", "sysfs", "em0", "mtu", Some("mtu")),
            ("sysfs em1 mtu", "sysfs", "em1", "mtu", Some("mtu")),
            ("tc em1 qdisc", "tc", "em1", "qdisc", Some("qdisc")),
            (
                "feature em1 rx-gro (active)",
                "feature",
                "em1",
                "rx-gro (active)",
                Some("feature rx-gro"),
            ),
            (
                "feature rx-gro (wanted)",
                "feature",
                "em0",
                "rx-gro (wanted)",
                None,
            ),
            ("greatest mtu", "greatest", "em0", "mtu", None),
        ] {
            let place = InterfaceValue::of(name, &interfaces).unwrap();
            assert_eq!(
                (place.kind, place.interface, place.value),
                (kind, interface, value)
            );
            assert_eq!(place.recorded().as_deref(), recorded, "{name}");
        }
    }

    #[test]
    fn commands_stand_around_others_and_take_words_of_a_variant() {
        let of = |word: &str| Commands {
            before: vec![HostCommand {
                host: String::from("sender"),
                command: vec![format!("on-{word}"), String::from("{disc}")],
            }],
            after: vec![HostCommand {
                host: String::from("sender"),
                command: vec![format!("off-{word}"), String::from("{interface}")],
            }],
        };
        let both = of("outer").around(&of("inner"));
        let variant = BTreeMap::from([(String::from("disc"), String::from("fq"))]);
        let both = both.with(&variant);
        let words: Vec<String> = both
            .words()
            .map(|(_, when, words)| format!("{when} {words}"))
            .collect();
        assert_eq!(
            words,
            [
                "before on-outer fq",
                "before on-inner fq",
                "after off-inner {interface}",
                "after off-outer {interface}"
            ]
        );
        assert_eq!(of("outer").before[0].unknown_name(&[]), Some("disc"));
        assert_eq!(both.after[0].unknown_name(&[]), None);
    }
}
