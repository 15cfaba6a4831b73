//! Levels of factors on a real kernel: each is in force while its setting is, and gone afterwards.

mod common;

use std::fs;

use common::TestLab;
use nicpoll_model::Side;
use nicpoll_study::{Here, StudyFile, apply};
use nicpoll_testkit::needs;

const FILE: &str = r#"
question = "Does anything but the period matter?"
[common]
receiver = { gro = "on" }
[[factor]]
name = "host"
levels = [
  { name = "as-is" },
  { name = "changed", sender = { feature = { "tx-checksum-ip-generic" = "off" }, sysctl = { "net.ipv4.tcp_rmem" = "4096 65536 100000" } }, receiver = { sysctl = { "net.ipv4.tcp_ecn" = 1 } } },
]
[[factor]]
name = "machine"
levels = [
  { name = "quiet" },
  { name = "talks", machine = { sysctl = { "net.core.message_burst" = 11 } }, cpus = { sender = 1, receiver = 0 } },
]
[[workload]]
name = "rr"
traffic = { kind = "rr" }
"#;

fn sysctl(name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the levels change, wherever it is.
fn values(test: &mut TestLab) -> [String; 4] {
    let inside = |side, name: &'static str| test.veth.inside(side).run(move |()| sysctl(name));
    let feature = "sender: feature tx-checksum-ip-generic (wanted)";
    [
        inside(Side::Sender, "net.ipv4.tcp_rmem").unwrap(),
        inside(Side::Receiver, "net.ipv4.tcp_ecn").unwrap(),
        test.lab.settings().unwrap()[feature].clone(),
        sysctl("net.core.message_burst"),
    ]
}

#[test]
fn sysctls_features_and_cores_are_in_force_under_their_setting_alone() {
    needs!(Root, PerNapi);
    let file = StudyFile::parse(FILE).unwrap();
    file.check(FILE, &Here::look(&file).unwrap()).unwrap();
    let mut test = TestLab::build();
    let before = values(&mut test);
    assert_ne!(before[3], "11");
    let setting = |name: &str| file.design.setting(name).unwrap();
    let cpus = test.lab.cpus();

    apply(&mut test.lab, setting("changed+talks"), None).unwrap();
    let during = values(&mut test);
    assert_eq!(during, ["4096 65536 100000", "1", "false", "11"]);
    assert!(!test.journal_is_empty());
    assert_eq!(test.lab.cpus(), [1, 0]);
    test.lab.restore().unwrap();
    assert_eq!(values(&mut test), before);
    assert!(test.journal_is_empty());

    apply(&mut test.lab, setting("as-is+quiet"), None).unwrap();
    assert_eq!(values(&mut test), before);
    assert_eq!(test.lab.cpus(), cpus);
    test.lab.restore().unwrap();
}

#[test]
fn what_this_kernel_or_a_namespace_has_not_is_refused_with_its_line() {
    needs!(Root);
    let cases = [
        (
            "receiver = { sysctl = { \"net.ipv4.tcp_ecn\" = 1 } }",
            "receiver = { sysctl = { \"net.core.busy_read\" = 50 } }",
            9,
            "machine = { sysctl = { \"net.core.busy_read\" = ... } }",
        ),
        (
            "net.core.message_burst",
            "net.ipv4.tcp_ecn",
            15,
            "has its own",
        ),
        (
            "net.core.message_burst",
            "net.core.no_such",
            15,
            "sysctl -a",
        ),
        (
            "tx-checksum-ip-generic",
            "tx-checksum-ip-genric",
            9,
            "did you mean tx-checksum-ip-generic",
        ),
    ];
    for (find, replace, line, wanted) in cases {
        let text = FILE.replacen(find, replace, 1);
        assert_ne!(text, FILE);
        let file = StudyFile::parse(&text).unwrap();
        let error = file.check(&text, &Here::look(&file).unwrap()).unwrap_err();
        assert!(error.message.contains(wanted), "{replace}: {error}");
        assert_eq!(error.line, line, "{replace}: {error}");
    }
    for (find, replace, wanted) in [
        (
            "sender = { feature",
            "sender = { rx-ring = 64, feature",
            "a card's",
        ),
        (
            "machine = { sysctl",
            "machine = { threaded = 1, sysctl",
            "an interface's",
        ),
        (
            "net.core.message_burst",
            "net.core..burst",
            "named as sysctl(8) does",
        ),
        ("tx-checksum-ip-generic", "rx-gro", "by its own name, gro"),
    ] {
        let error = StudyFile::parse(&FILE.replacen(find, replace, 1)).unwrap_err();
        assert!(error.message.contains(wanted), "{replace}: {error}");
    }
}
