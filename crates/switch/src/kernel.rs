//! The kernel as the switch sees it: knobs that can be read and written, one at a time.
//!
//! What must hold: reading changes nothing; a write changes its knob and, for a knob of the whole
//! interface, the same knob of its NAPI instances. Everything that decides *what* to write stands above this,
//! so that it can be tested without a kernel.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nicpoll_sys::schedule;

use crate::control::{Control, ControlError, Interface, NapiAttribute};
use crate::knob::{Knob, Scope, Value};

/// An interface with the network namespace that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Inode number of the namespace.
    pub netns_inode: u64,
    /// The interface.
    pub interface: Interface,
}

/// Where knobs are read and written.
pub trait Kernel {
    /// What a knob holds now; `None` when there is no such knob (any more): its NAPI instance or
    /// thread is gone, or the device or kernel has nothing of the kind.
    fn read(&mut self, target: &Target, knob: &Knob) -> Result<Option<Value>, ControlError>;

    /// Writes a knob.
    fn write(&mut self, target: &Target, knob: &Knob, value: &Value) -> Result<(), ControlError>;

    /// Lets time pass for the timers of the interface.
    fn wait(&mut self, time: Duration);
}

/// A control is the kernel for its own namespace. The calling thread must be one that sees that namespace
/// under `/sys` ([`nicpoll_sys::netns::enter_with_private_sysfs`]).
impl Kernel for Control {
    fn read(&mut self, target: &Target, knob: &Knob) -> Result<Option<Value>, ControlError> {
        let interface = &target.interface;
        match knob {
            Knob::Up => {
                let links = self.links()?;
                let mut own = links
                    .iter()
                    .filter(|link| link.interface.ifindex == interface.ifindex);
                Ok(own.next().map(|link| Value::flag(link.is_up)))
            }
            Knob::Feature(name) => {
                let wanted = self.features(interface.ifindex)?.wanted;
                Ok(wanted.get(name).map(|&on| Value::flag(on)))
            }
            Knob::Threaded(Scope::Device) => self.read_device(interface, "threaded"),
            Knob::DeferHardIrqs(Scope::Device) => {
                self.read_device(interface, "napi_defer_hard_irqs")
            }
            Knob::GroFlushTimeout(Scope::Device) => {
                self.read_device(interface, "gro_flush_timeout")
            }
            Knob::Threaded(Scope::Napi(id))
            | Knob::DeferHardIrqs(Scope::Napi(id))
            | Knob::GroFlushTimeout(Scope::Napi(id))
            | Knob::IrqSuspendTimeout(id) => self.read_napi(interface.ifindex, *id, knob),
            Knob::Moderation(parameter) => {
                let there = supported(self.moderation(interface.ifindex))?.unwrap_or_default();
                Ok(there
                    .get(parameter)
                    .map(|&value| Value::Number(value.into())))
            }
            Knob::ThreadCpus(pid) => of_thread(*pid, "asking for the CPUs", schedule::cpus)
                .map(|cpus| cpus.map(Value::Cpus)),
            Knob::ThreadPolicy(pid) => {
                of_thread(*pid, "asking for the scheduling", schedule::policy)
                    .map(|policy| policy.map(Value::Policy))
            }
        }
    }

    fn write(&mut self, target: &Target, knob: &Knob, value: &Value) -> Result<(), ControlError> {
        let interface = &target.interface;
        match (knob, value) {
            (Knob::Up, Value::Number(up)) => self.set_up(interface.ifindex, *up != 0),
            (Knob::Feature(name), Value::Number(on)) => {
                let change = BTreeMap::from([(name.clone(), *on != 0)]);
                self.set_features(interface.ifindex, &change)
            }
            (Knob::Threaded(scope), Value::Number(number)) => self.write_scoped(
                interface,
                *scope,
                "threaded",
                NapiAttribute::Threaded,
                *number,
            ),
            (Knob::DeferHardIrqs(scope), Value::Number(number)) => {
                let (file, attribute) = ("napi_defer_hard_irqs", NapiAttribute::DeferHardIrqs);
                self.write_scoped(interface, *scope, file, attribute, *number)
            }
            (Knob::GroFlushTimeout(scope), Value::Number(number)) => {
                let (file, attribute) = ("gro_flush_timeout", NapiAttribute::GroFlushTimeout);
                self.write_scoped(interface, *scope, file, attribute, *number)
            }
            (Knob::IrqSuspendTimeout(id), Value::Number(number)) => {
                self.set_napi(*id, NapiAttribute::IrqSuspendTimeout, *number)
            }
            (Knob::Moderation(parameter), Value::Number(number)) => {
                let number = u32::try_from(*number).map_err(|_| out_of_range(knob, value))?;
                self.set_moderation(interface.ifindex, *parameter, number)
            }
            (Knob::ThreadCpus(pid), Value::Cpus(cpus)) => schedule::set_cpus(*pid, cpus).map_err(
                ControlError::of_io(format!("binding thread {pid} to CPUs {value}")),
            ),
            (Knob::ThreadPolicy(pid), Value::Policy(policy)) => schedule::set_policy(*pid, *policy)
                .map_err(ControlError::of_io(format!(
                    "scheduling thread {pid} as {value}"
                ))),
            _ => Err(out_of_range(knob, value)),
        }
    }

    fn wait(&mut self, time: Duration) {
        thread::sleep(time);
    }
}

impl Control {
    fn write_scoped(
        &mut self,
        interface: &Interface,
        scope: Scope,
        file: &str,
        attribute: NapiAttribute,
        number: u64,
    ) -> Result<(), ControlError> {
        match scope {
            Scope::Napi(id) => self.set_napi(id, attribute, number),
            Scope::Device => {
                let path = self.device_file(interface, file)?;
                fs::write(&path, number.to_string()).map_err(ControlError::of_io(format!(
                    "writing {number} to {}",
                    path.display()
                )))
            }
        }
    }

    fn read_device(
        &mut self,
        interface: &Interface,
        file: &str,
    ) -> Result<Option<Value>, ControlError> {
        let path = self.device_file(interface, file)?;
        let doing = || format!("reading {}", path.display());
        match fs::read_to_string(&path) {
            Ok(text) => match text.trim().parse() {
                Ok(number) => Ok(Some(Value::Number(number))),
                Err(_) => Err(ControlError::of_io(doing())(io::Error::other(format!(
                    "'{}' is not a number",
                    text.trim()
                )))),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ControlError::of_io(doing())(error)),
        }
    }

    /// A file of the interface's directory, by the name that it has now.
    fn device_file(&mut self, interface: &Interface, file: &str) -> Result<PathBuf, ControlError> {
        let directory = |name: &str| Path::new("/sys/class/net").join(name);
        let is_own = |name: &str| {
            let index = fs::read_to_string(directory(name).join("ifindex"));
            index.is_ok_and(|index| index.trim() == interface.ifindex.to_string())
        };
        if is_own(&interface.name) {
            return Ok(directory(&interface.name).join(file));
        }
        let links = self.links()?;
        let renamed = links
            .iter()
            .find(|link| link.interface.ifindex == interface.ifindex);
        match renamed {
            Some(link) if is_own(&link.interface.name) => {
                Ok(directory(&link.interface.name).join(file))
            }
            _ => Err(ControlError::of_io(format!(
                "finding interface {} (ifindex {}) under /sys/class/net",
                interface.name, interface.ifindex
            ))(io::ErrorKind::NotFound.into())),
        }
    }

    fn read_napi(
        &mut self,
        ifindex: u32,
        id: u32,
        knob: &Knob,
    ) -> Result<Option<Value>, ControlError> {
        let napis = supported(self.napis(ifindex))?.unwrap_or_default();
        let Some(napi) = napis.into_iter().find(|napi| napi.id == id) else {
            return Ok(None);
        };
        Ok(napi.value_of(knob).map(Value::Number))
    }
}

/// What a question got, or `None` where the device or kernel has nothing of the kind.
pub(crate) fn supported<T>(answer: Result<T, ControlError>) -> Result<Option<T>, ControlError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        // A kernel without the family answers that there is none of that name.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::Unsupported | io::ErrorKind::NotFound
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn of_thread<T>(
    pid: u32,
    doing: &str,
    ask: impl FnOnce(u32) -> io::Result<T>,
) -> Result<Option<T>, ControlError> {
    // A thread of the kernel's that polls is called napi/IF-ID; another process may have its pid by now.
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    if !name.starts_with("napi/") {
        return Ok(None);
    }
    match ask(pid) {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.raw_os_error() == Some(ESRCH) => Ok(None),
        Err(error) => Err(ControlError::of_io(format!("{doing} of thread {pid}"))(
            error,
        )),
    }
}

const ESRCH: i32 = rustix::io::Errno::SRCH.raw_os_error();

fn out_of_range(knob: &Knob, value: &Value) -> ControlError {
    ControlError::of_io(format!("writing {value} to {knob}"))(io::ErrorKind::InvalidInput.into())
}
