//! `nicpoll study import`: a text in, a study of imported trials out, which every other command shows.

mod common;

use crate::common::prelude::*;

const PAGE: &str = "../import/tests/transcripts/servers.txt";

fn study(folder: &Path, args: &[&str]) -> Output {
    let store = folder.join("studies.db");
    let mut command = Command::new(NICPOLL);
    let command = command.arg("study").args(args).arg("--store").arg(store);
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    stdout(output)
}

#[test]
fn an_import_is_stored_shown_compared_and_exported_and_said_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let dry = study(folder.path(), &["import", PAGE, "--dry-run"]);
    assert!(dry.status.success() && text(&dry).starts_with("5 trials imported from"));
    assert!(!folder.path().join("studies.db").exists());

    let imported = study(folder.path(), &["import", PAGE]);
    assert!(imported.status.success(), "{imported:?}");
    let shown = text(&study(folder.path(), &["show", "last"]));
    assert_eq!(shown, text(&imported));
    assert!(shown.contains("nothing here is paired"), "{shown}");
    assert!(shown.contains("Without a place: 3 figures"), "{shown}");
    assert!(text(&study(folder.path(), &["list"])).contains("5/5  study import"));

    // One trial a setting: no verdict, and no pairs.
    let compared = study(folder.path(), &["compare", "1:interrupt", "1:polling"]);
    assert_code(&compared, 4);
    let words = text(&compared);
    assert_has_all(&words, "! Not paired: | imported trials");
    let csv = text(&study(folder.path(), &["export", "1", "--format", "csv"]));
    assert_eq!(csv.lines().count(), 6);
    let page = text(&study(folder.path(), &["report", "1", "-o", "-"]));
    assert!(page.contains("nothing here is paired") && page.contains("<svg"));
}

#[test]
fn cpu_states_of_vmstat_are_shown_without_a_share_of_interrupts() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes.txt");
    let lines = [
        "oak# netblast 10.0.0.2 9 64 60",
        "start:             1145011571.000000000",
        "finish:            1145011631.000000158",
        "send calls:        30196920",
        "send errors:       3148",
        "approx send rate:  503229",
        "approx error rate: 0",
        "oak# vmstat 5",
        " r b w     avm    fre  flt  re  pi  po  fr  sr ad0   in   sy   cs us sy id",
        " 0 0 0   38204  201336    3   0   0   0   2   0   0    9  102  230  0  1 99",
        " 1 0 0   38204  201336    0   0   0   0   0   0   0 8611 7702 1753  1 57 42",
    ];
    std::fs::write(&notes, lines.join("\n")).unwrap();
    let shown = study(
        folder.path(),
        &["import", notes.to_str().unwrap(), "--dry-run"],
    );
    assert_code(&shown, 0);
    // The first row is the mean since boot.
    assert_has(text(&shown), " 58.0 %");
    assert!(!text(&shown).contains("irq "), "{}", text(&shown));
}

#[test]
fn a_text_without_a_test_is_stored_as_facts_of_hosts_when_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let blog = folder.path().join("blog.md");
    let table =
        "| sysctl | default | mine |\n|---|---|---|\n| `net.core.netdev_budget` | 300 | 600 |\n";
    std::fs::write(&blog, format!("{table}\nWe saw 22.5 Mbits/sec.\n")).unwrap();
    let blog = blog.to_str().unwrap();
    let refused = study(folder.path(), &["import", blog]);
    assert_code(&refused, 1);
    assert_has_all(text(&refused), "net.core.netdev_budget, mine | 600");
    assert_has(said(&refused), "2 facts of hosts, 1 figure of no test");
    assert!(!text(&study(folder.path(), &["list"])).contains("study import"));
    let stored = study(folder.path(), &["import", blog, "--facts"]);
    assert_code(&stored, 0);
    let shown = study(folder.path(), &["show", "1"]);
    assert_code(&shown, 0);
    assert_eq!(text(&shown), text(&stored));
    assert_has_all(
        text(&shown),
        "No test, and 2 facts of hosts | 600 | 22.5 Mbits/sec",
    );
    assert!(text(&study(folder.path(), &["list"])).contains("study import"));
}

#[test]
fn what_a_text_leaves_open_is_drafted_decided_in_a_file_and_shown_with_its_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let [mail, draft] = ["mail.txt", "mail.map"].map(|name| folder.path().join(name));
    let screen =
        "# top\nCPU states: 1.0% user, 0.0% nice, 20.0% system, 70.0% interrupt, 9.0% idle\n";
    let test = "aa# iperf -c 10.0.0.2 -t 60\n[  3]  0.0-60.0 sec  1.01 GBytes   144 Mbits/sec\n";
    std::fs::write(&mail, format!("{test}{screen}")).unwrap();
    let [mail, map] = [&mail, &draft].map(|it| it.to_str().unwrap());
    let dry = study(
        folder.path(),
        &["import", mail, "--dry-run", "--write-map", map],
    );
    assert_code(&dry, 0);
    assert_has(text(&dry), "nothing says");
    let drafted = std::fs::read_to_string(&draft).unwrap();
    assert_has_all(
        &drafted,
        "#1:setting=polling | #1:setting=polling-receiver-only | #4:test=1 | #4:end=sender",
    );
    std::fs::write(&draft, drafted.replace("#4:end=sender", "4:end=sender")).unwrap();
    let stored = study(folder.path(), &["import", mail, "--map", map]);
    assert_code(&stored, 0);
    assert_has(text(&stored), "91.0, irq 70.0 %");
    let shown = study(folder.path(), &["show", "last", "--evidence"]);
    assert_has_all(
        text(&shown),
        "CPU states of line 4 | --map says the end | it follows this test",
    );
    let wrong = ["import", mail, "--map", "4:test=3", "--dry-run"];
    assert_has(text(&study(folder.path(), &wrong)), "none begins there");
    std::fs::write(&draft, "4:end=sender\ncolour=red\n").unwrap();
    let refused = study(folder.path(), &["import", mail, "--map", map]);
    assert_code(&refused, 2);
    assert_has(stderr(&refused), "line 2: 'colour=red' is not a correction");
}

#[test]
fn what_cannot_be_imported_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("prose.txt");
    std::fs::write(&empty, "We saw 22.5 Mbits/sec.\n").unwrap();
    let prose = empty.to_str().unwrap();
    let table = format!(
        "
        2 | import nowhere.txt | nowhere.txt
        2 | import {PAGE} --map 7:colour=red | is not a correction
        2 | import {PAGE} --map nofile.map | there is no file 'nofile.map'
        2 | import {PAGE} --map b.txt:7:host=PC1 | not among those
        2 | import {PAGE} --map 99999:host=PC1 | names a file or lines that are not among those
        2 | import {PAGE} --map 7:end=middle | is not a correction
        2 | import {PAGE} --map 1:setting=polling | '1:setting=polling' changes nothing: no test begins in these lines
        2 | import {PAGE} --map 1:end=sender | these lines show no CPU states
        "
    );
    assert_refused(&table, |line| study(folder.path(), &words(line)));
    for args in [&["import", prose][..], &["import", prose, "--dry-run"]] {
        let shown = study(folder.path(), args);
        assert_code(&shown, 1);
        assert_has(stdout(&shown), "line 1: 22.5 Mbits/sec");
        assert_has(
            stderr(&shown),
            "What it says is shown: 0 facts of hosts, 1 figure of no test. --facts stores that",
        );
    }
    let program = folder.path().join("program");
    std::fs::write(&program, [b"\x7fELF\0\0\0", &b"9/s "[..]].concat()).unwrap();
    let refused = study(folder.path(), &["import", program.to_str().unwrap()]);
    assert_code(&refused, 2);
    assert_has(stderr(&refused), "is no text: it has 3 NUL bytes");
    let nowhere = folder.path().join("nowhere");
    let refused = study(&nowhere, &["import", PAGE]);
    assert_code(&refused, 2);
    assert_has(stderr(&refused), "there is no folder");
    assert!(!nowhere.exists());
}
