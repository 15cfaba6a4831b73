//! The state of an interface before planning: its values, NAPI instances and, for veth, its other end.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::error::{Refusal, SwitchError};
use crate::kernel::{
    Control, GRO_FEATURE, Kernel, LinkInfo, Machine, Napi, Target, search, supported,
};
use crate::knob::row::Phase;
use crate::knob::{ScopedKnob, Value, table};
use crate::request::Order;

/// Slots of a veth receive ring, which is fixed: `VETH_RING_SIZE` in the kernel's drivers/net/veth.c.
pub const VETH_RING_SLOTS: u32 = 256;

/// The other end of a veth pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// The interface; null when its namespace cannot be found.
    pub target: Option<Target>,
    /// TSO features enabled there: with any of them, packets bypass this end's NAPI.
    pub tso_features_on: Vec<String>,
    /// All features enabled there.
    pub features_on: BTreeSet<String>,
    /// Largest MTU that can be set; null if the kernel does not report one.
    pub max_mtu_bytes: Option<u32>,
}

/// One interface before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterfaceFacts {
    /// The interface and the values requested for it.
    pub asked: Order,
    /// Its state.
    pub link: LinkInfo,
    /// Whether GRO is on: received packets are merged.
    pub has_gro: bool,
    /// The values of the interface and of its threads that this kernel and driver have.
    pub values: BTreeMap<ScopedKnob, Value>,
    /// Its NAPI instances; null if this kernel cannot list them.
    pub napis: Option<Vec<Napi>>,
    /// The NAPI instance of each receive queue, if the driver reports it.
    pub rx_queues: BTreeMap<u32, u32>,
    /// Slots of one receive ring, if the driver reports them.
    pub ring_slots: Option<u32>,
    /// The other end; null unless the interface is a veth.
    pub peer: Option<Peer>,
}

impl InterfaceFacts {
    /// Reads all facts about an interface, whose namespace must have been entered.
    pub(crate) fn gather(
        machine: &mut Machine,
        order: &Order,
    ) -> Result<InterfaceFacts, SwitchError> {
        let own = order.clone();
        let netns_inode = order.target.netns_inode;
        let mut facts = machine.run(netns_inode, move |control| gather_own(control, own))??;
        if facts.link.interface.driver == "veth" {
            facts.peer = Some(find_peer(machine, &facts)?.unwrap_or_default());
        }
        Ok(facts)
    }

    /// Makes a refusal to change this interface.
    pub(crate) fn refusal(&self, reason: impl Into<String>, remedy: impl Into<String>) -> Refusal {
        Refusal {
            interface: self.asked.target.interface.name.clone(),
            reason: reason.into(),
            remedy: remedy.into(),
            is_of_kernel: false,
        }
    }

    /// Returns the NAPI instances; none if they cannot be listed.
    pub fn napis(&self) -> &[Napi] {
        self.napis.as_deref().unwrap_or_default()
    }
}

fn gather_own(control: &mut Control, asked: Order) -> Result<InterfaceFacts, SwitchError> {
    let target = &asked.target;
    let ifindex = target.interface.ifindex;
    let link = control.link_named(&target.interface.name)?;
    let mut values = control.read_own(target)?;
    let napis = supported(control.napis(ifindex))?;
    for pid in napis.iter().flatten().filter_map(|napi| napi.thread_pid) {
        for row in table::TABLE
            .iter()
            .filter(|row| row.place.phase() == Phase::Thread)
        {
            let knob = ScopedKnob::of_thread(row, pid);
            let value = control.read(target, &knob)?;
            values.extend(value.map(|value| (knob, value)));
        }
    }
    let features = supported(control.features(ifindex))?.unwrap_or_default();
    let ring_slots = if link.interface.driver == "veth" {
        Some(VETH_RING_SLOTS)
    } else {
        supported(control.rx_ring_slots(ifindex))?.flatten()
    };
    Ok(InterfaceFacts {
        has_gro: features.active.get(GRO_FEATURE) == Some(&true),
        values,
        napis,
        rx_queues: supported(control.rx_queues(ifindex))?.unwrap_or_default(),
        ring_slots,
        peer: None,
        link,
        asked,
    })
}

/// Finds the other end of a veth; `None` if its namespace cannot be found.
fn find_peer(machine: &mut Machine, facts: &InterfaceFacts) -> Result<Option<Peer>, SwitchError> {
    let own = facts.asked.target.netns_inode;
    let netns_inode = match facts.link.lower_netnsid {
        None => Some(own),
        Some(id) => enter_numbered(machine, own, id)?,
    };
    let (Some(ifindex), Some(netns_inode)) = (facts.link.lower, netns_inode) else {
        return Ok(None);
    };
    let (links, features) = machine.run(netns_inode, move |control| {
        Ok::<_, SwitchError>((control.links()?, control.features(ifindex)?))
    })??;
    let mut links = links.into_iter();
    let on = features.active.into_iter().filter(|(_, on)| *on);
    let features_on: BTreeSet<String> = on.map(|(name, _)| name).collect();
    let is_tso = |name: &&String| table::TSO.stands_for(name);
    let link = links.find(|link| link.interface.ifindex == ifindex);
    Ok(link.map(|link| Peer {
        target: Some(Target::new(netns_inode, link.interface)),
        tso_features_on: features_on.iter().filter(is_tso).cloned().collect(),
        features_on,
        max_mtu_bytes: link.max_mtu_bytes,
    }))
}

/// Enters the namespace that `own` knows by `id`, if a process or a name leads to it.
fn enter_numbered(machine: &mut Machine, own: u64, id: i32) -> Result<Option<u64>, SwitchError> {
    let failed = &SwitchError::of_io(format!("entering the network namespace number {id}"));
    let search = search(|namespace| {
        let descriptor = namespace.as_fd().as_raw_fd() as u32;
        let number = machine.run(own, move |control| control.netnsid_of(descriptor));
        matches!(number, Ok(Ok(Some(found))) if found == id)
    });
    let found = search.map_err(failed)?.found;
    match found.map(|namespace| machine.enter(namespace)).transpose() {
        // CAP_NET_ADMIN alone does not allow the search.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        entered => entered.map_err(failed),
    }
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
            assert!(table::TSO.stands_for(name), "{name}");
        }
        for name in ["tx-udp-segmentation", "tx-generic-segmentation", "rx-gro"] {
            assert!(!table::TSO.stands_for(name), "{name}");
        }
    }
}
