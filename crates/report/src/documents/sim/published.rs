//! Published measurements next to the simulator's figures, as text: a block for each run.

use std::fmt::Write;

use nicpoll_model::sim::{ErrorKind, PublishedRow, RowKind, SimFit, SimPublished};

use super::run::template;
use crate::fields::filled_lines;
use crate::lists::distinct;
use crate::text::aligned_lines;
use nicpoll_model::numbers::{MISSING, counted, figure, figure_or_missing};

/// Renders every row, run by run, with a summary.
pub fn render_sim_published(published: &SimPublished) -> String {
    let mut text = filled_lines(template("published"), published);
    let runs = published
        .rows
        .chunk_by(|one, next| one.table == next.table && one.row == next.row);
    let has_sensitivity = published.rows.iter().any(|row| row.sensitivity.is_some());
    for run in runs {
        block(&mut text, run, has_sensitivity);
    }
    text.push('\n');
    text += &filled_lines(template("score"), &published.score);
    text.push_str(&summary(&published.rows));
    text.push_str(&misses(&published.rows));
    text
}

/// Lists the figures outside of their aim, run by run, with what the simulation lacks there.
fn misses(rows: &[PublishedRow]) -> String {
    let rows = rows.iter().filter(|row| row.is_within_aim == Some(false));
    let off: Vec<_> = rows.collect();
    let figures = counted(off.len() as u32, "figure");
    let mut text = format!("\nOutside of what is aimed at: {figures}.\n");
    for run in off.chunk_by(|one, next| one.table == next.table && one.row == next.row) {
        let figure = |row: &&PublishedRow| {
            let error = row.error.map(|error| error_text(error, row.error_kind));
            format!("{} {}", row.quantity, error.unwrap_or_default())
        };
        let figures: Vec<_> = run.iter().map(figure).collect();
        let _ = writeln!(
            text,
            "{}  {}: {}",
            run[0].table,
            run[0].row,
            figures.join(", ")
        );
        let missing = run.iter().map(|row| row.missing.as_deref());
        for cause in distinct(missing) {
            let _ = writeln!(text, "   {}", cause.unwrap_or("No cause is known."));
        }
    }
    text
}

/// Writes a run: its name, its figures, and notes on all of them.
fn block(text: &mut String, rows: &[PublishedRow], has_sensitivity: bool) {
    let Some(first) = rows.first() else {
        return;
    };
    let _ = writeln!(text, "\n{}  {}", first.table, first.row);
    let names = "|measured|simulated|guessed|error|kind|+-20 %|by".split('|');
    let names: Vec<String> = names.map(String::from).collect();
    let shown = names.len() - if has_sensitivity { 0 } else { 2 };
    let mut lines = vec![names];
    lines.extend(rows.iter().map(line));
    lines.iter_mut().for_each(|cells| cells.truncate(shown));
    text.push_str(&aligned_lines(&lines, 1));
    if let Some(bottleneck) = &first.bottleneck {
        let _ = writeln!(text, "bottleneck: {bottleneck}");
    }
    for missing in distinct(rows.iter().filter_map(|row| row.missing.as_ref())) {
        let _ = writeln!(text, "missing: {missing}");
    }
}

fn line(row: &PublishedRow) -> Vec<String> {
    let mut name = row.quantity.clone();
    if !row.unit.is_empty() {
        let _ = write!(name, ", {}", row.unit);
    }
    let error = match (row.error, row.is_within_aim) {
        (None, _) => String::from(MISSING),
        (Some(error), Some(false)) => format!("{} !", error_text(error, row.error_kind)),
        (Some(error), _) => error_text(error, row.error_kind),
    };
    let kind = match row.kind {
        RowKind::Fitted => "fitted",
        RowKind::Used => "used",
        RowKind::Predicted if row.is_restated => "restated",
        RowKind::Predicted => "predicted",
    };
    let (change, by) = match &row.sensitivity {
        Some(most) => (
            error_text(most.change, row.error_kind),
            most.parameter.clone(),
        ),
        None => (String::from(MISSING), String::from(MISSING)),
    };
    vec![
        name,
        figure_or_missing(row.measured),
        simulated(row),
        figure_or_missing(row.guessed),
        error,
        String::from(kind),
        change,
        by,
    ]
}

/// Formats the simulated figure, with its range if the ticks' phases decide.
fn simulated(row: &PublishedRow) -> String {
    let value = figure_or_missing(row.simulated);
    let range = row.simulated_range.filter(|[least, most]| least < most);
    range.map_or(value.clone(), |[least, most]| {
        format!("{value} [{}, {}]", figure(least), figure(most))
    })
}

fn error_text(error: f64, kind: ErrorKind) -> String {
    let unit = match kind {
        ErrorKind::Points => "points",
        ErrorKind::Relative | ErrorKind::Unscored => "%",
    };
    format!("{:+.1} {unit}", 100.0 * error)
}

/// Counts the rows within the aim, separately for fitted and predicted ones.
fn summary(rows: &[PublishedRow]) -> String {
    let mut text = String::new();
    for (kind, name) in [
        (RowKind::Fitted, "fitted"),
        (RowKind::Used, "used"),
        (RowKind::Predicted, "predicted or restated"),
    ] {
        let of_kind: Vec<_> = rows.iter().filter(|row| row.kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let scored = of_kind.iter().filter_map(|row| row.is_within_aim);
        let within = scored.clone().filter(|is_within| *is_within).count();
        let rest = of_kind.len() - scored.clone().count();
        let points = kind_aim(ErrorKind::Points, kind);
        let _ = writeln!(
            text,
            "{name}: {within} of {} scored rows within {} % or {points} points; {rest} not scored or not \
             simulated",
            scored.count(),
            kind_aim(ErrorKind::Relative, kind),
        );
    }
    text.push_str("!: outside of what is aimed at. [least, most]: as the ticks of the hosts lie. ");
    let _ = writeln!(text, "{MISSING}: not stated, not scored or not simulated.");
    text
}

fn kind_aim(error: ErrorKind, kind: RowKind) -> String {
    figure_or_missing(error.aim(kind).map(|aim| 100.0 * aim))
}

/// Renders a fit: each group with its error and its factors.
pub fn render_sim_fit(fit: &SimFit) -> String {
    let groups = || fit.sets.iter().flatten();
    let parameters: usize = groups().map(|it| it.factors.len()).sum();
    let figures: u64 = groups().map(|it| it.figures).sum();
    let mut text = format!(
        "{parameters} parameters, fitted to {figures} figures under interrupts. Factors are on the costs of fit.toml.\n"
    );
    for group in groups() {
        let plural = if group.factors.len() == 1 { "" } else { "s" };
        text.push_str(&format!(
            "\n{}: {} parameter{plural}, {} figures; root mean square error {:.2} (1 is 2 % of a rate or 5 % of a \
             share); {} simulations\n",
            group.name,
            group.factors.len(),
            group.figures,
            group.error_ratio,
            group.simulations
        ));
        for factor in &group.factors {
            let times = factor.thousandths as f64 / 1e3;
            text.push_str(&format!("  {:<12} x {times:.3}\n", factor.name));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_stands_out_and_what_is_missing_is_no_zero() {
        let published = include_str!("../../../tests/golden/sim-published.json");
        let text = render_sim_published(&serde_json::from_str(published).unwrap());
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line("near, Mbit/s").contains("+10.0 %"), "{text}");
        assert!(!text.contains("+-20 %"), "{text}");
        assert!(!line("near").contains('!'), "{text}");
        assert!(line("far").contains("+50.0 % !"), "{text}");
        assert!(line("none").contains(MISSING) && !line("none").contains(" 0 "));
        assert!(text.contains("missing: It is missing."), "{text}");
        assert!(line("near, Mbit/s").contains("110 [110, 220]"), "{text}");
        assert!(line("far").contains("restated"), "{text}");
        assert!(text.contains("simulated 1 of 1, guessed 0"), "{text}");
        assert!(text.contains("Of all 2 predicted"), "{text}");
        let misses = text.split("Outside of what is aimed at: 1 figure.").nth(1);
        assert!(
            misses
                .unwrap()
                .contains(": far +50.0 %\n   No cause is known."),
            "{text}"
        );
        assert!(text.contains(
            "predicted or restated: 1 of 2 scored rows within 20.0 % or 10.0 points; 1 not"
        ));
    }
}
