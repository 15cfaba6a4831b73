use nicpoll_model::{
    CpuSource, Findings, ForeignCpu, Ledger, Placement, PollEvidence, RoundTrip,
    RoundTripQuantiles, TrialCpu, TrialFigures, Validity, Verdict, Warmup, WindowRates,
};
use nicpoll_testkit::assert_has;

use proptest::prelude::*;

use super::*;
use crate::design::demo;
use crate::design::demo::{DemoOptions, plan};
use crate::judge::findings::setting_findings;
use crate::judge::warnings::foreign_work;

const BLOCKS: u32 = 16;
/// In no order that neighbours share.
const SCATTER: [f64; 16] = [
    1.03, 0.95, 1.01, 1.06, 0.98, 0.96, 1.05, 1.0, 0.94, 1.02, 1.04, 0.97, 0.99, 1.07, 0.93, 1.015,
];

fn figures(bits_per_second: f64) -> TrialFigures {
    let window = WindowRates::new(Some(1000), 64_000, 0.25);
    TrialFigures {
        offered_packets: Some(1000),
        delivered_packets: Some(1000),
        delivered_bits_per_second: bits_per_second,
        loss_ratio: Some(0.0),
        sender: window,
        receiver: window,
        jitter_seconds: Some(1e-6),
        out_of_order_packets: Some(0),
        polls: Some(PollEvidence::default()),
        cpu: Some(TrialCpu {
            source: CpuSource::Exact,
            seconds: 0.1,
            validity: Validity::default(),
            cores: vec![],
            busy_ns_per_packet: Some(5000.0),
            busy_ns_per_byte: Some(80.0),
            delivered_bits_per_second: None,
        }),
        context_switches_per_second: 1000.0,
        ledger: Ledger {
            offered_packets: Some(1000),
            delivered_packets: Some(1000),
            residual_packets: Some(0),
            ..Ledger::default()
        },
        ..TrialFigures::default()
    }
}

fn trial(block: u32, setting: &str) -> Trial {
    let rate = if setting == "polling" { 1.3e8 } else { 1e8 };
    let at = if setting == "polling" {
        block
    } else {
        3 * block + 1
    };
    Trial {
        sequence: block,
        block,
        workload: String::from("udp64"),
        setting: String::from(setting),
        validity: Validity::default(),
        proof_attempts: 1,
        findings: Findings::default(),
        warmup: Warmup {
            seconds: 0.1,
            delivered_bytes: 1,
        },
        placement: Placement {
            sender_cpu: 0,
            receiver_cpu: 1,
            poll_cpus: vec![],
        },
        figures: Some(Box::new(figures(
            rate * SCATTER[at as usize % SCATTER.len()],
        ))),
    }
}

/// The demo with one workload, and its trials after a change.
fn study(change: impl Fn(&mut Trial)) -> (Design, Plan, Vec<Trial>) {
    let options = DemoOptions {
        blocks: Some(BLOCKS),
        workloads: vec![String::from("udp64")],
        ..DemoOptions::default()
    };
    let (design, plan) = plan(&options, Seed(1)).unwrap();
    let mut trials = Vec::new();
    for block in 1..=BLOCKS {
        for setting in [demo::DEFAULT, demo::INTERRUPT, demo::POLLING] {
            let mut trial = trial(block, setting);
            change(&mut trial);
            trials.push(trial);
        }
    }
    (design, plan, trials)
}

/// Returns the study's comparison of polling with a reference by a metric.
fn says(change: impl Fn(&mut Trial), reference: &str, metric: Metric) -> Comparison {
    let (design, plan, trials) = study(change);
    let compared = compare_all(&design, &plan, &trials, Seed(1)).unwrap();
    let mut found = compared.into_iter();
    found
        .find(|one| one.reference == reference && one.metric == metric)
        .unwrap()
}

fn rate(change: impl Fn(&mut Trial)) -> Comparison {
    says(change, "interrupt", Metric::DeliveredBitsPerSecond)
}

fn in_blocks(trial: &Trial, setting: &str, blocks: u32) -> bool {
    trial.setting == setting && trial.block <= blocks
}

#[test]
fn a_plan_of_sixteen_blocks_is_judged_by_ranks() {
    let comparison = rate(|_| ());
    assert_eq!(comparison.verdict, Some(Verdict::BetterAndItMatters));
    assert_eq!((comparison.blocks, comparison.missing_blocks), (16, 0));
    let sensitivity = comparison.sensitivity.unwrap();
    assert_eq!(sensitivity.in_force_trials, [16, 16]);
    assert_eq!(sensitivity.proven_only.blocks, 16);
}

#[test]
fn an_event_from_outside_drops_the_pairs_of_its_trial_alone() {
    let stepped = |trial: &mut Trial| {
        if in_blocks(trial, "default", 2) {
            trial.validity.external = Some(String::from("the clock was stepped"));
        }
    };
    assert_eq!(rate(stepped).missing_blocks, 0);
    let against_default = says(stepped, "default", Metric::DeliveredBitsPerSecond);
    assert_eq!(
        (against_default.blocks, against_default.missing_blocks),
        (14, 2)
    );
    let sensitivity = against_default.sensitivity.unwrap();
    assert_eq!(sensitivity.reference_in_force_trials, [14, 14]);
    assert_eq!(sensitivity.missing_as_worst.unwrap().blocks, 16);
}

#[test]
fn a_failed_trial_has_no_figure() {
    let failed = |blocks| {
        move |trial: &mut Trial| {
            if in_blocks(trial, "polling", blocks) {
                trial.validity.failure = Some(String::from("iperf33: not found"));
                trial.figures = None;
            }
        }
    };
    let some = rate(failed(5));
    assert_eq!((some.blocks, some.missing_blocks), (11, 5));
    // If the failures counted as the worst, the word would be another.
    assert_eq!(some.verdict, Some(Verdict::DependsOnWhatCounts));
    for metric in [Metric::LossRatio, Metric::CpuNsPerPacket, Metric::CpuBusy] {
        let one = says(failed(5), "interrupt", metric);
        assert_eq!((one.blocks, one.missing_blocks), (11, 5), "{metric:?}");
    }
    let all = rate(failed(16));
    assert_eq!((all.blocks, all.ratio), (0, None));
    assert_eq!(all.verdict, Some(Verdict::Inconclusive));
    assert_eq!(
        all.no_verdict.unwrap(),
        "16 of 32 trials failed: iperf33: not found; an interval takes 7 blocks, and there are 0"
    );
    // All count, whatever each one's reason.
    let differently = rate(|trial: &mut Trial| {
        failed(16)(trial);
        if trial.validity.failure.is_some() && trial.block < 4 {
            trial.validity.failure = Some(String::from("no answer"));
        }
    });
    assert_eq!(
        differently.no_verdict.unwrap(),
        "16 of 32 trials failed, most often: iperf33: not found; an interval takes 7 blocks, and there are 0"
    );
}

#[test]
fn nothing_delivered_is_a_figure_and_nothing_under_both_has_no_ratio() {
    let silent = |settings: &'static [&'static str]| {
        move |trial: &mut Trial| {
            if settings.contains(&trial.setting.as_str()) {
                trial.validity.failure = Some(String::from("nothing was delivered"));
                trial.figures = Some(Box::new(figures(0.0)));
            }
        }
    };
    let one = rate(silent(&["polling"]));
    assert_eq!((one.blocks, one.ratio), (16, Some(0.0)));
    assert_eq!(one.verdict, Some(Verdict::WorseAndItMatters));
    let both = rate(silent(&["polling", "interrupt"]));
    assert_eq!((both.blocks, both.ratio), (0, None));
    assert_eq!(both.verdict, Some(Verdict::Inconclusive));
    assert_eq!(
        both.no_verdict.unwrap(),
        "32 of 32 trials failed: nothing was delivered; an interval takes 7 blocks, and there are 0"
    );
}

#[test]
fn an_open_account_voids_the_loss_and_not_the_rate() {
    let open = |trial: &mut Trial| {
        if in_blocks(trial, "polling", 3) {
            trial.validity.ledger_void = Some(String::from("the drain did not finish"));
        }
    };
    assert_eq!(rate(open).blocks, 16);
    let loss = says(open, "interrupt", Metric::LossRatio);
    assert_eq!(loss.missing_blocks, 3);
    // Datagrams of open accounts do not count as chances of a loss.
    assert_eq!(loss.none_seen_of, Some([13_000, 16_000]));
}

#[test]
fn the_run_for_cpu_time_is_judged_by_itself() {
    let disturbed = |trial: &mut Trial| {
        if in_blocks(trial, "polling", 3) {
            let cpu = trial
                .figures
                .as_mut()
                .and_then(|it| it.cpu.as_mut())
                .unwrap();
            cpu.validity.external = Some(String::from("the clock was stepped"));
        }
    };
    assert_eq!(rate(disturbed).blocks, 16);
    let cost = says(disturbed, "interrupt", Metric::CpuNsPerPacket);
    assert_eq!((cost.blocks, cost.missing_blocks), (13, 3));
}

#[test]
fn a_trial_without_its_setting_in_force_has_no_figure() {
    let unproven = |blocks| {
        move |trial: &mut Trial| {
            if in_blocks(trial, "polling", blocks) {
                trial.validity.unproven = Some(String::from("packets went around it"));
            }
        }
    };
    let one = rate(unproven(1));
    assert_eq!((one.blocks, one.missing_blocks), (15, 1));
    assert_eq!(one.sensitivity.unwrap().in_force_trials, [16, 15]);
    let never = rate(unproven(16));
    assert_eq!(never.verdict, Some(Verdict::Inconclusive));
    assert_eq!(
        never.no_verdict.unwrap(),
        "16 of 32 trials ran without their setting in force: packets went around it; an interval takes 7 blocks, and \
         there are 0"
    );
}

proptest! {
    #[test]
    fn no_word_without_the_pairs_that_it_takes(
        fates in proptest::collection::vec(0..6_u8, 3 * BLOCKS as usize),
        blocks in 0..=BLOCKS,
    ) {
        let fate = |trial: &Trial| {
            let arm = ["default", "interrupt", "polling"].iter().position(|it| trial.setting == *it);
            fates[3 * (trial.block as usize - 1) + arm.unwrap()]
        };
        let change = |trial: &mut Trial| match fate(trial) {
            0 => {
                trial.validity.failure = Some(String::from("it crashed"));
                trial.figures = None;
            }
            1 => trial.validity.external = Some(String::from("the clock was stepped")),
            2 => trial.validity.unproven = Some(String::from("packets went around it")),
            3 => {
                trial.validity.failure = Some(String::from("nothing was delivered"));
                trial.figures = Some(Box::new(figures(0.0)));
            }
            _ => {}
        };
        let (design, plan, mut trials) = study(change);
        trials.retain(|trial| trial.block <= blocks);
        // Blocks that the method needs at this level: 1 + log2(family / 0.05).
        let least = 1.0 + (f64::from(plan.family_comparisons) / 0.05).log2();
        for one in compare_all(&design, &plan, &trials, Seed(1)).unwrap() {
            let Some(verdict) = one.verdict else { continue };
            let rate = |block: u32, setting: &str| {
                let mut all = trials.iter();
                let trial = all.find(|it| it.block == block && it.setting == setting).unwrap();
                (fate(trial) >= 3).then(|| trial.figures.as_ref().unwrap().delivered_bits_per_second)
            };
            let pairs = (1..=blocks).filter_map(|it| rate(it, &one.setting).zip(rate(it, &one.reference)));
            let pairs: Vec<(f64, f64)> = pairs.filter(|(a, b)| a + b > 0.0).collect();
            let measured = pairs.len();
            prop_assert_eq!(one.blocks, measured as u32);
            // Half of the pairs 0 on one side and half on the other: their ratios have no middle.
            let zeros = [
                pairs.iter().filter(|it| it.0 == 0.0).count(),
                pairs.iter().filter(|it| it.1 == 0.0).count(),
            ];
            let is_torn = zeros[0] == zeros[1] && 2 * zeros[0] == measured;
            let has_word = verdict != Verdict::Inconclusive;
            prop_assert_eq!(has_word, measured as f64 >= least && !is_torn);
            prop_assert_eq!(has_word, one.no_verdict.is_none());
        }
    }
}

#[test]
fn a_late_timer_is_out_of_rhythm_and_in_force() {
    let late = |deviation| {
        move |trial: &mut Trial| {
            if in_blocks(trial, "polling", 8) {
                trial.validity.unproven = Some(String::from("12 % from one a period"));
                trial.findings.rhythm_deviation_ratio = Some(deviation);
            }
        }
    };
    let slow = rate(late(-0.12)).sensitivity.unwrap();
    assert_eq!(slow.in_force_trials, [16, 16]);
    assert_eq!(slow.proven_only.blocks, 8);
    // A timer that was never armed, and a round for each arrival.
    for deviation in [-1.0, 3.0] {
        let other = rate(late(deviation)).sensitivity.unwrap();
        assert_eq!(other.in_force_trials, [16, 8]);
    }
}

const CROSSED: &str = r#"
question = "Which of two things matters?"
blocks = 16
[[factor]]
name = "period"
levels = [{ name = "50us", machine = { sysctl = { "net.core.message_burst" = 9 } } }, { name = "1ms" }]
[[factor]]
name = "tso"
levels = [{ name = "off", sender = { tso = "off" } }, { name = "on" }]
[[workload]]
name = "udp64"
traffic = { kind = "udp", payload_bytes = 64 }
"#;

/// A study of two factors: 1 ms delivers 1.2 times as much with tso and 1.25 times without, tso nothing more or less.
fn crossed(change: impl Fn(&mut Trial)) -> (Design, Plan, Vec<Trial>) {
    crossed_by(CROSSED, change)
}

/// The same for another file with these factors; a further level of tso is like "off".
fn crossed_by(text: &str, change: impl Fn(&mut Trial)) -> (Design, Plan, Vec<Trial>) {
    let file = crate::StudyFile::parse(text).unwrap();
    let (design, plan) = (file.design.clone(), file.plan(Seed(1)).unwrap().plan);
    let mut trials = Vec::new();
    for block in 1..=BLOCKS {
        let factors = [
            ("50us+off", 1.0),
            ("50us+on", 1.0),
            ("1ms+off", 1.25),
            ("1ms+on", 1.2),
            ("50us+kept", 1.0),
            ("1ms+kept", 1.25),
        ];
        for (at, (setting, factor)) in (1..).zip(factors) {
            let mut trial = trial(block, setting);
            let scatter = SCATTER[(at * block as usize) % SCATTER.len()];
            trial.figures = Some(Box::new(figures(1e8 * factor * scatter)));
            change(&mut trial);
            trials.push(trial);
        }
    }
    (design, plan, trials)
}

/// Returns a study's comparison of a factor over all combinations of the others.
fn effect(of: &(Design, Plan, Vec<Trial>), factor: &str, metric: Metric) -> Option<Comparison> {
    let (design, plan, trials) = of;
    let compared = compare_all(design, plan, trials, Seed(1)).unwrap();
    let is_meant = |one: &Comparison| one.factor.as_deref() == Some(factor) && one.metric == metric;
    compared.into_iter().find(is_meant)
}

#[test]
fn a_factor_is_judged_over_all_combinations_of_the_others() {
    let study = crossed(|_| ());
    let rate = Metric::DeliveredBitsPerSecond;
    let period = effect(&study, "period", rate).unwrap();
    assert_eq!((&*period.setting, &*period.reference), ("1ms", "50us"));
    // The mean of the logs of 1.2 and 1.25, and a verdict at the confidence of all six comparisons.
    let ratio = period.ratio.unwrap();
    assert!((ratio - (1.2_f64 * 1.25).sqrt()).abs() < 0.01, "{ratio}");
    assert_eq!(
        (period.blocks, period.verdict),
        (16, Some(Verdict::BetterAndItMatters))
    );
    assert_eq!(study.1.family_comparisons, 6);
    assert!((period.confidence_ratio - (1.0 - 0.05 / 6.0)).abs() < 1e-12);
    assert!(period.holm_p.unwrap() >= period.difference_p.unwrap());
    assert_eq!(period.sensitivity.unwrap().in_force_trials, [32, 32]);
    // Two trials of each arm in a block scatter less than one: its interval is narrower than those within.
    let compared = compare_all(&study.0, &study.1, &study.2, Seed(1)).unwrap();
    let width = |one: &Comparison| one.ratio_high.unwrap() / one.ratio_low.unwrap();
    let within: Vec<f64> = compared
        .iter()
        .filter(|one| one.metric == rate && one.factor.is_none() && one.setting.starts_with("1ms"))
        .map(width)
        .collect();
    let over = effect(&study, "period", rate).unwrap();
    assert!(within.iter().all(|one| width(&over) < *one), "{within:?}");
    let tso = effect(&study, "tso", rate).unwrap();
    assert!(
        (tso.ratio.unwrap() - 1.0).abs() < 0.05
            && matches!(
                tso.verdict,
                Some(Verdict::Equivalent | Verdict::NoDifferenceProven)
            )
    );
    // Shares are averaged as they are.
    let loss = effect(&study, "tso", Metric::LossRatio).unwrap();
    assert_eq!(
        (loss.share_difference, loss.none_seen_of),
        (Some(0.0), Some([32_000, 32_000]))
    );
}

#[test]
fn a_factor_loses_a_block_only_with_what_one_of_its_trials_lost() {
    let rate = Metric::DeliveredBitsPerSecond;
    let stepped = crossed(|trial| {
        if trial.block == 3 && trial.setting == "1ms+on" {
            trial.validity.external = Some(String::from("the clock was stepped"));
        }
    });
    let period = effect(&stepped, "period", rate).unwrap();
    assert_eq!((period.blocks, period.missing_blocks), (15, 1));
    // A failed trial has no figure, and drops only its block.
    let failed = crossed(|trial| {
        if trial.block == 3 && trial.setting == "1ms+on" {
            trial.validity.failure = Some(String::from("it hung"));
            trial.figures = None;
        }
    });
    let period = effect(&failed, "period", rate).unwrap();
    assert_eq!((period.blocks, period.missing_blocks), (15, 1));
}

#[test]
fn findings_are_by_setting_and_warn_of_foreign_work() {
    let (design, _, trials) = study(|trial| {
        let taken = if trial.setting == "polling" {
            0.12
        } else {
            0.02
        };
        trial.findings.foreign_cpu = vec![ForeignCpu {
            core: 0,
            busy_ratio: taken,
        }];
        trial.findings.steal_ratio = Some(if trial.block == 1 { 0.5 } else { 0.01 });
        if in_blocks(trial, "polling", 2) {
            trial.proof_attempts = 3;
            trial.figures.as_mut().unwrap().delivered_bits_per_second = 1e6;
        }
    });
    let found = setting_findings(&design, &trials, 1.05, Seed(1));
    let [_, interrupt, polling] = &found[..] else {
        panic!("one for each setting: {found:?}");
    };
    assert_eq!((polling.trials, polling.proof_retries), (16, 4));
    assert_eq!(polling.below_half_median_ratio, Some(0.125));
    assert_eq!(polling.worst_decile_per_second, Some(1e6));
    assert_eq!(interrupt.below_half_median_ratio, Some(0.0));
    // No trial has steps; their rates are in no order.
    assert!(interrupt.rate_within_trials.is_none());
    let over_trials = interrupt.rate_over_trials.unwrap();
    assert_eq!((over_trials.trials, over_trials.found), (16, None));
    assert_eq!(polling.steal.unwrap().max_ratio, 0.5);
    assert_eq!(polling.steal.unwrap().median_ratio, 0.01);
    let warning = foreign_work(&found).unwrap();
    assert_has(&warning, "12 % of a core (udp64 under polling)");
    assert_eq!(foreign_work(&found[..2]), None);
}

/// The judged metrics of polling against interrupts under traffic that a study file describes, after a change.
fn judged(traffic: &str, change: impl Fn(&mut Trial)) -> Vec<Comparison> {
    let text = format!(
        "question = \"?\"\n[[setting]]\nname = \"interrupt\"\n[[setting]]\nname = \"polling\"\n[[workload]]\n\
         name = \"udp64\"\n{traffic}\n"
    );
    let file = crate::design::file::StudyFile::parse(&text).unwrap();
    let plan = file.plan(Seed(1)).unwrap().plan;
    let mut trials = Vec::new();
    for block in 1..=plan.blocks {
        for setting in ["interrupt", "polling"] {
            let mut trial = trial(block, setting);
            change(&mut trial);
            trials.push(trial);
        }
    }
    let compared = compare_all(&file.design, &plan, &trials, Seed(1)).unwrap();
    let judged: Vec<Comparison> = compared.into_iter().filter(|one| one.primary).collect();
    let level = Confidence::for_family(judged.len() as u32).level();
    assert!(judged.iter().all(|one| one.confidence_ratio == level));
    judged
}

/// Returns a trial's figures for a change.
fn own(trial: &mut Trial) -> &mut TrialFigures {
    trial.figures.as_mut().unwrap()
}

fn busy_ns(trial: &mut Trial) -> &mut Option<f64> {
    &mut own(trial).cpu.as_mut().unwrap().busy_ns_per_packet
}

const PACED: &str = "traffic = { kind = \"udp\", payload_bytes = 64, packets_per_second = 4000 }";

#[test]
fn a_paced_load_is_judged_by_what_arrives_and_by_what_it_costs() {
    let cheaper = judged(PACED, |trial| {
        let by = if trial.setting == "polling" {
            0.77
        } else {
            1.0
        };
        *busy_ns(trial) = Some(5000.0 * by * SCATTER[trial.block as usize % 16]);
    });
    let words: Vec<_> = cheaper
        .iter()
        .map(|it| (it.metric, it.verdict.unwrap()))
        .collect();
    assert_eq!(
        words,
        [
            (Metric::DeliveredRatio, Verdict::Equivalent),
            (Metric::CpuNsPerPacket, Verdict::BetterAndItMatters),
        ]
    );
    // Half is lost: cheap packets do not make up for that.
    let lossy = judged(PACED, |trial| {
        if trial.setting == "polling" {
            own(trial).delivered_packets = Some(500);
            *busy_ns(trial) = Some(3000.0);
        }
    });
    assert_eq!(lossy[0].verdict, Some(Verdict::WorseAndItMatters));
    assert!((lossy[0].ratio.unwrap() - 0.5).abs() < 1e-9);
}

#[test]
fn a_setting_that_polls_cannot_prove_is_compared_by_what_was_read_back() {
    let all = judged(PACED, |trial| {
        trial.validity.unproven = Some(String::from("not proven by polls"));
        own(trial).polls = None;
        own(trial).cpu.as_mut().unwrap().source = CpuSource::TickSampled;
    });
    for one in &all {
        assert_eq!(one.verdict, Some(Verdict::Equivalent), "{one:?}");
    }
    let seen = judged(PACED, |trial| {
        trial.validity.unproven = Some(String::from("never polled"));
    });
    assert_eq!(seen[0].verdict, Some(Verdict::Inconclusive));
}

#[test]
fn what_has_no_cost_has_no_verdict_on_it_and_the_reason() {
    let nothing = judged(PACED, |trial| {
        if trial.setting == "polling" {
            let figures = own(trial);
            figures.delivered_packets = Some(0);
            figures.delivered_bits_per_second = 0.0;
        }
    });
    assert_eq!(nothing[0].verdict, Some(Verdict::WorseAndItMatters));
    assert_eq!(nothing[0].ratio, Some(0.0));
    let why = nothing[1].no_verdict.as_deref().unwrap();
    assert!(
        why.starts_with("16 of 32 trials delivered nothing"),
        "{why}"
    );
    let failed = judged(PACED, |trial| {
        trial.validity.failure = Some(String::from("it is not found"));
        trial.figures = None;
    });
    for one in &failed {
        let why = one.no_verdict.as_deref().unwrap();
        assert!(
            why.starts_with("32 of 32 trials failed: it is not found"),
            "{why}"
        );
    }
}

const SESSION: &str = "traffic = { kind = \"rr\", requests_per_second = 200 }";

#[test]
fn a_session_is_judged_by_its_median_round_trip() {
    let answered = |trial: &mut Trial| {
        let p50_ns = if trial.setting == "polling" {
            1_280e3
        } else {
            127e3
        };
        own(trial).round_trip = Some(RoundTrip {
            transactions: 50,
            transactions_per_second: 200.0,
            timeouts: 0,
            quantiles: RoundTripQuantiles {
                min_ns: None,
                p50_ns: Some((p50_ns * SCATTER[trial.block as usize % 16]) as u64),
                p99_ns: None,
                p999_ns: None,
                max_ns: None,
                mean_ns: None,
            },
        });
    };
    let [slow] = &judged(SESSION, answered)[..] else {
        panic!("one metric");
    };
    assert_eq!(slow.metric, Metric::RoundTripP50Ns);
    assert_eq!(slow.verdict, Some(Verdict::WorseAndItMatters));
    assert!((slow.ratio.unwrap() - 10.08).abs() < 0.05, "{slow:?}");
    // No answer at all is the longest of all round trips.
    let unanswered = judged(SESSION, |trial| {
        answered(trial);
        if trial.setting == "polling" {
            own(trial).delivered_bits_per_second = 0.0;
        }
    });
    assert_eq!(unanswered[0].verdict, Some(Verdict::WorseAndItMatters));
}
