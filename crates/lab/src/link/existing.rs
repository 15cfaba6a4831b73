//! Interfaces that exist already, as a link: two of this machine's, or those of several hosts.
//!
//! Nothing is made or removed. Settings are changed through the switch's journal and restored by the guard. An interface
//! of this machine that carries the user's ssh connection is refused unless the file allows it.

use std::net::IpAddr;
use std::time::Duration;

use nicpoll_model::line::Line;
use nicpoll_switch::{Journal, Owner, namespace_named};
use nicpoll_sys::netns::NetNamespace;

use crate::error::{Doing, LabError, Refused};
use crate::host::local::LocalHost;
use crate::host::{HostClient, HostInterface, HostRequest, RECEIVER, ROUTER, SENDER};
use crate::link::{ExistingInterfaces, Link, LinkEnd, OwnInterface};

/// The link of two interfaces that exist. Nothing is changed, and nothing is sent.
///
/// # Errors
/// When they are not there, cannot reach each other, or one of them carries the user's ssh connection.
pub fn open_existing(asked: &ExistingInterfaces) -> Result<Link, LabError> {
    let (mut sender, near) = looked_at(SENDER, &asked.sender)?;
    let (mut receiver, far) = looked_at(RECEIVER, &asked.receiver)?;
    let facts = [interface_of(&mut sender)?, interface_of(&mut receiver)?];
    if near.inode() == far.inode() {
        let [sender, receiver] = facts.map(|one| one.name);
        return refused(format!(
            "{sender} and {receiver} are in one network namespace, and traffic between them goes over its loopback; \
             move one of them into a namespace of its own: ip netns add far; ip link set {receiver} netns far"
        ));
    }
    for one in &facts {
        if one.carries_ssh && !asked.even_with_ssh {
            return refused(format!(
                "{} carries your ssh connection, and a study may cut it; take another interface, or write \
                 even_with_ssh = true if that may be",
                one.name
            ));
        }
    }
    let [near_name, far_name] = [&asked.sender, &asked.receiver].map(|one| one.interface.clone());
    link_between(vec![
        JoinedHost::new(&mut sender, vec![near_name], Some(near))?,
        JoinedHost::new(&mut receiver, vec![far_name], Some(far))?,
    ])
}

fn refused<T>(why: String) -> Result<T, LabError> {
    Err(Refused(why).into())
}

/// Opens an interface's namespace, only to look at it.
fn looked_at(
    name: &'static str,
    asked: &OwnInterface,
) -> Result<(HostClient, NetNamespace), LabError> {
    let looking = || "looking at the interfaces";
    let namespace = namespace_named(asked.netns.as_deref())?;
    let host = LocalHost::new(
        namespace.try_clone().doing(looking)?,
        vec![asked.interface.clone()],
        &Journal::of_this_machine(),
        Owner::this_process().doing(looking)?,
    );
    Ok((
        HostClient::new(name, Box::new(host.doing(looking)?)),
        namespace,
    ))
}

/// Describes a host's interface, which must be up.
pub fn interface_of(host: &mut HostClient) -> Result<HostInterface, LabError> {
    let facts: HostInterface = host.ask(HostRequest::Interface)?;
    if facts.is_up {
        return Ok(facts);
    }
    let name = &facts.name;
    refused(format!(
        "{name} of the {} is down; bring it up: ip link set {name} up",
        host.name()
    ))
}

/// A host that interfaces join to the others.
pub struct JoinedHost<'a> {
    host: &'a mut HostClient,
    facts: HostInterface,
    interfaces: Vec<String>,
    namespace: Option<NetNamespace>,
}

impl<'a> JoinedHost<'a> {
    /// A host with its interfaces, and its namespace if it is on this machine.
    ///
    /// # Errors
    /// When its interface is missing or down.
    pub fn new(
        host: &'a mut HostClient,
        interfaces: Vec<String>,
        namespace: Option<NetNamespace>,
    ) -> Result<Self, LabError> {
        let facts = interface_of(host)?;
        Ok(JoinedHost {
            host,
            facts,
            interfaces,
            namespace,
        })
    }

    /// Returns the other host's addresses that this one's traffic reaches through its interface.
    fn ways_to(&mut self, other: &[(IpAddr, u8)]) -> Result<Vec<(IpAddr, u8)>, LabError> {
        let to = other.to_vec();
        self.host.ask(HostRequest::Ways { to })
    }

    fn end(self, host: &'static str, addresses: Vec<(IpAddr, u8)>) -> LinkEnd {
        LinkEnd {
            host,
            namespace: self.namespace,
            interfaces: self.interfaces,
            addresses,
        }
    }
}

/// The link of hosts in the order of a packet's path: a sender, perhaps a router, and a receiver. Nothing is changed,
/// and nothing is sent.
///
/// # Errors
/// When traffic between the ends does not leave by their interfaces.
pub fn link_between(mut hosts: Vec<JoinedHost<'_>>) -> Result<Link, LabError> {
    let (Some(mut receiver), true) = (hosts.pop(), !hosts.is_empty()) else {
        return refused(String::from("a link joins two hosts"));
    };
    let mut sender = hosts.remove(0);
    let router = hosts.pop();
    let way = sender.ways_to(&receiver.facts.addresses)?;
    let back = receiver.ways_to(&sender.facts.addresses)?;
    for (from, to, ways) in [(&sender, &receiver, &way), (&receiver, &sender, &back)] {
        if ways.is_empty() {
            let (from, to) = (&from.facts.name, &to.facts.name);
            return refused(format!(
                "no address leads from {from} to {to}: what {from}'s namespace sends there does not leave by {from}. \
                 Give both an address of one network, such as ip address add 198.18.0.1/24 dev {from}"
            ));
        }
    }
    let studied = router
        .as_ref()
        .map_or(&receiver, |router| router)
        .facts
        .clone();
    // The kernel names a link kind for every interface without a card.
    let is_virtual = !studied.driver.is_empty();
    let rate = studied.bits_per_second.and_then(Line::new);
    let mtu_bytes = sender.facts.mtu_bytes.min(receiver.facts.mtu_bytes);
    let mut ends = vec![sender.end(SENDER, back)];
    ends.extend(router.map(|router| {
        let addresses = router.facts.addresses.clone();
        router.end(ROUTER, addresses)
    }));
    ends.push(receiver.end(RECEIVER, way));
    Ok(Link {
        is_virtual,
        is_shared: true,
        mtu_bytes,
        ring_slots: studied.ring_slots,
        delay: Duration::ZERO,
        line: match is_virtual {
            true => Err("the interface is virtual; the speed that its driver tells is nominal"),
            false => rate.ok_or("the driver does not know the speed of the line"),
        },
        nobody: None,
        ends,
    })
}
