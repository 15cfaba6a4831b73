//! Any file may be handed over as a part of a sweep. Reading a list of parts and joining them
//! never panics or hangs; an error names a part that there is; and what was joined has the points of all
//! parts, no more and no fewer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_model::sim::{SimSweep, join};

fuzz_target!(|json: &[u8]| {
    let Ok(parts) = serde_json::from_slice::<Vec<SimSweep>>(json) else {
        return;
    };
    let count = parts.len();
    let points: usize = parts.iter().map(|part| part.points.len()).sum();
    match join(parts) {
        Ok(sweep) => {
            assert_eq!(sweep.points.len(), points);
            assert!(sweep.shard.is_none());
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(error.part.is_none_or(|part| part < count));
        }
    }
});
