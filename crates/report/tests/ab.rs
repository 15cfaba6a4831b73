//! The page and the JSON of a live comparison.

use nicpoll_model::ab::{
    AB_SCHEMA, AbBlock, AbCpu, AbDelay, AbDelayKind, AbEnd, AbEndCause, AbPair, AbStamps, AbWindow,
    LiveAb,
};
use nicpoll_model::{CpuSource, LossPlace, Verdict};
use nicpoll_report::{
    SCHEMAS, TextOptions, render_ab_plan, render_document, render_html, render_markdown,
    render_text,
};
use nicpoll_stats::ab::{Draw, DrawnPair, LEFT_OUT_SECONDS_MIN, answer};
use nicpoll_testkit::golden;
use proptest::prelude::*;

const PACKETS_PER_SECOND: f64 = 20_000.0;

/// Reads the golden document, with the facts around the pairs, and the first pair.
fn base() -> LiveAb {
    serde_json::from_str(include_str!("golden/ab.json")).unwrap()
}

/// Returns a fixed scatter of 10 % either way.
fn scatter(index: usize, step: usize) -> f64 {
    1.0 + 0.1 * ((index * step % 101) as f64 / 50.0 - 1.0)
}

fn window(seconds: f64, load: f64, cores: f64, index: usize) -> AbWindow {
    let packets = (PACKETS_PER_SECOND * load * seconds * scatter(index, 37)) as u64;
    let busy = seconds * cores * load * scatter(index, 59);
    AbWindow {
        seconds,
        rx_packets: packets,
        tx_packets: packets / 50,
        rx_bytes: packets * 1514,
        tx_bytes: packets * 66 / 50,
        cpu: Some(AbCpu {
            source: CpuSource::Exact,
            user_seconds: busy * 0.2,
            system_seconds: busy * 0.3,
            irq_seconds: busy * 0.1,
            softirq_seconds: busy * 0.42,
            foreign_seconds: seconds * 0.01,
            counting_seconds: busy * 0.02,
            steal_seconds: seconds * 0.005,
        }),
    }
}

/// Behaviour of a setting: its load, its cores at a load of 1, its polls and its median delay.
#[derive(Clone, Copy)]
struct Arm {
    load: f64,
    cores: f64,
    polls_per_second: f64,
    p50_ns: f64,
}

const AS_IT_IS: Arm = Arm {
    load: 1.0,
    cores: 0.16,
    polls_per_second: 12_000.0,
    p50_ns: 14_000.0,
};
const POLLING: Arm = Arm {
    load: 1.0,
    cores: 0.086,
    polls_per_second: 4_600.0,
    p50_ns: 121_000.0,
};

/// Makes a block; figures that are alike in all are those of `base`.
fn block(
    base: &AbBlock,
    arm: Arm,
    [start_seconds, duration_seconds]: [f64; 2],
    index: usize,
) -> AbBlock {
    let seconds = duration_seconds - LEFT_OUT_SECONDS_MIN;
    let polls = Some((arm.polls_per_second * seconds) as u64);
    let of = |seconds| window(seconds, arm.load, arm.cores, index);
    let window = of(seconds);
    let mut block = AbBlock {
        start_seconds,
        duration_seconds,
        window,
        later_window: Some(of(seconds - LEFT_OUT_SECONDS_MIN)),
        receive_softirqs: polls,
        polls,
        polled_packets: Some(window.packets()),
        context_switches: Some((900.0 * seconds) as u64),
        ..base.clone()
    };
    let dropped = &mut block.dropped_packets.0;
    dropped.insert(LossPlace::RxRing, Some(index as u64 % 3));
    block.delays[0].p50_ns = arm.p50_ns * scatter(index, 71);
    block.delays[0].p99_ns = Some(6.0 * arm.p50_ns * scatter(index, 83));
    for queue in &mut block.queues {
        queue.rx_packets = Some(window.rx_packets / 2);
        queue.polls = polls.map(|polls| polls / 2);
        let packets = queue.counters.get_mut("packets");
        *packets.unwrap() = window.rx_packets / 2;
    }
    block
}

/// Makes the pairs of a run.
fn pairs(base: &LiveAb, count: usize, reference: Arm, judged: Arm) -> Vec<AbPair> {
    let mut start = 0.0;
    let pair = |(index, drawn): (usize, DrawnPair)| {
        let [one, other] = drawn.block_seconds;
        let is_judged_first = drawn.is_judged_first;
        let mut arms = [reference, judged];
        if is_judged_first {
            arms.reverse();
        }
        let base = &base.pairs[0].reference;
        let mut blocks = [
            block(base, arms[0], [start, one], 2 * index),
            block(base, arms[1], [start + one, other], 2 * index + 1),
        ];
        start += drawn.seconds();
        if is_judged_first {
            blocks.reverse();
        }
        let [reference, judged] = blocks;
        AbPair {
            is_judged_first,
            reference,
            judged,
            set_aside_because: None,
        }
    };
    let drawn = Draw::new(&base.plan).take(count).enumerate();
    drawn.map(pair).collect()
}

/// Makes a run with `judged` as the second setting.
fn run(count: usize, reference: Arm, judged: Arm) -> LiveAb {
    let mut run = base();
    run.pairs = pairs(&run, count, reference, judged);
    run.answer = answer(&run.pairs, &run.plan, Some(run.end.cause));
    run
}

fn page(compared: &LiveAb) -> String {
    render_text(compared, &TextOptions::wide(100))
}

fn lines(page: &str) -> Vec<&str> {
    page.lines()
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .collect()
}

#[test]
fn a_comparison_that_saves() {
    let saves = run(60, AS_IT_IS, POLLING);
    assert_eq!(saves.answer.verdict, Some(Verdict::BetterAndItMatters));
    let manners = [(100, false), (80, false), (100, true)];
    let pages = manners.map(|(width, color)| render_text(&saves, &TextOptions { width, color }));
    golden("tests/golden/ab.txt", &pages.join("\n====\n\n"));
    let page = &pages[1];
    assert!(page.lines().all(|line| line.len() <= 80), "{page}");
    assert_eq!(lines(page).last(), Some(&saves.judged.command.as_str()));
    assert!(
        lines(page)[1].starts_with("Cost: polling saves 0.0"),
        "{page}"
    );
    assert!(pages[0].contains(
        "The price is delay: UDP, from the stack to the read, p50 122 us instead of 13.9 us"
    ));
}

#[test]
fn a_sampled_cost_is_named_so() {
    let mut sampled = run(60, AS_IT_IS, POLLING);
    sampled.answer.cpu.as_mut().unwrap().source = CpuSource::TickSampled;
    let page = page(&sampled);
    let said = "Cost, CPU time sampled by ticks: polling saves 0.0";
    assert!(lines(&page)[1].starts_with(said), "{page}");
    assert!(lines(&page).contains(&"cost, CPU time sampled by ticks"));
}

#[test]
fn of_a_setting_against_itself_any_difference_is_chance_and_nothing_is_recommended() {
    let mut null = run(60, AS_IT_IS, POLLING);
    null.plan.is_null = true;
    null.answer = answer(&null.pairs, &null.plan, Some(null.end.cause));
    let page = page(&null);
    assert!(lines(&page)[1].starts_with("A setting against itself: any difference here is chance"));
    assert!(!page.contains("What to do"), "{page}");
}

#[test]
fn the_document_is_as_it_was_and_as_its_schema_says() {
    let mut saves = run(60, AS_IT_IS, POLLING);
    saves.pairs.truncate(1);
    let json = render_document(&saves);
    golden("tests/golden/ab.json", &json);
    assert_eq!(serde_json::from_str::<LiveAb>(&json).unwrap(), saves);
    let (_, schema) = SCHEMAS.iter().find(|(name, _)| *name == AB_SCHEMA).unwrap();
    let schema = serde_json::from_str(&schema(AB_SCHEMA)).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let document = serde_json::from_str(&json).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&document)
        .map(|it| it.to_string())
        .collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn a_bond_is_told_by_its_members_and_a_queue_by_itself() {
    let mut compared = run(60, AS_IT_IS, POLLING);
    compared.interface = String::from("bond0");
    compared.members = ["eth0", "eth1"].map(String::from).to_vec();
    let says = "bond0 stands for eth0, eth1: its packets arrive there";
    assert!(page(&compared).contains(says), "{}", page(&compared));
    let plan = render_ab_plan(&compared);
    assert!(plan.contains(says), "{plan}");
    // A change that the interface and its NAPI instances share is listed once.
    let turn = "  eth0 and NAPI 8193, 8194: gro_flush_timeout 0 <-> 200000\n";
    assert!(plan.ends_with(&format!("to and fro:\n{turn}")), "{plan}");
}

/// Changes the run of the golden page, and answers it again.
fn run_with(change: impl FnOnce(&mut LiveAb)) -> LiveAb {
    let mut run = run(60, AS_IT_IS, POLLING);
    change(&mut run);
    run.answer = answer(&run.pairs, &run.plan, Some(run.end.cause));
    run
}

/// Makes a run's load sixty times as great.
fn hurry(run: &mut LiveAb) {
    for pair in &mut run.pairs {
        for block in [&mut pair.reference, &mut pair.judged] {
            block.window.rx_packets *= 60;
        }
    }
}

/// Makes runs with other answers than a saving.
fn others() -> [(&'static str, LiveAb); 11] {
    let slower = Arm {
        load: 0.76,
        cores: AS_IT_IS.cores * 1.25,
        ..POLLING
    };
    let aborted = run_with(|run| {
        run.end = AbEnd {
            cause: AbEndCause::CarrierLost,
            text: Some(String::from("the link of eth0 went down")),
        };
    });
    let disturbed = run_with(|run| {
        run.end.cause = AbEndCause::Interrupted;
        run.end.text = Some(String::from("the user stopped it"));
        run.pairs[0].set_aside_because = Some(String::from("the clock was stepped"));
        run.restored[0].is_as_before = false;
    });
    let idle = run_with(|run| {
        for pair in &mut run.pairs {
            let window = &mut pair.judged.window;
            window.cpu.as_mut().unwrap().counting_seconds = window.seconds;
        }
    });
    let stamped = run_with(|run| {
        for (index, pair) in (0..).zip(&mut run.pairs) {
            for block in [&mut pair.reference, &mut pair.judged] {
                let stack = block.delays[0];
                block.delays.push(AbDelay {
                    kind: AbDelayKind::UdpWireToRead,
                    samples: 900,
                    p50_ns: stack.p50_ns + 100_000.0,
                    p99_ns: None,
                    stamps: Some(AbStamps {
                        error_ns: 1_000.0 + f64::from(index),
                        left_out_packets: 100,
                    }),
                });
            }
        }
    });
    [
        ("a million packets a second", run_with(hurry)),
        ("a setting that costs", run(60, POLLING, AS_IT_IS)),
        ("no difference", run(60, AS_IT_IS, AS_IT_IS)),
        (
            "three figures of a moved load that disagree",
            run(60, AS_IT_IS, slower),
        ),
        ("too few pairs", run(8, AS_IT_IS, POLLING)),
        ("no pairs", run(0, AS_IT_IS, POLLING)),
        ("given up", aborted),
        ("stopped, a pair set aside, a value not put back", disturbed),
        ("less CPU time than counting takes", idle),
        (
            "delays from the wire with what their stamps are worth",
            stamped,
        ),
        (
            "a queue, which stands for itself",
            run_with(|run| {
                run.interface = String::from("eth0:rx0");
                run.members = vec![String::from("eth0")];
            }),
        ),
    ]
}

#[test]
fn a_page_says_why_the_setting_is_not_recommended_and_what_is_odd_about_a_run() {
    let pages = others().map(|(name, run)| format!("%% {name}\n\n{}\n", page(&run)));
    golden("tests/golden/ab-others.txt", &pages.concat());
}

/// Spoils a pair of blocks in one of the ways that there are.
fn spoil(pair: &mut AbPair, number: u8) {
    let both = [&mut pair.judged, &mut pair.reference];
    match number % 5 {
        0 => pair.set_aside_because = Some(String::from("the clock was stepped")),
        1 => pair.judged.window.cpu = None,
        2 => both.into_iter().for_each(|block| {
            let cpu = block.window.cpu;
            let seconds = block.window.seconds;
            block.window = AbWindow {
                seconds,
                cpu,
                ..AbWindow::default()
            };
        }),
        3 => {
            let window = &mut pair.judged.window;
            let seconds = window.seconds;
            window.cpu.as_mut().unwrap().counting_seconds = seconds;
        }
        _ => both.into_iter().for_each(|block| {
            block.window.seconds = 0.0;
            block.later_window = None;
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn there_is_no_word_without_the_pairs_it_takes(
        numbers in proptest::collection::vec(0..60_u8, 0..60),
        spoiled in 0..60_u8,
        cause in prop_oneof![
            4 => Just(AbEndCause::Planned),
            1 => Just(AbEndCause::Interrupted),
            1 => Just(AbEndCause::CarrierLost),
        ],
    ) {
        let mut run = run(numbers.len(), AS_IT_IS, POLLING);
        for (pair, number) in run.pairs.iter_mut().zip(&numbers) {
            if *number < spoiled {
                spoil(pair, *number);
            }
        }
        run.end.cause = cause;
        run.answer = answer(&run.pairs, &run.plan, Some(cause));
        let measured = numbers.iter().filter(|it| **it >= spoiled || matches!(**it % 5, 2 | 3)).count();
        let has_word = run.answer.verdict.is_some();
        prop_assert!(!has_word || measured as u32 >= run.plan.pairs_min && !cause.is_abort());
        prop_assert_eq!(has_word, run.answer.no_verdict.is_empty());
        let wide = TextOptions::wide(100);
        for text in [render_text(&run, &wide), render_markdown(&run), render_html(&run)] {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let said = ["polling saves ", "polling costs ", "makes no difference", "no difference proven"];
            let said: Vec<&str> = said.into_iter().filter(|word| text.contains(word)).collect();
            prop_assert_eq!(said.len(), usize::from(has_word), "{}", text);
            prop_assert_eq!(text.contains("No verdict: "), !has_word, "{}", text);
        }
    }
}
