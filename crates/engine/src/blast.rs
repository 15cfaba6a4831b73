//! Sending: frames of UDP, or those of a capture, by one or more interfaces at a time.
//!
//! Every frame that was written is in the account of its link. Nothing is left when the process ends, in whatever way: no
//! program is attached, and no setting of an interface is changed. In order: `target` finds the receiver, `frames`
//! makes the frames and their schedule, `path` opens the way out, `link` sends.

mod frames;
mod link;
mod path;
mod target;

use std::ops::{Add, Sub};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use netlink_socket2::NetlinkSocket;
use nicpoll_model::engine::{
    BLAST_SCHEMA, BlastCounts, BlastEnd, BlastFrames, BlastInterval, BlastLink, BlastStart,
    LinkEvent,
};
use nicpoll_model::{Origin, Pace, Rate};
use nicpoll_wire::frame::{FRAME_BYTES_MIN, MARK_BYTES, Mac, UdpPath};

pub use frames::{FLOW_PORTS, FrameLengths};
pub use path::BlastPath;
pub use target::FrameReceiver;

use crate::application::{EngineApplication, Helpers};
use crate::device::interface::EthernetInterface;
use crate::device::presence::{GonePolicy, Presence};
use crate::error::EngineError;
use crate::names::{Choice, Named};
use frames::{FCS_BYTES, FrameSchedule, FrameStream, Frames, Replay};
use link::{Again, Bounds, ReadyLink, WayOut};
use target::UpCheck;

/// What is sent, and how.
#[derive(Clone, Debug)]
pub struct BlastSettings {
    /// The interfaces that send, at the same time.
    pub links: Vec<LinkSettings>,
    /// How frames leave.
    pub path: Choice<BlastPath>,
    /// Frames a second of each link; null for as fast as they go, or as they were recorded.
    pub rate: Option<Rate>,
    /// Frames that are due together, 1 at least.
    pub burst: u32,
    /// Frames that each link sends; null for no such limit.
    pub count: Option<u64>,
    /// How long they send; null until they are ended.
    pub duration: Option<Duration>,
    /// What to do when an interface is gone.
    pub gone: GonePolicy,
}

/// An interface that sends.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// The interface, in the network namespace of the calling thread.
    pub interface: String,
    /// The CPU of the thread that sends.
    pub cpu: u32,
    /// What it sends.
    pub traffic: LinkTraffic,
}

/// What a link sends.
#[derive(Clone, Debug)]
pub enum LinkTraffic {
    /// Datagrams.
    Datagrams {
        /// Who gets them.
        receiver: FrameReceiver,
        /// How long the frames are.
        lengths: FrameLengths,
        /// Flows that take turns, as many as [`FLOW_PORTS`] has ports at most.
        flows: u16,
    },
    /// The frames of a capture, once unless time or number is bounded otherwise.
    Replay {
        /// The file.
        file: PathBuf,
        /// Who gets them; null for those to whom they went.
        mac: Option<Mac>,
    },
}

/// A blast that runs.
pub struct Blast {
    start: BlastStart,
    links: Vec<ReadyLink>,
    began: Instant,
    last: (f64, BlastCounts),
}

impl Blast {
    /// Starts to send.
    ///
    /// # Errors
    /// When an interface cannot send, a receiver cannot be found, or a setting does not fit them. Nothing is sent then.
    pub fn start(settings: &BlastSettings, origin: Origin) -> Result<Self, EngineError> {
        let mut socket = NetlinkSocket::new();
        let (mut links, mut facts, mut first_flow) = (Vec::new(), Vec::new(), 0);
        for of_link in &settings.links {
            let opener = Opener {
                settings: settings.clone(),
                link: of_link.clone(),
                first_flow,
            };
            let (way_out, schedule, of_link) = opener.open(&mut socket, &of_link.interface, 0)?;
            if let BlastFrames::Datagrams { flows, .. } = of_link.frames {
                first_flow = flows.wrapping_add(first_flow);
            }
            let bounds = Bounds {
                frames: settings.count,
                time: settings.duration,
            };
            let mut presence = Presence::of(&of_link.interface, settings.gone)?;
            if of_link.path == BlastPath::Live.name() {
                presence.watch_exit();
            }
            let again = Again {
                presence,
                open: Box::new(move |interface, sent| {
                    let opened = opener.open(&mut NetlinkSocket::new(), interface, sent);
                    opened.map(|(way_out, ..)| way_out)
                }),
            };
            links.push(ReadyLink::prepare(
                way_out, schedule, bounds, again, &of_link,
            )?);
            facts.push(of_link);
        }
        for link in &links {
            link.go();
        }
        Ok(Blast {
            start: BlastStart {
                schema: String::from(BLAST_SCHEMA),
                origin,
                links: facts,
                rate_frames_per_second: settings.rate.map(Rate::per_second),
                burst_frames: settings.burst,
                count_frames: settings.count,
                duration_seconds: settings.duration.map(|time| time.as_secs_f64()),
            },
            links,
            began: Instant::now(),
            last: (0.0, BlastCounts::default()),
        })
    }
}

impl EngineApplication for Blast {
    type Start = BlastStart;
    type Interval = BlastInterval;
    type End = BlastEnd;

    fn facts(&self) -> &BlastStart {
        &self.start
    }

    /// Whether all links have sent what they are to send.
    fn is_over(&self) -> bool {
        self.links.iter().all(|link| link.progress().is_over())
    }

    fn attend(&mut self, _helpers: &dyn Helpers) -> Result<Vec<LinkEvent>, EngineError> {
        let links = self.links.iter();
        Ok(links.flat_map(|link| link.progress().events()).collect())
    }

    fn interval(&mut self) -> Result<BlastInterval, EngineError> {
        let looks = self.links.iter().map(|link| link.progress().look());
        let counts = looks.fold(BlastCounts::default(), |sum, more| {
            each(&sum, &more, u64::add)
        });
        let now = (self.began.elapsed().as_secs_f64(), counts);
        let (start_seconds, before) = std::mem::replace(&mut self.last, now);
        Ok(BlastInterval {
            start_seconds,
            end_seconds: now.0,
            counts: each(&counts, &before, u64::sub),
        })
    }

    fn end(self, signal: Option<i32>) -> Result<BlastEnd, EngineError> {
        let (mut totals, mut ends) = (BlastCounts::default(), Vec::new());
        for (link, facts) in self.links.into_iter().zip(&self.start.links) {
            let end = link.end().ok_or_else(|| {
                EngineError::Failed(format!(
                    "sending by '{}': the thread has ended by itself",
                    facts.interface
                ))
            })?;
            totals = each(&totals, &end.totals, u64::add);
            ends.push(end);
        }
        let seconds = ends.iter().map(|end| end.duration_seconds);
        Ok(BlastEnd {
            duration_seconds: seconds.fold(0.0, f64::max),
            totals,
            links: ends,
            ended_by_signal: signal,
        })
    }
}

/// What opens the way out of an interface: at first, and when it is back.
struct Opener {
    settings: BlastSettings,
    link: LinkSettings,
    first_flow: u16,
}

impl Opener {
    /// Opens it at the interface of that name, for what comes after so many frames.
    fn open(
        &self,
        socket: &mut NetlinkSocket,
        interface: &str,
        sent: u64,
    ) -> Result<(WayOut, FrameSchedule, BlastLink), EngineError> {
        let (settings, traffic) = (&self.settings, &self.link.traffic);
        let interface = target::sender(socket, interface)?;
        let (mut frames, schedule, shown) =
            make(socket, &interface, traffic, settings, self.first_flow)?;
        frames.skip(sent);
        let per_second = settings.rate.map(Rate::per_second);
        let opened = path::open(settings.path, &interface, &frames, per_second)?;
        let up = UpCheck::new(interface.ifindex).map_err(|source| {
            EngineError::io(&format!("watching '{}'", interface.name), &source)
        })?;
        let facts = BlastLink {
            interface: interface.name,
            path: String::from(opened.path.name()),
            refused_paths: opened.refused,
            cpu: self.link.cpu,
            is_singly: true,
            is_cut_by_kernel: opened.is_cut_by_kernel,
            not_joined: opened.not_joined,
            frames: shown,
        };
        let outlet = opened.outlet;
        Ok((WayOut { outlet, up }, schedule, facts))
    }
}

/// What a link is to send, when, and how it is shown.
fn make(
    socket: &mut NetlinkSocket,
    interface: &EthernetInterface,
    traffic: &LinkTraffic,
    settings: &BlastSettings,
    first_flow: u16,
) -> Result<(Frames, FrameSchedule, BlastFrames), EngineError> {
    let pace = |rate| FrameSchedule::Paced(Pace::of_datagrams(rate, 0).in_bursts(settings.burst));
    match traffic {
        LinkTraffic::Datagrams {
            receiver,
            lengths,
            flows,
        } => {
            let path = interface.path_to(socket, receiver)?;
            let frame_bytes = lengths_on(&path, interface, lengths)?;
            let stream = FrameStream::new(&path, &frame_bytes, *flows, first_flow);
            // A length that does not fit was refused above.
            let stream = stream.map_err(|error| EngineError::Failed(error.to_string()))?;
            let schedule = settings.rate.map_or(FrameSchedule::Unpaced, pace);
            let shown = BlastFrames::Datagrams {
                source: path.source.to_string(),
                destination: path.destination.to_string(),
                destination_mac: path.destination_mac.to_string(),
                flows: *flows,
                first_flow,
                frame_bytes,
            };
            Ok((Frames::Stream(stream), schedule, shown))
        }
        LinkTraffic::Replay { file, mac } => {
            let is_endless = settings.count.is_some() || settings.duration.is_some();
            let replay = Replay::read(file, is_endless, *mac)?;
            interface.check_lengths(&[replay.frame_bytes_max()])?;
            let schedule = settings.rate.map_or_else(|| replay.schedule(), pace);
            let shown = BlastFrames::Replay {
                file: file.display().to_string(),
                cut_off_frames: replay.cut_off_frames,
            };
            Ok((Frames::Replay(replay), schedule, shown))
        }
    }
}

/// The lengths of frames on a path, with FCS.
fn lengths_on(
    path: &UdpPath,
    interface: &EthernetInterface,
    lengths: &FrameLengths,
) -> Result<Vec<u32>, EngineError> {
    let shortest = (path.header_bytes() + MARK_BYTES).max(FRAME_BYTES_MIN) as u32 + FCS_BYTES;
    let frame_bytes = lengths.frame_bytes(shortest);
    interface.check_lengths(&frame_bytes)?;
    match frame_bytes.iter().min() {
        Some(short) if *short < shortest => Err(EngineError::Failed(format!(
            "frames of {short} bytes are too short: headers, number and time to {} take {shortest} with FCS",
            path.destination.ip()
        ))),
        _ => Ok(frame_bytes),
    }
}

/// Each count of one with that of the other.
fn each(one: &BlastCounts, other: &BlastCounts, with: fn(u64, u64) -> u64) -> BlastCounts {
    BlastCounts {
        built_frames: with(one.built_frames, other.built_frames),
        built_bytes: with(one.built_bytes, other.built_bytes),
        cpu_ns: with(one.cpu_ns, other.cpu_ns),
    }
}
