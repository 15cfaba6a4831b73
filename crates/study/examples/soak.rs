//! A sink at overload for minutes, with its link taken down and its knobs changed all the while: every frame that the
//! XDP program took must be received or lost at a named place.
//!
//! In namespaces of its own, as root: `cargo run --release -p nicpoll-study --example soak [SECONDS]` (600). It ends
//! with 1 when a frame is missing.

use std::error::Error;
use std::net::UdpSocket;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nicpoll_core::{Controller, Knob};
use nicpoll_engine::{
    DeviceChoice, Drive, EngineSettings, FRAMES_MAX, Helpers, KernelSide, KnobAnswer,
    RunnerSettings, RunningEngine, Sink, SinkSettings, Take,
};
use nicpoll_model::{Origin, Side};
use nicpoll_study::{KernelTime, Veth};
use nicpoll_sys::affinity;

const PORT: u16 = 9000;
/// One knob is changed each time, and every fourth time the link goes down and up.
const STEP: Duration = Duration::from_millis(250);
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
const FLAPS: [(Side, &str); 2] = [
    (
        Side::Receiver,
        "ip link set em0 down; sleep 0.05; ip link set em0 up",
    ),
    (
        Side::Sender,
        "ip link set em0 down; sleep 0.05; ip link set em0 up",
    ),
];

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<ExitCode> {
    let seconds = std::env::args().nth(1);
    let seconds = seconds.map_or(Ok(600.0), |text| text.parse())?;
    let veth = Veth::build()?;
    let cpus = affinity::allowed_cpus()?;
    let mut sink = start(&veth, *cpus.last().ok_or("no CPU is allowed")?)?;
    let ends = Arc::new(AtomicBool::new(false));
    let (sent, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let sender = send(&veth, cpus[0], &ends, &sent, &refused)?;
    let own = std::process::id();
    let engine = RunningEngine::all()?
        .into_iter()
        .find(|engine| engine.pid == own);
    let engine = engine.ok_or("the engine's knobs are not served")?;
    let (began, mut steps, mut flaps) = (Instant::now(), 0, 0);
    while began.elapsed().as_secs_f64() < seconds {
        thread::sleep(STEP);
        let change = KNOBS[steps % KNOBS.len()];
        if let KnobAnswer::Refused(why) = engine.ask(change)? {
            return Err(why.into());
        }
        if steps % 4 == 3 {
            let (side, lines) = FLAPS[flaps % FLAPS.len()];
            shell(&veth, side, lines)?;
            flaps += 1;
        }
        steps += 1;
        if steps % 40 == 0 {
            let interval = sink.interval()?;
            println!(
                "{:>6.1} s: {} received, {} lost for want of memory, {} flaps",
                interval.end_seconds,
                interval.counts.received_packets,
                interval.counts.no_memory_packets,
                flaps
            );
        }
    }
    ends.store(true, Ordering::Relaxed);
    let _ = sender.join();
    let end = sink.end()?;
    println!("{}", account_of(&end));
    println!(
        "{} sent, {} refused to the sender; {steps} knobs changed, {flaps} flaps, {} seen as link losses",
        sent.load(Ordering::Relaxed),
        refused.load(Ordering::Relaxed),
        end.link_loss_events
    );
    Ok(match end.account.residual_packets {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// The account, one line for each place.
fn account_of(end: &nicpoll_model::sink::SinkEnd) -> String {
    let account = &end.account;
    format!(
        "{:>12} taken by the XDP program\n{:>12} received\n{:>12} lost: ring full\n{:>12} lost: no memory\n\
         {:>12} still in the ring\n{:>12} unaccounted for",
        account.taken_packets,
        account.received_packets,
        account.ring_full_packets,
        account.no_memory_packets,
        account.waiting_packets,
        account.residual_packets
    )
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
    };
    let start = move |(): &mut ()| {
        let origin = Origin {
            nicpoll_version: String::new(),
            argv: Vec::new(),
            started_at: String::new(),
        };
        let accounts = KernelTime::of(&["em0"], KernelSide::AsIs);
        let helpers = Helpers {
            accounts: &accounts,
            setup: None,
        };
        Sink::start(&settings, origin, &helpers)
    };
    Ok(veth.inside(Side::Receiver).run(start)??)
}

/// Sends as fast as it goes until it is told to end.
fn send(
    veth: &Veth,
    cpu: u32,
    ends: &Arc<AtomicBool>,
    sent: &Arc<AtomicU64>,
    refused: &Arc<AtomicU64>,
) -> Outcome<JoinHandle<()>> {
    let (ends, sent, refused) = (Arc::clone(ends), Arc::clone(sent), Arc::clone(refused));
    let sender = move |(): &mut ()| {
        thread::spawn(move || {
            let _ = affinity::pin(cpu);
            let Ok(socket) = UdpSocket::bind("0.0.0.0:0") else {
                return;
            };
            while !ends.load(Ordering::Relaxed) {
                match socket.send_to(&[0; 64], ("198.18.0.2", PORT)) {
                    Ok(_) => sent.fetch_add(1, Ordering::Relaxed),
                    Err(_) => {
                        // The link is down, or routes are not back yet.
                        thread::sleep(Duration::from_micros(100));
                        refused.fetch_add(1, Ordering::Relaxed)
                    }
                };
            }
        })
    };
    Ok(veth.inside(Side::Sender).run(sender)?)
}

fn shell(veth: &Veth, side: Side, lines: &'static str) -> Outcome<()> {
    let run = move |(): &mut ()| Command::new("sh").args(["-ec", lines]).output();
    let output = veth.inside(side).run(run)??;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into()),
    }
}
