//! The recorded output of `nicpoll set`, `show` and `restore` for a fixed sequence of commands, on Linux and for a
//! FreeBSD host, without what differs from run to run (ids, times of day).

use crate::common::prelude::*;
use crate::freebsd_host::FreebsdHost;
use nicpoll_testkit::golden;
use std::fmt::Write;

/// On Linux: settings of one interface, from an administrator's values and back.
const LINUX: [&str; 19] = [
    "set em0 polling --fix --dry-run --json",
    "set em0 polling --dry-run",
    "set em0 polling --fix --dry-run",
    "set em0 polling --fix --look 0",
    "set em0 polling --fix --look 0",
    "set em0 --period 1ms --defer 50 --look 0 --json",
    "set em0 --threaded --nice -5 --look 0",
    "set em0 polling --suspend 20ms --for 60s --look 0",
    "set em0 --confirm",
    "show em0 --for 0 -n hz -n user_frac -n enable",
    "set em0 --moderation rx-usecs=50",
    "set em0 polling --period 0",
    "set em0 polling --rt 100",
    "set em1 polling",
    "set em0:rx7 polling",
    "set em0 polling --nice 5",
    "set em0 -polling --json",
    "set em0 -polling",
    "restore",
];

const FREEBSD: [&str; 12] = [
    "set root@bsd:em0 polling --user-frac 20 --burst-max 300 --dry-run",
    "set root@bsd:em0 polling --user-frac 20 --burst-max 300 --dry-run --json",
    "set root@bsd:em0 polling --user-frac 20 --burst-max 300",
    "set root@bsd:em0 polling",
    "set root@bsd:em0 --idle-poll 1 --json",
    "set root@bsd:em0 --user-frac 100",
    "set root@bsd:em0 polling --period 1ms",
    "set root@bsd:em9 polling",
    "show root@bsd:em0",
    "show root@bsd:em0 -n user_frac -n burst_max",
    "set root@bsd:em0 polling --persist --dry-run",
    "set root@bsd:em0 -polling",
];

#[test]
fn what_set_says_on_linux() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.set_up_by_hand();
    let mut page = String::new();
    for line in LINUX {
        let output = pair.run(line);
        let code = output.status.code().unwrap();
        let said = without_tso(&said(&output).replace(&pair.netns(), "NETNS"));
        let _ = writeln!(
            page,
            "$ nicpoll {line}\n{}exit {code}\n",
            without_ids(&said)
        );
    }
    golden("tests/golden/set.txt", &page);
}

#[test]
fn what_set_says_of_a_freebsd_host() {
    let bsd = FreebsdHost::new();
    let mut page = String::new();
    for line in FREEBSD {
        let output = bsd.run(line);
        let code = output.status.code().unwrap();
        let said = said(&output);
        let _ = writeln!(
            page,
            "$ nicpoll {line}\n{}exit {code}\n",
            without_ids(&said)
        );
    }
    golden("tests/golden/set-freebsd.txt", &page);
}

/// Removes the features that make up TSO, which depend on the kernel.
fn without_tso(said: &str) -> String {
    const TSO: &str = "feature tx-";
    if let Ok(mut document) = serde_json::from_str::<Value>(said) {
        let writes = document["writes"].as_array_mut().unwrap();
        writes.retain(|write| !write["name"].as_str().unwrap().starts_with(TSO));
        return format!("{document:#}\n");
    }
    String::from(said)
}

/// Removes numbers and strings that depend on the machine or the moment.
fn without_ids(text: &str) -> String {
    let text = text.replace(env!("CARGO_BIN_EXE_nicpoll"), "nicpoll");
    let mut text = after_each(&text, "\"started_at\": \"", |c| c != '"');
    for name in [
        "napi",
        "napi ",
        "thread ",
        "NAPI ",
        "thread ",
        "\"napi_id\": ",
        "\"netns_inode\": ",
        "net:[",
        "nicpoll-test-",
    ] {
        text = after_each(&text, name, |c| c.is_ascii_digit());
    }
    text
}

/// Replaces the longest run of such characters after each `name` by `#`.
fn after_each(text: &str, name: &str, is_chosen: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(name);
    let mut result = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let rest = part.trim_start_matches(&is_chosen);
        let hash = if rest.len() < part.len() { "#" } else { "" };
        result.extend([name, hash, rest]);
    }
    result
}
