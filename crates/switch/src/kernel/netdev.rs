//! NAPI instances, queues and their counters, XDP features, and the kernel's support for them: the netdev family of
//! generic netlink. Support is always queried, never deduced from the kernel's version. A kernel without the list of
//! instances is asked by BPF.

use std::collections::BTreeMap;

use netlink_bindings::traits::Pusher;
use netlink_bindings::{netdev, nlctrl};
use nicpoll_sys::bpf_maps::ListedNapi;
use nicpoll_sys::link::napis::napis_of;

use super::netlink::{Control, attribute, attributes, push_uint, supported, uint_attribute};
use crate::error::SwitchError;
use crate::knob::ScopedKnob;
use crate::knob::row::KnobPlace;

/// include/uapi/linux/netdev.h
const NETDEV_CMD_NAPI_GET: u32 = 11;
const NETDEV_CMD_NAPI_SET: u32 = 14;
const NAPI_DEFER_HARD_IRQS: u16 = 5;
const NAPI_GRO_FLUSH_TIMEOUT: u16 = 6;
const NAPI_IRQ_SUSPEND_TIMEOUT: u16 = 7;
const NAPI_THREADED: u16 = 8;
const QUEUE_TYPE_RX: u32 = 0;
/// `NETDEV_QSTATS_SCOPE_QUEUE`: a reply for each queue.
const SCOPE_QUEUE: u32 = 1;
/// `NETDEV_XDP_ACT_BASIC` and `NETDEV_XDP_ACT_XSK_ZEROCOPY`.
const XDP_BASIC: u64 = 1;
const XDP_ZERO_COPY: u64 = 8;
/// `NETDEV_A_QSTATS_*` of receive queues.
const COUNTERS: [(u16, &str); 12] = [
    (8, "rx_packets"),
    (9, "rx_bytes"),
    (12, "rx_alloc_fail"),
    (13, "rx_hw_drops"),
    (14, "rx_hw_drop_overruns"),
    (15, "rx_csum_complete"),
    (16, "rx_csum_unnecessary"),
    (17, "rx_csum_none"),
    (18, "rx_csum_bad"),
    (19, "rx_hw_gro_packets"),
    (20, "rx_hw_gro_bytes"),
    (23, "rx_hw_drop_ratelimits"),
];
/// `CTRL_ATTR_POLICY`, include/uapi/linux/genetlink.h: policies by index, each by attribute.
const CTRL_ATTR_POLICY: u16 = 8;
/// `NL_POLICY_TYPE_ATTR_MAX_VALUE_U`, include/uapi/linux/netlink.h.
const POLICY_MAX_VALUE_U: u16 = 5;
/// `NL_POLICY_TYPE_ATTR_TYPE`: an attribute of type 0 (`NL_ATTR_TYPE_INVALID`) is refused.
const POLICY_TYPE: u16 = 1;

/// The values of one NAPI instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Napi {
    /// Id, unique on the machine while the instance exists.
    pub id: u32,
    /// Empty polls for which the interrupt stays masked; null before Linux 6.13.
    pub defer_hard_irqs: Option<u32>,
    /// Time from the end of one round to the next poll, in ns; 0: no timer; null before Linux 6.13.
    pub gro_flush_timeout_ns: Option<u64>,
    /// How long an application may keep interrupts masked, in ns; null before Linux 6.13.
    pub irq_suspend_timeout_ns: Option<u64>,
    /// Polling mode: 0 softirq, 1 kernel thread, 2 thread that never sleeps; null before Linux 6.17.
    pub threaded: Option<u32>,
    /// The kernel thread that polls, if any.
    pub thread_pid: Option<u32>,
    /// Its interrupt, if the driver reports it.
    pub irq: Option<u32>,
}

impl From<ListedNapi> for Napi {
    fn from(listed: ListedNapi) -> Self {
        Napi {
            id: listed.id,
            thread_pid: Some(listed.thread_pid).filter(|pid| *pid > 0),
            ..Napi::default()
        }
    }
}

impl Napi {
    /// Returns the value of a knob of this instance; `None` if this kernel lacks it or the knob is another instance's.
    pub fn value_of(&self, knob: &ScopedKnob) -> Option<u64> {
        match knob.row().place {
            KnobPlace::Napi(place) if knob.napi_id() == Some(self.id) => match place.attribute {
                NAPI_DEFER_HARD_IRQS => self.defer_hard_irqs.map(u64::from),
                NAPI_GRO_FLUSH_TIMEOUT => self.gro_flush_timeout_ns,
                NAPI_IRQ_SUSPEND_TIMEOUT => self.irq_suspend_timeout_ns,
                NAPI_THREADED => self.threaded.map(u64::from),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A queue of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceQueue {
    /// Whether it is a receive queue; otherwise a transmit queue.
    pub is_rx: bool,
    /// Its number within its direction.
    pub id: u32,
    /// The NAPI instance that serves it, if the driver reports it.
    pub napi_id: Option<u32>,
}

/// A driver's support of XDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpAbilities {
    /// Whether XDP programs run in the driver, before the kernel allocates a packet for the frame.
    pub is_native: bool,
    /// Whether AF_XDP sockets share their memory with the card (zero copy).
    pub has_zero_copy: bool,
}

impl Control {
    /// Lists the NAPI instances of an interface: none while it is down, and none on veth unless GRO is on or an XDP
    /// program is attached.
    ///
    /// # Errors
    /// Of kind `Unsupported` when neither the kernel nor a BPF program lists them.
    pub fn napis(&mut self, ifindex: u32) -> Result<Vec<Napi>, SwitchError> {
        let doing = format!("listing the NAPI instances of interface {ifindex}");
        let mut request = netdev::Request::new().op_napi_get_dump();
        request.encode().push_ifindex(ifindex);
        let listed = self.ask(doing.clone(), &request, |napi| {
            let uint = |attribute| uint_attribute(napi.get_buf(), attribute);
            Ok(Napi {
                id: napi.get_id()?,
                defer_hard_irqs: napi.get_defer_hard_irqs().ok(),
                gro_flush_timeout_ns: uint(NAPI_GRO_FLUSH_TIMEOUT),
                irq_suspend_timeout_ns: uint(NAPI_IRQ_SUSPEND_TIMEOUT),
                threaded: napi.get_threaded().ok(),
                thread_pid: napi.get_pid().ok(),
                irq: napi.get_irq().ok(),
            })
        });
        let Some(mut napis) = supported(listed)? else {
            let listed = napis_of(ifindex).map_err(SwitchError::of_io(doing))?;
            return Ok(listed.into_iter().map(Napi::from).collect());
        };
        napis.sort_by_key(|napi| napi.id);
        Ok(napis)
    }

    /// Sets one value of one NAPI instance (`napi-set`, Linux 6.13 and later).
    pub(super) fn set_napi(
        &mut self,
        napi_id: u32,
        attribute: u16,
        name: &str,
        value: u64,
    ) -> Result<(), SwitchError> {
        let doing = format!("setting {name} of NAPI {napi_id} to {value}");
        let mut request = netdev::Request::new().op_napi_set_do();
        let mut attributes = request.encode().push_id(napi_id);
        push_uint(attributes.as_vec_mut(), attribute, value);
        drop(attributes);
        self.ask(doing, &request, |_| Ok(())).map(drop)
    }

    /// Lists the queues in use, receive queues first; none while the interface is down.
    pub fn queues(&mut self, ifindex: u32) -> Result<Vec<InterfaceQueue>, SwitchError> {
        let doing = format!("listing the queues of interface {ifindex}");
        let mut request = netdev::Request::new().op_queue_get_dump();
        request.encode().push_ifindex(ifindex);
        let listed = self.ask(doing, &request, |queue| {
            let (Ok(kind), Ok(id)) = (queue.get_type(), queue.get_id()) else {
                return Ok(None);
            };
            Ok(Some(InterfaceQueue {
                is_rx: kind == QUEUE_TYPE_RX,
                id,
                napi_id: queue.get_napi_id().ok(),
            }))
        })?;
        let mut queues: Vec<InterfaceQueue> = listed.into_iter().flatten().collect();
        queues.sort_by_key(|queue| (!queue.is_rx, queue.id));
        Ok(queues)
    }

    /// Returns the NAPI instance of each receive queue, if the driver reports it: veth does not.
    pub fn rx_queues(&mut self, ifindex: u32) -> Result<BTreeMap<u32, u32>, SwitchError> {
        let queues = self.queues(ifindex)?.into_iter();
        let received = queues.filter(|queue| queue.is_rx);
        let served = received.filter_map(|queue| Some((queue.id, queue.napi_id?)));
        Ok(served.collect())
    }

    /// Reads the driver's counters of each receive queue, by the kernel's names (`qstats-get`, Linux 6.9 and later). A
    /// counter that the driver lacks is absent, not 0.
    ///
    /// # Errors
    /// When the driver or the kernel has none.
    pub fn queue_statistics(
        &mut self,
        ifindex: u32,
    ) -> Result<BTreeMap<u32, BTreeMap<&'static str, u64>>, SwitchError> {
        let doing = format!("reading the queue counters of interface {ifindex}");
        let mut request = netdev::Request::new().op_qstats_get_dump();
        request
            .encode()
            .push_ifindex(ifindex)
            .push_scope(SCOPE_QUEUE);
        let queues = self.ask(doing, &request, |queue| {
            let is_rx = queue.get_queue_type().ok() == Some(QUEUE_TYPE_RX);
            let id = queue.get_queue_id().ok().filter(|_| is_rx);
            Ok(id.map(|id| (id, counters(queue.get_buf()))))
        })?;
        Ok(queues.into_iter().flatten().collect())
    }

    /// Reads the driver's support of XDP.
    pub fn xdp_abilities(&mut self, ifindex: u32) -> Result<XdpAbilities, SwitchError> {
        let doing = format!("asking for the XDP features of interface {ifindex}");
        let mut request = netdev::Request::new().op_dev_get_do();
        request.encode().push_ifindex(ifindex);
        self.ask_one(doing, &request, |device| {
            let features = device.get_xdp_features().unwrap_or(0);
            Ok(XdpAbilities {
                is_native: features & XDP_BASIC != 0,
                has_zero_copy: features & XDP_ZERO_COPY != 0,
            })
        })
    }
}

fn counters(attributes: &[u8]) -> BTreeMap<&'static str, u64> {
    let one = |(attribute, name): &(u16, &'static str)| {
        Some((*name, uint_attribute(attributes, *attribute)?))
    };
    COUNTERS.iter().filter_map(one).collect()
}

/// What `napi-set` can do in the running kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Whether values of a single NAPI instance can be set at all.
    pub has_napi_set: bool,
    /// The highest `threaded` mode that a single instance can be given; null: none.
    pub threaded_max: Option<u32>,
    /// Whether `irq-suspend-timeout` can be set.
    pub has_suspend: bool,
}

impl Abilities {
    /// Queries the policy that the kernel checks requests against (`CTRL_CMD_GETPOLICY`).
    pub fn probe() -> Abilities {
        if per_napi_settings().is_err() {
            return Abilities::default();
        }
        // A kernel that does not show its policies (before 5.9) has no napi-set either.
        let lists = napi_set_policy().unwrap_or_default();
        Abilities {
            has_napi_set: true,
            ..Abilities::of_policy(&lists)
        }
    }

    /// Returns the largest value of an attribute that a single instance can be given; `None`: none.
    pub(crate) fn napi_max(&self, attribute: u16) -> Option<u64> {
        match attribute {
            NAPI_THREADED => self.threaded_max.map(u64::from),
            NAPI_IRQ_SUSPEND_TIMEOUT => self.has_suspend.then_some(u64::MAX),
            _ => self.has_napi_set.then_some(u64::MAX),
        }
    }

    /// Reads abilities from the policy; each list is one message of the dump.
    fn of_policy(lists: &[Vec<u8>]) -> Abilities {
        let mut abilities = Abilities::default();
        let policies = lists
            .iter()
            .filter_map(|list| attribute(list, CTRL_ATTR_POLICY));
        // Index of the policy, then number of the attribute, then its rules.
        for (kind, rules) in policies
            .flat_map(attributes)
            .flat_map(|(_, by_attribute)| attributes(by_attribute))
        {
            let number = |kind| uint_attribute(rules, kind);
            if number(POLICY_TYPE).is_none_or(|found| found == 0) {
                continue;
            }
            match kind {
                NAPI_IRQ_SUSPEND_TIMEOUT => abilities.has_suspend = true,
                NAPI_THREADED => {
                    let max = number(POLICY_MAX_VALUE_U).unwrap_or(1);
                    abilities.threaded_max = u32::try_from(max).ok();
                }
                _ => {}
            }
        }
        abilities
    }
}

fn napi_set_policy() -> Result<Vec<Vec<u8>>, SwitchError> {
    let mut request = nlctrl::Request::new().op_getpolicy_dump();
    request
        .encode()
        .push_family_name_bytes(b"netdev")
        .push_op(NETDEV_CMD_NAPI_SET);
    let doing = "asking for the policy of napi-set";
    Control::new().ask(doing, &request, |part| Ok(part.get_buf().to_vec()))
}

/// Checks that NAPI instances can be listed, and says what lists them. Without the list, polls cannot be assigned to an
/// interface.
pub fn napi_list() -> Result<&'static str, SwitchError> {
    let listed = require(
        (NETDEV_CMD_NAPI_GET, "napi-get"),
        "list of NAPI instances",
        "6.8",
    );
    let Err(missing) = listed else {
        return Ok("the kernel lists them");
    };
    match napis_of(0) {
        Ok(_) => Ok("BPF lists them; this kernel has no list of its own"),
        Err(error) => Err(SwitchError::Missing(format!(
            "{missing}; BPF, which lists them for root on Linux 5.10 and later, did not: {error}"
        ))),
    }
}

/// Checks that the deferral of a single NAPI instance can be set.
pub fn per_napi_settings() -> Result<(), SwitchError> {
    require(
        (NETDEV_CMD_NAPI_SET, "napi-set"),
        "per-NAPI settings",
        "6.13",
    )
}

/// Checks that the kernel has a netdev command, by number and name.
fn require((command, name): (u32, &str), feature: &str, minimum: &str) -> Result<(), SwitchError> {
    let detail = match netdev_commands() {
        Ok(commands) if commands.contains(&command) => return Ok(()),
        Ok(_) => format!("the netdev netlink family does not know {name}"),
        Err(SwitchError::System { source, .. }) => format!("no netdev netlink family: {source}"),
        Err(error) => error.to_string(),
    };
    Err(SwitchError::Missing(format!(
        "this kernel has no {feature} ({detail}); Linux {minimum} or later has it"
    )))
}

fn netdev_commands() -> Result<Vec<u32>, SwitchError> {
    let mut request = nlctrl::Request::new().op_getfamily_do();
    request.encode().push_family_name_bytes(b"netdev");
    let doing = "asking for the netdev netlink family";
    Control::new().ask_one(doing, &request, |family| {
        let commands = family.get_ops()?;
        commands.map(|command| command.get_id()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::netlink::push_attribute;
    use super::*;

    fn nested(kind: u16, inner: &[u8]) -> Vec<u8> {
        let mut list = Vec::new();
        push_attribute(&mut list, kind, inner);
        list
    }

    /// One message of the dump: the rules for one attribute of policy 0.
    fn policy(of: u16, rules: &[u8]) -> Vec<u8> {
        nested(CTRL_ATTR_POLICY, &nested(0, &nested(of, rules)))
    }

    #[test]
    fn the_policy_says_what_can_be_set() {
        let allowed = nested(POLICY_TYPE, &4u32.to_ne_bytes());
        let mut limited = allowed.clone();
        push_attribute(&mut limited, POLICY_MAX_VALUE_U, &2u64.to_ne_bytes());
        let lists = [
            policy(NAPI_THREADED, &limited),
            policy(NAPI_IRQ_SUSPEND_TIMEOUT, &allowed),
        ];
        let abilities = Abilities::of_policy(&lists);
        assert_eq!(abilities.threaded_max, Some(2));
        assert!(abilities.has_suspend);
        assert_eq!(Abilities::of_policy(&[]), Abilities::default());
        let refused = nested(POLICY_TYPE, &0u32.to_ne_bytes());
        let refused = policy(NAPI_THREADED, &refused);
        assert_eq!(Abilities::of_policy(&[refused]).threaded_max, None);
        for length in 0..lists[0].len() {
            let _ = Abilities::of_policy(&[lists[0][..length].to_vec()]);
        }
    }

    #[test]
    fn counters_beyond_four_bytes_are_read_and_those_of_sending_are_not() {
        let mut attributes = Vec::new();
        for (attribute, count) in [(8, 1 << 40), (9, 7), (10, 5), (13, 0)] {
            push_uint(&mut attributes, attribute, count);
        }
        let expected = [("rx_packets", 1 << 40), ("rx_bytes", 7), ("rx_hw_drops", 0)];
        assert_eq!(counters(&attributes), BTreeMap::from(expected));
    }
}
