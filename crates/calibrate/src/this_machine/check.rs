//! A study's traffic under settings that the simulator knows, simulated, and compared with measured trials.

use nicpoll_model::Trial;
use nicpoll_model::sim::SimFigures;
use nicpoll_model::sim_fit_host::{
    CheckKind, CheckQuantity, HostCheck, SimulatedFigure, ToSimulate,
};
use nicpoll_sim::{
    DEFER_MAX, HostModel, PathHost, Pattern, ReceiveDiscipline, SimError, Simulation, TrafficModel,
    simulate as run,
};
use nicpoll_stats::Summary;

const DATAGRAMS: &[CheckQuantity] = &[
    CheckQuantity::DeliveredPps,
    CheckQuantity::CpuNsPerPacket,
    CheckQuantity::PacketsPerPoll,
];
const TRANSACTIONS: &[CheckQuantity] = &[
    CheckQuantity::TransactionsPerSecond,
    CheckQuantity::RoundTripP50Ns,
    CheckQuantity::CpuNsPerPacket,
    CheckQuantity::PacketsPerPoll,
];
/// The demo's request and response.
const ROUND_TRIPS: &str = "rr:payload=64";
/// Virtual time of a run that is counted, and of one that looks for the timeout.
const COUNTED_NS: u64 = 500_000_000;
const LOOK_NS: u64 = 100_000_000;
/// Steps towards the timeout that gives one round a period, each of which makes up for this share of the error.
const STEPS: u32 = 12;
const GAIN: f64 = 0.7;
/// The least timeout that a host can be given.
const TIMEOUT_MIN_NS: f64 = 1000.0;

/// What the simulator says of a workload under a setting.
#[derive(Clone, Debug)]
pub struct Prediction {
    row: ToSimulate,
    quantities: &'static [CheckQuantity],
    figures: SimFigures,
}

/// Simulates each of these on two hosts alike.
///
/// # Errors
/// Why the host cannot run it.
pub fn predict(host: &HostModel, rows: &[ToSimulate]) -> Result<Vec<Prediction>, SimError> {
    let mut all = Vec::new();
    for row in rows {
        let workload = TrafficModel::parse(&row.traffic)?;
        let discipline = match row.period_ns {
            Some(period_ns) => timed(host, &workload, period_ns)?,
            None => String::from("napi"),
        };
        all.push(Prediction {
            row: row.clone(),
            quantities: match workload.pattern {
                Pattern::RequestResponse => TRANSACTIONS,
                _ => DATAGRAMS,
            },
            figures: simulate(host, &workload, &discipline, COUNTED_NS)?,
        });
    }
    Ok(all)
}

/// Polling by the timer with the timeout that gives one round a period, found as a study finds it.
fn timed(host: &HostModel, workload: &TrafficModel, period_ns: u64) -> Result<String, SimError> {
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
    host: &HostModel,
    workload: &TrafficModel,
    discipline: &str,
    ns: u64,
) -> Result<SimFigures, SimError> {
    let stop = |discipline| -> Result<PathHost, SimError> {
        Ok(PathHost {
            host: host.clone(),
            discipline: ReceiveDiscipline::parse(discipline)?,
        })
    };
    let plan = Simulation {
        stops: vec![stop("napi")?, stop(discipline)?],
        workload: workload.clone(),
        duration_ns: ns,
        warmup_ns: LOOK_NS / 2,
        seed: 1,
        slices: 0,
    };
    run(&plan)
}

/// The median round trip with a poll for each packet; `None` without any.
pub(super) fn simulated_round_trip_ns(host: &HostModel) -> Result<Option<f64>, SimError> {
    let figures = simulate(host, &TrafficModel::parse(ROUND_TRIPS)?, "napi", LOOK_NS)?;
    let trips = figures.flows[0].round_trip.as_ref();
    Ok(trips.and_then(|trips| trips.p50_ns).map(|ns| ns as f64))
}

/// The predictions as figures that a study keeps.
pub fn simulated_figures(predictions: &[Prediction]) -> Vec<SimulatedFigure> {
    let of = |one: &Prediction| {
        let figures = one.quantities.iter().filter_map(|quantity| {
            Some(SimulatedFigure {
                workload: one.row.workload.clone(),
                setting: one.row.setting.clone(),
                quantity: *quantity,
                value: predicted(&one.figures, *quantity)?,
            })
        });
        figures.collect::<Vec<_>>()
    };
    predictions.iter().flat_map(of).collect()
}

/// Each prediction with what good trials of the same workload and setting measured.
pub fn compare(predictions: &[Prediction], trials: &[Trial]) -> Vec<HostCheck> {
    let mut checks = Vec::new();
    for Prediction {
        row,
        quantities,
        figures,
    } in predictions
    {
        let of_row =
            |trial: &&Trial| trial.workload == row.workload && trial.setting == row.setting;
        let of_row = trials.iter().filter(of_row);
        let good: Vec<_> = of_row.filter_map(Trial::result).collect();
        for &quantity in *quantities {
            let values: Option<Vec<f64>> =
                good.iter().map(|trial| quantity.measured(trial)).collect();
            let summary = values.and_then(|values| Summary::of(&values));
            let simulated = predicted(figures, quantity);
            let middle = summary.map(|summary| summary.median);
            checks.push(HostCheck {
                workload: row.workload.clone(),
                setting: row.setting.clone(),
                quantity,
                simulated,
                measured: middle,
                measured_min: summary.map(|summary| summary.min),
                measured_max: summary.map(|summary| summary.max),
                error: simulated
                    .zip(middle)
                    .map(|(simulated, middle)| simulated / middle - 1.0),
                kind: if row.period_ns.is_some() {
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
