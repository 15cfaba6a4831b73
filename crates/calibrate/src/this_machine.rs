//! Makes a host file of this machine's measured costs, simulates a study's traffic on it, and compares that with
//! measured trials.
//!
//! The host file has every number, and says which were not measured.

use std::collections::BTreeMap;

use nicpoll_model::Trial;
use nicpoll_model::sim::{
    CheckKind, CheckQuantity, HostCheck, HostCost, HostNumber, MeasuredCost, SimFigures,
    SimulatedFigure, ToSimulate,
};
use nicpoll_sim::{
    DEFER_MAX, Field, HostModel, PathHost, Pattern, ReceiveDiscipline, SimError, Simulation,
    TrafficModel, simulate as run,
};
use nicpoll_stats::Summary;
use serde::Deserialize;

/// Payload of the small packets, in KiB: costs per packet refer to them.
const SMALL_KIB: f64 = 64.0 / 1024.0;
/// The driver's part of a send (`card.tx_packet_ns`), the least allowed; the rest of it counts with the protocols.
const DRIVER_NS: f64 = 1.0;

/// The measured machine, apart from its costs.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredMachine<'a> {
    /// When it was measured, RFC 3339.
    pub started_at: &'a str,
    /// Name and release of its kernel.
    pub kernel: &'a str,
    /// Its clock's ticks a second.
    pub ticks_per_second: f64,
}

/// The source of a number in the host file.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumberSource {
    /// Measured, and how.
    Measured(String),
    /// The same for every machine, and why.
    Fixed(u64, String),
}

/// Returns every number of the host file.
///
/// # Errors
/// Why a round trip on it cannot be simulated.
pub fn numbers_of(
    costs: &[MeasuredCost],
    machine: &MeasuredMachine<'_>,
) -> Result<Vec<HostNumber>, SimError> {
    let cost = |cost| costs.iter().find(|of| of.cost == cost)?.ns;
    let mut measured = measured(cost);
    measured.insert("cpu.hz", Some(machine.ticks_per_second));
    let host = host_of(&numbers(&measured, machine));
    // The time of a round trip beyond its work, half of it each way.
    let round_trips = cost(HostCost::RoundTrip).zip(simulated_round_trip_ns(&host)?);
    let delay_ns = round_trips.map(|(took, worked)| (took - worked) / 2.0);
    measured.insert("veth.wake_delay_ns", delay_ns);
    Ok(numbers(&measured, machine))
}

/// Numbers by name; `None` when a cost is too small to tell from zero.
type MeasuredNumbers = BTreeMap<&'static str, Option<f64>>;

/// Returns every number; measured ones are clamped to their range.
fn numbers(measured: &MeasuredNumbers, machine: &MeasuredMachine<'_>) -> Vec<HostNumber> {
    let sources: BTreeMap<String, BTreeMap<String, NumberSource>> =
        toml::from_str(include_str!("this_machine.toml")).expect("a test reads it");
    let release = machine.kernel.split_whitespace().nth(1);
    let release = release.unwrap_or(machine.kernel);
    let date = machine.started_at.split('T').next().unwrap_or_default();
    let number = |field: &Field| {
        let (section, name) = field.name.split_once('.')?;
        let (value, source) = match sources.get(section)?.get(name)? {
            NumberSource::Fixed(value, why) => (*value, why.clone()),
            NumberSource::Measured(how) => {
                let value = measured.get(field.name).copied().flatten();
                let source = match value {
                    Some(_) => format!("measured on this machine, {date}, {release}: {how}"),
                    None => String::from("too small to tell from zero on this machine"),
                };
                let value = value.unwrap_or(0.0).max(0.0).round() as u64;
                (value.clamp(field.min, field.max), source)
            }
        };
        Some(HostNumber {
            name: String::from(field.name),
            value,
            source,
        })
    };
    HostModel::FIELDS.iter().filter_map(number).collect()
}

/// Makes a host of the numbers.
pub fn host_of(numbers: &[HostNumber]) -> HostModel {
    let mut host = HostModel {
        name: String::from("this machine"),
        ..HostModel::default()
    };
    for number in numbers {
        // Names and ranges are those of the fields.
        let _ = host.set(&number.name, number.value);
    }
    host
}

/// Derives the numbers of both programs, their calls and the receiving processor from measured costs.
fn measured(cost: impl Fn(HostCost) -> Option<f64>) -> MeasuredNumbers {
    use HostCost as C;
    let or_0 = |of| cost(of).unwrap_or(0.0);
    // One copying cost serves both directions: the lower one. The excess of sending goes to `card.tx_kib_ns`.
    let copy = or_0(C::SendKib).min(or_0(C::ReadKib));
    let has_both = cost(C::SendKib).and(cost(C::ReadKib)).is_some();
    let less_copy = |ns: f64| ns - copy * SMALL_KIB;
    let own = or_0(C::SendUser);
    let read = cost(C::Read).map(|ns| (less_copy(ns) - own).max(1.0));
    let called = read.unwrap_or(0.0) + DRIVER_NS;
    let send = cost(C::Send).map(|ns| less_copy(ns) - called);
    let timer = cost(C::TimerInterrupt);
    let batched = cost(C::BatchedPacket);
    let delivery = cost(C::Delivery).zip(batched);
    let delivery = delivery.map(|(some, all)| some.min(all));
    BTreeMap::from([
        (
            "cpu.context_switch_ns",
            cost(C::TakeUp).or(cost(C::ThreadSwitch)),
        ),
        ("cpu.syscall_ns", read),
        ("card.tx_kib_ns", cost(C::SendKib).map(|ns| ns - copy)),
        ("network.output_ns", send),
        ("network.output6_ns", send),
        ("socket.copy_kib_ns", has_both.then_some(copy)),
        ("application.packet_ns", cost(C::SendUser)),
        (
            "cpu.tick_ns",
            cost(C::Tick).map(|ns| ns - timer.unwrap_or(0.0)),
        ),
        ("cpu.interrupt_entry_ns", timer),
        ("card.poll_ns", cost(C::LoadedPoll)),
        (
            "card.rx_packet_ns",
            batched.map(|ns| ns - delivery.unwrap_or(0.0)),
        ),
        ("card.rx_kib_ns", cost(C::BatchedKib)),
        ("network.udp_ns", delivery),
        ("veth.wake_ns", cost(C::Wake)),
        ("veth.timer_delay_ns", cost(C::TimerDelay)),
    ])
}

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
/// Counted virtual time of a prediction, and of a run that searches for the timeout.
const COUNTED_NS: u64 = 500_000_000;
const LOOK_NS: u64 = 100_000_000;
/// Steps towards the timeout that gives one round a period; each corrects this share of the error.
const STEPS: u32 = 12;
const GAIN: f64 = 0.7;
/// The smallest timeout of a discipline.
const TIMEOUT_MIN_NS: f64 = 1000.0;

/// The simulation of a workload under a setting.
#[derive(Clone, Debug)]
pub struct Prediction {
    row: ToSimulate,
    quantities: &'static [CheckQuantity],
    figures: SimFigures,
}

/// Simulates each row on two equal hosts.
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

/// Returns polling by timer with the timeout that gives one round a period, found as a study finds it.
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

/// Simulates the receiver under a discipline; the sender's own end polls for each packet.
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

/// Returns the median round trip with a poll for each packet; `None` without round trips.
fn simulated_round_trip_ns(host: &HostModel) -> Result<Option<f64>, SimError> {
    let figures = simulate(host, &TrafficModel::parse(ROUND_TRIPS)?, "napi", LOOK_NS)?;
    let trips = figures.flows[0].round_trip.as_ref();
    Ok(trips.and_then(|trips| trips.p50_ns).map(|ns| ns as f64))
}

/// Returns the predictions as figures that a study stores.
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

/// Compares each prediction with the good trials of the same workload and setting.
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
        CheckQuantity::DeliveredPps => Some(flow.delivered_packets_per_second),
        CheckQuantity::TransactionsPerSecond => {
            trips.map(|trips| trips.samples as f64 * 1e9 / COUNTED_NS as f64)
        }
        CheckQuantity::RoundTripP50Ns => trips?.p50_ns.map(|ns| ns as f64),
        CheckQuantity::CpuNsPerPacket => {
            let busy: f64 = figures
                .hosts
                .iter()
                .map(|host| 1.0 - host.cpu.idle_ratio)
                .sum();
            per(busy * COUNTED_NS as f64, flow.delivered_datagrams as f64)
        }
        // Packets that the receiver's end had in its ring, and did not lose there.
        CheckQuantity::PacketsPerPoll => {
            let handed_on = figures.hosts.first()?.ledger.transmitted_packets;
            per(handed_on as f64, polls as f64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: MeasuredMachine<'_> = MeasuredMachine {
        started_at: "2026-01-02T03:04:05Z",
        kernel: "Linux 6.18.1 #1",
        ticks_per_second: 250.0,
    };

    fn costs(ns: impl Fn(HostCost) -> Option<f64>) -> Vec<MeasuredCost> {
        let cost = |cost| MeasuredCost {
            cost,
            ns: ns(cost),
            min_ns: None,
            max_ns: None,
            is_repeatable: None,
            repeats: 1,
        };
        HostCost::ALL.map(cost).to_vec()
    }

    fn value(numbers: &[HostNumber], name: &str) -> u64 {
        let found = numbers.iter().find(|number| number.name == name);
        found.unwrap().value
    }

    #[test]
    fn every_number_of_a_host_file_is_there_whatever_was_measured() {
        for ns in [None, Some(1000.0), Some(1e12)] {
            let numbers = numbers_of(&costs(|_| ns), &MACHINE).unwrap();
            assert_eq!(numbers.len(), HostModel::FIELDS.len());
            let mut host = HostModel::default();
            for number in &numbers {
                host.set(&number.name, number.value).unwrap();
                assert!(!number.source.is_empty());
            }
        }
    }

    #[test]
    fn the_parts_of_a_cost_add_up_to_it() {
        let measured = costs(|cost| {
            Some(match cost {
                HostCost::Send => 2000.0,
                HostCost::SendKib => 300.0,
                HostCost::ReadKib => 100.0,
                HostCost::Read => 500.0,
                HostCost::SendUser => 150.0,
                HostCost::BatchedPacket => 1000.0,
                HostCost::Delivery => 600.0,
                HostCost::Tick => 2500.0,
                HostCost::TimerInterrupt => 700.0,
                HostCost::RoundTrip => 50_000.0,
                _ => 400.0,
            })
        });
        let numbers = numbers_of(&measured, &MACHINE).unwrap();
        let value = |name| value(&numbers, name);
        let copied = 100 * 64 / 1024;
        assert_eq!(value("cpu.syscall_ns") + copied + 150, 500);
        let send = value("cpu.syscall_ns") + value("network.output_ns") + copied;
        assert!((send + value("card.tx_packet_ns")).abs_diff(2000) <= 1);
        assert_eq!(value("card.tx_kib_ns") + value("socket.copy_kib_ns"), 300);
        assert_eq!(value("card.rx_packet_ns") + value("network.udp_ns"), 1000);
        assert_eq!(value("cpu.tick_ns") + value("cpu.interrupt_entry_ns"), 2500);
        // Half of what is left of 50 us, each way.
        assert!((15_000..25_000).contains(&value("veth.wake_delay_ns")));
        let source = &numbers[0].source;
        assert!(source.contains("2026-01-02, 6.18.1"), "{source}");
    }
}
