//! Everything that `nicpoll set` changed can be restored exactly: after every profile, an error, a kill at any point,
//! down and up, removal and a reboot.

#[path = "../common/mod.rs"]
mod common;

use crate::common::prelude::*;
use crate::common::switched::assert_same;
use nicpoll_observe::PollCounter;
use nicpoll_switch::knob::table;
use nicpoll_switch::{Journal, Kernel, ScopedKnob, Value};

/// Events after a command, at the end of which everything is restored.
const STORIES: &str = r#"
    # setting again keeps what was there first
    by-hand
    remember
    0 set em0 polling --fix --look 0
    0 set em0 --period 50us --look 0
    0 set em0 --threaded --defer 3 --look 0
    0 set em0 --defer 3 --dry-run | nothing
    0 restore
    restored

    # a CPU that is not there is refused before anything is written
    1 set em0 polling --fix --threaded --threaded-cpus 1000 | em0: there is no CPU 1000 for its threads | are online
    restored

    # down and up make no difference
    0 set em0 polling --fix --threaded --look 0
    remember during
    ip link set em0 down; link set em0 up
    soon same during
    0 set em0 -polling
    restored

    # what cannot be put back now, as without an instance the kernel does not change threaded, is put back when it can
    0 set em0 polling --fix --threaded --look 0
    ip link set em0 down
    1+ set em0 -polling | Bring it up
    held
    ip link set em0 up
    0 set em0 -polling | !somebody else
    soon same
    clean

    # what nobody confirms is undone in time
    0 set em0 polling --fix --for 2s | undone in 2 s | --confirm
    changed
    guard
    own-session
    soon clean
    guard-ends
    same

    # what is confirmed stays, and its guard ends
    0 set em0 polling --fix --for 3s
    remember kept
    guard
    0 set em0 --confirm
    guard-ends
    same kept
    1 set em0 --confirm | nothing waits
    0 set em0 -polling
    restored

    # several interfaces are one change
    ip link add v0 type veth peer name v1; link set v0 up
    remember
    0 set em0 v0 polling --fix --for 5s
    records 4
    soon clean
    same
    0 set em0 v0 polling --fix --for 60s --look 0
    remember during
    guard
    0 set v0 --confirm
    guard-ends
    same during
    0 set em0 -polling
    0 set v0 -polling
    restored

    # while it waits it can be undone, but not changed
    0 set em0 polling --fix --for 60s --look 0
    guard
    1 set em0 --period 50us | --confirm | -polling
    0 set em0 -polling
    restored
    guard-ends

    # what stood before stands again
    0 set em0 polling --fix --look 0
    remember standing
    0 set em0 --period 50us --threaded --for 2s
    changed standing
    guard
    guard-ends
    same standing
    0 set em0 -polling
    restored

    # the caller's own ssh connection is not risked, unless the caller knows; another address of the machine is none of it
    0 ssh 198.18.0.2 set em0 polling --fix | undone in 60 s
    guard
    0 set em0 -polling
    guard-ends
    0 ssh 203.0.113.7 set em0 polling --fix | !undone
    0 set em0 -polling
    0 ssh 198.18.0.2 set em0 polling --fix --for forever | !undone
    0 set em0 -polling
    soon same

    # a guard that is ended undoes at once
    0 set em0 polling --fix --for 60s --look 0
    guard
    guard-gets TERM
    guard-ends
    restored

    # a guard that is killed is made up for by the next command, which then finds nothing that waits
    0 set em0 polling --fix --for 60s --look 0
    guard
    guard-gets KILL
    guard-ends
    1 set em0 --confirm | restored what a killed program had left
    restored

    # a guard that is killed is made up for by a restore, not by a look
    0 set em0 polling --fix --for 60s --look 0
    guard
    guard-gets KILL
    guard-ends
    0 show em0 --for 0
    changed
    0 restore
    restored
"#;

#[test]
fn each_story_comes_out_as_it_is_told() {
    needs!(Root, PerNapi);
    play::<Switched>(STORIES);
}

#[test]
fn an_interface_that_was_down_is_down_again() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.ip("link set em0 down");
    let before = pair.dump();
    let refusal = pair.refused("set em0 polling", 1);
    assert_has_all(&refusal, "down | --fix");
    pair.done("set em0 polling --fix --look 0");
    assert!(pair.dump().contains_key("receiver: NAPI 0"));
    pair.done("set em0 -polling");
    let state = "receiver: sysfs operstate";
    wait_until("it is down", || pair.dump()[state] == before[state]);
    assert_same(&pair.dump(), &before, "up and down");
}

/// Each profile with a value that it must set.
const PROFILES: &str = "
    polling | sysfs napi_defer_hard_irqs | 2147483647
    polling --period 50us | sysfs gro_flush_timeout | 50000
    --period 1ms --defer 2 | sysfs napi_defer_hard_irqs | 2
    polling --threaded --threaded-cpus 1 --nice -5 | sysfs threaded | 1
    polling --threaded --rt 10 | sysfs threaded | 1
    polling --threaded --cpu-share 20 | sysfs threaded | 1
    polling --suspend 20ms | NAPI 0 | irq_suspend_timeout_ns: Some(20000000)
";

#[test]
fn every_profile_is_switched_and_undone_exactly() {
    needs!(Time, Root, PerNapi);
    let pair = Switched::new();
    for by_hand in [false, true] {
        if by_hand {
            pair.set_up_by_hand();
        }
        let before = pair.dump();
        for [profile, name, value] in cases(PROFILES) {
            let said = pair.done(&format!("set em0 {profile} --fix --look 0"));
            assert!(said.contains("->"), "{profile}: {said}");
            let during = pair.dump();
            let seen = &during[&format!("receiver: {name}")];
            assert!(seen.contains(value), "{profile}: {seen}");
            assert_eq!(during["receiver: feature rx-gro (active)"], "true");
            assert_eq!(
                during["sender: feature tx-tcp-segmentation (active)"],
                "false"
            );
            pair.done("set em0 -polling");
            assert_same(&pair.dump(), &before, profile);
            assert!(pair.is_clean(), "{profile}");
        }
    }
}

#[test]
fn polls_come_by_the_timer_while_it_is_set_and_none_come_after() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.done("set em0 polling --period 1ms --fix --look 0");
    let inode = pair.veth.namespace(Side::Receiver).inode();
    let mut polls = PollCounter::load().unwrap();
    polls.watch(inode, None).unwrap();
    // The timer starts with the first packet, and continues without packets.
    ping(&pair);
    let idle = Duration::from_millis(500);
    let polls_while_idle = || {
        let before = polls.read().unwrap();
        thread::sleep(idle);
        polls.read().unwrap().since(&before).polls()
    };
    let seen = polls_while_idle();
    assert!((50..=600).contains(&seen), "{seen}");
    // Undoing leaves no timer, although the countdown had 2^31 polls to go.
    pair.done("set em0 -polling");
    assert_eq!(polls_while_idle(), 0);
}

fn ping(pair: &Switched) {
    pair.veth
        .inside(Side::Sender)
        .run(|()| {
            let socket = std::net::UdpSocket::bind("198.18.0.1:0").unwrap();
            socket.send_to(b"wake up", "198.18.0.2:9").unwrap();
        })
        .unwrap();
}

/// Killed at every write to the disk or to the kernel.
#[test]
fn a_kill_at_any_point_leaves_everything_or_nothing() {
    needs!(Time, Root, PerNapi, DebugAssertions);
    let pair = Switched::new();
    pair.set_up_by_hand();
    let before = pair.dump();
    // The proof afterwards is not part of this test.
    let set = "set em0 polling --fix --threaded --nice 3 --suspend 5ms --look 0";
    pair.done(set);
    let after = pair.dump();
    pair.done("restore");

    // From no change to a change: the next start finds all of it or none.
    let points = kill_at_every_point(&pair, set, |point| {
        let refused = pair.refused("set em0 --confirm", 1);
        assert!(refused.contains("nothing waits"), "{refused}");
        let now = pair.dump();
        assert!(now == before || now == after, "killed at point {point}");
        pair.done("restore");
        assert_same(&pair.dump(), &before, &format!("killed at point {point}"));
        assert!(pair.is_clean(), "killed at point {point}");
    });
    assert!(points > 20, "{points}");
    pair.done("restore");

    // From one change to another: the earlier one stays.
    pair.done(set);
    let again = "set em0 --period 70us --defer 2 --look 0";
    let points = kill_at_every_point(&pair, again, |point| {
        let _ = pair.refused("set em0 --confirm", 1);
        let now = pair.dump();
        let is_new = now["receiver: sysfs gro_flush_timeout"] == "70000";
        assert!(now == after || is_new, "killed at point {point}");
        pair.done("restore");
        assert_same(&pair.dump(), &before, &format!("again, point {point}"));
        pair.done(set);
    });
    assert!(points > 8, "{points}");

    // Back: the next try completes it.
    let back = "set em0 -polling";
    let points = kill_at_every_point(&pair, back, |point| {
        pair.done(back);
        assert_same(&pair.dump(), &before, &format!("back, point {point}"));
        assert!(pair.is_clean(), "back, point {point}");
        pair.done(set);
    });
    assert!(points > 8, "{points}");
}

#[test]
fn a_program_that_is_killed_halfway_is_undone_by_the_guard_at_once() {
    needs!(Root, PerNapi, DebugAssertions);
    let pair = Switched::new();
    let before = pair.dump();
    let mut killed = 0;
    // At each step while the two records are made, then at some steps.
    for point in (1..7).chain((7..500).step_by(5)) {
        let mut command = pair.command("set em0 polling --fix --threaded --for 60s --look 0");
        command.env("NICPOLL_TEST_KILL_AT_POINT", point.to_string());
        let output = command.output().unwrap();
        if let Some(code) = output.status.code() {
            assert_eq!(code, 0, "{}", said(&output));
            break;
        }
        killed += 1;
        let has_records = || !pair.journal().paths().unwrap().is_empty();
        wait_until("the guard has put it back", || !has_records());
        assert_eq!(pair.dump(), before, "killed at point {point}");
    }
    assert!(killed > 3, "{killed}");
    pair.done("restore");
    pair.assert_restored(&before);
}

/// Runs a command repeatedly, killed one point later each time, until it succeeds. Returns the number of kills.
fn kill_at_every_point(pair: &Switched, line: &str, mut check: impl FnMut(u32)) -> u32 {
    for point in 1..500 {
        let mut command = pair.command(line);
        command.env("NICPOLL_TEST_KILL_AT_POINT", point.to_string());
        let output = command.output().unwrap();
        match output.status.code() {
            Some(code) => {
                assert_eq!(code, 0, "{}", said(&output));
                return point - 1;
            }
            None => check(point),
        }
    }
    panic!("there is no end of points");
}

#[test]
fn a_removed_interface_leaves_no_record_and_its_successor_is_not_touched() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.ip("link add v0 type veth peer name v1; link set v0 up; link set v1 up");
    let ifindex = index_of(&pair, "v0");
    pair.done("set v0 polling --fix --look 0");
    pair.ip("link del v0");
    pair.ip(&format!(
        "link add w0 index {ifindex} type veth peer name w1"
    ));
    assert_eq!(index_of(&pair, "w0"), ifindex);
    let successor = |pair: &Switched, value: Option<u64>| {
        pair.near(move |control, target| {
            let mut target = target.clone();
            target.interface = control.interface("w0").unwrap();
            let knob = ScopedKnob::of_interface(&table::GRO_FLUSH_TIMEOUT);
            if let Some(value) = value {
                control
                    .write(&target, &knob, &Value::Number(value))
                    .unwrap();
            }
            control.read(&target, &knob).unwrap()
        })
    };
    successor(&pair, Some(12_345));
    let said = pair.done("restore");
    assert_has_all(&said, "v0 (netns | no longer exists");
    assert!(pair.is_clean());
    assert_eq!(successor(&pair, None), Some(Value::Number(12_345)));
}

fn index_of(pair: &Switched, name: &str) -> u32 {
    let name = String::from(name);
    pair.near(move |control, _| control.interface(&name).unwrap().ifindex)
}

#[test]
fn after_a_reboot_nothing_is_written() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let another = "00000000-0000-0000-0000-000000000000";
    nothing_is_written_when_records_say(&pair, boot.trim(), another);
}

#[test]
fn a_device_that_only_has_the_name_and_place_of_one_that_is_gone_is_not_touched() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    nothing_is_written_when_records_say(&pair, "\"device_id\": ", "\"device_id\": 9");
}

fn nothing_is_written_when_records_say(pair: &Switched, instead_of: &str, this: &str) {
    pair.done("set em0 polling --fix --look 0");
    let during = pair.dump();
    for path in pair.journal().paths().unwrap() {
        let text = fs::read_to_string(&path).unwrap();
        let other = text.replace(instead_of, this);
        assert_ne!(text, other);
        let other = nicpoll_switch::Record::parse(other.as_bytes()).unwrap();
        fs::remove_file(&path).unwrap();
        let path = path.with_file_name(Journal::file_name(&other.target()));
        fs::write(&path, serde_json::to_vec(&other).unwrap()).unwrap();
    }
    pair.done("restore");
    assert!(pair.is_clean());
    assert_same(&pair.dump(), &during, "nothing");
}

#[test]
fn a_torn_or_foreign_record_is_named_and_nothing_is_written() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.done("set em0 polling --fix --look 0");
    let during = pair.dump();
    let target = pair.near(|_, target| target.clone());
    let path = pair.state().join(Journal::file_name(&target));
    let whole = fs::read(&path).unwrap();
    for torn in [&whole[..whole.len() / 2], b"{}"] {
        fs::write(&path, torn).unwrap();
        for line in [
            "set em0 --period 50us",
            "set em0 -polling",
            "set em0 --confirm",
        ] {
            assert_has(pair.refused(line, 1), "is not a record");
        }
        assert_eq!(fs::read(&path).unwrap(), torn);
    }
    fs::write(&path, &whole).unwrap();
    assert_same(&pair.dump(), &during, "a torn record");
    pair.done("restore");
    assert!(pair.is_clean());
}

#[test]
fn two_commands_at_once_are_not_interleaved() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.near(|control, target| {
        for (knob, value) in [
            (ScopedKnob::of_feature("rx-gro").unwrap(), 1),
            (
                ScopedKnob::of_interface(&table::GRO_FLUSH_TIMEOUT),
                2_000_000_000,
            ),
        ] {
            control.write(target, &knob, &Value::Number(value)).unwrap();
        }
    });
    let before = pair.dump();
    pair.done("set em0 polling --fix --look 0");
    // It waits for the old timeout of two seconds, and holds the interface meanwhile.
    let first = pair.start("set em0 -polling");
    wait_until("it has come to rest", || {
        pair.dump()["receiver: sysfs gro_flush_timeout"] == "0"
    });
    for second in [
        "set em0 polling --fix",
        "set em0 --period 50us",
        "set em0 -polling",
    ] {
        let refusal = pair.refused(second, 1);
        assert!(
            refusal.contains("is being changed by"),
            "{second}: {refusal}"
        );
    }
    let first = first.wait_with_output().unwrap();
    assert_code(&first, 0);
    assert_same(&pair.dump(), &before, "two at once");
    assert!(pair.is_clean());
}
