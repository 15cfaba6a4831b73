//! Pulses of datagrams over loopback, and CPU time by the phase of the pulse: first the kernel works
//! through the datagrams, then the program that reads them.
//!
//! What must hold: both ends are pinned and bounded in time, and nothing leaves loopback.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::Duration;

use nicpoll_model::FoldedPulses;
use nicpoll_observe::clock::{monotonic_ns, next_phase, sleep_until, spin_until};
use nicpoll_observe::{ExactCpu, ExactCpuOptions, FoldOptions};
use nicpoll_sys::schedule;

use super::{joined, not_measured, run_before_others};
use crate::InspectError;
use crate::error::Doing;

/// How long pulses are sent.
const RUN: Duration = Duration::from_secs(2);
/// Datagrams a pulse.
const DATAGRAMS: u32 = 32;
const PAYLOAD_BYTES: usize = 64;
/// The reader works on a pulse for this part of the period.
const WORK_FRACTION: u64 = 4;
/// Silence after which the reader knows that the sender has ended.
const SILENCE: Duration = Duration::from_millis(200);

/// Sends pulses `period` apart and folds the CPU time that they take.
pub fn fold(period: Duration) -> Result<FoldedPulses, InspectError> {
    let period_ns = period.as_nanos() as u64;
    let options = ExactCpuOptions {
        fold: Some(FoldOptions {
            period_ns,
            tgid: std::process::id(),
        }),
        ..ExactCpuOptions::default()
    };
    let mut exact = ExactCpu::load(&options).map_err(InspectError::NoExactAccount)?;
    exact.attach().map_err(InspectError::NoExactAccount)?;
    let pulses = exchange(period_ns)?;
    let fold = exact.fold().map_err(InspectError::NoExactAccount)?;
    let bins = fold.ok_or_else(|| not_measured("folding was asked for and did not take place"))?;
    Ok(FoldedPulses {
        period_ns,
        pulses,
        datagrams_per_pulse: DATAGRAMS,
        bins,
    })
}

/// Runs both ends and returns the number of pulses that were sent.
fn exchange(period_ns: u64) -> Result<u64, InspectError> {
    let cpus = schedule::allowed_cpus().doing("asking which CPUs may be used")?;
    let (Some(&sender_cpu), Some(&reader_cpu)) = (cpus.first(), cpus.last()) else {
        return Err(not_measured("this process may use no CPU"));
    };
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).doing("binding to loopback")?;
    let address = socket.local_addr().doing("binding to loopback")?;
    let timeout = socket.set_read_timeout(Some(SILENCE));
    timeout.doing("binding to loopback")?;
    let reader = thread::spawn(move || read_pulses(&socket, reader_cpu, period_ns));
    let sender = thread::spawn(move || -> Result<u64, InspectError> {
        schedule::pin(sender_cpu).doing("pinning the sender")?;
        run_before_others();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let socket = socket.doing("binding to loopback")?;
        let connected = socket.connect(address);
        connected.doing("binding to loopback")?;
        send_pulses(&socket, period_ns).doing("sending over loopback")
    });
    let sent = joined(sender);
    joined(reader)?;
    sent
}

fn send_pulses(socket: &UdpSocket, period_ns: u64) -> io::Result<u64> {
    let end = monotonic_ns() + RUN.as_nanos() as u64;
    let mut pulses = 0;
    while monotonic_ns() < end {
        sleep_until(next_phase(monotonic_ns(), period_ns, 0))?;
        for _ in 0..DATAGRAMS {
            socket.send(&[0; PAYLOAD_BYTES])?;
        }
        pulses += 1;
    }
    Ok(pulses)
}

/// Reads pulse after pulse, and works on each when it is complete.
fn read_pulses(socket: &UdpSocket, cpu: u32, period_ns: u64) -> Result<(), InspectError> {
    schedule::pin(cpu).doing("pinning the reader")?;
    run_before_others();
    let mut datagram = [0; PAYLOAD_BYTES];
    loop {
        for _ in 0..DATAGRAMS {
            match socket.recv(&mut datagram) {
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error).doing("reading from loopback"),
            }
        }
        spin_until(monotonic_ns() + period_ns / WORK_FRACTION);
    }
}
