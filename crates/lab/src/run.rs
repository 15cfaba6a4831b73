//! One run of a workload's traffic between the hosts of a lab: one stream, or several at once.
//!
//! Every receiver is up before the first sender starts, and the caller may do other work while traffic runs.
//! [`Lab::restore`](crate::Lab::restore) ends an abandoned run. Waiting for an end is limited by its own time and the
//! study's.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Side;
use nicpoll_model::line::IpVersion;
use nicpoll_traffic::workload::{Books, EndBooks, EndTerms, IDLE_TIMEOUT};

use crate::error::LabError;
use crate::host::HostRequest;
use crate::lab::Lab;
use crate::receive::{HUNG_RUNS, PORT, PORTS_A_RUN};
use crate::workload::{TrafficOptions, WorkloadRequest};

/// Interval of checks for a signal while waiting.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Time that a sender may overrun: iperf asks for its server's report for 2.5 s.
const SENDER_MAX: Duration = IDLE_TIMEOUT;

/// Time for the queues of shaped links to empty.
const QUEUES_MAX: Duration = Duration::from_secs(5);

/// Time for a receiver to end after everything was sent.
const DRAIN_MAX: Duration = IDLE_TIMEOUT.saturating_mul(2);

/// Traffic to run.
#[derive(Clone, Copy)]
pub struct Traffic<'a> {
    /// The traffic that is measured.
    pub request: &'a WorkloadRequest,
    /// Version of IP, directions and background traffic.
    pub options: &'a TrafficOptions,
}

impl<'a> From<&'a WorkloadRequest> for Traffic<'a> {
    fn from(request: &'a WorkloadRequest) -> Self {
        Traffic {
            request,
            options: PLAIN,
        }
    }
}

/// IPv4, one way, without background traffic.
const PLAIN: &TrafficOptions = &TrafficOptions {
    ip: IpVersion::V4,
    both_ways: false,
    background: Vec::new(),
    spinner: false,
};

/// One sender and one receiver.
#[derive(Clone, Copy)]
struct TrafficStream<'a> {
    request: &'a WorkloadRequest,
    from: Side,
    path: usize,
    is_counted: bool,
}

impl<'a> Traffic<'a> {
    /// Returns the streams: the measured ones first, one on each path, then background traffic.
    fn streams(self, paths: usize) -> Vec<TrafficStream<'a>> {
        let of_path = |path| {
            let mut own = vec![(self.request, Side::Sender, true)];
            if self.options.both_ways {
                own.push((self.request, Side::Receiver, true));
            }
            let background = self.options.background.iter();
            own.extend(background.map(|one| (&one.traffic, one.from, false)));
            own.into_iter()
                .map(move |(request, from, is_counted)| TrafficStream {
                    request,
                    from,
                    path,
                    is_counted,
                })
        };
        (0..paths).flat_map(of_path).collect()
    }
}

/// Traffic that runs.
pub struct Running {
    streams: Vec<RunningStream>,
    duration: Duration,
}

struct RunningStream {
    from: Side,
    path: usize,
    is_counted: bool,
    sender: u32,
    receiver: u32,
    sent: Option<EndBooks>,
}

impl Running {
    /// Starts traffic for `duration`, on every path of the link. Background traffic begins first.
    pub fn start<'a>(
        lab: &mut Lab,
        traffic: impl Into<Traffic<'a>>,
        duration: Duration,
    ) -> Result<Self, LabError> {
        let traffic = traffic.into();
        let streams = traffic.streams(lab.paths());
        let port = PORT + (lab.hung_ends % HUNG_RUNS) * PORTS_A_RUN;
        let mut running = Vec::new();
        for (stream, port) in streams.iter().zip(port..) {
            let to = stream.from.other();
            let receiver =
                SocketAddr::new(address_of(lab, to, stream.path, traffic.options.ip)?, port);
            let at = (to, stream.path);
            let end = prepare(lab, stream.request, Side::Receiver, receiver, duration, at)?;
            lab.host(to, stream.path).tell(HostRequest::Start(end))?;
            running.push((receiver, end));
        }
        let mut started = Vec::new();
        for (stream, (address, receiver)) in streams.iter().zip(running).rev() {
            let (request, from) = (stream.request, (stream.from, stream.path));
            let sender = prepare(lab, request, Side::Sender, address, duration, from)?;
            started.push(RunningStream {
                from: stream.from,
                path: stream.path,
                is_counted: stream.is_counted,
                sender,
                receiver,
                sent: None,
            });
        }
        // All are ready before the first one starts, so they start together.
        for stream in &started {
            let end = stream.sender;
            lab.host(stream.from, stream.path)
                .tell(HostRequest::Start(end))?;
        }
        started.reverse();
        Ok(Running {
            streams: started,
            duration,
        })
    }

    /// Runs traffic to its end. Stragglers have `quiet` time to arrive.
    ///
    /// # Errors
    /// As [`Running::wait_for_sender`]; when an end fails or hangs.
    pub fn to_end<'a>(
        lab: &mut Lab,
        traffic: impl Into<Traffic<'a>>,
        duration: Duration,
        quiet: Duration,
        cancel: &AtomicBool,
    ) -> Result<Books, LabError> {
        let mut running = Running::start(lab, traffic, duration)?;
        running.wait_for_sender(lab, cancel)?;
        running.drain(lab, quiet)
    }

    /// Starts only a sender, towards an address that no host has.
    pub fn start_to_nobody(
        lab: &mut Lab,
        workload: &WorkloadRequest,
        peer: SocketAddr,
        duration: Duration,
    ) -> Result<Self, LabError> {
        let side = Side::Sender;
        let sender = prepare(lab, workload, side, peer, duration, (side, 0))?;
        lab.sender.tell(HostRequest::Start(sender))?;
        let alone = RunningStream {
            from: Side::Sender,
            path: 0,
            is_counted: true,
            sender,
            receiver: 0,
            sent: None,
        };
        Ok(Running {
            streams: vec![alone],
            duration,
        })
    }

    /// Waits until every sender has ended.
    ///
    /// # Errors
    /// [`LabError::Cancelled`] when `cancel` became true; the sender's own error.
    pub fn wait_for_sender(&mut self, lab: &mut Lab, cancel: &AtomicBool) -> Result<(), LabError> {
        let longest = self.duration + SENDER_MAX;
        let deadline = lab.give_up_at(longest);
        for stream in &mut self.streams {
            while stream.sent.is_none() {
                if Instant::now() > deadline {
                    return Err(lab.hung(format!(
                        "the sender hung: it was to send for {:.1} s and had not ended after {:.1} s",
                        self.duration.as_secs_f64(),
                        longest.as_secs_f64()
                    )));
                }
                LabError::unless(cancel)?;
                let host = lab.host(stream.from, stream.path);
                stream.sent = host.ended(stream.sender, LOOK_EVERY)?;
            }
        }
        Ok(())
    }

    /// Waits for the queues to empty, gives stragglers `quiet` time to arrive, ends the receivers, and adds up all
    /// figures.
    pub fn drain(self, lab: &mut Lab, quiet: Duration) -> Result<Books, LabError> {
        wait_for_queues(lab)?;
        thread::sleep(quiet);
        for stream in &self.streams {
            let end = stream.receiver;
            lab.host(stream.from.other(), stream.path)
                .tell(HostRequest::SenderDone(end))?;
        }
        let deadline = lab.give_up_at(DRAIN_MAX);
        let mut all: Option<Books> = None;
        for stream in self.streams {
            let sent = stream.sent.ok_or_else(|| {
                LabError::Unexpected(String::from("the sender has not been waited for"))
            })?;
            let patience = deadline.saturating_duration_since(Instant::now());
            let host = lab.host(stream.from.other(), stream.path);
            let Some(received) = host.ended(stream.receiver, patience)? else {
                return Err(lab.hung(format!(
                    "the receiver hung: it had not ended {:.1} s after everything was sent",
                    DRAIN_MAX.as_secs_f64()
                )));
            };
            let books = Books::of(sent, received);
            let books = match stream.from {
                Side::Sender => books,
                Side::Receiver => books.reversed(),
            };
            all = Some(match all {
                Some(all) => all.and(books, stream.is_counted),
                None => books,
            });
        }
        all.ok_or_else(|| LabError::Unexpected(String::from("the link has no path")))
    }
}

/// Waits until the hosts' queueing disciplines are empty: packets that wait there for a shaped line are not lost.
fn wait_for_queues(lab: &mut Lab) -> Result<(), LabError> {
    let deadline = lab.give_up_at(QUEUES_MAX);
    for host in lab.way() {
        while host.ask::<u64>(HostRequest::Waiting)? > 0 && Instant::now() < deadline {
            thread::sleep(LOOK_EVERY);
        }
    }
    Ok(())
}

fn prepare(
    lab: &mut Lab,
    workload: &WorkloadRequest,
    side: Side,
    receiver: SocketAddr,
    duration: Duration,
    (at, path): (Side, usize),
) -> Result<u32, LabError> {
    let (end, link_delay) = (lab.next_end(), lab.link.delay);
    let cpu = lab.cpu(at, path);
    let terms = EndTerms {
        side,
        receiver,
        duration,
        link_delay,
        receiver_ahead_ns: lab.receiver_ahead_ns,
    };
    let host = lab.host(at, path);
    host.tell(HostRequest::Prepare {
        end,
        workload: workload.clone(),
        terms,
        at,
        cpu,
    })
    .map_err(|error| error.into_traffic(format!("starting the {side}")))?;
    Ok(end)
}

/// The address of a host on one of the link's paths.
fn address_of(lab: &Lab, side: Side, path: usize, ip: IpVersion) -> Result<IpAddr, LabError> {
    let is_v4 = ip == IpVersion::V4;
    let address = lab.addresses(side, path).find(|it| it.is_ipv4() == is_v4);
    address.ok_or_else(|| {
        let family = match ip {
            IpVersion::V4 => "IPv4",
            IpVersion::V6 => "IPv6; the kernel may have been started without it",
        };
        LabError::Traffic(format!("the link gives the {side} no address of {family}"))
    })
}
