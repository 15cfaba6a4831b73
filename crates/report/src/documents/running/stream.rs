//! The output of a command that prints while it runs, and lines that several such commands share.
//!
//! Each part is printed at once. Only parts of one object at the end are stored until then.

use nicpoll_model::RunDocument;
use nicpoll_model::engine::{LinkEvent, SinkVariable};
use nicpoll_model::numbers::counted;
use serde::Serialize;

use crate::fields::{filled_lines, section};
use crate::json::{render_document, render_event};

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageForm {
    /// Lines for people.
    Text,
    /// One object at the end.
    Json,
    /// An object a line.
    JsonStream,
}

impl PageForm {
    /// Returns the form for these options.
    pub fn of(json: bool, json_stream: bool) -> Self {
        match (json, json_stream) {
            (true, _) => PageForm::Json,
            (false, true) => PageForm::JsonStream,
            (false, false) => PageForm::Text,
        }
    }
}

/// The texts of a command's output for people, and the name of its single object.
#[derive(Clone, Copy, Debug)]
pub struct PageTexts<S, I, E> {
    /// Name and version of the object's layout.
    pub schema: &'static str,
    /// Renders the request, and the columns' names.
    pub start: fn(&S) -> String,
    /// Renders an interval, as one line.
    pub interval: fn(&I) -> String,
    /// Renders the final account.
    pub end: fn(&E) -> String,
}

/// Renders the parts, and stores them for one object at the end.
#[derive(Debug)]
pub struct RunPage<S, I, E> {
    form: PageForm,
    texts: PageTexts<S, I, E>,
    pub(super) start: Option<S>,
    pub(super) intervals: Vec<I>,
    pub(super) end: Option<E>,
}

impl<S, I, E> RunPage<S, I, E>
where
    S: Clone + Serialize,
    I: Clone + Serialize,
    E: Clone + Serialize,
{
    /// Makes an empty output.
    pub fn new(form: PageForm, texts: PageTexts<S, I, E>) -> Self {
        RunPage {
            form,
            texts,
            start: None,
            intervals: Vec::new(),
            end: None,
        }
    }

    /// Returns the form.
    pub fn form(&self) -> PageForm {
        self.form
    }

    /// Renders the start.
    pub fn start(&mut self, start: &S) -> String {
        if self.form == PageForm::Json {
            self.start = Some(start.clone());
        }
        self.part("start", start, self.texts.start)
    }

    /// Renders an interval that has ended.
    pub fn interval(&mut self, interval: &I) -> String {
        if self.form == PageForm::Json {
            self.intervals.push(interval.clone());
        }
        self.part("interval", interval, self.texts.interval)
    }

    /// Renders an event of an interface. For people it is not part of the output.
    pub fn link(&self, event: &LinkEvent) -> String {
        self.part("link", event, |_| String::new())
    }

    /// Renders the end.
    pub fn end(&mut self, end: &E) -> String {
        if self.form == PageForm::Json {
            self.end = Some(end.clone());
        }
        self.part("end", end, self.texts.end)
    }

    /// Returns the single object of a finished run; empty in another form.
    pub fn document(self) -> String {
        let ends = self.start.zip(self.end);
        ends.map_or_else(String::new, |(start, end)| {
            render_document(&RunDocument {
                schema: String::from(self.texts.schema),
                start,
                intervals: self.intervals,
                end,
            })
        })
    }

    fn part<T: Serialize>(&self, event: &'static str, part: &T, text: fn(&T) -> String) -> String {
        match self.form {
            PageForm::Text => text(part),
            PageForm::JsonStream => render_event(event, part),
            PageForm::Json => String::new(),
        }
    }
}

/// A column of interval lines: its name, its width, and a function of an interval and its length in seconds.
pub(super) type IntervalColumn<I> = (&'static str, usize, fn(&I, f64) -> String);

/// Renders the columns' names, below an empty line.
pub(super) fn heads<I>(columns: &[IntervalColumn<I>]) -> String {
    let heads = columns.iter();
    let heads: String = heads
        .map(|(name, width, _)| format!(" {name:>width$}"))
        .collect();
    format!("\n{:>8}{heads}\n", "seconds")
}

/// Renders an interval between two times.
pub(super) fn line<I>(
    columns: &[IntervalColumn<I>],
    interval: &I,
    [start, end]: [f64; 2],
) -> String {
    let cells = columns.iter();
    let cells: String = cells
        .map(|(_, width, read)| format!(" {:>width$}", read(interval, end - start)))
        .collect();
    format!("{end:>8.1}{cells}\n")
}

/// Renders lines of a document by their name among those of running commands.
pub(super) fn lines(name: &str, document: &impl Serialize) -> String {
    filled_lines(section(include_str!("lines.txt"), name), document)
}

/// Renders findings of an interface's status checks.
pub(super) fn of_the_link(interface: &str, losses: u64, mtu_changes: u64) -> String {
    let events = [
        (losses, " went down or away"),
        (mtu_changes, "'s MTU was changed"),
    ];
    let events = events.into_iter().filter(|(events, _)| *events > 0);
    events
        .map(|(events, what)| {
            let times = counted(events as u32, "time");
            format!("{interface}{what} {times}.\n")
        })
        .collect()
}

/// Renders knobs and counters, a line each; `of` names their CPU.
pub(super) fn variables(of: &str, variables: &[SinkVariable]) -> String {
    let variables = variables.iter();
    variables
        .map(|it| format!("kern.polling.{of}{}: {}\n", it.name, it.value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: PageTexts<u32, u32, u32> = PageTexts {
        schema: "nicpoll.count/1",
        start: |from| format!("from {from}\n"),
        interval: |now| format!("{now}\n"),
        end: |sum| format!("{sum} in all\n"),
    };

    fn printed(form: PageForm) -> [String; 4] {
        let mut page = RunPage::new(form, TEXTS);
        [
            page.start(&1),
            page.interval(&2),
            page.end(&3),
            page.document(),
        ]
    }

    #[test]
    fn each_part_is_printed_once_when_it_is_there() {
        assert_eq!(
            printed(PageForm::Text),
            ["from 1\n", "2\n", "3 in all\n", ""]
        );
        assert_eq!(
            printed(PageForm::JsonStream),
            [
                "{\"event\":\"start\",\"data\":1}\n",
                "{\"event\":\"interval\",\"data\":2}\n",
                "{\"event\":\"end\",\"data\":3}\n",
                ""
            ]
        );
        let [start, interval, end, document] = printed(PageForm::Json);
        assert_eq!([start, interval, end], [""; 3]);
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        let whole = serde_json::json!({
            "schema": "nicpoll.count/1", "start": 1, "intervals": [2], "end": 3
        });
        assert_eq!(document, whole);
    }
}
