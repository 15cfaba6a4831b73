//! Hosts that exist already, joined by their interfaces: namespaces of this machine, or machines of their own.
//!
//! Nothing is made or removed. Settings are changed through the switch's journal and restored by the guard. An interface
//! of this machine that carries the user's ssh connection is refused unless the file allows it.

use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nicpoll_model::Side;
use nicpoll_model::line::Line;
use nicpoll_observe::Between;
use nicpoll_switch::{Journal, Owner, namespace_named};
use nicpoll_sys::netns::NetNamespace;

use crate::error::{Doing, HostFailure, LabError, Refused};
use crate::host::local::LocalHost;
use crate::host::plain::PlainHost;
use crate::host::ssh::{AgentConnection, AgentPlace, RemoteHost};
use crate::host::{
    Host, HostClient, HostInterface, HostRequest, MACHINE, MACHINE_INTERFACE, RECEIVER, ROUTER,
    SENDER,
};
use crate::link::hosts::{HostPlace, Hosts};
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
        host.shown()
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
        self.host.ask(HostRequest::Ways(to))
    }

    /// Returns its interface, with its host where that is another machine.
    fn shown(&self) -> String {
        let interface = &self.facts.name;
        match self.namespace {
            Some(_) => interface.clone(),
            None => format!("{interface} of the {}", self.host.shown()),
        }
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
            let (from, to) = (from.shown(), to.shown());
            return refused(format!(
                "no address leads from {from} to {to}: what is sent there does not leave by that interface. Give both an \
                 address of one network, such as ip address add 198.18.0.1/24 dev IF, or routes through the router"
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
    let is_veth = |one: &JoinedHost<'_>| one.facts.driver == "veth";
    let between =
        match is_veth(&sender) && is_veth(&receiver) && router.as_ref().is_none_or(is_veth) {
            true => Between::DistantVeth,
            false => Between::Cards,
        };
    let mut ends = vec![sender.end(SENDER, back)];
    ends.extend(router.map(|router| {
        let addresses = router.facts.addresses.clone();
        router.end(ROUTER, addresses)
    }));
    ends.push(receiver.end(RECEIVER, way));
    Ok(Link {
        is_virtual,
        between,
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

/// Hosts that were connected, and the machine of the studied one.
pub struct ConnectedHosts {
    /// The first sender, perhaps a router, and the first receiver.
    pub way: Vec<HostClient>,
    /// The other senders and receivers.
    pub further: Vec<FurtherHost>,
    /// The machine whose receive discipline is studied.
    pub machine: HostClient,
    /// What joins those of the way.
    pub link: Arc<Link>,
    /// The cores of the traffic, the sender's first.
    pub cpus: [u32; 2],
}

/// A sender or receiver besides the first.
pub struct FurtherHost {
    /// Which of them.
    pub side: Side,
    /// The host.
    pub client: HostClient,
    /// The core of its traffic.
    pub cpu: u32,
    /// Its end.
    pub end: LinkEnd,
}

impl Hosts {
    /// Connects a host, and its machine if it is the studied one.
    pub(crate) fn connect_one(
        &self,
        role: &str,
    ) -> Result<(Box<dyn Host>, Option<RemoteHost>), HostFailure> {
        let unknown = || HostFailure::new(format!("there is no host {role}"));
        let place = self.place(role).ok_or_else(unknown)?;
        let name = format!("the {}", place.shown(role));
        if let (Some(ssh), Some(own)) = (&place.ssh, place.without_nicpoll) {
            let interface = place.interfaces().concat();
            let host = PlainHost::open(&name, ssh, interface, (own.0, own.1))?;
            return Ok((Box::new(host), None));
        }
        let agent = AgentPlace {
            name,
            ssh: place.ssh.clone(),
            program: place.program.clone(),
        };
        let connection = AgentConnection::open(agent)?;
        let host = connection.host(0, place.netns.clone(), place.interfaces())?;
        let is_studied = role == self.studied();
        let machine = is_studied
            .then(|| connection.host(1, None, vec![String::from(MACHINE_INTERFACE)]))
            .transpose()?;
        Ok((Box::new(host), machine))
    }

    /// Connects all hosts at once, and looks at what joins them.
    ///
    /// # Errors
    /// When a host cannot be reached or has no such interface; when they cannot reach each other by these.
    pub(crate) fn connect(&self) -> Result<ConnectedHosts, LabError> {
        let connected = thread::scope(|scope| {
            let roles: Vec<_> = self.roles().collect();
            let begun = roles.into_iter().map(|(role, _)| {
                let connect = move || self.connect_one(role);
                (role, scope.spawn(connect))
            });
            let begun: Vec<_> = begun.collect();
            let ended = begun.into_iter().map(|(role, thread)| {
                let panicked = |_| LabError::Panicked("connecting");
                Ok((role, thread.join().map_err(panicked)??))
            });
            ended.collect::<Vec<Result<_, LabError>>>()
        });
        let (mut way, mut others, mut machine) = (Vec::new(), Vec::new(), None);
        for (one, (_, place)) in connected.into_iter().zip(self.roles()) {
            let (name, (host, its_machine)) = one?;
            let shown = place.shown(name);
            let mut host = HostClient::new(name, host).shown_as(shown);
            // A missing interface is best told by name.
            interface_of(&mut host)?;
            let is_first = host.role() == name;
            if is_first { &mut way } else { &mut others }.push(host);
            machine = machine.or(its_machine);
        }
        let machine = machine.ok_or(LabError::Panicked("connecting"))?;
        let cpus = match &mut way[..] {
            [sender, .., receiver] => [self.cpu_of(sender)?, self.cpu_of(receiver)?],
            _ => return Err(LabError::Panicked("connecting")),
        };
        let mut further = Vec::new();
        for client in others {
            further.push(self.further(client, &mut way)?);
        }
        let mut joined = Vec::new();
        for host in &mut way {
            let interfaces = self.interfaces_of(host.name());
            joined.push(JoinedHost::new(host, interfaces, None)?);
        }
        let link = Arc::new(link_between(joined)?);
        Ok(ConnectedHosts {
            way,
            further,
            machine: HostClient::new(MACHINE, Box::new(machine)),
            link,
            cpus,
        })
    }

    /// Joins a further sender or receiver to the first host of the other end.
    fn further(
        &self,
        mut client: HostClient,
        way: &mut [HostClient],
    ) -> Result<FurtherHost, LabError> {
        let cpu = self.cpu_of(&mut client)?;
        let is_sender = client.role() == SENDER;
        let side = if is_sender {
            Side::Sender
        } else {
            Side::Receiver
        };
        let other = side.of(way.len() - 1, 0);
        let interfaces = self.interfaces_of(way[other].name());
        let other = JoinedHost::new(&mut way[other], interfaces, None)?;
        let interfaces = self.interfaces_of(client.name());
        let own = JoinedHost::new(&mut client, interfaces, None)?;
        let mut both = vec![own, other];
        if side == Side::Receiver {
            both.reverse();
        }
        let mut link = link_between(both)?;
        let end = link.ends.swap_remove(side.of(0, 1));
        Ok(FurtherHost {
            side,
            client,
            cpu,
            end,
        })
    }

    fn interfaces_of(&self, name: &str) -> Vec<String> {
        self.place(name)
            .map(HostPlace::interfaces)
            .unwrap_or_default()
    }

    /// Returns the core of a host's traffic.
    fn cpu_of(&self, host: &mut HostClient) -> Result<u32, LabError> {
        let name = host.name().to_owned();
        let cpus = host.facts()?.machine.cpus;
        if cpus.is_empty() {
            // A host without nicpoll tells none, and decides itself.
            return Ok(0);
        }
        let asked = self.place(&name).and_then(|place| place.cpu);
        let own = match host.role() {
            SENDER => cpus.first(),
            _ => cpus.get(1).or(cpus.first()),
        };
        match asked.or(own.copied()) {
            Some(cpu) if cpus.contains(&cpu) => Ok(cpu),
            _ => Err(Refused(format!(
                "[hosts.{name}] has no CPU {}; it has {cpus:?}",
                asked.unwrap_or_default()
            ))
            .into()),
        }
    }
}
