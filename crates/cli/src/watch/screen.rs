//! The screen: drawn from a sample, and kept up while the watch goes on.
//!
//! What must hold: however it ends, the terminal is as it was, and so is every interface.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use nicpoll_inspect::Watch;
use nicpoll_model::{WatchSample, WatchStart};
use nicpoll_report::{WatchScale, WatchView, draw_watch, render_watch_start};
use nicpoll_switch::{Journal, Toggles, guard_of_this_program};
use nicpoll_sys::tell;
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;

use super::{LOOK_EVERY, WatchArgs, is_wanted};
use crate::failure::Failure;
use crate::output::in_locale;
use crate::stop::Stop;

/// What the keys have changed.
struct State {
    start: WatchStart,
    sample: Option<WatchSample>,
    scale: WatchScale,
    selected: usize,
    message: String,
    toggles: Option<Toggles>,
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Quit,
    Scale,
    Polling,
    Up,
    Down,
}

/// Shows the watch until it ends, is quit or is signalled.
pub fn run(args: &WatchArgs, watch: &mut Watch, stop: &Stop) -> Result<(), Failure> {
    let mut state = State {
        message: String::from(render_watch_start(watch.start()).trim_end()),
        start: watch.start().clone(),
        sample: None,
        scale: args.scale,
        selected: 0,
        toggles: None,
    };
    stop.before_end_at_once(|| {
        // Nobody is left to be told.
        let _ = put_back();
    });
    let mut terminal = ratatui::try_init().context("setting up the screen")?;
    let shown = show(args, watch, &mut state, &mut terminal, stop);
    let restored = put_back().context("putting the terminal back");
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

/// Makes the terminal what it was: drawing hides the cursor.
fn put_back() -> io::Result<()> {
    ratatui::try_restore()?;
    execute!(io::stdout(), Show)
}

fn show(
    args: &WatchArgs,
    watch: &mut Watch,
    state: &mut State,
    terminal: &mut DefaultTerminal,
    stop: &Stop,
) -> Result<(), Failure> {
    while is_wanted(args, watch) {
        state.draw(terminal)?;
        let waited = watch.interval(|until| wait(until, state, terminal, stop))?;
        let Some(sample) = waited else { break };
        state.take(sample);
    }
    Ok(())
}

/// Answers keys until then. `false` when the watch is over.
fn wait(
    until: Instant,
    state: &mut State,
    terminal: &mut DefaultTerminal,
    stop: &Stop,
) -> Result<bool, Failure> {
    loop {
        if stop.asked().load(Ordering::Relaxed) {
            return Ok(false);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left == Duration::ZERO {
            return Ok(true);
        }
        if !event::poll(left.min(LOOK_EVERY)).context("waiting for a key")? {
            continue;
        }
        match event::read().context("reading a key")? {
            Event::Key(key) => match action(key) {
                Some(Action::Quit) => return Ok(false),
                Some(action) => state.act(action),
                None => continue,
            },
            Event::Resize(..) => {}
            _ => continue,
        }
        state.draw(terminal)?;
    }
}

fn action(key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    // A terminal in raw mode makes no signal of it.
    let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if is_interrupt => Some(Action::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Action::Quit),
        KeyCode::Char('s') => Some(Action::Scale),
        KeyCode::Char('p') => Some(Action::Polling),
        KeyCode::Up => Some(Action::Up),
        KeyCode::Down => Some(Action::Down),
        _ => None,
    }
}

impl State {
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

    /// The next sample. What is selected stays so while it is there.
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

    fn act(&mut self, action: Action) {
        let last = names(self.sample.as_ref()).count().saturating_sub(1);
        match action {
            Action::Scale => self.scale = self.scale.next(),
            Action::Up => self.selected = self.selected.saturating_sub(1),
            Action::Down => self.selected = (self.selected + 1).min(last),
            Action::Polling => {
                if let Some(name) = self.selected_name() {
                    self.message = match self.toggle(&name) {
                        Ok(true) => {
                            format!("{name} polls until this watch ends, or p is pressed again")
                        }
                        Ok(false) => format!("{name}: every value is as it was"),
                        Err(failure) => failure.to_string(),
                    };
                }
            }
            Action::Quit => {}
        }
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
