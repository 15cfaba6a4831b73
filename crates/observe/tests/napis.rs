//! The list of NAPI instances by BPF, against the kernel's own (Linux 6.8).

mod common;

use common::*;
use nicpoll_switch::Control;
use nicpoll_sys::bpf_maps::ListedNapi;
use nicpoll_sys::link::LinkHandle;
use nicpoll_sys::link::napis::napis_of;
use nicpoll_testkit::{NetnsPair, needs};

/// Lists both, as a thread of the namespace.
fn lists(side: &Side) -> [Vec<ListedNapi>; 2] {
    let listed = |_: &mut State| {
        let ifindex = LinkHandle::named("em0").unwrap().ifindex();
        let napis = Control::new().napis(ifindex).unwrap().into_iter();
        let own = napis.map(|napi| ListedNapi {
            id: napi.id,
            thread_pid: napi.thread_pid.unwrap_or(0),
        });
        [own.collect(), napis_of(ifindex).unwrap()]
    };
    side.run(listed).unwrap()
}

#[test]
fn the_list_is_the_kernels_own() {
    needs!(Root, Ip, Ethtool);
    let pair = NetnsPair::with_queues(3);
    let mut counts = Vec::new();
    for change in [
        "ethtool -K em0 gro off",
        "ethtool -K em0 gro on",
        "echo 1 > /sys/class/net/em0/threaded",
        "ip link set em0 down",
    ] {
        run(&pair.receiver, change);
        let [own, by_bpf] = lists(&pair.receiver);
        assert_eq!(by_bpf, own, "{change}");
        let threads = by_bpf.iter().filter(|napi| napi.thread_pid > 0);
        counts.push((by_bpf.len(), threads.count()));
    }
    assert_eq!(counts, [(0, 0), (3, 0), (3, 3), (0, 0)]);
    // The other end has the same name, and none.
    assert_eq!(lists(&pair.sender), [vec![], vec![]]);
    let absent = pair.receiver.run(|_| napis_of(u32::MAX).unwrap());
    assert_eq!(absent.unwrap(), []);
}
