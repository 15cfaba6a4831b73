//! udev's entry of an interface, which the record of an early change is made from. It never
//! panics, and what was read says the same when it is written as the rule writes it and read once more.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_switch::EarlyChange;

fuzz_target!(|text: &str| {
    if let Some(early) = EarlyChange::parse(text) {
        let EarlyChange { before, set, .. } = early;
        let again = format!(
            "E:NICPOLL_BEFORE={} {}\nE:NICPOLL_SET={} {}\n",
            before.count, before.timeout_ns, set.count, set.timeout_ns
        );
        assert_eq!(EarlyChange::parse(&again), Some(early));
    }
});
