//! `nicpoll set --json` and `nicpoll restore --json`: each value before and after, and the proof by polls; and the
//! same at the end of the text.

use crate::common::prelude::*;

/// Runs a command that must succeed, and returns its object, which the schema must accept.
fn object(pair: &Switched, line: &str) -> Value {
    let output = pair.run(line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", said(&output));
    let object = json_of(&output);
    assert_described(&object, "set");
    object
}

/// Returns a value of the interface itself before and after.
fn write<'a>(object: &'a Value, name: &str) -> [&'a Value; 2] {
    let mut writes = object["writes"].as_array().unwrap().iter();
    let is_own = |write: &&Value| {
        write["interface"] == "em0" && write["name"] == name && write["napi_id"].is_null()
    };
    let write = writes.find(is_own).unwrap_or_else(|| panic!("{name}"));
    [&write["before"], &write["after"]]
}

#[test]
fn every_write_is_there_with_what_was_before_it() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.set_up_by_hand();
    let planned = object(
        &pair,
        "set em0 --period 90us --defer 3 --fix --json --dry-run",
    );
    assert_eq!(planned["is_dry_run"], true);
    assert_eq!(planned["proofs"], json!([]));
    let done = object(&pair, "set em0 --period 90us --defer 3 --fix --json");
    assert_eq!(done["writes"], planned["writes"]);
    assert_eq!(write(&done, "gro_flush_timeout"), [20_000, 90_000]);
    assert_eq!(write(&done, "napi_defer_hard_irqs"), [1, 3]);
    let far = pair.veth.namespace(Side::Sender).inode();
    let writes = done["writes"].as_array().unwrap();
    assert!(writes.iter().any(|write| write["netns_inode"] == far));
    // One instance had values of its own.
    let own = |write: &&Value| write["name"] == "gro_flush_timeout" && write["napi_id"].is_u64();
    let own = writes.iter().find(own).unwrap();
    assert_eq!(own["before"], 3_000_000);

    let back = object(&pair, "set em0 -polling --json --dry-run");
    let restored = object(&pair, "set em0 -polling --json");
    assert_eq!(write(&back, "gro_flush_timeout"), [90_000, 20_000]);
    assert_eq!(write(&restored, "gro_flush_timeout"), [90_000, 20_000]);
    assert_eq!(restored["restored"][0]["interface"], "em0");
    let all = restored["restored"].as_array().unwrap();
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|one| one["is_as_before"] == true), "{all:?}");
    assert!(pair.is_clean());
}

#[test]
fn what_somebody_else_changed_and_what_will_be_undone_are_in_it() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let set = object(&pair, "set em0 polling --fix --for 60s --look 0 --json");
    assert_eq!(set["undone_after_seconds"], 60.0);
    assert_eq!(set["proofs"], json!([]));
    pair.done("set em0 --confirm");
    pair.write_timeout(77_000);
    let restored = object(&pair, "set em0 -polling --json");
    assert_eq!(write(&restored, "gro_flush_timeout"), [77_000, 0]);
    let notes = restored["restored"][0]["notes"].to_string();
    assert!(notes.contains("nicpoll had set it to 200000"), "{notes}");
    assert!(pair.is_clean());
}

#[test]
fn polls_prove_a_setting_and_silence_proves_nothing() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let silent = object(&pair, "set em0 polling --period 1ms --fix --json");
    let proof = &silent["proofs"][0];
    assert_eq!(proof["interface"], "em0");
    assert_eq!(proof["setting"]["discipline"], "polling");
    assert_eq!(proof["evidence"]["discipline"], "idle");
    assert_eq!(proof["is_proven"], Value::Null);
    let text = pair.done("set em0 polling --period 1ms --fix");
    assert_has(&text, "em0: not proven yet: no packet came");

    let polled = pair.under_traffic(|| object(&pair, "set em0 --period 2ms --look 1s --json"));
    let proof = &polled["proofs"][0];
    assert_eq!(proof["evidence"]["discipline"], "polling", "{proof}");
    assert_eq!(proof["is_proven"], true, "{proof}");
    assert!(proof["look_seconds"].as_f64().unwrap() >= 1.0);
    let text = pair.under_traffic(|| pair.done("set em0 --period 1ms --look 1s"));
    assert_has(&text, "em0: proven: polling: its timer began");
    pair.done("set em0 -polling");
    assert!(pair.is_clean());
}

#[test]
fn a_command_that_is_refused_prints_no_object() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    // `refused` checks that nothing was printed.
    pair.refused("set lo polling --json", 1);
    pair.refused("set em0 --confirm --json", 2);
    pair.refused("set em0 polling --look 1h", 2);
    let nothing = object(&pair, "set em0 -polling --json");
    assert_eq!(nothing["restored"], json!([]));
}
