//! The interfaces of all network namespaces of this machine, each reached from a thread inside its
//! namespace.
//!
//! What must hold: everything that is read or written goes through a [`NetnsThread`], so that it meets no
//! interface of the same name in another namespace.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::thread;
use std::time::Duration;

use nicpoll_sys::netns::{NetNamespace, NetnsThread};

use crate::control::{Control, ControlError};
use crate::kernel::{Kernel, Target};
use crate::knob::{Knob, Value};
use crate::namespaces::search;

/// The namespaces that have been entered so far, and [`Control`]s in them.
#[derive(Default)]
pub struct Machine {
    rooms: BTreeMap<u64, NetnsThread<Control>>,
}

impl Machine {
    /// No namespace entered yet.
    pub fn new() -> Self {
        Machine::default()
    }

    /// Enters a namespace and returns its inode number, by which it is known from then on.
    ///
    /// # Errors
    /// `EPERM` without CAP_SYS_ADMIN.
    pub fn enter(&mut self, namespace: NetNamespace) -> io::Result<u64> {
        let inode = namespace.inode();
        if let Entry::Vacant(place) = self.rooms.entry(inode) {
            place.insert(NetnsThread::enter(namespace, Control::new)?);
        }
        Ok(inode)
    }

    /// Enters the namespace of an inode number if it has not been entered. `false` when there is none
    /// (any more).
    pub fn enter_inode(&mut self, inode: u64) -> io::Result<bool> {
        if self.rooms.contains_key(&inode) {
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
    ) -> Result<T, ControlError> {
        let doing = || format!("working in network namespace {netns_inode}");
        let room = self
            .rooms
            .get(&netns_inode)
            .ok_or_else(|| ControlError::of_io(doing())(io::ErrorKind::NotFound.into()))?;
        room.run(job).map_err(|gone| {
            ControlError::of_io(doing())(io::Error::new(io::ErrorKind::NotFound, gone))
        })
    }
}

impl Kernel for Machine {
    fn read(&mut self, target: &Target, knob: &Knob) -> Result<Option<Value>, ControlError> {
        let (own, knob) = (target.clone(), knob.clone());
        self.run(target.netns_inode, move |control| control.read(&own, &knob))?
    }

    fn write(&mut self, target: &Target, knob: &Knob, value: &Value) -> Result<(), ControlError> {
        let (own, knob, value) = (target.clone(), knob.clone(), value.clone());
        self.run(target.netns_inode, move |control| {
            control.write(&own, &knob, &value)
        })?
    }

    fn wait(&mut self, time: Duration) {
        thread::sleep(time);
    }
}
