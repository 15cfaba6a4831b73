//! Progress of a study on a terminal: a bar with the time left, on standard error, and nothing
//! anywhere else.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use nicpoll_lab::Progress;

/// A bar that follows a study; invisible when standard error is not a terminal.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar for `trials` trials.
    pub fn new(trials: u64) -> Self {
        let bar = ProgressBar::new(trials);
        let style = ProgressStyle::with_template(
            "{spinner} {bar:30} trial {pos}/{len}  {elapsed} gone, {eta} left  {msg}",
        );
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar(bar)
    }

    /// Shows what the study tells.
    pub fn show(&self, progress: Progress<'_>) {
        match progress {
            Progress::MeasuringCost => self.0.set_message("measuring what counting costs"),
            Progress::Begins { place, trials } => {
                self.0.set_length(u64::from(trials));
                self.0
                    .set_message(format!("{} under {}", place.workload, place.setting));
            }
            Progress::Ends(trial) => {
                if let Some(reason) = &trial.void {
                    self.0.println(format!(
                        "void: {} under {}: {reason}",
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
