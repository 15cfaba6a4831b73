//! Progress on a terminal: one line on standard error with the time left, and nothing elsewhere.
//!
//! The line never wraps; it begins with what matters most.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use nicpoll_model::{Plan, Validity};
use nicpoll_study::Progress;

/// A line that follows a study; invisible when standard error is not a terminal.
pub struct Line(ProgressBar);

impl Line {
    /// A line for a plan. Says how long the study takes at the most.
    pub fn new(plan: &Plan) -> Self {
        let line = ProgressBar::new_spinner();
        // What does not fit into the terminal's width is left out.
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            line.set_style(style);
        }
        line.enable_steady_tick(Duration::from_millis(200));
        line.println(format!("This ends within {:.0} s.", plan.limit_seconds));
        Line(line)
    }

    /// Shows what the study tells.
    pub fn show(&self, progress: Progress<'_>) {
        match progress {
            Progress::SeekingKnee => self.0.set_message("seeking the greatest rate that is held"),
            Progress::MeasuringCost => self.0.set_message("measuring what counting costs"),
            Progress::Rehearsing => self.0.set_message("setting the timer right"),
            Progress::Begins { place, left } => self.0.set_message(format!(
                "{:.0} s left, trial {}, block {}: {} under {}",
                left.as_secs_f64(),
                place.sequence,
                place.block,
                place.workload,
                place.setting
            )),
            Progress::Ends(trial) => {
                let Validity {
                    external, failure, ..
                } = &trial.validity;
                if let Some(reason) = external.as_ref().or(failure.as_ref()) {
                    self.0.println(format!(
                        "{} under {}: {reason}",
                        trial.workload, trial.setting
                    ));
                }
            }
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// What is being done just now, for work whose end is near; invisible when standard error is not a terminal.
pub struct Spinner(ProgressBar);

impl Spinner {
    /// One without a word yet.
    pub fn new() -> Self {
        let spinner = ProgressBar::new_spinner();
        spinner.enable_steady_tick(Duration::from_millis(200));
        Spinner(spinner)
    }

    /// Says something above the line, to stay there.
    pub fn say(&self, what: String) {
        self.0.println(what);
    }

    /// Says what is done from now on.
    pub fn show(&self, what: String) {
        self.0.set_message(what);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
