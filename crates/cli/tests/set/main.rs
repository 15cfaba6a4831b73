//! `nicpoll set` for a user: arguments, output, refusals and their reasons.

#[path = "../common/mod.rs"]
mod common;
mod freebsd;
mod freebsd_host;
mod golden;
mod json;
mod moved;
mod names;
mod safe;
mod systemd;

use crate::common::prelude::*;

/// Settings, messages and restoring.
const STORIES: &str = r#"
    # a dry run says what a run says, and writes nothing
    0 set em0 polling --period 50us --fix --dry-run | em0: gro off -> on
    restored
    0 set em0 polling --period 50us --fix --dry-run | em0: napi_defer_hard_irqs 0 -> 2147483647
    0 set em0 polling --period 50us --fix --dry-run | em0: gro_flush_timeout 0 -> 50000
    0 set em0 polling --period 50us --fix --dry-run | em0 (netns FAR-NETNS): tso on -> off
    0 set em0 polling --period 50us --fix | em0: gro off -> on | em0: gro_flush_timeout 0 -> 50000
    0 set em0 -polling --dry-run | em0: gro_flush_timeout 50000 -> 0 | em0 (netns FAR-NETNS): tso off -> on
    held
    0 set em0 -polling
    restored

    # help has examples and exit codes
    0 set --help | Examples: | -polling | --for 60s | Exit codes: | --cpu-share | ifconfig
    0 restore --help | Examples: | Exit codes: | --netns | killed

    # what polling needs is explained, and only done when asked
    1 set em0 polling | GRO is off | TSO is on | --fix
    restored

    # what cannot work is refused with reason and remedy
    ip tuntap add tap0 mode tap; link add br0 type bridge
    remember
    1 set lo polling | loopback
    1 set tap0 polling --fix | writes of a program
    1 set br0 polling | nothing below it
    1 set em9 polling | there is no interface 'em9'; there are
    1 set em0:napi99999 polling --fix | no NAPI instance
    clean
    1 set em0:rx0 polling --fix | name it by id
    clean
    1 set em0 --threaded-cpus 1 --fix | --threaded
    clean
    1 set em0 --moderation rx-usecs=5 | no coalescing parameter
    2 set em0 polling --period 0us | no timer
    2 set em0 | nothing to set
    2 set polling | name an interface
    2 set em0:tx0 polling | em0:rx0-3
    2 set em0 polling --no-polling | does not go with
    2 set em0 --period 5 | a unit is needed
    2 set em0 polling --cpu-share 50 --nice 3 | cannot be used with
    2 set em0 polling --nice 40 | give -20 to 19
    2 set em0 poling | did you mean 'polling'?
    2 set em0 -pollin | did you mean '-polling'?
    2 set em0 up | did you mean 'ip link set em0 up', or 'polling'?
    1 set em0 poling --period 50us | did you mean 'polling'?
    1 set em1 polling | did you mean 'em0'?
    restored

    # stacked interfaces stand for what lies below
    ip link add link em0 name mac0 type macvlan; link add br0 type bridge; link set mac0 master br0
    remember
    0 set br0 polling --fix --look 0 | br0 is a bridge; its packets arrive at em0 | em0: gro_flush_timeout 0 -> 200000
    0 set mac0 -polling
    restored

    # all is every interface that can, and the others are named
    ip link set lo up
    remember
    0 set all polling --fix --look 0 | left alone: lo | em0: gro_flush_timeout
    0 set all -polling
    restored

    # both ends in one command are changed together
    ip link add v0 type veth peer name v1; link set v0 up
    1 set v0 v1 polling | v0: | --fix
    0 set v0 v1 polling --fix --look 0
    records 2
    remember set
    1 set em0 lo polling --fix
    same set
    0 set v0 v1 -polling
    clean

    # a ring that would overflow is warned about, and without traffic there is nothing to warn about
    0 traffic set em0 --period 10s --fix --dry-run | warning: em0 receives | 256 slots | would fit
    0 set em0 --period 10s --fix --dry-run
    0 set em0 --period 10s --fix --dry-run | !warning

    # one instance is set alone
    by-hand
    0 set em0 --suspend 1ms --fix --look 0
    remember
    0 set em0:napiNAPI-ID polling --period 90us | em0: NAPI NAPI-ID gro_flush_timeout 3000000 -> 90000
    value sysfs gro_flush_timeout = 20000
    value NAPI 0 = gro_flush_timeout_ns: Some(90000)
    changed
    0 set em0 -polling
    clean
    value NAPI 0 = defer_hard_irqs: Some(7)
    value NAPI 0 = timeout_ns: Some(3000000)
    value NAPI 0 = Some(11000000)

    # what somebody else changed is told
    0 set em0 polling --fix
    0 set em0 --period 300us | !somebody else
    timeout 77000
    0 set em0 --defer 5 --dry-run | gro_flush_timeout is 77000; nicpoll had set it to 300000
    0 set em0 -polling | gro_flush_timeout is 77000; nicpoll had set it to 300000
    same
    0 set em0 -polling | nothing

    # what somebody else changed is shown until it is put back
    0 show em0 --for 0 --json | "drift": []
    0 set em0 polling --fix --look 0
    0 show em0 --for 0 --json | "drift": []
    timeout 5000
    0 show em0 --for 0 --json | "name": "gro_flush_timeout", "written": "200000", "now": "5000"
    0 show em0 --for 0 | drift | gro_flush_timeout is 5000
    0 set em0 -polling
    0 show em0 --for 0 --json | "drift": []
    same

    # interrupt moderation is set and put back: a tap device has one parameter of it
    ip tuntap add tap0 mode tap
    0 set tap0 --moderation rx-frames=16 | tap0: coalescing rx-frames 0 -> 16
    0 set tap0 --moderation rx-frames=17 --dry-run | tap0: coalescing rx-frames 16 -> 17
    0 restore
    0 set tap0 --moderation rx-frames=16 --dry-run | tap0: coalescing rx-frames 0 -> 16
    1 set tap0 --moderation rx-frames=16,rx-usecs=3 | it has rx-frames
    0 set tap0 --moderation rx-frames=16 --dry-run | tap0: coalescing rx-frames 0 -> 16

    # what lies on a polled port polls
    0 set em0 polling --fix --look 0
    ip link add br0 type bridge; link add mv0 link em0 type macvlan; link set mv0 up
    ip link add vx0 type vxlan id 7 dstport 4789 dev em0; link set vx0 up
    0 traffic show mv0 --for 300ms --json | "lower": [ "em0" ] | "setting": { "discipline": "polling", "why": "its packets arrive at em0: 
    0 traffic show mv0 --for 300ms --json | "evidence": { "discipline": "polling", "why": "its packets arrive at em0: 
    0 traffic show vx0 --for 300ms --json | "lower": [ "em0" ] | "setting": { "discipline": "polling", "why": "its packets arrive at em0: 
    0 traffic show vx0 --for 300ms --json | "evidence": { "discipline": "polling", "why": "its packets arrive at em0: 
    ip link del mv0; link set em0 master br0; link set br0 up
    0 show br0 --for 0 --json | "setting": { "discipline": "polling"
    ip link set em0 nomaster
    0 show br0 --for 100ms --json | "setting": { "discipline": "elsewhere" | "evidence": { "discipline": "elsewhere"
    0 set em0 -polling
    clean

    # a tap is nobody's backlog
    ip tuntap add mode tap name tap0; link set tap0 up
    0 show tap0 --for 0 | -: a program writes

    # the tree of variables is printed with their names
    0 set em0 polling --fix --look 0
    0 show em0 --for 0 -n kern.polling | kern.polling.enable: 1 | kern.polling.burst_max: 256 | !em0
    0 set em0 -polling

    # the record of a removed interface is closed by its name, as by a unit that stops since its device is gone
    ip link add v0 type veth peer name v1; link set v0 up; link set v1 up
    0 set v0 polling --fix --look 0
    ip link del v0
    0 restore v0 | v0 no longer exists
    clean
    1 restore v0 | there is no interface 'v0'

    # an ssh connection that comes by a bridge above is not risked
    ip link add br0 type bridge; link set br0 up; addr add 203.0.113.1/24 dev br0
    remember
    0 ssh 203.0.113.1 set em0 polling --fix --look 0 | !undone in 60 s
    0 set em0 -polling
    ip link set em0 master br0
    0 ssh 203.0.113.1 set em0 polling --fix --look 0 | undone in 60 s
    0 set em0 -polling
    ip link set em0 nomaster
    soon same
    clean

    # what is confirmed is listed, and what waits is shown
    0 set em0 polling --fix --for 60s --look 0
    0 show em0 --for 0 | pending its settings are undone in | nicpoll set em0 --netns NETNS --confirm
    1 set em0 --period 50us | nicpoll set em0 --netns NETNS --confirm
    0 set em0 --confirm | em0: gro_flush_timeout 0 -> 200000 | kept until: nicpoll set em0 --netns NETNS -polling
    0 show em0 --for 0 | !pending its settings
    0 set em0 -polling

    # a change whose guard is gone is overdue, and who shows it says what helps
    0 set em0 polling --fix --for 60s --look 0
    guard
    guard-gets KILL
    guard-ends
    0 show em0 --for 0 | put it back: nicpoll set em0 --netns NETNS -polling
    0 restore
    clean

    # what would be put back includes the other end; out of reach, the way back is told
    0 set em0 polling --fix --look 0
    0 set em0 -polling --dry-run | em0: gro_flush_timeout 200000 -> 0 | em0 (netns FAR-NETNS): tso off -> on
    ip link set em0 down
    0 set em0 -polling
    0 set em0 polling --fix --threaded --look 0
    ip link set em0 down
    1+ set em0 -polling | nicpoll restore em0 --netns NETNS | ip -n NETNS link set em0 up
    ip link set em0 up
    0 set em0 -polling
    clean

    # a period shorter than a round is told with its cost
    0 set em0 polling --fix --period 10ns --dry-run | about 100 % of a CPU
    0 set em0 polling --fix --period 200us --dry-run | !% of a CPU

    # at 200 ms a round, a look of half a second sees three at the most, which prove nothing
    0 traffic set em0 polling --fix --period 200ms --look 500ms | em0: not proven yet: too few rounds
    0 set em0 -polling
    clean

    # a renamed interface with another address is still known, and set again over what was there first
    0 set em0 polling --fix --look 0
    ip link set em0 down; link set em0 name wan0 address 02:00:00:00:00:88; link set wan0 up
    0 set wan0 --period 90us --look 0
    0 set wan0 -polling
    clean
    ip link set wan0 down; link set wan0 name em0; link set em0 up
    value sysfs gro_flush_timeout = 0

    # a renamed interface is put back by its new name
    0 set em0 polling --fix --look 0
    ip link set em0 down; link set em0 name wan0; link set wan0 up
    1 set em0 -polling | wan0
    0 set wan0 -polling
    clean
    ip link set wan0 down; link set wan0 name em0; link set em0 up
    soon same
"#;

#[test]
fn each_story_comes_out_as_it_is_told() {
    needs!(Root, PerNapi);
    play::<Switched>(STORIES);
}

#[test]
fn threads_that_poll_without_end_take_a_kernel_that_has_them() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    if nicpoll_switch::Abilities::probe().threaded_max != Some(2) {
        let refusal = pair.refused("set em0 --busy-poll --fix", 5);
        assert_has(&refusal, "poll without end");
    }
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
fn settings_persist_by_files_that_are_shown_first_and_removed_exactly() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let root = pair.home.path().join("root");
    fs::create_dir(&root).unwrap();
    // Settings at boot apply to the namespace in which the program is started.
    let inside = |line: &str| {
        let mut command = pair.inside(Path::new(NICPOLL), line);
        command.args([Path::new("--root"), &root]);
        command
    };
    let run = |line: &str| inside(line).output().unwrap();
    // Other users may be able to change the program under test.
    let set = "set em0 polling --period 50us --fix --persist --program /bin/sh";
    let shown = run(&format!("{set} --dry-run"));
    assert_code(&shown, 0);
    assert!(said(&shown).contains("+NICPOLL_OPTIONS=polling --period=50000ns --fix"));
    // A change that cuts its caller off must not come back at every boot.
    let live = "set em0 polling --fix --persist --program /bin/sh";
    let mut over_ssh = pair.inside(Path::new(NICPOLL), live);
    over_ssh.env("SSH_CONNECTION", "198.18.0.1 50000 198.18.0.2 22");
    assert_code(&over_ssh.output().unwrap(), 2);
    assert!(fs::read_dir(&root).unwrap().next().is_none() && pair.is_clean());

    // All files are written for another machine's interface, too.
    let before = pair.dump();
    let done = run(set);
    assert_code(&done, 0);
    assert_eq!(said(&done).matches("+++ ").count(), 4, "{}", said(&done));
    // This machine's interface of that name is another one.
    crate::common::switched::assert_same(&pair.dump(), &before, "files of an image");
    assert!(pair.is_clean());
    let elsewhere = run("set not-here0 polling --persist --program /bin/sh");
    assert_code(&elsewhere, 0);
    assert!(root.join("etc/nicpoll/not-here0.conf").exists());
    assert_code(&run("set not-here0 --no-persist"), 0);
    let options = fs::read_to_string(root.join("etc/nicpoll/em0.conf")).unwrap();
    // The unit's command at boot equals the one run by hand.
    let line = options.rsplit_once("NICPOLL_OPTIONS=").unwrap().1.trim();
    pair.done("set em0 polling --period 50us --fix --look 0");
    let again = pair.done(&format!("set em0 {line} --dry-run"));
    assert_has(again, "nothing: everything is so already");

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

/// Killed at every point, in an image: after the next command all files are there or none.
#[test]
fn a_kill_while_files_are_written_leaves_all_of_them_or_none() {
    needs!(Root, PerNapi, DebugAssertions);
    let pair = Switched::new();
    let root = pair.home.path().join("root");
    let etc = root.join("etc/systemd/system");
    fs::create_dir_all(&etc).unwrap();
    let mut points = 0;
    for point in 1..100 {
        let set = "set em0 polling --persist --program /bin/sh";
        let mut command = pair.inside(Path::new(NICPOLL), set);
        command.args([Path::new("--root"), &root]);
        command.env("NICPOLL_TEST_KILL_AT_POINT", point.to_string());
        let output = command.output().unwrap();
        if output.status.code().is_some() {
            assert_code(&output, 0);
            break;
        }
        points = point;
        pair.done("restore");
        let find = format!("find {} ! -type d", root.display());
        let left = shell(pair.veth.inside(Side::Receiver), &find);
        // All files stay once their record is gone, and none before.
        let is_whole = left.lines().count() == 4 && point > 10;
        assert!(
            left.is_empty() || is_whole,
            "killed at point {point}: {left}"
        );
        assert!(pair.is_clean(), "killed at point {point}");
        let mut remove = pair.inside(Path::new(NICPOLL), "set em0 --no-persist");
        remove.args([Path::new("--root"), &root]);
        assert_code(&remove.output().unwrap(), 0);
    }
    assert!(points > 10, "{points}");
    assert!(root.join("etc/nicpoll/em0.conf").exists());
}

/// Uses systemd's own check, if installed, which needs no running systemd.
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
    // It reports unknown directives, but accepts them.
    assert!(output.status.success(), "{}", said(&output));
    assert!(!said(&output).contains("nicpoll@"), "{}", said(&output));
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--no-pager", "--threshold=29"]);
    let output = security.arg(unit).output().unwrap();
    assert!(output.status.success(), "{}", stdout(&output));
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
            part: nicpoll_switch::InterfacePart::Whole,
            values: nicpoll_switch::KnobValues::polling(200_000),
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
        // No error suggests another command.
        assert_has(
            said(&output),
            "Run the same command as root, with sudo before it",
        );
    }
}
