//! Counters without BPF, on a real kernel: they show a place's losses to the datagram, or that there may be any number,
//! and why.

mod common;

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::thread;

use common::*;
use nicpoll_model::{Drops, LossPlace, UncountedLoss, Way};
use nicpoll_observe::{Account, HostCounters, HostSnapshot};
use nicpoll_testkit::needs;

fn snapshot(side: &Side) -> HostSnapshot {
    thread::sleep(QUIET);
    let read = |_: &mut State| HostCounters::of_caller().snapshot();
    side.run(read).unwrap()
}

fn losses(before: &HostSnapshot, after: &HostSnapshot) -> (Drops, Vec<UncountedLoss>) {
    let account = Account { before, after };
    (account.drops(), account.uncounted())
}

/// Sends 1,000 datagrams and returns the drops counted on the receiving host.
fn lost_of_1000(pair: &Pair, from: &'static str, delivered: u64) -> (Drops, Vec<UncountedLoss>) {
    pair.listen(8 << 20);
    let before = snapshot(&pair.receiver);
    pair.send(from, RECEIVER, 1000);
    assert_eq!(pair.received(delivered), delivered);
    let after = snapshot(&pair.receiver);
    losses(&before, &after)
}

fn sentences(uncounted: &[UncountedLoss], place: LossPlace) -> Vec<&str> {
    for one in uncounted {
        assert_eq!((one.place, one.packets), (place, None), "{one:?}");
    }
    uncounted.iter().map(|one| one.by.as_str()).collect()
}

/// One datagram in ten is dropped by the last rule.
fn assert_filter(lines: &[&str], hook: &str, rule: &str, counted: u64, uncounted: &[&str]) {
    let pair = Pair::new();
    run(&pair.receiver, "nft 'add table inet t'");
    for line in lines {
        run(&pair.receiver, &format!("nft 'add {line}'"));
    }
    filter(&pair.receiver, hook, &[rule]);
    let (drops, found) = lost_of_1000(&pair, SENDER, 900);
    assert_eq!(drops.at(LossPlace::Nftables), Some(counted), "{rule}");
    assert_eq!(sentences(&found, LossPlace::Nftables), uncounted, "{rule}");
}

const ONE_IN_TEN: &str = "udp dport 9000 numgen inc mod 10 == 0";
const INPUT: &str = "input priority 0";

#[test]
fn a_rule_that_drops_is_counted_or_named() {
    needs!(Root, Ip, Nft);
    let drop = "chain c of table inet t has a drop rule without a counter";
    let reject = "chain c of table inet t has a reject rule without a counter";
    for (rule, counted, uncounted) in [
        ("MATCH counter drop", 100, None),
        ("MATCH counter log drop", 100, None),
        ("MATCH counter reject", 100, None),
        ("MATCH drop", 0, Some(drop)),
        ("counter MATCH drop", 0, Some(drop)),
        ("MATCH reject", 0, Some(reject)),
    ] {
        let rule = rule.replace("MATCH", ONE_IN_TEN);
        assert_filter(&[], INPUT, &rule, counted, uncounted.as_slice());
    }
}

#[test]
fn a_named_counter_counts_a_drop_when_nothing_else_has_it() {
    needs!(Root, Ip, Nft);
    let counter = "counter inet t lost";
    let rule = format!("{ONE_IN_TEN} counter name lost drop");
    assert_filter(&[counter], INPUT, &rule, 100, &[]);
    let shared = [
        counter,
        "chain inet t other { type filter hook input priority -5; }",
        "rule inet t other udp dport 9000 counter name lost",
    ];
    let cause = "chain c of table inet t has a drop rule with a named counter that other rules count with too";
    assert_filter(&shared, INPUT, &rule, 0, &[cause]);
}

#[test]
fn a_verdict_map_that_drops_is_named_and_one_that_does_not_is_not() {
    needs!(Root, Ip, Nft);
    let map = "numgen inc mod 10 vmap { 0 : VERDICT, 1 : accept }";
    let drops = map.replace("VERDICT", "drop");
    let cause = "chain c of table inet t has a verdict map that drops";
    let only_port = "rule inet t c udp dport != 9000 accept";
    let pair = Pair::new();
    filter(&pair.receiver, INPUT, &[]);
    run(
        &pair.receiver,
        &format!("nft 'add {only_port}'; nft 'add rule inet t c {drops}'"),
    );
    let (counted, found) = lost_of_1000(&pair, SENDER, 900);
    assert_eq!(counted.at(LossPlace::Nftables), Some(0));
    assert_eq!(sentences(&found, LossPlace::Nftables), [cause]);

    let pair = Pair::new();
    filter(&pair.receiver, INPUT, &[&map.replace("VERDICT", "accept")]);
    assert!(lost_of_1000(&pair, SENDER, 1000).1.is_empty());
}

#[test]
fn a_policy_to_drop_is_named() {
    needs!(Root, Ip, Nft);
    let hook = "input priority 0; policy drop";
    let all_but = "udp dport 9000 numgen inc mod 10 != 0 accept";
    let cause = "chain c of table inet t has the policy drop";
    assert_filter(&[], hook, all_but, 0, &[cause]);
}

#[test]
fn a_chain_that_drops_is_named_with_the_way_of_its_packets() {
    needs!(Root, Ip, Nft);
    let pair = Pair::new();
    let chains = "add table inet t
        add chain inet t shared
        add chain inet t unused
        add chain inet t in { type filter hook prerouting priority 0; }
        add chain inet t out { type filter hook postrouting priority 0; }
        add chain inet t through { type filter hook forward priority 0; }
        add rule inet t in jump shared";
    run(&pair.receiver, &format!("nft '{chains}'"));
    for chain in ["shared", "unused", "out", "through"] {
        run(
            &pair.receiver,
            &format!("nft 'add rule inet t {chain} udp dport 7 drop'"),
        );
    }
    let found = snapshot(&pair.receiver).uncounted;
    let named: Vec<(&str, &[Way])> = found
        .iter()
        .map(|one| (one.by.split(' ').nth(1).unwrap(), one.ways.as_slice()))
        .collect();
    let expected: [(&str, &[Way]); 3] = [
        ("out", &[Way::Out]),
        ("shared", &[Way::In]),
        ("through", &[]),
    ];
    assert_eq!(named, expected);
}

/// Drops on the way out are among IP's discards too, and are subtracted there; drops on the way in are not.
#[test]
fn what_a_filter_drops_on_the_way_out_is_at_one_place_with_a_counter_and_without() {
    needs!(Root, Ip, Nft);
    for counter in ["counter", ""] {
        let pair = Pair::new();
        let chain = |name: &str, hook: &str, port: u16| {
            format!(
                "add chain inet t {name} {{ type filter hook {hook} priority 0; }}
                 add rule inet t {name} udp dport {port} {counter} drop"
            )
        };
        let rules = [
            "add table inet t",
            &chain("o", "output", 7),
            &chain("i", "input", 9),
        ];
        run(&pair.sender, "ip link set lo up");
        run(&pair.sender, &format!("nft '{}'", rules.join("\n")));
        let losses = || {
            let mut counters = HostCounters::of_caller();
            counters.watch_drop_reasons().unwrap();
            let before = counters.snapshot();
            let socket = UdpSocket::bind((SENDER, 0)).unwrap();
            for _ in 0..5 {
                socket.send_to(b"x", (SENDER, 9)).unwrap();
            }
            for _ in 0..30 {
                let refused = socket.send_to(b"x", ("198.18.0.2", 7)).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
            }
            let after = counters.snapshot();
            let (drops, _) = losses(&before, &after);
            [LossPlace::IpOutput, LossPlace::Nftables].map(|place| drops.at(place))
        };
        let [by_ip, by_filter] = pair.sender.run(move |_: &mut State| losses()).unwrap();
        assert_eq!((by_ip, by_filter), (Some(0), Some(35)), "'{counter}'");
    }
}

#[test]
fn rules_and_policies_of_both_kinds_of_iptables_are_counted() {
    needs!(Root, Ip, Iptables);
    for kind in ["legacy", "nft"] {
        let pair = Pair::new();
        let match_one_in_ten = "-p udp --dport 9000 -m statistic --mode nth --every 10 --packet 0";
        let rules = format!(
            "iptables-{kind} -A INPUT {match_one_in_ten} -j DROP\n\
             iptables-{kind} -A INPUT -p udp --dport 9000 -m statistic --mode nth --every 9 --packet 0 -j ACCEPT\n\
             iptables-{kind} -P INPUT DROP"
        );
        run(&pair.receiver, &rules);
        // Of ten, the rule drops one, the second rule passes one of the other nine, and the policy drops eight.
        let (drops, found) = lost_of_1000(&pair, SENDER, 100);
        assert_eq!(
            drops.at(LossPlace::Nftables),
            Some(900),
            "{kind}: {found:?}"
        );
        assert_eq!(found, [], "{kind}");
    }
}

#[test]
fn the_reverse_path_filter_counts_what_it_refuses() {
    needs!(Root, Ip);
    let pair = Pair::new();
    refuse_reverse_paths(&pair);
    let (drops, found) = lost_of_1000(&pair, NO_WAY_BACK, 0);
    assert_eq!(drops.at(LossPlace::IpInput), Some(1000));
    assert_eq!(found, []);
}

#[test]
fn an_xdp_program_in_the_driver_is_counted_and_a_generic_one_is_named() {
    needs!(Root, Ip);
    for (mode, is_counted) in [("xdpgeneric", false), ("xdpdrv", true)] {
        let pair = Pair::new();
        pair.listen(8 << 20);
        drop_eighth(&pair, mode);
        let before = snapshot(&pair.receiver);
        pair.send(SENDER, RECEIVER, 800);
        let received = pair.received(700);
        let after = snapshot(&pair.receiver);
        let (drops, found) = losses(&before, &after);
        if is_counted {
            assert_eq!(drops.at(LossPlace::Xdp), Some(800 - received));
            assert_eq!(found, []);
        } else {
            assert_eq!(drops.at(LossPlace::Xdp), Some(0));
            let cause = "em0 has a generic XDP program, whose drops no counter has";
            assert_eq!(sentences(&found, LossPlace::Xdp), [cause]);
        }
    }
}

/// The ring's losses are counted at the other end, which is in another namespace.
#[test]
fn a_full_ring_is_the_receivers_loss() {
    needs!(Root, Ip, Ethtool);
    let pair = Pair::new();
    pair.listen(8 << 20);
    poll_seldom(&pair);
    let before = [&pair.sender, &pair.receiver].map(snapshot);
    pair.send_at_once(SENDER, RECEIVER, 1000);
    let received = pair.received(1000);
    assert!((200..900).contains(&received), "{received}");
    let after = [&pair.sender, &pair.receiver].map(snapshot);
    let [sender, receiver] = [0, 1].map(|side| losses(&before[side], &after[side]).0);
    let lost = receiver.at(LossPlace::RxRing).unwrap();
    // Some of the kernel's own packets may have overrun the ring too.
    assert!(
        (1000 - received..1000 - received + 5).contains(&lost),
        "{lost}"
    );
    assert_eq!(sender.at(LossPlace::DeviceTx), Some(lost));
    assert_eq!(sender.at(LossPlace::RxRing), Some(0));
}
