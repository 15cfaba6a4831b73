//! This machine's costs, as text and as a host file, with predictions next to measurements.

use std::fmt::Write;

use nicpoll_model::sim::{CheckQuantity, HostCheck, HostNumber, SimFitHost};

use super::run::template;
use crate::fields::{cells, filled, filled_lines};
use crate::lists::joined;
use crate::text::aligned_lines;
use nicpoll_model::numbers::MISSING;

/// Share of two processors from which other programs disturb measurements.
const DISTURBED: f64 = 0.02;

/// Renders the costs, then predictions next to measurements.
pub fn render_sim_fit_host(fit: &SimFitHost) -> String {
    let mut text = filled_lines(template("costs"), fit) + "\n";
    let head = ["cost, ns", "middle", "from", "to"].map(String::from);
    let rows = fit.costs.iter().map(|cost| {
        let name = vec![String::from(cost.cost.name())];
        [name, cells(cost, &["{ns}", "{min_ns}", "{max_ns}"])].concat()
    });
    let rows = [head.to_vec()].into_iter().chain(rows);
    text += &aligned_lines(&rows.collect::<Vec<_>>(), 1);
    text += &format!("{MISSING}: not to be told from nothing, or not measured.\n");
    let percent = |ratio: f64| format!("{:.0} % of the two processors meanwhile", 100.0 * ratio);
    if let Some(ratio) = fit.others_ratio.filter(|ratio| *ratio >= DISTURBED) {
        text += &format!(
            "Other programs took {}: costs are too high and rates too low.\nRepeat it when they rest.\n",
            percent(ratio)
        );
    }
    if let Some(ratio) = fit.steal_ratio.filter(|ratio| *ratio >= DISTURBED) {
        let kept = percent(ratio);
        text += &format!("The hypervisor kept {kept} (steal): costs are too high.\n");
    }
    text.extend(not_repeatable(fit).map(|line| line + "\n"));
    if !fit.checks.is_empty() {
        text.push('\n');
        text += &checks(&fit.checks);
    }
    text
}

/// Names the costs that are not repeatable; `None` if all are.
fn not_repeatable(fit: &SimFitHost) -> Option<String> {
    let costs = fit.costs.iter();
    let ranges = costs.filter(|cost| cost.is_repeatable == Some(false));
    let ranges = ranges.map(|cost| {
        let range = filled("({min_ns} to {max_ns} ns)", cost);
        format!("{} {range}", cost.cost.name())
    });
    let (repeats, ranges) = (fit.repeats, joined(ranges, "; "));
    (!ranges.is_empty())
        .then(|| format!("No single figure after {repeats} repeats, but a range: {ranges}."))
}

fn checks(checks: &[HostCheck]) -> String {
    let text = format!("{}\n\n", template("checks"));
    let head = ["", "simulated", "measured", "from", "to", "error", "kind"];
    let row = |check: &HostCheck| {
        let error = check.error.map(|error| format!("{:+.0} %", 100.0 * error));
        let name = filled("{workload} under {setting}", check);
        let figures = [
            "{simulated}",
            "{measured}",
            "{measured_min}",
            "{measured_max}",
        ];
        let first = vec![format!("{name}: {}", label(check.quantity))];
        let last = vec![
            error.unwrap_or(String::from(MISSING)),
            filled("{kind}", check),
        ];
        [first, cells(check, &figures), last].concat()
    };
    let rows = [head.map(String::from).to_vec()];
    let rows: Vec<_> = rows.into_iter().chain(checks.iter().map(row)).collect();
    text + &aligned_lines(&rows, 1)
}

fn label(quantity: CheckQuantity) -> &'static str {
    match quantity {
        CheckQuantity::DeliveredPps => "delivered, packets/s",
        CheckQuantity::TransactionsPerSecond => "transactions/s",
        CheckQuantity::RoundTripP50Ns => "round trip p50, ns",
        CheckQuantity::CpuNsPerPacket => "CPU, ns/packet",
        CheckQuantity::PacketsPerPoll => "packets a poll",
    }
}

/// Renders the numbers as a host file for `nicpoll sim run`.
pub fn render_host_file(fit: &SimFitHost) -> String {
    let mut text = format!(
        "# This machine as `nicpoll sim fit --host` found it, {}: {}.\n\
         # It is each of the two processors that a veth pair joins: give this file to --peer too.\n{}\n\
         name = \"this machine\"\n",
        fit.started_at,
        fit.host.kernel,
        not_repeatable(fit).map_or_else(String::new, |line| format!("# {line}\n"))
    );
    let mut open = "";
    for number in &fit.numbers {
        let HostNumber {
            name,
            value,
            source,
        } = number;
        let (section, field) = name.split_once('.').unwrap_or(("", name));
        if section != open {
            let _ = write!(text, "\n[{section}]\n");
            open = section;
        }
        let assignment = format!("{field} = {value}");
        let _ = writeln!(text, "{assignment:<28} # {source}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit() -> SimFitHost {
        let text = include_str!("../../../tests/golden/sim-fit-host.json");
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_not_measured_is_shown_as_missing_and_what_is_simulated_as_such() {
        let text = render_sim_fit_host(&fit());
        let line = |begin: &str| {
            let mut lines = text.lines();
            let line = lines.find(|line| line.starts_with(begin)).unwrap();
            line.split_whitespace()
                .map(String::from)
                .collect::<Vec<_>>()
        };
        assert!(line("empty poll").ends_with(&["900", "800", "1,000"].map(String::from)));
        assert!(line("waking").ends_with(&["-", "-", "-"].map(String::from)));
        let check = line("udp64 under polling: delivered").join(" ");
        assert!(
            check.ends_with("300,000 250,000 240,000 - +20 % predicted"),
            "{check}"
        );
        assert!(text.contains("took 25 % of the two processors"), "{text}");
        let quiet = SimFitHost {
            others_ratio: None,
            ..fit()
        };
        assert!(!render_sim_fit_host(&quiet).contains("Other programs"));
    }

    #[test]
    fn steal_and_costs_that_do_not_repeat_are_told_in_the_text_and_in_the_host_file() {
        let quiet = render_sim_fit_host(&fit());
        assert!(!quiet.contains("hypervisor") && !quiet.contains("No single"));
        let mut noisy = SimFitHost {
            steal_ratio: Some(0.07),
            ..fit()
        };
        noisy.costs[0].is_repeatable = Some(false);
        let text = render_sim_fit_host(&noisy);
        let range = "No single figure after 3 repeats, but a range: empty poll, idle processor (800 to 1,000 ns).";
        assert!(text.contains("kept 7 % of the two processors"), "{text}");
        assert!(text.contains(range), "{text}");
        let file = render_host_file(&noisy);
        assert!(file.contains(&format!("\n# {range}\n")), "{file}");
    }

    #[test]
    fn a_host_file_has_its_sections_once_and_a_source_for_each_number() {
        let file = render_host_file(&fit());
        let wanted = "[cpu]\nhz = 250                     # measured\ntick_ns = 7                  # measured\n\n\
                      [card]\nrx_ring = 256                # measured\n";
        assert!(file.ends_with(wanted), "{file}");
        assert!(file.contains("name = \"this machine\"\n"), "{file}");
    }
}
