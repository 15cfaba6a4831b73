//! An interface's settings over netlink: offload features, NAPI instances, and who the driver is.
//!
//! What must hold: a [`Control`] is used only by threads in one network namespace, because netlink
//! answers for the namespace that its socket was made in.

use std::collections::BTreeMap;
use std::io;

use netlink_bindings::traits::NetlinkRequest;
use netlink_bindings::traits::Pusher;
use netlink_bindings::{ethtool, netdev};
use netlink_socket2::{NetlinkReply, NetlinkSocket, ReplyError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::attributes::{push_uint, uint_attribute};
use crate::ethtool_request::{Command, EthtoolRequest};
use crate::knob::Knob;
use crate::knob::place::Place;

/// `NETDEV_A_NAPI_DEFER_HARD_IRQS`, include/uapi/linux/netdev.h.
const ATTRIBUTE_DEFER_HARD_IRQS: u16 = 5;
/// `NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT`.
const ATTRIBUTE_GRO_FLUSH_TIMEOUT: u16 = 6;
/// `NETDEV_A_NAPI_IRQ_SUSPEND_TIMEOUT`.
const ATTRIBUTE_IRQ_SUSPEND_TIMEOUT: u16 = 7;
/// `NETDEV_A_NAPI_THREADED`.
const ATTRIBUTE_THREADED: u16 = 8;

/// `NETDEV_QUEUE_TYPE_RX`, include/uapi/linux/netdev.h.
pub(crate) const QUEUE_TYPE_RX: u32 = 0;

/// Why a netlink request failed.
#[derive(Debug, Error)]
#[error("{doing}")]
#[non_exhaustive]
pub struct ControlError {
    doing: String,
    source: io::Error,
}

impl ControlError {
    /// The kind of the kernel's answer: `Unsupported` where a device or kernel has no such thing,
    /// `PermissionDenied` where the caller may not.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    pub(crate) fn of(doing: impl Into<String>) -> impl FnOnce(ReplyError) -> ControlError {
        let doing = doing.into();
        // The kernel's own explanation is in the text of the reply, not in the error number.
        move |reply| {
            let source = match reply.as_io_error().raw_os_error() {
                Some(_) => io::Error::new(reply.as_io_error().kind(), reply.to_string()),
                None => reply.into(),
            };
            ControlError { doing, source }
        }
    }

    pub(crate) fn of_io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> ControlError {
        let doing = doing.into();
        move |source| ControlError { doing, source }
    }
}

/// An interface, as the kernel identifies it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interface {
    /// Index within its namespace.
    pub ifindex: u32,
    /// Name.
    pub name: String,
    /// Kind of virtual device (`veth`), or empty for one that is not virtual.
    pub driver: String,
    /// Hardware address: the permanent one where there is one.
    pub address: String,
    /// Inode number of the device's directory in sysfs. The kernel keeps it when the device gets another name,
    /// address or network namespace, and gives it to no other device until the machine is started again; null
    /// where `/sys` does not show the device.
    pub device_id: Option<u64>,
}

impl Interface {
    /// Whether `now` is the device that was recorded: under another name perhaps, with another address or in
    /// another network namespace, but not a later one that got the same index.
    pub fn is_still(&self, now: &Interface) -> bool {
        self.device_id.is_some() && self.device_id == now.device_id
    }
}

/// The values of one NAPI instance that a switch may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Napi {
    /// Id, unique in the machine while the instance exists.
    pub id: u32,
    /// How many empty polls keep the interrupt masked; null before Linux 6.13.
    pub defer_hard_irqs: Option<u32>,
    /// From the end of one round to the next poll, in ns; 0: no timer; null before Linux 6.13.
    pub gro_flush_timeout_ns: Option<u64>,
    /// How long an application may keep interrupts off, in ns; null before Linux 6.13.
    pub irq_suspend_timeout_ns: Option<u64>,
    /// Whether a kernel thread does the polling; null before Linux 6.17.
    pub threaded: Option<u32>,
    /// The thread that does the polling, if one does.
    pub thread_pid: Option<u32>,
    /// Its interrupt, where the driver says so.
    pub irq: Option<u32>,
}

/// A queue of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queue {
    /// Whether it is one to receive; otherwise it is one to send.
    pub is_rx: bool,
    /// Its number among those of its direction.
    pub id: u32,
    /// The NAPI instance that serves it, where the driver says so.
    pub napi_id: Option<u32>,
}

impl Napi {
    /// What a knob of this instance holds; `None` when this kernel does not have it, or when the knob is
    /// of something else.
    pub fn value_of(&self, knob: &Knob) -> Option<u64> {
        if knob.napi_id() != Some(self.id) {
            return None;
        }
        let Place::Napi(scoped) = knob.row().place else {
            return None;
        };
        self.attribute(scoped.attribute)
    }

    /// What an attribute of this instance holds, by its number.
    pub(crate) fn attribute(&self, attribute: u16) -> Option<u64> {
        match attribute {
            ATTRIBUTE_DEFER_HARD_IRQS => self.defer_hard_irqs.map(u64::from),
            ATTRIBUTE_GRO_FLUSH_TIMEOUT => self.gro_flush_timeout_ns,
            ATTRIBUTE_IRQ_SUSPEND_TIMEOUT => self.irq_suspend_timeout_ns,
            ATTRIBUTE_THREADED => self.threaded.map(u64::from),
            _ => None,
        }
    }
}

/// Offload features by name: what was asked for and what is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Features {
    /// Asked for.
    pub wanted: BTreeMap<String, bool>,
    /// In force.
    pub active: BTreeMap<String, bool>,
}

/// A connection to the kernel for the settings of one namespace's interfaces.
pub struct Control {
    pub(crate) socket: NetlinkSocket,
}

impl Control {
    /// A control that connects at its first request, to the namespace that the caller is in then.
    pub fn new() -> Self {
        Control {
            socket: NetlinkSocket::new(),
        }
    }

    /// Finds an interface by name.
    ///
    /// # Errors
    /// `ENODEV` when this namespace has none of that name.
    pub fn interface(&mut self, name: &str) -> Result<Interface, ControlError> {
        Ok(self.link_named(name)?.interface)
    }

    /// Sends a request. What goes wrong is told as a failure of what was being done.
    pub(crate) fn ask<'socket, R: NetlinkRequest>(
        &'socket mut self,
        request: &R,
        doing: String,
    ) -> Result<NetlinkReply<'socket, R>, ControlError> {
        let sent = self.socket.request(request);
        sent.map_err(ControlError::of_io(doing))
    }

    /// Every NAPI instance of an interface. There are none while it is down, and on veth none unless
    /// GRO is on or an XDP program is attached.
    pub fn napis(&mut self, ifindex: u32) -> Result<Vec<Napi>, ControlError> {
        let doing = || format!("listing the NAPI instances of interface {ifindex}");
        let mut request = netdev::Request::new().op_napi_get_dump();
        request.encode().push_ifindex(ifindex);
        let mut reply = self.ask(&request, doing())?;
        let mut napis = Vec::new();
        while let Some(napi) = reply.recv() {
            let napi = napi.map_err(ControlError::of(doing()))?;
            let uint = |attribute| uint_attribute(napi.get_buf(), attribute);
            napis.push(Napi {
                id: napi
                    .get_id()
                    .map_err(|error| ControlError::of(doing())(error.into()))?,
                defer_hard_irqs: napi.get_defer_hard_irqs().ok(),
                gro_flush_timeout_ns: uint(ATTRIBUTE_GRO_FLUSH_TIMEOUT),
                irq_suspend_timeout_ns: uint(ATTRIBUTE_IRQ_SUSPEND_TIMEOUT),
                threaded: napi.get_threaded().ok(),
                thread_pid: napi.get_pid().ok(),
                irq: napi.get_irq().ok(),
            });
        }
        napis.sort_by_key(|napi| napi.id);
        Ok(napis)
    }

    /// The queues in use, receive queues first. There are none while the interface is down.
    pub fn queues(&mut self, ifindex: u32) -> Result<Vec<Queue>, ControlError> {
        let doing = || format!("listing the queues of interface {ifindex}");
        let mut request = netdev::Request::new().op_queue_get_dump();
        request.encode().push_ifindex(ifindex);
        let mut reply = self.ask(&request, doing())?;
        let mut queues = Vec::new();
        while let Some(queue) = reply.recv() {
            let queue = queue.map_err(ControlError::of(doing()))?;
            let (Ok(kind), Ok(id)) = (queue.get_type(), queue.get_id()) else {
                continue;
            };
            queues.push(Queue {
                is_rx: kind == QUEUE_TYPE_RX,
                id,
                napi_id: queue.get_napi_id().ok(),
            });
        }
        queues.sort_by_key(|queue| (!queue.is_rx, queue.id));
        Ok(queues)
    }

    /// The NAPI instance of each receive queue, where the driver says so: veth does not.
    pub fn rx_queues(&mut self, ifindex: u32) -> Result<BTreeMap<u32, u32>, ControlError> {
        let queues = self
            .queues(ifindex)?
            .into_iter()
            .filter(|queue| queue.is_rx);
        Ok(queues
            .filter_map(|queue| Some((queue.id, queue.napi_id?)))
            .collect())
    }

    /// Sets one value of one NAPI instance (netdev `napi-set`, Linux 6.13 and later).
    pub(crate) fn set_napi(
        &mut self,
        napi_id: u32,
        attribute: u16,
        name: &str,
        value: u64,
    ) -> Result<(), ControlError> {
        let doing = || format!("setting {name} of NAPI {napi_id} to {value}");
        let mut request = netdev::Request::new().op_napi_set_do();
        let mut attributes = request.encode().push_id(napi_id);
        push_uint(attributes.as_vec_mut(), attribute, value);
        drop(attributes);
        self.ask(&request, doing())?
            .recv_ack()
            .map_err(ControlError::of(doing()))
    }

    /// Reads the offload features of an interface.
    pub fn features(&mut self, ifindex: u32) -> Result<Features, ControlError> {
        let doing = || format!("reading the features of interface {ifindex}");
        let mut request = EthtoolRequest::new(Command::FeaturesGet);
        ethtool::PushFeatures::new(request.payload_mut())
            .nested_header()
            .push_dev_index(ifindex)
            .end_nested()
            .end_nested();
        let mut reply = self.ask(&request, doing())?;
        let features = ethtool::Features::new(reply.recv_one().map_err(ControlError::of(doing()))?);
        // The "hw" set has a mask and so names every feature that exists; the others name those
        // that are on.
        let read = || -> Result<Features, netlink_bindings::utils::ErrorContext> {
            let names = |set: ethtool::IterableBitset<'_>| -> Result<Vec<String>, _> {
                set.get_bits()?
                    .get_bit()
                    .map(|bit| Ok(bit.get_name()?.to_string_lossy().into_owned()))
                    .collect::<Result<_, netlink_bindings::utils::ErrorContext>>()
            };
            let all = names(features.get_hw()?)?;
            let with = |on: Vec<String>| -> BTreeMap<String, bool> {
                let off = all.iter().map(|name| (name.clone(), false));
                off.chain(on.into_iter().map(|name| (name, true))).collect()
            };
            Ok(Features {
                wanted: with(names(features.get_wanted()?)?),
                active: with(names(features.get_active()?)?),
            })
        };
        read().map_err(|error| ControlError::of(doing())(error.into()))
    }

    /// Asks for features to be on or off; what the driver makes of it is in [`Control::features`].
    pub fn set_features(
        &mut self,
        ifindex: u32,
        changes: &BTreeMap<String, bool>,
    ) -> Result<(), ControlError> {
        let doing = || format!("setting features of interface {ifindex}");
        let mut request = EthtoolRequest::new(Command::FeaturesSet);
        let mut bits = ethtool::PushFeatures::new(request.payload_mut())
            .nested_header()
            .push_dev_index(ifindex)
            .end_nested()
            .nested_wanted()
            .nested_bits();
        for (name, &on) in changes {
            let bit = bits.nested_bit().push_name_bytes(name.as_bytes());
            let bit = if on { bit.push_value(()) } else { bit };
            bits = bit.end_nested();
        }
        bits.end_nested().end_nested();
        let mut reply = self.ask(&request, doing())?;
        // The kernel answers with what changed before it acknowledges.
        while let Some(part) = reply.recv() {
            part.map_err(ControlError::of(doing()))?;
        }
        Ok(())
    }
}

impl Default for Control {
    fn default() -> Self {
        Control::new()
    }
}
