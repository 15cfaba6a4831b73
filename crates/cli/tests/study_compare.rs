//! `nicpoll study compare` for a user and a CI job: files in, a verdict and an exit code out.

mod common;

use crate::common::prelude::*;

/// Writes numbers to two files in a new folder.
fn files(texts: [&str; 2]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in ["before", "after"].iter().zip(texts) {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn run(folder: &TempDir, program: &str, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    let command = command.args(args).current_dir(folder.path());
    command.output().unwrap()
}

fn compare(folder: &TempDir, options: &[&str]) -> (i32, String) {
    let args = [&["study", "compare", "before", "after"], options].concat();
    let output = run(folder, NICPOLL, &args);
    (output.status.code().unwrap(), stdout(&output))
}

const FAST: &str = "100\n101\n99.5\n100.4\n98.9\n101.3\n";
const SLOW: &str = "80\n81\n79.5\n80.4\n78.9\n81.3\n";

#[test]
fn a_loss_ends_with_3_where_it_is_forbidden() {
    let folder = files([FAST, SLOW]);
    let (code, text) = compare(&folder, &[]);
    assert_eq!(code, 0);
    assert!(
        text.starts_with("  worse, and it matters: after has 0.8"),
        "{text}"
    );
    assert_has(&text, "Both were read as a column of numbers.");
    assert!(text.contains("! Not paired:"), "{text}");
    for (limit, expected) in [
        ("worse", 3),
        ("worse:5%", 3),
        ("worse:40%", 0),
        ("different", 3),
    ] {
        assert_eq!(
            compare(&folder, &["--fail-on", limit]).0,
            expected,
            "{limit}"
        );
    }
    assert_eq!(
        compare(&folder, &["--fail-on", "worse", "--less-is-better"]).0,
        0
    );
    assert_eq!(compare(&folder, &["--fail-on", "slower"]).0, 2);
    // A file against itself proves nothing; two values cannot.
    let same = files([FAST, FAST]);
    assert_eq!(compare(&same, &["--fail-on", "different"]).0, 0);
    let few = files(["1\n2\n", "1\n"]);
    let (code, text) = compare(&few, &[]);
    assert_eq!((code, compare(&few, &["--fail-on", "worse"]).0), (4, 4));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "before has 2 values, after has 1 value, and it takes 3 of each.";
    assert_has(
        &text,
        format!("no verdict: after and before have no ratio: {why}"),
    );
    assert!(!text.contains("far from"), "{text}");
}

#[test]
fn ministats_output_is_ministats() {
    needs!(Ministat);
    let many: String = (0..120)
        .map(|i| format!("{}\n", 1000 + i * i % 37))
        .collect();
    let cases = [
        [FAST, SLOW],
        ["1\n2\n3\n4\n10\n", "5\n6\n7\n8\n12\n14\n"],
        ["100000001\n100000002\n100000003\n", "100\n101\n102\n103\n"],
        ["5\n5\n5\n", "5\n5\n5\n5\n"],
        ["-3\n-2.5\n0\n", "1e-7\n2e-7\n1e9\n"],
        ["3\n3\n3\n3\n4\n4\n5\n", "4\n4\n4\n4\n4\n4\n"],
        [&many, "1000\n1001\n1002\n"],
        ["0.1\n0.2\n0.30000000000000004\n0.7\n", &many],
    ];
    for case in cases {
        let folder = files(case);
        let theirs = run(&folder, "ministat", &["-w", "74", "before", "after"]);
        let (code, text) = compare(&folder, &["--ministat"]);
        assert_eq!(text, stdout(&theirs));
        assert_eq!(code, 0);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_its_line() {
    let folder = files([FAST, "1\n2\nthree\n"]);
    let output = run(&folder, NICPOLL, &["study", "compare", "before", "after"]);
    assert_code(&output, 2);
    assert_has(stderr(&output), "after, line 3: 'three' is not a number");
}
