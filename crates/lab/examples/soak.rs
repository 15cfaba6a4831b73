//! A sink or a forwarder at overload, with its links taken down and its knobs changed all the while: every frame that
//! was sent must be received or sent on, or lost at a named place.
//!
//! In namespaces of its own, as root: `cargo run --release -p nicpoll-lab --example soak [PROGRAM [FLAPS [PATH]]]`, of
//! `sink`, `xdp` and `user` (forwarding), 200 flaps, and a path of `blast` (`af-xdp`). It ends with 1 when a frame is
//! missing.

use std::error::Error;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_core::{Controller, Knob};
use nicpoll_engine::blast::{
    Blast, BlastPath, BlastSettings, FrameReceiver, LinkSettings, LinkTraffic,
};
use nicpoll_engine::{
    Choice, DeviceChoice, Drive, EngineApplication, EngineError, EngineSettings, FRAMES_MAX,
    Forward, ForwardPath, ForwardSettings, KernelSide, Named, RunnerSettings, RunningEngine, Sink,
    SinkSettings, Take,
};
use nicpoll_lab::{EngineSupport, Veth};
use nicpoll_model::engine::{BlastEnd, ForwardEnd, SinkEnd};
use nicpoll_model::{Origin, Side};
use nicpoll_switch::VETH_RING_SLOTS;
use nicpoll_sys::{ethtool, schedule};

const PORT: u16 = 9000;
const RECEIVER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2));
/// One knob is changed each time, and every second time a link goes down and up.
const STEP: Duration = Duration::from_millis(150);
/// What is sent has come by then.
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
/// Which link goes down in turn, in whose namespace. The sender has the far end of a forwarder's exit, too.
const FLAPS: [(Side, &str); 4] = [
    (Side::Receiver, "em0"),
    (Side::Sender, "em0"),
    (Side::Receiver, "out0"),
    (Side::Sender, "in0"),
];
/// A forwarder's exit, and the neighbour behind it, which Linux forgets when the exit goes down.
const EXIT: &str = "echo 1 > /proc/sys/net/ipv4/ip_forward
ip link set out0 address 02:00:00:00:00:03 up
ip addr add 198.18.1.2/24 dev out0
ip link set em0 address 02:00:00:00:00:02";
const NEIGHBOUR: &str = "ip neigh replace 198.18.1.1 lladdr 02:00:00:00:00:04 dev out0";
const BEHIND: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 1, 1));
/// What comes to a forwarder that the blast did not send.
const OF_OTHERS: [&str; 3] = ["not_ip", "not_for_router", "header"];

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What runs in the receiver's namespace.
enum Program {
    Sink(Box<Sink>),
    Forward(Box<Forward>),
}

fn main() -> Outcome<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().unwrap_or_else(|| String::from("sink"));
    let flaps: usize = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let path = arguments.next().unwrap_or_else(|| String::from("af-xdp"));
    let path = BlastPath::by_name(&path)?;
    let veth = Veth::build()?;
    let cpus = schedule::allowed_cpus()?;
    let cpu = *cpus.last().ok_or("no CPU is allowed")?;
    let mut running = match &*program {
        "sink" => Program::Sink(Box::new(start(&veth, cpu)?)),
        path => {
            let path = ForwardPath::by_name(path)?;
            Program::Forward(Box::new(start_forward(&veth, cpu, path)?))
        }
    };
    let dropped_before = driver_drops(&veth)?;
    let blast = send(&veth, cpus[0], path, &running)?;
    let downs = disturb(&veth, &mut running, flaps)?;
    let sent = blast.end(None)?;
    thread::sleep(ON_ITS_WAY);
    let driver_drops = driver_drops(&veth)? - dropped_before;
    let ledger = Ledger::of(&sent, driver_drops, running.end()?);
    println!("{}", ledger.text());
    println!(
        "links went down {} times; blast saw {}",
        flaps, sent.links[0].link_loss_events
    );
    let left = shell(&veth, Side::Receiver, "ip link")?;
    let is_left = left.contains("xdp") || left.contains("npfwd");
    Ok(match ledger.closes(downs) && !is_left {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Changes knobs and takes links down, so many times. Returns how often the end that receives went down.
fn disturb(veth: &Veth, running: &mut Program, flaps: usize) -> Outcome<u64> {
    let own = std::process::id();
    let mut engines = RunningEngine::all()?.into_iter();
    let engine = engines.find(|engine| engine.pid == own);
    let places = if running.forwards() {
        &FLAPS[..]
    } else {
        &FLAPS[..2]
    };
    let (began, mut at_receiver) = (Instant::now(), 0);
    for step in 0..2 * flaps {
        thread::sleep(STEP);
        // The XDP program alone has no knobs.
        if let Some(engine) = &engine {
            engine.ask(KNOBS[step % KNOBS.len()])??;
        }
        if step % 2 == 0 {
            let (side, link) = places[step / 2 % places.len()];
            let flap = format!("ip link set {link} down; sleep 0.05; ip link set {link} up");
            let again = if link == "out0" { NEIGHBOUR } else { "" };
            shell(veth, side, &format!("{flap}\n{again}"))?;
            at_receiver += u64::from((side, link) == FLAPS[0]);
        }
        if step % 40 == 0 {
            println!(
                "{:>6.1} s: {}",
                began.elapsed().as_secs_f64(),
                running.interval()?
            );
        }
    }
    Ok(at_receiver)
}

impl Program {
    fn forwards(&self) -> bool {
        matches!(self, Program::Forward(_))
    }

    fn interval(&mut self) -> Result<String, EngineError> {
        Ok(match self {
            Program::Sink(sink) => {
                let counts = sink.interval()?.counts;
                let (received, lost) = (counts.received_packets, counts.no_memory_packets);
                format!("{received} received, {lost} lost for want of memory")
            }
            Program::Forward(forward) => {
                let counts = forward.interval()?.counts;
                let (received, forwarded) = (counts.received_packets, counts.forwarded_packets);
                format!("{received} received, {forwarded} forwarded")
            }
        })
    }

    fn end(self) -> Result<Came, EngineError> {
        Ok(match self {
            Program::Sink(sink) => Came::to_sink(&sink.end(None)?),
            Program::Forward(forward) => Came::to_forwarder(&forward.end(None)?),
        })
    }
}

/// What became of the frames that came to the program.
struct Came {
    places: Vec<(i64, String)>,
    /// Of these, drops of the driver's, too: a socket or an exit that has no room takes none.
    dropped_by_driver: i64,
    residual: i64,
}

impl Came {
    fn to_sink(end: &SinkEnd) -> Self {
        let (sink, fates) = (&end.account, &end.account.fates);
        let to_kernel = fates.without_socket_packets + fates.too_long_packets;
        let places = [
            (to_kernel, "left to the receiver's kernel"),
            (sink.received_packets, "received"),
            (sink.ring_full_packets, "lost: ring full"),
            (sink.no_memory_packets, "lost: no memory"),
            (sink.waiting_packets, "still in the socket's ring"),
        ];
        Came {
            places: places
                .map(|(frames, place)| (whole(frames), String::from(place)))
                .into(),
            dropped_by_driver: whole(sink.ring_full_packets + sink.no_memory_packets),
            residual: sink.residual_packets,
        }
    }

    fn to_forwarder(end: &ForwardEnd) -> Self {
        let account = &end.interfaces[0].account;
        let mut places = vec![(whole(account.forwarded_packets), String::from("forwarded"))];
        let passed = account
            .passed
            .iter()
            .filter(|fate| !OF_OTHERS.contains(&&*fate.name));
        let fates = passed.map(|fate| (fate, "left to the kernel"));
        let fates = fates.chain(account.lost.iter().map(|fate| (fate, "lost")));
        let fates = fates.filter(|(fate, _)| fate.packets > 0);
        places.extend(
            fates.map(|(fate, how)| (whole(fate.packets), format!("{how}: {}", fate.name))),
        );
        // On the path of the engine an exit that refuses is the engine's own to find.
        let by_driver: &[&str] = match end.polling.is_empty() {
            true => &["exit_refused"],
            false => &["ring_full", "no_memory"],
        };
        let at_driver = account
            .lost
            .iter()
            .filter(|fate| by_driver.contains(&&*fate.name));
        Came {
            dropped_by_driver: whole(at_driver.map(|fate| fate.packets).sum()),
            places,
            residual: end
                .interfaces
                .iter()
                .map(|from| from.account.residual_packets)
                .sum(),
        }
    }
}

/// Where the frames ended, in the order of their way.
struct Ledger {
    sent: i64,
    places: Vec<(i64, String)>,
    left_in_ring: i64,
    residual: i64,
}

fn whole(frames: u64) -> i64 {
    i64::try_from(frames).unwrap_or(i64::MAX)
}

impl Ledger {
    fn of(sent: &BlastEnd, driver_drops: u64, came: Came) -> Self {
        let blast = &sent.links[0].account;
        let before_program = whole(driver_drops) - came.dropped_by_driver;
        let seen = came.places.iter().map(|(frames, _)| frames).sum::<i64>() + before_program;
        let left_in_ring = blast.completed_frames.map_or(0, whole) - seen;
        let before = [
            (
                whole(blast.unfinished_frames),
                "not taken by the kernel at the end",
            ),
            (
                blast.refused_frames.map_or(0, whole),
                "dropped by the sender's interface: the ring was full",
            ),
            (
                blast.link_down_frames.map_or(0, whole),
                "dropped there: the link was down",
            ),
            (
                left_in_ring,
                "in the veth's ring when the receiver's end went down: Linux counts them nowhere",
            ),
            (
                before_program,
                "dropped by the receiver's driver before the XDP program",
            ),
        ];
        let before = before.map(|(frames, place)| (frames, String::from(place)));
        Ledger {
            sent: whole(blast.built_frames),
            places: before.into_iter().chain(came.places).collect(),
            left_in_ring,
            residual: came.residual + blast.residual_frames.unwrap_or(0),
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
        // Each of the residuals is a hole of its own, also where the sum closes.
        (self.sent - found).abs() + self.residual.abs()
    }

    /// Whether every frame is where it may be: a ring has so many slots each time that it is emptied.
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
        engine: engine(cpu),
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

fn engine(cpu: u32) -> EngineSettings {
    EngineSettings {
        cpus: vec![cpu],
        runner: RunnerSettings {
            drive: Drive::Polling,
            hz: 1000,
            controller: Controller::Freebsd,
            storm_threshold: 0,
        },
        knobs: vec![(Knob::BurstMax, 1000)],
    }
}

/// Forwards from the receiver's end of the link to the exit, and back to the sender's namespace.
fn start_forward(veth: &Veth, cpu: u32, path: ForwardPath) -> Outcome<Forward> {
    let own = |(): &mut ()| rustix::thread::gettid().as_raw_nonzero().get();
    let sender = veth.inside(Side::Sender).run(own)?;
    let make = format!("ip link add out0 type veth peer name in0 netns {sender}");
    shell(veth, Side::Receiver, &make)?;
    let far = "ip link set in0 address 02:00:00:00:00:04 up; ethtool -K in0 gro on";
    shell(veth, Side::Sender, far)?;
    shell(veth, Side::Receiver, &format!("{EXIT}\n{NEIGHBOUR}"))?;
    let settings = ForwardSettings {
        interfaces: ["em0", "out0"].map(String::from).into(),
        path,
        engine: engine(cpu),
        engine_options: Vec::new(),
        kernel_side: KernelSide::AsIs,
        kernel_cpus: Vec::new(),
        filters: Vec::new(),
        past_filters: true,
        gone: Default::default(),
    };
    let start = move |(): &mut ()| {
        let helpers = EngineSupport::of(&["em0", "out0"], Drive::Polling, KernelSide::AsIs);
        Forward::start(&settings, origin(), &helpers)
    };
    Ok(veth.inside(Side::Receiver).run(start)??)
}

/// Sends as fast as it goes. The kernel says of each frame whether the interface took it.
fn send(veth: &Veth, cpu: u32, path: BlastPath, to: &Program) -> Outcome<Blast> {
    let (to, from, mac) = match to.forwards() {
        // The hardware address of a sink is the kernel's to find.
        false => (RECEIVER, None, None),
        true => (
            BEHIND,
            Some(IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1))),
            Some("02:00:00:00:00:02".parse()?),
        ),
    };
    let settings = BlastSettings {
        links: vec![LinkSettings {
            interface: String::from("em0"),
            cpu,
            traffic: LinkTraffic::Datagrams {
                receiver: FrameReceiver {
                    to: SocketAddr::new(to, PORT),
                    from,
                    mac,
                },
                lengths: "64".parse()?,
                flows: 1,
            },
        }],
        path: Choice::Only(path),
        rate: None,
        burst: 1,
        count: None,
        duration: None,
        gone: Default::default(),
    };
    let start = move |(): &mut ()| Blast::start(&settings, origin());
    Ok(veth.inside(Side::Sender).run(start)??)
}

/// Frames that the receiver's driver dropped.
fn driver_drops(veth: &Veth) -> Outcome<u64> {
    let read = |(): &mut ()| ethtool::statistics("em0");
    let statistics = veth.inside(Side::Receiver).run(read)??;
    let of_driver = |name: &str| name.ends_with("_drops") && !name.ends_with("_xdp_drops");
    let drops = statistics.iter().filter(|(name, _)| of_driver(name));
    Ok(drops.map(|(_, frames)| frames).sum())
}

fn shell(veth: &Veth, side: Side, lines: &str) -> Outcome<String> {
    let lines = lines.to_owned();
    let run = move |(): &mut ()| Command::new("sh").args(["-ec", &lines]).output();
    let output = veth.inside(side).run(run)??;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into()),
        false => Err(String::from_utf8_lossy(&output.stderr).into()),
    }
}
