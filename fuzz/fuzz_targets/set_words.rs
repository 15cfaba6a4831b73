//! What `nicpoll set` is told: interfaces with their parts, knobs with their values, periods and rates, as
//! people and scripts write them. A word is read or refused without a panic, a refusal
//! says something, and what was read is within its knob's range and reads the same when it is written.
//! Each line of the input is a word.
#![no_main]

use std::fmt::Display;

use libfuzzer_sys::fuzz_target;
use nicpoll_model::units::{parse_seconds, parse_time, show_time};
use nicpoll_model::{Rate, RateUnit};
use nicpoll_switch::Name;
use nicpoll_switch::knob::{KnobRow, Value, parse_list, table};

fuzz_target!(|text: &str| {
    for word in text.lines() {
        if let Some(name) = read(Name::parse(word)) {
            assert!(word.starts_with(&name.interface));
        }
        for (row, value) in read(parse_list(word, |_| true)).unwrap_or_default() {
            reads_again(row, &value);
        }
        for row in table::TABLE {
            if let Some(value) = read(row.parse(word)) {
                reads_again(row, &value);
            }
        }
        if let Some(time) = read(parse_time(word)) {
            let shown = show_time(time.as_nanos() as u64);
            assert_eq!(parse_time(&shown), Ok(time), "{shown}");
        }
        read(parse_seconds(word));
        for unit in [RateUnit::BitsPerSecond, RateUnit::PacketsPerSecond] {
            if let Some(rate) = Rate::decimal(unit, word, 1) {
                assert!(rate.per_second() > 0.0);
            }
        }
    }
});

fn read<T, E: Display>(parsed: Result<T, E>) -> Option<T> {
    match parsed {
        Ok(read) => Some(read),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fn reads_again(row: &KnobRow, value: &Value) {
    let shown = row.show(value);
    assert!(row.check(value).is_ok(), "{} {shown}", row.name);
    assert_eq!(
        row.parse(&shown).as_ref(),
        Ok(value),
        "{} {shown}",
        row.name
    );
}
