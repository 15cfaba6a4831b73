//! One file written for the boot: recognised by its first line, and replaced as a whole.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nicpoll_model::SwitchFile;
use serde::{Deserialize, Serialize};

use crate::error::SwitchError;
use crate::journal::{fault_point, files};

/// The first line of every file that nicpoll writes, by which it recognises them.
pub(super) const MARK: &str =
    "# Written by 'nicpoll set --persist'; 'nicpoll set IF --no-persist' removes it.";
/// Folder of a file of options for each interface, relative to the root directory.
pub(super) const OPTIONS_DIRECTORY: &str = "etc/nicpoll";

/// Suffix of unfinished files.
pub(super) const ASIDE: &str = ".nicpoll-new";
/// Everybody may read the files that run at boot.
const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;

pub(super) fn io_at(path: &Path) -> impl Fn(io::Error) -> SwitchError {
    SwitchError::of_io(format!("writing {}", path.display()))
}

fn foreign(path: &Path) -> SwitchError {
    SwitchError::Failed(format!(
        "{} was not written by nicpoll and was left alone; move it away first",
        path.display()
    ))
}

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// Returns the change that undoes this one.
    pub fn reversed(&self) -> FileChange {
        FileChange {
            path: self.path.clone(),
            before: self.after.clone(),
            after: self.before.clone(),
            is_link: self.is_link,
        }
    }

    /// Returns the difference line by line, as `diff -u` would mark it.
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

impl From<&FileChange> for SwitchFile {
    fn from(change: &FileChange) -> Self {
        SwitchFile {
            path: change.path.display().to_string(),
            before: change.before.clone(),
            after: change.after.clone(),
        }
    }
}

/// Changes one file. Readers find the old file or the new one.
pub(super) fn apply(change: &FileChange) -> Result<(), SwitchError> {
    let path = &change.path;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let Some(text) = &change.after else {
        fs::remove_file(path).map_err(io_at(path))?;
        fault_point();
        remove_own_folder(path);
        return Ok(());
    };
    files::create_folder(directory, FOLDER_MODE).map_err(io_at(path))?;
    files::check_folder(directory)?;
    fault_point();
    let aside = aside_of(path);
    // A killed command may have left one, which would make creating the link fail.
    let _ = fs::remove_file(&aside);
    let written = match change.is_link {
        true => symlink(text, &aside),
        false => files::create(&aside, FILE_MODE).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        }),
    };
    fault_point();
    let placed = written.and_then(|()| fs::rename(&aside, path));
    fault_point();
    placed.map_err(|error| {
        let _ = fs::remove_file(&aside);
        io_at(path)(error)
    })
}

/// Returns the name of a file until it is complete.
pub(super) fn aside_of(path: &Path) -> PathBuf {
    let mut aside = path.to_path_buf().into_os_string();
    aside.push(ASIDE);
    PathBuf::from(aside)
}

/// Removes the folder of a file if nicpoll created it and it is empty.
pub(super) fn remove_own_folder(path: &Path) {
    let folder = path.parent().unwrap_or(Path::new("/"));
    if folder.ends_with(OPTIONS_DIRECTORY) || folder.extension().is_some_and(|end| end == "wants") {
        // Fails while it has other files, as intended.
        let _ = fs::remove_dir(folder);
    }
}

/// Whether the file does not exist, perhaps because its folder is a file.
fn is_absent(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(super) fn read(path: &Path, is_link: bool) -> Result<Option<String>, SwitchError> {
    if is_link {
        return match fs::read_link(path) {
            Ok(target) => Ok(Some(target.to_string_lossy().into_owned())),
            Err(error) if is_absent(error.kind()) => Ok(None),
            Err(_) => Err(foreign(path)),
        };
    }
    let mut file = match files::open(path) {
        Ok(file) => file,
        Err(error) if is_absent(error.kind()) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(io_at(path))?;
    match String::from_utf8(text) {
        Ok(text) if text.starts_with(MARK) => Ok(Some(text)),
        _ => Err(foreign(path)),
    }
}
