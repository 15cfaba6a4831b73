//! Standard output: results only, in words that the terminal can show.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::{env, fs};

use anyhow::Context;
use nicpoll_model::{Origin, Study};
use nicpoll_report::{
    Document, Page, TextOptions, brief_page, render_document, render_html, render_json,
    render_text, with_micros,
};
use nicpoll_sys::{stdio, tell};
use ratatui::crossterm::terminal;
use serde::Serialize;

use crate::failure::Failure;

/// Returns the origin of a document made by this program, now.
pub fn origin() -> Origin {
    Origin {
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        argv: env::args().collect(),
        started_at: now(),
    }
}

/// Returns the current time, to the second (RFC 3339, UTC).
pub fn now() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}

/// Writes to standard output and flushes it. Documents for programs are not changed.
pub fn print(text: &str) -> anyhow::Result<()> {
    if text.starts_with('{') {
        return Ok(stdio::print(text)?);
    }
    let text = in_locale(text);
    let printed = match text_options().color {
        true => stdio::print_coloured(&text),
        false => stdio::print(&text),
    };
    Ok(printed?)
}

/// Prints a document as JSON or as its page.
pub fn print_document<T: Document + Serialize>(document: &T, json: bool) -> Result<(), Failure> {
    Ok(print(&rendered(document, json, &text_options()))?)
}

/// A document as JSON or as its page.
pub fn rendered<T: Document + Serialize>(
    document: &T,
    json: bool,
    options: &TextOptions,
) -> String {
    match json {
        true => render_document(document),
        false => render_text(document, options),
    }
}

/// Prints a document as JSON, or as text.
pub fn print_either<T: Serialize>(
    document: &T,
    json: bool,
    text: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    Ok(print(&match json {
        true => render_document(document),
        false => text(document),
    })?)
}

/// Prints a study: as JSON, as its first screen, or as the whole page.
pub fn print_study(study: &Study, json: bool, brief: bool) -> Result<(), Failure> {
    Ok(print(&rendered_study(study, json, brief, &text_options()))?)
}

/// A study as JSON, as its first screen, or as the whole page.
pub fn rendered_study(study: &Study, json: bool, brief: bool, options: &TextOptions) -> String {
    match (json, brief) {
        (true, _) => render_json(study),
        (false, true) => render_text(&brief_page(study), options),
        (false, false) => render_text(study, options),
    }
}

/// Refuses a report file that cannot be written, before anything is measured.
pub fn require_place_for(report: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = report else { return Ok(()) };
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
    let is_place = !file.is_dir() && folder.is_none_or(Path::is_dir);
    is_place.then_some(()).ok_or_else(|| {
        let file = file.display();
        Failure::Usage(format!(
            "--report {file}: name a file in an existing folder"
        ))
    })
}

/// Writes the page of a document to its file, if one was named.
pub fn write_page<'a>(
    file: Option<&Path>,
    page: impl FnOnce(&[String]) -> Page<'a>,
) -> Result<(), Failure> {
    file.map_or(Ok(()), |file| {
        write_report(file, &render_html(&page(&origin().argv)))
    })
}

/// Writes a plot to its file, if one was named.
pub fn write_plot(file: Option<&Path>, plot: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    let written = fs::write(file, &*stdio::visible(&plot(), false));
    Ok(written.with_context(|| format!("cannot write the plot to {}", file.display()))?)
}

/// Writes a report to a file, and prints where.
pub fn write_report(file: &Path, text: &str) -> Result<(), Failure> {
    write_file(file, "The report", text)
}

/// Writes what `name` says to a file, and prints where.
pub fn write_file(file: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let text = stdio::visible(text, false);
    fs::write(file, &*text).with_context(|| format!("writing to {}", file.display()))?;
    tell!("{name} is in {}.", file.display());
    Ok(())
}

/// Writes microseconds in text as the locale can show them: `200 us` becomes `200 µs` in UTF-8, and `20µs` becomes
/// `20us` elsewhere.
pub fn in_locale(text: &str) -> String {
    // The first variable that is set counts (POSIX, 8.2).
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let set = names
        .into_iter()
        .filter_map(env::var_os)
        .find(|value| !value.is_empty());
    let locale = set
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    with_micros(text, locale.contains("utf-8") || locale.contains("utf8"))
}

/// Returns the columns of the terminal; `None` if standard output is none.
pub fn terminal_width() -> Option<usize> {
    let is_terminal = io::stdout().is_terminal();
    let size = is_terminal.then(|| terminal::size().ok()).flatten();
    size.map(|(columns, _)| usize::from(columns))
}

/// Options of text on standard output: the terminal's width, and colours unless `NO_COLOR` is set.
pub fn text_options() -> TextOptions {
    TextOptions {
        width: terminal_width().unwrap_or(100),
        color: io::stdout().is_terminal()
            && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}
