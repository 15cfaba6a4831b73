//! The search for the highest load: what it prints, and what is refused.

use crate::common::prelude::*;
use crate::{two_periods, written};

#[test]
fn bounds_come_first_and_the_document_has_every_trial() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let line = two_periods() + "[topology]\nrate = \"10Mbit/s\"\n";
    let file = written(&stage, &line);
    let short = ["--setting", "short", "--trial", "0.2s", "--sum", "0.6s"];
    let search = |more: &[&str]| {
        let words = ["study", "search", &file, "--loss", "0.5%", "--width", "5%"];
        stage.run(&[&words, &short[..], more].concat())
    };
    let shown = search(&[]);
    assert_code(&shown, 0);
    assert_has_all(
        stdout(&shown),
        "not held | under short | PDR 0.5 % | trials",
    );
    let json = json_of(&search(&["--json"]));
    assert_eq!(json["schema"], "nicpoll.study-search/1");
    let [one] = &json["searches"].as_array().unwrap()[..] else {
        panic!("one search: {json}")
    };
    let lower = one["bounds"][0]["lower_per_second"].as_f64().unwrap();
    assert!(lower > 0.0 && one["trials"].as_array().unwrap().len() > 2);
    assert!(
        lower < 1.1 * one["line_per_second"].as_f64().unwrap(),
        "{one}"
    );
}

#[test]
fn tune_says_what_to_do_first_and_compares_the_winner_in_blocks_of_its_own() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let file = written(&stage, &two_periods());
    let try_two = ["--try", "interrupts", "--goal", "latency", "--no-store"];
    let words = [
        "tune", "--study", &file, "--seed", "5", "--keep", "loss<50%",
    ];
    let json = json_of(&stage.run(&[&words, &try_two[..], &["--json"]].concat()));
    assert_eq!(json["schema"], "nicpoll.tune/1");
    assert_eq!(json["is_finished"], true, "{json}");
    assert_eq!(json["reference"], "short");
    let candidates = json["candidates"].as_array().unwrap();
    let names: Vec<&Value> = candidates.iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["short", "interrupts", "interrupts, threaded"]);
    // Which one wins is a busy machine's to say; only a comparison of its own chooses it.
    if json["winner"] != "short" {
        assert!(json["study"]["trials"].as_array().unwrap().len() >= 12);
    }
    let shown = stage.run(&[&words, &["--try", "polling 1ms", "--goal", "latency"][..]].concat());
    assert_code(&shown, 0);
    let text = stdout(&shown);
    let first = text.trim_start();
    assert!(first.starts_with("Keep what you have:") || first.starts_with("Set polling 1ms"));
    assert_has_all(
        &text,
        "Tuned for the shortest delay, with loss<50.0 % | polling 1ms, threaded",
    );
    // An option of a study next to an interface must not start on the interface.
    let one_of_each = [
        vec!["tune", "no-such0", "--workload", "rr"],
        [&words[..3], &["--apply"]].concat(),
        [&words[..3], &["--for", "5m"]].concat(),
    ];
    for words in one_of_each {
        let refused = stage.run(&words);
        assert_code(&refused, 2);
        assert_has_all(stderr(&refused), "cannot be used with");
    }
    for (wrong, why) in [
        ("--keep speed<5", "'speed<5' is no limit"),
        ("--keep p99<500", "'p99<500' is no limit"),
        ("--setting shrot", "no setting 'shrot'"),
    ] {
        let more: Vec<&str> = wrong.split(' ').collect();
        let refused = stage.run(&[&words[..5], &more].concat());
        assert_code(&refused, 2);
        assert_has_all(stderr(&refused), why);
    }
}

#[test]
fn going_on_until_a_verdict_is_refused_with_the_reason() {
    let stage = Stage::new();
    let file = written(&stage, &two_periods());
    for verdict in ["better", "worse", "equivalent"] {
        let refused = stage.run(&["study", "run", &file, "--continue-until", verdict]);
        assert_code(&refused, 2);
        assert_has_all(stderr(&refused), "by chance | docs/method.md");
    }
    let refused = stage.run(&["study", "search", &file, "--setting", "shrot"]);
    assert_code(&refused, 2);
    assert_has_all(
        stderr(&refused),
        "there is no setting 'shrot' | short, long",
    );
    let refused = stage.run(&["study", "search", "--frames", "9000"]);
    assert_code(&refused, 2);
    assert_has_all(stderr(&refused), "64 to 1518");
}
