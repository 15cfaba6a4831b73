//! Reads and writes one knob at a time: by netlink, sysfs, `/proc/sys` and the scheduler.
//!
//! Reading changes nothing. A write changes its knob; for a knob of the whole interface, the kernel also changes the
//! same knob of its NAPI instances. Decisions about writes are made by callers of [`Kernel`], which tests replace.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nicpoll_sys::netns::{self, NetNamespace, NetnsThread};
use nicpoll_sys::schedule;

use super::links::Interface;
use super::netlink::{Control, supported};
use crate::error::SwitchError;
use crate::knob::row::{CardTable, KnobPlace};
use crate::knob::table::{TABLE, all_rows};
use crate::knob::{KnobRow, Scope, ScopedKnob, Value};

const SYSCTL_ROOT: &str = "/proc/sys";
/// Write permission of the owner, root.
const OWNER_WRITES: u32 = 0o200;
const ESRCH: i32 = rustix::io::Errno::SRCH.raw_os_error();

/// An interface with its network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Inode number of the namespace.
    pub netns_inode: u64,
    /// The interface.
    pub interface: Interface,
}

impl Target {
    /// An interface of a namespace.
    pub fn new(netns_inode: u64, interface: Interface) -> Self {
        Target {
            netns_inode,
            interface,
        }
    }

    /// Returns the option that names the interface's namespace: ` --netns lab`, or nothing for the program's own.
    pub fn netns_option(&self) -> String {
        self.named_netns()
            .map_or_else(String::new, |netns| format!(" --netns {netns}"))
    }

    /// Returns the command that brings the interface up.
    pub(crate) fn bring_up(&self) -> String {
        let netns = self
            .named_netns()
            .map_or_else(String::new, |netns| format!(" -n {netns}"));
        format!("ip{netns} link set {} up", self.interface.name)
    }

    /// The name of the interface's namespace, if it is not the program's own and has one.
    fn named_netns(&self) -> Option<String> {
        let own = NetNamespace::open(Path::new("/proc/self/ns/net"));
        if own.is_ok_and(|own| own.inode() == self.netns_inode) {
            return None;
        }
        netns::name_of(self.netns_inode)
    }

    /// Returns the interface's name, with its namespace if that is another one: both ends of a pair may have the same
    /// name.
    pub fn label(&self, own_netns_inode: u64) -> String {
        label(&self.interface.name, self.netns_inode, own_netns_inode)
    }
}

/// Returns an interface's name as seen from a namespace.
pub fn label(interface: &str, netns_inode: u64, own_netns_inode: u64) -> String {
    if netns_inode == own_netns_inode {
        return String::from(interface);
    }
    match netns::name_of(netns_inode) {
        Some(netns) => format!("{interface} (netns {netns})"),
        None => format!("{interface} (net:[{netns_inode}])"),
    }
}

/// Where knobs are read and written.
pub trait Kernel {
    /// Reads the knob's value; `None` if the knob does not exist (any more): its NAPI instance or thread is gone, or
    /// the device or kernel lacks it.
    fn read(&mut self, target: &Target, knob: &ScopedKnob) -> Result<Option<Value>, SwitchError>;

    /// Writes a knob.
    fn write(
        &mut self,
        target: &Target,
        knob: &ScopedKnob,
        value: &Value,
    ) -> Result<(), SwitchError>;

    /// Waits for the timers of the interface.
    fn wait(&mut self, time: Duration) {
        thread::sleep(time);
    }
}

/// Accesses the control's own namespace. The calling thread must see that namespace under `/sys`
/// ([`nicpoll_sys::netns::enter_with_private_sysfs`]).
impl Kernel for Control {
    fn read(&mut self, target: &Target, knob: &ScopedKnob) -> Result<Option<Value>, SwitchError> {
        let ifindex = target.interface.ifindex;
        match (&knob.row().place, knob.scope()) {
            (KnobPlace::Link, _) => {
                let links = self.links()?;
                let own = links.iter().find(|link| link.interface.ifindex == ifindex);
                Ok(own.map(|link| Value::flag(link.is_up)))
            }
            (KnobPlace::Feature(_), _) => {
                let wanted = self.features(ifindex)?.wanted;
                let name = knob.feature().unwrap_or_default();
                Ok(wanted.get(name).map(|&on| Value::flag(on)))
            }
            (KnobPlace::Napi(_), Scope::Napi(_)) => {
                let mut napis = supported(self.napis(ifindex))?.into_iter().flatten();
                let value = napis.find_map(|napi| napi.value_of(knob));
                Ok(value.map(Value::Number))
            }
            (KnobPlace::Napi(place), _) => match place.file {
                Some((file, ..)) => self.read_device(&target.interface, file),
                None => Ok(None),
            },
            (KnobPlace::Card(table, attribute), _) => {
                let known = supported(self.card_numbers(*table, ifindex))?.unwrap_or_default();
                Ok(number_of(&known, *attribute))
            }
            (KnobPlace::Sysctl(name), _) => read_sysctl(name),
            (KnobPlace::ThreadCpus, Scope::Thread(pid)) => {
                let cpus = of_thread(pid, "asking for the CPUs", schedule::cpus)?;
                Ok(cpus.map(Value::Cpus))
            }
            (KnobPlace::ThreadPolicy, Scope::Thread(pid)) => {
                let policy = of_thread(pid, "asking for the scheduling", schedule::policy)?;
                Ok(policy.map(Value::Policy))
            }
            (KnobPlace::ThreadCpus | KnobPlace::ThreadPolicy, _) => Ok(None),
        }
    }

    fn write(
        &mut self,
        target: &Target,
        knob: &ScopedKnob,
        value: &Value,
    ) -> Result<(), SwitchError> {
        let ifindex = target.interface.ifindex;
        let row = knob.row();
        let refused = || {
            let doing = format!("writing {value} to {knob}");
            SwitchError::of_io(doing)(io::ErrorKind::InvalidInput.into())
        };
        match (&row.place, knob.scope(), value) {
            (KnobPlace::Link, _, Value::Number(up)) => self.set_up(ifindex, *up != 0),
            (KnobPlace::Feature(_), _, Value::Number(on)) => {
                let name = String::from(knob.feature().unwrap_or_default());
                self.set_features(ifindex, &BTreeMap::from([(name, *on != 0)]))
            }
            (KnobPlace::Napi(place), Scope::Napi(id), Value::Number(number)) => {
                self.set_napi(id, place.attribute, row.name, *number)
            }
            (KnobPlace::Napi(place), _, Value::Number(number)) => {
                let (file, ..) = place.file.ok_or_else(refused)?;
                let path = self.device_file(&target.interface, file)?;
                let doing = format!("writing {number} to {}", path.display());
                fs::write(&path, number.to_string()).map_err(SwitchError::of_io(doing))
            }
            (KnobPlace::Card(table, attribute), _, Value::Number(number)) => {
                let number = u32::try_from(*number).map_err(|_| refused())?;
                self.set_card_number((*table, *attribute), row, ifindex, number)
            }
            (KnobPlace::Sysctl(name), _, Value::Text(text)) => {
                let path = sysctl_path(name);
                let doing = format!("writing '{text}' to {}", path.display());
                fs::write(&path, text).map_err(SwitchError::of_io(doing))
            }
            (KnobPlace::ThreadCpus, Scope::Thread(pid), Value::Cpus(cpus)) => {
                let doing = format!("binding thread {pid} to CPUs {value}");
                schedule::set_cpus(pid, cpus).map_err(SwitchError::of_io(doing))
            }
            (KnobPlace::ThreadPolicy, Scope::Thread(pid), Value::Policy(policy)) => {
                let doing = format!("scheduling thread {pid} as {value}");
                schedule::set_policy(pid, *policy).map_err(SwitchError::of_io(doing))
            }
            _ => Err(refused()),
        }
    }
}

impl Control {
    /// Reads every value of the interface itself that this kernel and driver have.
    pub(crate) fn read_own(
        &mut self,
        target: &Target,
    ) -> Result<BTreeMap<ScopedKnob, Value>, SwitchError> {
        let ifindex = target.interface.ifindex;
        let features = supported(self.features(ifindex))?.unwrap_or_default();
        let mut own: BTreeMap<ScopedKnob, Value> = features
            .wanted
            .iter()
            .filter_map(|(name, &on)| Some((ScopedKnob::of_feature(name)?, Value::flag(on))))
            .collect();
        // The features are read above; values of threads need a pid.
        for row in all_rows().filter(|row| !row.is_offload()) {
            let knob = ScopedKnob::of_interface(row);
            own.extend(self.read(target, &knob)?.map(|value| (knob, value)));
        }
        Ok(own)
    }

    /// Reads the driver's parameters of interrupt moderation.
    ///
    /// # Errors
    /// Of kind `Unsupported` when it has none.
    pub fn moderation(
        &mut self,
        ifindex: u32,
    ) -> Result<Vec<(&'static KnobRow, u32)>, SwitchError> {
        let known = self.card_numbers(CardTable::Coalescing, ifindex)?;
        let of = |row: &&'static KnobRow| match row.place {
            KnobPlace::Card(CardTable::Coalescing, attribute) => {
                Some((*row, *known.get(&attribute)?))
            }
            _ => None,
        };
        Ok(TABLE.iter().filter_map(of).collect())
    }

    fn read_device(
        &mut self,
        interface: &Interface,
        file: &str,
    ) -> Result<Option<Value>, SwitchError> {
        let path = self.device_file(interface, file)?;
        let number = match fs::read_to_string(&path) {
            Ok(text) => text
                .trim()
                .parse()
                .map_err(|_| io::Error::other(format!("'{}' is not a number", text.trim()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => Err(error),
        };
        let doing = format!("reading {}", path.display());
        let number = number.map_err(SwitchError::of_io(doing))?;
        Ok(Some(Value::Number(number)))
    }

    /// The path of a file in the interface's sysfs directory, under its present name.
    fn device_file(&mut self, interface: &Interface, file: &str) -> Result<PathBuf, SwitchError> {
        let Interface { ifindex, name, .. } = interface;
        let directory = |name: &str| Path::new("/sys/class/net").join(name);
        let is_own = |name: &str| {
            let index = fs::read_to_string(directory(name).join("ifindex"));
            index.is_ok_and(|index| index.trim() == ifindex.to_string())
        };
        if is_own(name) {
            return Ok(directory(name).join(file));
        }
        let mut links = self.links()?.into_iter();
        let renamed = links.find(|link| link.interface.ifindex == *ifindex);
        let renamed = renamed.map(|link| link.interface.name);
        renamed
            .filter(|name| is_own(name))
            .map(|name| directory(&name).join(file))
            .ok_or_else(|| {
                let doing =
                    format!("finding interface {name} (ifindex {ifindex}) under /sys/class/net");
                SwitchError::of_io(doing)(io::ErrorKind::NotFound.into())
            })
    }
}

fn number_of(known: &BTreeMap<u16, u32>, attribute: u16) -> Option<Value> {
    let value = known.get(&attribute)?;
    Some(Value::Number(u64::from(*value)))
}

fn of_thread<T>(
    pid: u32,
    doing: &str,
    ask: impl FnOnce(u32) -> io::Result<T>,
) -> Result<Option<T>, SwitchError> {
    // Kernel threads that poll are called napi/IF-ID; the pid may belong to another process by now.
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    if !name.starts_with("napi/") {
        return Ok(None);
    }
    match ask(pid) {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.raw_os_error() == Some(ESRCH) => Ok(None),
        Err(error) => Err(SwitchError::of_io(format!("{doing} of thread {pid}"))(
            error,
        )),
    }
}

/// The owner of a sysctl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SysctlOwner {
    /// Each network namespace has its own.
    Namespace,
    /// The machine has one for all namespaces: it affects every interface and program.
    Machine,
    /// This kernel has no such sysctl, or nobody can write it.
    Nobody,
}

impl SysctlOwner {
    /// Tells which sysctls belong to a namespace, and why one refuses its value. Values are written only in a namespace
    /// created for this test.
    ///
    /// # Errors
    /// `EPERM` without CAP_SYS_ADMIN.
    pub fn of(values: Vec<(String, String)>) -> io::Result<Vec<(SysctlOwner, Option<io::Error>)>> {
        let is_here: Vec<bool> = values.iter().map(|(name, _)| is_writable(name)).collect();
        let thread = NetnsThread::enter(NetNamespace::create()?, || ())?;
        // Only sysctls below `net` can belong to a namespace.
        let tried = |(name, value): &(String, String)| {
            let is_net = name.starts_with("net.") || name.starts_with("net/");
            (is_net && is_writable(name)).then(|| fs::write(sysctl_path(name), value).err())
        };
        let tried = thread.run(move |()| values.iter().map(tried).collect::<Vec<_>>());
        let tried = tried.map_err(io::Error::other)?;
        let owner = |(own, is_here)| match (own, is_here) {
            (Some(refused), _) => (SysctlOwner::Namespace, refused),
            (None, true) => (SysctlOwner::Machine, None),
            (None, false) => (SysctlOwner::Nobody, None),
        };
        Ok(tried.into_iter().zip(is_here).map(owner).collect())
    }
}

fn sysctl_path(name: &str) -> PathBuf {
    let path = match name.contains('/') {
        true => String::from(name),
        false => name.replace('.', "/"),
    };
    PathBuf::from(SYSCTL_ROOT).join(path)
}

/// In a namespace that does not own a sysctl of the whole machine, the kernel shows it as not writable.
fn is_writable(name: &str) -> bool {
    let found = fs::metadata(sysctl_path(name));
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & OWNER_WRITES != 0)
}

/// Reads a sysctl; `None` if the namespace has none that can be written.
fn read_sysctl(name: &str) -> Result<Option<Value>, SwitchError> {
    if !is_writable(name) {
        return Ok(None);
    }
    let path = sysctl_path(name);
    let doing = format!("reading {}", path.display());
    let text = fs::read_to_string(&path).map_err(SwitchError::of_io(doing))?;
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(Some(Value::Text(words.join(" "))))
}
