//! The demo's traffic under `interrupt` and `polling`, simulated, and compared with measured trials.

use nicpoll_model::Trial;
use nicpoll_model::sim::SimFigures;
use nicpoll_model::sim_fit_host::{CheckKind, CheckQuantity, HostCheck, SimulatedFigure};
use nicpoll_sim::{
    DEFER_MAX, Discipline, Host, Plan, PlanError, SpecError, Stop, Workload, simulate as run,
};
use nicpoll_stats::Summary;
use thiserror::Error;

/// A workload of the demo that is predicted.
#[derive(Clone, Copy, Debug)]
pub struct CheckedWorkload {
    /// The demo's name for it.
    pub name: &'static str,
    /// The simulator's words for it.
    words: &'static str,
    quantities: &'static [CheckQuantity],
}

/// A setting of the demo that is predicted.
#[derive(Clone, Copy, Debug)]
pub struct CheckedSetting {
    /// The demo's name for it.
    pub name: &'static str,
    /// Whether a timer begins the rounds.
    is_timed: bool,
}

const DATAGRAMS: &[CheckQuantity] = &[
    CheckQuantity::DeliveredPps,
    CheckQuantity::CpuNsPerPacket,
    CheckQuantity::PacketsPerPoll,
];
const RR: CheckedWorkload = CheckedWorkload {
    name: "rr",
    words: "rr:payload=64",
    quantities: &[
        CheckQuantity::TransactionsPerSecond,
        CheckQuantity::RoundTripP50Ns,
        CheckQuantity::CpuNsPerPacket,
        CheckQuantity::PacketsPerPoll,
    ],
};

/// The demo's workloads that are predicted.
pub const CHECKED_WORKLOADS: [CheckedWorkload; 3] = [
    CheckedWorkload {
        name: "udp1470",
        words: "netblast:payload=1470",
        quantities: DATAGRAMS,
    },
    CheckedWorkload {
        name: "udp64",
        words: "netblast:payload=64",
        quantities: DATAGRAMS,
    },
    RR,
];
/// The demo's settings that are predicted.
pub const CHECKED_SETTINGS: [CheckedSetting; 2] = [
    CheckedSetting {
        name: "interrupt",
        is_timed: false,
    },
    CheckedSetting {
        name: "polling",
        is_timed: true,
    },
];
/// Virtual time of a run that is counted, and of one that looks for the timeout.
const COUNTED_NS: u64 = 500_000_000;
const LOOK_NS: u64 = 100_000_000;
/// Steps towards the timeout that gives one round a period, each of which makes up for this share of the error.
const STEPS: u32 = 12;
const GAIN: f64 = 0.7;
/// The least timeout that a host can be given.
const TIMEOUT_MIN_NS: f64 = 1000.0;

/// Why nothing is predicted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PredictError {
    /// The simulator refuses the words of a run.
    #[error(transparent)]
    Words(#[from] SpecError),
    /// The host cannot run it.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// What the simulator says of a workload under a setting.
#[derive(Clone, Debug)]
pub struct Prediction {
    workload: CheckedWorkload,
    setting: CheckedSetting,
    figures: SimFigures,
}

/// Simulates each checked workload under each checked setting.
///
/// # Errors
/// Why the host cannot run it.
pub fn predict(host: &Host, period_ns: u64) -> Result<Vec<Prediction>, PredictError> {
    let mut all = Vec::new();
    for workload in CHECKED_WORKLOADS {
        for setting in CHECKED_SETTINGS {
            let discipline = if setting.is_timed {
                timed(host, workload, period_ns)?
            } else {
                String::from("napi")
            };
            all.push(Prediction {
                workload,
                setting,
                figures: simulate(host, workload, &discipline, COUNTED_NS)?,
            });
        }
    }
    Ok(all)
}

/// Polling by the timer with the timeout that gives one round a period, found as the demo finds it.
fn timed(host: &Host, workload: CheckedWorkload, period_ns: u64) -> Result<String, PredictError> {
    let discipline = |timeout_ns: f64| {
        let timeout_ns = timeout_ns as u64;
        format!("napi-timer:defer={DEFER_MAX}:timeout={timeout_ns}ns")
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
fn simulate(
    host: &Host,
    workload: CheckedWorkload,
    discipline: &str,
    ns: u64,
) -> Result<SimFigures, PredictError> {
    let stop = |discipline| -> Result<Stop, PredictError> {
        Ok(Stop {
            host: host.clone(),
            discipline: Discipline::parse(discipline)?,
        })
    };
    let plan = Plan {
        stops: vec![stop("napi")?, stop(discipline)?],
        workload: Workload::parse(workload.words)?,
        duration_ns: ns,
        warmup_ns: LOOK_NS / 2,
        seed: 1,
        slices: 0,
    };
    Ok(run(&plan)?)
}

/// The median round trip with a poll for each packet; `None` without any.
pub(super) fn simulated_round_trip_ns(host: &Host) -> Result<Option<f64>, PredictError> {
    let figures = simulate(host, RR, "napi", LOOK_NS)?;
    let trips = figures.flows[0].round_trip.as_ref();
    Ok(trips.and_then(|trips| trips.p50_ns).map(|ns| ns as f64))
}

/// The predictions as figures that a study keeps.
pub fn simulated_figures(predictions: &[Prediction]) -> Vec<SimulatedFigure> {
    let of = |row: &Prediction| {
        let (workload, setting) = (row.workload.name, row.setting.name);
        let quantities = row.workload.quantities.iter();
        let figures = quantities.filter_map(|quantity| {
            Some(SimulatedFigure {
                workload: String::from(workload),
                setting: String::from(setting),
                quantity: *quantity,
                value: predicted(&row.figures, *quantity)?,
            })
        });
        figures.collect::<Vec<_>>()
    };
    predictions.iter().flat_map(of).collect()
}

/// Each prediction with what good trials of the same workload and setting measured.
pub fn compare(predictions: &[Prediction], trials: &[Trial]) -> Vec<HostCheck> {
    let mut checks = Vec::new();
    for row in predictions {
        let of_row = |trial: &&Trial| {
            trial.workload == row.workload.name && trial.setting == row.setting.name
        };
        let of_row = trials.iter().filter(of_row);
        let good: Vec<_> = of_row.filter_map(Trial::result).collect();
        for &quantity in row.workload.quantities {
            let values: Option<Vec<f64>> =
                good.iter().map(|trial| quantity.measured(trial)).collect();
            let summary = values.and_then(|values| Summary::of(&values));
            let simulated = predicted(&row.figures, quantity);
            let middle = summary.map(|summary| summary.median);
            checks.push(HostCheck {
                workload: row.workload.name.to_owned(),
                setting: row.setting.name.to_owned(),
                quantity,
                simulated,
                measured: middle,
                measured_min: summary.map(|summary| summary.min),
                measured_max: summary.map(|summary| summary.max),
                error: simulated
                    .zip(middle)
                    .map(|(simulated, middle)| simulated / middle - 1.0),
                kind: if row.setting.is_timed {
                    CheckKind::Predicted
                } else {
                    CheckKind::Fitted
                },
            });
        }
    }
    checks
}

fn predicted(figures: &SimFigures, quantity: CheckQuantity) -> Option<f64> {
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
