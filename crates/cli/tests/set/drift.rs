//! `nicpoll show` of an interface that `nicpoll set` has changed, and somebody else after it.

use crate::common::prelude::*;
use nicpoll_switch::knob::table;
use nicpoll_switch::{Kernel, Knob, Value};

/// What `nicpoll show` says of drift.
fn drift(pair: &Switched) -> serde_json::Value {
    let output = pair.run("show em0 --for 0 --json");
    assert_code(&output, 0);
    let show = json_of(&output);
    show["interfaces"][0]["drift"].clone()
}

#[test]
fn what_somebody_else_changed_is_shown_until_it_is_put_back() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    let none = serde_json::json!([]);
    assert_eq!(drift(&pair), none, "nothing was set");
    pair.done("set em0 polling --fix --look 0");
    assert_eq!(drift(&pair), none, "everything is as it was set");
    pair.near(|control, target| {
        let knob = Knob::of_interface(&table::GRO_FLUSH_TIMEOUT);
        let value = Value::Number(5_000);
        control.write(target, &knob, &value).unwrap();
    });
    let found = drift(&pair);
    let timeout = serde_json::json!({
        "name": "gro_flush_timeout", "written": "200000", "now": "5000"
    });
    assert!(found.as_array().unwrap().contains(&timeout), "{found:#}");
    let text = pair.done("show em0 --for 0");
    let line = text.lines().find(|line| line.starts_with("  drift"));
    let line = line.unwrap_or_else(|| panic!("no drift in:\n{text}"));
    assert!(line.contains("gro_flush_timeout is 5000"), "{text}");
    pair.done("set em0 -polling");
    assert_eq!(drift(&pair), none);
    assert_eq!(pair.dump(), before);
}
