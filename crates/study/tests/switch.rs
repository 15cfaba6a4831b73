//! The switch on a real veth pair: every setting is restored exactly, and no other one changes.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use common::{SETTINGS, TestLab};
use nicpoll_lab::INTERFACE;
use nicpoll_model::Side;
use nicpoll_study::demo::{DEFAULT, POLLING};
use nicpoll_switch::knob::table;
use nicpoll_switch::{Control, Journal, Kernel, Recovered, ScopedKnob, Target, Value};
use nicpoll_sys::netns::{NetNamespace, enter_with_private_sysfs, forget};
use nicpoll_testkit::needs;

#[test]
fn every_setting_is_undone_exactly() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    let before = test.lab.settings().unwrap();
    // The dump must contain what the settings change.
    assert!(before.contains_key("receiver: sysfs gro_flush_timeout"));
    assert_eq!(before["receiver: feature rx-gro (active)"], "false");
    assert_eq!(
        before["sender: feature tx-tcp-segmentation (active)"],
        "true"
    );
    for setting in SETTINGS {
        test.put(setting, 200_000);
        let during = test.lab.settings().unwrap();
        let has_napi = during.contains_key("receiver: NAPI 0");
        assert_eq!(has_napi, setting != DEFAULT, "{setting}");
        if setting != DEFAULT {
            assert_eq!(during["receiver: feature rx-gro (active)"], "true");
            assert_eq!(
                during["sender: feature tx-tcp-segmentation (active)"],
                "false"
            );
            assert!(!test.journal_is_empty());
        }
        let polls =
            has_napi && during["receiver: NAPI 0"].contains("gro_flush_timeout_ns: Some(200000)");
        assert_eq!(polls, setting == POLLING);
        test.lab.restore().unwrap();
        assert_eq!(test.lab.settings().unwrap(), before, "{setting}");
        assert!(test.journal_is_empty(), "{setting}");
    }
}

#[test]
fn values_that_were_not_zero_come_back_too() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    // A link with its owner's settings: GRO on, and a deferral.
    test.veth
        .inside(Side::Receiver)
        .run(|()| {
            let control = &mut Control::new();
            let ifindex = control.interface(INTERFACE).unwrap().ifindex;
            let on = BTreeMap::from([(String::from("rx-gro"), true)]);
            control.set_features(ifindex, &on).unwrap();
            let interface = control.interface(INTERFACE).unwrap();
            let napi = control.napis(ifindex).unwrap()[0];
            let own = Target {
                netns_inode: NetNamespace::current().unwrap().inode(),
                interface,
            };
            for (knob, value) in [
                (ScopedKnob::of_napi(&table::DEFER_HARD_IRQS, napi.id), 7),
                (
                    ScopedKnob::of_napi(&table::GRO_FLUSH_TIMEOUT, napi.id),
                    5_000_000_000,
                ),
            ] {
                control.write(&own, &knob, &Value::Number(value)).unwrap();
            }
        })
        .unwrap();
    let before = test.lab.settings().unwrap();
    assert!(before["receiver: NAPI 0"].contains("gro_flush_timeout_ns: Some(5000000000)"));
    // Shorter than the earlier value, whose timer the undoing waits for.
    test.put(POLLING, 100_000);
    assert_ne!(test.lab.settings().unwrap(), before);
    test.lab.restore().unwrap();
    assert_eq!(test.lab.settings().unwrap(), before);
}

#[test]
fn a_lab_that_is_dropped_with_a_setting_in_force_puts_it_back() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    test.put(POLLING, 200_000);
    let journal = test.journal.clone();
    // Names keep the namespaces, and so the interfaces, after the lab is gone.
    let names = [Side::Sender, Side::Receiver].map(|side| keep(&test, side));
    drop(test);
    // Opened before the names go: a pair vanishes with the first of its ends.
    let namespaces = names.map(|name| {
        let namespace = NetNamespace::open(&name).unwrap();
        forget(&name).unwrap();
        namespace
    });
    let [sender, receiver] = namespaces.each_ref().map(features_in);
    assert!(sender["tx-tcp-segmentation"] && sender["tx-tcp6-segmentation"]);
    assert!(!receiver["rx-gro"]);
    assert!(journal.paths().unwrap().is_empty());
}

/// Gives an end's namespace a name that outlives the lab.
fn keep(test: &TestLab, side: Side) -> PathBuf {
    let namespace = test.veth.namespace(side);
    let name = format!("nicpoll-test-{}", namespace.inode());
    namespace.keep_as(&name).unwrap()
}

fn features_in(namespace: &NetNamespace) -> BTreeMap<String, bool> {
    thread::scope(|scope| {
        let look = scope.spawn(|| {
            namespace.enter().unwrap();
            let mut control = Control::new();
            let ifindex = control.interface(INTERFACE).unwrap().ifindex;
            control.features(ifindex).unwrap().active
        });
        look.join().unwrap()
    })
}

/// A machine's first `ip netns add` makes the directory of names a mount of its own.
#[test]
fn a_name_can_be_taken_away_after_ip_has_made_its_first() {
    needs!(Root, Ip);
    let namespace = NetNamespace::create().unwrap();
    let run = |command: &str| {
        let status = Command::new("sh").args(["-ec", command]).status();
        assert!(status.unwrap().success(), "{command}");
    };
    let names_come_and_go = || {
        enter_with_private_sysfs(&namespace).unwrap();
        // As on a freshly booted machine; only this thread sees it.
        run("mount -t tmpfs none /run");
        let name = namespace.keep_as("first").unwrap();
        run("ip netns add second");
        forget(&name).unwrap();
        run("ip netns delete second && test -z \"$(ls /run/netns)\"");
    };
    thread::scope(|scope| scope.spawn(names_come_and_go).join().unwrap());
}

#[test]
fn the_record_of_a_namespace_that_is_gone_is_closed_by_the_next_start() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    test.put(POLLING, 200_000);
    let journal = test.journal.clone();
    let mine = nicpoll_switch::recover(&journal).unwrap();
    assert_eq!(mine.len(), 2);
    assert!(
        mine.iter()
            .all(|(_, outcome)| matches!(outcome, Recovered::Busy))
    );
    let left = journal_of_a_dead_process(&journal, test.state.path());
    let closed = nicpoll_switch::recover(&left).unwrap();
    assert!(matches!(closed[..], [(_, Recovered::Gone)]), "{closed:?}");
    assert!(left.paths().unwrap().is_empty());
}

/// Makes a record as a dead process leaves it for a device that went with its namespace.
fn journal_of_a_dead_process(journal: &Journal, home: &Path) -> Journal {
    let (path, record) = journal.records().unwrap().remove(0);
    let device = record.unwrap().interface.device_id.unwrap();
    let device = format!("\"device_id\": {device}");
    // The inode of sysfs itself, which no device has.
    let text = as_of_a_dead_process(&path).replace(&device, "\"device_id\": 1");
    let directory = home.join("left");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("device-1.json"), text).unwrap();
    Journal::at(directory)
}

/// As after a kill -9: the record names a dead owner.
fn as_of_a_dead_process(path: &Path) -> String {
    let pid = format!("\"pid\": {}", std::process::id());
    let text = fs::read_to_string(path).unwrap();
    text.replace(&pid, "\"pid\": 4194304")
}

#[test]
fn what_a_dead_process_left_in_a_living_namespace_is_put_back() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    let before = test.lab.settings().unwrap();
    test.put(POLLING, 300_000);
    // The lab holds its own records, so copies play those of the dead process.
    let left = Journal::at(test.state.path().join("left"));
    fs::create_dir(left.directory()).unwrap();
    for path in test.journal.paths().unwrap() {
        let copy = left.directory().join(path.file_name().unwrap());
        fs::write(copy, as_of_a_dead_process(&path)).unwrap();
    }
    // Only this process holds the namespaces, by descriptor; a name makes them findable.
    let names = [Side::Sender, Side::Receiver].map(|side| keep(&test, side));
    let recovered = nicpoll_switch::recover(&left).unwrap();
    for name in names {
        nicpoll_sys::netns::forget(&name).unwrap();
    }
    assert_eq!(recovered.len(), 2);
    for (path, outcome) in recovered {
        assert!(
            matches!(outcome, Recovered::Restored),
            "{path:?}: {outcome:?}"
        );
    }
    assert_eq!(test.lab.settings().unwrap(), before);
    // Restoring again finds nothing to do.
    test.lab.restore().unwrap();
    assert_eq!(test.lab.settings().unwrap(), before);
}

#[test]
fn a_lab_leaves_no_namespace_no_interface_and_the_host_as_it_was() {
    let host_before = host_interfaces();
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    let inodes = [Side::Sender, Side::Receiver].map(|side| test.inode(side));
    test.put(POLLING, 200_000);
    assert_eq!(host_interfaces(), host_before);
    drop(test);
    // The kernel takes a namespace down after its last user is gone, not at once.
    let gone = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(20));
        !inodes.iter().any(|inode| namespace_is_in_use(*inode))
    });
    assert!(gone);
    assert_eq!(host_interfaces(), host_before);
}

fn namespace_is_in_use(inode: u64) -> bool {
    let name = format!("net:[{inode}]");
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let by_thread = tasks
        .filter_map(|task| fs::read_link(task.path().join("ns/net")).ok())
        .any(|link| link.to_string_lossy() == name);
    let files = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let by_descriptor = files
        .filter_map(|file| fs::read_link(file.path()).ok())
        .any(|link| link.to_string_lossy() == name);
    by_thread || by_descriptor
}

/// Reads every setting of the host's own interfaces. This thread never left the host's namespace.
fn host_interfaces() -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    for interface in fs::read_dir("/sys/class/net").unwrap().flatten() {
        // bonding_masters is a file among the interfaces.
        let Ok(files) = fs::read_dir(interface.path()) else {
            continue;
        };
        for file in files.flatten().filter(|file| file.path().is_file()) {
            let value = fs::read_to_string(file.path()).unwrap_or_default();
            settings.insert(file.path().display().to_string(), value);
        }
    }
    settings
}
