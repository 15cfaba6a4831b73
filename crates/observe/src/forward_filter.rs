//! What the packet filter has for packets that a router sends on: nftables, and legacy iptables.
//!
//! What must hold: nothing that could stop or change such a packet is left out. A chain without a rule that lets
//! everything pass does neither.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;

use netlink_bindings::nftables::{IterableChainAttrs, VerdictCode};
use netlink_socket2::NetlinkSocket;
use rustix::io::Errno;

use crate::iptables;
use crate::nftables::{Name, each_chain, each_rule, family_name};

/// Chains that the kernel calls for packets on their way through the host, by family and hook
/// (include/uapi/linux/netfilter.h): prerouting, forward, postrouting, and the ingress of `inet`.
const ROUTED: ([u8; 3], [u32; 4]) = ([1, 2, 10], [0, 2, 4, 5]);
/// Those of `netdev`: ingress and egress of single interfaces.
const OF_INTERFACES: u8 = 5;

/// A chain that the kernel calls.
struct Chain {
    rules: usize,
    drops: bool,
}

/// What the packet filter of the calling thread's network namespace has for packets that come to one of these interfaces
/// and leave by another, each in words.
///
/// # Errors
/// When the kernel does not tell.
pub fn forward_filters(interfaces: &[&str]) -> io::Result<Vec<String>> {
    let mut filters = iptables::forward_chains();
    match nft_chains(&mut NetlinkSocket::new(), interfaces) {
        Ok(chains) => filters.extend(chains),
        // A kernel without nftables has no rules of it; without the privilege to ask there is none to forward either.
        Err(error)
            if matches!(
                Errno::from_io_error(&error),
                Some(Errno::OPNOTSUPP | Errno::PROTONOSUPPORT | Errno::PERM)
            ) => {}
        Err(error) => return Err(error),
    }
    Ok(filters)
}

fn nft_chains(socket: &mut NetlinkSocket, interfaces: &[&str]) -> io::Result<Vec<String>> {
    let mut chains: BTreeMap<Name, Chain> = BTreeMap::new();
    each_chain(socket, |name, chain| {
        if is_called(name.0, chain, interfaces) {
            let drops = chain.get_policy() == Ok(VerdictCode::Drop as u32);
            chains.insert(name, Chain { rules: 0, drops });
        }
    })?;
    each_rule(socket, |chain, _| {
        if let Some(chain) = chains.get_mut(&chain) {
            chain.rules += 1;
        }
    })?;
    let words = |((family, table, name), chain): (&Name, &Chain)| {
        let family = family_name(*family);
        let what = in_words(chain)?;
        Some(format!("chain {name} of table {family} {table} ({what})"))
    };
    Ok(chains.iter().filter_map(words).collect())
}

/// Whether the kernel calls a chain for packets between these interfaces.
fn is_called(family: u8, chain: &IterableChainAttrs<'_>, interfaces: &[&str]) -> bool {
    let Ok(hook) = chain.get_hook() else {
        return false;
    };
    if family != OF_INTERFACES {
        let (families, hooks) = ROUTED;
        return families.contains(&family)
            && hook.get_num().is_ok_and(|number| hooks.contains(&number));
    }
    let is_named = |device: &CStr| {
        interfaces
            .iter()
            .any(|it| it.as_bytes() == device.to_bytes())
    };
    // A chain of several interfaces may be for these, too.
    hook.get_dev().map_or(true, is_named)
}

/// What a chain does; `None` when that is nothing.
fn in_words(chain: &Chain) -> Option<String> {
    let rules = match chain.rules {
        0 if chain.drops => return Some(String::from("policy drop")),
        0 => return None,
        1 => String::from("1 rule"),
        rules => format!("{rules} rules"),
    };
    let policy = if chain.drops { ", policy drop" } else { "" };
    Some(format!("{rules}{policy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_without_a_rule_counts_only_when_it_drops() {
        let words = |rules, drops| in_words(&Chain { rules, drops });
        assert_eq!(words(0, false), None);
        assert_eq!(words(0, true).unwrap(), "policy drop");
        assert_eq!(words(1, false).unwrap(), "1 rule");
        assert_eq!(words(12, true).unwrap(), "12 rules, policy drop");
    }
}
