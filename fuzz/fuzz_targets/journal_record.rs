//! A torn or foreign file may lie in the journal. It is refused or read exactly; a record
//! that was read says the same after it is written and read once more; and what is put back from it is
//! for each knob the oldest value that it says, and nothing else.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_switch::{Change, Record};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(record) = Record::parse(bytes) {
        let again = serde_json::to_vec(&record).expect("a record can be written");
        assert_eq!(
            Record::parse(&again).expect("what was written is read"),
            record
        );

        let attempted = record.attempt.iter().flat_map(|attempt| &attempt.changes);
        let recorded: Vec<&Change> = record.standing.iter().chain(attempted).collect();
        let all = record.all_changes();
        for change in &recorded {
            let to_be = all.iter().filter(|to_be| to_be.knob == change.knob);
            assert_eq!(to_be.count(), 1);
        }
        for to_be in &all {
            let mut of_knob = recorded.iter().filter(|change| change.knob == to_be.knob);
            assert!(
                of_knob
                    .next()
                    .is_some_and(|oldest| oldest.before == to_be.before)
            );
        }
    }
});
