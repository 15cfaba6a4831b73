//! The kernel's text files change with the kernel. What must hold: any text is read or refused, never
//! with a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_observe::{parse_snmp, parse_snmp6, parse_softnet_dropped, parse_stat};

fuzz_target!(|text: &str| {
    if let Ok(stat) = parse_stat(text) {
        assert!(!stat.cores.is_empty());
    }
    let _ = parse_softnet_dropped(text);
    let _ = parse_snmp(text);
    let _ = parse_snmp6(text);
});
