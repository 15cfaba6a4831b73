//! One run of a workload's traffic between the two hosts of a lab.
//!
//! What must hold: the receiver is up before the sender starts; whoever runs it may do other things
//! meanwhile. A run that is given up half-way ends with [`Lab::restore`]. An end that hangs is not waited for
//! beyond its time, nor beyond the time of the study.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Side;
use nicpoll_traffic::workload::{Books, End, EndBooks, IDLE_TIMEOUT};

use crate::error::StudyError;
use crate::host::HostFailure;
use crate::lab::Lab;
use crate::workload::WorkloadRequest;

/// iperf 2's port. Each run has the receiver to itself; an end that hung may hold its port for good, and the
/// runs after it use the next one.
const PORT: u16 = 5001;
/// How often the runner looks for a signal while it waits.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a sender may take beyond its time: iperf asks for its server's report for 2.5 s.
const SENDER_MAX: Duration = IDLE_TIMEOUT;
/// A receiver that knows that everything is sent ends within this.
const DRAIN_MAX: Duration = IDLE_TIMEOUT.saturating_mul(2);

/// Traffic on its way.
pub struct Running {
    sender: u32,
    receiver: u32,
    duration: Duration,
    sent: Option<EndBooks>,
}

impl Running {
    /// Starts a workload for `duration`.
    pub fn start(
        lab: &mut Lab,
        workload: &WorkloadRequest,
        duration: Duration,
    ) -> Result<Self, StudyError> {
        let receiver = SocketAddr::new(ipv4_of(lab, Side::Receiver)?, PORT + lab.hung_ends);
        let terms = |side| End {
            side,
            receiver,
            duration,
        };
        let receiver = prepare(lab, workload, terms(Side::Receiver))?;
        lab.receiver.start(receiver)?;
        let sender = prepare(lab, workload, terms(Side::Sender))?;
        lab.sender.start(sender)?;
        Ok(Running {
            sender,
            receiver,
            duration,
            sent: None,
        })
    }

    /// Starts the sender alone, towards an address that no host has.
    pub fn start_to_nobody(
        lab: &mut Lab,
        workload: &WorkloadRequest,
        peer: SocketAddr,
        duration: Duration,
    ) -> Result<Self, StudyError> {
        let terms = End {
            side: Side::Sender,
            receiver: peer,
            duration,
        };
        let sender = prepare(lab, workload, terms)?;
        lab.sender.start(sender)?;
        Ok(Running {
            sender,
            receiver: 0,
            duration,
            sent: None,
        })
    }

    /// Waits until the sender has ended.
    ///
    /// # Errors
    /// [`StudyError::Cancelled`] when `cancel` became true; the sender's own error.
    pub fn wait_for_sender(
        &mut self,
        lab: &mut Lab,
        cancel: &AtomicBool,
    ) -> Result<(), StudyError> {
        let longest = self.duration + SENDER_MAX;
        let deadline = lab.give_up_at(longest);
        while self.sent.is_none() {
            if Instant::now() > deadline {
                return Err(lab.hung(format!(
                    "the sender hung: it was to send for {:.1} s and had not ended after {:.1} s",
                    self.duration.as_secs_f64(),
                    longest.as_secs_f64()
                )));
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(StudyError::Cancelled);
            }
            self.sent = lab.sender.ended(self.sender, LOOK_EVERY)?;
        }
        Ok(())
    }

    /// Gives stragglers `quiet` time to arrive, ends the receiver, and puts both ends' figures together.
    pub fn drain(self, lab: &mut Lab, quiet: Duration) -> Result<Books, StudyError> {
        let sent = self.sent.ok_or_else(|| {
            StudyError::Unexpected(String::from("the sender has not been waited for"))
        })?;
        thread::sleep(quiet);
        lab.receiver.sender_done(self.receiver)?;
        let deadline = lab.give_up_at(DRAIN_MAX);
        let patience = deadline.saturating_duration_since(Instant::now());
        let received = lab.receiver.ended(self.receiver, patience)?;
        let Some(received) = received else {
            return Err(lab.hung(format!(
                "the receiver hung: it had not ended {:.1} s after everything was sent",
                DRAIN_MAX.as_secs_f64()
            )));
        };
        Ok(Books::of(sent, received))
    }
}

fn prepare(lab: &mut Lab, workload: &WorkloadRequest, terms: End) -> Result<u32, StudyError> {
    let (end, [sender_cpu, receiver_cpu]) = (lab.next_end(), lab.cpus());
    let cpu = match terms.side {
        Side::Sender => sender_cpu,
        Side::Receiver => receiver_cpu,
    };
    let host = lab.host(terms.side);
    host.prepare(end, workload.clone(), terms, cpu)
        .map_err(|error| {
            StudyError::Traffic(format!(
                "starting the {}: {}",
                terms.side,
                HostFailure::of(&error)
            ))
        })?;
    Ok(end)
}

/// The traffic of studies is IPv4.
fn ipv4_of(lab: &Lab, side: Side) -> Result<IpAddr, StudyError> {
    let addresses = lab.link.addresses(&side.to_string());
    let mut addresses = addresses.into_iter().map(|(address, _)| address);
    addresses
        .find(IpAddr::is_ipv4)
        .ok_or_else(|| StudyError::Unexpected(format!("the link gives the {side} no IPv4 address")))
}
