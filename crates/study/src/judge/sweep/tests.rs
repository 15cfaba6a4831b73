//! The greatest rate held and the fixed load, of invented points.

use super::*;

fn of(offered: f64, delivered_ratio: f64) -> SweepPoint {
    SweepPoint {
        workload: String::from("udp"),
        asked_per_second: 100,
        offered_per_second: Some(offered),
        delivered_per_second: Some(offered * delivered_ratio),
        delivered_ratio: Some(delivered_ratio),
        busy_ns_per_packet: None,
        one_way_p50_ns: None,
        one_way_p99_ns: None,
        spinner_ratio: None,
        trials: 3,
    }
}

#[test]
fn a_rate_that_the_sender_missed_is_not_one_that_was_lost() {
    assert_eq!(of(99.5, 0.995).ends(), None);
    assert_eq!(of(100.0, 0.98).ends(), Some(SweepEnd::Loss));
    assert_eq!(of(90.0, 1.0).ends(), Some(SweepEnd::Sender));
    assert_eq!(of(90.0, 0.5).ends(), Some(SweepEnd::Loss));
    let none = SweepPoint {
        offered_per_second: None,
        ..of(100.0, 1.0)
    };
    assert_eq!(none.ends(), Some(SweepEnd::NoResult));
}

#[test]
fn half_and_full_load_are_rates_that_were_run_and_that_every_setting_holds() {
    let setting = |held: Option<u64>| SweptSetting {
        setting: String::from("on"),
        held_per_second: held,
        ended_by: SweepEnd::Loss,
        fixed_load_busy_ns_per_packet: None,
        points: [10, 20, 40, 80]
            .map(|asked_per_second| SweepPoint {
                asked_per_second,
                ..of(1.0, 1.0)
            })
            .to_vec(),
    };
    for (held, knee, expected) in [
        ([Some(80), Some(80)], None, (Some(40), Some(80))),
        ([Some(80), Some(40)], None, (Some(20), Some(40))),
        ([Some(80), Some(10)], None, (None, Some(10))),
        // The lowest rate has a line with the share that arrived.
        ([Some(80), None], None, (None, Some(10))),
        // The knee shown before counts, whatever a later trial did.
        ([Some(80), Some(20)], Some(40), (Some(20), Some(40))),
        ([None, None], Some(81), (Some(40), Some(80))),
    ] {
        let settings = held.map(setting);
        assert_eq!(loads(&settings, knee), expected, "{held:?} {knee:?}");
    }
}
