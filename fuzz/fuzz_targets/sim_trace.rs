//! Any bytes may be handed over as a trace. Reading them never panics; what is refused is
//! refused with a line that the text has; what was read has times that never run backwards and sizes that a
//! datagram can have, and written again it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_model::FileError;
use nicpoll_sim::{Trace, TraceReader};

fn read<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<Trace, FileError> {
    let mut reader = TraceReader::default();
    for line in lines {
        reader.line(line)?;
    }
    reader.finish("trace")
}

fuzz_target!(|bytes: &[u8]| {
    let lines = || bytes.split(|byte| *byte == b'\n');
    let trace = match read(lines()) {
        Ok(trace) => trace,
        Err(error) => {
            assert!((1..=lines().count()).contains(&error.line));
            assert!(!error.message.is_empty());
            return;
        }
    };
    let packets = trace.packets();
    assert_eq!(packets[0].at_ns, 0);
    assert!(packets.is_sorted_by_key(|packet| packet.at_ns));
    assert!(packets.iter().all(|packet| packet.payload_bytes <= 65_507));
    assert!(trace.period_ns() > trace.span_ns());
    let written: Vec<String> = packets
        .iter()
        .map(|packet| format!("{}ns,{}", packet.at_ns, packet.payload_bytes))
        .collect();
    assert_eq!(read(written.iter().map(String::as_bytes)), Ok(trace));
});
