//! `nicpoll watch`: interfaces, CPUs, interrupts, polls and drops as they go.
//!
//! What must hold: the screen, the text and the JSON lines are made of the same samples.

mod args;
mod screen;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use nicpoll_inspect::{Watch, inside};
use nicpoll_report::{render_event, render_watch_start, render_watch_text};

pub use self::args::{ABOUT, WatchArgs};
use crate::failure::{Failure, over};
use crate::output::{self, origin, print};
use crate::stop::Stop;

/// How often it is looked whether a signal came.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs the command and returns its exit code.
pub fn watch(args: &WatchArgs) -> Result<u8, Failure> {
    let stop = Arc::new(Stop::on_signals().context("catching signals")?);
    match &args.netns {
        None => run(args, &stop)?,
        Some(name) => {
            let (args, stop) = (args.clone(), Arc::clone(&stop));
            inside(name, move || run(&args, &stop))?;
        }
    }
    Ok(over(&stop))
}

fn run(args: &WatchArgs, stop: &Stop) -> Result<(), Failure> {
    let mut watch = Watch::begin(&args.options(), origin(), args.netns.as_deref())?;
    let is_screen = !args.plain && !args.json_stream && io::stdout().is_terminal();
    if is_screen {
        screen::run(args, &mut watch, stop)
    } else {
        lines(args, &mut watch, stop)
    }
}

/// Prints each interval as text or JSON.
fn lines(args: &WatchArgs, watch: &mut Watch, stop: &Stop) -> Result<(), Failure> {
    let print = |text: &str, json: String| print(if args.json_stream { &json } else { text });
    let start = watch.start().clone();
    print(&render_watch_start(&start), render_event("start", &start))?;
    while is_wanted(args, watch) {
        let waited = watch.interval(|until| Ok::<_, Failure>(stop.wait_until(until)))?;
        let Some(sample) = waited else { break };
        let text = render_watch_text(&sample, args.scale, start.storm_threshold);
        print(&text, render_event("interval", &sample))?;
    }
    if args.json_stream {
        output::print(&render_event("end", &watch.end()))?;
    }
    Ok(())
}

fn is_wanted(args: &WatchArgs, watch: &Watch) -> bool {
    args.count.is_none_or(|count| watch.intervals() < count)
}
