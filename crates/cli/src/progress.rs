//! Progress: one line on standard error with the time left, only if that is a terminal.
//!
//! The line never wraps; its beginning matters most.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use nicpoll_model::Plan;
use nicpoll_study::StudyProgress;
use nicpoll_sys::stdio;

/// A line that follows a study; invisible when standard error is not a terminal.
pub struct StudyLine(Spinner);

impl StudyLine {
    /// Starts the line of a plan, and prints how long the study takes at most.
    pub fn new(plan: &Plan) -> Self {
        let line = Spinner::new();
        // Text beyond the terminal's width is cut.
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            line.0.set_style(style);
        }
        line.say(format!("This {}.", plan.time()));
        StudyLine(line)
    }

    /// Shows an event of the study.
    pub fn show(&self, progress: StudyProgress<'_>) {
        if let StudyProgress::Ends(trial) = progress {
            let validity = &trial.validity;
            if let Some(reason) = validity.external.as_ref().or(validity.failure.as_ref()) {
                let (workload, setting) = (&trial.workload, &trial.setting);
                self.0.say(format!("{workload} under {setting}: {reason}"));
            }
            return;
        }
        self.0.show(progress.to_string());
    }
}

/// Shows the current step of short work; invisible when standard error is not a terminal.
pub struct Spinner(ProgressBar);

impl Spinner {
    /// Starts a spinner without text.
    pub fn new() -> Self {
        let spinner = ProgressBar::new_spinner();
        spinner.enable_steady_tick(Duration::from_millis(200));
        Spinner(spinner)
    }

    /// Prints text above the line, where it stays.
    pub fn say(&self, what: String) {
        self.0.println(stdio::visible(&what, false));
    }

    /// Shows the current step.
    pub fn show(&self, what: String) {
        self.0
            .set_message(stdio::visible(&what, false).into_owned());
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
