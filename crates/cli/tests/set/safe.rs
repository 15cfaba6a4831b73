//! No other user can change the files that root reads, writes and leaves to run.

use crate::common::prelude::*;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Runs a command line with a umask that takes no permission away.
fn with_umask_zero(command: &Command) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 0; exec \"$0\" \"$@\""]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.output().unwrap()
}

#[test]
fn the_journal_is_roots_alone_whatever_the_umask_is() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let output = with_umask_zero(&pair.command("set em0 polling --fix --look 0"));
    assert_code(&output, 0);
    assert_eq!(mode_of(&pair.state()), 0o700);
    let records = pair.journal().paths().unwrap();
    assert_eq!(records.len(), 2);
    for record in &records {
        assert_eq!(mode_of(record), 0o600, "{}", record.display());
    }
    // A record that another user could have written is not used.
    for (path, mode) in [(pair.state(), 0o777), (records[0].clone(), 0o666)] {
        let before = mode_of(&path);
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert_has(pair.refused("set em0 -polling", 1), "chmod go-w");
        fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
        chown(&path, Some(1234), None).unwrap();
        assert_has(pair.refused("set em0 -polling", 1), "belongs to user 1234");
        chown(&path, Some(0), None).unwrap();
    }
    pair.done("set em0 -polling");
    assert!(pair.is_clean());
}

#[test]
fn a_pipe_or_a_link_in_the_place_of_a_record_is_named_and_holds_nothing_up() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.done("set em0 polling --fix --look 0");
    let record = pair.journal().paths().unwrap()[0].clone();
    let kept = pair.home.path().join("kept");
    fs::rename(&record, &kept).unwrap();
    let pipe = |path: &Path| {
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    };
    let link = |path: &Path| symlink(&kept, path).unwrap();
    for put in [&pipe as &dyn Fn(&Path), &link] {
        put(&record);
        let began = Instant::now();
        let output = pair.run("restore");
        assert!(began.elapsed() < Duration::from_secs(60));
        assert_code(&output, 1);
        assert!(said(&output).contains("is not a file"), "{}", said(&output));
        fs::remove_file(&record).unwrap();
    }
    fs::rename(&kept, &record).unwrap();
    pair.done("restore");
    assert!(pair.is_clean());
}

#[test]
fn a_state_folder_that_is_named_from_here_serves_the_guard_too() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    let mut command = pair.command("set em0 polling --fix --for 1s --look 0");
    command.env("NICPOLL_STATE_DIR", "state");
    command.current_dir(pair.home.path());
    let output = command.output().unwrap();
    assert_code(&output, 0);
    wait_until("it is undone", || pair.is_clean() && pair.dump() == before);
}

#[test]
fn nothing_that_others_can_change_is_run_at_boot() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let root = pair.home.path().join("root");
    fs::create_dir(&root).unwrap();
    let build = pair.home.path().join("build");
    fs::create_dir(&build).unwrap();
    fs::set_permissions(&build, Permissions::from_mode(0o777)).unwrap();
    let program = build.join("nicpoll");
    fs::copy(env!("CARGO_BIN_EXE_nicpoll"), &program).unwrap();
    let run = |line: &str| {
        let mut inside = pair.inside(&program, line);
        inside.args([Path::new("--root"), &root]);
        with_umask_zero(&inside)
    };
    let set = "set em0 polling --fix --look 0 --persist";
    let refused = run(set);
    assert_code(&refused, 1);
    assert_has(said(&refused), "--program /usr/local/sbin/nicpoll");
    assert!(fs::read_dir(&root).unwrap().next().is_none() && pair.is_clean());

    let done = run(&format!("{set} --program /usr/sbin/nicpoll"));
    assert_code(&done, 0);
    let unit = root.join("etc/systemd/system/nicpoll@.service");
    let text = fs::read_to_string(&unit).unwrap();
    assert!(text.contains("ExecStart=/usr/sbin/nicpoll set"), "{text}");
    assert_eq!(mode_of(&unit), 0o644);
    assert_eq!(mode_of(&root.join("etc/nicpoll")), 0o755);
    pair.done("restore");
    assert!(pair.is_clean());
}

#[test]
fn one_capability_changes_and_shows_an_interface_and_looking_takes_none() {
    needs!(Root, PerNapi, Ip);
    let pair = Switched::new();
    // Both ends are in one namespace: reading another one takes more capabilities.
    for line in [
        "link add ea type veth peer name eb",
        "link set ea up",
        "link set eb up",
    ] {
        assert_code(&pair.inside(Path::new("ip"), line).output().unwrap(), 0);
    }
    let with = |capabilities: &str, line: &str| {
        let sets = ["--bounding-set", "--inh-caps", "--ambient-caps"];
        let sets = sets.map(|set| match set {
            "--ambient-caps" => format!("{set} -all"),
            _ => format!("{set} {capabilities}"),
        });
        let line = format!("{} {NICPOLL} {line}", sets.join(" "));
        pair.inside(Path::new("setpriv"), &line).output().unwrap()
    };
    let asked = "set ea polling --fix --dry-run";
    let dry = with("-all", asked);
    assert_code(&dry, 0);
    assert!(pair.is_clean());
    assert_has(stdout(&dry), "gro_flush_timeout");
    let refused = with("-all", "set ea polling --fix");
    assert_code(&refused, 5);
    assert_has(stderr(&refused), "CAP_NET_ADMIN");
    assert!(!stderr(&refused).contains("CAP_SYS_ADMIN"));

    let alone = "-all,+net_admin";
    assert_code(&with(alone, "set ea polling --fix"), 0);
    let shown = with(alone, "show ea --for 0");
    assert_has(stdout(&shown), "polling: a timer polls 200");
    assert_code(&with(alone, "set ea -polling"), 0);
    assert!(pair.is_clean());
}
