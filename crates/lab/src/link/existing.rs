//! Two interfaces that the machine already has, as a link.
//!
//! Nothing is made or removed. Settings are changed through the switch's journal and restored by the guard. An interface
//! that carries the user's ssh connection is refused unless the file allows it.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use nicpoll_model::Side;
use nicpoll_model::line::Line;
use nicpoll_switch::{
    Control, ControlError, Journal, Order, Part, ResolveError, Switch, Target, VETH_RING_SLOTS,
    Values, namespace_named,
};
use nicpoll_sys::netns::{NetNamespace, NetnsThread};
use thiserror::Error;

use crate::error::LabError;
use crate::link::{ExistingInterfaces, Link, LocalLink, OwnInterface};

/// The driver of virtual pairs, whose ring has no size to ask for.
const VETH: &str = "veth";

/// Any port: connecting a socket of datagrams sends nothing.
const PORT: u16 = 9;

/// Two interfaces that were there before.
pub struct Existing {
    sender: End,
    receiver: End,
}

/// One of them.
struct End {
    interface: String,
    driver: String,
    namespace: NetNamespace,
    inside: NetnsThread<Control>,
    addresses: Vec<(IpAddr, u8)>,
    mtu_bytes: u32,
    ring_slots: Option<u32>,
    bits_per_second: Option<u64>,
}

/// Why two interfaces cannot be a study's link.
#[derive(Debug, Error)]
pub enum ExistingError {
    /// Traffic between them would never leave the kernel.
    #[error(
        "{sender} and {receiver} are in one network namespace, and traffic between them goes over its loopback; move \
         one of them into a namespace of its own: ip netns add far; ip link set {receiver} netns far"
    )]
    SameNamespace {
        /// The sender's.
        sender: String,
        /// The receiver's.
        receiver: String,
    },
    /// Nothing goes over it.
    #[error("{interface} is down; bring it up: ip link set {interface} up")]
    Down {
        /// The interface.
        interface: String,
    },
    /// No address leads from one to the other.
    #[error(
        "no address leads from {from} to {to}: what {from}'s namespace sends there does not leave by {from}. Give both \
         an address of one network, such as ip address add 198.18.0.1/24 dev {from}"
    )]
    NoWay {
        /// Where it would begin.
        from: String,
        /// Where it would end.
        to: String,
    },
    /// What cut it off would end the session.
    #[error(
        "{interface} carries your ssh connection, and a study may cut it; take another interface, or write \
         even_with_ssh = true if that may be"
    )]
    OwnConnection {
        /// The interface.
        interface: String,
    },
    /// A namespace cannot be entered.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// An interface cannot be looked at.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The kernel refused.
    #[error("looking at the interfaces: {0}")]
    Io(#[from] io::Error),
}

impl From<ExistingError> for LabError {
    fn from(error: ExistingError) -> Self {
        LabError::Existing(error.to_string())
    }
}

impl Existing {
    /// Looks at both interfaces. Nothing is changed, and nothing is sent.
    ///
    /// # Errors
    /// When they are not there, cannot reach each other, or one of them carries the user's ssh connection.
    pub fn open(asked: &ExistingInterfaces) -> Result<Self, ExistingError> {
        let mut sender = End::open(&asked.sender)?;
        let mut receiver = End::open(&asked.receiver)?;
        let names = |from: &End, to: &End| (from.interface.clone(), to.interface.clone());
        if sender.namespace.inode() == receiver.namespace.inode() {
            let (sender, receiver) = names(&sender, &receiver);
            return Err(ExistingError::SameNamespace { sender, receiver });
        }
        if !asked.even_with_ssh {
            for (end, own) in [(&asked.sender, &sender), (&asked.receiver, &receiver)] {
                if own.carries_ssh(end)? {
                    let interface = own.interface.clone();
                    return Err(ExistingError::OwnConnection { interface });
                }
            }
        }
        let way = sender.ways_to(&receiver)?;
        let back = receiver.ways_to(&sender)?;
        for (from, to, ways) in [(&sender, &receiver, &way), (&receiver, &sender, &back)] {
            if ways.is_empty() {
                let (from, to) = names(from, to);
                return Err(ExistingError::NoWay { from, to });
            }
        }
        receiver.addresses = way;
        sender.addresses = back;
        Ok(Existing { sender, receiver })
    }

    fn end(&self, side: Side) -> &End {
        match side {
            Side::Sender => &self.sender,
            Side::Receiver => &self.receiver,
        }
    }

    fn of_host(&self, host: &str) -> Option<&End> {
        let side = [Side::Sender, Side::Receiver];
        let mut side = side.into_iter().filter(|side| side.to_string() == host);
        side.next().map(|side| self.end(side))
    }
}

impl End {
    fn open(asked: &OwnInterface) -> Result<Self, ExistingError> {
        let namespace = namespace_named(asked.netns.as_deref())?;
        let inside = NetnsThread::enter(namespace.try_clone()?, Control::new)?;
        let name = asked.interface.clone();
        let look = move |control: &mut Control| -> Result<_, ControlError> {
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
        let looked = inside.run(look).map_err(io::Error::other)?;
        let (link, addresses, ring_slots, bits_per_second) = looked?;
        let interface = asked.interface.clone();
        if !link.is_up {
            return Err(ExistingError::Down { interface });
        }
        let is_global = |address: &IpAddr| match address {
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => !address.is_unicast_link_local(),
        };
        Ok(End {
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

    /// The other end's addresses that traffic from here reaches by this interface.
    fn ways_to(&self, other: &End) -> io::Result<Vec<(IpAddr, u8)>> {
        let own: Vec<IpAddr> = self.addresses.iter().map(|(address, _)| *address).collect();
        let others = other.addresses.clone();
        let leads = move |far: &IpAddr| -> io::Result<bool> {
            let any = match far {
                IpAddr::V4(_) => "0.0.0.0:0",
                IpAddr::V6(_) => "[::]:0",
            };
            let socket = UdpSocket::bind(any)?;
            // Without a route there is no way.
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

    /// Whether the user came by ssh through it, be it through a bridge, bond or VLAN.
    fn carries_ssh(&self, asked: &OwnInterface) -> Result<bool, ExistingError> {
        let mut switch = Switch::new(Journal::of_this_machine());
        let netns_inode = switch.enter(asked.netns.as_deref())?;
        let name = self.interface.clone();
        let interface = self.inside.run(move |control| control.interface(&name));
        let order = Order {
            target: Target {
                netns_inode,
                interface: interface.map_err(io::Error::other)??,
            },
            part: Part::Whole,
            values: Values::default(),
        };
        Ok(switch.carries_own_ssh(netns_inode, &[order])?)
    }
}

impl LocalLink for Existing {
    fn namespace(&self, side: Side) -> &NetNamespace {
        &self.end(side).namespace
    }

    fn interfaces(&self, side: Side) -> Vec<String> {
        vec![self.end(side).interface.clone()]
    }
}

impl Link for Existing {
    fn is_virtual(&self) -> bool {
        // The kernel has a kind for every interface that is no card's.
        !self.receiver.driver.is_empty()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn interface(&self, host: &str) -> Option<&str> {
        Some(&self.of_host(host)?.interface)
    }

    fn addresses(&self, host: &str) -> Vec<(IpAddr, u8)> {
        self.of_host(host)
            .map_or_else(Vec::new, |end| end.addresses.clone())
    }

    fn mtu_bytes(&self) -> u32 {
        self.sender.mtu_bytes.min(self.receiver.mtu_bytes)
    }

    fn ring_slots(&self) -> Option<u32> {
        self.receiver.ring_slots
    }

    fn line(&self) -> Result<Line, &'static str> {
        if self.is_virtual() {
            return Err("the interface is virtual; the speed that its driver tells is nominal");
        }
        let rate = self.receiver.bits_per_second.and_then(Line::new);
        rate.ok_or("the driver does not know the speed of the line")
    }

    fn nobody(&self) -> Option<(IpAddr, [u8; 6])> {
        None
    }
}
