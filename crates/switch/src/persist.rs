//! Settings that come back after a reboot: a systemd unit for each interface, and a udev rule (`udev`).
//!
//! The unit has everything, because no other form can (docs/switch.md says it for each setting). It runs
//! `nicpoll set` when the interface is up and `nicpoll restore` when it is stopped or the device is gone. The udev
//! rule sets the deferral at the device's first moment, and saves the old values.
//!
//! Files that nicpoll did not write are never changed or removed. Removing takes away exactly what was written. Of one
//! command all files are written or none (`held`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::SwitchError;
use crate::journal::{DEFAULT_DIRECTORY, Journal, files};

mod file;
mod held;
mod udev;

pub use file::FileChange;
use file::{ASIDE, MARK, OPTIONS_DIRECTORY, io_at, read};
pub use held::{HeldFiles, files_left, put_back_files};
pub use udev::{Deferral, EarlyChange, take_over};

/// The unit template, below the root directory.
const TEMPLATE: &str = "etc/systemd/system/nicpoll@.service";
/// The recommended place of a copy of the program.
const INSTALLED: &str = "/usr/local/sbin/nicpoll";
/// udev's rules, below the root directory.
const RULES_DIRECTORY: &str = "etc/udev/rules.d";
/// Where systemd finds units, below the root directory.
const UNITS_DIRECTORY: &str = "etc/systemd/system";
/// After 80-net-setup-link.rules, which gives interfaces their names.
const RULE_NUMBER: u32 = 85;

/// The files of interfaces.
#[derive(Clone, Debug)]
pub struct Persistence {
    root: PathBuf,
}

impl Persistence {
    /// Files below `root`: `/` for this machine, another directory for an image of one.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Persistence { root: root.into() }
    }

    /// The program to run at boot: `chosen`, or the calling one.
    ///
    /// # Errors
    /// When another user than root can change it. Of a program for the image of another machine, only the path is
    /// checked.
    pub fn program(&self, chosen: Option<&Path>) -> Result<PathBuf, SwitchError> {
        let own = || std::env::current_exe().map_err(io_at(Path::new("/proc/self/exe")));
        let program = chosen.map_or_else(own, |chosen| Ok(chosen.to_path_buf()))?;
        if !program.is_absolute() {
            return Err(SwitchError::Failed(format!(
                "--program takes a path that begins with '/', not '{}'",
                program.display()
            )));
        }
        if chosen.is_some() && self.root != Path::new("/") {
            return Ok(program);
        }
        let is_safe = files::check_program(&program);
        is_safe.map_err(|reason| {
            SwitchError::Failed(format!(
                "{0} would run as root at every boot, and it is not safe: {reason}. Install a copy where only root can \
                 write, and name that: sudo install -m 755 {0} {INSTALLED}; --program {INSTALLED}",
                program.display()
            ))
        })?;
        Ok(program)
    }

    /// The files that have `program set INTERFACE OPTIONS` run at boot, and udev set the deferral even before, if the
    /// options have one. Files that are right already are left out.
    pub fn install(
        &self,
        program: &Path,
        interface: &str,
        options: &[String],
        deferral: Option<Deferral>,
    ) -> Result<Vec<FileChange>, SwitchError> {
        let [template, environment, rule, link] = self.paths(interface);
        let rules = deferral
            .filter(|_| has_plain_name(interface))
            .map(|deferral| rule_text(interface, deferral));
        let wanted = [
            (template, Some(template_text(program)), false),
            (environment, Some(options_text(options)), false),
            (rule, rules, false),
            (link, Some(String::from("../nicpoll@.service")), true),
        ];
        changes(wanted.into())
    }

    /// The files to remove for an interface: the template too, with the last interface that uses it.
    pub fn remove(&self, interface: &str) -> Result<Vec<FileChange>, SwitchError> {
        let [template, environment, rule, link] = self.paths(interface);
        let others = fs::read_dir(self.root.join(OPTIONS_DIRECTORY)).into_iter();
        let is_other =
            |path: PathBuf| path != environment && path.extension() == environment.extension();
        let has_others = others.flatten().flatten().any(|file| is_other(file.path()));
        let mut removed = vec![(link, None, true), (rule, None, false)];
        removed.push((environment, None, false));
        removed.extend((!has_others).then_some((template, None, false)));
        changes(removed)
    }

    /// The removal of what a command that was killed left half done: files of interfaces that lack the unit, its options
    /// or its link. Other programs' files are left out.
    pub fn orphans(&self) -> Vec<FileChange> {
        let options = listed(&self.root.join(OPTIONS_DIRECTORY), "", ".conf");
        let name = |path: &PathBuf| Some(String::from(path.file_stem()?.to_str()?));
        let parts = options
            .iter()
            .filter_map(name)
            .map(|name| self.paths(&name));
        let is_whole = |[template, options, _, link]: &[PathBuf; 4]| {
            template.exists() && options.exists() && link.is_symlink()
        };
        let whole: Vec<PathBuf> = parts.filter(is_whole).flatten().collect();
        let units = self.root.join(UNITS_DIRECTORY);
        let rule = format!("{RULE_NUMBER}-nicpoll-");
        let mut found = options;
        found.extend(listed(&self.root.join(RULES_DIRECTORY), &rule, ".rules"));
        found.extend(listed(&units, "nicpoll@", ".service"));
        for wants in listed(&units, "sys-subsystem-net-devices-", ".device.wants") {
            found.extend(listed(&wants, "nicpoll@", ".service"));
        }
        found.retain(|path| !whole.contains(path));
        found.sort();
        let removal = |path: PathBuf| {
            let is_link = path.is_symlink();
            let is_unfinished = path.to_string_lossy().ends_with(ASIDE);
            let before = match is_unfinished {
                true => Some(String::new()),
                false => read(&path, is_link).ok()?,
            };
            let change = FileChange {
                path,
                before,
                after: None,
                is_link,
            };
            change.before.is_some().then_some(change)
        };
        found.into_iter().filter_map(removal).collect()
    }

    fn paths(&self, interface: &str) -> [PathBuf; 4] {
        let escaped = escape(interface);
        let wants = format!(
            "etc/systemd/system/sys-subsystem-net-devices-{escaped}.device.wants/nicpoll@{escaped}.service"
        );
        [
            self.root.join(TEMPLATE),
            self.root
                .join(OPTIONS_DIRECTORY)
                .join(format!("{interface}.conf")),
            self.root
                .join(RULES_DIRECTORY)
                .join(format!("{RULE_NUMBER}-nicpoll-{interface}.rules")),
            self.root.join(wants),
        ]
    }
}

/// The removal of this machine's files that a killed command left half done. A journal at another place than the
/// machine's does not tell who is writing some now, so there is none for it.
pub fn orphans_here(journal: &Journal) -> Vec<FileChange> {
    match journal.directory() == Path::new(DEFAULT_DIRECTORY) {
        true => Persistence::at("/").orphans(),
        false => Vec::new(),
    }
}

/// The differences between the files and their new texts.
fn changes(wanted: Vec<(PathBuf, Option<String>, bool)>) -> Result<Vec<FileChange>, SwitchError> {
    let mut changes = Vec::new();
    for (path, after, is_link) in wanted {
        let before = read(&path, is_link)?;
        if before != after {
            changes.push(FileChange {
                path,
                before,
                after,
                is_link,
            });
        }
    }
    Ok(changes)
}

/// The files of a folder whose names begin and end so, those that were not finished included.
fn listed(folder: &Path, begin: &str, end: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(ASIDE).unwrap_or(&name);
        name.starts_with(begin) && name.ends_with(end)
    };
    files.map(|file| file.path()).filter(is_wanted).collect()
}

/// It may start before the interface is up, so it is tried again.
fn template_text(program: &Path) -> String {
    include_str!("persist/nicpoll@.service").replace("PROGRAM", &program.display().to_string())
}

fn options_text(options: &[String]) -> String {
    format!("{MARK}\nNICPOLL_OPTIONS={}\n", options.join(" "))
}

/// Whether udev takes the name as it is: what it matches is a pattern between quotes.
fn has_plain_name(interface: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:_-".contains(&byte);
    interface.bytes().all(is_plain)
}

/// Once in the life of a device, whatever event comes again: what was saved first is what was there first. Any
/// event makes udev forget what is not imported.
fn rule_text(interface: &str, deferral: Deferral) -> String {
    let Deferral { count, timeout_ns } = deferral;
    include_str!("persist/nicpoll.rules")
        .replace("COUNT", &count.to_string())
        .replace("TIMEOUT_NS", &timeout_ns.to_string())
        .replace("INTERFACE", interface)
}

/// As systemd-escape(1) does: what is not a letter, a digit, `:`, `_` or `.` is written as `\xNN`.
fn escape(name: &str) -> String {
    let mut escaped = String::new();
    for (index, byte) in name.bytes().enumerate() {
        match byte {
            b'.' if index == 0 => escaped.push_str("\\x2e"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'_' | b'.' => {
                escaped.push(byte.into());
            }
            b'/' => escaped.push('-'),
            other => escaped.push_str(&format!("\\x{other:02x}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
