//! The text report of the fixture, rule by rule.

mod first_screen;
#[path = "../fixture/mod.rs"]
mod fixture;

use nicpoll_model::{
    Comparison, ComparisonName, CpuSource, DroppedComparison, MainEffect, Metric, Study, Verdict,
    Warning, WarningName,
};
use nicpoll_report::{TextOptions, brief_page, render_text};
use nicpoll_testkit::assert_has;

fn plain(study: &Study) -> String {
    render_text(study, &TextOptions::default())
}

/// Joins the lines of a text, to search for sentences.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn verdict_of(study: &mut Study, workload: &str, reference: &str, verdict: Verdict) {
    judged(study, workload, reference).verdict = Some(verdict);
}

fn judged<'a>(study: &'a mut Study, workload: &str, reference: &str) -> &'a mut Comparison {
    study
        .comparisons
        .iter_mut()
        .find(|one| one.primary && one.workload == workload && one.reference == reference)
        .expect("the fixture judges every workload")
}

#[test]
fn a_share_of_the_line_is_shown_only_where_there_is_a_line() {
    let mut study = fixture::study();
    let label = "delivered, % of the line";
    assert!(!plain(&study).contains(label));
    for trial in &mut study.trials {
        let share = (trial.workload == "udp64").then_some(0.5);
        if let Some(figures) = &mut trial.figures {
            figures.delivered_line_ratio = share;
        }
    }
    let text = plain(&study);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(label)).collect();
    let [row] = rows[..] else {
        panic!("one workload has a share: {rows:?}");
    };
    assert_eq!(row.matches("50.0").count(), 3, "{row}");
}

#[test]
fn no_line_is_wider_than_the_page() {
    let study = fixture::study();
    for (asked, kept) in [(40, 80), (80, 80), (90, 90), (100, 100), (250, 100)] {
        let options = TextOptions::wide(asked);
        for line in render_text(&study, &options).lines() {
            assert!(line.chars().count() <= kept, "at {asked}: {line}");
            assert_eq!(line, line.trim_end(), "blanks at the end");
        }
    }
}

/// Makes the fixture with the longest allowed names of settings.
fn with_long_names() -> (Study, Vec<String>) {
    let mut study = fixture::study();
    let long = |name: &str| format!("{name:-<24}");
    let renamed = |name: &mut String| *name = long(name);
    for facts in &mut study.settings {
        renamed(&mut facts.setting);
    }
    for trial in &mut study.trials {
        renamed(&mut trial.setting);
    }
    for (setting, reference) in &mut study.plan.contrasts {
        renamed(setting);
        renamed(reference);
    }
    for one in &mut study.comparisons {
        renamed(&mut one.setting);
        renamed(&mut one.reference);
    }
    (study, fixture::SETTINGS.map(long).to_vec())
}

#[test]
fn long_names_of_settings_stand_above_their_own_figures() {
    let (study, names) = with_long_names();
    for width in [80, 100] {
        let options = TextOptions::wide(width);
        let text = render_text(&study, &options);
        assert!(text.lines().all(|line| line.chars().count() <= width));
        let part = part(&text, "udp64:");
        let lines: Vec<&str> = part.lines().collect();
        let mut found = Vec::new();
        for (index, head) in lines.iter().enumerate() {
            if !head.trim_start().starts_with("median of trials") {
                continue;
            }
            let mut below = lines[index..].iter();
            let figures = below
                .find(|line| line.contains("delivered, Mbit/s"))
                .unwrap();
            for name in &names {
                if let Some(at) = head.find(name.as_str()) {
                    // Its last letter is above the last digit, followed by a blank.
                    let end = at + name.len();
                    assert!(
                        figures[..end].ends_with(|it: char| it.is_ascii_digit()),
                        "{part}"
                    );
                    for line in [head, figures] {
                        assert!(
                            line[end..].is_empty() || line[end..].starts_with(' '),
                            "{part}"
                        );
                    }
                    found.push(name);
                }
            }
        }
        assert_eq!(found, names.iter().collect::<Vec<_>>(), "{part}");
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    let mut study = fixture::study();
    study.trials[0].validity.external = Some(String::from("\u{1b}[31mred\u{1b}[0m"));
    let text = plain(&study);
    assert!(!text.contains('\u{1b}'));
    let coloured = render_text(
        &study,
        &TextOptions {
            color: true,
            ..TextOptions::default()
        },
    );
    let mut stripped = String::new();
    let mut parts = coloured.split("\u{1b}[");
    stripped.push_str(parts.next().expect("there is text before the first code"));
    for part in parts {
        let (_, rest) = part.split_once('m').expect("only colours are used");
        stripped.push_str(rest);
    }
    assert_ne!(coloured, text);
    assert_eq!(stripped, text);
}

/// Duplicates are in no other row, where they could hide a loss.
#[test]
fn what_came_twice_has_a_row_where_there_is_any() {
    let mut study = fixture::study();
    let row = "and came twice";
    assert!(!plain(&study).contains(row));
    for trial in &mut study.trials {
        let ledger = trial.figures.as_mut().map(|figures| &mut figures.ledger);
        if let Some(duplicates) = ledger.and_then(|ledger| ledger.duplicate_packets.as_mut()) {
            *duplicates = 7;
        }
    }
    let text = plain(&study);
    assert!(part(&text, "udp64:").contains(row), "{text}");
    assert!(!part(&text, "tcp:").contains(row), "{text}");
}

#[test]
fn what_was_not_measured_shows_as_a_dash() {
    let mut study = fixture::study();
    for trial in &mut study.trials {
        let Some(trial) = &mut trial.figures else {
            continue;
        };
        trial.polls_per_second = None;
        trial.rounds_per_second = None;
        trial.cpu = None;
        trial.cpu_tick_sampled.clear();
        for line in &mut trial.ledger.lines {
            line.packets = None;
        }
    }
    let text = plain(&study);
    let tcp = part(&text, "tcp:");
    let dashes = |label: &str| {
        let line = tcp
            .lines()
            .find(|line| line.trim_start().starts_with(label))
            .unwrap_or_else(|| panic!("no line '{label}'"));
        line.split_whitespace().filter(|word| *word == "-").count()
    };
    for label in [
        "delivered, packets/s",
        "offered, packets/s",
        "loss, %",
        "jitter, us",
        "polls/s",
        "rounds/s",
        "packets per poll",
        "send queue (sender)",
    ] {
        assert_eq!(dashes(label), 3, "{label}");
    }
    assert_eq!(dashes("gro_flush_timeout"), 2);
}

#[test]
fn sampled_cpu_time_is_named_so() {
    let mut study = fixture::study();
    let exact = plain(&study);
    assert!(exact.contains("% of time, exact") && exact.contains("busy, sampled"));
    study.counting_costs.truncate(1);
    for figures in study
        .trials
        .iter_mut()
        .filter_map(|trial| trial.figures.as_mut())
    {
        figures.cpu.as_mut().unwrap().source = CpuSource::TickSampled;
    }
    let sampled = plain(&study);
    assert!(sampled.contains("% of time, tick-sampled"));
    assert!(sampled.contains("CPU ns/packet, tick-sampled"));
    assert!(!sampled.contains("exact"), "{sampled}");
}

#[test]
fn a_setting_without_good_trials_shows_dashes() {
    let mut study = fixture::study();
    for trial in &mut study.trials {
        if trial.setting == "default" {
            trial.validity.external = Some(String::from("the clock stepped"));
        }
    }
    let text = plain(&study);
    let line = part(&text, "udp64:")
        .lines()
        .find(|line| line.contains("delivered, Mbit/s"))
        .expect("the table shows rates")
        .to_string();
    assert!(line.split_whitespace().any(|word| word == "-"), "{line}");
}

/// Returns the part of the report under the heading that begins like this.
fn part<'a>(text: &'a str, heading: &str) -> &'a str {
    let start = text
        .find(&format!("\n{heading}"))
        .expect("the heading is there")
        + 1;
    let rest = &text[start..];
    let end = rest
        .match_indices("\n\n")
        .map(|(at, _)| at)
        .find(|at| !rest[at + 2..].starts_with(' '))
        .unwrap_or(rest.len());
    &rest[..end]
}

#[test]
fn every_verdict_has_its_sentence() {
    use Verdict::*;
    let not_sure = "but not surely enough to say that it matters.";
    let perhaps = "perhaps by less than 5 %.";
    let sentences = [
        (BetterAndItMatters, 1.2, "better, and it matters."),
        (Better, 1.2, &format!("better, {not_sure}")),
        (Better, 1.02, &format!("better, {perhaps}")),
        (Equivalent, 0.99, "equivalent, within 5 % either way."),
        (
            Equivalent,
            1.01,
            "equivalent, within 5 % either way, though surely more, by 1.00 to 9.08 %.",
        ),
        (
            Equivalent,
            0.9,
            "equivalent, within 5 % either way, though surely less, by 2.8 to 10.0 %.",
        ),
        (Worse, 0.91, &format!("worse, {perhaps}")),
        (Worse, 0.5, &format!("worse, {not_sure}")),
        (WorseAndItMatters, 0.5, "worse, and it matters."),
    ];
    for (verdict, low, ending) in sentences {
        let mut study = fixture::study();
        let comparison = judged(&mut study, "udp64", "interrupt");
        comparison.verdict = Some(verdict);
        comparison.ratio_low = Some(low);
        comparison.ratio_high = Some(1.08 * low);
        let text = flat(&plain(&study));
        let begin = text
            .find("udp64: polling delivered")
            .expect("the sentence is there");
        let sentence = &text[begin..begin + 160];
        assert!(sentence.contains(&format!(": {ending}")), "{sentence}");
    }
    let text = flat(&plain(&fixture::study()));
    assert!(text.contains(
        "no difference proven. Nine times in ten such a run finds a difference of 26 %; 5 % would take about 207 blocks."
    ));
    assert!(
        text.contains("(no interval): no verdict: an interval takes 9 blocks, and there are 7.")
    );
}

#[test]
fn the_first_screen_explains_the_words_that_stand_there_and_no_others() {
    use Verdict::{Better, BetterAndItMatters, Equivalent, NoDifferenceProven, Worse};
    let same = "same: surely less than 5 % either way";
    let weak = "surely a difference, perhaps of less than 5 %";
    for (words, said) in [
        ([Equivalent, Equivalent], String::from(same)),
        ([Better, Equivalent], format!("better: {weak}; {same}")),
        ([Worse, Better], format!("better, worse: {weak}; {same}")),
        (
            [BetterAndItMatters, NoDifferenceProven],
            format!("wins: surely by 5 % or more; {same}; not proven: the interval leaves it open"),
        ),
    ] {
        let mut study = fixture::study();
        for one in &mut study.comparisons {
            one.verdict = one.verdict.and(Some(Equivalent));
            one.no_verdict = None;
        }
        for (reference, word) in ["interrupt", "default"].into_iter().zip(words) {
            judged(&mut study, "udp64", reference).verdict = Some(word);
        }
        let text = flat(&render_text(&brief_page(&study), &TextOptions::default()));
        assert_has(&text, format!("(veth); {said} measure verdict"));
    }
}

/// Makes the fixture with levels of a factor compared over two combinations under one workload.
fn with_a_factor() -> Study {
    let mut study = fixture::study();
    let own = |reference: &str| (String::from("polling"), String::from(reference));
    study.plan.main_effects = vec![MainEffect {
        factor: String::from("mode"),
        level: String::from("timer"),
        reference: String::from("irq"),
        settings: vec![own("interrupt"), own("default")],
    }];
    let over = Comparison {
        factor: Some(String::from("mode")),
        setting: String::from("timer"),
        reference: String::from("irq"),
        ..judged(&mut study, "udp64", "interrupt").clone()
    };
    study.comparisons.push(over);
    study
}

#[test]
fn a_factor_over_all_combinations_has_its_lines_on_every_page() {
    let study = with_a_factor();
    let text = plain(&study);
    let below = text
        .lines()
        .skip_while(|line| !line.contains("mode: timer against irq"));
    let line = below.map(str::trim).find(|line| line.starts_with("udp64"));
    assert!(
        line.unwrap()
            .starts_with("udp64   rate       wins       1.48x"),
        "{text}"
    );
    let flat = flat(&text);
    assert!(flat.contains(
        "Over 2 combinations of the other factors, against irq, timer delivers 48 % more under udp64"
    ));
    assert!(flat.contains(
        "udp64, mode over 2 combinations of the other factors: timer delivered 1.48 times what irq did"
    ));
    assert!(flat.contains("mode: timer / irq"), "the table's column");
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    let markdown = nicpoll_report::render_markdown(&study);
    assert!(markdown.contains("mode: timer / irq"), "{markdown}");
    let html = nicpoll_report::render_html(&study);
    assert!(html.contains("<caption>mode: timer against irq</caption>"));
    assert!(html.contains("mode: timer / irq"), "the plot of its blocks");
}

#[test]
fn an_average_over_fewer_combinations_names_those_that_it_misses() {
    let mut study = with_a_factor();
    let over = study.comparisons.last_mut().unwrap();
    over.left_out = vec![(String::from("polling"), String::from("default"))];
    let text = flat(&plain(&study));
    assert!(text.contains(
        "udp64, mode over 1 of 2 combinations of the other factors (given up: polling against default): timer \
         delivered 1.48 times"
    ));
    assert!(text.contains(
        "Over the other factors' combinations that were not given up, against irq, timer delivers 48 % more"
    ));
}

/// Removes the comparison of two settings under rr, as if the time had run out.
fn given_up(mut study: Study) -> String {
    study
        .comparisons
        .retain(|one| (one.workload.as_str(), one.reference.as_str()) != ("rr", "default"));
    study.dropped.push(DroppedComparison {
        comparison: ComparisonName {
            workload: String::from("rr"),
            setting: String::from("polling"),
            reference: String::from("default"),
            metrics: Vec::new(),
        },
        blocks_done: 3,
    });
    render_text(&brief_page(&study), &TextOptions::default())
}

#[test]
fn a_dropped_comparison_says_so_in_its_line() {
    let line = "rr      not compared: no time left";
    assert_eq!(given_up(fixture::study()).matches(line).count(), 1);
    // A factor with a part in it has a line of its own.
    assert_eq!(given_up(with_a_factor()).matches(line).count(), 2);
}

#[test]
fn what_hangs_on_what_counts_says_so() {
    let mut study = fixture::study();
    verdict_of(
        &mut study,
        "udp64",
        "interrupt",
        Verdict::DependsOnWhatCounts,
    );
    let text = flat(&plain(&study));
    assert!(text.contains("udp64 rate depends 1.48x"));
    assert!(text.contains("no difference proven: it depends on what counts (see below)."));
    // One pair of the fixture is out of rhythm, so the proven ones have a row of their own.
    assert!(text.contains("proven pairs only better, and it matters"));
}

#[test]
fn a_comparison_that_is_not_there_is_said_to_be_missing() {
    let mut study = fixture::study();
    study
        .comparisons
        .retain(|one| one.metric != Metric::TransactionsPerSecond);
    let text = flat(&plain(&study));
    assert!(text.contains("rr: polling and interrupts were not compared."));
    assert!(text.contains("rr not compared"));
}

#[test]
fn trials_without_a_figure_are_grouped_by_reason_whatever_their_figures() {
    let text = plain(&fixture::study());
    let voids = flat(part(&text, "Trials without a figure: 10 of 192"));
    assert!(voids.contains("9 x such as: the clock was stepped by 3.3 ms: udp1470 default (9"));
    assert!(voids.contains("1 x the link lost its carrier: rr polling"));
}

#[test]
fn a_ratio_that_cannot_be_formed_is_said_to_be_missing() {
    let mut study = fixture::study();
    for comparison in &mut study.comparisons {
        if comparison.workload == "tcp" && comparison.primary {
            comparison.ratio = None;
            comparison.ratio_low = None;
            comparison.ratio_high = None;
            comparison.verdict = Some(Verdict::Inconclusive);
        }
    }
    let text = flat(&plain(&study));
    assert!(
        text.contains(
            "tcp: polling and interrupts have no ratio: no verdict: too few blocks count."
        )
    );
}

#[test]
fn no_loss_seen_is_never_a_plain_0() {
    let text = plain(&fixture::study());
    let udp64 = part(&text, "udp64:");
    let line = |start: &str| {
        let mut lines = udp64.lines().map(str::trim_start);
        lines
            .find(|line| line.starts_with(start))
            .unwrap()
            .to_string()
    };
    // Under interrupts the fixture loses nothing with udp64.
    assert!(line("loss, %").contains("none seen"), "{}", line("loss, %"));
    let mut study = fixture::study();
    for comparison in &mut study.comparisons {
        if comparison.metric == Metric::LossRatio {
            comparison.none_seen_of = Some([1_000_000, 1_000_000]);
            comparison.share_difference_low = Some(-3.7e-6);
            comparison.share_difference_high = Some(3.7e-6);
        }
    }
    assert!(plain(&study).contains("none seen, at most 0.0004 pt"));
}
