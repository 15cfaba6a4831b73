//! The greatest rate held and the fixed load, of points that are made up.

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
    assert_eq!(ends(&of(99.5, 0.995)), None);
    assert_eq!(ends(&of(100.0, 0.98)), Some(SweepEnd::Loss));
    assert_eq!(ends(&of(90.0, 1.0)), Some(SweepEnd::Sender));
    assert_eq!(ends(&of(90.0, 0.5)), Some(SweepEnd::Loss));
    let none = SweepPoint {
        offered_per_second: None,
        ..of(100.0, 1.0)
    };
    assert_eq!(ends(&none), Some(SweepEnd::NoResult));
}

#[test]
fn the_fixed_load_is_one_that_was_run_and_that_every_setting_holds_twice() {
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
    assert_eq!(
        fixed_load(&[setting(Some(80)), setting(Some(80))]),
        Some(40)
    );
    assert_eq!(
        fixed_load(&[setting(Some(80)), setting(Some(40))]),
        Some(20)
    );
    assert_eq!(fixed_load(&[setting(Some(80)), setting(Some(10))]), None);
    assert_eq!(fixed_load(&[setting(Some(80)), setting(None)]), None);
}
