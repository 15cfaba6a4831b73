//! What queueing disciplines dropped, over netlink.

use std::collections::BTreeMap;
use std::io;

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
