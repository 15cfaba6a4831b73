//! Progress of a study on a terminal: a bar with the time left, on standard error, and nothing
//! anywhere else.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use nicpoll_model::{Conduct, Plan};
use nicpoll_study::Progress;

/// What a trial takes besides its traffic: switching, draining, reading counters.
const OVERHEAD_SECONDS: f64 = 0.08;

/// A bar that follows a study; invisible when standard error is not a terminal.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar for the trials of a plan.
    pub fn new(plan: &Plan) -> Self {
        let bar = ProgressBar::new(plan.order.len() as u64);
        let per_trial =
            plan.warmup_seconds + plan.trial_seconds + plan.cpu_window_seconds + OVERHEAD_SECONDS;
        let style = ProgressStyle::with_template(
            "{spinner} {bar:30} trial {pos}/{len}  {elapsed} gone, about {left} left  {msg}",
        );
        if let Ok(style) = style {
            // Every trial takes as long as it was planned, so there is no need to extrapolate.
            bar.set_style(style.with_key(
                "left",
                move |state: &ProgressState, out: &mut dyn Write| {
                    let trials = state.len().unwrap_or(0).saturating_sub(state.pos());
                    let left = Duration::from_secs_f64((trials as f64 * per_trial).round());
                    let _ = write!(out, "{}", HumanDuration(left));
                },
            ));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar(bar)
    }

    /// Shows what the study tells.
    pub fn show(&self, progress: Progress<'_>) {
        match progress {
            Progress::MeasuringCost => self.0.set_message("measuring what counting costs"),
            Progress::Rehearsing => self.0.set_message("setting the timer right"),
            Progress::Begins { place } => {
                self.0
                    .set_message(format!("{} under {}", place.workload, place.setting));
            }
            Progress::Ends(trial) => {
                let Conduct {
                    external, failure, ..
                } = &trial.conduct;
                if let Some(reason) = external.as_ref().or(failure.as_ref()) {
                    self.0.println(format!(
                        "{} under {}: {reason}",
                        trial.workload, trial.setting
                    ));
                }
                self.0.inc(1);
            }
        }
    }
}

impl Drop for Bar {
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
