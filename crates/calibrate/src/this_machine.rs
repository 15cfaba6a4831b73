//! This machine: its measured costs as a host file, and what the simulator predicts of a study's traffic on it, compared
//! with measured trials.
//!
//! The host file has every number; what was not measured says so.

use std::collections::BTreeMap;

use nicpoll_model::Trial;
use nicpoll_model::sim::{
    CheckKind, CheckQuantity, HostCheck, HostCost, HostNumber, MeasuredCost, SimFigures,
    SimulatedFigure, ToSimulate,
};
use nicpoll_sim::{
    DEFER_MAX, HostModel, PathHost, Pattern, ReceiveDiscipline, SimError, Simulation, TrafficModel,
    simulate as run,
};
use nicpoll_stats::Summary;

/// Payload of the small packets, in KiB: costs a packet are theirs.
const SMALL_KIB: f64 = 64.0 / 1024.0;
/// The least that the driver's part can be; the rest of it is in that of the protocols.
const DRIVER_NS: f64 = 1.0;
const UNUSED: &str = "no part of a veth pair";
const WITHIN_UDP: &str = "within network.udp_ns: IP and UDP were measured together";
const NOT_MEASURED: &str = "not measured: the demo's traffic has none";

/// The measured machine, apart from its costs.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredMachine<'a> {
    /// When it was measured, RFC 3339.
    pub started_at: &'a str,
    /// Name and release of its kernel.
    pub kernel: &'a str,
    /// Its clock's ticks a second.
    pub ticks_per_second: f64,
    /// Packets that an end of its veth pairs holds.
    pub veth_ring_slots: u64,
}

/// Every number of the host file.
///
/// # Errors
/// Why a round trip on it cannot be simulated.
pub fn numbers_of(
    costs: &[MeasuredCost],
    machine: &MeasuredMachine<'_>,
) -> Result<Vec<HostNumber>, SimError> {
    let kernel = machine.kernel;
    let release = kernel.split_whitespace().nth(1).unwrap_or(kernel);
    let date = machine.started_at.split('T').next();
    let date = date.unwrap_or(machine.started_at);
    let mut numbers = Numbers {
        costs,
        measured: format!("measured on this machine, {date}, {release}"),
        found: BTreeMap::new(),
    };
    numbers.programs();
    numbers.receiving(machine.ticks_per_second);
    numbers.fixed(machine.veth_ring_slots);
    numbers.not_simulated();
    let round_trip_ns = numbers.cost(HostCost::RoundTrip);
    let delay_ns = wake_delay_ns(&numbers.host(), round_trip_ns)?;
    let source = "so that a simulated round trip with a poll a packet is as long as a measured one";
    numbers.measure("veth.wake_delay_ns", delay_ns, source);
    let number = |(name, (value, source)): (&str, (u64, String))| HostNumber {
        name: String::from(name),
        value,
        source,
    };
    let in_order = HostModel::FIELDS.iter().filter_map(|field| {
        let found = numbers.found.remove(field.name)?;
        Some(number((field.name, found)))
    });
    Ok(in_order.collect())
}

/// The host that the numbers make.
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

/// What a round trip takes beyond work, half of it each way.
fn wake_delay_ns(host: &HostModel, round_trip_ns: Option<f64>) -> Result<Option<f64>, SimError> {
    let worked_ns = simulated_round_trip_ns(host)?;
    Ok(round_trip_ns
        .zip(worked_ns)
        .map(|(took, worked)| (took - worked) / 2.0))
}

struct Numbers<'a> {
    costs: &'a [MeasuredCost],
    measured: String,
    found: BTreeMap<&'static str, (u64, String)>,
}

impl Numbers<'_> {
    fn cost(&self, cost: HostCost) -> Option<f64> {
        self.costs.iter().find(|of| of.cost == cost)?.ns
    }

    fn or_0(&self, cost: HostCost) -> f64 {
        self.cost(cost).unwrap_or(0.0)
    }

    /// A number that was measured, as near to that as its range allows.
    fn measure(&mut self, name: &'static str, value: Option<f64>, how: &str) {
        let Some(field) = HostModel::field(name) else {
            return;
        };
        let source = match value {
            Some(_) => format!("{}: {how}", self.measured),
            None => String::from("not to be told from nothing on this machine"),
        };
        let value = (value.unwrap_or(0.0).max(0.0).round() as u64).clamp(field.min, field.max);
        self.found.insert(name, (value, source));
    }

    fn fix(&mut self, name: &'static str, value: u64, source: &str) {
        self.found.insert(name, (value, String::from(source)));
    }

    /// The host so far; what is missing is 0.
    fn host(&self) -> HostModel {
        let mut host = HostModel::default();
        for (name, (value, _)) in &self.found {
            // Names and ranges are those of the fields.
            let _ = host.set(name, *value);
        }
        host
    }

    /// What both programs and their calls take.
    fn programs(&mut self) {
        use HostCost as C;
        // Both copy for the same price here; the dearer one's rest is its own.
        let copy = self.or_0(C::SendKib).min(self.or_0(C::ReadKib));
        let has_both = self.cost(C::SendKib).and(self.cost(C::ReadKib)).is_some();
        let less_copy = |ns: f64| ns - copy * SMALL_KIB;
        let own = self.or_0(C::SendUser);
        let read = self.cost(C::Read).map(|ns| (less_copy(ns) - own).max(1.0));
        let called = read.unwrap_or(0.0) + DRIVER_NS;
        let send = self.cost(C::Send).map(|ns| less_copy(ns) - called);
        let take_up = self.cost(C::TakeUp).or(self.cost(C::ThreadSwitch));
        self.measure(
            "cpu.context_switch_ns",
            take_up,
            "what the receiver takes for each time that it waits",
        );
        self.measure(
            "cpu.syscall_ns",
            read,
            "a packet of the receiver's, its own work and copying left out",
        );
        self.measure(
            "card.tx_kib_ns",
            self.cost(C::SendKib).map(|ns| ns - copy),
            "what 1024 bytes more take the sender above socket.copy_kib_ns",
        );
        self.measure("network.output6_ns", send, "taken for network.output_ns");
        self.measure(
            "network.output_ns",
            send,
            "the sender's call in the kernel, cpu.syscall_ns and copying left out",
        );
        self.measure(
            "socket.copy_kib_ns",
            has_both.then_some(copy),
            "the less of what 1024 bytes more take sender and receiver",
        );
        self.measure(
            "application.packet_ns",
            self.cost(C::SendUser),
            "the sender's program outside the kernel",
        );
    }

    /// What the processor takes that packets are taken in by.
    fn receiving(&mut self, ticks_per_second: f64) {
        use HostCost as C;
        let timer = self.cost(C::TimerInterrupt);
        let tick = self.cost(C::Tick).map(|ns| ns - timer.unwrap_or(0.0));
        let batched = self.cost(C::BatchedPacket);
        let delivery = self
            .cost(C::Delivery)
            .zip(batched)
            .map(|(some, all)| some.min(all));
        let taken = batched.map(|ns| ns - delivery.unwrap_or(0.0));
        for (name, value, how) in [
            (
                "cpu.hz",
                Some(ticks_per_second),
                "the step of the coarse clock",
            ),
            ("cpu.tick_ns", tick, "a clock tick without its entry"),
            (
                "cpu.interrupt_entry_ns",
                timer,
                "the polling timer's interrupt",
            ),
            (
                "card.poll_ns",
                self.cost(C::LoadedPoll),
                "a poll under load, its packets left out",
            ),
            (
                "card.rx_packet_ns",
                taken,
                "a packet in a batch, network.udp_ns left out",
            ),
            (
                "card.rx_kib_ns",
                self.cost(C::BatchedKib),
                "1024 bytes more in a software interrupt",
            ),
            ("network.udp_ns", delivery, "IP, UDP and the socket"),
            (
                "veth.wake_ns",
                self.cost(C::Wake),
                "a thread that wakes one on the other processor",
            ),
            (
                "veth.timer_delay_ns",
                self.cost(C::TimerDelay),
                "from round to round beyond the timeout",
            ),
        ] {
            self.measure(name, value, how);
        }
    }

    fn fixed(&mut self, veth_ring_slots: u64) {
        for (name, value, source) in [
            (
                "card.rx_ring",
                veth_ring_slots,
                "VETH_RING_SIZE of the driver",
            ),
            ("card.tx_ring", 1, UNUSED),
            ("card.moderation_ns", 0, UNUSED),
            ("card.interrupt_ns", 0, UNUSED),
            ("card.status_ns", 0, UNUSED),
            (
                "card.tx_packet_ns",
                DRIVER_NS as u64,
                "within network.output_ns: both were measured together",
            ),
            ("card.tx_done_ns", 0, UNUSED),
            ("card.tx_gap_ns", 0, UNUSED),
            ("card.pass_packets", 64, "no part of NAPI"),
            ("link.bits_per_second", 10_000_000_000, UNUSED),
            ("link.mtu_bytes", 1500, "of a veth pair as it comes up"),
            ("link.queue_packets", 1, UNUSED),
            ("link.delay_ns", 0, UNUSED),
            ("link.half_duplex", 0, UNUSED),
            (
                "network.ip_queue_packets",
                0,
                "NAPI hands packets on at once",
            ),
            ("network.ipv4_ns", 0, WITHIN_UDP),
            (
                "network.ipv6_ns",
                0,
                "not measured, and taken for IPv4's: within network.udp_ns",
            ),
            ("network.forward_ns", 0, NOT_MEASURED),
            ("network.fragment_ns", 0, NOT_MEASURED),
            (
                "network.checksum_kib_ns",
                0,
                "veth carries packets without checksums",
            ),
            ("network.send_queue_packets", 1, UNUSED),
            (
                "socket.buffer_bytes",
                16 << 20,
                "granted to the demo's receivers, who ask for half of it",
            ),
            (
                "socket.packet_overhead_bytes",
                704,
                "truesize 768 of a small packet, less 64",
            ),
            ("application.clock_ns", 0, "within application.packet_ns"),
            ("background.interrupt_ns", 0, UNUSED),
            ("background.queue_events", 0, UNUSED),
            ("storm.threshold", 0, "no part of Linux"),
            (
                "veth.pair",
                1,
                "both ends of a veth pair, on a processor each",
            ),
        ] {
            self.fix(name, value, source);
        }
    }

    fn not_simulated(&mut self) {
        self.fix("cpu.tick_slow_ppm", 0, NOT_MEASURED);
        self.fix(
            "cpu.refill_ns",
            0,
            "not told apart: within what was measured, which softirqs preempt",
        );
        self.fix(
            "cpu.wake_refill_ns",
            0,
            "not told apart: within what waking costs, as it was measured",
        );
        self.fix("cpu.stat_hz", 0, "the sampled account goes by the tick");
        self.fix("cpu.netisr_ns", 0, "no part of Linux");
        self.fix("card.hands_over", 0, UNUSED);
        self.fix("card.rearm_ns", 0, UNUSED);
        self.fix("background.at_once_ns", 0, UNUSED);
        for (name, value) in [
            ("cpu.cpus", 1),
            ("cpu.wake_other_ns", 0),
            ("card.queues", 1),
            ("application.cpu", 0),
        ] {
            self.fix(name, value, "each end of a veth pair has one processor");
        }
        for (name, value) in [
            ("network.gro", 0),
            ("network.gro_ns", 0),
            ("tcp.segment_ns", 0),
            ("tcp.ack_ns", 0),
            ("tcp.output_ns", 0),
            ("tcp.send_ack_ns", 0),
            ("tcp.buffer_ns", 0),
            ("tcp.send_buffer_bytes", 16_384),
            ("tcp.receive_buffer_bytes", 131_072),
        ] {
            self.fix(name, value, "TCP over a veth pair is not simulated");
        }
    }
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
/// Virtual time of a run that is counted, and of one that looks for the timeout.
const COUNTED_NS: u64 = 500_000_000;
const LOOK_NS: u64 = 100_000_000;
/// Steps towards the timeout that gives one round a period; each corrects this share of the error.
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
fn simulated_round_trip_ns(host: &HostModel) -> Result<Option<f64>, SimError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: MeasuredMachine<'_> = MeasuredMachine {
        started_at: "2026-01-02T03:04:05Z",
        kernel: "Linux 6.18.1 #1",
        ticks_per_second: 250.0,
        veth_ring_slots: 256,
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
        // Two ways of the rest of 50 us.
        assert!((15_000..25_000).contains(&value("veth.wake_delay_ns")));
        let source = &numbers[0].source;
        assert!(source.contains("2026-01-02, 6.18.1"), "{source}");
    }
}
