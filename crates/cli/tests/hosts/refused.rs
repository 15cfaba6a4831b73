//! Hosts that cannot be used: a study ends before its first trial and says which host it is, why, and what to do.

use crate::common::prelude::*;
use crate::place::{PAIR, SshHosts};
use crate::site::{Site, two_periods};

/// Runs a short study, which must end with an error that has these words.
#[track_caller]
fn assert_ends(site: &Site, hosts: &str, parts: &str) {
    let file = site.written(&format!("{}{hosts}", two_periods("100ms", 2)));
    let ended = site.run(&["study", "run", &file]);
    assert!(
        matches!(ended.status.code(), Some(1 | 2 | 5)),
        "{}",
        said(&ended)
    );
    assert!(ended.stdout.is_empty(), "{}", said(&ended));
    assert_has_all(stderr(&ended), parts);
    site.assert_untouched();
}

#[test]
fn a_host_that_cannot_be_reached_or_has_another_key_is_named() {
    needs!(Root, PerNapi, Sshd);
    let mut site = Site::installed();
    let unknown = PAIR.replace("root@box2", "root@nowhere");
    assert_ends(
        &site,
        &unknown,
        "the receiver (root@nowhere) | ssh -o BatchMode=yes root@nowhere true",
    );
    let absent = PAIR.replace("eth1", "eth7");
    assert_ends(&site, &absent, "eth7 | the sender (root@box1) | eth1");
    site.hosts.restart_sshd("box2", "AuthorizedKeysFile none");
    assert_ends(&site, PAIR, "the receiver (root@box2) | Permission denied");
    site.hosts.restart_sshd("box2", "");
    site.hosts.forge_known_key("box2");
    assert_ends(
        &site,
        PAIR,
        "the receiver (root@box2) | Host key verification failed",
    );
}

#[test]
fn a_host_that_says_something_else_is_given_up() {
    needs!(Root, PerNapi, Sshd);
    let mut site = Site::installed();
    for (command, parts) in [
        (
            "echo This account is closed.",
            "the receiver (root@box2) | ended",
        ),
        (
            "yes",
            "the receiver (root@box2) | its login may run a program",
        ),
        (
            "head -c 1G /dev/zero",
            "the receiver (root@box2) | its login may run a program",
        ),
        (
            "echo nicpoll-agent 1; yes",
            "the receiver (root@box2) | no message of the protocol",
        ),
        (
            "echo nicpoll-agent 1; head -c 1G /dev/zero",
            "the receiver (root@box2) | longer",
        ),
        ("echo nicpoll-failed it; exit 1", "the receiver (root@box2)"),
        ("exit 3", "the receiver (root@box2) | exit code 3"),
    ] {
        site.hosts
            .restart_sshd("box2", &format!("ForceCommand {command}"));
        assert_ends(&site, PAIR, parts);
    }
    // Words of a login before the agent's first line do no harm.
    let greeting = "ForceCommand echo Welcome; echo to box2 >&2; eval \"$SSH_ORIGINAL_COMMAND\"";
    site.hosts.restart_sshd("box2", greeting);
    let file = site.written(&format!("{}{PAIR}", two_periods("100ms", 2)));
    let ran = site.run(&["study", "run", &file]);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", said(&ran));
    site.assert_untouched();
}

#[test]
fn a_host_that_says_nothing_is_given_up() {
    needs!(Time, Root, PerNapi, Sshd);
    let mut site = Site::installed();
    site.hosts
        .restart_sshd("box2", "ForceCommand exec cat > /dev/null");
    assert_ends(&site, PAIR, "the receiver (root@box2) | nothing came");
}

#[test]
fn a_host_without_room_for_the_program_is_named() {
    needs!(Root, PerNapi, Sshd);
    let hosts = SshHosts::pair();
    let small = "for folder in /run /tmp /var /root; do mount -o remount,size=64k $folder; done";
    shell(&hosts.host("box2").inside, small);
    let site = Site::of(hosts);
    assert_ends(&site, PAIR, "the receiver (root@box2) | /var/tmp | KiB");
}

#[test]
fn a_host_without_room_to_record_its_settings_is_named() {
    needs!(Root, PerNapi, Sshd);
    let hosts = SshHosts::pair();
    hosts.install(Path::new(NICPOLL));
    let full = "mount -o remount,size=64k /var; cat /dev/zero > /var/full 2> /dev/null || true";
    shell(&hosts.host("box2").inside, full);
    let site = Site::of(hosts);
    assert_ends(
        &site,
        PAIR,
        "receiver | /var/lib/nicpoll | No space left on device",
    );
}

#[test]
fn a_copy_that_was_cut_off_is_removed() {
    needs!(Root, PerNapi, Sshd);
    let mut site = Site::of(SshHosts::pair());
    let file = site.written(&format!("{}{PAIR}", two_periods("100ms", 2)));
    let child = site.start(&["study", "run", &file]);
    wait_until("the copy is under way", || {
        let files = site.hosts.host("box2").files();
        files.iter().any(|file| file.ends_with("nicpoll"))
    });
    site.hosts.restart_sshd("box2", "");
    let ended = child.wait_with_output().unwrap();
    assert_code(&ended, 1);
    assert_has(stderr(&ended), "the receiver (root@box2)");
    site.assert_untouched();
}

#[test]
fn a_host_with_another_version_gets_a_copy_and_one_with_the_same_gets_none() {
    needs!(Root, PerNapi, Sshd);
    let site = Site::installed();
    let own = "/usr/local/bin/nicpoll";
    let other = format!("echo 'echo nicpoll 0.0.1' > {own}");
    shell(&site.hosts.host("box1").inside, &other);
    let file = site.written(&format!("{}{PAIR}", two_periods("500ms", 2)));
    let child = site.start(&["study", "run", &file]);
    site.await_setting();
    let agent = |name: &str| {
        let processes = site.hosts.host(name).processes().into_values();
        let mut agents = processes.filter(|line| line.contains("nicpoll agent"));
        agents.next().unwrap()
    };
    assert!(agent("box2").starts_with(own), "{}", agent("box2"));
    assert!(agent("box1").contains("--copy"), "{}", agent("box1"));
    let ran = child.wait_with_output().unwrap();
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", said(&ran));
}
