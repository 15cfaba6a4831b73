//! One run of a workload's traffic: both ends on pinned threads inside their namespaces.
//!
//! What must hold: the receiver is up before the sender starts; whoever runs it may do other things
//! meanwhile; a run that is dropped half-way is cancelled and its threads are waited for.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use nicpoll_iperf::{Amount, tcp, udp};
use nicpoll_model::{
    ControlKind, ControlLine, Rate, RoundTrip, Side, SocketBuffers, WindowRates, Workload,
};
use nicpoll_traffic::{Signals, SocketBuffer, rr};

use crate::lab::Lab;
use crate::link::Addresses;
use crate::study::Cancelled;

/// iperf 2's port. Each run has the receiver's namespace to itself.
const PORT: u16 = 5001;
/// Large enough that datagrams are not lost for want of buffer while the receiver is preempted: what
/// is studied is the path to the socket.
const UDP_RECEIVE_BUFFER_BYTES: usize = 8 << 20;
/// Silence after which a receiver gives up.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How often the runner looks for a signal while it waits.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What one run of traffic came to, as its two programs counted it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Datagrams offered and delivered; `None` for TCP.
    pub packets: Option<(u64, u64)>,
    /// Payload offered.
    pub offered_bytes: u64,
    /// Payload delivered.
    pub delivered_bytes: u64,
    /// The sender's own figures.
    pub sender: WindowRates,
    /// The receiver's own figures.
    pub receiver: WindowRates,
    /// Interarrival jitter at the receiver.
    pub jitter_seconds: Option<f64>,
    /// Datagrams that arrived after a later one.
    pub out_of_order_packets: Option<u64>,
    /// Round trips.
    pub round_trip: Option<RoundTrip>,
    /// Datagrams besides the workload's own.
    pub control: Vec<ControlLine>,
    /// Buffers of the sockets.
    pub socket_buffers: SocketBuffers,
    /// Why not everything that was sent could be waited for; `None` when it was.
    pub undrained: Option<String>,
}

enum SenderReport {
    Tcp(tcp::SendReport),
    Udp(udp::SendReport),
    Rr(rr::ClientReport),
}

enum ReceiverReport {
    Tcp(tcp::ReceiveReport),
    Udp(udp::ReceiveReport),
    Rr(rr::ServerReport),
}

type End<T> = JoinHandle<io::Result<Result<T>>>;

/// Traffic on its way.
pub struct Running {
    signals: Arc<Signals>,
    sender: Option<End<SenderReport>>,
    receiver: Option<End<ReceiverReport>>,
    sent: Option<SenderReport>,
}

impl Running {
    /// Starts a workload for `duration`.
    pub fn start(lab: &Lab, workload: Workload, duration: Duration) -> Result<Self> {
        Self::start_with_buffer(lab, workload, duration, UDP_RECEIVE_BUFFER_BYTES)
    }

    /// Starts datagrams of 64 bytes at a rate.
    pub fn start_paced(lab: &Lab, packets_per_second: u64, duration: Duration) -> Result<Self> {
        let rate = Rate::packets_per_second(packets_per_second);
        let workload = Workload::Udp64;
        Self::start_as(lab, workload, duration, UDP_RECEIVE_BUFFER_BYTES, rate)
    }

    /// Starts a workload whose UDP receiver asks for a receive buffer of the given size.
    pub fn start_with_buffer(
        lab: &Lab,
        workload: Workload,
        duration: Duration,
        udp_receive_buffer_bytes: usize,
    ) -> Result<Self> {
        Self::start_as(lab, workload, duration, udp_receive_buffer_bytes, None)
    }

    fn start_as(
        lab: &Lab,
        workload: Workload,
        duration: Duration,
        udp_receive_buffer_bytes: usize,
        rate: Option<Rate>,
    ) -> Result<Self> {
        let address = IpAddr::V4(Addresses::of(Side::Receiver).ipv4);
        let address = SocketAddr::new(address, PORT);
        let signals = Arc::new(Signals::default());
        let (ready, is_up) = mpsc::channel();
        let shared = Arc::clone(&signals);
        let receiver = lab
            .receiver
            .spawn_pinned(lab.receiver_cpu, "receive", move || {
                receive(workload, address, udp_receive_buffer_bytes, &ready, &shared)
            })?;
        let mut running = Running {
            signals,
            sender: None,
            receiver: Some(receiver),
            sent: None,
        };
        if is_up.recv().is_err() {
            // It ended before it was up; its own error says why.
            running.join_receiver()?;
            return Err(anyhow!("the receiver ended before the sender started"));
        }
        let shared = Arc::clone(&running.signals);
        let sender = lab.sender.spawn_pinned(lab.sender_cpu, "send", move || {
            send(workload, address, duration, rate, &shared)
        })?;
        running.sender = Some(sender);
        Ok(running)
    }

    /// Waits until the sender has ended.
    ///
    /// # Errors
    /// [`Cancelled`] when `cancel` became true; the sender's own error.
    pub fn wait_for_sender(&mut self, cancel: &AtomicBool) -> Result<()> {
        let sender = self
            .sender
            .take()
            .ok_or_else(|| anyhow!("the sender has been waited for already"))?;
        while !sender.is_finished() {
            if cancel.load(Ordering::Relaxed) {
                self.sender = Some(sender);
                return Err(Cancelled.into());
            }
            thread::sleep(LOOK_EVERY);
        }
        self.sent = Some(join(sender, "sender")?);
        Ok(())
    }

    /// Gives stragglers `quiet` time to arrive, ends the receiver, and puts both ends' figures together.
    pub fn drain(mut self, quiet: Duration) -> Result<Run> {
        let sent = self
            .sent
            .take()
            .ok_or_else(|| anyhow!("the sender has not been waited for"))?;
        thread::sleep(quiet);
        self.signals.sender_done.store(true, Ordering::Release);
        let received = self.join_receiver()?;
        match (sent, received) {
            (SenderReport::Tcp(sent), ReceiverReport::Tcp(received)) => Ok(tcp_run(sent, received)),
            (SenderReport::Udp(sent), ReceiverReport::Udp(received)) => Ok(udp_run(sent, received)),
            (SenderReport::Rr(sent), ReceiverReport::Rr(received)) => Ok(rr_run(sent, received)),
            _ => Err(anyhow!("the two ends ran different workloads")),
        }
    }

    fn join_receiver(&mut self) -> Result<ReceiverReport> {
        let receiver = self
            .receiver
            .take()
            .ok_or_else(|| anyhow!("the receiver has been waited for already"))?;
        join(receiver, "receiver")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signals.cancel.store(true, Ordering::Relaxed);
        // Whatever they ended with no longer matters.
        if let Some(sender) = self.sender.take() {
            let _ = sender.join();
        }
        if let Some(receiver) = self.receiver.take() {
            let _ = receiver.join();
        }
    }
}

fn join<T>(end: End<T>, name: &str) -> Result<T> {
    end.join()
        .map_err(|_| anyhow!("the {name}'s thread panicked"))?
        .with_context(|| format!("binding the {name}'s thread to its CPU"))?
        .with_context(|| format!("at the {name}"))
}

fn send(
    workload: Workload,
    peer: SocketAddr,
    duration: Duration,
    rate: Option<Rate>,
    signals: &Signals,
) -> Result<SenderReport> {
    let amount = Amount::Time(duration);
    Ok(match (workload, workload.datagram_bytes()) {
        (Workload::Rr, _) => SenderReport::Rr(rr::run_client(
            &rr::ClientConfig::udp(peer, duration),
            signals,
            &mut |_| {},
        )?),
        (_, Some(payload_bytes)) => {
            let config = udp::ClientConfig {
                rate,
                ..udp::ClientConfig::new(peer, payload_bytes, amount)
            };
            SenderReport::Udp(udp::run_client(&config, signals, &mut ())?)
        }
        (_, None) => SenderReport::Tcp(tcp::run_client(
            &tcp::ClientConfig {
                connect_timeout: CONNECT_TIMEOUT,
                ..tcp::ClientConfig::new(peer, amount)
            },
            signals,
            &mut (),
        )?),
    })
}

fn receive(
    workload: Workload,
    bind: SocketAddr,
    udp_receive_buffer_bytes: usize,
    ready: &mpsc::Sender<()>,
    signals: &Signals,
) -> Result<ReceiverReport> {
    // Whoever started this may be gone by now; the sender's end will tell.
    let up = || {
        let _ = ready.send(());
    };
    Ok(match workload {
        Workload::Tcp => {
            let server = tcp::Server::bind(&tcp::ServerConfig {
                bind,
                receive_buffer_bytes: None,
                idle_timeout: IDLE_TIMEOUT,
            })?;
            up();
            ReceiverReport::Tcp(server.run(signals)?)
        }
        Workload::Udp1470 | Workload::Udp64 => {
            let server = udp::Server::bind(&udp::ServerConfig {
                bind,
                receive_buffer_bytes: Some(udp_receive_buffer_bytes),
                idle_timeout: IDLE_TIMEOUT,
            })?;
            up();
            ReceiverReport::Udp(server.run(signals)?)
        }
        Workload::Rr => {
            let server = rr::Server::bind(&rr::ServerConfig {
                bind,
                receive_buffer_bytes: Some(udp_receive_buffer_bytes),
                idle_timeout: IDLE_TIMEOUT,
            })?;
            up();
            ReceiverReport::Rr(server.run(signals)?)
        }
    })
}

fn tcp_run(sent: tcp::SendReport, received: tcp::ReceiveReport) -> Run {
    let undrained = match (sent.seconds_to_close, received.end) {
        (Some(_), tcp::End::Closed) => None,
        _ => Some(String::from(
            "the connection was not closed by both ends in time",
        )),
    };
    Run {
        packets: None,
        offered_bytes: sent.bytes_sent,
        delivered_bytes: received.bytes_received,
        sender: WindowRates::new(None, sent.bytes_sent, sent.seconds),
        receiver: WindowRates::new(None, received.bytes_received, received.seconds),
        jitter_seconds: None,
        out_of_order_packets: None,
        round_trip: None,
        control: Vec::new(),
        socket_buffers: buffers(sent.send_buffer, received.receive_buffer),
        undrained,
    }
}

fn udp_run(sent: udp::SendReport, received: udp::ReceiveReport) -> Run {
    let in_balance = |kind, from, sent, received| ControlLine {
        kind,
        from,
        sent: Some(sent),
        received: Some(received),
        in_balance: true,
    };
    Run {
        packets: Some((sent.datagrams_sent, received.datagrams_received)),
        offered_bytes: sent.bytes_sent,
        delivered_bytes: received.bytes_received,
        sender: WindowRates::new(Some(sent.datagrams_sent), sent.bytes_sent, sent.seconds),
        receiver: WindowRates::new(
            Some(received.datagrams_received),
            received.bytes_received,
            received.seconds,
        ),
        jitter_seconds: received.jitter_seconds,
        out_of_order_packets: Some(received.out_of_order),
        round_trip: None,
        control: vec![
            in_balance(
                ControlKind::Fin,
                Side::Sender,
                sent.fins_sent,
                received.fins_received,
            ),
            in_balance(
                ControlKind::FinAcknowledgement,
                Side::Receiver,
                received.fin_acks_sent,
                sent.fin_acks_received,
            ),
        ],
        socket_buffers: buffers(sent.send_buffer, received.receive_buffer),
        undrained: (received.end == udp::End::Idle)
            .then(|| String::from("the receiver heard nothing for too long and gave up")),
    }
}

fn rr_run(sent: rr::ClientReport, received: rr::ServerReport) -> Run {
    let payload = Workload::Rr.datagram_bytes().unwrap_or_default() as u64;
    let window =
        |packets: u64, seconds| WindowRates::new(Some(packets), packets * payload, seconds);
    let offered = sent.requests_sent + received.responses_sent;
    let delivered = received.requests_received + sent.responses_received;
    Run {
        packets: Some((offered, delivered)),
        offered_bytes: offered * payload,
        delivered_bytes: delivered * payload,
        sender: window(sent.requests_sent, sent.seconds),
        receiver: window(received.requests_received, received.seconds),
        jitter_seconds: None,
        out_of_order_packets: None,
        round_trip: sent.round_trip(),
        control: Vec::new(),
        socket_buffers: buffers(sent.send_buffer, received.receive_buffer),
        undrained: (received.end == rr::End::Idle)
            .then(|| String::from("the responder heard nothing for too long and gave up")),
    }
}

fn buffers(send: SocketBuffer, receive: SocketBuffer) -> SocketBuffers {
    SocketBuffers {
        send_asked_bytes: send.asked_bytes,
        send_granted_bytes: send.granted_bytes,
        receive_asked_bytes: receive.asked_bytes,
        receive_granted_bytes: receive.granted_bytes,
    }
}
