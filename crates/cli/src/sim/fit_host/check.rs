//! The demo's traffic under `interrupt` and `polling`, simulated and measured.

use std::sync::atomic::Ordering;

use anyhow::{Context, Result, anyhow};
use nicpoll_model::sim_fit_host::{CheckKind, CheckQuantity, HostCheck};
use nicpoll_model::sim_path::SimPathFigures;
use nicpoll_model::{Setting, Trial, Workload};
use nicpoll_sim::{
    Discipline, Host, PathPlan, Stop as SimStop, Workload as SimWorkload, simulate_path,
};
use nicpoll_stats::Summary;
use nicpoll_stats::order::Seed;
use nicpoll_study::{Cancelled, Lab, Options, Place, Trials, plan};
use nicpoll_switch::DEFER_HARD_IRQS_MAX;

use crate::progress::Spinner;
use crate::stop::Stop;

const WORKLOADS: [Workload; 3] = [Workload::Udp1470, Workload::Udp64, Workload::Rr];
const SETTINGS: [Setting; 2] = [Setting::Interrupt, Setting::Polling];
/// Virtual time of a run that is counted, and of one that looks for the timeout.
const COUNTED_NS: u64 = 500_000_000;
const LOOK_NS: u64 = 100_000_000;
/// Steps towards the timeout that gives one round a period, each of which makes up for this share of the error.
const STEPS: u32 = 12;
const GAIN: f64 = 0.7;
/// The least timeout that a host can be given.
const TIMEOUT_MIN_NS: f64 = 1000.0;

/// Runs and simulates all of it.
pub fn run(
    lab: &mut Lab,
    host: &Host,
    quick: bool,
    stop: &Stop,
    spinner: &Spinner,
) -> Result<Vec<HostCheck>> {
    let options = Options {
        quick,
        blocks: Some(nicpoll_study::QUICK_BLOCKS),
        workloads: WORKLOADS.to_vec(),
        ..Options::default()
    };
    // The order of a block is drawn; any will do that is the same for each.
    let plan = plan(&options, Seed(1)).context("planning the check")?;
    let simulated = simulate_all(host, plan.period_ns)?;
    let mut trials = Trials::new(lab, &plan, stop.asked());
    trials.rehearse()?;
    let mut done = Vec::new();
    let wanted = plan
        .order
        .iter()
        .filter(|(_, setting)| SETTINGS.contains(setting));
    let count = wanted.clone().count();
    for (index, &(workload, setting)) in wanted.enumerate() {
        if stop.asked().load(Ordering::Relaxed) {
            return Err(Cancelled.into());
        }
        let sequence = index as u32 + 1;
        spinner.show(format!(
            "checking, trial {sequence} of {count}: {workload} under {setting}"
        ));
        done.push(trials.run(Place {
            sequence,
            block: sequence,
            attempt: 1,
            workload,
            setting,
        })?);
    }
    Ok(compared(&simulated, &done))
}

/// What the simulator says of a workload under a setting.
struct Simulated {
    workload: Workload,
    setting: Setting,
    figures: SimPathFigures,
}

fn simulate_all(host: &Host, period_ns: u64) -> Result<Vec<Simulated>> {
    let mut all = Vec::new();
    for workload in WORKLOADS {
        for setting in SETTINGS {
            let discipline = match setting {
                Setting::Polling => timed(host, workload, period_ns)?,
                _ => String::from("napi"),
            };
            all.push(Simulated {
                workload,
                setting,
                figures: simulate(host, workload, &discipline, COUNTED_NS)?,
            });
        }
    }
    Ok(all)
}

/// Polling by the timer with the timeout that gives one round a period, found as the demo finds it.
fn timed(host: &Host, workload: Workload, period_ns: u64) -> Result<String> {
    let discipline = |timeout_ns: f64| {
        let timeout_ns = timeout_ns as u64;
        format!("napi-timer:defer={DEFER_HARD_IRQS_MAX}:timeout={timeout_ns}ns")
    };
    let mut timeout_ns = period_ns as f64;
    for _ in 0..STEPS {
        let figures = simulate(host, workload, &discipline(timeout_ns), LOOK_NS)?;
        let rounds = figures.hosts[0].napi.map_or(0, |napi| napi.timer_polls);
        let gap_ns = LOOK_NS as f64 / rounds.max(1) as f64;
        timeout_ns -= GAIN * (gap_ns - period_ns as f64);
        timeout_ns = timeout_ns.clamp(TIMEOUT_MIN_NS, period_ns as f64);
    }
    Ok(discipline(timeout_ns))
}

/// The receiver under a discipline; the sender's own end has a poll for each packet.
fn simulate(host: &Host, workload: Workload, discipline: &str, ns: u64) -> Result<SimPathFigures> {
    let traffic = match workload.datagram_bytes() {
        Some(bytes) if workload == Workload::Rr => format!("rr:payload={bytes}"),
        Some(bytes) => format!("netblast:payload={bytes}"),
        None => return Err(anyhow!("{workload} is not simulated")),
    };
    let stop = |discipline| -> Result<SimStop> {
        Ok(SimStop {
            host: host.clone(),
            discipline: Discipline::parse(discipline).map_err(anyhow::Error::msg)?,
        })
    };
    let plan = PathPlan {
        stops: vec![stop("napi")?, stop(discipline)?],
        workload: SimWorkload::parse(&traffic).map_err(anyhow::Error::msg)?,
        duration_ns: ns,
        warmup_ns: LOOK_NS / 2,
        seed: 1,
        slices: 0,
    };
    Ok(simulate_path(&plan)?)
}

/// The median round trip with a poll for each packet; `None` without any.
pub fn simulated_round_trip_ns(host: &Host) -> Result<Option<f64>> {
    let figures = simulate(host, Workload::Rr, "napi", LOOK_NS)?;
    let trips = figures.flows[0].round_trip.as_ref();
    Ok(trips.and_then(|trips| trips.p50_ns).map(|ns| ns as f64))
}

fn compared(simulated: &[Simulated], trials: &[Trial]) -> Vec<HostCheck> {
    let mut checks = Vec::new();
    for row in simulated {
        let of_row = |trial: &&Trial| {
            trial.is_good() && trial.workload == row.workload && trial.setting == row.setting
        };
        let good: Vec<_> = trials.iter().filter(of_row).collect();
        for &quantity in quantities(row.workload) {
            let values: Option<Vec<f64>> =
                good.iter().map(|trial| measured(trial, quantity)).collect();
            let summary = values.and_then(|values| Summary::of(&values));
            let simulated = told(&row.figures, quantity);
            let middle = summary.map(|summary| summary.median);
            checks.push(HostCheck {
                workload: row.workload,
                setting: row.setting,
                quantity,
                simulated,
                measured: middle,
                measured_min: summary.map(|summary| summary.min),
                measured_max: summary.map(|summary| summary.max),
                error: simulated
                    .zip(middle)
                    .map(|(simulated, middle)| simulated / middle - 1.0),
                kind: match row.setting {
                    Setting::Polling => CheckKind::Predicted,
                    _ => CheckKind::Fitted,
                },
            });
        }
    }
    checks
}

fn quantities(workload: Workload) -> &'static [CheckQuantity] {
    match workload {
        Workload::Rr => &[
            CheckQuantity::TransactionsPerSecond,
            CheckQuantity::RoundTripP50Ns,
            CheckQuantity::CpuNsPerPacket,
            CheckQuantity::PacketsPerPoll,
        ],
        _ => &[
            CheckQuantity::DeliveredPps,
            CheckQuantity::CpuNsPerPacket,
            CheckQuantity::PacketsPerPoll,
        ],
    }
}

fn measured(trial: &Trial, quantity: CheckQuantity) -> Option<f64> {
    let trips = trial.round_trip;
    match quantity {
        CheckQuantity::DeliveredPps => trial.delivered_packets_per_second,
        CheckQuantity::TransactionsPerSecond => trips.map(|trips| trips.transactions_per_second),
        CheckQuantity::RoundTripP50Ns => trips.map(|trips| trips.p50_ns as f64),
        CheckQuantity::CpuNsPerPacket => trial.cpu_ns_per_packet,
        CheckQuantity::PacketsPerPoll => trial.packets_per_poll,
    }
}

fn told(figures: &SimPathFigures, quantity: CheckQuantity) -> Option<f64> {
    let flow = figures.flows.first()?;
    let polls = figures.hosts.first()?.napi?.polls;
    let trips = flow.round_trip.as_ref();
    let per = |sum: f64, count: f64| (count > 0.0).then(|| sum / count);
    match quantity {
        CheckQuantity::DeliveredPps => Some(flow.delivered_pps),
        CheckQuantity::TransactionsPerSecond => {
            trips.map(|trips| trips.samples as f64 * 1e9 / COUNTED_NS as f64)
        }
        CheckQuantity::RoundTripP50Ns => trips?.p50_ns.map(|ns| ns as f64),
        CheckQuantity::CpuNsPerPacket => {
            let busy: f64 = figures.hosts.iter().map(|host| 1.0 - host.cpu.idle).sum();
            per(busy * COUNTED_NS as f64, flow.delivered as f64)
        }
        // What the receiver's end had in its ring, and did not lose there.
        CheckQuantity::PacketsPerPoll => {
            let handed_on = figures.hosts.first()?.ledger.transmitted;
            per(handed_on as f64, polls as f64)
        }
    }
}
