//! No verdict word without the values that it takes, on any page: of a study that ended early, of two of its settings, of
//! what other tools printed.

use std::collections::BTreeSet;
use std::time::Duration;

use nicpoll_model::{Compared, Origin, Study, StudyKind, Trial, Validity, Verdict};
use nicpoll_report::{
    Document, TextOptions, brief_page, render_document, render_html, render_markdown, render_text,
};
use nicpoll_stats::order::Seed;
use nicpoll_store::{Store, Which};
use nicpoll_study::{
    CompareOptions, Correction, DemoOptions, OpenResult, ResultSource, compare_results,
    import_transcripts, is_decided, plan, shown,
};
use proptest::prelude::*;

const BLOCKS: u32 = 16;
const SETTINGS: [&str; 3] = ["default", "interrupt", "polling"];

/// What becomes of a trial or a run: why it has no figure, or its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Failed,
    Void,
    NotInForce,
    Rate(f64),
}

impl Fate {
    fn of(number: u8) -> Self {
        match number {
            0..10 => Fate::Failed,
            10..20 => Fate::Void,
            20..30 => Fate::NotInForce,
            30..35 => Fate::Rate(0.0),
            other => Fate::Rate(1e8 * (1.0 + f64::from(other) / 100.0)),
        }
    }

    fn rate(self) -> Option<f64> {
        match self {
            Fate::Rate(rate) => Some(rate),
            _ => None,
        }
    }
}

/// A study of one workload that ended after these trials, as it was stored and is shown, and its store.
fn ended_early(fate: impl Fn(u32, usize) -> Fate) -> (tempfile::TempDir, Study, Store) {
    let options = DemoOptions {
        blocks: Some(BLOCKS),
        workloads: vec![String::from("udp64")],
        ..DemoOptions::default()
    };
    let (design, plan) = plan(&options, Seed(1)).unwrap();
    let text = include_str!("../../report/tests/golden/demo.json");
    let mut head: Study = serde_json::from_str(text).unwrap();
    let mut all = std::mem::take(&mut head.trials).into_iter();
    let one = all.find(|it| it.result().is_some()).unwrap();
    head.plan = plan;
    head.workloads.retain(|it| it.workload == "udp64");
    head.comparisons.clear();
    head.findings.clear();
    head.counting_costs.clear();
    head.warnings.clear();
    let places = (1..=BLOCKS).flat_map(|block| (0..SETTINGS.len()).map(move |arm| (block, arm)));
    let trials: Vec<Trial> = places
        .zip(1..)
        .map(|((block, arm), sequence)| {
            let said = |words: &str| Some(String::from(words));
            let mut trial = Trial {
                sequence,
                block,
                workload: String::from("udp64"),
                setting: String::from(SETTINGS[arm]),
                validity: Validity::default(),
                ..one.clone()
            };
            match fate(block, arm) {
                Fate::Failed => {
                    trial.validity.failure = said("iperf33: not found");
                    trial.figures = None;
                }
                Fate::Void => trial.validity.external = said("the clock was stepped"),
                Fate::NotInForce => {
                    trial.validity.unproven = said("packets went around the NAPI");
                    trial.findings.rhythm_deviation_ratio = Some(-1.0);
                }
                Fate::Rate(rate) => {
                    trial.figures.as_mut().unwrap().delivered_bits_per_second = rate;
                }
            }
            trial
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    let design = serde_json::to_string(&design).unwrap();
    let store = Store::to_write(&file).unwrap();
    let planned = trials.len() as u32;
    let recording = store.begin(StudyKind::Demo, &head, planned, &design, "nobody");
    let mut recording = recording.unwrap();
    let taken = trials.iter().map(|it| (it, Duration::from_millis(600)));
    recording.trials(&head, taken).unwrap();
    recording.end_early("it was stopped").unwrap();
    drop(recording);
    let store = Store::to_read(&file).unwrap();
    let kept = store.read::<Study>(Which::Id(1), |_| false).unwrap();
    (folder, shown(kept).unwrap(), store)
}

/// The verdict words that stand in a text, but for those of its legend and of its labels.
fn words(text: &str) -> BTreeSet<&'static str> {
    let own = text.split("How to read it").next().unwrap();
    let mut own = own.split_whitespace().collect::<Vec<_>>().join(" ");
    for label in [
        "is better",
        "the better.",
        "the same seed",
        "the same command",
        "the same stretch of time",
    ] {
        own = own.replace(label, "");
    }
    let is_word = |text: &str, word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let is_letter = |it: Option<char>| it.is_some_and(char::is_alphanumeric);
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            !is_letter(before.chars().next_back()) && !is_letter(after.chars().next())
        })
    };
    let all = [
        "wins",
        "loses",
        "better",
        "worse",
        "same",
        "equivalent",
        "not proven",
        "no difference proven",
        "depends",
        "it matters",
    ];
    all.into_iter().filter(|word| is_word(&own, word)).collect()
}

/// A page as each reader has it.
fn rendered(page: &impl Document) -> [String; 3] {
    [
        render_text(page, &TextOptions::default()),
        render_markdown(page),
        render_html(page),
    ]
}

fn origin() -> Origin {
    Origin {
        nicpoll_version: String::from("0"),
        argv: vec![],
        started_at: String::new(),
    }
}

/// Without a verdict no page of a comparison has a word.
fn assert_wordless(compared: &Compared) -> Result<(), TestCaseError> {
    let mut all = compared.comparisons.iter();
    if all.all(|one| one.verdict == Verdict::Inconclusive) {
        for text in rendered(compared) {
            prop_assert_eq!(words(&text), BTreeSet::new(), "{}", text);
        }
        let mut all = compared.comparisons.iter();
        prop_assert!(all.all(|one| one.no_verdict.is_some()));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_page_of_a_study_has_no_word_without_the_pairs_it_takes(
        numbers in proptest::collection::vec(0..70_u8, SETTINGS.len() * BLOCKS as usize),
        // Below 40 of these a study has seldom as many pairs as it takes.
        spoiled in 0..40_u8,
    ) {
        let fate = |block: u32, arm: usize| {
            let number = numbers[SETTINGS.len() * (block as usize - 1) + arm];
            Fate::of(if number < spoiled { number } else { 35 + number % 35 })
        };
        let (_folder, study, store) = ended_early(fate);
        let pairs = |reference: usize| {
            let rates = |block: u32| [2, reference].map(|arm| fate(block, arm).rate());
            let is_pair = |block: &u32| match rates(*block) {
                [Some(one), Some(other)] => one.max(other) > 0.0,
                _ => false,
            };
            (1..=BLOCKS).filter(is_pair).count() as f64
        };
        let family = study.plan.family_comparisons;
        let takes = 1.0 + (f64::from(family) / 0.05).log2();
        let suffice = [1, 0].map(|reference| pairs(reference) >= takes);
        prop_assert!(!is_decided(&study) || suffice.contains(&true));

        let brief = render_text(&brief_page(&study), &TextOptions::wide(80));
        let row = |reference: &str| {
            let (_, below) = brief.split_once(&format!("polling against {reference}")).unwrap();
            let line = below.lines().find(|line| line.starts_with("  udp64")).unwrap();
            line.trim_start_matches("  udp64").trim_start().trim_start_matches("rate").trim_start()
        };
        for (reference, suffice) in ["interrupts", "the default"].into_iter().zip(suffice) {
            prop_assert_eq!(!row(reference).starts_with("no verdict"), suffice, "{}", brief);
        }
        if suffice == [false; 2] {
            prop_assert!(brief.contains("No verdict under udp64: "), "{}", brief);
            for text in rendered(&study).into_iter().chain([brief]) {
                prop_assert_eq!(words(&text), BTreeSet::new(), "{}", text);
            }
            let json: serde_json::Value = serde_json::from_str(&render_document(&study)).unwrap();
            let verdicts = json["comparisons"].as_array().unwrap().iter();
            let verdicts = verdicts.map(|one| one.to_string());
            for one in verdicts {
                let said = one.split("\"verdict\":").skip(1);
                for word in said {
                    let is_none = word.starts_with("\"inconclusive\"") || word.starts_with("null");
                    prop_assert!(is_none, "{}", one);
                }
            }
        }
        let named = |name: &str| ResultSource::stored(name.parse().unwrap(), &store).unwrap();
        let (one, other) = (named("1:interrupt"), named("1:polling"));
        let compared = compare_results(&one, &other, CompareOptions::default(), &origin()).unwrap();
        assert_wordless(&compared)?;
    }

    #[test]
    fn a_page_of_what_others_printed_has_no_word_without_three_values_of_each(
        numbers in proptest::collection::vec(proptest::collection::vec(0..70_u8, 1..12), 2),
        spoiled in 0..40_u8,
    ) {
        let numbers = numbers.iter();
        let fates: Vec<Vec<Fate>> = numbers
            .map(|own| {
                let fate = |it: &u8| Fate::of(if *it < spoiled { *it } else { 35 + it % 35 });
                own.iter().map(fate).collect()
            })
            .collect();
        let rates = |fates: &[Fate]| fates.iter().filter_map(|it| it.rate()).collect::<Vec<_>>();
        let [one, other] = [rates(&fates[0]), rates(&fates[1])];
        let suffice = one.len().min(other.len()) >= 3
            && one.iter().chain(&other).any(|rate| *rate > 0.0);

        let files = ["off.txt", "on.txt"].iter().zip(&fates);
        let files = files.map(|(name, own)| (String::from(*name), iperf2(own).into_bytes()));
        let map = ["off.txt:setting=interrupt", "on.txt:setting=polling"];
        let map: [Correction; 2] = map.map(|it| it.parse().unwrap());
        let imported = import_transcripts(files.clone().collect(), &map, &origin()).unwrap();
        for compared in &imported.comparisons {
            prop_assert!(suffice || compared.verdict == Verdict::Inconclusive, "{:?}", compared);
        }
        if !suffice {
            for text in rendered(&imported) {
                prop_assert_eq!(words(&text), BTreeSet::new(), "{}", text);
            }
        }
        let texts = files.map(|(_, text)| String::from_utf8(text).unwrap());
        for texts in [texts.collect::<Vec<_>>(), fates.iter().map(|it| iperf3(it)).collect()] {
            let read = |text: &String| OpenResult::File("runs".into(), text.clone()).read(None);
            // A file with runs that failed may be refused, and then says nothing.
            let [Ok(one), Ok(other)] = [read(&texts[0]), read(&texts[1])] else { continue };
            let options = CompareOptions::default();
            let Ok(compared) = compare_results(&one, &other, options, &origin()) else { continue };
            let sets = &compared.comparisons[0];
            prop_assert!(suffice || sets.verdict == Verdict::Inconclusive || sets.judged.are_intervals, "{:?}", sets);
            assert_wordless(&compared)?;
        }
    }
}

/// What iperf 2 prints at both ends of these runs.
fn iperf2(fates: &[Fate]) -> String {
    let run = |(port, fate): (u32, &Fate)| {
        let begins = format!(
            "# iperf -c 10.0.0.2 -u -l 64 -b 100M\nClient connecting to 10.0.0.2, UDP port 5001\n\
             Sending 64 byte datagrams\n\
             [  3] local 10.0.0.1 port {port} connected with 10.0.0.2 port 5001\n"
        );
        let line = |of: &str, rate: f64| {
            let (mbytes, mbits) = (rate / 8e5 * 1e6 / 1_048_576.0, rate / 1e6);
            format!("[  3]  {of} sec  {mbytes:.2} MBytes  {mbits:.2} Mbits/sec")
        };
        match fate {
            Fate::Failed => {
                String::from("# iperf -c 10.0.0.2 -u\nconnect failed: Connection refused\n")
            }
            // Nothing but its beginning, or two intervals of it: one alone would be that of a whole run.
            Fate::Void => begins,
            Fate::NotInForce => {
                let intervals = ["0.0- 1.0", "1.0- 2.0"].map(|of| line(of, 1e7));
                format!("{begins}{}\n", intervals.join("\n"))
            }
            Fate::Rate(rate) => {
                let (sent, arrived) = (line("0.0-10.0", 1e8), line("0.0-10.0", *rate));
                format!(
                    "{begins}{sent}\n[  3] Server Report:\n{arrived}  0.010 ms  0/ {port} (0%)\n"
                )
            }
        }
    };
    (4001..).zip(fates).map(run).collect()
}

/// What iperf3 prints of them as JSON.
fn iperf3(fates: &[Fate]) -> String {
    let run = |fate: &Fate| match fate.rate() {
        Some(rate) => serde_json::json!({
            "start": {}, "intervals": [], "end": {"sum_received": {"bits_per_second": rate}},
        }),
        None => serde_json::json!({
            "start": {}, "intervals": [], "end": {}, "error": "unable to connect to server: Connection refused",
        }),
    };
    serde_json::to_string(&fates.iter().map(run).collect::<Vec<_>>()).unwrap()
}
