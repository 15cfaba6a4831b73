//! `nicpoll set HOST:em0` against a FreeBSD host that a script plays from recorded output: no FreeBSD was at
//! hand.

use crate::common::prelude::*;
use crate::freebsd_host::FreebsdHost;

#[test]
fn an_interface_is_switched_and_everything_put_back() {
    let bsd = FreebsdHost::new();
    let before = bsd.state();
    let text = bsd.done("set root@bsd:em0 polling --user-frac 20 --burst-max 300 --each-burst 200");
    assert_eq!(
        text,
        "root@bsd:em0: kern.polling.burst_max 150 -> 300\n\
         root@bsd:em0: kern.polling.each_burst 5 -> 200\n\
         root@bsd:em0: kern.polling.user_frac 50 -> 20\n\
         root@bsd:em0: polling off -> on\n"
    );
    assert!(bsd.state().1);
    assert!(!bsd.is_clean());
    // Setting again keeps what was there at first; this each_burst falls with burst_max.
    bsd.done("set root@bsd:em0 --burst-max 100");
    let shown = bsd.done("show root@bsd:em0 -n burst_max -n kern.polling.each_burst -n user_frac");
    assert_eq!(shown, "100\n10\n20\n");
    let again = bsd.done("set root@bsd:em0 polling");
    assert_eq!(again, "nothing: everything is so already\n");

    let text = bsd.done("set root@bsd:em0 -polling");
    assert_eq!(text, "root@bsd:em0: every value is as it was\n");
    bsd.assert_restored(&before);
    let log = bsd.log();
    for line in log.lines() {
        assert_has_all(line, "BatchMode=yes | ConnectTimeout=");
    }
}

#[test]
fn a_dry_run_prints_the_commands_and_runs_none_of_them() {
    let bsd = FreebsdHost::new();
    let before = bsd.state();
    let text = bsd.done("set bsd:em0 polling --idle-poll 1 --dry-run");
    assert_eq!(
        text,
        "ssh bsd sysctl kern.polling.idle_poll=1\nssh bsd ifconfig em0 polling\n"
    );
    let text = bsd.done("set bsd:em0 polling --persist --dry-run");
    assert!(text.contains("255.255.255.0 polling\"  # uplink"), "{text}");
    bsd.assert_restored(&before);
    bsd.done("set bsd:em0 polling");
    let text = bsd.done("set bsd:em0 -polling --dry-run");
    assert_eq!(text, "ssh bsd ifconfig em0 -polling\n");
    assert!(bsd.state().1);
}

#[test]
fn one_line_of_rc_conf_is_changed_and_put_back() {
    let bsd = FreebsdHost::new();
    let before = bsd.state();
    let text = bsd.done("set bsd:em0 polling --persist");
    assert!(
        text.ends_with(
            "--- bsd:/etc/rc.conf\n+++ bsd:/etc/rc.conf\n\
             -ifconfig_em0=\"inet 192.0.2.1 netmask 255.255.255.0\"  # uplink\n\
             +ifconfig_em0=\"inet 192.0.2.1 netmask 255.255.255.0 polling\"  # uplink\n"
        ),
        "{text}"
    );
    let changed = before.2.replace("255.0\"  #", "255.0 polling\"  #");
    assert_eq!(bsd.state().2, changed);
    // What is in force and what comes at boot are put back apart.
    bsd.done("set bsd:em0 -polling");
    assert_eq!(bsd.state().2, changed);
    assert!(!bsd.is_clean());
    // Somebody else's edits of other lines stay.
    let edited = changed.replace("YES", "NO");
    fs::write(bsd.file("rc.conf"), &edited).unwrap();
    bsd.done("set bsd:em0 --no-persist");
    assert_eq!(bsd.state().2, before.2.replace("YES", "NO"));
    assert!(bsd.is_clean());
    assert!(!bsd.file("rc.conf.nicpoll").exists());
    let output = bsd.run("set bsd:em0 --no-persist");
    assert_code(&output, 0);
    assert!(output.stdout.is_empty());
}

#[test]
fn a_line_that_cannot_be_changed_by_rule_is_left() {
    let bsd = FreebsdHost::new();
    fs::write(bsd.file("rc.conf"), "ifconfig_DEFAULT=\"DHCP\"\n").unwrap();
    let before = bsd.state();
    let refusal = bsd.refused("set bsd:em0 polling --persist", 1);
    assert_has(&refusal, "there is no line ifconfig_em0=");
    bsd.assert_restored(&before);
}

/// A file of the host with its text, the exit code, a command line, and words of the error; `-` is an empty file.
const REFUSALS: &str = "
    incapable | - | 1 | set bsd:em0 polling | no POLLING among its capabilities
    uname | Linux | 1 | set bsd:em0 polling | runs Linux, not FreeBSD; run nicpoll on that host
    - | - | 1 | set unreachable:em0 polling | port 22: Connection refused
    - | - | 1 | set bsd:em0 polling --user-frac 100 | 0 to 99
    - | - | 1 | set bsd:em0 polling --each-burst 151 | 1 to burst_max
    - | - | 1 | set bsd:em0 polling --reg-frac 1001 | which is 1000
    - | - | 2 | set bsd:em0 polling --idle-poll 2 | 0..=1
    - | - | 2 | set bsd:em0 polling --period 50us | --period is for interfaces of this machine
    - | - | 2 | set bsd:em0 | nothing to set
    - | - | 2 | set bsd:em0 eth0 polling | named alone
    - | - | 2 | set -- -x:em0 polling | cannot be a host's name
    - | - | 2 | set bsd:em0 polling --user-frac 20 --persist | /etc/sysctl.conf
    - | - | 2 | set eth0 polling --user-frac 20 | --cpu-share
    - | - | 2 | show bsd:em0 --json | --json
    - | - | 2 | show bsd:em0 -n bursts | there are: burst, 
";

#[test]
fn what_cannot_work_is_refused_with_reason_and_remedy() {
    let bsd = FreebsdHost::new();
    for [file, content, code, line, words] in cases(REFUSALS) {
        let path = bsd.file(file);
        let kept = fs::read(&path).ok();
        let content = if file == "uname" { content } else { "" };
        fs::write(&path, content).unwrap();
        let refusal = bsd.refused(line, code.parse().unwrap());
        assert!(refusal.contains(words), "{line}: {refusal}");
        assert!(bsd.is_clean(), "{line}");
        match kept {
            Some(kept) => fs::write(&path, kept).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    }
    fs::remove_file(bsd.file("sysctl_kern_polling")).unwrap();
    let refusal = bsd.refused("set bsd:em0 polling", 5);
    assert!(refusal.contains("options DEVICE_POLLING") && refusal.contains("options HZ=1000"));
    let log = bsd.log();
    assert!(
        !log.contains("|ifconfig em0"),
        "nothing was changed:\n{log}"
    );
}

#[test]
fn output_without_end_is_not_read_to_its_end() {
    let bsd = FreebsdHost::new();
    fs::write(bsd.file("uname"), "FreeBSD\n".repeat(1 << 18)).unwrap();
    let refusal = bsd.refused("set bsd:em0 polling", 1);
    assert_has(
        &refusal,
        "'uname -s' on bsd printed more than 1048576 bytes; see what it prints",
    );
    assert!(bsd.is_clean());
}

#[test]
fn a_slow_clock_is_advised_against() {
    let bsd = FreebsdHost::new();
    let slow = "kern.clockrate: { hz = 100, tick = 10000, profhz = 1024, stathz = 128 }\n";
    fs::write(bsd.file("sysctl_kern_clockrate"), slow).unwrap();
    let output = bsd.run("set bsd:em0 polling");
    assert_code(&output, 0);
    let said = stderr(&output);
    assert!(
        said.contains("100 times a second") && said.contains("kern.hz=\"1000\""),
        "{said}"
    );
    assert!(said.contains("15000 packets a second"), "{said}");
}

#[test]
fn a_command_that_fails_leaves_the_host_as_it_was() {
    let bsd = FreebsdHost::new();
    bsd.done("set bsd:em0 --user-frac 30");
    let before = bsd.state();
    fs::write(bsd.file("fails"), "ifconfig em0 polling").unwrap();
    let refusal = bsd.refused("set bsd:em0 polling --user-frac 10", 1);
    assert!(refusal.contains("Operation not permitted"), "{refusal}");
    assert_eq!(bsd.state(), before);
    fs::remove_file(bsd.file("fails")).unwrap();
    // The first command's change still stands, and is still put back.
    bsd.done("restore bsd:em0");
    assert_eq!(bsd.done("show bsd:em0 -n user_frac"), "50\n");
    assert!(bsd.is_clean());
}

#[test]
fn what_a_killed_command_left_is_put_back_wherever_it_was_killed() {
    for set in [
        "set bsd:em0 polling --user-frac 20 --burst-max 300",
        "set bsd:em0 polling --persist",
    ] {
        kill_at_each_point(set);
    }
}

fn kill_at_each_point(set: &str) {
    for point in 1..30 {
        let bsd = FreebsdHost::new();
        let before = bsd.state();
        let mut command = bsd.command(set);
        command.env("NICPOLL_TEST_KILL_AT_POINT", point.to_string());
        let output = command.output().unwrap();
        if output.status.code() == Some(0) {
            assert!(point > 4, "only {point} points");
            return;
        }
        assert_eq!(output.status.code(), None, "{output:?}");
        bsd.done("restore bsd:em0");
        bsd.done("set bsd:em0 --no-persist");
        assert_eq!(bsd.state(), before, "killed at point {point}");
        // What the killed one wrote aside is swept by the next command that restores all; nothing else is left.
        let records = fs::read_dir(bsd.journal()).into_iter().flatten().flatten();
        let records =
            records.filter(|file| file.path().extension().is_some_and(|end| end == "host"));
        assert_eq!(records.count(), 0, "killed at point {point}");
    }
    panic!("{set}: more points than there can be");
}

#[test]
fn restore_without_names_puts_every_host_back_that_it_reaches() {
    let bsd = FreebsdHost::new();
    let before = bsd.state();
    bsd.done("set near:em0 polling");
    bsd.done("set far:em0 --user-frac 20");
    fs::write(bsd.file("down"), "far").unwrap();
    let output = bsd.run("restore");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert_has_all(&said, "far:em0:  | No route to host");
    assert_eq!(output.stdout, b"near:em0: every value is as it was\n");
    assert!(!bsd.state().1);
    assert_ne!(bsd.state(), before);
    // What could not be reached is put back by the next try, and by it alone.
    fs::remove_file(bsd.file("down")).unwrap();
    let commands = bsd.log().lines().count();
    assert_eq!(bsd.done("restore"), "far:em0: every value is as it was\n");
    bsd.assert_restored(&before);
    let log = bsd.log();
    assert!(
        log.lines()
            .skip(commands)
            .all(|line| line.contains("|far|")),
        "{log}"
    );
}

#[test]
fn restore_without_names_finishes_what_a_killed_command_left() {
    for point in 1..30 {
        let bsd = FreebsdHost::new();
        let before = bsd.state();
        let mut command = bsd.command("set bsd:em0 polling --user-frac 20");
        command.env("NICPOLL_TEST_KILL_AT_POINT", point.to_string());
        if command.output().unwrap().status.code() == Some(0) {
            assert!(point > 4, "only {point} points");
            return;
        }
        let said = bsd.run("restore");
        assert_eq!(bsd.state(), before, "killed at point {point}: {said:?}");
        let left = fs::read_dir(bsd.journal()).into_iter().flatten().flatten();
        let left: Vec<_> = left.map(|file| file.file_name()).collect();
        assert!(
            left.is_empty(),
            "killed at point {point}: {left:?} {said:?}"
        );
    }
    panic!("more points than there can be");
}

#[test]
fn values_that_changed_since_are_named() {
    let bsd = FreebsdHost::new();
    bsd.done("set bsd:em0 polling --user-frac 20");
    fs::remove_file(bsd.file("polls")).unwrap();
    let output = bsd.run("restore bsd:em0");
    assert_code(&output, 0);
    assert_has(stderr(&output), "polling is off; nicpoll had set it to on");
    assert_eq!(bsd.done("show bsd:em0 -n user_frac"), "50\n");
}

#[test]
fn a_foreign_record_is_left_alone() {
    let bsd = FreebsdHost::new();
    bsd.done("set bsd:em0 polling");
    let path = bsd.journal().join("bsd.host");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"em0\"", "\"em0;reboot\"")).unwrap();
    let refusal = bsd.refused("restore bsd:em0", 1);
    assert_has(&refusal, "not a record of this nicpoll");
    assert!(bsd.state().1);
}

#[test]
fn show_prints_the_block_by_its_own_names() {
    let bsd = FreebsdHost::new();
    let text = bsd.done("show bsd:em0");
    assert!(
        text.starts_with("bsd:em0: interrupts; it can poll\nhz: 1000\n"),
        "{text}"
    );
    assert!(text.contains("kern.polling.idlepoll_sleeping: 1\n"));
    assert_eq!(text.lines().count(), 2 + 15);
}
