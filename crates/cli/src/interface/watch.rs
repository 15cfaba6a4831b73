//! `nicpoll watch`: interfaces, CPUs, interrupts, polls and drops, live.
//!
//! The screen, the text and the JSON lines show the same samples. However the screen ends, the terminal and every
//! interface are restored.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use nicpoll_inspect::{STORM_THRESHOLD, Watch, WatchOptions, inside};
use nicpoll_model::{WatchSample, WatchStart};
use nicpoll_report::{
    WatchScale, WatchView, draw_watch, render_event, render_watch_start, render_watch_text,
};
use nicpoll_switch::{Journal, Toggles, guard_of_this_program};
use nicpoll_sys::tell;
use nicpoll_traffic::signals::Stop;
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use signal_hook::consts::SIGINT;
use signal_hook::low_level::raise;

use super::metrics::{Metrics, MetricsArgs};
use crate::failure::{Failure, over};
use crate::options::{number, parse_interval};
use crate::output::{self, in_locale, origin, print};
use crate::reading::Answering;

/// How often the loop checks for a signal.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs the command and returns its exit code.
pub fn watch(args: &WatchArgs) -> Result<u8, Failure> {
    let stop = Stop::noted().context("catching signals")?;
    let answering = args.metrics.start()?;
    stop.at_once_on_another().context("catching signals")?;
    let stop = Arc::new(stop);
    match &args.netns {
        None => run(args, answering, &stop)?,
        Some(name) => {
            let (args, stop) = (args.clone(), Arc::clone(&stop));
            inside(name, move || run(&args, answering, &stop))?;
        }
    }
    Ok(over(&stop))
}

fn run(args: &WatchArgs, answering: Option<Answering>, stop: &Stop) -> Result<(), Failure> {
    let watch = Watch::begin(&args.options(), origin(), args.netns.as_deref())?;
    let metrics = answering.map(Metrics::serve).transpose()?;
    let mut watch = ServedWatch { watch, metrics };
    let is_screen = !args.plain && !args.json_stream && io::stdout().is_terminal();
    if is_screen {
        run_screen(args, &mut watch, stop)
    } else {
        lines(args, &mut watch, stop)
    }
}

/// A watch whose samples may be served.
struct ServedWatch {
    watch: Watch,
    metrics: Option<Metrics>,
}

impl ServedWatch {
    /// Returns the next sample, as [`Watch::interval`]; `None` also after the last that is wanted.
    fn next(
        &mut self,
        args: &WatchArgs,
        wait: impl FnOnce(Instant) -> Result<bool, Failure>,
    ) -> Result<Option<WatchSample>, Failure> {
        if args
            .count
            .is_some_and(|count| self.watch.intervals() >= count)
        {
            return Ok(None);
        }
        let sample = self.watch.interval(wait)?;
        if let (Some(metrics), Some(sample)) = (&mut self.metrics, &sample) {
            metrics.tell(sample)?;
        }
        Ok(sample)
    }
}

/// Prints each interval as text or JSON; nothing if metrics are served and neither is asked for.
fn lines(args: &WatchArgs, watch: &mut ServedWatch, stop: &Stop) -> Result<(), Failure> {
    let is_quiet = watch.metrics.is_some() && !args.plain && !args.json_stream;
    let print = |text: &str, json: String| match is_quiet {
        true => Ok(()),
        false => print(if args.json_stream { &json } else { text }),
    };
    let start = watch.watch.start().clone();
    print(&render_watch_start(&start), render_event("start", &start))?;
    while let Some(sample) = watch.next(args, |until| Ok(stop.wait_until(until)))? {
        let text = render_watch_text(&sample, args.scale, start.storm_threshold_entries);
        print(&text, render_event("interval", &sample))?;
    }
    if args.json_stream {
        output::print(&render_event("end", &watch.watch.end()))?;
    }
    Ok(())
}

/// The state that keys change.
struct WatchState {
    start: WatchStart,
    sample: Option<WatchSample>,
    scale: WatchScale,
    selected: usize,
    message: String,
    toggles: Option<Toggles>,
}

/// Shows the watch until it ends, is quit or is signalled.
fn run_screen(args: &WatchArgs, watch: &mut ServedWatch, stop: &Stop) -> Result<(), Failure> {
    let start = watch.watch.start().clone();
    let mut state = WatchState {
        message: String::from(render_watch_start(&start).trim_end()),
        start,
        sample: None,
        scale: args.scale,
        selected: 0,
        toggles: None,
    };
    stop.before_end_at_once(|| {
        // A failure cannot be reported any more.
        let _ = restore_terminal();
    });
    let mut terminal = ratatui::try_init().context("setting up the screen")?;
    let shown = show(args, watch, &mut state, &mut terminal, stop);
    let restored = restore_terminal().context("putting the terminal back");
    let undone = state
        .toggles
        .as_mut()
        .map_or(Ok(Vec::new()), Toggles::restore);
    shown?;
    restored?;
    for name in undone? {
        tell!("nicpoll: {name}: every value is as it was");
    }
    Ok(())
}

/// Restores the terminal and the cursor, which drawing hides.
fn restore_terminal() -> io::Result<()> {
    ratatui::try_restore()?;
    execute!(io::stdout(), Show)
}

fn show(
    args: &WatchArgs,
    watch: &mut ServedWatch,
    state: &mut WatchState,
    terminal: &mut DefaultTerminal,
    stop: &Stop,
) -> Result<(), Failure> {
    loop {
        state.draw(terminal)?;
        match watch.next(args, |until| wait(until, state, terminal, stop))? {
            Some(sample) => state.take(sample),
            None => return Ok(()),
        }
    }
}

/// Handles keys until the deadline, and those that wait already when it has passed: a sample may take longer than an
/// interval. Returns `false` when the watch is over.
fn wait(
    until: Instant,
    state: &mut WatchState,
    terminal: &mut DefaultTerminal,
    stop: &Stop,
) -> Result<bool, Failure> {
    loop {
        if stop.asked().load(Ordering::Relaxed) {
            return Ok(false);
        }
        let left = until.saturating_duration_since(Instant::now());
        if !event::poll(left.min(LOOK_EVERY)).context("waiting for a key")? {
            match left {
                Duration::ZERO => return Ok(true),
                _ => continue,
            }
        }
        match event::read().context("reading a key")? {
            Event::Key(key) => match state.answer(key) {
                Some(true) => {}
                Some(false) => return Ok(false),
                None => continue,
            },
            Event::Resize(..) => {}
            _ => continue,
        }
        state.draw(terminal)?;
    }
}

impl WatchState {
    fn draw(&self, terminal: &mut DefaultTerminal) -> Result<(), Failure> {
        let view = WatchView {
            start: &self.start,
            sample: self.sample.as_ref(),
            scale: self.scale,
            selected: self.selected,
            message: &self.message,
            in_locale,
        };
        let drawn = terminal.draw(|frame| draw_watch(frame, &view));
        drawn.context("drawing the screen")?;
        Ok(())
    }

    /// Takes the next sample. The selected interface stays selected while it exists.
    fn take(&mut self, sample: WatchSample) {
        let name = self.selected_name();
        let names: Vec<&str> = names(Some(&sample)).collect();
        let still = names.iter().position(|one| Some(*one) == name.as_deref());
        self.selected = still.unwrap_or(0);
        self.sample = Some(sample);
    }

    fn selected_name(&self) -> Option<String> {
        names(self.sample.as_ref())
            .nth(self.selected)
            .map(String::from)
    }

    /// Handles a key: `Some(false)` if it ends the watch, `None` if it has no meaning.
    fn answer(&mut self, key: KeyEvent) -> Option<bool> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        // In raw mode the terminal sends no signal for Ctrl-C.
        let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL);
        let last = names(self.sample.as_ref()).count().saturating_sub(1);
        match key.code {
            KeyCode::Char('c') if is_interrupt => {
                // Then the exit code is the signal's.
                let _ = raise(SIGINT);
                return Some(false);
            }
            KeyCode::Char('q') | KeyCode::Esc => return Some(false),
            KeyCode::Char('s') => self.scale = self.scale.next(),
            KeyCode::Char('p') => self.switch_polling(),
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected = (self.selected + 1).min(last),
            _ => return None,
        }
        Some(true)
    }

    fn switch_polling(&mut self) {
        let Some(name) = self.selected_name() else {
            return;
        };
        self.message = match self.toggle(&name) {
            Ok(true) => format!("{name} polls until this watch ends, or p is pressed again"),
            Ok(false) => format!("{name}: every value is as it was"),
            Err(failure) => failure.to_string(),
        };
    }

    fn toggle(&mut self, name: &str) -> Result<bool, Failure> {
        let toggles = match self.toggles.take() {
            Some(toggles) => toggles,
            None => {
                let guard = guard_of_this_program().context("finding this program")?;
                Toggles::of_caller(Journal::of_this_machine(), guard)?
            }
        };
        Ok(self.toggles.insert(toggles).toggle(name)?)
    }
}

fn names(sample: Option<&WatchSample>) -> impl Iterator<Item = &str> {
    let interfaces = sample.and_then(|sample| sample.interfaces.as_deref());
    let interfaces = interfaces.unwrap_or_default().iter();
    interfaces.map(|interface| interface.name.as_str())
}

/// Options of `nicpoll watch`.
#[derive(Args, Clone, Debug)]
#[command(after_help = include_str!("../help/watch-examples.txt"))]
pub struct WatchArgs {
    /// Interfaces [default: all but the loopback]
    #[arg(value_name = "IF")]
    pub interfaces: Vec<String>,
    /// Print a block of text per interval; the default without a terminal
    #[arg(long, conflicts_with = "json_stream")]
    pub plain: bool,
    /// Print one JSON object per line: start, each interval, end (docs/schema.md)
    #[arg(long)]
    pub json_stream: bool,
    /// Length of an interval, in seconds or with a unit
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    pub interval: Duration,
    /// Exit after N intervals
    #[arg(long, value_name = "N", value_parser = number::<u64>(1..))]
    pub count: Option<u64>,
    /// Unit of rates: bits, bytes or packets
    #[arg(long, value_name = "SCALE", default_value = "bits", value_parser = parse_scale)]
    pub scale: WatchScale,
    /// Back-to-back handler entries that count as a storm (hw.intr_storm_threshold); 0: off
    #[arg(long, value_name = "N", default_value_t = STORM_THRESHOLD, value_parser = number::<u64>(..))]
    pub storm_threshold: u64,
    /// Network namespace to watch: a name from 'ip netns', or a path
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    #[command(flatten)]
    pub metrics: MetricsArgs,
}

impl WatchArgs {
    /// Returns what to watch.
    pub fn options(&self) -> WatchOptions {
        WatchOptions {
            interfaces: self.interfaces.clone(),
            interval: self.interval,
            storm_threshold: self.storm_threshold,
        }
    }
}

fn parse_scale(text: &str) -> Result<WatchScale, String> {
    WatchScale::ALL
        .into_iter()
        .find(|scale| scale.name() == text)
        .ok_or_else(|| String::from("a scale is bits, bytes or packets"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_its_bounds() {
        assert_eq!(parse_interval("2"), Ok(Duration::from_secs(2)));
        assert!(parse_interval("50ms").is_err());
        assert!(parse_interval("2h").is_err());
        assert!(parse_scale("bit").is_err());
    }
}
