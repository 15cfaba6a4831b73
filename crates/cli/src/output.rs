//! Standard output, which carries results only.

use std::env;
use std::io::{self, IsTerminal};

use nicpoll_model::Origin;
use nicpoll_report::TextOptions;
use nicpoll_sys::stdout;
use ratatui::crossterm::terminal;

/// Who makes the document that is to be printed: this program, now.
pub fn origin() -> Origin {
    Origin {
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        argv: env::args().collect(),
        started_at: now(),
    }
}

/// Now, to the second (RFC 3339, UTC).
pub fn now() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}

/// Writes to standard output and flushes it.
pub fn print(text: &str) -> anyhow::Result<()> {
    Ok(stdout::print(text)?)
}

/// How text for standard output is to look: as wide as the terminal, and coloured unless `NO_COLOR` is set.
pub fn text_options() -> TextOptions {
    let is_terminal = io::stdout().is_terminal();
    let size = is_terminal.then(|| terminal::size().ok()).flatten();
    TextOptions {
        width: size.map_or(100, |(columns, _)| usize::from(columns)),
        color: is_terminal && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}
