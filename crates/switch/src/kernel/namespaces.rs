//! The network namespaces of this machine, and the interfaces in them.
//!
//! A [`NetnsThread`] inside the interface's namespace reads and writes everything, so an interface of the same name in
//! another namespace is never touched. Devices move between namespaces and keep their values: [`locate`] searches all
//! namespaces, and calls a device gone only if the search could see every process.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nicpoll_sys::netns::{self, NetNamespace, NetnsThread};

use super::access::{Kernel, Target};
use super::links::{Interface, LinkInfo};
use super::netlink::Control;
use crate::error::SwitchError;
use crate::knob::{ScopedKnob, Value};

/// `NSFS_MAGIC`, include/uapi/linux/magic.h: the file system of namespaces.
const NSFS_MAGIC: rustix::fs::FsWord = 0x6e73_6673;
/// Prefix of a link to a network namespace.
const LINK: &str = "net:[";
/// Inode number of the first PID namespace (`PROC_PID_INIT_INO`, include/linux/proc_ns.h), whose `/proc` shows
/// every process.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The result of a search.
#[derive(Debug)]
pub(crate) struct NamespaceSearch {
    /// The wanted namespace.
    pub found: Option<NetNamespace>,
    /// Whether every process could be searched. Even then, a namespace that only a socket keeps alive is missed.
    pub is_complete: bool,
}

/// Searches for a namespace, cheap places first: this process, names, other processes, then all mounts.
pub(crate) fn search(mut is_it: impl FnMut(&NetNamespace) -> bool) -> io::Result<NamespaceSearch> {
    let mut seen = BTreeSet::new();
    let pid_namespace = fs::read_link("/proc/self/ns/pid");
    let mut search = NamespaceSearch {
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
            // Processes and names come and go meanwhile.
            Err(_) => {}
        }
    }
    Ok(search)
}

/// Paths that may lead to a namespace, in search order. This process's come first: a study's own namespaces have no
/// names and are searched for in each trial.
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

/// Whether a process exists but may not be inspected. The kernel also refuses one that has just ended. The first
/// process may have more capabilities than root has here; it is in the first namespace, as kernel threads are.
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

/// The namespaces of a process's threads, and those that it holds open.
fn held_by(process: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let threads = entries(&process.join("task")).map(|thread| thread.join("ns/net"));
    let descriptors = entries(&process.join("fd")).filter(|path| inode_of_link(path).is_some());
    threads.chain(descriptors)
}

/// Parses the inode number in a link to `net:[4026531840]`.
fn inode_of_link(path: &Path) -> Option<u64> {
    let target = fs::read_link(path).ok()?;
    let inode = target.to_str()?.strip_prefix(LINK)?.strip_suffix(']')?;
    inode.parse().ok()
}

/// Namespaces mounted in places other than `ip netns` uses, in each mount namespace.
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

/// Parses the mount points of network namespaces in `/proc/PID/mountinfo` (proc_pid_mountinfo(5)), relative to the
/// root.
fn mounted(table: &str) -> Vec<String> {
    let point = |line: &str| {
        let mut fields = line.split(' ').skip(3);
        fields.next()?.strip_prefix(LINK)?;
        let point = fields.next()?.trim_start_matches('/');
        Some(point.replace("\\040", " "))
    };
    table.lines().filter_map(point).collect()
}

/// Whether it is a namespace: a name whose namespace is gone is a plain file.
fn is_namespace(namespace: &NetNamespace) -> bool {
    rustix::fs::fstatfs(namespace).is_ok_and(|stat| stat.f_type == NSFS_MAGIC)
}

/// The namespaces entered so far, with a [`Control`] in each.
#[derive(Default)]
pub struct Machine {
    threads: BTreeMap<u64, NetnsThread<Control>>,
}

impl Machine {
    /// Creates a machine with no namespace entered.
    pub fn new() -> Self {
        Machine::default()
    }

    /// Enters a namespace and returns its inode number, which identifies it from then on.
    ///
    /// # Errors
    /// `EPERM` without CAP_SYS_ADMIN, unless the namespace is the calling thread's own and `/sys` shows it.
    pub fn enter(&mut self, namespace: NetNamespace) -> io::Result<u64> {
        let inode = namespace.inode();
        if let Entry::Vacant(place) = self.threads.entry(inode) {
            let is_own = NetNamespace::current()?.inode() == inode;
            let thread = match NetnsThread::enter(namespace, Control::new) {
                Err(error) if is_own && error.kind() == io::ErrorKind::PermissionDenied => {
                    stay().ok_or(error)?
                }
                entered => entered?,
            };
            place.insert(thread);
        }
        Ok(inode)
    }

    /// Enters the namespace of the calling thread.
    pub fn enter_current(&mut self) -> Result<u64, SwitchError> {
        let entered = NetNamespace::current().and_then(|namespace| self.enter(namespace));
        entered.map_err(SwitchError::of_io("entering the network namespace"))
    }

    /// Enters the namespace of an inode number unless it has been entered. Returns `false` if there is none (any more).
    fn enter_inode(&mut self, inode: u64) -> io::Result<bool> {
        if self.threads.contains_key(&inode) {
            return Ok(true);
        }
        match search(|namespace| namespace.inode() == inode)?.found {
            Some(namespace) => self.enter(namespace).map(|_| true),
            None => Ok(false),
        }
    }

    /// Runs `job` inside a namespace that has been entered.
    pub fn run<T: Send + 'static>(
        &self,
        netns_inode: u64,
        job: impl FnOnce(&mut Control) -> T + Send + 'static,
    ) -> Result<T, SwitchError> {
        let failed = SwitchError::of_io(format!("working in network namespace {netns_inode}"));
        let thread = self.threads.get(&netns_inode);
        let thread = thread.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let done = thread.run(job);
        done.map_err(|gone| failed(io::Error::new(io::ErrorKind::NotFound, gone)))
    }
}

/// Starts a thread in the caller's namespace; `None` if `/sys` shows another one, as after nsenter(1).
fn stay() -> Option<NetnsThread<Control>> {
    let thread = NetnsThread::stay(Control::new).ok()?;
    let links = thread.run(Control::links).ok()?.ok()?;
    let classes = Path::new("/sys/class/net");
    // A link has its device's number only if that directory shows it.
    let is_shown = |link: &LinkInfo| link.interface.device_id.is_some();
    let others = entries(classes).filter(|path| path.is_dir()).count();
    (others == links.len() && links.iter().all(is_shown)).then_some(thread)
}

impl Kernel for Machine {
    fn read(&mut self, target: &Target, knob: &ScopedKnob) -> Result<Option<Value>, SwitchError> {
        let (own, knob) = (target.clone(), knob.clone());
        self.run(target.netns_inode, move |control| control.read(&own, &knob))?
    }

    fn write(
        &mut self,
        target: &Target,
        knob: &ScopedKnob,
        value: &Value,
    ) -> Result<(), SwitchError> {
        let (own, knob, value) = (target.clone(), knob.clone(), value.clone());
        self.run(target.netns_inode, move |control| {
            control.write(&own, &knob, &value)
        })?
    }
}

/// Where a device is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// In this namespace, which has been entered.
    At(Target),
    /// It no longer exists, and its values went with it.
    Gone,
    /// It was not found, but may be in a namespace that could not be searched.
    Unknown,
}

/// Finds a device by [`Interface::is_still`], first in the namespace of `known`, then in every other one.
pub(crate) fn locate(machine: &mut Machine, known: &Target) -> Result<Location, SwitchError> {
    let name = &known.interface.name;
    let failed = &SwitchError::of_io(format!("searching network namespaces for {name}"));
    if machine.enter_inode(known.netns_inode).map_err(failed)? {
        let device = known.interface.clone();
        let now = machine.run(known.netns_inode, move |control| look(control, &device))??;
        if let Some(interface) = now {
            return Ok(Location::At(Target::new(known.netns_inode, interface)));
        }
    }
    let mut is_complete = true;
    let mut now = None;
    let elsewhere = search(|namespace| {
        match look_into(namespace, &known.interface) {
            Ok(interface) => now = interface,
            Err(_) => is_complete = false,
        }
        now.is_some()
    })
    .map_err(failed)?;
    match (elsewhere.found, now) {
        (Some(namespace), Some(interface)) => {
            let netns_inode = machine.enter(namespace).map_err(failed)?;
            Ok(Location::At(Target::new(netns_inode, interface)))
        }
        _ if is_complete && elsewhere.is_complete => Ok(Location::Gone),
        _ => Ok(Location::Unknown),
    }
}

/// Looks into a namespace from a temporary thread: a permanent one would keep the namespace alive.
fn look_into(
    namespace: &NetNamespace,
    device: &Interface,
) -> Result<Option<Interface>, SwitchError> {
    let failed = &SwitchError::of_io(format!("searching network namespace {}", namespace.inode()));
    let entered = namespace
        .try_clone()
        .and_then(|namespace| NetnsThread::enter(namespace, Control::new))
        .map_err(failed)?;
    let device = device.clone();
    let found = entered.run(move |control| look(control, &device));
    found.map_err(|gone| failed(io::Error::other(gone)))?
}

fn look(control: &mut Control, device: &Interface) -> Result<Option<Interface>, SwitchError> {
    let links = control.links()?.into_iter();
    Ok(links
        .map(|link| link.interface)
        .find(|now| device.is_still(now)))
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
