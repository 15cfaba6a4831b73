//! Every value of a host's interfaces that bears on receiving, by name.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use nicpoll_switch::Control;

use crate::error::StudyError;

/// The values of interfaces in the caller's namespace, the studied one first, and of its sysctls.
pub fn values(
    control: &mut Control,
    interfaces: &[String],
) -> Result<BTreeMap<String, String>, StudyError> {
    let mut values = BTreeMap::new();
    for (index, interface) in interfaces.iter().enumerate() {
        let own = values_of(control, interface)?.into_iter();
        values.extend(own.map(|(name, value)| match index {
            0 => (name, value),
            // The others are told apart by their names.
            _ => (name.replacen(' ', &format!(" {interface} "), 1), value),
        }));
    }
    for (name, value) in nicpoll_inspect::sysctls() {
        values.insert(format!("sysctl {name}"), value);
    }
    Ok(values)
}

fn values_of(
    control: &mut Control,
    interface: &str,
) -> Result<BTreeMap<String, String>, StudyError> {
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
    for (index, napi) in control.napis(ifindex)?.into_iter().enumerate() {
        values.insert(format!("NAPI {index}"), format!("{napi:?}"));
    }
    Ok(values)
}

/// The readable files of an interface's directory; those of a state that makes no sense for the
/// device give an error and are left out.
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
