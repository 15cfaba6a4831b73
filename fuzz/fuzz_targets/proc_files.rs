//! The kernel's text files change with the kernel. Any text is read or refused, never
//! with a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_observe::{
    parse_allowed_cpus, parse_interrupts, parse_net_dev, parse_snmp, parse_snmp6, parse_softnet,
    parse_stat, parse_task_stat,
};

fuzz_target!(|text: &str| {
    if let Ok(stat) = parse_stat(text) {
        assert!(!stat.cores.is_empty());
    }
    if let Ok(lines) = parse_interrupts(text) {
        for line in lines {
            assert!(!line.by_cpu.is_empty());
            let _ = line.is_of("eth0", Some("0000:00:03.0"));
        }
    }
    if let Ok((name, _)) = parse_task_stat(text) {
        assert!(text.contains(name));
    }
    let _ = parse_allowed_cpus(text);
    let _ = parse_softnet(text);
    let _ = parse_snmp(text);
    let _ = parse_snmp6(text);
    let _ = parse_net_dev(text);
});
