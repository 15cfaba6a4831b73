use super::*;
use crate::journal::Change;
use crate::kernel::Interface;
use crate::knob::{ScopedKnob, Value, table};
use proptest::prelude::*;

fn target(ifindex: u32) -> Target {
    Target {
        netns_inode: 7,
        interface: Interface {
            ifindex,
            name: String::from("em0"),
            driver: String::from("veth"),
            address: String::from("02:00:00:00:00:01"),
            device_id: Some(ifindex.into()),
        },
    }
}

fn journal() -> (tempfile::TempDir, Journal) {
    let home = tempfile::tempdir().unwrap();
    let journal = Journal::at(home.path().join("state"));
    (home, journal)
}

/// A record with one change.
fn changed(journal: &Journal) -> Entry {
    let mut entry = take(journal, &target(2)).unwrap();
    let change = |record: &mut Record| record.standing.push(change(4));
    entry.update(change).unwrap();
    entry
}

/// A new record is empty.
fn take(journal: &Journal, target: &Target) -> Result<Entry, SwitchError> {
    journal.take(target, |_| ())
}

fn change(before: u64) -> Change {
    Change {
        knob: ScopedKnob::of_interface(&table::GRO_FLUSH_TIMEOUT),
        before: Value::Number(before),
        written: Value::Number(1),
    }
}

#[test]
fn a_record_is_on_disk_until_it_is_closed() {
    let (home, journal) = journal();
    assert!(journal.paths().unwrap().is_empty());
    let entry = changed(&journal);
    let (path, found) = journal.records().unwrap().remove(0);
    let found = found.unwrap();
    assert_eq!(path, entry.path());
    assert_eq!(found, *entry.record());
    assert_eq!(found.standing, [change(4)]);
    assert!(found.is_of_this_boot().unwrap());
    entry.close().unwrap();
    assert!(!home.path().join("state").exists());
}

#[test]
fn a_folder_that_goes_away_while_it_is_listed_has_no_records() {
    let (_home, journal) = journal();
    std::thread::scope(|threads| {
        let others = threads.spawn(|| {
            for _ in 0..200 {
                changed(&journal).close().unwrap();
            }
        });
        while !others.is_finished() {
            journal.paths().unwrap();
        }
    });
}

#[test]
fn who_has_an_interface_has_it_alone_until_the_file_is_closed() {
    let (_home, journal) = journal();
    // The lock moves to the new file when it replaces the old one.
    let first = changed(&journal);
    for error in [
        take(&journal, &target(2)).unwrap_err(),
        journal.lock(first.path()).unwrap_err(),
    ] {
        assert!(matches!(error, SwitchError::Busy(_)), "{error}");
    }
    // Another interface is free.
    let _other = take(&journal, &target(3)).unwrap();
    drop(first);
    let again = take(&journal, &target(2)).unwrap();
    assert_eq!(again.record().standing, [change(4)]);
}

#[test]
fn a_record_of_another_boot_gives_way() {
    let (_home, journal) = journal();
    let entry = changed(&journal);
    let path = entry.path().to_path_buf();
    drop(entry);
    let text = fs::read_to_string(&path).unwrap();
    let boot = crate::journal::boot_id().unwrap();
    fs::write(&path, text.replace(&boot, "another")).unwrap();
    let entry = take(&journal, &target(2)).unwrap();
    assert!(entry.record().standing.is_empty());
}

#[test]
fn a_device_keeps_its_record_under_another_name_address_and_namespace() {
    let (_home, journal) = journal();
    let entry = changed(&journal);
    drop(entry);
    let mut moved = target(2);
    moved.netns_inode = 8;
    moved.interface.name = String::from("wan0");
    moved.interface.address = String::from("02:00:00:00:00:02");
    moved.interface.ifindex = 9;
    let entry = take(&journal, &moved).unwrap();
    assert_eq!(entry.record().standing, [change(4)]);
    // What is recorded from now on is of the interface as it is now.
    assert_eq!(entry.record().target(), moved);
    drop(entry);
    // Another device of the same name, address and index.
    let mut successor = moved;
    successor.interface.device_id = Some(77);
    let entry = take(&journal, &successor).unwrap();
    assert!(entry.record().standing.is_empty());
    successor.interface.device_id = None;
    let refused = take(&journal, &successor).unwrap_err();
    assert!(refused.to_string().contains("mount sysfs"), "{refused}");
}

#[test]
fn what_is_not_a_record_is_named_and_left_alone() {
    let (_home, journal) = journal();
    let path = take(&journal, &target(2)).unwrap().path().to_path_buf();
    let whole = fs::read(&path).unwrap();
    let foreign = String::from_utf8(whole.clone())
        .unwrap()
        .replace("\"device_id\": 2", "\"device_id\": 3");
    for torn in [
        &whole[..whole.len() / 2],
        b"",
        b"{}",
        b"[1]",
        foreign.as_bytes(),
    ] {
        fs::write(&path, torn).unwrap();
        for error in [
            take(&journal, &target(2)).unwrap_err(),
            journal.lock(&path).unwrap_err(),
            journal.records().unwrap().remove(0).1.unwrap_err(),
        ] {
            assert!(error.to_string().contains("is not a record"), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), torn);
    }
    fs::write(&path, vec![b' '; RECORD_BYTES_MAX as usize + 1]).unwrap();
    assert!(journal.lock(&path).is_err());
}

#[test]
fn another_version_is_refused() {
    let (_home, journal) = journal();
    let entry = take(&journal, &target(2)).unwrap();
    let text = fs::read_to_string(entry.path()).unwrap();
    let newer = text.replace("\"version\": 3", "\"version\": 4");
    assert_ne!(text, newer);
    let refused = Record::parse(newer.as_bytes()).unwrap_err();
    assert!(refused.to_string().contains('4'), "{refused}");
    let unknown = text.replacen('{', "{\"extra\": 1,", 1);
    assert!(Record::parse(unknown.as_bytes()).is_err());
}

#[test]
fn what_a_dead_writer_left_is_swept_away_and_what_a_living_one_writes_is_not() {
    let (_home, journal) = journal();
    let directory = journal.directory();
    fs::create_dir(directory).unwrap();
    let mine = directory.join(format!("7-2.{}-0.tmp", std::process::id()));
    let left = directory.join("7-2.4194304-0.tmp");
    let foreign = directory.join("notes.txt");
    for path in [&mine, &left, &foreign] {
        fs::write(path, "").unwrap();
    }
    journal.sweep().unwrap();
    assert!(mine.exists() && foreign.exists() && !left.exists());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Record::parse(&bytes);
    }
}
