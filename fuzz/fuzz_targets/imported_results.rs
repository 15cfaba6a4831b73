//! Any text may be handed over as another tool's output. Reading it never panics, whichever format it
//! is read as; what is refused is refused with a line that the text has; what is accepted has figures that are finite,
//! runs in the order of their lines, and shares between 0 and 1.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_import::{MeasuredQuantity, RESULT_FORMATS, ResultFormat};

fuzz_target!(|text: &str| {
    let lines = 1..=text.lines().count() + 1;
    let sniffed = ResultFormat::of(text);
    for format in &RESULT_FORMATS {
        let column = 1 + text.len() % 3;
        match format.read(text, column) {
            Ok(runs) => {
                assert!(!runs.is_empty());
                assert!(runs.windows(2).all(|two| two[0].line <= two[1].line));
                for run in runs {
                    assert!(lines.contains(&run.line));
                    let rates = run.value.iter().chain(&run.series);
                    for rate in rates {
                        let is_number = run.quantity == MeasuredQuantity::Number;
                        assert!(rate.is_finite() && (is_number || *rate >= 0.0));
                    }
                    assert!(
                        run.loss_ratio
                            .is_none_or(|share| (0.0..=1.0).contains(&share))
                    );
                }
            }
            Err(error) => assert!(lines.contains(&error.line), "{} {error}", sniffed.name),
        }
    }
});
