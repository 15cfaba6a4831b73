//! The first screen of a study: the answer, and its doubts.

use super::*;

#[test]
fn the_first_screen_is_the_answer() {
    let mut study = fixture::study();
    // The longest possible first screen.
    for (name, text) in [
        (
            WarningName::ForeignWork,
            "other programs took 43 % of a core (udp64 under polling): stop them",
        ),
        (
            WarningName::DependentBlocks,
            "blocks are not independent (tcp against default)",
        ),
    ] {
        study.warnings.push(Warning {
            name,
            text: String::from(text),
        });
    }
    let narrow = TextOptions::wide(80);
    let whole = render_text(&study, &narrow);
    let brief = render_text(&brief_page(&study), &narrow);
    // A prompt takes the last line.
    assert!(brief.lines().count() <= 23, "{brief}");
    let first = whole.lines().take(brief.lines().count() - 1);
    assert!(first.eq(brief.lines().take(brief.lines().count() - 1)));
    let answer = flat(&brief);
    assert!(answer.contains(
        "Against interrupts, polling answers 89 % fewer requests under rr; it delivers 19 % less under tcp and \
         48 % more under udp64; nothing is proven about the rate of udp1470."
    ));
    assert!(answer.contains("43 % of a core") && answer.contains("not independent"));
    // A star in the table is always explained.
    assert!(answer.contains("0.76x*") && answer.contains("* Counting CPU time slowed udp64"));
    // No win without the losses: every workload has its line against every reference.
    for workload in fixture::WORKLOADS {
        let start = format!("  {workload:<8}");
        let lines = brief.lines().filter(|line| line.starts_with(&start));
        assert_eq!(lines.count(), 2, "{workload}");
    }
}

#[test]
fn a_screen_that_its_lines_fill_has_what_makes_them_doubtful_and_no_empty_heading() {
    let mut study = fixture::study();
    study.question = "Does it pay? ".repeat(200);
    for one in &mut study.comparisons {
        one.no_verdict = None;
    }
    let brief = |study: &_| flat(&render_text(&brief_page(study), &TextOptions::wide(80)));
    let heading = "What this means here";
    let doubtful = brief(&study);
    assert!(
        doubtful.contains(&format!("{heading} - * Counting CPU time slowed udp64")),
        "{doubtful}"
    );
    assert!(!doubtful.contains("median round trip"), "{doubtful}");
    study.counting_costs.clear();
    let filled = brief(&study);
    assert!(!filled.contains(heading), "{filled}");
}

#[test]
fn bars_begin_at_one_place_whatever_workloads_are_called() {
    let mut text = serde_json::to_string(&fixture::study()).unwrap();
    let names = ["udp64-small", "udp64-of-many-clients-a"];
    for (old, new) in ["udp64", "udp1470"].into_iter().zip(names) {
        text = text.replace(&format!("\"{old}\""), &format!("\"{new}\""));
    }
    let study: Study = serde_json::from_str(&text).unwrap();
    for width in [80, 120] {
        let options = TextOptions::wide(width);
        let brief = render_text(&brief_page(&study), &options);
        let lines: Vec<&str> = brief.lines().collect();
        let head = lines.iter().find(|line| line.contains("1/")).unwrap();
        let start = head.find("1/").unwrap() + 3;
        let middle = start + head[start..].find('1').unwrap();
        for start in ["  udp6", "  tcp ", "  rr "] {
            let own = lines.iter().filter(|line| line.starts_with(start));
            let bars: Vec<&&str> = own.filter(|line| line.contains('|')).collect();
            assert!(!bars.is_empty(), "{brief}");
            for line in bars {
                assert_eq!(&line[middle..=middle], "|", "{brief}");
            }
        }
        assert!(lines.iter().all(|line| line.chars().count() <= width));
    }
    let wide = TextOptions::wide(120);
    let wide = render_text(&brief_page(&study), &wide);
    assert!(wide.contains("  udp64-of-many-clients-a "), "{wide}");
}

#[test]
fn trials_without_their_setting_in_force_are_counted_once() {
    let mut study = fixture::study();
    for comparison in &mut study.comparisons {
        let is_meant = comparison.workload == "tcp";
        if let Some(sensitivity) = comparison.sensitivity.as_mut().filter(|_| is_meant) {
            sensitivity.in_force_trials = [16, 11];
        }
    }
    let counted = |study: &Study, note: &str| {
        let text = flat(&render_text(&brief_page(study), &TextOptions::default()));
        assert_eq!(text.matches(note).count(), 1, "{text}");
    };
    let note = "tcp: polling was proven in force in 11 of 16 trials; the others have no figure";
    counted(&study, &format!("{note}."));
}

#[test]
fn what_a_verdict_depends_on_is_said_whatever_else_there_is() {
    let mut study = fixture::study();
    let tcp = study.comparisons.iter_mut().find(|it| it.workload == "tcp");
    let tcp = tcp.unwrap();
    (tcp.verdict, tcp.missing_blocks) = (Some(Verdict::DependsOnWhatCounts), 5);
    let sensitivity = tcp.sensitivity.as_mut().unwrap();
    sensitivity.missing_as_worst = Some(sensitivity.proven_only);
    sensitivity.missing_as_best = Some(nicpoll_model::Scenario {
        verdict: Verdict::NoDifferenceProven,
        ..sensitivity.proven_only
    });
    study.question = "Does it pay? ".repeat(200);
    let text = flat(&render_text(&brief_page(&study), &TextOptions::default()));
    assert!(text.contains(" tcp rate depends "), "{text}");
    let said = "\"depends\": the rate of tcp, polling against interrupt, would be \"loses\" from what was measured, \"loses\" \
                with the 5 missing pairs taken as the worst, \"not proven\" with them taken as the best.";
    assert!(text.contains(said), "{text}");
}

#[test]
fn where_nothing_is_proven_the_answer_names_every_setting() {
    let mut study = fixture::study();
    let said = |study: &Study| flat(&render_text(&brief_page(study), &TextOptions::default()));
    let all = "Nothing is proven about polling and interrupt.";
    study.plan.contrasts[0].0 = String::from("interrupt");
    for comparison in study.comparisons.iter_mut().filter(|it| it.primary) {
        comparison.verdict = Some(Verdict::NoDifferenceProven);
    }
    study.plan.contrasts.reverse();
    let text = said(&study);
    assert_eq!(text.matches("proven about").count(), 1, "{text}");
    assert!(text.contains(all), "{text}");
    let decided = study.comparisons.iter_mut().find(|it| it.primary).unwrap();
    decided.verdict = Some(Verdict::BetterAndItMatters);
    assert!(!said(&study).contains(all));
    study.comparisons.clear();
    assert!(
        !said(&study).contains("proven about"),
        "nothing was compared"
    );
}

#[test]
fn what_disturbed_all_trials_of_a_setting_comes_first() {
    let mut study = fixture::study();
    let text = "9 of 192 trials were disturbed from outside: another process changed a queueing discipline";
    study
        .warnings
        .retain(|it| it.name != WarningName::VoidTrials);
    study.warnings.push(Warning {
        name: WarningName::VoidTrials,
        text: String::from(text),
    });
    let first = format!("What this means here - {text}.");
    let says = |study: &Study| {
        let brief = render_text(&brief_page(study), &TextOptions::default());
        flat(&brief).contains(&first)
    };
    assert!(!says(&study), "some of its trials");
    let own = study.trials.iter_mut();
    for trial in own.filter(|it| it.setting == "polling" && it.workload == "rr") {
        trial.validity.external = Some(String::from("another process"));
    }
    assert!(says(&study));
}

#[test]
fn why_there_is_no_verdict_comes_first() {
    let mut study = fixture::study();
    for comparison in study.comparisons.iter_mut().filter(|one| one.primary) {
        comparison.verdict = Some(Verdict::Inconclusive);
        (
            comparison.ratio,
            comparison.ratio_low,
            comparison.ratio_high,
        ) = (None, None, None);
        comparison.no_verdict = Some(String::from("18 of 18 trials failed: iperf33: not found"));
    }
    let text = flat(&render_text(&brief_page(&study), &TextOptions::default()));
    let (_, answer) = text.split_once(&*study.question).unwrap();
    let first =
        "No verdict under tcp, udp1470, udp64 and rr: 18 of 18 trials failed: iperf33: not found.";
    assert!(answer.trim_start().starts_with(first), "{text}");
    assert!(
        !answer[first.len() + 1..].contains(first) && !text.contains("nothing is proven"),
        "{text}"
    );
    assert!(!text.contains("tcp same"), "{text}");
}

#[test]
fn a_setting_against_itself_answers_the_question_of_its_file() {
    let mut study = fixture::study();
    let polling = study.settings[2].clone();
    study.settings[1].description = polling.description;
    study.settings[1].writes = polling.writes;
    let text = render_text(&brief_page(&study), &TextOptions::default());
    assert!(text.starts_with(&study.question), "{text}");
}

#[test]
fn long_names_lose_their_rates_before_what_tells_them_apart() {
    let mut text = serde_json::to_string(&fixture::study()).unwrap();
    let names = ["session-in-flood", "tcp-session-in-flood"];
    for (old, new) in ["udp64", "rr"].into_iter().zip(names) {
        text = text.replace(&format!("\"{old}\""), &format!("\"{new}\""));
    }
    let mut study: Study = serde_json::from_str(&text).unwrap();
    for facts in &mut study.workloads {
        facts.asked_per_second = names.contains(&&*facts.workload).then_some(200);
    }
    let brief = |width| render_text(&brief_page(&study), &TextOptions::wide(width));
    let (narrow, wide) = (brief(80), brief(100));
    assert!(wide.contains("  tcp-session-in-flood 200/s "), "{wide}");
    assert!(narrow.lines().all(|line| line.chars().count() <= 80));
    let rows = narrow
        .lines()
        .filter(|line| line.contains("-flood ") && line.contains('x'));
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rows.len(), 4, "{narrow}");
    for (row, start) in rows.iter().zip(["  sess", "  tcp-"].into_iter().cycle()) {
        assert!(row.starts_with(start) && !row.contains("/s "), "{narrow}");
    }
}

#[test]
fn the_measures_on_the_screen_are_explained_and_no_others() {
    let mut study = fixture::study();
    let explained = |study: &Study| {
        let text = render_text(study, &TextOptions::default());
        let (_, legend) = text.split_once("How to read it\n").unwrap();
        let words = ["rate", "round trip", "cost", "delay", "delivery", "loss"];
        let has = |word: &&str| {
            legend
                .lines()
                .any(|line| line.starts_with(&format!("  {word:<11}")))
        };
        words.into_iter().filter(has).collect::<Vec<_>>()
    };
    assert_eq!(explained(&study), ["rate", "round trip", "cost"]);
    for one in study.comparisons.iter_mut().filter(|one| one.primary) {
        one.metric = nicpoll_model::Metric::DeliveredRatio;
    }
    assert_eq!(explained(&study), ["round trip", "cost", "delivery"]);
}
