//! Settings that come back after a reboot: a systemd unit for each interface, and a udev rule (`udev`).
//!
//! The unit holds all settings, because no other form can (docs/switch.md explains for each setting). It runs
//! `nicpoll set` when the interface is up and `nicpoll restore` when it is stopped or the device is gone. The udev rule
//! sets the deferral as soon as the device appears, and saves the old values.
//!
//! Files that nicpoll did not write are never changed or removed. Removing deletes exactly the files written. A command
//! writes all of its files or none (`held`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::SwitchError;
use crate::journal::{DEFAULT_DIRECTORY, Journal, files};

mod file;
mod held;
mod udev;

pub use file::FileChange;
use file::{ASIDE, MARK, OPTIONS_DIRECTORY, io_at, read};
pub use held::{HeldFiles, files_left, restore_files};
pub use udev::{Deferral, EarlyChange, take_over};

/// The unit template, relative to the root directory.
const TEMPLATE: &str = "etc/systemd/system/nicpoll@.service";
/// Recommended path for a copy of the program.
const INSTALLED: &str = "/usr/local/sbin/nicpoll";
/// The directory of udev's rules, relative to the root directory.
const RULES_DIRECTORY: &str = "etc/udev/rules.d";
/// The directory of systemd's units, relative to the root directory.
const UNITS_DIRECTORY: &str = "etc/systemd/system";
/// After 80-net-setup-link.rules, which gives interfaces their names.
const RULE_NUMBER: u32 = 85;

/// The files that make settings survive a reboot.
#[derive(Clone, Debug)]
pub struct Persistence {
    root: PathBuf,
}

impl Persistence {
    /// For files below `root`: `/` for this machine, another directory for another machine's image.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Persistence { root: root.into() }
    }

    /// Returns the program to run at boot: `chosen`, or the calling one.
    ///
    /// # Errors
    /// When another user than root can change it. For another machine's image, only the form of the path is checked.
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

    /// Returns the changes that have systemd run `program set INTERFACE OPTIONS` at boot, and udev set the deferral
    /// even earlier if there is one. Files that are already right are left out.
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

    /// Returns the files to remove for an interface; with the last interface the template too.
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

    /// Returns the removal of files that a killed command left incomplete: files of interfaces without the unit, its
    /// options or its link. Other programs' files are left out.
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

/// Returns the removal of files that a killed command left incomplete on this machine. Another journal than the
/// machine's does not know who is writing files now, so it yields none.
pub fn orphans_here(journal: &Journal) -> Vec<FileChange> {
    match journal.directory() == Path::new(DEFAULT_DIRECTORY) {
        true => Persistence::at("/").orphans(),
        false => Vec::new(),
    }
}

/// Compares files with their wanted texts.
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

/// Lists the files of a folder whose names begin and end in this way, unfinished ones included.
fn listed(folder: &Path, begin: &str, end: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(ASIDE).unwrap_or(&name);
        name.starts_with(begin) && name.ends_with(end)
    };
    files.map(|file| file.path()).filter(is_wanted).collect()
}

/// The unit's text. It may start before the interface is up, so it has a Restart.
fn template_text(program: &Path) -> String {
    include_str!("persist/nicpoll@.service").replace("PROGRAM", &program.display().to_string())
}

fn options_text(options: &[String]) -> String {
    format!("{MARK}\nNICPOLL_OPTIONS={}\n", options.join(" "))
}

/// Whether udev matches the name literally: the rule has it as a pattern in quotes.
fn has_plain_name(interface: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:_-".contains(&byte);
    interface.bytes().all(is_plain)
}

/// The rule's text. It acts once in a device's life, at the first event, so the saved values are the driver's. It
/// imports the saved values at each event, because udev drops properties that are not imported.
fn rule_text(interface: &str, deferral: Deferral) -> String {
    let Deferral { count, timeout_ns } = deferral;
    include_str!("persist/nicpoll.rules")
        .replace("COUNT", &count.to_string())
        .replace("TIMEOUT_NS", &timeout_ns.to_string())
        .replace("INTERFACE", interface)
}

/// Escapes a name as systemd-escape(1) does: every byte except letters, digits, `:`, `_` and `.` becomes `\xNN`.
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
