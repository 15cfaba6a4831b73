//! What a run follows from beside the host.

use nicpoll_core::{Errno, Knob, Poller};
use nicpoll_model::line::{Line, LineError};
use nicpoll_model::sim::SimPlan;
use thiserror::Error;

use crate::discipline::{Discipline, Kind};
use crate::host::Host;
use crate::line::Wire;
use crate::workload::{Pattern, Workload};

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How the host learns of packets.
    pub discipline: Discipline,
    /// What is sent.
    pub workload: Workload,
    /// Virtual time that is counted, above 0.
    pub duration_ns: u64,
    /// Virtual time before it that is not.
    pub warmup_ns: u64,
    /// What all chance follows from.
    pub seed: u64,
    /// Parts of the counted time that are told of one by one; 0 for none.
    pub slices: u32,
}

/// Why a plan cannot be run on a host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The line cannot carry such packets.
    #[error("{0}")]
    Line(#[from] LineError),
    /// Fragments are not simulated.
    #[error(
        "a payload of {payload_bytes} bytes is fragmented at an MTU of {mtu_bytes}, and fragments are \
         not simulated; give a smaller payload"
    )]
    Fragments {
        /// What was asked for.
        payload_bytes: u32,
        /// The line's.
        mtu_bytes: u64,
    },
    /// The socket could never take a packet.
    #[error(
        "socket.buffer_bytes = {buffer_bytes} does not hold one packet, which takes {packet_bytes} \
         bytes; give a larger buffer or a smaller payload"
    )]
    Buffer {
        /// The buffer.
        buffer_bytes: u64,
        /// Payload with what the packet takes beside it.
        packet_bytes: u64,
    },
    /// A workload from outside has a rate.
    #[error("the workload has no rate; give one, such as {0}:rate=100k")]
    NoRate(String),
    /// Nothing would be counted.
    #[error("a run of no length counts nothing; give a duration above 0")]
    NoDuration,
    /// The program cannot send and poll for what it receives.
    #[error(
        "under busy-poll the program receives, and under blast it sends; give one of them another"
    )]
    BlastWhilePolling,
    /// The poller refuses a knob.
    #[error(
        "kern.polling.{name} = {value} is refused ({errno}): burst_max takes 10 to 20000, each_burst 1 \
         to burst_max, user_frac 0 to 99, reg_frac 1 to cpu.hz; knobs are written in the order given",
        name = knob.name()
    )]
    Knob {
        /// Which.
        knob: Knob,
        /// What was to be written.
        value: u32,
        /// The original's error.
        errno: Errno,
    },
}

impl Plan {
    /// The plan as reports show it.
    pub fn facts(&self, host: &Host) -> SimPlan {
        SimPlan {
            host: host.name.clone(),
            discipline: self.discipline.to_string(),
            workload: self.workload.to_string(),
            seconds: self.duration_ns as f64 / 1e9,
            warmup_seconds: self.warmup_ns as f64 / 1e9,
            seed: self.seed,
        }
    }

    /// Looks whether the host, with the discipline's own numbers, can run this.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check(&self, host: &Host) -> Result<(), PlanError> {
        let host = self.discipline.applied_to(host);
        self.wire(&host)?;
        let packet_bytes = packet_bytes(&host, &self.workload);
        if packet_bytes > host.socket.buffer_bytes {
            return Err(PlanError::Buffer {
                buffer_bytes: host.socket.buffer_bytes,
                packet_bytes,
            });
        }
        let is_blast = self.workload.pattern == Pattern::Blast;
        if !is_blast && self.workload.rate_pps.is_none() {
            let text = self.workload.to_string();
            let name = text.split(':').next().unwrap_or_default();
            return Err(PlanError::NoRate(String::from(name)));
        }
        if self.duration_ns == 0 {
            return Err(PlanError::NoDuration);
        }
        match &self.discipline.kind {
            Kind::Napi(options) if options.busy.is_some() && is_blast => {
                Err(PlanError::BlastWhilePolling)
            }
            Kind::Napi(_) | Kind::Interrupt => Ok(()),
            Kind::Polling { .. } => self.poller(&host).map(|_| ()),
        }
    }

    /// The line for this plan's packets. `host` has the discipline's numbers.
    pub(crate) fn wire(&self, host: &Host) -> Result<Wire, PlanError> {
        let mut line = Line::new(host.link.bits_per_second).expect("a host's line has a speed");
        // Its range ends at 65,535.
        line.mtu_bytes = host.link.mtu_bytes as u32;
        let packet = self.workload.packet();
        if line.cost(packet)?.frames != 1 {
            return Err(PlanError::Fragments {
                payload_bytes: self.workload.payload_bytes,
                mtu_bytes: host.link.mtu_bytes,
            });
        }
        Ok(Wire::new(&line, packet)?)
    }

    /// The poller with its knobs written and the card registered; `None` for other disciplines.
    pub(crate) fn poller(&self, host: &Host) -> Result<Option<Poller>, PlanError> {
        let Kind::Polling { knobs, controller } = &self.discipline.kind else {
            return Ok(None);
        };
        // A host's range ends long before that of the poller.
        let mut poller = Poller::new(host.cpu.hz as u32).expect("a host's clock ticks");
        for &(knob, value) in knobs {
            let written = poller.write(knob, value);
            written.map_err(|errno| PlanError::Knob { knob, value, errno })?;
        }
        poller.set_controller(*controller);
        let registered = poller.register(nicpoll_core::DeviceId(0));
        let _ = registered.expect("the list is empty");
        Ok(Some(poller))
    }
}

/// What a packet takes of the socket's buffer. An empty one takes a byte, so that the buffer ends.
pub(crate) fn packet_bytes(host: &Host, workload: &Workload) -> u64 {
    (u64::from(workload.payload_bytes) + host.socket.packet_overhead_bytes).max(1)
}
