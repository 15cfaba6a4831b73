//! The studies of a store: as text, and as the linked pages of `nicpoll serve`.
//!
//! All links lead to pages of the same server.

use std::fmt::Write as _;
use std::{array, iter};

use nicpoll_model::{ReadyStudy, Studies, StudiesAction, StudyEntry, StudyKind, StudyState};

use crate::fields::filled;
use crate::page::{Align, Cell, Document, Extra, Ink, Medium, Page, Rank, Row, Table};

/// Renders the studies of a store, or the deleted ones, as text with a newline at its end.
pub fn render_studies_text(studies: &Studies) -> String {
    let Studies {
        store,
        action,
        studies,
        ready,
        ..
    } = studies;
    if studies.is_empty() {
        return format!("No studies are stored in {store}.\n{}", ready_text(ready));
    }
    let title = match action {
        StudiesAction::Listed => "Studies in",
        StudiesAction::WouldDelete => "Would be deleted from",
        StudiesAction::Deleted => "Deleted from",
    };
    let mut text = format!("{title} {store}:\n\n");
    let head = ["id", "started", "state", "trials", "command"].map(String::from);
    let rows: Vec<[String; 5]> = iter::once(head).chain(studies.iter().map(row)).collect();
    let widths: [usize; 4] = array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].len());
        cells.max().unwrap_or(0)
    });
    for [id, started, state, trials, command] in &rows {
        let [a, b, c, d] = widths;
        let line = format!("{id:>a$}  {started:<b$}  {state:<c$}  {trials:>d$}  {command}");
        text += line.trim_end();
        text.push('\n');
    }
    let early = studies.iter().filter(|study| study.reason.is_some());
    for (index, study) in early.enumerate() {
        let gap = if index == 0 { "\n" } else { "" };
        text += &format!("{gap}{}\n", filled("{id:raw} ended early: {reason}", study));
    }
    text + &ready_text(ready)
}

/// Renders the ready studies with their questions; empty if the document has none.
fn ready_text(ready: &[ReadyStudy]) -> String {
    if ready.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nReady studies, for 'nicpoll study run NAME':\n\n");
    let width = ready.iter().map(|study| study.name.len()).max();
    for ReadyStudy { name, question } in ready {
        let _ = writeln!(text, "{name:<0$}  {question}", width.unwrap_or(0));
    }
    text
}

fn row(study: &StudyEntry) -> [String; 5] {
    [
        study.id.to_string(),
        study.started_at.clone(),
        String::from(study.state.name()),
        format!("{}/{}", study.trials_done, study.trials_planned),
        arguments(study),
    ]
}

/// Returns the study's command line without the program's path.
fn arguments(study: &StudyEntry) -> String {
    study.argv.get(1..).unwrap_or_default().join(" ")
}

/// The link to the first page.
pub(super) fn home() -> Vec<(String, String)> {
    vec![(String::from("/"), String::from("All studies"))]
}

impl Document for Studies {
    /// Lists the newest first, with the progress of running ones.
    fn page(&self) -> Page<'_> {
        let mut page = Page::new("Studies");
        page.links = home();
        page.linked(Medium::Html, ("answer", ""), |part| {
            part.title(Rank::Title, "Studies");
            part.title(Rank::Lead, format!("Stored in {}", self.store));
        });
        page.part(Medium::Html, |part| {
            if self.studies.is_empty() {
                let none = "None yet. 'nicpoll demo' or 'nicpoll study run' makes one.";
                return part.say(none);
            }
            let names = ["against", "started (UTC)", "state", "trials", "command"];
            let mut table = Table::new("study", names, Align::Left);
            table.name = String::from("Studies");
            table.rows.extend(self.studies.iter().rev().map(line));
            part.table(table);
        });
        page
    }
}

fn line(entry: &StudyEntry) -> Row {
    let is_running = entry.state == StudyState::Running;
    let id = entry.id;
    let state = match &entry.reason {
        Some(reason) => format!("{}: {reason}", entry.state.name()),
        None => String::from(entry.state.name()),
    };
    let ink = if is_running { Ink::Good } else { Ink::Plain };
    let (done, planned) = (entry.trials_done, entry.trials_planned);
    let mut trials = Cell::new(format!("{done} of {planned}"), Ink::Plain);
    if is_running {
        let name = format!("Trials of study {id}");
        trials.extra = Extra::Progress(name, done, planned.max(1));
    }
    let against = match can_be_compared(entry) {
        true => Cell::link(format!("/compare/{id}"), "compare"),
        false => Cell::new("", Ink::Plain),
    };
    Row {
        label: Cell::link(format!("/study/{id}"), id.to_string()),
        cells: vec![
            against,
            Cell::new(&entry.started_at, Ink::Plain),
            Cell::new(state, ink),
            trials,
            Cell::new(arguments(entry), Ink::Plain),
        ],
    }
}

/// Returns whether a study holds trials under settings.
fn can_be_compared(entry: &StudyEntry) -> bool {
    entry.kind != StudyKind::Ab
}

/// Makes the page of a study's possible comparisons: two of its settings, or another study.
pub fn choice_page(id: i64, settings: &[&str], studies: &Studies) -> Page<'static> {
    let title = format!("Compare study {id}");
    let mut page = Page::new(&title);
    page.links = home();
    page.linked(Medium::Html, ("answer", ""), |part| {
        part.title(Rank::Title, title);
    });
    page.part(Medium::Html, |part| {
        let numbered = || (1..).zip(settings);
        part.heading("Two of its settings, block by block");
        for (reference, its_name) in numbered() {
            for (judged, name) in numbered().filter(|(judged, _)| *judged != reference) {
                let address = format!("/compare/{id}.{reference}/{id}.{judged}");
                let name = format!("{name} against {its_name}");
                part.link(address, name, "");
            }
        }
        part.heading("Another study against it, workload by workload");
        let others = studies.studies.iter().rev();
        for entry in others.filter(|entry| entry.id != id && can_be_compared(entry)) {
            let address = format!("/compare/{id}/{}", entry.id);
            let rest = format!(" of {}: {}", entry.started_at, arguments(entry));
            part.link(address, format!("study {}", entry.id), rest);
        }
    });
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::render_html;

    fn studies() -> Studies {
        serde_json::from_str(include_str!("../../tests/golden/studies.json")).unwrap()
    }

    #[test]
    fn a_study_that_runs_shows_how_far_it_has_come() {
        let html = render_html(&studies());
        assert_eq!(html.matches("<progress").count(), 1, "{html}");
        assert!(html.contains("value=\"5\" max=\"20\""), "{html}");
        assert!(html.contains("href=\"/study/3\"") && !html.contains("href=\"/compare/3\""));
        assert!(!html.contains("<b>") && !html.contains("<script"));
    }

    #[test]
    fn two_settings_of_one_study_and_two_studies_are_a_click_apart() {
        let html = render_html(&choice_page(2, &["interrupt", "polling"], &studies()));
        assert!(html.contains("<a href=\"/compare/2.1/2.2\">polling against interrupt</a>"));
        assert!(html.contains("<a href=\"/compare/2/1\">study 1</a>"));
        assert!(!html.contains("/compare/2/2") && !html.contains("/compare/2/3"));
    }

    #[test]
    fn an_empty_store_is_said_to_be_and_what_is_ready_is_named_with_its_question() {
        let ready = |name: &str, question: &str| ReadyStudy {
            name: String::from(name),
            question: String::from(question),
        };
        let mut none = Studies {
            studies: Vec::new(),
            ready: vec![ready("demo", "Does it pay?"), ready("period", "How long?")],
            ..studies()
        };
        assert_eq!(
            render_studies_text(&none),
            "No studies are stored in /s/studies.db.\n\n\
             Ready studies, for 'nicpoll study run NAME':\n\n\
             demo    Does it pay?\n\
             period  How long?\n"
        );
        none.ready.clear();
        assert_eq!(
            render_studies_text(&none),
            "No studies are stored in /s/studies.db.\n"
        );
    }
}
