//! A real driver: a guest's e1000, whose interrupts are counted before, during and after polling, over resets of the
//! card, and over a reboot. Debian's kernels are older than the netlink request that sets NAPI instances, so all
//! values go through sysfs.

#[path = "../common/mod.rs"]
mod common;
mod guest;
mod studies;

use crate::common::prelude::*;
use crate::guest::{Console, Guest};
use std::sync::OnceLock;

/// Common part of the scripts below. Every line that a test reads begins with a word and a colon.
const MEASURE: &str = r#"
values() {
    cd /sys/class/net/eth0
    echo "$1: $(cat napi_defer_hard_irqs gro_flush_timeout threaded | tr '\n' ' ')"
    cd /
}
interrupts() { grep eth0 /proc/interrupts | tr -s ' ' | cut -d ' ' -f 3; }
packets() { cat /sys/class/net/eth0/statistics/rx_packets; }
count() {
    ping -q -c 2 -i 0.02 10.0.2.2 >/dev/null
    interrupts_before=$(interrupts)
    packets_before=$(packets)
    ping -q -c 50 -i 0.02 10.0.2.2 >/dev/null
    echo "$1: $(($(interrupts) - interrupts_before)) interrupts, $(($(packets) - packets_before)) packets"
}
"#;

const SWITCHED: &str = r#"
values values-switched-before
count switched-before
nicpoll set eth0 polling --period 1ms --look 0; echo "set: $?"
values values-switched-during
count switched-during
nicpoll set eth0 --threaded --look 0; echo "set-threads: $?"
values values-switched-threads
count switched-threads
ping -q -c 500 -i 0.02 10.0.2.2 >/dev/null &
echo "proof: $(nicpoll set eth0 --period 2ms --look 2s | grep -v -- '->')"
kill $!
echo "kernel: $(uname -r)"
nicpoll set eth0:rx0 polling --dry-run; echo "queue: $?"
nicpoll set eth0 --moderation rx-usecs=100; echo "moderation: $?"
nicpoll set eth0 --knob rx-ring=512; echo "ring: $?"
echo "ring-during: $(nicpoll set eth0 --knob rx-ring=1024 --dry-run)"
nicpoll set eth0 -polling; echo "back: $?"
values values-switched-after
count switched-after
echo "ring-after: $(nicpoll set eth0 --knob rx-ring=1024 --dry-run)"
echo "moderation-after: $(nicpoll set eth0 --moderation rx-usecs=100 --dry-run)"
ls -d /var/lib/nicpoll || echo "switched-left: nothing"
"#;

#[test]
fn the_interrupts_of_a_card_stop_while_it_is_polled_and_come_back() {
    let Some(console) = one_boot(test_name!()) else {
        return;
    };
    expect(
        console,
        &[
            ("values-switched-before", "0 0 0"),
            ("set", "0"),
            ("values-switched-during", "2147483647 1000000 0"),
            ("set-threads", "0"),
            ("values-switched-threads", "2147483647 1000000 1"),
            ("moderation", "0"),
            ("ring", "0"),
            ("ring-during", "eth0: rx-ring 512 -> 1024"),
            ("back", "0"),
            ("values-switched-after", "0 0 0"),
            // 3 is the driver's default: adaptive.
            ("moderation-after", "eth0: coalescing rx-usecs 3 -> 100"),
            ("ring-after", "eth0: rx-ring 256 -> 1024"),
            ("switched-left", "nothing"),
        ],
    );
    let kernel = release(console.line("kernel"));
    if kernel < [6, 13] {
        expect(console, &[("queue", "5")]);
    }
    println!("e1000: {}", console.line("proof"));
    // This kernel does not list NAPI instances: they are found by BPF.
    let wanted = "eth0: proven: polling: its timer began";
    assert!(console.line("proof").starts_with(wanted), "{}", console.0);
    let [before, during, threads, after] = ["before", "during", "threads", "after"]
        .map(|when| interrupts(console, &format!("switched-{when}")));
    assert_polled_between(before, &[during, threads], after, console);
}

const RESET: &str = r#"
count reset-before
nicpoll set eth0 polling --period 1ms --look 0; echo "reset-set: $?"
ip link set eth0 mtu 1400
sleep 1
values values-reset-polled
count reset-polled
card=$(basename $(readlink /sys/class/net/eth0/device))
echo $card >/sys/bus/pci/drivers/e1000/unbind
echo $card >/sys/bus/pci/drivers/e1000/bind
card_up
sleep 1
values values-reset-new
count reset-new
nicpoll restore; echo "reset-back: $?"
values values-reset-after
ls -d /var/lib/nicpoll || echo "reset-left: nothing"
"#;

/// A change of the MTU makes the driver reset its card; unbinding and binding makes a new interface of the old name.
#[test]
fn a_reset_card_is_polled_still_and_a_new_one_is_not_touched() {
    let Some(console) = one_boot(test_name!()) else {
        return;
    };
    expect(
        console,
        &[
            ("reset-set", "0"),
            ("values-reset-polled", "2147483647 1000000 0"),
            ("values-reset-new", "0 0 0"),
            ("reset-back", "0"),
            ("values-reset-after", "0 0 0"),
            ("reset-left", "nothing"),
        ],
    );
    assert!(
        console
            .0
            .contains("eth0 no longer exists, and neither do the values set on it")
    );
    let [before, polled, new] =
        ["before", "polled", "new"].map(|when| interrupts(console, &format!("reset-{when}")));
    assert_polled_between(before, &[polled], new, console);
}

const STAMPS: &str = r#"
load e1000e
ip link set eth1 up
nicpoll ab eth1 --for 6s --block 1s --no-store >/compared 2>/said; echo "stamps-ended: $?"
echo "stamps-said: $(tail -n 4 /said | tr '\n' ' ')"
echo "stamps: $(tr '\n' ' ' </compared | tr -s ' ')"
"#;

/// nicpoll does not switch the card's time stamps on, so the page must say how.
#[test]
fn a_card_that_could_stamp_packets_is_found() {
    let Some(console) = one_boot(test_name!()) else {
        return;
    };
    // It receives nothing.
    assert_eq!(console.line("stamps-ended"), "4", "{}", console.0);
    let told = console.line("stamps");
    let remedy = "eth1 could stamp them and does not (`hwstamp_ctl -i eth1 -r 1` has it do so,";
    assert!(told.contains(remedy), "{}", console.0);
    assert!(!told.contains("delays of packets"), "{}", console.0);
}

const LAST_BOOT: &str = r#"
echo "boot: $(cat /proc/sys/kernel/random/boot_id)"
nicpoll set eth0 polling --period 1ms --persist --look 0; echo "set: $?"
values values-set
echo "carried: $(tar c -C / var/lib/nicpoll etc | base64 | tr -d '\n')"
"#;

/// The unit's commands are read from its file: the guest has no systemd.
const NEXT_BOOT: &str = r#"
base64 -d /carried | tar x -C /
echo "boot: $(cat /proc/sys/kernel/random/boot_id)"
values values-before
nicpoll restore; echo "back: $?"
values values-restored
options=$(sed -n 's/^NICPOLL_OPTIONS=//p' /etc/nicpoll/eth0.conf)
command() {
    sed -n "s/^$1=//p" /etc/systemd/system/nicpoll@.service | sed "s/\${NICPOLL_INTERFACE}/eth0/; s/\$NICPOLL_OPTIONS/$options/"
}
count before
$(command ExecStart); echo "start: $?"
values values-started
count during
card=$(basename $(readlink /sys/class/net/eth0/device))
echo $card >/sys/bus/pci/drivers/e1000/unbind
$(command ExecStop); echo "unplugged: $?"
echo $card >/sys/bus/pci/drivers/e1000/bind
card_up
sleep 1
values values-plugged
$(command ExecStart); echo "start-plugged: $?"
values values-started-again
$(command ExecStop); echo "stop: $?"
values values-stopped
count after
nicpoll set eth0 --no-persist; echo "no-persist: $?"
find /etc /var/lib -name '*nicpoll*' | grep . || echo "left: nothing"
"#;

#[test]
fn the_unit_sets_a_card_again_after_a_reboot_and_when_it_is_plugged_in() {
    let Some(last) = boot(test_name!(), &[MEASURE, LAST_BOOT], &[]) else {
        return;
    };
    let set = "2147483647 1000000 0";
    expect(&last, &[("set", "0"), ("values-set", set)]);
    let files = [("carried", last.line("carried"))];
    let Some(next) = boot(test_name!(), &[MEASURE, NEXT_BOOT], &files) else {
        return;
    };
    assert_ne!(last.line("boot"), next.line("boot"));
    expect(
        &next,
        &[
            ("values-before", "0 0 0"),
            ("back", "0"),
            ("values-restored", "0 0 0"),
            ("start", "0"),
            ("values-started", set),
            ("unplugged", "0"),
            ("values-plugged", "0 0 0"),
            ("start-plugged", "0"),
            ("values-started-again", set),
            ("stop", "0"),
            ("values-stopped", "0 0 0"),
            ("no-persist", "0"),
            ("left", "nothing"),
        ],
    );
    let [before, during, after] = ["before", "during", "after"].map(|when| interrupts(&next, when));
    assert_polled_between(before, &[during], after, &next);
}

const PLUGGED: &str = r#"
mkdir -p /run
nicpoll set eth0 polling --period 1ms --persist --look 0; echo "set: $?"
nicpoll restore eth0
systemd-udevd --daemon --resolve-names=never || echo "no-udev: its libraries are not on this machine"
card=$(basename $(readlink /sys/class/net/eth0/device))
plug() {
    echo $card >/sys/bus/pci/drivers/e1000/unbind
    echo $card >/sys/bus/pci/drivers/e1000/bind
    # "settle" may look before the event is there, and a card that is up keeps its name: the database's entry for
    # the card's new number comes last.
    entry=/run/udev/data/n$(cat /sys/bus/pci/devices/$card/net/*/ifindex)
    for wait in $(seq 100); do [ -e $entry ] && break; sleep 0.1; done
    [ -e $entry ] || echo "udev does not know the card"
    udevadm settle
    card_up
}
plug
values values-plugged
ls -d /var/lib/nicpoll || echo "recorded: nothing"
count during
for action in add change; do udevadm trigger --action=$action /sys/class/net/eth0; done; udevadm settle
nicpoll set eth0 polling --period 1ms --look 0; echo "unit: $?"
values values-unit
nicpoll set eth0 -polling; echo "back: $?"
values values-back
count after
udevadm trigger --action=add /sys/class/net/eth0; udevadm settle
values values-triggered
plug
nicpoll restore; echo "restore: $?"
values values-restored
nicpoll set eth0 --no-persist >/dev/null; udevadm control --reload
plug
values values-removed
echo 'ACTION=="add", SUBSYSTEM=="net", KERNEL=="eth0", NAME="wan0"' >/etc/udev/rules.d/80-name.rules
udevadm control --reload
# udev may still go by the rules of before: what is to be seen is what follows from a name that it gave.
for try in 1 2 3; do plug; [ -e /sys/class/net/wan0 ] && break; done
ip link set wan0 up
echo "named: $(ls /sys/bus/pci/devices/$card/net)"
nicpoll set wan0 polling --period 2ms --persist --look 0 >/dev/null; nicpoll restore wan0
udevadm control --reload
plug
echo "renamed: $(cat /sys/class/net/wan0/gro_flush_timeout)"
nicpoll restore
echo "renamed-back: $(cat /sys/class/net/wan0/gro_flush_timeout)"
"#;

/// Set by the rule alone, and restored exactly: udev's database has the old values.
#[test]
fn udev_sets_a_card_at_its_first_moment_and_that_is_put_back_exactly() {
    let Some(console) = boot(test_name!(), &[MEASURE, PLUGGED], &[]) else {
        return;
    };
    if console.0.contains("no-udev: ") {
        skip(test_name!(), Need::Qemu, console.line("no-udev"));
        return;
    }
    let set = "2147483647 1000000 0";
    expect(
        &console,
        &[
            ("set", "0"),
            ("values-plugged", set),
            ("recorded", "nothing"),
            ("unit", "0"),
            ("values-unit", set),
            ("back", "0"),
            ("values-back", "0 0 0"),
            // The rule runs once for each device.
            ("values-triggered", "0 0 0"),
            ("restore", "0"),
            ("values-restored", "0 0 0"),
            ("values-removed", "0 0 0"),
            // udev gave this name.
            ("named", "wan0"),
            ("renamed", "2000000"),
            ("renamed-back", "0"),
        ],
    );
    let [during, after] = ["during", "after"].map(|when| interrupts(&console, when));
    assert_polled_between(after, &[during], after, &console);
}

const STACKED: &str = r#"
load 8021q
ip link add link eth0 name eth0.5 type vlan id 5; ip link set eth0.5 up
compare vlan eth0.5
echo "vlan-turns: $(nicpoll ab eth0.5 --dry-run | grep ' <-> ' | sed 's/^ *//' | tr '\n' ' ')"
echo "vlan-says: $(nicpoll set eth0.5 polling --look 0 2>&1 >/dev/null)"
values values-vlan
nicpoll set eth0.5 -polling
values values-vlan-back
ls -d /var/lib/nicpoll || echo "left-by-vlan: nothing"
echo "vlan-stands: $(nicpoll ab eth0.5 --dry-run | grep 'stands for')"
ip link del eth0.5
load bonding
ip link set eth0 down
echo +eth0 >/sys/class/net/bond0/bonding/slaves
ip link set bond0 up
ip addr flush dev eth0; ip addr add 10.0.2.15/24 dev bond0
sleep 1
compare bond bond0
echo "bond-turns: $(nicpoll ab bond0 --dry-run | grep ' <-> ' | sed 's/^ *//' | tr '\n' ' ')"
echo "bond-says: $(nicpoll set bond0 polling --look 0 2>&1 >/dev/null)"
values values-bond
nicpoll set bond0 -polling
values values-bond-back
ls -d /var/lib/nicpoll || echo "left: nothing"
"#;

/// Special-purpose kernels lack VLANs, bonds and netem; Debian's has them. One guest tests all three, because booting
/// takes long.
#[test]
fn a_vlan_and_a_bond_stand_for_the_card_below_and_a_link_is_made_worse() {
    let script = [MEASURE, studies::COMPARE, STACKED, studies::IMPAIRED];
    let worse = studies::worse();
    let files = [("worse.toml", worse.as_str())];
    let Some(console) = boot_with(2, test_name!(), &script, &files) else {
        return;
    };
    for name in ["vlan", "bond"] {
        studies::expect_turns(&console, name);
    }
    studies::expect_impaired(&console);
    let set = "2147483647 200000 0";
    let turns = "eth0: napi_defer_hard_irqs 0 <-> 2147483647 eth0: gro_flush_timeout 0 <-> 200000";
    expect(
        &console,
        &[
            ("vlan-turns", turns),
            ("bond-turns", turns),
            (
                "vlan-stands",
                "eth0.5 stands for eth0: its packets arrive there, and what is changed and counted is there.",
            ),
            ("left-by-vlan", "nothing"),
            ("left", "nothing"),
            (
                "vlan-says",
                "nicpoll: eth0.5 is a vlan; its packets arrive at eth0",
            ),
            ("values-vlan", set),
            ("values-vlan-back", "0 0 0"),
            (
                "bond-says",
                "nicpoll: bond0 is a bond; its packets arrive at eth0",
            ),
            ("values-bond", set),
            ("values-bond-back", "0 0 0"),
        ],
    );
}

/// Returns the console of one guest for several tests, whose scripts restore what they change.
fn one_boot(test: &str) -> Option<&'static Console> {
    static CONSOLE: OnceLock<Option<Console>> = OnceLock::new();
    // Each test reports itself that it is skipped.
    Guest::new(test)?;
    let scripts = [MEASURE, SWITCHED, RESET, STAMPS];
    CONSOLE.get_or_init(|| boot(test, &scripts, &[])).as_ref()
}

/// Runs a script in a guest; without a guest it prints the reason and returns `None`.
fn boot(test: &str, script: &[&str], files: &[(&str, &str)]) -> Option<Console> {
    boot_with(1, test, script, files)
}

/// Runs a script in a guest with several processors.
fn boot_with(cpus: u8, test: &str, script: &[&str], files: &[(&str, &str)]) -> Option<Console> {
    let guest = Guest::new(test)?.with_cpus(cpus);
    let home = tempfile::tempdir().unwrap();
    Some(guest.run(home.path(), &script.concat(), files))
}

/// Returns the first two numbers of a kernel's release.
fn release(text: &str) -> [u32; 2] {
    let mut numbers = text
        .split(['.', '-', '+'])
        .map(|number| number.parse().unwrap());
    [0; 2].map(|_| numbers.next().unwrap())
}

fn expect(console: &Console, wanted: &[(&str, &str)]) {
    for (name, wanted) in wanted {
        assert_eq!(console.line(name), *wanted, "{name} in\n{}", console.0);
    }
}

/// Returns, and prints, the interrupts during 50 answered pings.
fn interrupts(console: &Console, when: &str) -> u32 {
    let line = console.line(when);
    let numbers: Vec<u32> = line
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    let [interrupts, packets] = numbers[..] else {
        panic!("{when}: {line}");
    };
    let ratio = f64::from(interrupts) / f64::from(packets.max(1));
    println!("e1000, {when}: {line}: {ratio:.2} interrupts a packet");
    assert!(packets >= 50, "{when} in\n{}", console.0);
    interrupts
}

/// Checks for about an interrupt for each answer, and hardly any while a timer polls: only the card's own for its
/// link, which depend on time, not on packets. The pings' duration depends on this machine's load.
fn assert_polled_between(before: u32, during: &[u32], after: u32, console: &Console) {
    for polled in during {
        let (polled, console) = (*polled, &console.0);
        assert!(4 * polled <= before, "{polled} and {before} in\n{console}");
        assert!(4 * polled <= after, "{polled} and {after} in\n{console}");
    }
    assert!(before > 0 && after > 0, "{}", console.0);
}
