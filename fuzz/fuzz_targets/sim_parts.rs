//! Any file may be handed over as a part of a sweep or a fit. Reading a list of parts and joining them
//! never panics or hangs; an error names a part that there is; and what was joined has the points of all
//! parts, no more and no fewer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_model::sim::{InParts, SimFit, SimSweep, join};

fuzz_target!(|json: &[u8]| {
    if let Ok(parts) = serde_json::from_slice::<Vec<SimSweep>>(json) {
        check(parts);
    } else if let Ok(parts) = serde_json::from_slice::<Vec<SimFit>>(json) {
        check(parts);
    }
});

fn check<P: InParts>(parts: Vec<P>) {
    let count = parts.len();
    let points: usize = parts.iter().map(|part| part.part().2.len()).sum();
    match join(parts) {
        Ok(whole) => {
            let (_, shard, joined) = whole.part();
            assert_eq!(joined.len(), points);
            assert!(shard.is_none());
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(error.part.is_none_or(|part| part < count));
        }
    }
}
