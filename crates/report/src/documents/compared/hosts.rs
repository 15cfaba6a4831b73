//! One study on several hosts: for each comparison a sentence over all hosts, and a bar for each host.

use nicpoll_model::numbers::counted;
use nicpoll_model::{Ends, HostResult, HostsCompared, HostsComparison, MetricKind};

use super::super::study::answer::word;
use super::super::study::comparisons::with_interval;
use crate::fields::filled;
use crate::lists::{capital, joined};
use crate::page::{
    Align, Block, Document, Ink, IntervalBar, IntervalGroup, Intervals, Medium, Page, Part, Rank,
    Row, Span, Table,
};

/// What the words of many hosts are worth.
const EACH_ALONE: &str = "Each host's word rests on its own study, whose verdicts hold together at 95 %: among twenty \
    hosts without any difference one shows a difference by chance.";
/// What the interval of the typical host is worth.
const TYPICAL: &str = "The typical host's interval (95 %, signed ranks, from six hosts on) is about hosts like these.";

impl Document for HostsCompared {
    fn page(&self) -> Page<'_> {
        let mut page = Page::new(&self.question);
        page.linked(Medium::All, ("answer", ""), |part| {
            part.title(Rank::Title, &self.question);
            for one in &self.comparisons {
                let (ink, sentence) = over_hosts(one, self.margin_ratio);
                part.paragraph(ink, sentence);
            }
            let groups = self.comparisons.iter().map(|one| group(self, one));
            part.blocks.push(Block::Intervals(Intervals {
                names: "host",
                right: Vec::new(),
                groups: groups.collect(),
            }));
            part.blank();
            part.say(EACH_ALONE);
            part.say(TYPICAL);
        });
        page.linked(Medium::All, ("hosts", "Hosts"), |part| hosts(part, self));
        page
    }
}

/// Returns what a comparison came to over all hosts.
fn over_hosts(one: &HostsComparison, margin: f64) -> (Ink, String) {
    let hosts = one.of_hosts.len() as u32;
    let decided = [one.better_hosts, one.worse_hosts, one.equivalent_hosts];
    let [better, worse, equivalent] = decided;
    let open = hosts - decided.iter().sum::<u32>();
    let words = ["better", "worse", "equivalent", "not proven to differ"];
    let counts = [better, worse, equivalent, open].into_iter().zip(words);
    let counts = counts.filter(|(count, _)| *count > 0);
    let counts = joined(
        counts.map(|(count, word)| format!("{word} at {count}")),
        ", ",
    );
    let ink = match decided {
        [0, 0, 0] => Ink::Unsure,
        [0, 0, _] => Ink::Plain,
        [_, 0, _] => Ink::Good,
        _ => Ink::Bad,
    };
    let typical = value(one.typical_ratio, one.typical_interval, one, margin);
    let (measure, of) = (one.metric.measure().name(), counted(hosts, "host"));
    let what = filled("{setting} against {reference}", one);
    let workload = &one.workload;
    let sentence =
        format!("{workload}, {measure}: of {of}, {what} is {counts}. The typical host: {typical}.");
    (ink, sentence)
}

fn value(middle: Option<f64>, ends: Ends, one: &HostsComparison, margin: f64) -> String {
    let ends = [ends.low, middle, ends.high];
    match one.metric.kind() {
        MetricKind::Ratio => with_interval(ends, &[1.0, margin, 1.0 / margin], "x", str::to_string),
        MetricKind::Points => {
            let percents = ends.map(|share| Some(100.0 * share?));
            with_interval(percents, &[0.0], " pt", str::to_string)
        }
    }
}

fn group(compared: &HostsCompared, one: &HostsComparison) -> IntervalGroup {
    let is_ratio = one.metric.kind() == MetricKind::Ratio;
    let bar = |result: &HostResult| {
        let ends = [result.interval.low, result.ratio, result.interval.high];
        IntervalBar {
            measure: one.metric.measure().name(),
            word: word(Some(result.verdict)),
            ink: Ink::of(Some(result.verdict)),
            value: value(result.ratio, result.interval, one, compared.margin_ratio),
            span: Span::of(ends).filter(|span| is_ratio && span.low.or(span.high).is_some()),
            right: Vec::new(),
        }
    };
    let lines = compared.hosts.iter().zip(&one.of_hosts).map(|(host, own)| {
        let line = own.as_ref().map(bar).ok_or("not compared");
        (host.host.clone(), line)
    });
    IntervalGroup {
        title: filled("{workload}: {setting} against {reference}", one),
        lines: lines.collect(),
        no_lines: None,
    }
}

fn hosts(part: &mut Part, compared: &HostsCompared) {
    part.heading("Hosts");
    let rows = compared.hosts.iter().map(|host| {
        let cells = [
            host.study.to_string(),
            host.started_at.clone(),
            host.kernel.clone(),
        ];
        Row::plain(&host.host, cells)
    });
    part.table(Table::faint("host", ["study", "began (UTC)", "kernel"], Align::Left).with(0, rows));
    for difference in &compared.differences {
        part.item("! ", Ink::Unsure, format!("{}.", capital(difference)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{TextOptions, render_text};

    #[test]
    fn every_host_has_a_line_and_a_host_without_a_result_says_so() {
        let host = |name: &str, study: u32| serde_json::json!({"host": name, "study": study, "started_at": "now", "kernel": "6.1"});
        let result = |ratio: f64, verdict: &str| {
            let interval = serde_json::json!({"low_ratio": ratio - 0.1, "high_ratio": ratio + 0.1});
            serde_json::json!({"ratio": ratio, "interval": interval, "verdict": verdict})
        };
        let compared = serde_json::json!({
            "schema": nicpoll_model::HOSTS_SCHEMA, "nicpoll_version": "0", "argv": [], "question": "Does it pay?",
            "margin_ratio": 1.05, "hosts": [host("a", 7), host("b", 8), host("c", 9), host("d", 10)],
            "comparisons": [{
                "workload": "udp64", "metric": "cpu_ns_per_packet", "setting": "polling", "reference": "interrupt",
                "of_hosts": [
                    result(0.5, "better_and_it_matters"), result(1.5, "worse"), null, result(1.0, "no_difference_proven"),
                ],
                "better_hosts": 1, "worse_hosts": 1, "equivalent_hosts": 0,
                "typical_ratio": 0.9, "typical_interval": {"low_ratio": null, "high_ratio": null},
            }],
            "differences": ["the kernel is 6.1 at a; 6.2 at b"],
        });
        let compared: HostsCompared = serde_json::from_value(compared).unwrap();
        let text = render_text(&compared, &TextOptions::default());
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "of 4 hosts, polling against interrupt is better at 1, worse at 1, not proven to differ at 2.",
            "The typical host: 0.90x [no interval].",
            "a cost wins 0.50x [0.40, 0.60]",
            "b cost worse 1.50x [1.40, 1.60]",
            "c not compared d cost not proven",
            "! The kernel is 6.1 at a; 6.2 at b.",
        ] {
            assert!(words.contains(part), "{part}:\n{text}");
        }
    }
}
