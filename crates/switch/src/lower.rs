//! What lies below a VLAN, a bond, a bridge or a tunnel: the interfaces that packets really arrive at.

use crate::links::PlacedInterface;

/// Kinds that lie on one other interface (`IFLA_LINK`, and of vxlan `IFLA_VXLAN_LINK`).
const ON_ANOTHER: [&str; 7] = [
    "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "vxlan", "macsec",
];
/// Kinds that other interfaces are ports of (`IFLA_MASTER`).
const OF_PORTS: [&str; 3] = ["bond", "bridge", "team"];
/// Deeper stacks than the kernel builds (`MAX_NEST_DEV`).
const DEPTH_MAX: u32 = 8;

/// Whether an interface of this kind has no queue of its own to poll, only interfaces below it.
pub fn is_stacked(driver: &str) -> bool {
    ON_ANOTHER.contains(&driver) || OF_PORTS.contains(&driver)
}

/// Whether packets of an interface of this kind go through the backlog of a CPU when it has no NAPI instance: those of
/// cards with old drivers, of the loopback and of veth.
pub fn goes_by_backlog(kind: Option<&str>) -> bool {
    matches!(kind, None | Some("veth"))
}

/// The interfaces at the bottom of `top`: itself when it lies on nothing, none when it is stacked and
/// nothing in this namespace is below it.
pub fn lowest<'a>(
    links: &'a [PlacedInterface],
    top: &'a PlacedInterface,
) -> Vec<&'a PlacedInterface> {
    let mut found = Vec::new();
    descend(links, top, DEPTH_MAX, &mut found);
    found
}

fn descend<'a>(
    links: &'a [PlacedInterface],
    top: &'a PlacedInterface,
    depth: u32,
    found: &mut Vec<&'a PlacedInterface>,
) {
    let driver = top.interface.driver.as_str();
    if !is_stacked(driver) {
        let is_known = found
            .iter()
            .any(|link| link.interface.ifindex == top.interface.ifindex);
        if !is_known {
            found.push(top);
        }
        return;
    }
    if depth == 0 {
        return;
    }
    let is_below = |link: &&PlacedInterface| {
        if OF_PORTS.contains(&driver) {
            link.master == Some(top.interface.ifindex)
        } else {
            top.lower_netnsid.is_none() && top.lower == Some(link.interface.ifindex)
        }
    };
    for link in links.iter().filter(is_below) {
        descend(links, link, depth - 1, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Interface;

    fn link(
        ifindex: u32,
        driver: &str,
        lower: Option<u32>,
        master: Option<u32>,
    ) -> PlacedInterface {
        PlacedInterface {
            interface: Interface {
                ifindex,
                name: format!("if{ifindex}"),
                driver: String::from(driver),
                address: String::new(),
                device_id: Some(ifindex.into()),
            },
            is_up: true,
            is_loopback: false,
            lower,
            lower_netnsid: None,
            master,
            rx_packets: 0,
            mtu_bytes: 1500,
            max_mtu_bytes: None,
        }
    }

    fn below(links: &[PlacedInterface], ifindex: u32) -> Vec<u32> {
        let top = links
            .iter()
            .find(|link| link.interface.ifindex == ifindex)
            .unwrap();
        let found = lowest(links, top);
        found.iter().map(|link| link.interface.ifindex).collect()
    }

    #[test]
    fn a_stack_ends_at_its_cards() {
        let links = [
            link(1, "", None, Some(3)),
            link(2, "", None, Some(3)),
            link(3, "bond", None, None),
            link(4, "vlan", Some(3), Some(5)),
            link(5, "bridge", None, None),
            link(6, "veth", Some(9), Some(5)),
        ];
        assert_eq!(below(&links, 5), [1, 2, 6]);
        assert_eq!(below(&links, 4), [1, 2]);
        assert_eq!(below(&links, 1), [1]);
        // The other end of a pair is not below it.
        assert_eq!(below(&links, 6), [6]);
    }

    #[test]
    fn what_lies_elsewhere_and_what_turns_in_a_circle_is_not_found() {
        let mut elsewhere = link(2, "macvlan", Some(1), None);
        elsewhere.lower_netnsid = Some(0);
        assert!(below(&[link(1, "", None, None), elsewhere], 2).is_empty());
        assert!(below(&[link(3, "bridge", None, None)], 3).is_empty());
        let circle = [
            link(1, "vlan", Some(2), None),
            link(2, "vlan", Some(1), None),
        ];
        assert!(below(&circle, 1).is_empty());
    }
}
