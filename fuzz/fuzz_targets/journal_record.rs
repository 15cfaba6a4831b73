//! A torn or foreign file may lie in the journal. What must hold: it is refused or read exactly; a record
//! that was read says the same after it is written and read once more, so nothing is ever put back that
//! a record does not say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_napi::Record;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(record) = Record::parse(bytes) {
        let again = serde_json::to_vec(&record).expect("a record can be written");
        assert_eq!(Record::parse(&again), Ok(record));
    }
});
