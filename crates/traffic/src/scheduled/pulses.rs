//! Pulses: so many datagrams at once, and silence until the next ones. A server that replays a log and sleeps
//! between its rounds sends like that.

use std::num::NonZeroU32;
use std::time::Duration;

use nicpoll_model::{Side, WorkUnit};
use serde::{Deserialize, Serialize};

use super::{Due, Sender};
use crate::netrate::Receiver;
use crate::workload::{End, PreparedEnd, Workload, WorkloadError};

/// From pulse to pulse, unless something else is asked for.
const PERIOD: Duration = Duration::from_millis(1);

/// What there is to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PulseWorkload {
    /// Bytes of UDP payload in each datagram.
    pub payload_bytes: u16,
    /// Datagrams of a pulse. Pulses come 1 ms apart.
    pub packets_per_pulse: NonZeroU32,
    /// Receive buffer to ask for; null asks for 128 KiB, as netreceive does.
    pub receive_buffer_bytes: Option<usize>,
}

impl Workload for PulseWorkload {
    fn unit(&self) -> WorkUnit {
        WorkUnit::Datagrams
    }

    fn datagram_bytes(&self) -> Option<u32> {
        Some(self.payload_bytes.into())
    }

    fn prepare(&self, end: &End) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        Ok(match end.side {
            Side::Sender => Box::new(Sender::new(schedule(*self), end)?),
            Side::Receiver => Box::new(Receiver::at(end.receiver, self.receive_buffer_bytes)?),
        })
    }
}

fn schedule(pulses: PulseWorkload) -> impl Iterator<Item = Due> {
    let PulseWorkload {
        payload_bytes,
        packets_per_pulse,
        ..
    } = pulses;
    (0_u32..).flat_map(move |pulse| {
        let due = Due {
            at: PERIOD * pulse,
            payload_bytes,
        };
        std::iter::repeat_n(due, packets_per_pulse.get() as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pulse_is_due_at_once_and_the_next_one_a_period_after_its_beginning() {
        let pulses = PulseWorkload {
            payload_bytes: 100,
            packets_per_pulse: NonZeroU32::new(3).unwrap(),
            receive_buffer_bytes: None,
        };
        let times: Vec<u128> = schedule(pulses)
            .take(7)
            .map(|due| due.at.as_micros())
            .collect();
        assert_eq!(times, [0, 0, 0, 1000, 1000, 1000, 2000]);
    }
}
