//! Files and folders that nicpoll trusts when it runs as root.
//!
//! They are created with an exact mode. Nothing is read or written through a symbolic link, or where another user than
//! root and the caller could have put something else.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;

use crate::error::SwitchError;

/// Write permission of the owner's group and of others.
const WRITE_OF_OTHERS: u32 = 0o022;
/// In a sticky folder nobody can replace another user's file.
const STICKY: u32 = 0o1000;
/// Symbolic links followed at most, as in the kernel (`MAXSYMLINKS`).
const LINKS_MAX: u32 = 40;

fn io(path: &Path) -> impl Fn(io::Error) -> SwitchError {
    SwitchError::of_io(path.display().to_string())
}

/// Opens a regular file. Refuses it if other users than root and the caller can change it or its folder. Does not block
/// on a pipe.
pub fn open(path: &Path) -> Result<File, SwitchError> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(ELOOP) => kind(path, "file", "a symbolic link"),
            _ => io(path)(error),
        })?;
    let found = file.metadata().map_err(io(path))?;
    if !found.is_file() {
        return Err(kind(path, "file", "something else"));
    }
    check_owner(path, &found, is_root_or_own)?;
    check_mode(path, &found, 0)?;
    Ok(file)
}

/// Creates a file of exactly this mode at any umask.
///
/// # Errors
/// `AlreadyExists` when the name is taken, by a symbolic link too.
pub fn create(path: &Path, mode: u32) -> io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .mode(mode)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// Creates a folder of exactly this mode. Missing parents become readable by everybody.
pub fn create_folder(path: &Path, mode: u32) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    if let Some(above) = above.filter(|above| !above.exists()) {
        create_folder(above, 0o755)?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(mode)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Refuses a folder in which another user could put a file, or which another user could replace.
pub fn check_folder(path: &Path) -> Result<(), SwitchError> {
    let found = fs::symlink_metadata(path).map_err(io(path))?;
    if found.is_symlink() {
        return Err(kind(path, "folder", "a symbolic link"));
    }
    if !found.is_dir() {
        return Err(kind(path, "folder", "something else"));
    }
    check_owner(path, &found, is_root_or_own)?;
    check_mode(path, &found, 0)?;
    check_above(path, is_root_or_own)
}

/// Refuses a program that anybody but root could replace: checks the file, each folder above it, and each link on the
/// way.
pub fn check_program(path: &Path) -> Result<(), SwitchError> {
    let mut path = std::path::absolute(path).map_err(io(path))?;
    for _ in 0..LINKS_MAX {
        let found = fs::symlink_metadata(&path).map_err(io(&path))?;
        check_owner(&path, &found, is_root)?;
        check_above(&path, is_root)?;
        if !found.is_symlink() {
            if !found.is_file() {
                return Err(kind(&path, "program", "something else"));
            }
            return check_mode(&path, &found, 0);
        }
        let target = fs::read_link(&path).map_err(io(&path))?;
        path = path.with_file_name("").join(target);
    }
    Err(kind(&path, "program", "a symbolic link"))
}

/// Checks each folder above, by its given path and by its real one.
fn check_above(path: &Path, is_trusted: fn(u32) -> bool) -> Result<(), SwitchError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let real = fs::canonicalize(folder).map_err(io(folder))?;
    for above in folder.ancestors().chain(real.ancestors()) {
        if above.as_os_str().is_empty() {
            continue;
        }
        let found = fs::metadata(above).map_err(io(above))?;
        check_owner(above, &found, is_trusted)?;
        check_mode(above, &found, STICKY)?;
    }
    Ok(())
}

fn is_root(uid: u32) -> bool {
    uid == 0
}

fn is_root_or_own(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

fn check_owner(
    path: &Path,
    found: &Metadata,
    is_trusted: fn(u32) -> bool,
) -> Result<(), SwitchError> {
    let (path, uid) = (path.display(), found.uid());
    match is_trusted(uid) {
        true => Ok(()),
        false => Err(SwitchError::Failed(format!(
            "{path} belongs to user {uid}, who could change it at any time; if it is right as it is: chown root {path}"
        ))),
    }
}

/// Refuses a file that others can write. Write permission is harmless if the mode has a bit of `unless`.
fn check_mode(path: &Path, found: &Metadata, unless: u32) -> Result<(), SwitchError> {
    let mode = found.mode() & 0o7777;
    match mode & WRITE_OF_OTHERS == 0 || mode & unless != 0 {
        true => Ok(()),
        false => {
            let path = path.display();
            Err(SwitchError::Failed(format!(
                "{path} can be changed by other users (mode {mode:04o}); if it is right as it is: chmod go-w {path}"
            )))
        }
    }
}

fn kind(path: &Path, wanted: &str, is: &str) -> SwitchError {
    let path = path.display();
    SwitchError::Failed(format!(
        "{path} is not a {wanted} but {is}; remove it if nobody needs it"
    ))
}

const ELOOP: i32 = rustix::io::Errno::LOOP.raw_os_error();

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode_of(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn modes_are_those_that_are_meant_and_links_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b");
        let file = folder.join("record");
        create_folder(&folder, 0o700).unwrap();
        create(&file, 0o600).unwrap();
        // No umask lets this be.
        create(&folder.join("open"), 0o666).unwrap();
        assert_eq!(mode_of(&folder.join("open")), 0o666);
        assert_eq!(mode_of(&home.path().join("a")), 0o755);
        assert_eq!(mode_of(&folder), 0o700);
        assert_eq!(mode_of(&file), 0o600);
        check_folder(&folder).unwrap();
        open(&file).unwrap();

        let planted = folder.join("planted");
        symlink(&file, &planted).unwrap();
        assert!(create(&planted, 0o600).is_err());
        let refused = open(&planted).unwrap_err().to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
        fs::set_permissions(&file, Permissions::from_mode(0o620)).unwrap();
        let refused = open(&file).unwrap_err().to_string();
        assert!(refused.contains("chmod go-w"), "{refused}");
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        assert!(check_folder(&folder).is_err());
        assert!(check_folder(&planted).is_err());
    }

    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let refused = open(&pipe).unwrap_err();
        assert!(refused.to_string().contains("is not a file"), "{refused}");
    }

    #[test]
    fn a_program_is_refused_when_one_folder_above_it_is_not_only_roots() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("build");
        let program = folder.join("nicpoll");
        create_folder(&folder, 0o777).unwrap();
        create(&program, 0o755).unwrap();
        let refused = check_program(&program).unwrap_err().to_string();
        assert!(
            refused.contains("build") || refused.contains("belongs to"),
            "{refused}"
        );
        assert!(
            check_program(Path::new("/no/such/program"))
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        );
        check_program(Path::new("/bin/sh")).unwrap();
    }
}
