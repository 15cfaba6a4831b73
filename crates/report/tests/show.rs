//! Interfaces and checks as text: what is missing never prints as a number, and lines fit the page.

use std::collections::BTreeMap;

use nicpoll_model::{
    Ceiling, Check, CheckGroup, CheckStatus, Discipline, Doctor, DriftShow, EventCost, Finding,
    InterfaceShow, InterruptShow, NapiShow, Origin, PollingVariable, Rhythm, Show, ThreadShow,
    Unseen, ValueSource,
};
use nicpoll_report::{TextOptions, render_text};

fn finding(discipline: Discipline) -> Finding {
    Finding {
        discipline,
        why: String::from(
            "a reason that is long enough to need a second line of the page at any width",
        ),
    }
}

fn napi() -> NapiShow {
    NapiShow {
        id: 8193,
        irq: Some(38),
        rx_queues: vec![0, 1],
        defer_hard_irqs: 100,
        gro_flush_timeout_ns: 200_000,
        irq_suspend_timeout_ns: Some(20_000_000),
        threaded: Some(1),
        thread: Some(ThreadShow {
            pid: 812,
            name: String::from("napi/em0-8193"),
            state: 'S',
            cpus: Some(String::from("0-1")),
        }),
        setting: finding(Discipline::Hybrid),
        rhythm: Some(Rhythm {
            evidence: finding(Discipline::Polling),
            polls: 12_345,
            rounds: 4_321,
            timer_rounds: 4_000,
            packets: 99_999,
            packets_per_poll: Some(8.1),
            median_gap_ns: Some(212_000),
            packets_histogram: vec![(8, 12_345)],
            gaps_histogram: vec![(208_896, 4_000)],
            polls_by_cpu: vec![(0, 12_000), (1, 345)],
        }),
    }
}

fn variable(name: &str, value: Option<f64>, source: ValueSource) -> PollingVariable {
    PollingVariable {
        name: String::from(name),
        value,
        source,
        note: String::from("what stands for it"),
    }
}

fn show(napis: Vec<NapiShow>) -> Show {
    Show {
        schema: String::from("nicpoll.show-1"),
        origin: Origin {
            nicpoll_version: String::from("0.1.0"),
            argv: Vec::new(),
            started_at: String::from("2026-01-01T00:00:00Z"),
        },
        netns: None,
        look_seconds: Some(1.0),
        look_cost: Some(EventCost {
            ns_per_event: 90.0,
            events_per_second: 10_000.0,
        }),
        storm_threshold: 1_000,
        interfaces: vec![InterfaceShow {
            name: String::from("em0"),
            ifindex: 2,
            driver: None,
            lower: Vec::new(),
            is_up: true,
            link_bits_per_second: Some(2_500_000_000),
            rx_queues: Some(2),
            tx_queues: None,
            rx_ring_slots: Some(1_024),
            has_gro: Some(true),
            moderation: BTreeMap::from([(String::from("rx-usecs"), 8)]),
            interrupts: vec![InterruptShow {
                irq: 38,
                description: String::from("em0-TxRx-0"),
                cpus: None,
                total: 7,
                per_second: Some(3.5),
                is_storm: Some(true),
            }],
            napis: Some(napis),
            setting: Some(finding(Discipline::Hybrid)),
            evidence: None,
            ceiling: Some(Ceiling {
                slots: 2_048,
                rounds_per_second: 4_717.0,
                packets_per_second: 9_660_000.0,
                is_measured: false,
            }),
            rx_packets_per_second: Some(99_999.0),
            drift: Some(vec![DriftShow {
                name: String::from("gro_flush_timeout"),
                written: String::from("200000"),
                now: None,
            }]),
            pending: None,
            kern_polling: vec![
                variable("hz", Some(4_716.98), ValueSource::Measured),
                variable("burst", Some(23.14), ValueSource::Measured),
                variable("phase", None, ValueSource::None),
            ],
        }],
        unseen: vec![Unseen {
            what: String::from("polls"),
            why: String::from("a reason"),
        }],
    }
}

fn lines_fit(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.chars().count() <= width, "{line}");
    }
    assert!(!text.contains('\x1b'));
}

#[test]
fn what_is_known_is_shown_and_what_is_not_is_no_number() {
    for width in [80, 100] {
        let options = TextOptions {
            width,
            color: false,
        };
        let text = render_text(&show(vec![napi()]), &options);
        lines_fit(&text, width);
        let has = |part: &str| assert!(text.contains(part), "{part}:\n{text}");
        has("em0: no driver, up, 2.5 Gbit/s");
        has("not looked at");
        has("2 to receive, ? to send");
        has("gro-flush-timeout 200 us");
        has("2,048 slots x 4,720 rounds/s (predicted from the timeout)");
        has("kern.polling.hz                   4717  measured");
        has("kern.polling.burst                23.1  measured");
        has("kern.polling.phase                   -  -");
        has("0.0900 %");
        has("Not seen: polls: a reason.");
        has("gro_flush_timeout is gone; nicpoll had set it to 200000");
        has(", 3.50/s, STORM");
        has("STORM: 1,000 or more entries");
    }
}

#[test]
fn an_interface_that_nothing_polls_has_no_block() {
    let text = render_text(&show(Vec::new()), &TextOptions::default());
    assert!(!text.contains("kern.polling"), "{text}");
}

fn doctor(statuses: &[CheckStatus]) -> Doctor {
    let check = |status: &CheckStatus| Check {
        group: CheckGroup::Kernel,
        name: String::from("a feature"),
        interface: Some(String::from("em0\x1b[31m")),
        status: *status,
        finding: String::from("found"),
        remedy: status.is_bad().then(|| String::from("do this")),
    };
    Doctor {
        schema: String::from("nicpoll.doctor-1"),
        origin: Origin {
            nicpoll_version: String::from("0.1.0"),
            argv: Vec::new(),
            started_at: String::from("2026-01-01T00:00:00Z"),
        },
        kernel: String::from("Linux"),
        checks: statuses.iter().map(check).collect(),
    }
}

#[test]
fn bad_checks_have_their_remedies_below_them_and_are_counted() {
    use CheckStatus::{Absent, Confounds, Good, Missing, Unknown};
    let well = doctor(&[Good, Absent, Unknown]);
    assert!(well.is_well());
    let text = render_text(&well, &TextOptions::default());
    assert!(text.contains("Nothing is missing"), "{text}");
    let ill = doctor(&[Good, Missing, Confounds]);
    assert!(!ill.is_well());
    let text = render_text(&ill, &TextOptions::default());
    lines_fit(&text, 100);
    assert_eq!(text.matches("-> do this").count(), 2, "{text}");
    assert!(
        text.contains("2 things are missing or disturb measurements."),
        "{text}"
    );
}
