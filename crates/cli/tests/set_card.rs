//! A real driver: the e1000 of a guest, whose interrupts are counted before, during and after polling. Its kernel
//! is older than the netlink requests for NAPI, so that everything goes through sysfs.

mod guest;

use guest::Guest;

/// Every line that the test reads begins with a word and a colon.
const SCRIPT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
exec >/dev/ttyS0 2>&1
echo
insmod /e1000.ko
ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0
values() {
    cd /sys/class/net/eth0
    echo "$1: $(cat napi_defer_hard_irqs gro_flush_timeout threaded | tr '\n' ' ')"
    cd /
}
interrupts() { grep eth0 /proc/interrupts | tr -s ' ' | cut -d ' ' -f 3; }
count() {
    ping -q -c 2 10.0.2.2 >/dev/null
    before=$(interrupts)
    answered=$(ping -q -c 50 -i 0.02 10.0.2.2 | grep -o '[0-9]* packets received')
    echo "$1: $(($(interrupts) - before)) interrupts, $answered"
}
values values-before
count before
nicpoll set eth0 polling --period 1ms; echo "set: $?"
values values-during
count during
nicpoll set eth0 --threaded; echo "set-threads: $?"
values values-threads
count threads
nicpoll set eth0:rx0 polling; echo "queue: $?"
nicpoll set eth0 -polling; echo "back: $?"
values values-after
count after
ls -d /var/lib/nicpoll || echo "left: nothing"
poweroff -f
"#;

#[test]
fn the_interrupts_of_a_card_stop_while_it_is_polled_and_come_back() {
    let test = "the_interrupts_of_a_card_stop_while_it_is_polled_and_come_back";
    let Some(guest) = Guest::new(test) else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let console = guest.run(home.path(), SCRIPT);
    let line = |name: &str| -> &str {
        let found = console
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found
            .unwrap_or_else(|| panic!("no '{name}' in\n{console}"))
            .trim()
    };
    for when in ["before", "during", "threads", "after"] {
        println!("e1000, {when}: {}", line(when));
    }
    for (name, wanted) in [
        ("values-before", "0 0 0"),
        ("set", "0"),
        ("values-during", "2147483647 1000000 0"),
        ("set-threads", "0"),
        ("values-threads", "2147483647 1000000 1"),
        ("queue", "5"),
        ("back", "0"),
        ("values-after", "0 0 0"),
        ("left", "nothing"),
    ] {
        assert_eq!(line(name), wanted, "{name} in\n{console}");
    }
    let interrupts = |when: &str| -> u32 {
        assert!(line(when).ends_with("50 packets received"), "{console}");
        line(when).split(' ').next().unwrap().parse().unwrap()
    };
    // An interrupt for about each answer, and hardly any while a timer polls: the card's own, for its link.
    for when in ["before", "after"] {
        assert!(interrupts(when) >= 25, "{when} in\n{console}");
    }
    for when in ["during", "threads"] {
        assert!(interrupts(when) <= 5, "{when} in\n{console}");
    }
}
