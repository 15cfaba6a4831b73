//! The simulator's prediction of the row `overload`, from the costs that `nicpoll sim fit --host` measures on this
//! machine.
//!
//! The kernel receives on the receiver's core, so the host has a card with the costs of the veth pair's receive path.
//! The engine works in its poll, a socket's program in itself. Left out are what the fit does not measure: AF_XDP's
//! copy of a frame, and waking and directing the kernel's thread.

use anyhow::Result;
use nicpoll_calibrate::host_of;
use nicpoll_model::engine::{LoadCurve, LoadPoint};
use nicpoll_model::sim::SimFitHost;
use nicpoll_sim::{HostModel, PathHost, ReceiveDiscipline, Simulation, TrafficModel, simulate};

use crate::overload::WORK_NS;

/// Bytes of UDP payload in a frame of 64 bytes.
const PAYLOAD_BYTES: u32 = 18;
/// The buffer that the kernel grants for a request of 128 KiB.
const SOCKET_BUFFER_BYTES: u64 = 256 * 1024;
/// The sender's queue, which delays frames.
const FAR_END_PACKETS: u64 = 1000;
const SECOND_NS: u64 = 1_000_000_000;

/// A simulated receiver: its name, its discipline, and the host's numbers that differ from the machine's.
struct Simulated {
    name: &'static str,
    discipline: &'static str,
    /// Whether its poll, not its program, does the work on each packet.
    works_in_poll: bool,
}

const SIMULATED: [Simulated; 4] = [
    Simulated {
        name: "sink next to a program, freebsd-polling",
        discipline: "freebsd-polling:controller=share:burst_max=4000:each_burst=64:application.computing=1",
        works_in_poll: true,
    },
    Simulated {
        name: "sink alone, freebsd-polling",
        discipline: "freebsd-polling:controller=share:burst_max=4000:each_burst=64",
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

/// Simulates each of them over these loads.
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
            // The engine's tick rate; it takes packets before IP, and no program reads them.
            (host.cpu.hz, host.network.udp_ns) = (1000, 0);
            host.cpu.syscall_ns = 1;
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
            offered_pps: figures.offered_packets_per_second,
            delivered_pps: figures.delivered_packets_per_second,
            programs_share: None,
        })
    }
}
