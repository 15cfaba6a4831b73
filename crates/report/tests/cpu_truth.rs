//! The proof of the CPU account: its text, its JSON and the JSON's schema.

use nicpoll_model::{
    CPU_TRUTH_SCHEMA, CpuTruth, EventCost, FoldBin, FoldedPulses, TruthPhase, TruthVerdict,
};
use nicpoll_report::{TextOptions, render_json, render_text};
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../docs/nicpoll.cpu-truth-1.schema.json");

fn truth() -> CpuTruth {
    let phase = |phase_ns, tick_sampled_core_ratio| TruthPhase {
        phase_ns,
        wall_ns: 700_000_000,
        own_ratio: 0.251,
        exact_ratio: 0.254,
        exact_system_ratio: 0.003,
        exact_core_ratio: 0.262,
        tick_sampled_core_ratio,
        steal_ratio: 0.0,
        residual_ratio: 0.0,
        elsewhere_ratio: 0.0,
    };
    let bin = |phase_ns, user_ns, softirq_ns| FoldBin {
        phase_ns,
        user_ns,
        system_ns: softirq_ns / 2,
        irq_ns: 0,
        softirq_ns,
    };
    CpuTruth {
        schema: String::from(CPU_TRUTH_SCHEMA),
        nicpoll_version: String::from("0.1.0"),
        core: 1,
        tick_ns: 4_000_000,
        pulse_ns: 1_000_000,
        phases: vec![phase(0, 0.0), phase(3_000_000, 0.573)],
        tries: 1,
        cost: Some(EventCost {
            ns_per_event: 71.0,
            events_per_second: 12_300.0,
        }),
        fold: Some(FoldedPulses {
            period_ns: 1_000_000,
            pulses: 1_000,
            datagrams_per_pulse: 32,
            bins: vec![bin(0, 0, 20_000_000), bin(500_000, 40_000_000, 2_000_000)],
        }),
        verdict: TruthVerdict::Holds,
        reason: String::from("the exact account is right to 0.30 points at every phase"),
    }
}

#[test]
fn the_text_shows_both_accounts_and_their_errors() {
    let text = render_text(&truth(), &TextOptions::default());
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let line = |begin: &str| {
        let line = lines.iter().find(|line| line.starts_with(begin));
        line.unwrap_or_else(|| panic!("no line '{begin}' in:\n{text}"))
    };
    assert_eq!(line("0 us 2"), "0 us 25.1 25.4 +0.30 0.3 26.2 0.0 -25.1");
    assert_eq!(
        line("3,000 us"),
        "3,000 us 25.1 25.4 +0.30 0.3 26.2 57.3 +31.4"
    );
    assert!(
        line("0 us kernel").ends_with(&format!(" {}", "k".repeat(28))),
        "{text}"
    );
    assert!(
        line("500 us kernel").ends_with(&format!("kkk{}", "u".repeat(37))),
        "{text}"
    );
    assert!(text.contains("It is: the exact account is right to 0.30 points"));
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn what_was_not_measured_shows_as_a_dash() {
    let mut truth = truth();
    truth.cost = None;
    truth.fold = None;
    truth.verdict = TruthVerdict::Inconclusive;
    let text = render_text(&truth, &TextOptions::default());
    assert!(text.contains("The account itself takes -."), "{text}");
    assert!(text.contains("It cannot be told now: "), "{text}");
    assert!(!text.contains("by phase of a pulse"), "{text}");
}

#[test]
fn the_json_is_valid_by_the_committed_schema() {
    let parse = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let validator = jsonschema::draft202012::new(&parse(SCHEMA)).unwrap();
    assert!(validator.is_valid(&parse(&render_json(&truth()))));
}
