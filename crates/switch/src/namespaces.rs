//! The network namespaces of this machine: all that a name, a process, a thread, a descriptor or a mount leads to.
//!
//! What must hold: a search that could not see everything says so, because what it did not find may still be there.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nicpoll_sys::netns::{self, NetNamespace};

/// `NSFS_MAGIC`, include/uapi/linux/magic.h: what a file of a namespace lies on.
const NSFS_MAGIC: rustix::fs::FsWord = 0x6e73_6673;
/// How a link to a network namespace begins.
const LINK: &str = "net:[";
/// Inode number of the first PID namespace (`PROC_PID_INIT_INO`, include/linux/proc_ns.h), whose `/proc` shows
/// every process.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// What a search came to.
#[derive(Debug)]
pub(crate) struct Search {
    /// The namespace that was looked for.
    pub found: Option<NetNamespace>,
    /// Whether every process could be looked at. A namespace that only a socket holds is not seen even so.
    pub is_complete: bool,
}

/// Looks for a namespace: first where it costs little, in what this process holds itself, names and processes; then
/// everywhere.
pub(crate) fn search(mut is_it: impl FnMut(&NetNamespace) -> bool) -> io::Result<Search> {
    let mut seen = BTreeSet::new();
    let pid_namespace = fs::read_link("/proc/self/ns/pid");
    let mut search = Search {
        found: None,
        is_complete: pid_namespace.is_ok_and(|link| link.as_os_str() == FIRST_PID_NAMESPACE),
    };
    let processes = processes()?;
    for path in places(&processes) {
        if inode_of_link(&path).is_some_and(|inode| seen.contains(&inode)) {
            continue;
        }
        match NetNamespace::open(&path) {
            Ok(namespace) => {
                let is_new = is_namespace(&namespace) && seen.insert(namespace.inode());
                if is_new && is_it(&namespace) {
                    search.found = Some(namespace);
                    return Ok(search);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                search.is_complete &= !is_hidden(&path);
            }
            // Processes and names come and go.
            Err(_) => {}
        }
    }
    Ok(search)
}

/// What may lead to a namespace, in the order in which it is looked at. A study's own namespaces have no names: they
/// come first, since it looks for them in each trial.
fn places(processes: &[PathBuf]) -> impl Iterator<Item = PathBuf> + use<'_> {
    let own = std::iter::once(PathBuf::from("/proc/thread-self/ns/net"))
        .chain(held_by(Path::new("/proc/self")));
    let named = entries(Path::new(netns::NAMED_DIRECTORY));
    let main_threads = processes.iter().map(|process| process.join("ns/net"));
    let rest = processes.iter().flat_map(|process| held_by(process));
    own.chain(named)
        .chain(main_threads)
        .chain(rest)
        .chain(mounts(processes))
}

/// Whether a process is there and may not be looked at. The kernel refuses one that has just ended, too; and the
/// first process, which may have more capabilities than root has here, is in the first namespace, as kernel threads
/// are.
fn is_hidden(path: &Path) -> bool {
    let process: PathBuf = path.iter().take(3).collect();
    process != Path::new("/proc/1") && process.join("status").exists()
}

fn processes() -> io::Result<Vec<PathBuf>> {
    let is_process = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let all = fs::read_dir("/proc")?.flatten().map(|file| file.path());
    Ok(all.filter(is_process).collect())
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let listing = fs::read_dir(directory).into_iter().flatten().flatten();
    listing.map(|file| file.path())
}

/// Namespaces that the threads of a process are in, and those that it holds open.
fn held_by(process: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let threads = entries(&process.join("task")).map(|thread| thread.join("ns/net"));
    let descriptors = entries(&process.join("fd")).filter(|path| inode_of_link(path).is_some());
    threads.chain(descriptors)
}

/// The inode number in `net:[4026531840]`.
fn inode_of_link(path: &Path) -> Option<u64> {
    let target = fs::read_link(path).ok()?;
    let inode = target.to_str()?.strip_prefix(LINK)?.strip_suffix(']')?;
    inode.parse().ok()
}

/// Namespaces that are mounted somewhere else than where `ip netns` does it, in each mount namespace.
fn mounts(processes: &[PathBuf]) -> impl Iterator<Item = PathBuf> + use<'_> {
    let mut seen = BTreeSet::new();
    let is_new = move |process: &&PathBuf| {
        let link = fs::read_link(process.join("ns/mnt"));
        link.is_ok_and(|link| seen.insert(link))
    };
    processes.iter().filter(is_new).flat_map(|process| {
        let table = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
        let root = process.join("root");
        mounted(&table)
            .into_iter()
            .map(|point| root.join(point))
            .collect::<Vec<_>>()
    })
}

/// Mount points of network namespaces in `/proc/PID/mountinfo` (proc_pid_mountinfo(5)), relative to the root.
fn mounted(table: &str) -> Vec<String> {
    let point = |line: &str| {
        let mut fields = line.split(' ').skip(3);
        fields.next()?.strip_prefix(LINK)?;
        let point = fields.next()?.trim_start_matches('/');
        Some(point.replace("\\040", " "))
    };
    table.lines().filter_map(point).collect()
}

/// A name whose namespace is gone is a plain file.
fn is_namespace(namespace: &NetNamespace) -> bool {
    rustix::fs::fstatfs(namespace).is_ok_and(|stat| stat.f_type == NSFS_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_of_network_namespaces_are_read_from_the_table() {
        let table = "\
            36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n\
            41 35 0:4 net:[4026532263] /run/docker/netns/my\\040box rw shared:9 - nsfs nsfs rw\n\
            42 35 0:4 mnt:[4026532264] /run/snapd/ns/lxd.mnt rw - nsfs nsfs rw\n\
            torn\n";
        assert_eq!(mounted(table), ["run/docker/netns/my box"]);
    }

    #[test]
    fn the_own_namespace_is_found() {
        let own = NetNamespace::current().unwrap().inode();
        let search = search(|namespace| namespace.inode() == own).unwrap();
        assert_eq!(search.found.map(|found| found.inode()), Some(own));
    }

    #[test]
    fn what_this_process_holds_is_looked_at_before_other_processes() {
        let held = fs::File::open("/proc/self/ns/net").unwrap();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&held);
        let other = PathBuf::from("/proc/1");
        let places: Vec<PathBuf> = places(std::slice::from_ref(&other)).collect();
        let at = |place: &Path| places.iter().position(|one| one == place).unwrap();
        let own = PathBuf::from(format!("/proc/self/fd/{descriptor}"));
        assert!(at(&own) < at(&other.join("ns/net")), "{places:?}");
    }
}
