//! Simulates a published run.

use std::collections::BTreeMap;

use nicpoll_model::LossPlace;
use nicpoll_model::line::IpVersion;
use nicpoll_model::sim::{SimFigures, SimFlow, SimHostFigures, SimTcp};
use nicpoll_sim::{
    HostModel, PathHost, Pattern, SimError, Simulation, TrafficModel, resource, simulate,
};

use crate::quantity::{Flow, HostOutcome, Outcome};
use crate::table::RunScenario;

/// Chance decides where the ticks of several hosts lie, and nothing else of published runs; they all have this seed.
pub(crate) const SEED: u64 = 1;
/// Ethernet's addresses and type, without FCS.
const ETHERNET_BYTES: u32 = 14;
const UDP_BYTES: u32 = 8;
/// iperf's reports were five seconds apart (`-i 5`).
const INTERVAL_NS: u64 = 5_000_000_000;

/// How long runs are, in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// What is counted.
    pub duration_ns: u64,
    /// What comes before it.
    pub warmup_ns: u64,
}

impl Length {
    /// Of the comparison: a poller's burst is where it stays after half a second.
    pub const COMPARISON: Length = Length {
        duration_ns: 1_000_000_000,
        warmup_ns: 500_000_000,
    };

    /// Of the comparison, for a run.
    pub(crate) fn of_comparison(scenario: &RunScenario) -> Length {
        match scenario.simulated_seconds {
            None => Length::COMPARISON,
            Some(seconds) => Length {
                duration_ns: (seconds * 1e9) as u64,
                warmup_ns: 0,
            },
        }
    }

    /// Of the fit, which makes thousands of runs.
    pub(crate) fn of_fit(milliseconds: u64) -> Length {
        Length {
            duration_ns: milliseconds * 1_000_000,
            warmup_ns: 50_000_000,
        }
    }

    fn seconds(self) -> f64 {
        self.duration_ns as f64 / 1e9
    }
}

/// Simulates a run of these hosts.
///
/// # Errors
/// Why the hosts cannot run it.
pub fn simulated(
    hosts: &BTreeMap<String, HostModel>,
    scenario: &RunScenario,
    length: Length,
    seed: u64,
) -> Result<Outcome, SimError> {
    let named = scenario.hosts.iter();
    let hosts: Vec<&HostModel> = named.filter_map(|name| hosts.get(name)).collect();
    let stop = |(number, host): (usize, &&HostModel)| PathHost {
        host: (*host).clone(),
        discipline: match number {
            // The one host of a run with an ideal sender receives.
            0 if hosts.len() > 1 => scenario.sender.clone(),
            _ => scenario.others.clone(),
        },
    };
    let plan = Simulation {
        stops: hosts.iter().enumerate().map(stop).collect(),
        workload: scenario.workload.clone(),
        duration_ns: length.duration_ns,
        warmup_ns: length.warmup_ns,
        seed,
        // Of several hosts only connections have parts.
        slices: match scenario.workload.pattern {
            Pattern::IperfTcp(_) => (length.duration_ns / INTERVAL_NS) as u32,
            _ => 0,
        },
    };
    let figures = simulate(&plan)?;
    let mut outcomes: Vec<_> = figures
        .hosts
        .iter()
        .map(|of| host_outcome(of, scenario, length))
        .collect();
    if let [only] = &mut outcomes[..] {
        // Its sender is not simulated: what the lost packets are a share of is unknown.
        only.socket_drop_ratio = None;
    }
    Ok(Outcome {
        flows: flows(&plan, &figures, &hosts, length),
        hosts: outcomes,
        bottleneck: resource(&plan, &figures),
    })
}

fn flows(
    plan: &Simulation,
    figures: &SimFigures,
    hosts: &[&HostModel],
    length: Length,
) -> Vec<Flow> {
    if hosts.len() == 1 {
        return vec![flow_alone(&plan.workload, figures)];
    }
    if !figures.connections.is_empty() {
        return figures.connections.iter().map(connection_outcome).collect();
    }
    let received = figures.hosts.last().map(|host| {
        let received = host.ledger.received;
        received.saturating_sub(lost(host, LossPlace::RxRing)) as f64 / length.seconds()
    });
    let frame_bits = frame_bits(&plan.workload, hosts);
    let flows = figures.flows.iter();
    flows
        .map(|flow| flow_outcome(flow, received, frame_bits, length))
        .collect()
}

fn flow_outcome(
    flow: &SimFlow,
    received_rate: Option<f64>,
    frame_bits: Option<f64>,
    length: Length,
) -> Flow {
    let of = flow.missing + flow.delivered;
    Flow {
        calls_rate: flow.calls as f64 / length.seconds(),
        send_errors_rate: flow.send_errors as f64 / length.seconds(),
        sent_rate: flow.sent_pps,
        sent_payload_bits: flow.sent_payload_bits_per_second,
        delivered_rate: flow.delivered_pps,
        delivered_payload_bits: flow.delivered_payload_bits_per_second,
        received_rate,
        frame_bits,
        loss_ratio: (of > 0).then(|| flow.missing as f64 / of as f64),
        jitter_seconds: flow.jitter_ns.map(|ns| ns / 1e9),
        out_of_order: flow.out_of_order,
        intervals_bits: None,
    }
}

/// A connection as a flow: bytes have no packets of their own.
fn connection_outcome(connection: &SimTcp) -> Flow {
    let payload_bits = connection.goodput_bits_per_second;
    let intervals = connection
        .slices
        .iter()
        .map(|slice| slice.goodput_bits_per_second);
    let least = intervals.clone().reduce(f64::min);
    let most = intervals.reduce(f64::max);
    let rate = payload_bits / 8.0 / connection.segment_bytes.max(1) as f64;
    Flow {
        sent_rate: rate,
        sent_payload_bits: payload_bits,
        delivered_rate: rate,
        delivered_payload_bits: payload_bits,
        intervals_bits: least.zip(most),
        ..Flow::default()
    }
}

fn host_outcome(host: &SimHostFigures, scenario: &RunScenario, length: Length) -> HostOutcome {
    let sampled = host.cpu_sampled.filter(|_| scenario.is_sampled);
    let dropped = lost(host, LossPlace::SocketBuffer);
    let reached = host.ledger.taken + dropped;
    HostOutcome {
        cpu: sampled.unwrap_or(host.cpu),
        socket_drop_ratio: (reached > 0).then(|| dropped as f64 / reached as f64),
        storm_reports_per_second: host
            .storm
            .map(|storm| storm.reports as f64 / length.seconds()),
        interrupts_per_second: host.interrupts as f64 / length.seconds(),
        switches_per_second: host.context_switches as f64 / length.seconds(),
    }
}

fn lost(host: &SimHostFigures, place: LossPlace) -> u64 {
    let mut losses = host.ledger.losses.iter();
    let found = losses.find(|loss| loss.place == place);
    found.map_or(0, |loss| loss.packets)
}

/// Bits of a frame without FCS; `None` when a datagram is more than one.
fn frame_bits(workload: &TrafficModel, hosts: &[&HostModel]) -> Option<f64> {
    let ip_bytes = match workload.ip {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    };
    let packet_bytes = workload.payload_bytes + UDP_BYTES + ip_bytes;
    let fits = |host: &&HostModel| u64::from(packet_bytes) <= host.link.mtu_bytes;
    let is_whole = hosts.iter().all(fits);
    is_whole.then(|| f64::from(8 * (packet_bytes + ETHERNET_BYTES)))
}

/// What an ideal sender sent, and its one host got.
fn flow_alone(workload: &TrafficModel, figures: &SimFigures) -> Flow {
    let payload_bits = 8.0 * f64::from(workload.payload_bytes);
    Flow {
        calls_rate: figures.offered_pps,
        sent_rate: figures.offered_pps,
        sent_payload_bits: figures.offered_pps * payload_bits,
        delivered_rate: figures.delivered_pps,
        delivered_payload_bits: figures.delivered_payload_bits_per_second,
        loss_ratio: figures.loss_ratio,
        jitter_seconds: figures.jitter_ns.map(|ns| ns / 1e9),
        ..Flow::default()
    }
}
