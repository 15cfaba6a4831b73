//! Two interfaces that the machine already has, as a link.
//!
//! Nothing is made or removed. Settings are changed through the switch's journal and restored by the guard. An interface
//! that carries the user's ssh connection is refused unless the file allows it.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use nicpoll_model::line::Line;
use nicpoll_switch::{
    Control, InterfacePart, Journal, KnobValues, Order, Switch, SwitchError, Target,
    VETH_RING_SLOTS, namespace_named,
};
use nicpoll_sys::netns::{NetNamespace, NetnsThread};

use crate::error::{LabError, Refused};
use crate::host::{RECEIVER, SENDER};
use crate::link::{ExistingInterfaces, Link, LinkEnd, OwnInterface};

/// The driver of virtual pairs, which reports no ring size.
const VETH: &str = "veth";

/// Any port: connecting a UDP socket sends nothing.
const PORT: u16 = 9;

/// One of the interfaces.
struct ExistingEnd {
    interface: String,
    driver: String,
    namespace: NetNamespace,
    inside: NetnsThread<Control>,
    addresses: Vec<(IpAddr, u8)>,
    mtu_bytes: u32,
    ring_slots: Option<u32>,
    bits_per_second: Option<u64>,
}

/// The link of two interfaces that exist. Nothing is changed, and nothing is sent.
///
/// # Errors
/// When they are not there, cannot reach each other, or one of them carries the user's ssh connection.
pub fn open_existing(asked: &ExistingInterfaces) -> Result<Link, LabError> {
    let mut sender = ExistingEnd::open(&asked.sender)?;
    let mut receiver = ExistingEnd::open(&asked.receiver)?;
    if sender.namespace.inode() == receiver.namespace.inode() {
        let (sender, receiver) = (sender.interface, receiver.interface);
        return refused(format!(
            "{sender} and {receiver} are in one network namespace, and traffic between them goes over its loopback; \
             move one of them into a namespace of its own: ip netns add far; ip link set {receiver} netns far"
        ));
    }
    if !asked.even_with_ssh {
        for (end, own) in [(&asked.sender, &sender), (&asked.receiver, &receiver)] {
            if own.carries_ssh(end)? {
                return refused(format!(
                    "{} carries your ssh connection, and a study may cut it; take another interface, or write \
                     even_with_ssh = true if that may be",
                    own.interface
                ));
            }
        }
    }
    let way = sender.ways_to(&receiver).map_err(looking)?;
    let back = receiver.ways_to(&sender).map_err(looking)?;
    for (from, to, ways) in [(&sender, &receiver, &way), (&receiver, &sender, &back)] {
        if ways.is_empty() {
            let (from, to) = (&from.interface, &to.interface);
            return refused(format!(
                "no address leads from {from} to {to}: what {from}'s namespace sends there does not leave by {from}. \
                 Give both an address of one network, such as ip address add 198.18.0.1/24 dev {from}"
            ));
        }
    }
    receiver.addresses = way;
    sender.addresses = back;
    // The kernel names a link kind for every interface without a card.
    let is_virtual = !receiver.driver.is_empty();
    let rate = receiver.bits_per_second.and_then(Line::new);
    Ok(Link {
        is_virtual,
        is_shared: true,
        mtu_bytes: sender.mtu_bytes.min(receiver.mtu_bytes),
        ring_slots: receiver.ring_slots,
        delay: Duration::ZERO,
        line: match is_virtual {
            true => Err("the interface is virtual; the speed that its driver tells is nominal"),
            false => rate.ok_or("the driver does not know the speed of the line"),
        },
        nobody: None,
        ends: vec![sender.link_end(SENDER), receiver.link_end(RECEIVER)],
    })
}

fn refused<T>(why: String) -> Result<T, LabError> {
    Err(Refused(why).into())
}

fn looking(error: io::Error) -> LabError {
    Refused(format!("looking at the interfaces: {error}")).into()
}

impl ExistingEnd {
    fn open(asked: &OwnInterface) -> Result<Self, LabError> {
        let namespace = namespace_named(asked.netns.as_deref())?;
        let inside = namespace
            .try_clone()
            .and_then(|namespace| NetnsThread::enter(namespace, Control::new))
            .map_err(looking)?;
        let name = asked.interface.clone();
        let look = move |control: &mut Control| -> Result<_, SwitchError> {
            let link = control.link_named(&name)?;
            let ifindex = link.interface.ifindex;
            let all = control.addresses()?.into_iter();
            let own = all.filter(|(index, ..)| *index == ifindex);
            let addresses: Vec<_> = own.map(|(_, address, prefix)| (address, prefix)).collect();
            let ring_slots = match link.interface.driver.as_str() {
                VETH => Some(VETH_RING_SLOTS),
                _ => control.rx_ring_slots(ifindex).ok().flatten(),
            };
            let bits_per_second = control.link_bits_per_second(ifindex).ok().flatten();
            Ok((link, addresses, ring_slots, bits_per_second))
        };
        let looked = inside.run(look)?;
        let (link, addresses, ring_slots, bits_per_second) = looked?;
        let interface = asked.interface.clone();
        if !link.is_up {
            return refused(format!(
                "{interface} is down; bring it up: ip link set {interface} up"
            ));
        }
        let is_global = |address: &IpAddr| match address {
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => !address.is_unicast_link_local(),
        };
        Ok(ExistingEnd {
            interface,
            driver: link.interface.driver,
            namespace,
            inside,
            addresses: addresses
                .into_iter()
                .filter(|(address, _)| is_global(address))
                .collect(),
            mtu_bytes: link.mtu_bytes,
            ring_slots,
            bits_per_second,
        })
    }

    fn link_end(self, host: &'static str) -> LinkEnd {
        LinkEnd {
            host,
            namespace: self.namespace,
            interfaces: vec![self.interface],
            addresses: self.addresses,
        }
    }

    /// Returns the other end's addresses that this end's traffic reaches through this interface.
    fn ways_to(&self, other: &ExistingEnd) -> io::Result<Vec<(IpAddr, u8)>> {
        let own: Vec<IpAddr> = self.addresses.iter().map(|(address, _)| *address).collect();
        let others = other.addresses.clone();
        let leads = move |far: &IpAddr| -> io::Result<bool> {
            let any = match far {
                IpAddr::V4(_) => "0.0.0.0:0",
                IpAddr::V6(_) => "[::]:0",
            };
            let socket = UdpSocket::bind(any)?;
            // Fails without a route.
            let connected = socket.connect(SocketAddr::new(*far, PORT));
            Ok(connected.is_ok() && own.contains(&socket.local_addr()?.ip()))
        };
        let ways = self.inside.run(move |_| {
            let mut ways = Vec::new();
            for (far, prefix) in others {
                if leads(&far)? {
                    ways.push((far, prefix));
                }
            }
            Ok(ways)
        });
        ways.map_err(io::Error::other)?
    }

    /// Returns whether the interface carries the user's ssh connection, directly or below a bridge, bond or VLAN.
    fn carries_ssh(&self, asked: &OwnInterface) -> Result<bool, LabError> {
        let mut switch = Switch::new(Journal::of_this_machine());
        let netns_inode = switch.enter(asked.netns.as_deref())?;
        let name = self.interface.clone();
        let interface = self.inside.run(move |control| control.interface(&name));
        let order = Order {
            target: Target {
                netns_inode,
                interface: interface??,
            },
            part: InterfacePart::Whole,
            values: KnobValues::default(),
        };
        Ok(switch.carries_own_ssh(netns_inode, &[order])?)
    }
}
