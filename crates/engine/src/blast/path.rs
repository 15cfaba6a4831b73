//! The ways for frames to leave, fastest first, and which one is taken.
//!
//! `live`: the kernel makes the frames itself, by an XDP program that BPF_PROG_TEST_RUN runs over and over. `af-xdp` and
//! `af-packet` write them to a socket; AF_PACKET may hand over many frames of one flow as one long datagram, which the kernel
//! segments. That is done only while the interface has the feature turned off: a veth that has it passes long datagrams on.

use nicpoll_model::Refused;
use std::io;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use aya::maps::{Array, MapData};
use netlink_socket2::NetlinkSocket;
use nicpoll_model::engine::{BlastAccount, BlastCounts, PathRefused};
use nicpoll_sys::bpf_maps::{Blasted, Template};
use nicpoll_sys::ethtool::{self, Feature};
use nicpoll_sys::link::LinkHandle;
use nicpoll_sys::packet::{Joining, PacketSender, Transmit};
use nicpoll_wire::frame::ETHERNET_BYTES;
use rustix::io::Errno;

use crate::blast::frames::{FLOW_PORTS, FrameStream, Frames};
use crate::device::interface::{EthernetInterface, takes_redirected};
use crate::device::packet::refusal;
use crate::device::xdp::{LoadedProgram, open_sender};
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
const ONE_BY_ONE_MAX: f64 = 500_000.0;

fn no(path: BlastPath, interface: &EthernetInterface, why: &str) -> EngineError {
    EngineError::Failed(format!(
        "'{}' cannot send by {}: {why}",
        interface.name,
        path.name()
    ))
}

/// A way that was opened.
pub(super) struct OpenedPath {
    pub(super) path: BlastPath,
    pub(super) outlet: Box<dyn Outlet>,
    /// Why frames are not handed over joined, for the kernel to cut up, where they could be.
    pub(super) not_joined: Option<String>,
    /// Whether they are.
    pub(super) is_cut_by_kernel: bool,
    /// The faster ways that cannot be had, and why.
    pub(super) refused: Vec<PathRefused>,
}

/// Opens the way that was asked for, or the best one for this rate.
///
/// # Errors
/// When none can be had.
pub(super) fn open(
    wanted: Choice<BlastPath>,
    interface: &EthernetInterface,
    frames: &Frames,
    frames_per_second: Option<f64>,
) -> Result<OpenedPath, EngineError> {
    let suited = |path| match wanted {
        Choice::Auto if !suits(path, frames_per_second) => {
            let why = "at this rate frames are better sent one by one";
            Err(EngineError::Failed(String::from(why)))
        }
        _ => way(path, interface, frames),
    };
    let all = PATHS.map(|(path, _)| path);
    let (opened, refused) = wanted.first(all.to_vec(), suited, |_| true)?;
    let refused = refused.into_iter().map(|(name, why)| PathRefused {
        path: String::from(name),
        why,
    });
    Ok(OpenedPath {
        refused: refused.collect(),
        ..opened
    })
}

fn suits(path: BlastPath, frames_per_second: Option<f64>) -> bool {
    path != BlastPath::Live || frames_per_second.is_none_or(|rate| rate > ONE_BY_ONE_MAX)
}

fn way(
    path: BlastPath,
    interface: &EthernetInterface,
    frames: &Frames,
) -> Result<OpenedPath, EngineError> {
    let mut joined = None;
    let outlet = match (path, frames) {
        (BlastPath::Live, Frames::Stream(stream)) => {
            check_live(interface, stream)?;
            Box::new(Live::open(interface, stream)?)
        }
        (BlastPath::Live, Frames::Replay(_)) => {
            let why = "it makes its own frames and cannot replay those of a capture";
            return Err(no(path, interface, why));
        }
        (BlastPath::AfXdp, frames) => by_device(open_sender(&interface.name)?, frames),
        (BlastPath::AfPacket, frames) => {
            let frame_bytes_max = interface.mtu_bytes + ETHERNET_BYTES as u32;
            let sender = frames
                .joining()
                .map(|joining| JoinedSender::open(interface, frame_bytes_max, &joining));
            match sender {
                Some(Ok(sender)) => {
                    joined = Some(Ok(()));
                    by_device(sender, frames)
                }
                not_joined => {
                    joined = not_joined.map(|outcome| outcome.map(|_| ()));
                    let sender = PacketSender::new(interface.ifindex, frame_bytes_max);
                    let sender = sender.map_err(|source| refusal(&interface.name, source))?;
                    by_device(sender, frames)
                }
            }
        }
    };
    Ok(OpenedPath {
        path,
        outlet,
        is_cut_by_kernel: joined == Some(Ok(())),
        not_joined: joined.and_then(Result::err).map(|why| why.to_string()),
        refused: Vec::new(),
    })
}

fn by_device(device: impl Transmit + Send + 'static, frames: &Frames) -> Box<dyn Outlet> {
    Box::new(DeviceOutlet {
        device,
        frames: frames.clone(),
        built: BlastCounts::default(),
    })
}

/// Frames that the interface does not take would vanish, and nobody would say so.
fn check_live(interface: &EthernetInterface, stream: &FrameStream) -> Result<(), EngineError> {
    let why = match takes_redirected(&mut NetlinkSocket::new(), interface.ifindex) {
        Some(true) => "",
        Some(false) => {
            "its driver takes no frames from XDP programs, and all would vanish. A veth does when its other end has a \
             NAPI, for GRO or for an XDP program: ethtool -K PEER gro on"
        }
        None => {
            "all frames would vanish if its driver takes none from XDP programs, and a kernel before Linux 6.3 does not \
             say whether it does"
        }
    };
    if !why.is_empty() {
        return Err(no(BlastPath::Live, interface, why));
    }
    if stream.longest().len() > FRAME_BYTES_MAX {
        let why = format!("frames of {FRAME_BYTES_MAX} bytes at most fit the kernel's memory");
        return Err(no(BlastPath::Live, interface, &why));
    }
    Ok(())
}

/// Frames that a device is given at a time: enough that the system call for them costs each little.
const FRAMES_AT_A_TIME: u32 = 256;

/// What became of frames that were written. Of those that the kernel has taken, what the interface refused or has sent is
/// known only where the kernel says so.
fn account(
    built_frames: u64,
    handed_frames: u64,
    refused_frames: Option<u64>,
    completed_frames: Option<u64>,
) -> BlastAccount {
    let whole = |frames: u64| i64::try_from(frames).unwrap_or(i64::MAX);
    let found = refused_frames.zip(completed_frames);
    BlastAccount {
        built_frames,
        handed_frames,
        refused_frames,
        link_down_frames: None,
        completed_frames,
        unfinished_frames: built_frames.saturating_sub(handed_frames),
        residual_frames: found
            .map(|(refused, completed)| whole(handed_frames) - whole(refused) - whole(completed)),
    }
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

    /// What was written so far; of its bytes, those without FCS.
    fn built(&self) -> BlastCounts;

    /// What became of it. It may take longer than sending does.
    fn account(&mut self) -> BlastAccount;
}

/// A way that is closed until another one is open.
pub(super) struct Closed;

impl Outlet for Closed {
    fn at_a_time(&self) -> u32 {
        1
    }

    fn send(&mut self, _most: u32) -> io::Result<u32> {
        Err(Errno::NXIO.into())
    }

    fn built(&self) -> BlastCounts {
        BlastCounts::default()
    }

    fn account(&mut self) -> BlastAccount {
        account(0, 0, Some(0), Some(0))
    }
}

/// A device, and the frames that it sends.
struct DeviceOutlet<T> {
    device: T,
    frames: Frames,
    built: BlastCounts,
}

impl<T: Transmit + Send> Outlet for DeviceOutlet<T> {
    fn at_a_time(&self) -> u32 {
        FRAMES_AT_A_TIME
    }

    fn send(&mut self, most: u32) -> io::Result<u32> {
        let (mut written, mut bytes, mut is_at_end) = (0, 0, false);
        let frames = &mut self.frames;
        let outcome = self.device.transmit(most, |memory| {
            let length = frames.write(memory);
            is_at_end = length.is_none();
            written += u32::from(length.is_some());
            bytes += length.unwrap_or(0) as u64;
            length
        });
        self.built.built_frames += u64::from(written);
        self.built.built_bytes += bytes;
        outcome?;
        if is_at_end && written == 0 {
            return Err(Errno::NODATA.into());
        }
        Ok(written)
    }

    fn built(&self) -> BlastCounts {
        self.built
    }

    fn account(&mut self) -> BlastAccount {
        // The kernel says what it is done with when it is asked for room.
        let _ = self.device.room();
        let (handed, refused) = (self.device.sent(), self.device.refused());
        let completed = refused.map(|refused| handed.saturating_sub(refused));
        account(self.built.built_frames, handed, refused, completed)
    }
}

const PROGRAM: &str = "blast_frame";
/// Frames that the kernel makes before it hands them on: its default, and NAPI's budget.
const BATCH: u32 = 64;
/// Frames of one system call. The kernel allocates memory for each call and waits until all of it is returned, some 30
/// ms in which nothing is sent; and a call is not ended before its time. So a call takes about half a second.
const FRAMES_A_CALL: RangeInclusive<u32> = 8192..=1 << 21;
const CALL_TIME: RangeInclusive<Duration> = Duration::from_millis(300)..=Duration::from_millis(700);
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
    ifindex: u32,
    program: LoadedProgram,
    blasted: Array<MapData, Blasted>,
    longest: Vec<u8>,
    now: Blasted,
    frames_a_call: u32,
    driver: Option<(u64, u64)>,
}

impl Live {
    /// Loads the program with the frames that it is to send.
    ///
    /// # Errors
    /// Without the privileges for BPF, and before Linux 5.18.
    pub(super) fn open(
        interface: &EthernetInterface,
        stream: &FrameStream,
    ) -> Result<Self, EngineError> {
        let templates: Vec<Template> = stream.templates().collect();
        let constants = [
            ("INTERFACE", u64::from(interface.ifindex)),
            ("HEADER_BYTES", stream.header_bytes() as u64),
            ("TEMPLATES_USED", templates.len() as u64),
            ("LONGEST_BYTES", stream.longest().len() as u64),
            ("FLOWS", u64::from(stream.flows)),
            ("FIRST_FLOW", u64::from(stream.first_flow)),
            ("FIRST_PORT", u64::from(*FLOW_PORTS.start())),
        ];
        let object = aya::include_bytes_aligned!("../../bpf/xdp_blast.bpf.o");
        let mut program = LoadedProgram::load(&interface.name, object, PROGRAM, &constants)?;
        let mut places: Array<_, Template> = program.map("TEMPLATES")?;
        for (place, template) in templates.into_iter().enumerate() {
            program.explained(places.set(place as u32, template, 0))?;
        }
        let mut blasted: Array<_, Blasted> = program.map("BLASTED")?;
        let now = Blasted {
            sequence: stream.sequence(),
            ..Blasted::default()
        };
        program.explained(blasted.set(0, now, 0))?;
        Ok(Live {
            interface: interface.name.clone(),
            ifindex: interface.ifindex,
            blasted,
            program,
            longest: stream.longest().to_vec(),
            now,
            frames_a_call: *FRAMES_A_CALL.start(),
            driver: driver_counts(&interface.name, interface.ifindex),
        })
    }

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
        if most == 0 {
            return Ok(0);
        }
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

    fn built(&self) -> BlastCounts {
        BlastCounts {
            built_frames: self.now.frames,
            built_bytes: self.now.bytes,
            ..BlastCounts::default()
        }
    }

    fn account(&mut self) -> BlastAccount {
        let grown = |now: u64, before: u64| now.saturating_sub(before);
        let driver = self
            .driver
            .zip(driver_counts(&self.interface, self.ifindex));
        let driver = driver.map(|(before, now)| (grown(now.0, before.0), grown(now.1, before.1)));
        let (sent, refused) = driver.unzip();
        account(self.now.frames, self.now.frames, refused, sent)
    }
}

/// What the driver sent and refused of the frames that XDP programs sent out by it; `None` where it does not count
/// them, or they went with the interface.
fn driver_counts(interface: &str, ifindex: u32) -> Option<(u64, u64)> {
    let link = LinkHandle::named(interface).ok()?;
    if link.ifindex() != ifindex {
        return None;
    }
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

/// The sender, and what says whether it may go on joining.
struct JoinedSender {
    sender: PacketSender,
    takes_long: Feature,
    looked: Instant,
}

impl JoinedSender {
    /// A sender through an interface of the calling thread's network namespace. Where frames are better sent one by one,
    /// it says why.
    fn open(
        interface: &EthernetInterface,
        frame_bytes_max: u32,
        joining: &Joining,
    ) -> Result<Self, Refused> {
        // It would take the option, and refuse the first datagram.
        cuts_up(&rustix::system::uname().release().to_string_lossy())?;
        let name = &interface.name;
        let refused =
            |error: io::Error| Refused(format!("'{name}' cannot be given long datagrams: {error}"));
        let takes_long = Feature::named(name, UDP_SEGMENTATION).map_err(refused)?;
        if takes_long.is_on().map_err(refused)? {
            return Err(format!(
                "'{name}' takes long datagrams as they are, and so would the receiver; 'ethtool -K {name} \
                 {UDP_SEGMENTATION} off' turns that off"
            ).into());
        }
        let sender = PacketSender::joining(interface.ifindex, frame_bytes_max, joining);
        Ok(JoinedSender {
            sender: sender.map_err(refused)?,
            takes_long,
            looked: Instant::now(),
        })
    }
}

/// Refuses a kernel whose release cuts no long datagrams up. Of one with no such number the first frames tell.
fn cuts_up(release: &str) -> Result<(), Refused> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next()?.parse().ok();
    let version: Option<(u32, u32)> = number().zip(number());
    match version.is_none_or(|version| version >= CUTS_FROM) {
        true => Ok(()),
        false => Err(format!(
            "the kernel cuts no long datagrams up, which takes Linux 6.2; this is {release}"
        )
        .into()),
    }
}

impl Transmit for JoinedSender {
    fn room(&mut self) -> u32 {
        self.sender.room()
    }

    fn transmit(
        &mut self,
        most: u32,
        fill: impl FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        if self.sender.joins() && self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            if self.takes_long.is_on().unwrap_or(true) {
                self.sender.send_singly()?;
            }
        }
        self.sender.transmit(most, fill)
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
            mut fill: impl FnMut(&mut [u8]) -> Option<usize>,
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
        let mut outlet = DeviceOutlet {
            device: Narrow(2, 0),
            frames: Frames::of_zeros(3, 60),
            built: BlastCounts::default(),
        };
        assert_eq!(outlet.send(5).unwrap(), 2);
        assert_eq!(outlet.send(5).unwrap(), 1);
        let ended = outlet.send(5).unwrap_err();
        assert_eq!(Errno::from_io_error(&ended), Some(Errno::NODATA));
        let built = outlet.built();
        assert_eq!((built.built_frames, built.built_bytes), (3, 180));
        let account = outlet.account();
        assert_eq!((account.handed_frames, account.unfinished_frames), (2, 1));
        let fates = (account.refused_frames, account.completed_frames);
        assert_eq!(
            (fates, account.residual_frames),
            ((Some(1), Some(1)), Some(0))
        );
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
            assert_eq!(cuts_up(release).is_ok(), cuts, "{release}");
        }
        let why = cuts_up("6.1.0-18-amd64").unwrap_err();
        assert!(
            why.0.contains("takes Linux 6.2; this is 6.1.0-18-amd64"),
            "{why}"
        );
    }
}
