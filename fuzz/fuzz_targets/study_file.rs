//! Any text may be handed over as a study file. Reading it never panics; what is refused is refused
//! with a line that the text has; what is accepted can be planned or is refused in words, and a plan has no trial of
//! a workload or setting that the study does not have.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_stats::order::Seed;
use nicpoll_study::StudyFile;

fuzz_target!(|text: &str| {
    match StudyFile::parse(text) {
        Ok(file) => {
            let Ok(planned) = file.plan(Seed(1)) else {
                return;
            };
            let design = &file.design;
            for (workload, setting) in &planned.plan.order {
                assert!(design.workload(workload).is_some());
                assert!(design.setting(setting).is_some());
            }
            assert!(planned.plan.limit_seconds.is_finite());
        }
        Err(error) => assert!((1..=text.lines().count() + 1).contains(&error.line)),
    }
});
