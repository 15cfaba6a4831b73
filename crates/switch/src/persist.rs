//! Settings that come back after a reboot: a systemd unit for each interface, and a udev rule (`udev`).
//!
//! The unit has everything, because no other form can (docs/switch.md says it for each setting). It runs
//! `nicpoll set` when the interface is up and `nicpoll restore` when it is stopped or the device is gone. The udev
//! rule sets the deferral at the device's first moment, and saves the old values.
//!
//! Files that nicpoll did not write are never changed or removed. Removing takes away exactly what was written. Of one
//! command all files are written or none.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nicpoll_model::SwitchFile;

use crate::error::SwitchError;
use crate::journal::files;

mod udev;

pub use udev::{Deferral, EarlyChange, take_over};

/// The first line of every file that is written here, by which it is known again.
const MARK: &str =
    "# Written by 'nicpoll set --persist'; 'nicpoll set IF --no-persist' removes it.";
/// The unit template, below the root directory.
const TEMPLATE: &str = "etc/systemd/system/nicpoll@.service";
/// A file of options for each interface, below the root directory.
const OPTIONS_DIRECTORY: &str = "etc/nicpoll";

/// The recommended place of a copy of the program.
const INSTALLED: &str = "/usr/local/sbin/nicpoll";
/// Everybody may read what runs at boot.
const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;
/// udev's rules, below the root directory.
const RULES_DIRECTORY: &str = "etc/udev/rules.d";
/// After 80-net-setup-link.rules, which gives interfaces their names.
const RULE_NUMBER: u32 = 85;

fn io_at(path: &Path) -> impl Fn(io::Error) -> SwitchError {
    SwitchError::of_io(format!("writing {}", path.display()))
}

fn foreign(path: &Path) -> SwitchError {
    SwitchError::Failed(format!(
        "{} was not written by nicpoll and was left alone; move it away first",
        path.display()
    ))
}

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileChange {
    /// The file.
    pub path: PathBuf,
    /// Its text now; null when it does not exist.
    pub before: Option<String>,
    /// Its new text; null when it is removed.
    pub after: Option<String>,
    /// Whether the text is the target of a symbolic link.
    pub is_link: bool,
}

impl FileChange {
    /// The change that undoes this one.
    pub fn reversed(&self) -> FileChange {
        FileChange {
            path: self.path.clone(),
            before: self.after.clone(),
            after: self.before.clone(),
            is_link: self.is_link,
        }
    }

    /// The difference, line by line, as `diff -u` would mark it.
    pub fn diff(&self) -> String {
        let lines = |text: &Option<String>| -> Vec<String> {
            let text = text.as_deref().unwrap_or_default();
            let arrow = if self.is_link { "-> " } else { "" };
            text.lines().map(|line| format!("{arrow}{line}")).collect()
        };
        let (before, after) = (lines(&self.before), lines(&self.after));
        let name = |text: &Option<String>| match text {
            Some(_) => self.path.display().to_string(),
            None => String::from("/dev/null"),
        };
        let mut diff = format!("--- {}\n+++ {}\n", name(&self.before), name(&self.after));
        for line in before.iter().filter(|line| !after.contains(line)) {
            diff.push_str(&format!("-{line}\n"));
        }
        for line in after.iter().filter(|line| !before.contains(line)) {
            diff.push_str(&format!("+{line}\n"));
        }
        diff
    }
}

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

impl From<&FileChange> for SwitchFile {
    fn from(change: &FileChange) -> Self {
        SwitchFile {
            path: change.path.display().to_string(),
            before: change.before.clone(),
            after: change.after.clone(),
        }
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

/// Writes and removes files as planned: all of them, or none.
pub fn carry_out(changes: &[FileChange]) -> Result<(), SwitchError> {
    for (done, change) in changes.iter().enumerate() {
        if let Err(error) = apply(change) {
            for earlier in changes[..done].iter().rev() {
                // The first error is the one to tell; this is the best that can be done after it.
                let _ = apply(&earlier.reversed());
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Changes one file. Who reads it meanwhile finds it as it was or as it is to be.
fn apply(change: &FileChange) -> Result<(), SwitchError> {
    let path = &change.path;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let Some(text) = &change.after else {
        fs::remove_file(path).map_err(io_at(path))?;
        let is_own = directory.ends_with(OPTIONS_DIRECTORY)
            || directory.extension().is_some_and(|end| end == "wants");
        if is_own {
            // Fails while other files are in it, which is as it should be.
            let _ = fs::remove_dir(directory);
        }
        return Ok(());
    };
    files::create_folder(directory, FOLDER_MODE).map_err(io_at(path))?;
    files::check_folder(directory)?;
    let mut aside = path.clone().into_os_string();
    aside.push(".nicpoll-new");
    let aside = PathBuf::from(aside);
    // What a killed command left would be in the way of a link.
    let _ = fs::remove_file(&aside);
    let written = match change.is_link {
        true => symlink(text, &aside),
        false => {
            files::create(&aside, FILE_MODE).and_then(|mut file| file.write_all(text.as_bytes()))
        }
    };
    let placed = written.and_then(|()| fs::rename(&aside, path));
    placed.map_err(|error| {
        let _ = fs::remove_file(&aside);
        io_at(path)(error)
    })
}

fn read(path: &Path, is_link: bool) -> Result<Option<String>, SwitchError> {
    if is_link {
        return match fs::read_link(path) {
            Ok(target) => Ok(Some(target.to_string_lossy().into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(_) => Err(foreign(path)),
        };
    }
    let mut file = match files::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(io_at(path))?;
    match String::from_utf8(text) {
        Ok(text) if text.starts_with(MARK) => Ok(Some(text)),
        _ => Err(foreign(path)),
    }
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
