//! The kernel as the switch sees it: knobs that can be read and written, one at a time.
//!
//! What must hold: reading changes nothing; a write changes its knob and, for a knob of the whole
//! interface, the same knob of its NAPI instances. Everything that decides *what* to write stands above this,
//! so that it can be tested without a kernel.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::control::{Control, ControlError, Interface};
use crate::knob::{Knob, Value};

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
        self.read_knob(target, knob)
    }

    fn write(&mut self, target: &Target, knob: &Knob, value: &Value) -> Result<(), ControlError> {
        self.write_knob(target, knob, value)
    }

    fn wait(&mut self, time: Duration) {
        thread::sleep(time);
    }
}

impl Control {
    pub(crate) fn write_device(
        &mut self,
        interface: &Interface,
        file: &str,
        number: u64,
    ) -> Result<(), ControlError> {
        let path = self.device_file(interface, file)?;
        fs::write(&path, number.to_string()).map_err(ControlError::of_io(format!(
            "writing {number} to {}",
            path.display()
        )))
    }

    pub(crate) fn read_device(
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

pub(crate) fn of_thread<T>(
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
