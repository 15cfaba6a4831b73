//! The ways for frames to leave, fastest first, and which one is taken.
//!
//! `live`: the kernel makes the frames itself, by an XDP program that BPF_PROG_TEST_RUN runs over and over. `af-xdp` and
//! `af-packet` write them to a socket; AF_PACKET may hand over many frames of one flow as one long datagram, which the kernel
//! segments. That is done only while the interface has the feature turned off: a veth that has it passes long datagrams on.

use std::io;
use std::time::{Duration, Instant};

use aya::maps::{Array, MapData};
use netlink_socket2::NetlinkSocket;
use nicpoll_model::engine::PathRefused;
use nicpoll_sys::bpf_maps::{Blasted, Template};
use nicpoll_sys::ethtool::{self, Feature};
use nicpoll_sys::packet::{Joining, PacketSender};
use nicpoll_wire::frame::ETHERNET_BYTES;
use rustix::io::Errno;
use thiserror::Error;

use crate::blast::frames::{FLOW_PORTS, Frames, Stream};
use crate::blast::target::UpCheck;
use crate::device::interface::{Interface, takes_redirected};
use crate::device::packet::refusal;
use crate::device::port::Transmit;
use crate::device::xdp::{Program, open_sender};
use crate::error::EngineError;
use crate::names::{Choice, Named};

/// A way for frames to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastPath {
    /// The kernel makes the frames itself (BPF_PROG_TEST_RUN with live frames).
    Live,
    /// An AF_XDP socket.
    AfXdp,
    /// An AF_PACKET socket.
    AfPacket,
}

/// The fastest first.
const PATHS: [(BlastPath, &str); 3] = [
    (BlastPath::Live, "live"),
    (BlastPath::AfXdp, "af-xdp"),
    (BlastPath::AfPacket, "af-packet"),
];

impl Named for BlastPath {
    fn all() -> impl Iterator<Item = (Self, &'static str)> {
        PATHS.into_iter()
    }
}

/// Frames a second up to which they are sent one by one: the kernel's own frames come in batches, which take a system
/// call of some 50 us each.
const ONE_BY_ONE_MAX: f64 = 250_000.0;

impl BlastPath {
    pub(super) fn no(self, interface: &Interface, why: &str) -> EngineError {
        EngineError::NoPath {
            interface: interface.name.clone(),
            path: self.name(),
            why: why.to_owned(),
        }
    }
}

/// How frames can be handed over joined; `None` where one is not like the next.
fn joining(frames: &Frames) -> Option<Joining> {
    match frames {
        Frames::Stream(stream) => stream.joining(),
        Frames::Replay(_) => None,
    }
}

/// A way that was opened.
pub(super) struct Opened {
    pub(super) path: BlastPath,
    pub(super) way: Way,
    /// The faster ways that cannot be had, and why.
    pub(super) refused: Vec<PathRefused>,
}

/// What frames leave by, and how they are handed over.
pub(super) struct Way {
    pub(super) outlet: Box<dyn Outlet>,
    /// Whether the kernel is given many frames as one, and cuts them up.
    pub(super) is_cut_by_kernel: bool,
    /// Why not, where it could be.
    pub(super) not_joined: Option<NotJoined>,
}

impl Way {
    fn singly(outlet: Box<dyn Outlet>) -> Self {
        Way {
            outlet,
            is_cut_by_kernel: false,
            not_joined: None,
        }
    }
}

/// Opens the way that was asked for, or the best one for this rate.
///
/// # Errors
/// When none can be had.
pub(super) fn open(
    wanted: Choice<BlastPath>,
    interface: &Interface,
    frames: &Frames,
    frames_per_second: Option<f64>,
) -> Result<Opened, EngineError> {
    let mut refused = Vec::new();
    let mut failed = None;
    for (path, name) in BlastPath::all() {
        match wanted {
            Choice::Only(only) if only != path => continue,
            Choice::Auto if !suits(path, frames_per_second) => {
                refused.push(PathRefused {
                    path: String::from(name),
                    why: String::from("at this rate frames are better sent one by one"),
                });
                continue;
            }
            Choice::Only(_) | Choice::Auto => {}
        }
        match way(path, interface, frames) {
            Ok(way) => return Ok(Opened { path, way, refused }),
            Err(error) => {
                refused.push(PathRefused {
                    path: String::from(name),
                    why: error.to_string(),
                });
                failed = Some(error);
            }
        }
    }
    Err(failed.unwrap_or_else(|| BlastPath::AfXdp.no(interface, "it is not there")))
}

fn suits(path: BlastPath, frames_per_second: Option<f64>) -> bool {
    match path {
        BlastPath::Live => frames_per_second.is_none_or(|rate| rate > ONE_BY_ONE_MAX),
        BlastPath::AfXdp | BlastPath::AfPacket => true,
    }
}

fn way(path: BlastPath, interface: &Interface, frames: &Frames) -> Result<Way, EngineError> {
    match (path, frames) {
        (BlastPath::Live, Frames::Stream(stream)) => {
            check_live(interface, stream)?;
            Ok(Way::singly(Box::new(Live::open(interface, stream)?)))
        }
        (BlastPath::Live, Frames::Replay(_)) => {
            let why = "it makes its own frames and cannot replay those of a capture";
            Err(path.no(interface, why))
        }
        (BlastPath::AfXdp, frames) => {
            let device = open_sender(&interface.name, 0)?;
            Ok(Way::singly(by_device(device, frames)))
        }
        (BlastPath::AfPacket, frames) => {
            let frame_bytes_max = interface.mtu_bytes + ETHERNET_BYTES as u32;
            let joined = joining(frames)
                .map(|joining| JoinedSender::open(interface, frame_bytes_max, &joining));
            if let Some(Ok(device)) = joined {
                return Ok(Way {
                    is_cut_by_kernel: true,
                    ..Way::singly(by_device(device, frames))
                });
            }
            let device = PacketSender::new(interface.ifindex, frame_bytes_max);
            let device = device.map_err(|source| refusal(&interface.name, source))?;
            Ok(Way {
                not_joined: joined.and_then(Result::err),
                ..Way::singly(by_device(device, frames))
            })
        }
    }
}

fn by_device(device: impl Transmit + Send + 'static, frames: &Frames) -> Box<dyn Outlet> {
    match frames.clone() {
        Frames::Stream(mut stream) => {
            Box::new(DeviceOutlet::new(device, move |into: &mut [u8]| {
                stream.write(into)
            }))
        }
        Frames::Replay(mut replay) => {
            Box::new(DeviceOutlet::new(device, move |into: &mut [u8]| {
                replay.write(into)
            }))
        }
    }
}

/// Frames that the interface does not take would vanish, and nobody would say so.
fn check_live(interface: &Interface, stream: &Stream) -> Result<(), EngineError> {
    if takes_redirected(&mut NetlinkSocket::new(), interface.ifindex) == Some(false) {
        let why = "its driver takes no frames from XDP programs, and all would vanish. A veth does when its other end \
                   has a NAPI, for GRO or for an XDP program: ethtool -K PEER gro on";
        return Err(BlastPath::Live.no(interface, why));
    }
    if stream.longest().len() > FRAME_BYTES_MAX {
        let why = format!(
            "frames of {} bytes at most fit the kernel's memory",
            FRAME_BYTES_MAX
        );
        return Err(BlastPath::Live.no(interface, &why));
    }
    Ok(())
}

/// Frames that a device is given at a time: enough that the system call for them costs each little.
const FRAMES_AT_A_TIME: u32 = 256;

/// Frames that were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Built {
    pub(super) frames: u64,
    /// Their bytes, without FCS.
    pub(super) bytes: u64,
}

/// What became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Of those written, how many the kernel has taken.
    pub(super) handed: u64,
    /// Of those taken, how many the interface refused; `None` where the kernel does not say.
    pub(super) refused: Option<u64>,
    /// Of those taken, how many the interface has sent; `None` where the kernel does not say.
    pub(super) completed: Option<u64>,
}

/// A way for frames to leave.
pub(super) trait Outlet: Send {
    /// Frames that are best sent together.
    fn at_a_time(&self) -> u32;

    /// Sends up to `most` frames, and says how many; 0 when there is no room.
    ///
    /// # Errors
    /// `ENETDOWN` when the interface is down, `ENXIO` when it is gone; `ENODATA` when the frames are at their end.
    fn send(&mut self, most: u32) -> io::Result<u32>;

    /// What was written so far.
    fn built(&self) -> Built;

    /// What became of it. It may take longer than sending does.
    fn counts(&mut self) -> Counts;
}

/// A device, and the frames that it sends.
pub(super) struct DeviceOutlet<T, S> {
    device: T,
    /// Writes the next frame into memory that has room for it.
    source: S,
    built: Built,
}

impl<T, S> DeviceOutlet<T, S>
where
    T: Transmit + Send,
    S: FnMut(&mut [u8]) -> Option<usize> + Send,
{
    pub(super) fn new(device: T, source: S) -> Self {
        DeviceOutlet {
            device,
            source,
            built: Built::default(),
        }
    }
}

impl<T, S> Outlet for DeviceOutlet<T, S>
where
    T: Transmit + Send,
    S: FnMut(&mut [u8]) -> Option<usize> + Send,
{
    fn at_a_time(&self) -> u32 {
        FRAMES_AT_A_TIME
    }

    fn send(&mut self, most: u32) -> io::Result<u32> {
        let (mut written, mut bytes, mut is_at_end) = (0, 0, false);
        let source = &mut self.source;
        let outcome = self.device.transmit(most, &mut |memory| {
            let length = source(memory);
            is_at_end = length.is_none();
            written += u32::from(length.is_some());
            bytes += length.unwrap_or(0) as u64;
            length
        });
        self.built.frames += u64::from(written);
        self.built.bytes += bytes;
        outcome?;
        if is_at_end && written == 0 {
            return Err(rustix::io::Errno::NODATA.into());
        }
        Ok(written)
    }

    fn built(&self) -> Built {
        self.built
    }

    fn counts(&mut self) -> Counts {
        // The kernel says what it is done with when it is asked for room.
        let _ = self.device.room();
        let (handed, refused) = (self.device.sent(), self.device.refused());
        Counts {
            handed,
            refused,
            completed: refused.map(|refused| handed.saturating_sub(refused)),
        }
    }
}

const PROGRAM: &str = "blast_frame";
/// Frames that the kernel makes before it hands them on: its default, and NAPI's budget.
const BATCH: u32 = 64;
/// Frames of one system call. The kernel allocates memory for each call and waits until all of it is returned, some 30
/// ms in which nothing is sent; and a call is not ended before its time. So a call takes about half a second.
const FRAMES_A_CALL: std::ops::RangeInclusive<u32> = 8192..=1 << 21;
const CALL_TIME: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(300)..=Duration::from_millis(700);
/// By how much a call has more frames than the one before, at most.
const GROWTH_MAX: u128 = 8;
/// A frame lies in one page, behind room for headers and before what the kernel notes of it.
pub(super) const FRAME_BYTES_MAX: usize = 3_000;

/// Endings of what drivers call their counters of frames that XDP programs sent out by them.
const SENT: &str = "xdp_xmit";
const REFUSED: &str = "xdp_xmit_errors";

/// The program.
pub(super) struct Live {
    interface: String,
    program: Program,
    blasted: Array<MapData, Blasted>,
    longest: Vec<u8>,
    now: Blasted,
    frames_a_call: u32,
    driver: Option<(u64, u64)>,
    up: UpCheck,
}

impl Live {
    /// Loads the program with the frames that it is to send.
    ///
    /// # Errors
    /// Without the privileges for BPF, and before Linux 5.18.
    pub(super) fn open(interface: &Interface, stream: &Stream) -> Result<Self, EngineError> {
        let templates: Vec<Template> = stream.templates().collect();
        let constants = [
            ("INTERFACE", u64::from(interface.ifindex)),
            ("HEADER_BYTES", stream.header_bytes() as u64),
            ("TEMPLATES_USED", templates.len() as u64),
            ("LONGEST_BYTES", stream.longest().len() as u64),
            ("FLOWS", u64::from(stream.flows())),
            ("FIRST_FLOW", u64::from(stream.first_flow())),
            ("FIRST_PORT", u64::from(*FLOW_PORTS.start())),
        ];
        let up = UpCheck::new(interface.ifindex).map_err(|source| EngineError::Thread {
            doing: format!("watching '{}'", interface.name),
            source,
        })?;
        let object = aya::include_bytes_aligned!("../../bpf/xdp_blast.bpf.o");
        let mut program = Program::load(&interface.name, object, PROGRAM, &constants)?;
        let mut places: Array<_, Template> = program.map("TEMPLATES")?;
        for (place, template) in templates.into_iter().enumerate() {
            let set = places.set(place as u32, template, 0);
            set.map_err(|error| program.refused(&error))?;
        }
        if !program.knows_live_frames(stream.longest()) {
            let why = "the kernel knows no live frames, which take Linux 5.18";
            return Err(BlastPath::Live.no(interface, why));
        }
        Ok(Live {
            interface: interface.name.clone(),
            blasted: program.map("BLASTED")?,
            program,
            longest: stream.longest().to_vec(),
            now: Blasted::default(),
            frames_a_call: *FRAMES_A_CALL.start(),
            driver: driver_counts(&interface.name),
            up,
        })
    }
}

impl Live {
    /// Makes calls longer or shorter, after one of so many frames that took so long.
    fn adapt(&mut self, frames: u32, took: Duration) {
        if took > *CALL_TIME.end() {
            self.frames_a_call = (self.frames_a_call / 2).max(*FRAMES_A_CALL.start());
        } else if took < *CALL_TIME.start() && frames == self.frames_a_call {
            let too_short = CALL_TIME.start().as_micros() / took.as_micros().max(1);
            let growth = too_short.clamp(2, GROWTH_MAX) as u32;
            self.frames_a_call = (self.frames_a_call * growth).min(*FRAMES_A_CALL.end());
        }
    }
}

impl Outlet for Live {
    fn at_a_time(&self) -> u32 {
        self.frames_a_call
    }

    fn send(&mut self, most: u32) -> io::Result<u32> {
        self.up.check()?;
        let began = Instant::now();
        match self.program.run_live(&self.longest, most, BATCH) {
            // A signal came: what was sent until then is counted.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INTR) => {}
            outcome => outcome?,
        }
        self.adapt(most, began.elapsed());
        let now = self.blasted.get(&0, 0).map_err(io::Error::other)?;
        let sent = now.frames - self.now.frames;
        self.now = now;
        // The program leaves a frame out only when the kernel gives it too little memory.
        match sent {
            0 => Err(Errno::NOMEM.into()),
            sent => Ok(sent as u32),
        }
    }

    fn built(&self) -> Built {
        Built {
            frames: self.now.frames,
            bytes: self.now.bytes,
        }
    }

    fn counts(&mut self) -> Counts {
        let driver = self
            .driver
            .zip(driver_counts(&self.interface))
            .map(|(before, now)| {
                (
                    now.0.saturating_sub(before.0),
                    now.1.saturating_sub(before.1),
                )
            });
        Counts {
            handed: self.now.frames,
            refused: driver.map(|(_, refused)| refused),
            completed: driver.map(|(sent, _)| sent),
        }
    }
}

/// What the driver sent and refused of the frames that XDP programs sent out by it; `None` where it does not count
/// them.
fn driver_counts(interface: &str) -> Option<(u64, u64)> {
    let statistics = ethtool::statistics(interface).ok()?;
    let sum = |ending: &str| {
        let mut found = statistics.iter().filter(|(name, _)| name.ends_with(ending));
        let (_, first) = found.next()?;
        Some(found.fold(*first, |sum, (_, value)| sum + value))
    };
    Some((sum(SENT)?, sum(REFUSED)?))
}

/// The feature of an interface that takes long datagrams as they are.
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";
/// How often it is looked whether it is still off: a veth has it again when the XDP program at its other end leaves.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The first Linux that cuts up long datagrams of AF_PACKET, by its version and patch level.
const CUTS_FROM: (u32, u32) = (6, 2);

/// Why frames that could be joined are sent one by one.
#[derive(Debug, Error)]
pub(super) enum NotJoined {
    /// Nobody would cut them up.
    #[error(
        "'{interface}' takes long datagrams as they are, and so would the receiver; 'ethtool -K {interface} {feature} \
         off' turns that off",
        feature = UDP_SEGMENTATION
    )]
    TakesLong { interface: String },
    /// The kernel cannot.
    #[error("the kernel cuts no long datagrams up, which takes Linux 6.2; this is {release}")]
    Kernel { release: String },
    /// It cannot be asked, or refuses.
    #[error("'{interface}' cannot be given long datagrams: {source}")]
    Refused {
        interface: String,
        source: io::Error,
    },
}

/// The sender, and what says whether it may go on joining.
pub(super) struct JoinedSender {
    sender: PacketSender,
    takes_long: Feature,
    looked: Instant,
}

impl JoinedSender {
    /// A sender through an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// Where frames are better sent one by one.
    pub(super) fn open(
        interface: &Interface,
        frame_bytes_max: u32,
        joining: &Joining,
    ) -> Result<Self, NotJoined> {
        // It would take the option, and refuse the first datagram.
        let uname = rustix::system::uname();
        let release = uname.release().to_string_lossy();
        if !cuts_up(&release) {
            return Err(NotJoined::Kernel {
                release: release.into_owned(),
            });
        }
        let refused = |source| NotJoined::Refused {
            interface: interface.name.clone(),
            source,
        };
        let takes_long = Feature::named(&interface.name, UDP_SEGMENTATION).map_err(refused)?;
        if takes_long.is_on().map_err(refused)? {
            return Err(NotJoined::TakesLong {
                interface: interface.name.clone(),
            });
        }
        let sender = PacketSender::joining(interface.ifindex, frame_bytes_max, joining);
        Ok(JoinedSender {
            sender: sender.map_err(refused)?,
            takes_long,
            looked: Instant::now(),
        })
    }
}

/// Whether a kernel of that release cuts long datagrams up. Of one with no such number the first frames tell.
fn cuts_up(release: &str) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next()?.parse().ok();
    let release: Option<(u32, u32)> = number().zip(number());
    release.is_none_or(|release| release >= CUTS_FROM)
}

impl Transmit for JoinedSender {
    fn room(&mut self) -> u32 {
        self.sender.room()
    }

    fn transmit(
        &mut self,
        most: u32,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        if self.sender.joins() && self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            if self.takes_long.is_on().unwrap_or(true) {
                self.sender.send_singly()?;
            }
        }
        self.sender.send(most, fill)
    }

    fn sent(&self) -> u64 {
        self.sender.sent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_low_rate_are_sent_one_by_one() {
        assert!(suits(BlastPath::Live, None));
        assert!(suits(BlastPath::Live, Some(1e6)));
        assert!(!suits(BlastPath::Live, Some(1e4)));
        assert!(suits(BlastPath::AfXdp, None));
    }

    /// Takes so many frames, and is done with all but one.
    struct Narrow(u32, u64);

    impl Transmit for Narrow {
        fn room(&mut self) -> u32 {
            self.0
        }

        fn transmit(
            &mut self,
            most: u32,
            fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
        ) -> io::Result<u32> {
            let mut written = 0;
            while written < most.min(self.0) && fill(&mut [0; 64]).is_some() {
                written += 1;
            }
            self.1 += u64::from(written);
            Ok(written)
        }

        fn sent(&self) -> u64 {
            self.1.saturating_sub(1)
        }

        fn refused(&self) -> Option<u64> {
            Some(1)
        }
    }

    #[test]
    fn what_a_device_takes_is_counted_until_there_is_no_more() {
        let mut outlet = DeviceOutlet::new(Narrow(2, 0), {
            let mut left = 3u8;
            move |_: &mut [u8]| {
                left = left.checked_sub(1)?;
                Some(60)
            }
        });
        assert_eq!(outlet.send(5).unwrap(), 2);
        assert_eq!(outlet.send(5).unwrap(), 1);
        let ended = outlet.send(5).unwrap_err();
        assert_eq!(
            ended.raw_os_error(),
            Some(rustix::io::Errno::NODATA.raw_os_error())
        );
        let (frames, bytes) = (3, 180);
        assert_eq!(outlet.built(), Built { frames, bytes });
        let counts = outlet.counts();
        assert_eq!(counts.handed, 2);
        assert_eq!((counts.refused, counts.completed), (Some(1), Some(1)));
    }

    #[test]
    fn a_kernel_cuts_up_from_6_2_on_and_one_before_is_named() {
        for (release, cuts) in [
            ("5.15.0-91-generic", false),
            ("6.1.0-18-amd64", false),
            ("6.2.0", true),
            ("6.18.44", true),
            ("10.0-rc1", true),
            ("linux", true),
        ] {
            assert_eq!(cuts_up(release), cuts, "{release}");
        }
        let release = String::from("6.1.0-18-amd64");
        let why = NotJoined::Kernel { release }.to_string();
        assert!(
            why.contains("takes Linux 6.2; this is 6.1.0-18-amd64"),
            "{why}"
        );
    }
}
