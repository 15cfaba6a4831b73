//! What queueing disciplines and packet filters dropped, over netlink.

use std::collections::BTreeMap;
use std::io;

use netlink_bindings::nftables::{self, ExprOps, IterableExprListAttrs, Nfgenmsg, VerdictCode};
use netlink_bindings::tc::{self, Tcmsg};
use netlink_socket2::NetlinkSocket;

/// `TC_H_ROOT`, include/uapi/linux/pkt_sched.h: the parent of an interface's outermost qdisc, whose
/// count of drops includes those of the qdiscs inside it.
const TC_H_ROOT: u32 = 0xFFFF_FFFF;

/// Packets that the root qdisc of each interface dropped, by interface index. One whose qdisc does not
/// count is absent: `noqueue`, the default of veth, has nothing to drop from.
pub fn qdisc_drops(socket: &mut NetlinkSocket) -> io::Result<BTreeMap<u32, u64>> {
    let request = tc::Request::new().op_getqdisc_dump(&Tcmsg::default());
    let mut reply = socket.request(&request)?;
    let mut drops = BTreeMap::new();
    while let Some(qdisc) = reply.recv() {
        let (header, qdisc) = qdisc?;
        if header.parent != TC_H_ROOT {
            continue;
        }
        if let Ok(queue) = qdisc.get_stats2().and_then(|stats| stats.get_queue()) {
            drops.insert(header.ifindex as u32, u64::from(queue.drops));
        }
    }
    Ok(drops)
}

/// Packets counted by rules of the form `... counter drop`, all tables together.
///
/// A rule without a counter, one that looks at more of the packet after its counter, or a chain's drop policy
/// counts nothing here: what it drops is found by the kernel's [drop reasons](crate::DropReasons) only.
///
/// # Errors
/// `EOPNOTSUPP` or `EPROTONOSUPPORT` when the kernel has no nftables, `EPERM` without CAP_NET_ADMIN.
pub fn nftables_drops(socket: &mut NetlinkSocket) -> io::Result<u64> {
    let request = nftables::Request::new().op_getrule_dump(&Nfgenmsg::default());
    let mut reply = socket.request(&request)?;
    let mut drops = 0;
    while let Some(rule) = reply.recv() {
        let (_, rule) = rule?;
        if let Ok(expressions) = rule.get_expressions() {
            drops += dropped_by_rule(expressions);
        }
    }
    Ok(drops)
}

/// The count of the counter right before a drop verdict; 0 when the rule has no such pair.
fn dropped_by_rule(expressions: IterableExprListAttrs<'_>) -> u64 {
    let mut counted = None;
    for expression in expressions.get_elem() {
        match expression.get_data() {
            Ok(ExprOps::Counter(counter)) => counted = counter.get_packets().ok(),
            Ok(ExprOps::Immediate(immediate)) => {
                let verdict = immediate
                    .get_data()
                    .and_then(|data| data.get_verdict())
                    .and_then(|verdict| verdict.get_code());
                if matches!(verdict, Ok(code) if code == VerdictCode::Drop as u32) {
                    return counted.unwrap_or(0);
                }
            }
            Ok(ExprOps::Log(_)) => {}
            // Not all of the packets that were counted come as far as the verdict.
            _ => counted = None,
        }
    }
    0
}
