//! The studies of a store as a table, and the trials of one as CSV.
//!
//! What must hold: a figure that was not measured is an empty field, never 0. The first line of CSV names the
//! columns with their units.

use std::fmt::Write as _;

use nicpoll_model::{ReadyStudy, Studies, StudiesAction, StudyEntry};

/// The studies of a store, or those that were deleted, as text with a newline at its end.
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
    let rows: Vec<[String; 5]> = std::iter::once(head)
        .chain(studies.iter().map(row))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    for row in &rows {
        let [id, started, state, trials, command] = row;
        let line = format!(
            "{id:>0$}  {started:<1$}  {state:<2$}  {trials:>3$}  {command}",
            width(0),
            width(1),
            width(2),
            width(3)
        );
        text += line.trim_end();
        text.push('\n');
    }
    let reasons = studies.iter().filter_map(|study| {
        let reason = study.reason.as_ref()?;
        Some((study.id, reason))
    });
    for (index, (id, reason)) in reasons.enumerate() {
        let gap = if index == 0 { "\n" } else { "" };
        let _ = writeln!(text, "{gap}{id} ended early: {reason}");
    }
    text + &ready_text(ready)
}

/// The ready studies with their questions; nothing where they are not told of.
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
    // The program's own path says nothing.
    let arguments = study.argv.get(1..).unwrap_or_default();
    [
        study.id.to_string(),
        study.started_at.clone(),
        String::from(study.state.name()),
        format!("{}/{}", study.trials_done, study.trials_planned),
        arguments.join(" "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_store_is_said_to_be_and_what_is_ready_is_named_with_its_question() {
        let ready = |name: &str, question: &str| ReadyStudy {
            name: String::from(name),
            question: String::from(question),
        };
        let mut none = Studies {
            schema: String::new(),
            store: String::from("/s/studies.db"),
            action: StudiesAction::Listed,
            studies: Vec::new(),
            ready: vec![ready("demo", "Does it pay?"), ready("period", "How long?")],
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
