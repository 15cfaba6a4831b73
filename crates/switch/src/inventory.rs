//! What there is to look at: the interfaces of a namespace, their queues, their NAPI instances' interrupts and
//! their links' speeds. Nothing here changes anything, and none of it needs a privilege.

use netlink_bindings::ethtool::PushLinkmodes;
use netlink_bindings::rt_link::IfinfoFlags;
use netlink_bindings::{netdev, rt_link};

use crate::attributes::uint_attribute;
use crate::control::{Control, ControlError};
use crate::ethtool_request::{Command, EthtoolRequest};

/// `ETHTOOL_A_LINKMODES_SPEED`, include/uapi/linux/ethtool_netlink.h: in Mbit/s.
const LINKMODES_SPEED: u16 = 5;
/// `SPEED_UNKNOWN`, include/uapi/linux/ethtool.h.
const SPEED_UNKNOWN: u32 = u32::MAX;

/// `NETDEV_XDP_ACT_BASIC` and `NETDEV_XDP_ACT_XSK_ZEROCOPY`, include/uapi/linux/netdev.h.
const XDP_BASIC: u64 = 1;
const XDP_ZERO_COPY: u64 = 8;

/// An interface of the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    /// Index within its namespace.
    pub ifindex: u32,
    /// Name.
    pub name: String,
    /// Kind of virtual device (`veth`); `None` for one that is not virtual.
    pub kind: Option<String>,
    /// Whether it is up.
    pub is_up: bool,
    /// Whether it is the loopback.
    pub is_loopback: bool,
    /// Receive queues that it was made with; how many are in use, [`Control::queues`] says.
    pub rx_queues: Option<u32>,
    /// Transmit queues that it was made with.
    pub tx_queues: Option<u32>,
    /// Packets received since it was made.
    pub rx_packets: Option<u64>,
}

/// What a driver can do with XDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct XdpAbilities {
    /// Whether programs run in the driver, before the kernel has made a packet of a frame.
    pub is_native: bool,
    /// Whether AF_XDP sockets share their memory with the card.
    pub has_zero_copy: bool,
}

impl Control {
    /// Every interface of the namespace, in the order of their indices.
    pub fn inventory(&mut self) -> Result<Vec<LinkFacts>, ControlError> {
        let doing = || String::from("listing the interfaces");
        let request = rt_link::Request::new().op_getlink_dump(&Default::default());
        let mut reply = self.ask(&request, doing())?;
        let mut links = Vec::new();
        while let Some(link) = reply.recv() {
            let (header, link) = link.map_err(ControlError::of(doing()))?;
            let has = |flag: IfinfoFlags| header.ifi_flags & flag as u32 != 0;
            let kind = link.get_linkinfo().and_then(|info| info.get_kind());
            let name = link.get_ifname();
            links.push(LinkFacts {
                ifindex: header.ifi_index as u32,
                name: name
                    .map(|name| name.to_string_lossy().into_owned())
                    .unwrap_or_default(),
                kind: kind.ok().map(|kind| kind.to_string_lossy().into_owned()),
                is_up: has(IfinfoFlags::Up),
                is_loopback: has(IfinfoFlags::Loopback),
                rx_queues: link.get_num_rx_queues().ok(),
                tx_queues: link.get_num_tx_queues().ok(),
                rx_packets: link.get_stats64().ok().map(|stats| stats.rx_packets),
            });
        }
        links.sort_by_key(|link| link.ifindex);
        Ok(links)
    }

    /// What the driver can do with XDP, as the netdev family says it.
    pub fn xdp_abilities(&mut self, ifindex: u32) -> Result<XdpAbilities, ControlError> {
        let doing = || format!("asking for the XDP features of interface {ifindex}");
        let mut request = netdev::Request::new().op_dev_get_do();
        request.encode().push_ifindex(ifindex);
        let mut reply = self.ask(&request, doing())?;
        let device = reply.recv_one().map_err(ControlError::of(doing()))?;
        let features = device.get_xdp_features().unwrap_or(0);
        Ok(XdpAbilities {
            is_native: features & XDP_BASIC != 0,
            has_zero_copy: features & XDP_ZERO_COPY != 0,
        })
    }

    /// The speed of the link in bit/s; `None` when the driver does not know it.
    ///
    /// # Errors
    /// Of kind `Unsupported` when the driver has no such thing.
    pub fn link_bits_per_second(&mut self, ifindex: u32) -> Result<Option<u64>, ControlError> {
        let doing = || format!("asking for the speed of interface {ifindex}");
        let mut request = EthtoolRequest::new(Command::LinkModesGet);
        PushLinkmodes::new(request.payload_mut())
            .nested_header()
            .push_dev_index(ifindex)
            .end_nested()
            .end_nested();
        let mut reply = self.ask(&request, doing())?;
        let answer = reply.recv_one().map_err(ControlError::of(doing()))?;
        Ok(speed_of(answer))
    }
}

fn speed_of(attributes: &[u8]) -> Option<u64> {
    let mbits = uint_attribute(attributes, LINKMODES_SPEED)?;
    let is_known = mbits > 0 && mbits != u64::from(SPEED_UNKNOWN);
    is_known.then(|| mbits.saturating_mul(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::push_uint;

    #[test]
    fn an_unknown_speed_is_none() {
        let with = |speed| {
            let mut list = Vec::new();
            push_uint(&mut list, LINKMODES_SPEED, speed);
            speed_of(&list)
        };
        assert_eq!(with(10_000), Some(10_000_000_000));
        assert_eq!(with(u64::from(SPEED_UNKNOWN)), None);
        assert_eq!(with(0), None);
        assert_eq!(speed_of(&[]), None);
    }

    #[test]
    fn the_loopback_is_there_for_everybody() {
        let links = Control::new().inventory().unwrap();
        let lo = links.iter().find(|link| link.is_loopback).unwrap();
        assert_eq!(lo.name, "lo");
        assert!(lo.rx_queues.is_some());
    }
}
