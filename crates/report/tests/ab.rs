//! The page and the JSON of a live comparison.

use nicpoll_model::ab::{
    AB_SCHEMA, AbBlock, AbCpu, AbDelay, AbDelayKind, AbEnd, AbEndCause, AbPair, AbStamps, AbWindow,
    LiveAb,
};
use nicpoll_model::{LossPlace, Verdict};
use nicpoll_report::{SCHEMAS, TextOptions, render_ab_plan, render_document, render_text};
use nicpoll_stats::ab::{Draw, DrawnPair, LEFT_OUT_SECONDS_MIN, answer};
use nicpoll_testkit::golden;

const PACKETS_PER_SECOND: f64 = 20_000.0;

/// The golden document, which holds the facts around the pairs, and the first pair.
fn base() -> LiveAb {
    serde_json::from_str(include_str!("golden/ab.json")).unwrap()
}

/// Scatter of 10 % either way, the same each time.
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

/// What a setting does: its load, its cores at a load of 1, its polls and its median delay.
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

/// A block, with what `base` has of what is alike in all.
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

/// The pairs of a run.
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

/// A run in which the second setting is `judged`.
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
    assert!(lines(page)[1].starts_with("polling saves 0.0"), "{page}");
    assert!(pages[0].contains(
        "The price is delay: UDP, from the stack to the read, p50 122 us instead of 13.9 us"
    ));
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
fn a_setting_that_costs_or_makes_no_difference_is_not_recommended() {
    for (arm, says) in [
        (POLLING, "as polled costs 0.0"),
        (AS_IT_IS, "as polled makes no difference of 5 % or more"),
    ] {
        let mut compared = run(60, arm, AS_IT_IS);
        compared.judged.name = String::from("as polled");
        let page = page(&compared);
        assert!(lines(&page)[1].starts_with(says), "{page}");
        assert_eq!(lines(&page).last(), Some(&"Keep what you have."));
    }
}

#[test]
fn a_setting_that_moves_the_load_needs_three_figures_to_agree() {
    let slower = Arm {
        load: 0.76,
        cores: AS_IT_IS.cores * 1.25,
        ..POLLING
    };
    let page = page(&run(60, AS_IT_IS, slower));
    assert!(page.contains("The setting moves the load"), "{page}");
    assert!(page.contains("They do not all agree."), "{page}");
    assert_eq!(lines(&page).last(), Some(&"Keep what you have."));
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
    // What the interface and its NAPI instances have alike stands once.
    let turn = "  eth0 and NAPI 8193, 8194: gro_flush_timeout 0 <-> 200000\n";
    assert!(plan.ends_with(&format!("to and fro:\n{turn}")), "{plan}");
    compared.interface = String::from("eth0:rx0");
    compared.members = vec![String::from("eth0")];
    assert!(!page(&compared).contains("stands for"));
}

#[test]
fn without_a_verdict_the_page_says_why() {
    let few = run(8, AS_IT_IS, POLLING);
    let text = page(&few);
    assert!(lines(&text)[1].starts_with("No verdict: 8 pairs of blocks count, and it takes 30."));
    assert!(text.contains("it takes about"), "{text}");
    assert_eq!(lines(&text).last(), Some(&"Keep what you have."));

    let mut aborted = run(60, AS_IT_IS, POLLING);
    aborted.end = AbEnd {
        cause: AbEndCause::CarrierLost,
        text: Some(String::from("the link of eth0 went down")),
    };
    aborted.answer = answer(&aborted.pairs, &aborted.plan, Some(aborted.end.cause));
    let text = page(&aborted);
    let why = "No verdict: the run was given up and everything put back: the link of eth0";
    assert!(lines(&text)[1].starts_with(why), "{text}");
    assert_eq!(lines(&text).last(), Some(&"Keep what you have."));

    let mut disturbed = run(60, AS_IT_IS, POLLING);
    disturbed.end.cause = AbEndCause::Interrupted;
    disturbed.end.text = Some(String::from("the user stopped it"));
    disturbed.pairs[0].set_aside_because = Some(String::from("the clock was stepped"));
    disturbed.restored[0].is_as_before = false;
    disturbed.answer = answer(&disturbed.pairs, &disturbed.plan, Some(disturbed.end.cause));
    let text = page(&disturbed);
    for says in [
        "It ended early: the user stopped it.",
        "1 pair set aside",
        "is NOT as it was",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }

    let mut idle = run(60, AS_IT_IS, POLLING);
    for pair in &mut idle.pairs {
        let window = &mut pair.judged.window;
        window.cpu.as_mut().unwrap().counting_seconds = window.seconds;
    }
    idle.answer = answer(&idle.pairs, &idle.plan, Some(AbEndCause::Planned));
    let text = page(&idle);
    let why = "No verdict: what the traffic costs is below what counting costs, in ";
    assert!(lines(&text)[1].starts_with(why), "{text}");
    let mut cores = lines(&text)
        .into_iter()
        .filter(|it| it.starts_with("cores"));
    assert!(
        cores.all(|it| !it.contains(" -")),
        "no CPU time is below 0: {text}"
    );

    let nothing = page(&run(0, AS_IT_IS, POLLING));
    assert!(
        nothing.contains("No verdict: 0 pairs of blocks count"),
        "{nothing}"
    );
}

#[test]
fn delays_from_the_wire_stand_with_what_their_stamps_are_worth() {
    assert!(!page(&run(60, AS_IT_IS, POLLING)).contains("wire"));
    let mut stamped = run(60, AS_IT_IS, POLLING);
    for (index, pair) in (0..).zip(&mut stamped.pairs) {
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
    stamped.answer = answer(&stamped.pairs, &stamped.plan, Some(AbEndCause::Planned));
    let text = page(&stamped);
    assert!(text.contains(" UDP to read p50"), "{text}");
    assert!(text.contains(" UDP from wire p50"), "{text}");
    assert!(!text.contains("UDP from wire p99"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let says = "Its clock was known to within 1.06 us. Of 120,000 packets, 12,000 are left out: without a stamp,";
    assert!(words.contains(says), "{words}");
}
