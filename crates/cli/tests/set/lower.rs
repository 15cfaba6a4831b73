//! `nicpoll show` of interfaces without queues of their own: they learn of packets as those below them do.

use crate::common::prelude::*;

fn shown(pair: &Switched, name: &str, time: &str) -> Value {
    let output = pair.run(&format!("show {name} --for {time} --json"));
    assert_code(&output, 0);
    let show = json_of(&output);
    assert_eq!(show["interfaces"].as_array().unwrap().len(), 1);
    show["interfaces"][0].clone()
}

#[test]
fn what_lies_on_a_polled_port_polls() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.done("set em0 polling --fix --look 0");
    for line in [
        "link add br0 type bridge",
        "link add mv0 link em0 type macvlan",
        "link add vx0 type vxlan id 7 dstport 4789 dev em0",
    ] {
        pair.ip(line);
    }
    for name in ["mv0", "vx0"] {
        pair.ip(&format!("link set {name} up"));
        let seen = pair.under_traffic(|| shown(&pair, name, "300ms"));
        for what in ["setting", "evidence"] {
            assert_eq!(seen[what]["discipline"], "polling", "{name}: {seen:#}");
            let why = seen[what]["why"].as_str().unwrap();
            assert!(why.starts_with("its packets arrive at em0: "), "{why}");
        }
        assert_eq!(seen["lower"], serde_json::json!(["em0"]));
    }
    pair.ip("link del mv0; link set em0 master br0; link set br0 up");
    assert_eq!(shown(&pair, "br0", "0")["setting"]["discipline"], "polling");
    pair.ip("link set em0 nomaster");
    // Nothing is below it now, and nothing is known of how its packets would come.
    let seen = shown(&pair, "br0", "100ms");
    assert_eq!(seen["setting"]["discipline"], "elsewhere");
    assert_eq!(seen["evidence"]["discipline"], "elsewhere");
    pair.done("set em0 -polling");
    assert!(pair.is_clean());
}

#[test]
fn a_tap_is_nobodys_backlog() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.ip("tuntap add mode tap name tap0; link set tap0 up");
    let text = pair.done("show tap0 --for 0");
    let line = text.lines().find(|line| line.starts_with("  setting"));
    assert!(
        line.is_some_and(|line| line.contains("-: a program writes")),
        "{text}"
    );
}

#[test]
fn the_tree_of_variables_is_printed_with_their_names() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.done("set em0 polling --fix --look 0");
    let text = pair.done("show em0 --for 0 -n kern.polling");
    assert!(text.contains("kern.polling.enable: 1\n"), "{text}");
    assert!(text.contains("kern.polling.burst_max: 256\n"), "{text}");
    assert!(
        text.lines().all(|line| line.starts_with("kern.polling.")),
        "{text}"
    );
    pair.done("set em0 -polling");
}
