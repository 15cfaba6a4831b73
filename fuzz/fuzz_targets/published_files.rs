//! Any text may be handed over as a published table or as the file of the fit. Reading it never
//! panics; what is refused is refused with a line that the text has; no figure under polling is ever fitted; and
//! what a host file marks as fitted can be written again or is refused with its line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_calibrate::{FitPlan, Mode, PublishedTable, fitted_fields, with_fitted};
use nicpoll_sim::HostModel;

fuzz_target!(|text: &str| {
    let lines = 1..=text.lines().count() + 1;
    match PublishedTable::parse(text) {
        Ok(table) => {
            for run in &table.runs {
                let is_fitted = run.figures.iter().any(|figure| figure.is_fitted);
                assert!(!is_fitted || run.mode != Mode::Polling);
                for figure in &run.figures {
                    assert!(figure.measured.iter().all(|value| value.is_finite()));
                }
            }
        }
        Err(error) => assert!(lines.contains(&error.line)),
    }
    if let Err(error) = FitPlan::parse(text) {
        assert!(lines.contains(&error.line));
    }
    match with_fitted(text, &HostModel::default()) {
        Ok(written) => assert_eq!(fitted_fields(&written), fitted_fields(text)),
        Err(error) => assert!(lines.contains(&error.line)),
    }
});
