//! `nicpoll set` as a user meets it: what it takes, what it prints, what it refuses, and why.

#[path = "../common/mod.rs"]
mod common;
mod drift;
mod freebsd;
mod freebsd_host;
mod golden;
mod json;
mod lower;
mod moved;
mod names;
mod safe;
mod words;

use crate::common::prelude::*;
use nicpoll_switch::knob::table;
use nicpoll_switch::{Kernel, Knob, Value};

#[test]
fn a_dry_run_says_what_a_run_says_and_writes_nothing() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    let set = "set em0 polling --period 50us --fix";
    let output = pair.run(&format!("{set} --dry-run"));
    assert_code(&output, 0);
    pair.assert_restored(&before);
    let text = stdout(&output);
    for line in [
        "em0: feature rx-gro 0 -> 1",
        "em0: napi_defer_hard_irqs 0 -> 2147483647",
        "em0: gro_flush_timeout 0 -> 50000",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    // The other end has the same name, so it is named with its namespace.
    let far = pair.veth.namespace(Side::Sender).inode();
    let line = format!("em0 (netns nicpoll-test-{far}): feature tx-tcp-segmentation 1 -> 0");
    assert!(text.contains(&line), "{line} in\n{text}");
    assert!(pair.run(set).stdout.starts_with(&output.stdout));
    let back = pair.done("set em0 -polling --dry-run");
    assert!(back.contains("em0: gro_flush_timeout 50000 -> 0"), "{back}");
    assert!(!pair.is_clean());
    pair.done("set em0 -polling");
    assert_eq!(pair.dump(), before);
}

#[test]
fn what_polling_needs_is_explained_and_only_done_when_asked() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    let refusal = pair.refused("set em0 polling", 1);
    assert_has_all(&refusal, "GRO is off | TSO is on | --fix");
    pair.assert_restored(&before);
}

#[test]
fn what_cannot_work_is_refused_with_reason_and_remedy() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.ip("tuntap add tap0 mode tap; link add br0 type bridge");
    let before = pair.dump();
    let run = |line: &str| {
        let output = pair.run(line);
        assert!(pair.is_clean(), "{line}");
        output
    };
    if nicpoll_switch::Abilities::probe().threaded_max != Some(2) {
        assert_refused("5 | set em0 --busy-poll --fix | poll without end", run);
    }
    assert_refused(
        "
        1 | set lo polling | loopback
        1 | set tap0 polling --fix | writes of a program
        1 | set br0 polling | nothing below it
        1 | set em9 polling | there is no interface 'em9'; there are
        1 | set em0:napi99999 polling --fix | no NAPI instance
        1 | set em0:rx0 polling --fix | name it by id
        1 | set em0 --threaded-cpus 1 --fix | --threaded
        1 | set em0 --moderation rx-usecs=5 | no coalescing parameter
            2 | set em0 polling --period 0us | no timer
        2 | set em0 | nothing to set
        2 | set polling | name an interface
        2 | set em0:tx0 polling | em0:rx0-3
        2 | set em0 polling --no-polling | does not go with
        2 | set em0 --period 5 | a unit is needed
        2 | set em0 polling --cpu-share 50 --nice 3 | cannot be used with
        2 | set em0 polling --nice 40 | -20..=19
        ",
        run,
    );
    assert_eq!(pair.dump(), before);
}

#[test]
fn a_namespace_that_is_not_there_is_said_so() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let mut command = Command::new(NICPOLL);
    command.env("NICPOLL_STATE_DIR", pair.state());
    let output = command
        .args(["set", "em0", "polling", "--netns", "nowhere"])
        .output()
        .unwrap();
    assert_code(&output, 1);
    assert!(said(&output).contains("'nowhere'"), "{}", said(&output));
}

#[test]
fn stacked_interfaces_stand_for_what_lies_below() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.ip("link add link em0 name mac0 type macvlan; link add br0 type bridge");
    pair.ip("link set mac0 master br0");
    let before = pair.dump();
    let text = pair.done("set br0 polling --fix --look 0");
    assert_has(&text, "br0 is a bridge; its packets arrive at em0");
    assert_has(&text, "em0: gro_flush_timeout 0 -> 200000");
    pair.done("set mac0 -polling");
    pair.assert_restored(&before);
}

#[test]
fn all_is_every_interface_that_can_and_the_others_are_named() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.ip("link set lo up");
    let before = pair.dump();
    let text = pair.done("set all polling --fix --look 0");
    assert!(text.contains("left alone: lo"), "{text}");
    assert!(text.contains("em0: gro_flush_timeout"), "{text}");
    pair.done("set all -polling");
    pair.assert_restored(&before);
}

#[test]
fn both_ends_in_one_command_are_changed_together() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.ip("link add v0 type veth peer name v1; link set v0 up");
    let down = pair.refused("set v0 v1 polling", 1);
    assert!(down.contains("v1") || down.contains("v0"), "{down}");
    pair.done("set v0 v1 polling --fix --look 0");
    assert_eq!(pair.journal().paths().unwrap().len(), 2);
    // A second interface that cannot do it takes the first one along.
    let before = pair.dump();
    pair.refused("set em0 lo polling --fix", 1);
    assert_eq!(pair.dump(), before);
    pair.done("set v0 v1 -polling");
    assert!(pair.is_clean());
}

#[test]
fn a_ring_that_would_overflow_is_warned_about() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    // So slow a timer that any traffic fills 256 slots.
    let said = pair.under_traffic(|| pair.done("set em0 --period 10s --fix --dry-run"));
    assert_has_all(&said, "warning: em0 receives | 256 slots | would fit");
    // Without traffic there is nothing to warn about.
    thread::sleep(Duration::from_millis(100));
    let said = pair.done("set em0 --period 10s --fix --dry-run");
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn one_instance_is_set_alone() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.set_up_by_hand();
    // What polling needs, so that only the instance is changed below.
    pair.done("set em0 --suspend 1ms --fix --look 0");
    let before = pair.dump();
    let id = pair.near(|control, target| control.napis(target.interface.ifindex).unwrap()[0].id);
    let text = pair.done(&format!("set em0:napi{id} polling --period 90us"));
    assert!(text.contains(&format!(
        "em0: NAPI {id} gro_flush_timeout 3000000 -> 90000"
    )));
    let during = pair.dump();
    assert_eq!(
        during["receiver: sysfs gro_flush_timeout"],
        "20000\n".trim()
    );
    assert!(during["receiver: NAPI 0"].contains("gro_flush_timeout_ns: Some(90000)"));
    assert_ne!(during, before);
    pair.done("set em0 -polling");
    assert!(pair.is_clean());
    let napi = &pair.dump()["receiver: NAPI 0"];
    assert_has_all(
        napi,
        "defer_hard_irqs: Some(7) | timeout_ns: Some(3000000) | Some(11000000)",
    );
}

#[test]
fn what_somebody_else_changed_is_told() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    pair.done("set em0 polling --fix");
    assert!(
        !pair
            .done("set em0 --period 300us")
            .contains("somebody else")
    );
    pair.near(|control, target| {
        let knob = Knob::of_interface(&table::GRO_FLUSH_TIMEOUT);
        control
            .write(target, &knob, &Value::Number(77_000))
            .unwrap();
    });
    for line in ["set em0 --defer 5 --dry-run", "set em0 -polling"] {
        let text = pair.done(line);
        assert!(
            text.contains("gro_flush_timeout is 77000; nicpoll had set it to 300000"),
            "{line}: {text}"
        );
    }
    assert_eq!(pair.dump(), before);
    assert_has(pair.done("set em0 -polling"), "nothing");
}

#[test]
fn interrupt_moderation_is_set_and_put_back() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    // A tap device has one parameter of it, and neither interrupts nor a use for the others.
    pair.ip("tuntap add tap0 mode tap");
    let frames = |pair: &Switched| {
        pair.near(|control, _| {
            let ifindex = control.interface("tap0").unwrap().ifindex;
            format!("{:?}", control.moderation(ifindex).unwrap())
        })
    };
    let before = frames(&pair);
    let text = pair.done("set tap0 --moderation rx-frames=16");
    assert_has(&text, "tap0: coalescing rx-frames 0 -> 16");
    assert_ne!(frames(&pair), before);
    pair.done("restore");
    assert_eq!(frames(&pair), before);
    let refusal = pair.refused("set tap0 --moderation rx-frames=16,rx-usecs=3", 1);
    assert!(refusal.contains("it has rx-frames"), "{refusal}");
    assert_eq!(frames(&pair), before);
}

#[test]
fn settings_persist_by_files_that_are_shown_first_and_removed_exactly() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let root = pair.home.path().join("root");
    fs::create_dir(&root).unwrap();
    // What comes back at boot is of the namespace that the program is started in.
    let run = |line: &str| {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &pair.netns()]);
        inside.arg(env!("CARGO_BIN_EXE_nicpoll"));
        inside
            .args(line.split(' '))
            .args([Path::new("--root"), &root]);
        inside.env("NICPOLL_STATE_DIR", pair.state());
        inside.output().unwrap()
    };
    // The program under test may lie where others can change it.
    let set = "set em0 polling --period 50us --fix --persist --program /bin/sh";
    let shown = run(&format!("{set} --dry-run"));
    assert_code(&shown, 0);
    assert!(said(&shown).contains("+NICPOLL_OPTIONS=polling --period=50000ns --fix"));
    assert!(fs::read_dir(&root).unwrap().next().is_none());

    // The last write of all fails, so the files go, too.
    let failed =
        run("set em0 polling --fix --threaded --threaded-cpus 1000 --persist --program /bin/sh");
    assert_code(&failed, 1);
    assert!(said(&failed).contains("+++ "));
    assert!(!root.join("etc/nicpoll").exists() && pair.is_clean());
    assert!(!root.join("etc/systemd/system/nicpoll@.service").exists());

    let done = run(set);
    assert_code(&done, 0);
    assert_eq!(said(&done).matches("+++ ").count(), 4, "{}", said(&done));
    let options = fs::read_to_string(root.join("etc/nicpoll/em0.conf")).unwrap();
    // What the unit runs at boot is what was run now: nothing is left to do.
    let line = options.rsplit_once("NICPOLL_OPTIONS=").unwrap().1.trim();
    let again = run(&format!("set em0 {line} --dry-run"));
    assert_has(said(&again), "nothing: everything is so already");

    systemd_accepts(
        test_name!(),
        &root.join("etc/systemd/system/nicpoll@.service"),
    );

    let refused = run("set em0:napi300 polling --persist");
    assert_code(&refused, 2);
    let removed = run("set em0 --no-persist");
    assert_code(&removed, 0);
    assert!(!root.join("etc/nicpoll").exists());
    assert!(!root.join("etc/udev/rules.d/85-nicpoll-em0.rules").exists());
    assert!(!root.join("etc/systemd/system/nicpoll@.service").exists());
    pair.done("restore");
    assert!(pair.is_clean());
}

/// By systemd's own check, where that is installed; it needs no running systemd.
fn systemd_accepts(test: &str, unit: &Path) {
    if !nicpoll_testkit::has(test, &[Need::Systemd]) {
        return;
    }
    let mut verify = Command::new("systemd-analyze");
    let output = verify
        .args(["verify", "--man=no"])
        .arg(unit)
        .output()
        .unwrap();
    // It says what it does not know, and takes it all the same.
    assert!(output.status.success(), "{}", said(&output));
    assert!(!said(&output).contains("nicpoll@"), "{}", said(&output));
}

#[test]
fn a_study_does_not_start_on_an_interface_that_is_set() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.done("set em0 polling --fix");
    let journal = pair.journal();
    let refused = pair.near(move |_, target| {
        let orders = [nicpoll_switch::Order {
            target: target.clone(),
            part: nicpoll_switch::Part::Whole,
            values: nicpoll_switch::Values::polling(200_000),
        }];
        let switch = nicpoll_switch::Switch::new(journal);
        switch.require_unchanged(&orders).unwrap_err().to_string()
    });
    assert!(refused.contains("nicpoll restore em0"), "{refused}");
    pair.done("restore");
}

#[test]
fn without_root_it_says_what_is_missing() {
    let home = tempfile::tempdir().unwrap();
    let program = copy_for_anybody(home.path());
    for line in ["set lo polling", "restore", "ab lo"] {
        let mut command = as_nobody(&program);
        command.args(line.split(' '));
        command.env("NICPOLL_STATE_DIR", home.path().join("state"));
        let output = command.output().unwrap();
        assert_code(&output, 5);
        assert!(said(&output).contains("CAP_NET_ADMIN"));
        assert!(said(&output).contains("sudo"));
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    for (command, words) in [
        (
            "set",
            &[
                "Examples:",
                "-polling",
                "--for 60s",
                "Exit codes:",
                "--cpu-share",
                "ifconfig",
            ][..],
        ),
        (
            "restore",
            &["Examples:", "Exit codes:", "--netns", "killed"],
        ),
    ] {
        let output = Command::new(NICPOLL)
            .args([command, "--help"])
            .output()
            .unwrap();
        assert_code(&output, 0);
        for words in words {
            assert!(
                said(&output).contains(words),
                "{words} in\n{}",
                said(&output)
            );
        }
    }
}
