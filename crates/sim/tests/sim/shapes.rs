//! The curves of Mogul and Ramakrishnan (Eliminating receive livelock, 1996), and of later mechanisms: not the
//! figures, which depend on the host, but what rises, what falls and what holds.

use nicpoll_model::LossPlace;
use nicpoll_model::sim::SimFigures;
use nicpoll_sim::simulate;

use crate::common::*;

fn at(discipline: &str, kpps: u64) -> SimFigures {
    run(discipline, &format!("poisson:rate={kpps}k"))
}

/// Delivered packets a second under each load in thousands.
fn curve(discipline: &str, loads: &[u64]) -> Vec<f64> {
    let delivered = loads
        .iter()
        .map(|kpps| at(discipline, *kpps).delivered_packets_per_second);
    delivered.collect()
}

fn peak(curve: &[f64]) -> f64 {
    curve.iter().copied().fold(0.0, f64::max)
}

const LOADS: [u64; 7] = [20, 40, 60, 80, 100, 150, 200];
/// Asks for every packet, and keeps no share for programs.
const NO_QUOTA: &str = "freebsd-polling:burst_max=20000:each_burst=20000:user_frac=0";

#[test]
fn interrupts_rise_to_a_peak_and_fall_to_nothing() {
    let curve = curve("freebsd-interrupt", &LOADS);
    assert!(curve[0] < curve[1] && curve[1] < curve[2], "{curve:?}");
    assert!(curve[3] < curve[2] / 2.0, "{curve:?}");
    assert!(curve[6] < peak(&curve) / 100.0, "{curve:?}");
    // The processor has not stopped: it works on packets that it then throws away.
    let livelock = at("freebsd-interrupt", 200);
    assert!(cpu(&livelock).idle_ratio < 0.01 && cpu(&livelock).interrupt_ratio > 0.9);
    assert!(lost(&livelock, LossPlace::IpQueue) > 0);
}

#[test]
fn moderation_moves_the_peak_and_not_the_fall() {
    let plain = curve("freebsd-interrupt", &LOADS);
    let moderated = curve("freebsd-interrupt:card.moderation_ns=100us", &LOADS);
    assert!(peak(&moderated) > 1.1 * peak(&plain), "{moderated:?}");
    assert!(moderated[6] < peak(&moderated) / 100.0, "{moderated:?}");
}

#[test]
fn polling_without_quota_starves_the_program() {
    let curve = curve(NO_QUOTA, &LOADS);
    assert!(curve[6] < peak(&curve) / 3.0, "{curve:?}");
    let overload = at(NO_QUOTA, 200);
    below(cpu(&overload).user_ratio + cpu(&overload).system_ratio, 0.1);
}

#[test]
fn polling_with_a_quota_holds_its_throughput() {
    // The quota alone: nothing is kept for programs but what the bounded burst leaves.
    let quota = "freebsd-polling:burst_max=60:user_frac=0";
    let curve = curve(quota, &LOADS);
    assert!(curve[6] > 0.95 * peak(&curve), "{curve:?}");
    let overload = at(quota, 200);
    // HZ x burst_max, the ceiling of polling(4).
    near(overload.delivered_packets_per_second, 60_000.0, 600.0);
    assert_eq!(lost(&overload, LossPlace::IpQueue), 0);
    assert_eq!(lost(&overload, LossPlace::SocketBuffer), 0);
}

#[test]
fn with_feedback_the_program_keeps_its_share() {
    for controller in ["freebsd", "share"] {
        for user_frac in [30, 50, 80] {
            let discipline = format!(
                "freebsd-polling:burst_max=1000:user_frac={user_frac}:controller={controller}\
                 :application.computing=1"
            );
            let figures = at(&discipline, 200);
            let left = 1.0 - cpu(&figures).interrupt_ratio - cpu(&figures).soft_interrupt_ratio;
            let wanted = f64::from(user_frac) / 100.0;
            assert!((left - wanted).abs() < 0.05, "{discipline}: {left}");
            assert_eq!(lost(&figures, LossPlace::SocketBuffer), 0, "{discipline}");
        }
    }
}

#[test]
fn what_polling_cannot_take_is_lost_where_it_costs_nothing() {
    let figures = at("freebsd-polling", 200);
    assert_eq!(figures.ledger.lost(), lost(&figures, LossPlace::RxRing));
}

#[test]
fn interrupts_a_packet_collapse_under_load_with_napi() {
    let light = at("napi", 5);
    let heavy = at("napi", 200);
    let a_packet = |figures: &SimFigures| {
        figures.hosts[0].interrupts as f64 / figures.ledger.offered_datagrams as f64
    };
    assert!(a_packet(&light) > 0.9, "{}", a_packet(&light));
    assert!(a_packet(&heavy) < 0.01, "{}", a_packet(&heavy));
    let napi = heavy.hosts[0].napi.unwrap();
    assert!(napi.time_squeezes > 0 && napi.handovers > 0, "{napi:?}");
}

#[test]
fn deferral_turns_interrupts_into_polls_a_period() {
    let figures = at("napi-timer:timeout=500us", 10);
    let napi = figures.hosts[0].napi.unwrap();
    below(figures.hosts[0].interrupts, 10);
    // A period is the timeout and what the round itself takes: 400 in 0.2 s at most.
    assert!((300..=400).contains(&napi.timer_polls), "{napi:?}");
    // A longer period makes latency.
    let slow = at("napi-timer:timeout=5ms", 10);
    assert!(slow.latency.p50_ns > figures.latency.p50_ns);
}

#[test]
fn a_program_that_polls_never_starves_itself() {
    let curve = curve("busy-poll", &LOADS);
    assert!(curve[6] > 0.95 * peak(&curve), "{curve:?}");
    let light = at("busy-poll:spin=1ms", 5);
    let woken = at("napi", 5);
    assert!(light.latency.p50_ns < woken.latency.p50_ns);
}

#[test]
fn storm_throttling_lets_one_pass_a_tick_through() {
    // From the start: the storm is reported once a second.
    let mut early = plan("freebsd-interrupt:storm.threshold=100", "poisson:rate=200k");
    early.warmup_ns = 0;
    let figures = simulate(&early).unwrap();
    let storm = figures.hosts[0].storm.unwrap();
    assert!(
        storm.throttled_passes > 0 && storm.reports >= 1,
        "{storm:?}"
    );
    // 200 ticks in 0.2 s.
    assert!(storm.throttled_passes <= 201, "{storm:?}");
    // Throttling is what lets anything through at all.
    assert!(
        figures.delivered_packets_per_second
            > 10.0 * at("freebsd-interrupt", 200).delivered_packets_per_second + 1000.0
    );
    let off = at("freebsd-interrupt:storm.threshold=0", 200).hosts[0]
        .storm
        .unwrap();
    assert_eq!((off.throttled_passes, off.reports), (0, 0));
}

#[test]
fn batches_are_cheaper_at_full_load_than_at_half() {
    let busy_ns = |kpps: u64| {
        let figures = at("freebsd-interrupt:card.moderation_ns=200us", kpps);
        (1.0 - cpu(&figures).idle_ratio) / figures.delivered_packets_per_second
    };
    assert!(busy_ns(60) < 0.95 * busy_ns(15));
}
