//! Where a device that was changed is now. A device moves between network namespaces, into a container and back,
//! and takes its values along.
//!
//! What must hold: a device is told from every other by what the kernel gives it alone ([`Interface::is_still`]),
//! and it is called gone only when every network namespace of the machine was searched.

use nicpoll_sys::netns::{NetNamespace, NetnsThread};

use crate::control::{Control, ControlError, Interface};
use crate::error::SwitchError;
use crate::kernel::Target;
use crate::machine::Machine;
use crate::namespaces::search;

/// What is known of the place of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// It is here, and its namespace has been entered.
    At(Target),
    /// It is no more, and its values went with it.
    Gone,
    /// It was not found, and not every namespace could be searched: it may be in one of the others.
    Unknown,
}

/// Finds the device of `known`: where it was then, or in any other namespace.
pub(crate) fn locate(machine: &mut Machine, known: &Target) -> Result<Whereabouts, SwitchError> {
    let failed = |source| SwitchError::Namespace {
        interface: known.interface.name.clone(),
        source,
    };
    if machine.enter_inode(known.netns_inode).map_err(failed)? {
        let device = known.interface.clone();
        let now = machine.run(known.netns_inode, move |control| look(control, &device))??;
        if let Some(interface) = now {
            return Ok(Whereabouts::At(Target {
                netns_inode: known.netns_inode,
                interface,
            }));
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
        (Some(namespace), Some(interface)) => Ok(Whereabouts::At(Target {
            netns_inode: machine.enter(namespace).map_err(failed)?,
            interface,
        })),
        _ if is_complete && elsewhere.is_complete => Ok(Whereabouts::Gone),
        _ => Ok(Whereabouts::Unknown),
    }
}

/// By a thread that leaves again: it would keep the namespace alive.
fn look_into(
    namespace: &NetNamespace,
    device: &Interface,
) -> Result<Option<Interface>, ControlError> {
    let doing = || format!("searching network namespace {}", namespace.inode());
    let failed = ControlError::of_io(doing());
    let entered = namespace
        .try_clone()
        .and_then(|namespace| NetnsThread::enter(namespace, Control::new))
        .map_err(failed)?;
    let device = device.clone();
    let found = entered.run(move |control| look(control, &device));
    found.map_err(|gone| ControlError::of_io(doing())(std::io::Error::other(gone)))?
}

fn look(control: &mut Control, device: &Interface) -> Result<Option<Interface>, ControlError> {
    let links = control.links()?.into_iter();
    Ok(links
        .map(|link| link.interface)
        .find(|now| device.is_still(now)))
}
