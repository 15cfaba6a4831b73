//! A link of veth pairs between network namespaces made for it, built over netlink.
//!
//! It touches no interface of the machine, and is removed when dropped, unless kept by name. Both ends know each
//! other's hardware addresses permanently and IPv6 autoconfiguration is off, so no ARP, neighbour discovery or
//! multicast report disturbs a trial.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io, thread};

use netlink_bindings::rt_neigh::{self, NudState};
use netlink_bindings::rt_route::{self, RtmType};
use netlink_bindings::tc::{self, TcNetemQopt, TcRatespec, TcTbfQopt, Tcmsg};
use netlink_bindings::traits::{NetlinkRequest, Pusher};
use netlink_bindings::{rt_addr, rt_link};
use netlink_socket2::NetlinkSocket;
use nicpoll_model::Side;
use nicpoll_model::line::Line;
use nicpoll_observe::Between;
use nicpoll_switch::{Control, VETH_RING_SLOTS};
use nicpoll_sys::netns::{NetNamespace, NetnsThread};

use crate::error::{Doing, LabError};
use crate::host::{INTERFACE, RECEIVER, ROUTER, SENDER};
use crate::link::{
    FRAME_BYTES_MAX, Link, LinkEnd, LossShare, QUEUE_FRAMES, QUEUE_SECONDS, Topology,
};

/// The offload feature for sending batches of datagrams whole.
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";

/// Link MTU of a veth pair as it comes up.
const MTU_BYTES: u32 = 1500;

/// Time until IPv6's listener reports have been sent.
const QUIET_AFTER: Duration = Duration::from_millis(100);

/// Namespaces and the veth pairs between them. They end with this value unless they are kept.
pub struct Veth {
    link: Arc<Link>,
    /// The namespace of each end.
    namespaces: Vec<NetNamespace>,
    /// A thread in the namespace of each end.
    inside: Vec<NetnsThread<()>>,
}

/// An end of a cable: the index of the link's end, and its interface's name and addresses.
#[derive(Clone)]
struct Plug {
    end: usize,
    interface: String,
    addresses: Addresses,
}

impl Veth {
    /// Makes two namespaces, joins them by one pair, gives each end its addresses, and brings it up.
    ///
    /// # Errors
    /// Without the privileges that [`nicpoll_sys::privilege`] names. Nothing is left behind then.
    pub fn build() -> Result<Self, LabError> {
        Veth::of(&Topology::default())
    }

    /// Builds any topology.
    ///
    /// # Errors
    /// As [`Veth::build`]; when the kernel cannot shape or forward.
    pub fn of(topology: &Topology) -> Result<Self, LabError> {
        let hosts: &[&'static str] = match topology.is_routed() {
            true => &[SENDER, ROUTER, RECEIVER],
            false => &[SENDER, RECEIVER],
        };
        let (mut ends, mut namespaces, mut inside) = (Vec::new(), Vec::new(), Vec::new());
        for &host in hosts {
            let namespace = NetNamespace::create().doing(|| "making a network namespace")?;
            let thread = NetnsThread::enter(namespace.try_clone()?, || ())
                .doing(|| format!("entering the {host}'s namespace"))?;
            inside.push(thread);
            ends.push(LinkEnd {
                host,
                namespace: Some(namespace.try_clone()?),
                interfaces: Vec::new(),
                addresses: Vec::new(),
            });
            namespaces.push(namespace);
        }
        if topology.is_routed() {
            let forwarding = inside[1].run(|()| forward())?;
            forwarding.doing(|| "turning on the router's forwarding")?;
        }
        for cable in cables(topology) {
            join(&namespaces, &inside, &cable)?;
            for plug in cable {
                ends[plug.end].interfaces.push(plug.interface);
                ends[plug.end].addresses.extend(plug.addresses.in_use());
            }
        }
        let rate = topology.rate.map(|rate| rate.bits_per_second().get());
        let nobody = Addresses::at(0, NOBODY_NUMBER);
        let link = Link {
            ends,
            is_virtual: true,
            between: Between::Veth,
            is_shared: false,
            mtu_bytes: MTU_BYTES,
            ring_slots: Some(VETH_RING_SLOTS),
            delay: topology.delay(),
            line: rate
                .and_then(Line::new)
                .ok_or("a veth pair has no line; the speed that its driver tells is nominal"),
            nobody: Some((IpAddr::V4(nobody.ipv4), nobody.mac)),
        };
        let veth = Veth {
            link: Arc::new(link),
            namespaces,
            inside,
        };
        if topology.is_routed() {
            veth.route()?;
        }
        if topology.rate.is_some() || topology.impairs() {
            veth.shape(topology)?;
        }
        thread::sleep(QUIET_AFTER);
        Ok(veth)
    }

    /// Routes the hosts' traffic for each other through the router.
    fn route(&self) -> Result<(), LabError> {
        let (near, far) = (0, 1);
        for (side, own, others, host) in [
            (Side::Sender, near, far, RECEIVER_NUMBER),
            (Side::Receiver, far, near, SENDER_NUMBER),
        ] {
            let gateway = Addresses::at(own, ROUTER_NUMBER);
            self.inside(side)
                .run(move |()| add_routes(Addresses::at(others, host), gateway))?
                .doing(|| format!("adding the {side}'s routes"))?;
        }
        Ok(())
    }

    /// Shapes the sending of both hosts.
    fn shape(&self, topology: &Topology) -> Result<(), LabError> {
        for side in Side::ALL {
            for interface in self.link.end(side).interfaces.clone() {
                let topology = topology.clone();
                self.inside(side)
                    .run(move |()| shape(&interface, &topology))?
                    .doing(|| format!("shaping what the {side} sends"))?;
            }
        }
        Ok(())
    }

    /// Returns the link, for a lab.
    pub fn link(&self) -> Arc<Link> {
        Arc::clone(&self.link)
    }

    /// The namespace of an end.
    pub fn namespace(&self, side: Side) -> &NetNamespace {
        &self.namespaces[side.of(0, self.namespaces.len() - 1)]
    }

    /// A thread in the namespace of an end, for work that belongs to no host.
    pub fn inside(&self, side: Side) -> &NetnsThread<()> {
        &self.inside[side.of(0, self.inside.len() - 1)]
    }

    /// Has the kernel cut batches of datagrams (`UDP_SEGMENT`) before the link, at both ends: it then carries and
    /// counts single frames. Otherwise a veth carries whole batches.
    pub fn cut_batches(&self) -> Result<(), LabError> {
        for side in Side::ALL {
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
}

/// The pairs of a topology, those of the first path first.
fn cables(topology: &Topology) -> Vec<[Plug; 2]> {
    let plug = |end, interface, network, own| Plug {
        end,
        interface: interface_name(interface),
        addresses: Addresses::at(network, own),
    };
    if topology.is_routed() {
        return vec![
            [plug(0, 0, 0, SENDER_NUMBER), plug(1, 0, 0, ROUTER_NUMBER)],
            [plug(1, 1, 1, ROUTER_NUMBER), plug(2, 0, 1, RECEIVER_NUMBER)],
        ];
    }
    let links = 0..topology.links();
    let both = links.map(|link| {
        [
            plug(0, link, link, SENDER_NUMBER),
            plug(1, link, link, RECEIVER_NUMBER),
        ]
    });
    both.collect()
}

/// Joins both ends of a cable and brings them up.
fn join(
    namespaces: &[NetNamespace],
    inside: &[NetnsThread<()>],
    cable: &[Plug; 2],
) -> Result<(), LabError> {
    let [one, other] = cable.clone();
    let netns_fd = namespaces[other.end].as_fd().as_raw_fd() as u32;
    inside[one.end]
        .run(move |()| {
            let (own, peer) = (one.addresses, other.addresses);
            create_pair((&one.interface, own), (&other.interface, peer), netns_fd)
        })?
        .doing(|| "making the veth pair")?;
    let [one, other] = cable;
    for (own, peer) in [(one, other), (other, one)] {
        let (plug, peer) = (own.clone(), peer.addresses);
        inside[own.end]
            .run(move |()| configure(&plug.interface, plug.addresses, peer))?
            .doing(|| format!("configuring {} and its other end", own.interface))?;
    }
    Ok(())
}

/// The name of an end's n-th interface.
fn interface_name(number: u8) -> String {
    match number {
        0 => String::from(INTERFACE),
        number => format!("em{number}"),
    }
}

/// `IFLA_INFO_DATA`, include/uapi/linux/if_link.h.
const IFLA_INFO_DATA: u16 = 2;

/// `VETH_INFO_PEER`, include/uapi/linux/veth.h.
const VETH_INFO_PEER: u16 = 1;

/// `NLA_F_NESTED`: the attribute holds attributes.
const NLA_F_NESTED: u16 = 1 << 15;

/// `IFA_F_NODAD`: use the address at once; no other host is on this link.
const IFA_F_NODAD: u8 = 0x02;

/// `RT_TABLE_MAIN` and `RTPROT_STATIC`, include/uapi/linux/rtnetlink.h.
const MAIN_TABLE: u8 = 254;

const PROTOCOL_STATIC: u8 = 4;

/// `TC_H_ROOT`, include/uapi/linux/pkt_sched.h: the parent of an interface's outermost qdisc.
const TC_H_ROOT: u32 = 0xFFFF_FFFF;

/// The handle of the delaying qdisc, and of its child: 1: and 1:1.
const IMPAIRING: u32 = 0x1_0000;

const IMPAIRED: u32 = 0x1_0001;

/// Limit of delayed packets: a second of a million a second.
const IMPAIRED_PACKETS_MAX: u32 = 1_000_000;

/// The loopback is the first interface of a network namespace.
const LOOPBACK: u32 = 1;

/// `TC_LINKLAYER_ETHERNET`.
const LINK_LAYER_ETHERNET: u8 = 1;

/// Bytes of a frame on the wire that the kernel does not count: FCS, preamble and gap.
const FRAME_OVERHEAD_BYTES: u8 = 24;

/// Bytes that the shortest frame takes on the wire.
const FRAME_BYTES_MIN: u8 = 84;

/// Largest burst: this much time of the line, and at least three frames.
const BURST_SECONDS: f64 = 1e-3;

/// Settings that keep an IPv6 interface quiet once it is up: no link-local address, no router solicitation, no
/// duplicate address detection, and listener reports repeated at once instead of seconds later.
const QUIET_IPV6: [(&str, &str); 6] = [
    // IN6_ADDR_GEN_MODE_NONE
    ("addr_gen_mode", "1"),
    ("accept_ra", "0"),
    ("router_solicitations", "0"),
    ("dad_transmits", "0"),
    ("mldv1_unsolicited_report_interval", "1"),
    ("mldv2_unsolicited_report_interval", "1"),
];

const IPV4_PREFIX: u8 = 24;

const IPV6_PREFIX: u8 = 64;

/// The sender's number on each of its networks.
pub const SENDER_NUMBER: u8 = 1;

/// The receiver.
pub const RECEIVER_NUMBER: u8 = 2;

/// Nobody.
pub const NOBODY_NUMBER: u8 = 3;

/// The router.
pub const ROUTER_NUMBER: u8 = 4;

/// The addresses of one end of a veth pair.
///
/// They are from the benchmarking blocks (RFC 2544 appendix C.2.2 and RFC 5180 section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4.
    pub ipv4: Ipv4Addr,
    /// IPv6.
    pub ipv6: Ipv6Addr,
    /// Hardware address.
    pub mac: [u8; 6],
}

impl Addresses {
    /// The addresses of an end on one of the networks.
    pub fn at(network: u8, end: u8) -> Self {
        Addresses {
            ipv4: Ipv4Addr::new(198, 18, network, end),
            ipv6: Ipv6Addr::new(0x2001, 2, 0, network.into(), 0, 0, 0, end.into()),
            // A locally administered address: the second bit of the first byte is set.
            mac: [0x02, 0x6e, 0x70, 0, network, end],
        }
    }

    /// The addresses that are used, with their prefix lengths. IPv6 is left out where the kernel was
    /// started without it.
    pub fn in_use(&self) -> Vec<(IpAddr, u8)> {
        let ipv4 = (IpAddr::V4(self.ipv4), IPV4_PREFIX);
        let ipv6 = (IpAddr::V6(self.ipv6), IPV6_PREFIX);
        if Path::new("/proc/sys/net/ipv6").exists() {
            vec![ipv4, ipv6]
        } else {
            vec![ipv4]
        }
    }
}

fn acknowledged(request: &impl NetlinkRequest) -> io::Result<()> {
    Ok(NetlinkSocket::new().request(request)?.recv_ack()?)
}

/// Makes a veth pair of one name in the caller's namespace and one in another.
pub fn create_pair(
    (name, own): (&str, Addresses),
    (peer_name, peer): (&str, Addresses),
    peer_netns_fd: u32,
) -> io::Result<()> {
    let mut far = vec![0; rt_link::Ifinfomsg::len()];
    drop(
        rt_link::PushLinkAttrs::new(&mut far)
            .push_ifname_bytes(peer_name.as_bytes())
            .push_address(&peer.mac)
            .push_net_ns_fd(peer_netns_fd),
    );
    let mut data = Vec::new();
    push_nested(&mut data, VETH_INFO_PEER, &far);

    let mut request = rt_link::Request::new()
        .set_create()
        .set_excl()
        .op_newlink_do(&Default::default());
    let mut info = request
        .encode()
        .push_ifname_bytes(name.as_bytes())
        .push_address(&own.mac)
        .nested_linkinfo()
        .push_kind(c"veth");
    push_nested(info.as_vec_mut(), IFLA_INFO_DATA, &data);
    info.end_nested();
    acknowledged(&request)
}

fn push_nested(attributes: &mut Vec<u8>, kind: u16, payload: &[u8]) {
    // The bindings pad an attribute when the next one begins, so the last one may still be ragged.
    attributes.resize(attributes.len().next_multiple_of(4), 0);
    let length = (4 + payload.len()) as u16;
    attributes.extend_from_slice(&length.to_ne_bytes());
    attributes.extend_from_slice(&(kind | NLA_F_NESTED).to_ne_bytes());
    attributes.extend_from_slice(payload);
}

/// A thread sees the sysctls of its own namespace. A kernel that lacks IPv6 or one of the sysctls is accepted:
/// control packets have lines of their own in the ledger.
fn quieten_ipv6(interface: &str) {
    for (name, value) in QUIET_IPV6 {
        let path = format!("/proc/sys/net/ipv6/conf/{interface}/{name}");
        let _ = fs::write(path, value);
    }
}

/// Gives an interface of the caller's namespace its addresses, brings it up, and tells it the other end's.
pub fn configure(interface: &str, own: Addresses, peer: Addresses) -> Result<(), LabError> {
    quieten_ipv6(interface);
    let ifindex = Control::new().interface(interface)?.ifindex;
    for (address, prefix) in own.in_use() {
        let header = rt_addr::Ifaddrmsg {
            ifa_family: family(address),
            ifa_prefixlen: prefix,
            ifa_flags: IFA_F_NODAD,
            ifa_index: ifindex,
            ..Default::default()
        };
        let mut request = rt_addr::Request::new().set_create().op_newaddr_do(&header);
        request.encode().push_local(address).push_address(address);
        acknowledged(&request)?;
    }

    let up = rt_link::IfinfoFlags::Up as u32;
    let header = rt_link::Ifinfomsg {
        ifi_index: ifindex as i32,
        ifi_flags: up,
        ifi_change: up,
        ..Default::default()
    };
    let request = rt_link::Request::new().op_setlink_do(&header);
    acknowledged(&request)?;

    for (address, _) in peer.in_use() {
        add_neighbour(ifindex, address, &peer.mac)?;
    }
    Ok(())
}

/// Adds a permanent neighbour entry for an address of the link, in the caller's namespace.
pub fn add_neighbour(ifindex: u32, address: IpAddr, mac: &[u8; 6]) -> io::Result<()> {
    let header = rt_neigh::Ndmsg {
        ndm_family: family(address),
        ndm_ifindex: ifindex as i32,
        ndm_state: NudState::Permanent as u16,
        ..Default::default()
    };
    let mut request = rt_neigh::Request::new()
        .set_create()
        .op_newneigh_do(&header);
    request.encode().push_dst(address).push_lladdr(mac);
    acknowledged(&request)
}

/// Adds routes to the network of `far` through `gateway`, in the caller's namespace.
pub fn add_routes(far: Addresses, gateway: Addresses) -> io::Result<()> {
    let gateways = gateway.in_use();
    for ((address, prefix), (gateway, _)) in far.in_use().into_iter().zip(gateways) {
        let header = rt_route::Rtmsg {
            rtm_family: family(address),
            rtm_dst_len: prefix,
            rtm_table: MAIN_TABLE,
            rtm_protocol: PROTOCOL_STATIC,
            rtm_type: RtmType::Unicast as u8,
            ..Default::default()
        };
        let mut request = rt_route::Request::new()
            .set_create()
            .op_newroute_do(&header);
        request
            .encode()
            .push_dst(network(address))
            .push_gateway(gateway);
        acknowledged(&request)?;
    }
    Ok(())
}

/// Returns the network address of a host's address.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, 0))
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

/// Turns on forwarding of both IP versions in the caller's namespace.
pub fn forward() -> io::Result<()> {
    fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    let ipv6 = Path::new("/proc/sys/net/ipv6/conf/all/forwarding");
    match ipv6.exists() {
        true => fs::write(ipv6, "1"),
        false => Ok(()),
    }
}

/// Applies a topology's delay, loss and line rate to the sending of an interface of the caller's namespace.
pub fn shape(interface: &str, topology: &Topology) -> Result<(), LabError> {
    let ifindex = Control::new().interface(interface)?.ifindex;
    let mut parent = TC_H_ROOT;
    if topology.impairs() {
        let loss = topology.loss.map_or(0, LossShare::of_2_32);
        impair(ifindex, topology.delay(), loss)?;
        parent = IMPAIRED;
    }
    match topology.rate {
        Some(rate) => Ok(limit(ifindex, parent, rate.bits_per_second())?),
        None => Ok(()),
    }
}

/// Tries, in a namespace of its own, whether this kernel can delay and lose packets.
pub fn try_netem() -> io::Result<()> {
    let namespace = NetNamespace::create()?;
    let inside = NetnsThread::enter(namespace, || ())?;
    let tried = inside.run(|()| impair(LOOPBACK, Duration::from_millis(1), 0));
    tried.map_err(io::Error::other)?
}

/// Delays what an interface sends, and loses a share of 2^32 of it (netem).
fn impair(ifindex: u32, delay: Duration, loss: u32) -> io::Result<()> {
    let options = TcNetemQopt {
        limit: IMPAIRED_PACKETS_MAX,
        loss,
        ..Default::default()
    };
    add_qdisc(ifindex, TC_H_ROOT, IMPAIRING, |queue| {
        queue
            .nested_options_netem(&options)
            .push_latency64(delay.as_nanos() as i64)
            .end_nested();
    })
}

/// Adds a queueing discipline below `parent`. `options` names its kind and says what it is to do.
fn add_qdisc(
    ifindex: u32,
    parent: u32,
    handle: u32,
    options: impl FnOnce(tc::PushAttrs<&mut Vec<u8>>),
) -> io::Result<()> {
    let header = Tcmsg {
        ifindex: ifindex as i32,
        handle,
        parent,
        ..Default::default()
    };
    let mut request = tc::Request::new()
        .set_create()
        .set_excl()
        .op_newqdisc_do(&header);
    options(request.encode());
    acknowledged(&request)
}

/// The queueing disciplines of an interface of the caller's namespace, by their kinds, the outermost first.
pub fn qdiscs(ifindex: u32) -> io::Result<String> {
    let mut socket = NetlinkSocket::new();
    let request = tc::Request::new().op_getqdisc_dump(&Tcmsg::default());
    let mut reply = socket.request(&request)?;
    let mut kinds = Vec::new();
    while let Some(qdisc) = reply.recv() {
        let (header, qdisc) = qdisc?;
        if header.ifindex as u32 == ifindex {
            let kind = qdisc.get_kind().map_err(io::Error::other)?;
            kinds.push(kind.to_string_lossy().into_owned());
        }
    }
    Ok(kinds.join(" "))
}

/// Removes the outermost queueing discipline of an interface of the caller's namespace.
pub fn remove_root_qdisc(ifindex: u32) -> io::Result<()> {
    let header = Tcmsg {
        ifindex: ifindex as i32,
        parent: TC_H_ROOT,
        ..Default::default()
    };
    acknowledged(&tc::Request::new().op_delqdisc_do(&header))
}

/// Limits the packets below `parent` to the rate at which a line carries Ethernet frames (tbf).
fn limit(ifindex: u32, parent: u32, bits_per_second: NonZeroU64) -> io::Result<()> {
    let bytes_per_second = bits_per_second.get() / 8;
    let of = |seconds: f64, frames: u64| {
        let bytes = (bytes_per_second as f64 * seconds) as u64;
        bytes.max(frames * FRAME_BYTES_MAX).min(u32::MAX.into()) as u32
    };
    let bucket = TcTbfQopt {
        rate: TcRatespec {
            linklayer: LINK_LAYER_ETHERNET,
            overhead: FRAME_OVERHEAD_BYTES,
            mpu: FRAME_BYTES_MIN,
            rate: bytes_per_second.min(u32::MAX.into()) as u32,
            ..Default::default()
        },
        limit: of(QUEUE_SECONDS, QUEUE_FRAMES),
        ..Default::default()
    };
    // The kernel chooses its handle.
    add_qdisc(ifindex, parent, 0, |queue| {
        queue
            .nested_options_tbf()
            .push_parms(bucket)
            .push_rate64(bytes_per_second)
            .push_burst(of(BURST_SECONDS, 3))
            .end_nested();
    })
}

/// The address family as netlink headers carry it, include/linux/socket.h.
fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 2,
        IpAddr::V6(_) => 10,
    }
}
