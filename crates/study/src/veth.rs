//! Namespaces and the veth pairs between them, which live as long as they: the link of everything that nicpoll
//! tries on one machine.
//!
//! What must hold: no interface of the machine is touched. Each end knows the other's hardware address for good,
//! and IPv6 says what it has to say as the link comes up, so that no trial is disturbed by ARP, neighbour
//! discovery or multicast listener reports.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::Duration;

use nicpoll_model::line::Line;
use nicpoll_model::{LossPlace, Side};
use nicpoll_switch::{Control, VETH_RING_SLOTS};
use nicpoll_sys::netns::{NetNamespace, NetnsThread};

use crate::INTERFACE;
use crate::design;
use crate::error::{Doing, StudyError};
use crate::link::{Link, LocalLink};
use crate::topology::Topology;
use crate::wiring::{self, Addresses, NOBODY, RECEIVER, ROUTER, SENDER};

/// The feature of a device that sends batches of datagrams whole.
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";
/// Link MTU of a veth pair as it comes up.
const MTU_BYTES: u32 = 1500;
/// By then the reports have been sent.
const QUIET_AFTER: Duration = Duration::from_millis(100);

/// One end: a namespace, and a thread in it.
struct VethEnd {
    host: String,
    namespace: NetNamespace,
    inside: NetnsThread<()>,
}

/// Namespaces and the veth pairs between them. They end with this value unless they are kept.
pub struct Veth {
    sender: VethEnd,
    receiver: VethEnd,
    router: Option<VethEnd>,
    topology: Topology,
}

/// An end of a cable: where it is, and what it is called and addressed there.
#[derive(Clone)]
struct Plug<'a> {
    end: &'a VethEnd,
    interface: String,
    addresses: Addresses,
}

impl Veth {
    /// Makes two namespaces, joins them by one pair, gives each end its addresses, and brings it up.
    ///
    /// # Errors
    /// Without the privileges that [`nicpoll_sys::privilege`] names. Nothing is left behind then.
    pub fn build() -> Result<Self, StudyError> {
        Veth::of(&Topology::default())
    }

    /// The same for any topology.
    ///
    /// # Errors
    /// As [`Veth::build`]; when the kernel cannot shape or forward.
    pub fn of(topology: &Topology) -> Result<Self, StudyError> {
        let router = topology.is_routed().then(|| VethEnd::new(design::ROUTER));
        let veth = Veth {
            sender: VethEnd::new(&Side::Sender.to_string())?,
            receiver: VethEnd::new(&Side::Receiver.to_string())?,
            router: router.transpose()?,
            topology: topology.clone(),
        };
        if let Some(router) = &veth.router {
            let forwarding = router.inside.run(|()| wiring::forward())?;
            forwarding.doing(|| "turning on the router's forwarding")?;
        }
        for [one, other] in veth.cables() {
            one.join(&other)?;
        }
        if veth.router.is_some() {
            veth.route()?;
        }
        if topology.rate.is_some() || topology.impairs() {
            veth.shape()?;
        }
        thread::sleep(QUIET_AFTER);
        Ok(veth)
    }

    /// The pairs, those of the first path first.
    fn cables(&self) -> Vec<[Plug<'_>; 2]> {
        let plug = |end, interface: u8, network, own| Plug {
            end,
            interface: interface_name(interface),
            addresses: Addresses::at(network, own),
        };
        match &self.router {
            Some(router) => vec![
                [plug(&self.sender, 0, 0, SENDER), plug(router, 0, 0, ROUTER)],
                [
                    plug(router, 1, 1, ROUTER),
                    plug(&self.receiver, 0, 1, RECEIVER),
                ],
            ],
            None => (0..self.topology.links())
                .map(|link| {
                    [
                        plug(&self.sender, link, link, SENDER),
                        plug(&self.receiver, link, link, RECEIVER),
                    ]
                })
                .collect(),
        }
    }

    /// Sends what the hosts have for each other by the router.
    fn route(&self) -> Result<(), StudyError> {
        let (near, far) = (0, 1);
        for (end, own, others, host) in [
            (&self.sender, near, far, RECEIVER),
            (&self.receiver, far, near, SENDER),
        ] {
            let gateway = Addresses::at(own, ROUTER);
            end.inside
                .run(move |()| wiring::add_routes(Addresses::at(others, host), gateway))?
                .doing(|| format!("adding the {}'s routes", end.host))?;
        }
        Ok(())
    }

    /// Shapes what both hosts send.
    fn shape(&self) -> Result<(), StudyError> {
        for side in [Side::Sender, Side::Receiver] {
            for interface in LocalLink::interfaces(self, side) {
                self.inside(side)
                    .run({
                        let topology = self.topology.clone();
                        move |()| wiring::shape(&interface, &topology)
                    })?
                    .doing(|| format!("shaping what the {side} sends"))?;
            }
        }
        Ok(())
    }

    fn interfaces_of(&self, end: &VethEnd) -> Vec<String> {
        let plugs = self.cables().into_iter().flatten();
        plugs
            .filter(|plug| plug.end.host == end.host)
            .map(|plug| plug.interface)
            .collect()
    }

    /// The namespace of an end.
    pub fn namespace(&self, side: Side) -> &NetNamespace {
        &self.end(side).namespace
    }

    /// A thread in the namespace of an end, for work that belongs to no host.
    pub fn inside(&self, side: Side) -> &NetnsThread<()> {
        &self.end(side).inside
    }

    /// Has batches of datagrams (`UDP_SEGMENT`) be cut before the link, at both ends, so that it carries
    /// single frames and counts them as such. A veth carries whole batches otherwise.
    pub fn cut_batches(&self) -> Result<(), StudyError> {
        for side in [Side::Sender, Side::Receiver] {
            self.inside(side)
                .run(|()| {
                    let mut control = Control::new();
                    let ifindex = control.interface(INTERFACE)?.ifindex;
                    let off = BTreeMap::from([(String::from(UDP_SEGMENTATION), false)]);
                    control.set_features(ifindex, &off)
                })?
                .doing(|| format!("turning off {UDP_SEGMENTATION} of the {side}"))?;
        }
        Ok(())
    }

    /// Where the link itself loses packets and counts them: the place, and the counter.
    pub fn losses(&self) -> &'static [(LossPlace, &'static str)] {
        &[
            (
                LossPlace::RxRing,
                "tx_dropped of both ends less softnet_stat's dropped",
            ),
            (LossPlace::Backlog, "softnet_stat dropped"),
        ]
    }

    fn end(&self, side: Side) -> &VethEnd {
        match side {
            Side::Sender => &self.sender,
            Side::Receiver => &self.receiver,
        }
    }

    fn side(&self, host: &str) -> Option<Side> {
        [Side::Sender, Side::Receiver]
            .into_iter()
            .find(|side| self.end(*side).host == host)
    }
}

impl Plug<'_> {
    /// Joins both ends of a cable and brings them up.
    fn join(&self, other: &Plug<'_>) -> Result<(), StudyError> {
        let netns_fd = other.end.namespace.as_fd().as_raw_fd() as u32;
        let pair = [self, other].map(|plug| (plug.interface.clone(), plug.addresses));
        self.end
            .inside
            .run(move |()| {
                let [one, other] = &pair;
                wiring::create_pair((&one.0, one.1), (&other.0, other.1), netns_fd)
            })?
            .doing(|| "making the veth pair")?;
        for (own, peer) in [(self, other), (other, self)] {
            let (interface, addresses, peer) =
                (own.interface.clone(), own.addresses, peer.addresses);
            own.end
                .inside
                .run(move |()| wiring::configure(&interface, addresses, peer))?
                .doing(|| format!("configuring the {}'s {}", own.end.host, own.interface))?;
        }
        Ok(())
    }
}

/// The name of an end's n-th interface.
fn interface_name(number: u8) -> String {
    match number {
        0 => String::from(INTERFACE),
        number => format!("em{number}"),
    }
}

impl VethEnd {
    fn new(host: &str) -> Result<Self, StudyError> {
        let namespace = NetNamespace::create().doing(|| "making a network namespace")?;
        let inside = NetnsThread::enter(namespace.try_clone()?, || ())
            .doing(|| format!("entering the {host}'s namespace"))?;
        Ok(VethEnd {
            host: String::from(host),
            namespace,
            inside,
        })
    }
}

impl LocalLink for Veth {
    fn namespace(&self, side: Side) -> &NetNamespace {
        &self.end(side).namespace
    }

    fn interfaces(&self, side: Side) -> Vec<String> {
        self.interfaces_of(self.end(side))
    }

    fn router(&self) -> Option<(&NetNamespace, Vec<String>)> {
        let router = self.router.as_ref()?;
        Some((&router.namespace, self.interfaces_of(router)))
    }

    fn keep(&self) -> Result<Vec<String>, StudyError> {
        let pid = std::process::id();
        let mut names = Vec::new();
        for end in [
            Some(&self.sender),
            self.router.as_ref(),
            Some(&self.receiver),
        ]
        .into_iter()
        .flatten()
        {
            let name = format!("nicpoll-{}-{pid}", end.host);
            end.namespace
                .keep_as(&name)
                .doing(|| format!("naming the {}'s namespace {name}", end.host))?;
            names.push(name);
        }
        Ok(names)
    }
}

impl Link for Veth {
    fn is_virtual(&self) -> bool {
        true
    }

    fn interface(&self, host: &str) -> Option<&str> {
        let is_router = self.router.as_ref().is_some_and(|end| end.host == host);
        (is_router || self.side(host).is_some()).then_some(INTERFACE)
    }

    fn paths(&self) -> usize {
        self.topology.links().into()
    }

    fn addresses(&self, host: &str) -> Vec<(IpAddr, u8)> {
        let plugs = self.cables().into_iter().flatten();
        plugs
            .filter(|plug| plug.end.host == host)
            .flat_map(|plug| plug.addresses.in_use())
            .collect()
    }

    fn mtu_bytes(&self) -> u32 {
        MTU_BYTES
    }

    fn ring_slots(&self) -> Option<u32> {
        Some(VETH_RING_SLOTS)
    }

    fn delay(&self) -> Duration {
        self.topology.delay()
    }

    fn line(&self) -> Result<Line, &'static str> {
        let rate = self.topology.rate.map(|rate| rate.bits_per_second().get());
        rate.and_then(Line::new)
            .ok_or("a veth pair has no line; the speed that its driver tells is nominal")
    }

    fn nobody(&self) -> Option<(IpAddr, [u8; 6])> {
        let nobody = Addresses::at(0, NOBODY);
        Some((IpAddr::V4(nobody.ipv4), nobody.mac))
    }
}
