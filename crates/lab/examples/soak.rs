//! A sink at overload for minutes, while its link flaps and its knobs change: every sent frame must be received, or
//! lost at a named place.
//!
//! In namespaces of its own, as root: `cargo run --release -p nicpoll-lab --example soak [SECONDS]` (600). Exits with
//! 1 if a frame is missing.

use std::error::Error;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_core::{Controller, Knob};
use nicpoll_engine::blast::{Blast, BlastPath, BlastSettings, LinkSettings, LinkTraffic, Receiver};
use nicpoll_engine::{
    Choice, DeviceChoice, Drive, EngineApplication, EngineSettings, FRAMES_MAX, KernelSide,
    RunnerSettings, RunningEngine, Sink, SinkSettings, Take,
};
use nicpoll_lab::{EngineSupport, Veth};
use nicpoll_model::engine::{BlastEnd, SinkEnd};
use nicpoll_model::{Origin, Side};
use nicpoll_switch::VETH_RING_SLOTS;
use nicpoll_sys::{ethtool, schedule};

const PORT: u16 = 9000;
const RECEIVER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2));
/// One knob is changed each time, and every fourth time the link goes down and up.
const STEP: Duration = Duration::from_millis(250);
/// Time after which sent frames have arrived.
const ON_ITS_WAY: Duration = Duration::from_millis(100);
const KNOBS: [&str; 10] = [
    "user_frac=10",
    "burst_max=3000",
    "each_burst=64",
    "idle_poll=1",
    "reg_frac=1",
    "user_frac=90",
    "idle_poll=0",
    "burst_max=20",
    "reg_frac=1000",
    "burst_max=1000",
];
const FLAPS: [Side; 2] = [Side::Receiver, Side::Sender];
const FLAP: &str = "ip link set em0 down; sleep 0.05; ip link set em0 up";

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Disturbances of a run.
#[derive(Default)]
struct Disturbed {
    knobs: usize,
    /// Times that the link went down at the sender's and at the receiver's end.
    at_sender: u64,
    at_receiver: u64,
}

fn main() -> Outcome<ExitCode> {
    let seconds = std::env::args().nth(1);
    let seconds = seconds.map_or(Ok(600.0), |text| text.parse())?;
    let veth = Veth::build()?;
    let cpus = schedule::allowed_cpus()?;
    let mut sink = start(&veth, *cpus.last().ok_or("no CPU is allowed")?)?;
    let dropped_before = driver_drops(&veth)?;
    let blast = send(&veth, cpus[0])?;
    let disturbed = disturb(&veth, &mut sink, seconds)?;
    let sent = blast.end(None)?;
    thread::sleep(ON_ITS_WAY);
    let driver_drops = driver_drops(&veth)? - dropped_before;
    let end = sink.end(None)?;
    let ledger = Ledger::of(&sent, &end, driver_drops);
    println!("{}", ledger.text());
    println!(
        "{} knobs changed; the link went down {} times at the sender and {} at the receiver, where {} were seen",
        disturbed.knobs, disturbed.at_sender, disturbed.at_receiver, end.events.link_loss_events
    );
    Ok(match ledger.closes(disturbed.at_receiver) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Changes knobs and takes the link down, until the time is over.
fn disturb(veth: &Veth, sink: &mut Sink, seconds: f64) -> Outcome<Disturbed> {
    let own = std::process::id();
    let mut engines = RunningEngine::all()?.into_iter();
    let engine = engines.find(|engine| engine.pid == own);
    let engine = engine.ok_or("the engine's knobs are not served")?;
    let (began, mut done) = (Instant::now(), Disturbed::default());
    while began.elapsed().as_secs_f64() < seconds {
        thread::sleep(STEP);
        engine.ask(KNOBS[done.knobs % KNOBS.len()])??;
        done.knobs += 1;
        if done.knobs % 4 == 0 {
            let side = FLAPS[done.knobs / 4 % FLAPS.len()];
            shell(veth, side, FLAP)?;
            match side {
                Side::Sender => done.at_sender += 1,
                Side::Receiver => done.at_receiver += 1,
            }
        }
        if done.knobs % 40 == 0 {
            let interval = sink.interval()?;
            println!(
                "{:>6.1} s: {} received, {} lost for want of memory",
                interval.end_seconds,
                interval.counts.received_packets,
                interval.counts.no_memory_packets
            );
        }
    }
    Ok(done)
}

/// The fates of the frames, in the order of their path.
struct Ledger {
    sent: i64,
    places: Vec<(i64, &'static str)>,
    left_in_ring: i64,
    residual: i64,
}

impl Ledger {
    fn of(sent: &BlastEnd, end: &SinkEnd, driver_drops: u64) -> Self {
        let whole = |frames: u64| i64::try_from(frames).unwrap_or(i64::MAX);
        let (blast, sink) = (&sent.links[0].account, &end.account);
        let refused = blast.refused_frames.map_or(0, whole);
        // The driver counts a frame that finds the socket full as dropped, too.
        let at_socket = whole(sink.ring_full_packets + sink.no_memory_packets);
        let before_program = whole(driver_drops) - at_socket;
        let fates = &sink.fates;
        let to_kernel = whole(fates.without_socket_packets + fates.too_long_packets);
        let seen = whole(fates.taken_packets) + to_kernel + before_program;
        let left_in_ring = blast.completed_frames.map_or(0, whole) - seen;
        Ledger {
            sent: whole(blast.built_frames),
            places: vec![
                (
                    whole(blast.unfinished_frames),
                    "not taken by the kernel at the end",
                ),
                (
                    refused,
                    "dropped by the sender's interface: the ring was full, or the link down",
                ),
                (
                    left_in_ring,
                    "in the veth's ring when the receiver's end went down: Linux counts them nowhere",
                ),
                (
                    before_program,
                    "dropped by the receiver's driver before the XDP program",
                ),
                (to_kernel, "left to the receiver's kernel"),
                (whole(sink.received_packets), "received"),
                (whole(sink.ring_full_packets), "lost: ring full"),
                (whole(sink.no_memory_packets), "lost: no memory"),
                (whole(sink.waiting_packets), "still in the socket's ring"),
            ],
            left_in_ring,
            residual: sink.residual_packets + blast.residual_frames.unwrap_or(0),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{:>12} sent\n", self.sent);
        for (frames, place) in &self.places {
            let _ = writeln!(text, "{frames:>12} {place}");
        }
        let _ = write!(text, "{:>12} unaccounted for", self.unaccounted());
        text
    }

    fn unaccounted(&self) -> i64 {
        let found: i64 = self.places.iter().map(|(frames, _)| frames).sum();
        // Each residual counts by itself, even if the sum closes.
        (self.sent - found).abs() + self.residual.abs()
    }

    /// Returns whether the account closes: a ring may lose its slots each time that it is emptied.
    fn closes(&self, emptied: u64) -> bool {
        let most = i64::from(VETH_RING_SLOTS) * i64::try_from(emptied).unwrap_or(i64::MAX);
        self.unaccounted() == 0 && (0..=most).contains(&self.left_in_ring)
    }
}

fn origin() -> Origin {
    Origin {
        nicpoll_version: String::new(),
        argv: Vec::new(),
        started_at: String::new(),
    }
}

fn start(veth: &Veth, cpu: u32) -> Outcome<Sink> {
    let settings = SinkSettings {
        interface: String::from("em0"),
        device: DeviceChoice::Auto,
        check: None,
        take: Take::Ports([PORT].into()),
        frames: FRAMES_MAX,
        work_ns: 3_000,
        engine: EngineSettings {
            cpus: vec![cpu],
            runner: RunnerSettings {
                drive: Drive::Polling,
                hz: 1000,
                controller: Controller::Freebsd,
                storm_threshold: 0,
            },
            knobs: vec![(Knob::BurstMax, 1000)],
        },
        kernel_side: KernelSide::AsIs,
        kernel_cpus: Vec::new(),
        gone: Default::default(),
    };
    let start = move |(): &mut ()| {
        let helpers = EngineSupport::of(&["em0"], Drive::Polling, KernelSide::AsIs);
        Sink::start(&settings, origin(), &helpers)
    };
    Ok(veth.inside(Side::Receiver).run(start)??)
}

/// Sends as fast as possible. With AF_XDP the kernel reports for each frame whether the interface took it.
fn send(veth: &Veth, cpu: u32) -> Outcome<Blast> {
    let settings = BlastSettings {
        links: vec![LinkSettings {
            interface: String::from("em0"),
            cpu,
            traffic: LinkTraffic::Datagrams {
                receiver: Receiver {
                    to: SocketAddr::new(RECEIVER, PORT),
                    from: None,
                    mac: None,
                },
                lengths: "64".parse()?,
                flows: 1,
            },
        }],
        path: Choice::Only(BlastPath::AfXdp),
        rate: None,
        burst: 1,
        count: None,
        duration: None,
        gone: Default::default(),
    };
    let start = move |(): &mut ()| Blast::start(&settings, origin());
    Ok(veth.inside(Side::Sender).run(start)??)
}

/// Returns the frames that the receiver's driver dropped.
fn driver_drops(veth: &Veth) -> Outcome<u64> {
    let read = |(): &mut ()| ethtool::statistics("em0");
    let statistics = veth.inside(Side::Receiver).run(read)??;
    let of_driver = |name: &str| name.ends_with("_drops") && !name.ends_with("_xdp_drops");
    let drops = statistics.iter().filter(|(name, _)| of_driver(name));
    Ok(drops.map(|(_, frames)| frames).sum())
}

fn shell(veth: &Veth, side: Side, lines: &'static str) -> Outcome<()> {
    let run = move |(): &mut ()| Command::new("sh").args(["-ec", lines]).output();
    let output = veth.inside(side).run(run)??;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into()),
    }
}
