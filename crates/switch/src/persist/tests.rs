//! Files that are written, removed, and refused.

use super::file::aside_of;
use super::*;
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

const POLLING: Option<Deferral> = Some(Deferral {
    count: 2_147_483_647,
    timeout_ns: 200_000,
});

const PROGRAM: &str = "/usr/bin/nicpoll";

fn options(text: &str) -> Vec<String> {
    text.split(' ').map(String::from).collect()
}

/// Writes files, and keeps them.
fn carry_out(changes: &[FileChange]) -> Result<(), SwitchError> {
    let home = tempfile::tempdir().unwrap();
    HeldFiles::write(&Journal::at(home.path()), changes, false)?.keep()
}

/// The files for an interface under polling.
fn install(files: &Persistence, interface: &str, asked: &str) -> Vec<FileChange> {
    let changes = files.install(Path::new(PROGRAM), interface, &options(asked), POLLING);
    changes.unwrap()
}

fn tree(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for file in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = file.path();
        if path.is_dir() {
            found.insert(path.clone(), String::from("directory"));
            found.extend(tree(&path));
        } else {
            let text = fs::read_link(&path).map_or_else(
                |_| fs::read_to_string(&path).unwrap(),
                |target| target.display().to_string(),
            );
            found.insert(path, text);
        }
    }
    found
}

/// The files of `eth0` under `polling`.
fn installed(root: &Path) -> Persistence {
    let files = Persistence::at(root);
    carry_out(&install(&files, "eth0", "polling")).unwrap();
    files
}

#[test]
fn what_was_written_is_removed_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let units = home.path().join("etc/systemd/system");
    fs::create_dir_all(&units).unwrap();
    fs::write(units.join("other.service"), "[Unit]\n").unwrap();
    fs::create_dir_all(home.path().join(RULES_DIRECTORY)).unwrap();
    let before = tree(home.path());
    let files = Persistence::at(home.path());
    for (interface, asked) in [("eth0", "polling"), ("br-lan", "polling --period 50us")] {
        let changes = install(&files, interface, asked);
        assert!(changes[0].diff().contains("--- /dev/null"), "{changes:?}");
        carry_out(&changes).unwrap();
        let again = install(&files, interface, asked);
        assert!(again.is_empty(), "{again:?}");
    }
    let during = tree(home.path());
    let link = "sys-subsystem-net-devices-br\\x2dlan.device.wants/nicpoll@br\\x2dlan.service";
    assert_eq!(during[&units.join(link)], "../nicpoll@.service");
    let template = &during[&units.join("nicpoll@.service")];
    assert!(
        template.contains("ExecStart=/usr/bin/nicpoll set ${NICPOLL_INTERFACE} $NICPOLL_OPTIONS")
    );
    assert!(template.contains("ExecStop=/usr/bin/nicpoll restore ${NICPOLL_INTERFACE}"));

    let rule = home.path().join("etc/udev/rules.d/85-nicpoll-br-lan.rules");
    assert!(during[&rule].contains("NAME==\"br-lan\""));
    assert!(during[&rule].contains("ATTR{gro_flush_timeout}=\"200000\""));
    // Without deferral udev has nothing to do; only the unit gets odd names.
    let program = Path::new(PROGRAM);
    let other = files.install(program, "eth0", &options("--threaded"), None);
    assert!(other.unwrap().iter().any(|change| change.after.is_none()));
    assert_eq!(install(&files, "eth*", "polling").len(), 2);

    carry_out(&files.remove("eth0").unwrap()).unwrap();
    assert!(units.join("nicpoll@.service").exists());
    carry_out(&files.remove("br-lan").unwrap()).unwrap();
    assert_eq!(tree(home.path()), before);
    assert!(files.remove("br-lan").unwrap().is_empty());
}

#[test]
fn other_options_show_as_a_difference() {
    let home = tempfile::tempdir().unwrap();
    let files = installed(home.path());
    let changes = install(&files, "eth0", "polling --period 50us");
    assert_eq!(changes.len(), 1);
    let diff = changes[0].diff();
    assert!(diff.contains("-NICPOLL_OPTIONS=polling\n"), "{diff}");
    assert!(diff.contains("+NICPOLL_OPTIONS=polling --period 50us\n"));
    assert!(!diff.contains(MARK));
}

#[test]
fn when_one_file_cannot_be_written_none_is() {
    let home = tempfile::tempdir().unwrap();
    let units = home.path().join("etc/systemd/system");
    fs::create_dir_all(&units).unwrap();
    let files = installed(home.path());
    let mut changes = install(&files, "eth1", "polling");
    let other = Path::new("/opt/nicpoll");
    let template = files.install(other, "eth0", &options("polling"), POLLING);
    changes.splice(0..0, template.unwrap());
    // A file in place of the last directory, that of the link.
    let name = "sys-subsystem-net-devices-eth1.device.wants";
    fs::write(units.join(name), "in the way").unwrap();
    let before = tree(home.path());
    let refused = carry_out(&changes).unwrap_err().to_string();
    assert!(refused.contains("is not a folder"), "{refused}");
    assert_eq!(tree(home.path()), before);
}

#[test]
fn what_a_killed_command_left_aside_is_not_in_the_way() {
    let home = tempfile::tempdir().unwrap();
    let files = Persistence::at(home.path());
    let changes = install(&files, "eth0", "polling");
    for change in &changes {
        fs::create_dir_all(change.path.parent().unwrap()).unwrap();
        symlink("x", format!("{}.nicpoll-new", change.path.display())).unwrap();
    }
    carry_out(&changes).unwrap();
    assert!(install(&files, "eth0", "polling").is_empty());
    assert!(!tree(home.path()).values().any(|text| text == "x"));
    // Nor does a file that no command will finish keep the template.
    let other = home.path().join(OPTIONS_DIRECTORY);
    fs::write(other.join("eth1.conf.nicpoll-new"), "").unwrap();
    carry_out(&files.remove("eth0").unwrap()).unwrap();
    assert!(!home.path().join(TEMPLATE).exists());
}

#[test]
fn what_a_killed_command_wrote_goes_unless_its_settings_stay() {
    for (has_settings, stay) in [(false, false), (true, true)] {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::at(home.path().join("journal"));
        let root = home.path().join("root");
        let changes = install(&Persistence::at(&root), "eth0", "polling");
        let held = HeldFiles::write(&journal, &changes, has_settings).unwrap();
        // No other command touches the files while it runs.
        assert!(matches!(restore_files(&journal), Err(SwitchError::Busy(_))));
        assert!(files_left(&journal).unwrap().is_empty());
        drop(held);
        assert_eq!(files_left(&journal).unwrap().len(), changes.len());
        // No attempt is left, so the settings were settled.
        let restored = restore_files(&journal).unwrap();
        assert_eq!(restored.is_empty(), stay);
        assert_eq!(root.join(TEMPLATE).exists(), stay);
        assert_eq!(root.join(OPTIONS_DIRECTORY).exists(), stay);
        assert!(!journal.directory().exists());
    }
}

#[test]
fn files_that_lack_their_others_are_found_and_whole_ones_are_not() {
    let home = tempfile::tempdir().unwrap();
    let files = installed(home.path());
    assert!(files.orphans().is_empty());
    carry_out(&install(&files, "eth1", "polling")).unwrap();
    let [_, options, rule, link] = files.paths("eth1");
    fs::remove_file(&options).unwrap();
    let unfinished = aside_of(&files.paths("eth0")[2]);
    fs::write(&unfinished, "half").unwrap();
    let orphans = files.orphans();
    let found: Vec<&PathBuf> = orphans.iter().map(|one| &one.path).collect();
    let mut expected = vec![&rule, &link, &unfinished];
    expected.sort();
    assert_eq!(found, expected);
    carry_out(&orphans).unwrap();
    assert!(files.orphans().is_empty());
    assert!(files.remove("eth0").unwrap().len() == 4);
}

#[test]
fn somebody_elses_file_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let files = Persistence::at(home.path());
    let path = home.path().join(TEMPLATE);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "[Unit]\n").unwrap();
    let install = files.install(Path::new(PROGRAM), "eth0", &[], POLLING);
    let refused = install.unwrap_err().to_string();
    assert!(refused.contains("not written by nicpoll"), "{refused}");
    assert!(files.remove("eth0").is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "[Unit]\n");
}

#[test]
fn names_are_escaped_as_systemd_does() {
    assert_eq!(escape("eth0.7"), "eth0.7");
    assert_eq!(escape("br-lan"), "br\\x2dlan");
    assert_eq!(escape(".hidden"), "\\x2ehidden");
}

#[test]
fn what_runs_at_boot_can_be_read_by_all_and_written_by_root_alone() {
    let home = tempfile::tempdir().unwrap();
    let files = installed(home.path());
    let modes: BTreeMap<PathBuf, u32> = tree(home.path())
        .into_keys()
        .map(|path| (path.clone(), fs::symlink_metadata(path).unwrap()))
        .filter(|(_, found)| !found.is_symlink())
        .map(|(path, found)| (path, found.mode() & 0o7777))
        .collect();
    for (path, mode) in modes {
        let wanted = if path.is_dir() { 0o755 } else { 0o644 };
        assert_eq!(mode, wanted, "{}", path.display());
    }
    // Somebody else may put a link there.
    let rules = home.path().join(RULES_DIRECTORY);
    fs::set_permissions(&rules, Permissions::from_mode(0o777)).unwrap();
    let changes = files.install(Path::new(PROGRAM), "eth1", &options("polling"), POLLING);
    let refused = changes.and_then(|changes| carry_out(&changes)).unwrap_err();
    assert!(refused.to_string().contains("chmod go-w"), "{refused}");
}

#[test]
fn a_program_that_others_can_change_is_not_run_at_boot() {
    let home = tempfile::tempdir().unwrap();
    let here = Persistence::at("/");
    let program = home.path().join("nicpoll");
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o777)).unwrap();
    let refused = here.program(Some(&program)).unwrap_err().to_string();
    assert!(
        refused.contains("--program /usr/local/sbin/nicpoll"),
        "{refused}"
    );
    assert_eq!(
        here.program(Some(Path::new("/bin/sh"))).unwrap(),
        Path::new("/bin/sh")
    );
    let relative = here.program(Some(Path::new("nicpoll"))).unwrap_err();
    assert!(
        relative.to_string().contains("begins with '/'"),
        "{relative}"
    );
    // The files in an image are its maker's responsibility.
    let image = Persistence::at(home.path());
    assert_eq!(image.program(Some(&program)).unwrap(), program);
}
