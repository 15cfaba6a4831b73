//! What the simulator says of the row `overload`, from what `nicpoll sim fit --host` measures on this machine.
//!
//! The kernel receives on the receiver's core there, so the host is one with a card, whose costs are those of the veth
//! pair's receive path. The engine's work is that of its poll; a socket's is its program's. Two things are left out: what
//! AF_XDP takes to copy a frame, which the fit does not measure, and the program beside them, which the simulator has
//! not.

use anyhow::Result;
use nicpoll_calibrate::host_of;
use nicpoll_model::engine::{LoadCurve, LoadPoint};
use nicpoll_model::sim::SimFitHost;
use nicpoll_sim::{HostModel, PathHost, ReceiveDiscipline, Simulation, TrafficModel, simulate};

use crate::overload::WORK_NS;

/// Bytes of UDP payload in a frame of 64 bytes.
const PAYLOAD_BYTES: u32 = 18;
/// What the kernel grants whoever asks for the 128 KiB of the socket's receive buffer.
const SOCKET_BUFFER_BYTES: u64 = 256 * 1024;
/// The sender's queue: what it does not send at once it sends late.
const FAR_END_PACKETS: u64 = 1000;
const SECOND_NS: u64 = 1_000_000_000;

/// A simulated receiver: its name, its discipline, and numbers of the host that are other than those of the machine.
struct Simulated {
    name: &'static str,
    discipline: &'static str,
    /// Whether its poll does the work on each packet, and not its program.
    works_in_poll: bool,
}

const SIMULATED: [Simulated; 3] = [
    Simulated {
        name: "sink, freebsd-polling",
        discipline: "freebsd-polling:controller=share:burst_max=4000:each_burst=64:user_frac=50",
        works_in_poll: true,
    },
    Simulated {
        name: "socket, napi",
        discipline: "napi",
        works_in_poll: false,
    },
    Simulated {
        name: "socket, freebsd-interrupt",
        discipline: "freebsd-interrupt",
        works_in_poll: false,
    },
];

/// Each of them over these loads.
pub fn curves(fit: &SimFitHost, loads: &[u32]) -> Result<Vec<LoadCurve>> {
    let curves = SIMULATED.iter().map(|one| {
        let host = one.host(host_of(&fit.numbers));
        let points = loads.iter().map(|load| one.point(&host, *load));
        Ok(LoadCurve {
            name: String::from(one.name),
            is_simulated: true,
            points: points.collect::<Result<_>>()?,
        })
    });
    curves.collect()
}

impl Simulated {
    fn host(&self, mut host: HostModel) -> HostModel {
        host.veth = Default::default();
        host.link.queue_packets = FAR_END_PACKETS;
        host.socket.buffer_bytes = SOCKET_BUFFER_BYTES;
        if self.works_in_poll {
            host.card.rx_packet_ns += WORK_NS;
            // The engine's ticks; and it takes packets before IP.
            (host.cpu.hz, host.network.udp_ns) = (1000, 0);
        } else {
            host.application.packet_ns += WORK_NS;
        }
        host
    }

    fn point(&self, host: &HostModel, load: u32) -> Result<LoadPoint> {
        let workload = format!("poisson:rate={load}:payload={PAYLOAD_BYTES}");
        let figures = simulate(&Simulation {
            stops: vec![PathHost {
                host: host.clone(),
                discipline: ReceiveDiscipline::parse(self.discipline)?,
            }],
            workload: TrafficModel::parse(&workload)?,
            duration_ns: SECOND_NS,
            warmup_ns: SECOND_NS,
            seed: 1,
            slices: 0,
        })?;
        Ok(LoadPoint {
            offered_pps: figures.offered_pps,
            delivered_pps: figures.delivered_pps,
            programs_share: None,
        })
    }
}
