//! A veth pair between two namespaces that live as long as it: the link of everything that nicpoll tries on
//! one machine.
//!
//! The addresses are from the blocks set aside for benchmarks (RFC 2544 appendix C.2.2 and RFC 5180
//! section 8). Each end knows the other's hardware address for good, and IPv6 says what it has to say
//! as the link comes up, so that no trial is disturbed by ARP, neighbour discovery or multicast
//! listener reports.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::thread;
use std::time::Duration;

use netlink_bindings::rt_neigh::NudState;
use netlink_bindings::traits::Pusher;
use netlink_bindings::{rt_addr, rt_link, rt_neigh};
use netlink_socket2::NetlinkSocket;
use nicpoll_model::line::Line;
use nicpoll_model::{LossPlace, Side};
use nicpoll_switch::{Control, VETH_RING_SLOTS};
use nicpoll_sys::netns::{NetNamespace, NetnsThread};

use crate::INTERFACE;
use crate::error::{Doing, StudyError};
use crate::link::Link;

/// The feature of a device that sends batches of datagrams whole.
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";
/// Link MTU of a veth pair as it comes up.
const MTU_BYTES: u32 = 1500;
/// By then the reports have been sent.
const QUIET_AFTER: Duration = Duration::from_millis(100);

/// `IFLA_INFO_DATA`, include/uapi/linux/if_link.h.
const IFLA_INFO_DATA: u16 = 2;
/// `VETH_INFO_PEER`, include/uapi/linux/veth.h.
const VETH_INFO_PEER: u16 = 1;
/// `NLA_F_NESTED`: the attribute holds attributes.
const NLA_F_NESTED: u16 = 1 << 15;
/// `IFA_F_NODAD`: use the address at once, nobody else is on this link.
const IFA_F_NODAD: u8 = 0x02;

/// Settings of an IPv6 interface that keep it quiet once it is up: it makes no link-local address,
/// asks nobody for routers or duplicate addresses, and repeats its listener reports at once instead of
/// seconds later.
const QUIET_IPV6: [(&str, &str); 6] = [
    // IN6_ADDR_GEN_MODE_NONE
    ("addr_gen_mode", "1"),
    ("accept_ra", "0"),
    ("router_solicitations", "0"),
    ("dad_transmits", "0"),
    ("mldv1_unsolicited_report_interval", "1"),
    ("mldv2_unsolicited_report_interval", "1"),
];

/// On the link's network, and neither end's.
const NOBODY: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 3);

const IPV4_PREFIX: u8 = 24;
const IPV6_PREFIX: u8 = 64;

/// The addresses of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4.
    pub ipv4: Ipv4Addr,
    /// IPv6.
    pub ipv6: Ipv6Addr,
    mac: [u8; 6],
}

impl Addresses {
    /// The addresses of `side`.
    pub fn of(side: Side) -> Self {
        let last = match side {
            Side::Sender => 1,
            Side::Receiver => 2,
        };
        Addresses {
            ipv4: Ipv4Addr::new(198, 18, 0, last),
            ipv6: Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, last.into()),
            // A locally administered address: the second bit of the first byte is set.
            mac: [0x02, 0x6e, 0x70, 0, 0, last],
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

/// One end: a namespace, and a thread in it.
struct VethEnd {
    host: String,
    namespace: NetNamespace,
    inside: NetnsThread<()>,
}

/// Two namespaces and the veth pair between them. They end with this value unless they are kept.
pub struct Veth {
    sender: VethEnd,
    receiver: VethEnd,
}

impl Veth {
    /// Makes both namespaces, joins them, gives each end its addresses, and brings it up.
    ///
    /// # Errors
    /// Without the privileges that [`nicpoll_sys::privilege`] names. Nothing is left behind then.
    pub fn build() -> Result<Self, StudyError> {
        let veth = Veth {
            sender: VethEnd::new(Side::Sender)?,
            receiver: VethEnd::new(Side::Receiver)?,
        };
        let peer_netns_fd = veth.receiver.namespace.as_fd().as_raw_fd() as u32;
        veth.inside(Side::Sender)
            .run(move |()| create_pair(peer_netns_fd))?
            .doing(|| "making the veth pair")?;
        for (side, peer) in [
            (Side::Sender, Side::Receiver),
            (Side::Receiver, Side::Sender),
        ] {
            veth.inside(side)
                .run(move |()| {
                    quieten_ipv6();
                    configure(Addresses::of(side), Addresses::of(peer))
                })?
                .doing(|| format!("configuring the {side}'s {INTERFACE}"))?;
        }
        thread::sleep(QUIET_AFTER);
        Ok(veth)
    }

    /// The namespace of an end.
    pub fn namespace(&self, side: Side) -> &NetNamespace {
        &self.end(side).namespace
    }

    /// A thread in the namespace of an end, for work that belongs to no host.
    pub fn inside(&self, side: Side) -> &NetnsThread<()> {
        &self.end(side).inside
    }

    /// Gives both namespaces names that outlive the process, for a look with ip-netns(8), and returns them.
    pub fn keep(&self) -> Result<Vec<String>, StudyError> {
        let pid = std::process::id();
        let mut names = Vec::new();
        for end in [&self.sender, &self.receiver] {
            let name = format!("nicpoll-{}-{pid}", end.host);
            end.namespace
                .keep_as(&name)
                .doing(|| format!("naming the {}'s namespace {name}", end.host))?;
            names.push(name);
        }
        Ok(names)
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

impl VethEnd {
    fn new(side: Side) -> Result<Self, StudyError> {
        let namespace = NetNamespace::create().doing(|| "making a network namespace")?;
        let inside = NetnsThread::enter(namespace.try_clone()?, || ())
            .doing(|| format!("entering the {side}'s namespace"))?;
        Ok(VethEnd {
            host: side.to_string(),
            namespace,
            inside,
        })
    }
}

impl Link for Veth {
    fn kind(&self) -> &'static str {
        "veth"
    }

    fn is_virtual(&self) -> bool {
        true
    }

    fn interface(&self, host: &str) -> Option<&str> {
        self.side(host).map(|_| INTERFACE)
    }

    fn peer(&self, host: &str) -> Option<&str> {
        let peer = match self.side(host)? {
            Side::Sender => &self.receiver,
            Side::Receiver => &self.sender,
        };
        Some(&peer.host)
    }

    fn addresses(&self, host: &str) -> Vec<(IpAddr, u8)> {
        let side = self.side(host);
        side.map_or_else(Vec::new, |side| Addresses::of(side).in_use())
    }

    fn mtu_bytes(&self) -> u32 {
        MTU_BYTES
    }

    fn ring_slots(&self) -> u32 {
        VETH_RING_SLOTS
    }

    fn line(&self) -> Result<Line, &'static str> {
        Err("a veth pair has no line; the speed that its driver tells is nominal")
    }

    fn losses(&self) -> &'static [(LossPlace, &'static str)] {
        &[
            (
                LossPlace::RxRing,
                "tx_dropped of both ends less softnet_stat's dropped",
            ),
            (LossPlace::Backlog, "softnet_stat dropped"),
        ]
    }

    fn nobody(&self) -> (IpAddr, [u8; 6]) {
        (IpAddr::V4(NOBODY), [0x02, 0x6e, 0x70, 0, 0, 3])
    }
}

fn create_pair(peer_netns_fd: u32) -> io::Result<()> {
    let mut peer = vec![0; rt_link::Ifinfomsg::len()];
    drop(
        rt_link::PushLinkAttrs::new(&mut peer)
            .push_ifname_bytes(INTERFACE.as_bytes())
            .push_address(&Addresses::of(Side::Receiver).mac)
            .push_net_ns_fd(peer_netns_fd),
    );
    let mut data = Vec::new();
    push_nested(&mut data, VETH_INFO_PEER, &peer);

    let mut request = rt_link::Request::new()
        .set_create()
        .set_excl()
        .op_newlink_do(&Default::default());
    let mut info = request
        .encode()
        .push_ifname_bytes(INTERFACE.as_bytes())
        .push_address(&Addresses::of(Side::Sender).mac)
        .nested_linkinfo()
        .push_kind(c"veth");
    push_nested(info.as_vec_mut(), IFLA_INFO_DATA, &data);
    info.end_nested();
    NetlinkSocket::new().request(&request)?.recv_ack()?;
    Ok(())
}

fn push_nested(attributes: &mut Vec<u8>, kind: u16, payload: &[u8]) {
    // The bindings pad an attribute when the next one begins, so the last one may still be ragged.
    attributes.resize(attributes.len().next_multiple_of(4), 0);
    let length = (4 + payload.len()) as u16;
    attributes.extend_from_slice(&length.to_ne_bytes());
    attributes.extend_from_slice(&(kind | NLA_F_NESTED).to_ne_bytes());
    attributes.extend_from_slice(payload);
}

/// The sysctls shown to a thread are those of the namespace that it is in. A kernel without IPv6, or
/// without one of them, is no reason to stop: control packets have lines of their own in the ledger.
fn quieten_ipv6() {
    for (name, value) in QUIET_IPV6 {
        let path = format!("/proc/sys/net/ipv6/conf/{INTERFACE}/{name}");
        let _ = fs::write(path, value);
    }
}

fn configure(own: Addresses, peer: Addresses) -> Result<(), StudyError> {
    let ifindex = Control::new().interface(INTERFACE)?.ifindex;
    let mut socket = NetlinkSocket::new();
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
        socket
            .request(&request)?
            .recv_ack()
            .map_err(io::Error::from)?;
    }

    let up = rt_link::IfinfoFlags::Up as u32;
    let header = rt_link::Ifinfomsg {
        ifi_index: ifindex as i32,
        ifi_flags: up,
        ifi_change: up,
        ..Default::default()
    };
    let request = rt_link::Request::new().op_setlink_do(&header);
    socket
        .request(&request)?
        .recv_ack()
        .map_err(io::Error::from)?;

    for (address, _) in peer.in_use() {
        add_neighbour(ifindex, address, &peer.mac)?;
    }
    Ok(())
}

/// Gives an address of the link a hardware address for good, in the caller's namespace.
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
    NetlinkSocket::new().request(&request)?.recv_ack()?;
    Ok(())
}

/// The address family as netlink headers carry it, include/linux/socket.h.
fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 2,
        IpAddr::V6(_) => 10,
    }
}
