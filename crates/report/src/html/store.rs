//! The studies of a store as pages that lead to one another: what `nicpoll serve` shows around its reports.
//!
//! What must hold: as for a report. Links are all that a page has; they lead to pages of the same server.

use maud::{Markup, html};
use nicpoll_model::{Compared, Studies, StudyEntry, StudyKind, StudyState};

use super::{Link, page, part};
use crate::text::compared;

/// The way back.
fn home() -> Vec<Link> {
    vec![(String::from("/"), String::from("All studies"))]
}

/// The studies of a store, the newest first, with how far those that run have come.
pub fn render_studies_html(studies: &Studies) -> String {
    let body = html! {
        header id="answer" {
            h1 { "Studies" }
            p.lead { "Stored in " (studies.store) }
        }
        @if studies.studies.is_empty() {
            p { "None yet. 'nicpoll demo' or 'nicpoll study run' makes one." }
        } @else {
            div.wide tabindex="0" role="group" aria-label="Studies" {
                table {
                    thead {
                        tr { @for name in ["study", "against", "started (UTC)", "state", "trials", "command"] { th scope="col" { (name) } } }
                    }
                    tbody { @for entry in studies.studies.iter().rev() { (line(entry)) } }
                }
            }
        }
    };
    page("Studies", &home(), &body)
}

fn line(entry: &StudyEntry) -> Markup {
    let is_running = entry.state == StudyState::Running;
    html! {
        tr {
            th scope="row" { a href={ "/study/" (entry.id) } { (entry.id) } }
            td { @if can_be_compared(entry) { a href={ "/compare/" (entry.id) } { "compare" } } }
            td { (entry.started_at) }
            td class=(if is_running { "good" } else { "plain" }) {
                (entry.state.name())
                @if let Some(reason) = &entry.reason { ": " (reason) }
            }
            td {
                (entry.trials_done) " of " (entry.trials_planned)
                @if is_running {
                    " " progress aria-label={ "Trials of study " (entry.id) } value=(entry.trials_done)
                        max=(entry.trials_planned.max(1)) {}
                }
            }
            td { (entry.argv.get(1..).unwrap_or_default().join(" ")) }
        }
    }
}

/// Whether it holds trials under settings.
fn can_be_compared(entry: &StudyEntry) -> bool {
    entry.kind != StudyKind::Ab
}

/// What the study of that number can be compared with: two of its settings with each other, and another study.
pub fn render_choice_html(id: i64, settings: &[&str], studies: &Studies) -> String {
    let others = studies.studies.iter().rev();
    let others = others.filter(|entry| entry.id != id && can_be_compared(entry));
    let numbered = || (1..).zip(settings);
    let pairs = numbered().flat_map(|one| numbered().map(move |other| (one, other)));
    let pairs = pairs.filter(|((one, _), (other, _))| one != other);
    let title = format!("Compare study {id}");
    let body = html! {
        header id="answer" { h1 { (title) } }
        h2 { "Two of its settings, block by block" }
        ul {
            @for ((reference, its_name), (judged, name)) in pairs {
                li { a href={ "/compare/" (id) "." (reference) "/" (id) "." (judged) } { (name) " against " (its_name) } }
            }
        }
        h2 { "Another study against it, workload by workload" }
        ul {
            @for entry in others {
                li {
                    a href={ "/compare/" (id) "/" (entry.id) } { "study " (entry.id) }
                    " of " (entry.started_at) ": " (entry.argv.get(1..).unwrap_or_default().join(" "))
                }
            }
        }
    };
    page(&title, &home(), &body)
}

/// Two results side by side.
pub fn render_compared_html(compared: &Compared) -> String {
    let title = compared.comparisons.first().map_or_else(
        || String::from("Nothing to compare"),
        |sets| format!("{} against {}", sets.judged.name, sets.reference.name),
    );
    let body = html! {
        header id="answer" { h1 { (title) } }
        (part(|page| compared::write(page, compared)))
    };
    page(&title, &home(), &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: i64, state: StudyState, kind: StudyKind) -> StudyEntry {
        StudyEntry {
            id,
            kind,
            state,
            reason: None,
            started_at: String::from("2026-11-20T10:00:00Z"),
            elapsed_seconds: 3.0,
            trials_done: 5,
            trials_planned: 20,
            kernel: String::new(),
            nicpoll_version: String::new(),
            argv: ["nicpoll", "study", "run", "<b>.toml"]
                .map(String::from)
                .into(),
        }
    }

    fn studies() -> Studies {
        Studies {
            schema: String::new(),
            store: String::from("/s/studies.db"),
            action: nicpoll_model::StudiesAction::Listed,
            studies: vec![
                entry(1, StudyState::Finished, StudyKind::Demo),
                entry(2, StudyState::Running, StudyKind::Study),
                entry(3, StudyState::Finished, StudyKind::Ab),
            ],
            ready: Vec::new(),
        }
    }

    #[test]
    fn a_study_that_runs_shows_how_far_it_has_come() {
        let html = render_studies_html(&studies());
        assert_eq!(html.matches("<progress").count(), 1, "{html}");
        assert!(html.contains("value=\"5\" max=\"20\""), "{html}");
        assert!(html.contains("href=\"/study/3\"") && !html.contains("href=\"/compare/3\""));
        assert!(!html.contains("<b>") && !html.contains("<script"));
    }

    #[test]
    fn two_settings_of_one_study_and_two_studies_are_a_click_apart() {
        let html = render_choice_html(2, &["interrupt", "polling"], &studies());
        assert!(html.contains("<a href=\"/compare/2.1/2.2\">polling against interrupt</a>"));
        assert!(html.contains("<a href=\"/compare/2/1\">study 1</a>"));
        assert!(!html.contains("/compare/2/2") && !html.contains("/compare/2/3"));
    }
}
