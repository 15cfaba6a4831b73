//! A host prints what it likes. Any text is read or refused, never with a panic; what is
//! read is within its limits; and one word is all that a line of rc.conf gains, once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_switch::freebsd::{
    FreebsdTarget, HostRecord, parse_hz, parse_interface, parse_polling, parse_uname, with_polling,
};

fuzz_target!(|text: &str| {
    let _ = parse_uname(text);
    if let Ok(hz) = parse_hz(text) {
        assert!(hz > 0);
    }
    if let Ok(polling) = parse_polling(text) {
        assert_eq!(polling.writable().count(), 5);
    }
    let _ = parse_interface(text, "em0");
    if let Ok(Some((before, after))) = with_polling(text, "em0") {
        assert!(text.lines().any(|line| line == before));
        assert!(!after.contains('\n'));
        assert_eq!(with_polling(&after, "em0"), Ok(None));
    }
    if let Ok(Some(target)) = FreebsdTarget::parse(text) {
        assert!(!target.host().starts_with('-'));
        assert_eq!(FreebsdTarget::parse(&target.to_string()), Ok(Some(target)));
    }
    if let Ok(record) = HostRecord::parse(text.as_bytes()) {
        let again = serde_json::to_vec(&record).expect("a record can be written");
        assert_eq!(
            HostRecord::parse(&again).expect("what was written is read"),
            record
        );
    }
});
