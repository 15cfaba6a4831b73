//! An interface is the same one under another name, with another address and in another network namespace.

use crate::common::prelude::*;

/// As a virtual function that a container gets and gives back.
#[test]
fn an_interface_is_followed_into_another_namespace_and_back() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.ip("link add v0 type veth peer name v1; link set v0 up; link set v1 up");
    let before = deferral(&pair.netns(), "v0");
    pair.done("set v0 polling --fix --look 0");
    let during = deferral(&pair.netns(), "v0");
    assert_ne!(before, during);

    let pod = Pod::new();
    pair.ip(&format!(
        "link set v0 netns {} name eth0 address 02:00:00:00:00:77",
        pod.0
    ));
    assert_eq!(deferral(&pod.0, "eth0"), during);
    // A later command, or the end of a unit, must not count it as removed.
    pair.done("set em0 --defer 1 --look 0 --fix");
    pair.done("set em0 -polling");
    assert!(!pair.is_clean());
    let text = pair.done("restore v0");
    let now = format!("eth0 (netns {})", pod.0);
    assert_has(&text, format!("v0 was moved or renamed, and is {now} now"));
    assert_has(&text, format!("{now}: every value is as it was"));
    assert_eq!(deferral(&pod.0, "eth0"), before);
    assert!(pair.is_clean());

    // And back: it is still the same interface.
    pod.ip(&format!("link set eth0 netns {} name v0", pair.netns()));
    pair.ip("link set v0 up");
    pair.done("set v0 polling --period 70us --fix --look 0");
    pair.ip(&format!("link set v0 netns {}", pod.0));
    pod.ip(&format!("link set v0 netns {}", pair.netns()));
    pair.ip("link set v0 up");
    pair.done("set v0 --period 90us --look 0");
    pair.done("set v0 -polling");
    assert_eq!(deferral(&pair.netns(), "v0"), before);
    assert!(pair.is_clean());
}

/// Another named namespace, as of a container.
struct Pod(String);

impl Pod {
    fn new() -> Self {
        let name = format!("nicpoll-pod-{}", std::process::id());
        assert!(ip(&["netns", "add", &name]));
        Pod(name)
    }

    fn ip(&self, line: &str) {
        assert!(ip(&words(&format!("-n {} {line}", self.0))), "{line}");
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.0]);
    }
}

fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).status().unwrap().success()
}

/// Returns both deferral values of an interface.
fn deferral(netns: &str, name: &str) -> String {
    let read = format!("cd /sys/class/net/{name} && cat napi_defer_hard_irqs gro_flush_timeout");
    let output = Command::new("ip")
        .args(["netns", "exec", netns, "sh", "-c", &read])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}
