//! Simulates a published run.

use std::collections::BTreeMap;

use nicpoll_model::LossPlace;
use nicpoll_model::line::IpVersion;
use nicpoll_model::sim::{SimFigures, SimFlow, SimTcp};
use nicpoll_sim::{
    HostModel, PathHost, Pattern, SimError, Simulation, TrafficModel, resource, simulate,
};

use crate::quantity::{FlowFigures, FlowQuantity as Q, SimulatedRun};
use crate::table::PublishedRun;

/// The seed of published runs; only the tick phases of several hosts are random in them.
pub(crate) const SEED: u64 = 1;
/// Ethernet's addresses and type, without FCS.
const ETHERNET_BYTES: u32 = 14;
const UDP_BYTES: u32 = 8;
/// iperf's reports were five seconds apart (`-i 5`).
const INTERVAL_NS: u64 = 5_000_000_000;

/// The length of a run, in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLength {
    /// Counted time.
    pub duration_ns: u64,
    /// Warm-up before it.
    pub warmup_ns: u64,
}

impl RunLength {
    /// For the comparison: a poller's burst has settled after half a second.
    pub const COMPARISON: RunLength = RunLength {
        duration_ns: 1_000_000_000,
        warmup_ns: 500_000_000,
    };

    /// Returns the length of a run in the comparison.
    pub(crate) fn of_comparison(run: &PublishedRun) -> RunLength {
        match run.simulated_seconds {
            None => RunLength::COMPARISON,
            Some(seconds) => RunLength {
                duration_ns: (seconds * 1e9) as u64,
                warmup_ns: 0,
            },
        }
    }

    /// Returns the length of a run in the fit, which makes thousands.
    pub(crate) fn of_fit(milliseconds: u64) -> RunLength {
        RunLength {
            duration_ns: milliseconds * 1_000_000,
            warmup_ns: 50_000_000,
        }
    }

    fn seconds(self) -> f64 {
        self.duration_ns as f64 / 1e9
    }
}

/// Simulates a run that has a workload, on these hosts.
///
/// # Errors
/// Why the hosts cannot run it.
pub fn simulated(
    hosts: &BTreeMap<String, HostModel>,
    run: &PublishedRun,
    length: RunLength,
    seed: u64,
) -> Result<SimulatedRun, SimError> {
    let workload = run.workload.clone();
    let workload =
        workload.ok_or_else(|| SimError::from(format!("{} has no workload", run.name)))?;
    let named = run.hosts.iter();
    let hosts: Vec<&HostModel> = named.filter_map(|name| hosts.get(name)).collect();
    // The one host of a run with an ideal sender receives.
    let is_sender = |number: usize| number == 0 && hosts.len() > 1;
    let stop = |(number, host): (usize, &&HostModel)| {
        Ok(PathHost {
            host: (*host).clone(),
            discipline: run.discipline(is_sender(number))?,
        })
    };
    let stops: Result<_, SimError> = hosts.iter().enumerate().map(stop).collect();
    let plan = Simulation {
        stops: stops?,
        // With several hosts only connections have slices.
        slices: match workload.pattern {
            Pattern::IperfTcp(_) => (length.duration_ns / INTERVAL_NS) as u32,
            _ => 0,
        },
        workload,
        duration_ns: length.duration_ns,
        warmup_ns: length.warmup_ns,
        seed,
    };
    let figures = simulate(&plan)?;
    let mut outcome = SimulatedRun {
        flows: flows(&plan, &figures, &hosts, length),
        bottleneck: resource(&plan, &figures),
        hosts: figures.hosts,
        seconds: length.seconds(),
    };
    for host in outcome.hosts.iter_mut().filter(|_| run.is_sampled) {
        host.cpu = host.cpu_sampled.unwrap_or(host.cpu);
    }
    Ok(outcome)
}

fn flows(
    plan: &Simulation,
    figures: &SimFigures,
    hosts: &[&HostModel],
    length: RunLength,
) -> Vec<FlowFigures> {
    if hosts.len() == 1 {
        return vec![flow_alone(&plan.workload, figures)];
    }
    if !figures.connections.is_empty() {
        return figures.connections.iter().map(connection_outcome).collect();
    }
    let received = figures.hosts.last().map(|host| {
        let lost = host.ledger.lost_in(LossPlace::RxRing);
        host.ledger.received_packets.saturating_sub(lost) as f64 / length.seconds()
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
    length: RunLength,
) -> FlowFigures {
    let of = flow.missing_datagrams + flow.delivered_datagrams;
    let mut figures = Q::rates(
        [
            flow.sent_packets_per_second,
            flow.sent_payload_bits_per_second,
        ],
        [
            flow.delivered_packets_per_second,
            flow.delivered_payload_bits_per_second,
        ],
        (of > 0).then(|| flow.missing_datagrams as f64 / of as f64),
    );
    figures.extend([
        (Q::Calls, flow.calls as f64 / length.seconds()),
        (Q::SendErrors, flow.send_errors as f64 / length.seconds()),
        (Q::OutOfOrder, flow.out_of_order_datagrams as f64),
    ]);
    figures.extend(flow.jitter_ns.map(|ns| (Q::Jitter, ns / 1e9)));
    if let Some(bits) = frame_bits {
        figures.insert(Q::SentFrames, flow.sent_packets_per_second * bits);
        figures.extend(received_rate.map(|rate| (Q::ReceivedFrames, rate * bits)));
    }
    figures
}

/// Returns a connection as a flow of full segments: bytes have no packets of their own.
fn connection_outcome(connection: &SimTcp) -> FlowFigures {
    let payload_bits = connection.goodput_bits_per_second;
    let rate = payload_bits / 8.0 / connection.segment_bytes.max(1) as f64;
    let mut figures = Q::rates([rate, payload_bits], [rate, payload_bits], None);
    let slices = connection.slices.iter();
    let intervals = slices.map(|slice| slice.goodput_bits_per_second);
    let least = intervals.clone().reduce(f64::min);
    figures.extend(least.map(|bits| (Q::LowestInterval, bits)));
    let most = intervals.reduce(f64::max);
    figures.extend(most.map(|bits| (Q::HighestInterval, bits)));
    figures
}

/// Returns the bits of a frame without FCS; `None` when datagrams are fragmented.
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

/// Returns the flow from an ideal sender to a single host.
fn flow_alone(workload: &TrafficModel, figures: &SimFigures) -> FlowFigures {
    let SimFigures {
        offered_packets_per_second: offered_pps,
        delivered_packets_per_second: delivered_pps,
        delivered_payload_bits_per_second,
        ..
    } = *figures;
    let sent_bits = offered_pps * (8.0 * f64::from(workload.payload_bytes));
    let mut flow = Q::rates(
        [offered_pps, sent_bits],
        [delivered_pps, delivered_payload_bits_per_second],
        figures.loss_ratio,
    );
    flow.insert(Q::Calls, offered_pps);
    flow.extend(figures.jitter_ns.map(|ns| (Q::Jitter, ns / 1e9)));
    flow
}
