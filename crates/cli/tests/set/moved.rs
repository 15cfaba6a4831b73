//! An interface is the same one under another name, with another address and in another network namespace.

use crate::common::prelude::*;

/// As a virtual function does that a container gets and gives back.
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
    // Neither a later command nor the end of a unit takes it for gone.
    pair.done("set em0 --defer 1 --look 0 --fix");
    pair.done("set em0 -polling");
    assert!(!pair.is_clean());
    let text = pair.done("restore v0");
    let now = format!("eth0 (netns {})", pod.0);
    assert_has(&text, format!("v0 was moved or renamed, and is {now} now"));
    assert_has(&text, format!("{now}: every value is as it was"));
    assert_eq!(deferral(&pod.0, "eth0"), before);
    assert!(pair.is_clean());

    // And back: it is the same interface all the time.
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

/// Another named namespace, as a container has one.
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

/// Both values of an interface that defer interrupts.
fn deferral(netns: &str, name: &str) -> String {
    let read = format!("cd /sys/class/net/{name} && cat napi_defer_hard_irqs gro_flush_timeout");
    let output = Command::new("ip")
        .args(["netns", "exec", netns, "sh", "-c", &read])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

#[test]
fn a_renamed_interface_with_another_address_is_still_known() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    pair.done("set em0 polling --fix --look 0");
    pair.ip("link set em0 down; link set em0 name wan0 address 02:00:00:00:00:88");
    pair.ip("link set wan0 up");
    // What is set now is recorded over what was there first.
    pair.done("set wan0 --period 90us --look 0");
    pair.done("set wan0 -polling");
    assert!(pair.is_clean());
    let name = "receiver: sysfs gro_flush_timeout";
    pair.ip("link set wan0 down; link set wan0 name em0; link set em0 up");
    wait_until("it is as before", || pair.dump()[name] == before[name]);
}

#[test]
fn a_renamed_interface_is_put_back_by_its_new_name() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    pair.done("set em0 polling --fix --look 0");
    pair.ip("link set em0 down; link set em0 name wan0; link set wan0 up");
    let refusal = pair.refused("set em0 -polling", 1);
    assert!(
        refusal.contains("there are lo, wan0") || refusal.contains("wan0"),
        "{refusal}"
    );
    pair.done("set wan0 -polling");
    assert!(pair.is_clean());
    pair.ip("link set wan0 down; link set wan0 name em0; link set em0 up");
    wait_until("it is as before", || pair.dump() == before);
}
