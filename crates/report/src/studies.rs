//! The studies of a store as a table, and the trials of one as CSV.
//!
//! What must hold: a figure that was not measured is an empty field, never 0. The first line of CSV names the
//! columns with their units.

use std::fmt::Write as _;

use nicpoll_model::{ReadyStudy, Studies, StudiesAction, Study, StudyEntry, Trial};

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

/// A column of the CSV: its name, and a trial's value.
type Column = (&'static str, fn(&Trial) -> Option<String>);

const COLUMNS: [Column; 21] = [
    ("sequence", |trial| some(trial.sequence)),
    ("block", |trial| some(trial.block)),
    ("workload", |trial| some(&trial.workload)),
    ("setting", |trial| some(&trial.setting)),
    ("external", |trial| trial.conduct.external.clone()),
    ("failure", |trial| trial.conduct.failure.clone()),
    ("unproven", |trial| trial.conduct.unproven.clone()),
    ("ledger_void", |trial| trial.conduct.ledger_void.clone()),
    ("offered_packets", |trial| {
        trial.figures.as_ref()?.offered_packets.and_then(some)
    }),
    ("delivered_packets", |trial| {
        trial.figures.as_ref()?.delivered_packets.and_then(some)
    }),
    ("delivered_bits_per_second", |trial| {
        some(trial.figures.as_ref()?.delivered_bits_per_second)
    }),
    ("delivered_packets_per_second", |trial| {
        let figures = trial.figures.as_ref()?;
        figures.delivered_packets_per_second.and_then(some)
    }),
    ("loss_ratio", |trial| trial.loss_ratio().and_then(some)),
    ("transactions_per_second", |trial| {
        let trips = trial.figures.as_ref()?.round_trip?;
        some(trips.transactions_per_second)
    }),
    ("round_trip_p50_ns", |trial| {
        some(trial.figures.as_ref()?.round_trip?.p50_ns)
    }),
    ("round_trip_p99_ns", |trial| {
        some(trial.figures.as_ref()?.round_trip?.p99_ns)
    }),
    ("jitter_seconds", |trial| {
        trial.figures.as_ref()?.jitter_seconds.and_then(some)
    }),
    ("rounds_per_second", |trial| {
        trial.figures.as_ref()?.rounds_per_second.and_then(some)
    }),
    ("packets_per_poll", |trial| {
        trial.figures.as_ref()?.packets_per_poll.and_then(some)
    }),
    ("cpu_busy_ns_per_packet", |trial| {
        let cpu = trial.figures.as_ref()?.cpu.as_ref()?;
        cpu.busy_ns_per_packet.and_then(some)
    }),
    ("cpu_busy_ns_per_byte", |trial| {
        let cpu = trial.figures.as_ref()?.cpu.as_ref()?;
        cpu.busy_ns_per_byte.and_then(some)
    }),
];

fn some(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

/// The trials of a study, a line each (RFC 4180, lines end with a newline alone).
pub fn trials_as_csv(study: &Study) -> String {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let mut text = names.join(",");
    text.push('\n');
    for trial in &study.trials {
        let fields = COLUMNS.iter().map(|(_, value)| value(trial));
        let fields: Vec<String> = fields
            .map(|value| quoted(value.unwrap_or_default()))
            .collect();
        text += &fields.join(",");
        text.push('\n');
    }
    text
}

fn quoted(field: String) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_has_a_field_for_each_column_and_none_where_nothing_was_measured() {
        let text = include_str!("../tests/golden/demo.json");
        let mut study: Study = serde_json::from_str(text).unwrap();
        study.trials.truncate(1);
        let trial = &mut study.trials[0];
        trial.figures = None;
        trial.conduct.failure = Some(String::from("it said \"no\", and ended"));
        let csv = trials_as_csv(&study);
        let [head, line] = csv.lines().collect::<Vec<_>>()[..] else {
            panic!("two lines: {csv}");
        };
        assert!(head.starts_with("sequence,block,workload,setting,"));
        let quoted = "\"it said \"\"no\"\", and ended\"";
        assert!(line.contains(quoted), "{line}");
        let commas = |text: &str| text.matches(',').count();
        assert_eq!(commas(head), commas(&line.replace(quoted, "")));
        assert!(line.ends_with(",,,,"), "{line}");
    }

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
