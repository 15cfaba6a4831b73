//! Names of interfaces below others, of single instances, and of removed interfaces.

use crate::common::prelude::*;
use nicpoll_switch::{Control, Napi};

#[test]
fn of_several_instances_only_those_named_are_set() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let queues = "numrxqueues 3 numtxqueues 3";
    pair.ip(&format!(
        "link add v0 {queues} type veth peer name v1 {queues}"
    ));
    pair.ip("link set v0 up; link set v1 up");
    // Sets what polling needs: only instances are changed below.
    pair.done("set v0 --suspend 1ms --fix --look 0");
    let timeouts = || -> Vec<(u32, Option<u64>)> {
        let napis = pair.near(|control: &mut Control, _| {
            let ifindex = control.interface("v0").unwrap().ifindex;
            control.napis(ifindex).unwrap()
        });
        let of = |napi: &Napi| (napi.id, napi.gro_flush_timeout_ns);
        napis.iter().map(of).collect()
    };
    let before = timeouts();
    assert_eq!(before.len(), 3);
    let [first, second, third] = [0, 1, 2].map(|at: usize| before[at].0);
    pair.done(&format!(
        "set v0:napi{first},{third} polling --period 90us --look 0"
    ));
    let during = timeouts();
    for (id, timeout) in during {
        let wanted = if id == second { 0 } else { 90_000 };
        assert_eq!(timeout, Some(wanted), "{id}");
    }
    pair.done("set v0 -polling");
    assert!(timeouts().iter().all(|(_, timeout)| *timeout == Some(0)));
    assert!(pair.is_clean());
}
