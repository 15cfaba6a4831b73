//! Any text may be imported. Reading it never panics; every figure, reading and figure without a place
//! stands at a line and at bytes that the text has; rates are finite and not negative; shares are between 0 and 1;
//! trials are numbered in their order; the same text gives the same study.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_import::read_transcripts;
use nicpoll_model::{Origin, SourcePlace};

fuzz_target!(|text: &str| {
    let origin = Origin {
        nicpoll_version: String::new(),
        argv: Vec::new(),
        started_at: String::new(),
    };
    let files = [(String::from("a"), String::from(text))];
    let Ok(imported) = read_transcripts(&files, &[], &origin) else {
        return;
    };
    let lines = text.lines().count() as u32 + 1;
    let stands = |place: &SourcePlace| {
        assert!(place.file == 0 && (1..=lines).contains(&place.line));
        assert!(place.start_byte <= place.end_byte && place.end_byte <= text.len() as u64);
    };
    for (trial, sequence) in imported.trials.iter().zip(1..) {
        assert_eq!(trial.sequence, sequence);
        stands(&trial.place);
        trial.quoted_again.iter().for_each(stands);
        assert!(
            trial
                .value
                .is_none_or(|rate| rate.is_finite() && rate >= 0.0)
        );
        for figure in &trial.figures {
            stands(&figure.place);
            assert!(figure.value.is_finite() && figure.value >= 0.0);
            let is_share = figure.name.ends_with("_ratio");
            assert!(!is_share || figure.value <= 1.0, "{figure:?}");
        }
        for interval in &trial.series {
            stands(&interval.place);
        }
    }
    for reading in &imported.readings {
        stands(&reading.place);
        let near = reading.near_trial.unwrap_or(1) as usize;
        assert!(near <= imported.trials.len().max(1));
    }
    for figure in &imported.unplaced {
        stands(&figure.place);
    }
    let again = read_transcripts(&files, &[], &origin);
    assert_eq!(again.as_ref(), Ok(&imported));
});
