//! What is there before anything is planned: an interface, its NAPI instances, its values, its other end.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};

use nicpoll_sys::schedule::Policy;

use crate::control::{Control, ControlError, Napi};
use crate::error::SwitchError;
use crate::kernel::{Kernel, Target, supported};
use crate::knob::{Knob, Scope, Value};
use crate::links::Link;
use crate::machine::{Machine, find_namespace};
use crate::moderation::Moderation;

/// The feature without which veth has no receive NAPI.
pub const GRO_FEATURE: &str = "rx-gro";
/// Slots of a veth receive ring: `VETH_RING_SIZE` in the kernel's drivers/net/veth.c. It cannot be
/// changed.
pub const VETH_RING_SLOTS: u32 = 256;

/// `NETIF_F_ALL_TSO`, by the names that the kernel gives its bits.
pub fn is_tso_feature(feature: &str) -> bool {
    feature.starts_with("tx-tcp") && feature.ends_with("-segmentation")
}

/// A thread that polls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poller {
    /// CPUs that it may use.
    pub cpus: Vec<u32>,
    /// How it is scheduled.
    pub policy: Policy,
}

/// The other end of a veth pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Who it is; null when its namespace cannot be found.
    pub target: Option<Target>,
    /// TSO features that are on there: while one is, packets go past this end's NAPI.
    pub tso_features_on: Vec<String>,
}

/// One interface before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Which.
    pub target: Target,
    /// Its place among the others.
    pub link: Link,
    /// Whether received packets are joined (GRO).
    pub has_gro: bool,
    /// The interface's own values, those that this kernel has.
    pub device: BTreeMap<Knob, u64>,
    /// Its NAPI instances; null when this kernel cannot list them.
    pub napis: Option<Vec<Napi>>,
    /// The NAPI instance of each receive queue, where the driver says so.
    pub rx_queues: BTreeMap<u32, u32>,
    /// Threads that poll, by pid.
    pub pollers: BTreeMap<u32, Poller>,
    /// Interrupt moderation, what the driver has of it.
    pub moderation: BTreeMap<Moderation, u32>,
    /// Slots of one receive ring, where the driver says so.
    pub ring_slots: Option<u32>,
    /// The other end, of a veth pair.
    pub peer: Option<Peer>,
}

impl Facts {
    /// Asks everything about an interface whose namespace has been entered.
    pub fn gather(machine: &mut Machine, target: &Target) -> Result<Facts, SwitchError> {
        let own = target.clone();
        let mut facts =
            machine.run(target.netns_inode, move |control| gather_own(control, own))??;
        if facts.link.interface.driver == "veth" {
            facts.peer = Some(find_peer(machine, &facts)?);
        }
        Ok(facts)
    }

    /// The NAPI instances, none where they cannot be listed.
    pub fn napis(&self) -> &[Napi] {
        self.napis.as_deref().unwrap_or_default()
    }
}

fn gather_own(control: &mut Control, target: Target) -> Result<Facts, ControlError> {
    let ifindex = target.interface.ifindex;
    let link = control.link_named(&target.interface.name)?;
    let mut device = BTreeMap::new();
    for knob in [
        Knob::Threaded(Scope::Device),
        Knob::DeferHardIrqs(Scope::Device),
        Knob::GroFlushTimeout(Scope::Device),
    ] {
        if let Some(Value::Number(number)) = control.read(&target, &knob)? {
            device.insert(knob, number);
        }
    }
    let napis = supported(control.napis(ifindex))?;
    let mut pollers = BTreeMap::new();
    for pid in napis.iter().flatten().filter_map(|napi| napi.thread_pid) {
        let cpus = control.read(&target, &Knob::ThreadCpus(pid))?;
        let policy = control.read(&target, &Knob::ThreadPolicy(pid))?;
        if let (Some(Value::Cpus(cpus)), Some(Value::Policy(policy))) = (cpus, policy) {
            pollers.insert(pid, Poller { cpus, policy });
        }
    }
    let features = supported(control.features(ifindex))?.unwrap_or_default();
    let ring_slots = if link.interface.driver == "veth" {
        Some(VETH_RING_SLOTS)
    } else {
        supported(control.rx_ring_slots(ifindex))?.flatten()
    };
    Ok(Facts {
        has_gro: features.active.get(GRO_FEATURE) == Some(&true),
        device,
        napis,
        rx_queues: supported(control.rx_queues(ifindex))?.unwrap_or_default(),
        pollers,
        moderation: supported(control.moderation(ifindex))?.unwrap_or_default(),
        ring_slots,
        peer: None,
        link,
        target,
    })
}

fn find_peer(machine: &mut Machine, facts: &Facts) -> Result<Peer, SwitchError> {
    let unknown = Peer {
        target: None,
        tso_features_on: Vec::new(),
    };
    let own = facts.target.netns_inode;
    let Some(ifindex) = facts.link.lower else {
        return Ok(unknown);
    };
    let netns_inode = match facts.link.lower_netnsid {
        None => own,
        Some(id) => match enter_numbered(machine, own, id)? {
            Some(inode) => inode,
            None => return Ok(unknown),
        },
    };
    let found = machine.run(netns_inode, move |control| {
        let links = control.links()?;
        let link = links
            .into_iter()
            .find(|link| link.interface.ifindex == ifindex);
        let features = control.features(ifindex)?;
        Ok::<_, ControlError>((link, features))
    })??;
    let (Some(link), features) = found else {
        return Ok(unknown);
    };
    let on = features.active.into_iter().filter(|(_, on)| *on);
    Ok(Peer {
        target: Some(Target {
            netns_inode,
            interface: link.interface,
        }),
        tso_features_on: on
            .map(|(name, _)| name)
            .filter(|name| is_tso_feature(name))
            .collect(),
    })
}

/// Enters the namespace that `own` counts as `id`, if a process or a name leads to it.
fn enter_numbered(machine: &mut Machine, own: u64, id: i32) -> Result<Option<u64>, SwitchError> {
    let failed = |source| SwitchError::Namespace {
        interface: format!("number {id}"),
        source,
    };
    let namespace = find_namespace(|namespace| {
        let descriptor = namespace.as_fd().as_raw_fd() as u32;
        let number = machine.run(own, move |control| control.netnsid_of(descriptor));
        matches!(number, Ok(Ok(Some(found))) if found == id)
    })
    .map_err(failed)?;
    namespace
        .map(|namespace| machine.enter(namespace).map_err(failed))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tso_bit_is_meant_and_no_other_offload() {
        for name in [
            "tx-tcp-segmentation",
            "tx-tcp-ecn-segmentation",
            "tx-tcp-mangleid-segmentation",
            "tx-tcp-accecn-segmentation",
            "tx-tcp6-segmentation",
        ] {
            assert!(is_tso_feature(name), "{name}");
        }
        for name in ["tx-udp-segmentation", "tx-generic-segmentation", "rx-gro"] {
            assert!(!is_tso_feature(name), "{name}");
        }
    }
}
