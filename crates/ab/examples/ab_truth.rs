//! Live comparisons with a known truth.
//!
//! `cargo run --release -p nicpoll-ab --example ab_truth [SECONDS [SPIN_US]]`: under one setting the receiver spins
//! for SPIN_US at each packet, and nothing else differs. Prints the found cost next to the true one. Both settings
//! are polling, with periods that differ by a thousandth: they cost the same.
//!
//! `... --example ab_truth null [RUNS [KIND]]`: compares the current setting with itself, RUNS times under each kind
//! of traffic (udp, tcp, changing), and prints the verdicts. Any word for a difference is a false alarm; at most 3 of
//! 60 runs may have one. Kinds can run at the same time.
//!
//! Sender and receiver are separate processes, because nicpoll's own CPU time is not counted. The sender ends by
//! itself. Needs root and ethtool.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{self, BufRead, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_ab::{AbProgress, AbRequest, plan, prepare};
use nicpoll_lab::{INTERFACE, Veth, draw_seed};
use nicpoll_model::ab::{AbAnswer, AbPlan};
use nicpoll_model::{Origin, Side, Verdict};
use nicpoll_switch::{
    GUARD_COMMAND, Journal, KnobValues, Name, POLLING_PERIOD_NS, guard_of_this_program, watch_over,
};
use nicpoll_sys::netns;

/// Kinds of traffic: datagrams at a steady rate, writes of a stream, or datagrams at a random rate that changes every
/// 0.7 s.
const KINDS: [&str; 3] = ["udp", "tcp", "changing"];
const PACKETS_PER_SECOND: u32 = 2_000;
const WRITES_PER_SECOND: u32 = 4_000;
const WRITE_BYTES: usize = 4_000;
const CHANGING_PER_SECOND: [u32; 5] = [1_000, 2_000, 4_000, 6_000, 8_000];
const CHANGES_EVERY: Duration = Duration::from_millis(700);
const RECEIVER: &str = "198.18.0.2";
const PORT: u16 = 9_000;
const BLOCK: Duration = Duration::from_secs(2);
/// Block length for thirty pairs, on a machine that is not overloaded.
const NULL_BLOCK: Duration = Duration::from_millis(600);
const NULL_RUN: Duration = Duration::from_secs(60);
/// Share of runs that may have a word for a difference.
const FALSE_ALARMS_MAX: f64 = 3.0 / 60.0;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| args.get(at).map_or(Ok(default), |text| text.parse());
    match args.first().map(String::as_str) {
        Some(GUARD_COMMAND) => Ok(watch_over(
            &Journal::of_this_machine(),
            None,
            &AtomicBool::new(false),
        )?),
        Some("send") => send(&args[1], Duration::from_secs(args[2].parse()?)),
        Some("receive") => receive(&args[1], Duration::from_micros(args[2].parse()?)),
        Some("null") => null(number(1, 20)?, args.get(2).map(String::as_str)),
        _ => compare(number(0, 150)?, number(1, 40)?),
    }
}

/// Sends traffic of a kind for `duration`.
fn send(kind: &str, duration: Duration) -> Outcome<()> {
    let end = Instant::now() + duration;
    match kind {
        "tcp" => {
            let mut stream = connect(end)?;
            paced(
                end,
                |_| WRITES_PER_SECOND,
                || stream.write_all(&[0; WRITE_BYTES]),
            )
        }
        kind => {
            let socket = UdpSocket::bind(("0.0.0.0", 0))?;
            let rate = |change: u32| match kind {
                "changing" => CHANGING_PER_SECOND[drawn(change)],
                _ => PACKETS_PER_SECOND,
            };
            paced(end, rate, || {
                socket.send_to(&[0; 100], (RECEIVER, PORT)).map(drop)
            })
        }
    }
}

/// Returns the index of a rate in the table, in a pseudo-random order (Knuth's MMIX generator).
fn drawn(change: u32) -> usize {
    let state = (0..=change).fold(7u64, |state, _| {
        state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1)
    });
    (state >> 33) as usize % CHANGING_PER_SECOND.len()
}

/// Calls `send` at a changing rate until the end.
fn paced(
    end: Instant,
    rate: impl Fn(u32) -> u32,
    mut once: impl FnMut() -> io::Result<()>,
) -> Outcome<()> {
    for change in 0.. {
        let begin = Instant::now();
        let per_second = rate(change);
        for number in 0.. {
            let due = begin + Duration::from_secs(1) / per_second * number;
            if due >= end {
                return Ok(());
            }
            if due >= begin + CHANGES_EVERY {
                break;
            }
            thread::sleep(due.saturating_duration_since(Instant::now()));
            once()?;
        }
    }
    Ok(())
}

/// The receiver may not listen yet.
fn connect(end: Instant) -> Outcome<TcpStream> {
    loop {
        match TcpStream::connect((RECEIVER, PORT)) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() >= end => return Err(error.into()),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Reads the traffic, and spins at each datagram while the last line of standard input asks for it.
fn receive(kind: &str, spin: Duration) -> Outcome<()> {
    if kind == "tcp" {
        let (mut stream, _) = TcpListener::bind(("0.0.0.0", PORT))?.accept()?;
        io::copy(&mut stream, &mut io::sink())?;
        return Ok(());
    }
    let spins = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&spins);
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            told.store(line == "spin", Ordering::Relaxed);
        }
    });
    let socket = UdpSocket::bind(("0.0.0.0", PORT))?;
    // It ends without a sender.
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    loop {
        socket.recv(&mut [0; 200])?;
        let until = Instant::now() + spin;
        while spins.load(Ordering::Relaxed) && Instant::now() < until {
            std::hint::spin_loop();
        }
    }
}

/// Starts this program again, in a namespace of the pair.
fn start(veth: &Veth, side: Side, args: &[&str]) -> Outcome<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args).stdin(Stdio::piped());
    Ok(veth.inside(side).run(move |()| command.spawn())??)
}

/// Turns polling on at the receiver, for both settings.
fn poll(veth: &Veth) -> Outcome<()> {
    for (side, feature, value) in [(Side::Sender, "tso", "off"), (Side::Receiver, "gro", "on")] {
        let mut ethtool = Command::new("ethtool");
        ethtool.args(["-K", INTERFACE, feature, value]);
        let status = veth.inside(side).run(move |()| ethtool.status())??;
        if !status.success() {
            return Err(format!("ethtool -K {INTERFACE} {feature} {value} failed").into());
        }
    }
    let write = |()| -> io::Result<()> {
        let folder = format!("/sys/class/net/{INTERFACE}");
        fs::write(format!("{folder}/napi_defer_hard_irqs"), "2147483647")?;
        fs::write(
            format!("{folder}/gro_flush_timeout"),
            POLLING_PERIOD_NS.to_string(),
        )
    };
    Ok(veth.inside(Side::Receiver).run(move |_| write(()))??)
}

/// Two programs in a pair of namespaces, and the name of the receiver's namespace.
struct Traffic {
    netns: String,
    place: PathBuf,
    receiver: Child,
    sender: Child,
}

impl Traffic {
    fn start(veth: &Veth, kind: &str, duration: Duration, spin_us: u64) -> Outcome<Self> {
        let netns = format!("nicpoll-truth-{}", std::process::id());
        let place = veth.namespace(Side::Receiver).keep_as(&netns)?;
        let seconds = duration.as_secs().to_string();
        Ok(Traffic {
            place,
            receiver: start(
                veth,
                Side::Receiver,
                &["receive", kind, &spin_us.to_string()],
            )?,
            sender: start(veth, Side::Sender, &["send", kind, &seconds])?,
            netns,
        })
    }

    fn end(mut self) -> Outcome<()> {
        for child in [&mut self.sender, &mut self.receiver] {
            child.kill()?;
            child.wait()?;
        }
        Ok(netns::forget(&self.place)?)
    }
}

/// Returns the duration plus the time before the first block, in which the comparison measures the traffic.
fn with_its_beginning(duration: Duration) -> Duration {
    duration + Duration::from_secs(60)
}

fn compare(seconds: u64, spin_us: u64) -> Outcome<()> {
    let veth = Veth::build()?;
    poll(&veth)?;
    let duration = Duration::from_secs(seconds);
    let mut traffic = Traffic::start(&veth, "udp", with_its_beginning(duration), spin_us)?;
    let found = spun(&mut traffic, duration);
    traffic.end()?;
    let answer = found?;
    let (Some(load), Some(cpu)) = (answer.load, answer.cpu) else {
        return Err(format!("no answer: {:?}", answer.no_verdict).into());
    };
    let rate = f64::midpoint(
        load.reference_packets_per_second,
        load.judged_packets_per_second,
    );
    let found = cpu.equal_load;
    println!(
        "{} pairs, {rate:.0} packets/s; true {:.4} cores, found {:.4} [{:.4}, {:.4}], {:?}",
        answer.pairs,
        rate * spin_us as f64 / 1e6,
        found.cores,
        found.cores_low,
        found.cores_high,
        answer.verdict
    );
    Ok(())
}

fn request(netns: &str, plan: AbPlan) -> AbRequest {
    AbRequest {
        name: Name::whole(INTERFACE),
        values: KnobValues::polling(POLLING_PERIOD_NS + POLLING_PERIOD_NS / 1_000),
        words: String::from("a spin"),
        netns: Some(String::from(netns)),
        plan,
        is_disruptive: false,
        loss_factor: 1e6,
    }
}

fn run(request: AbRequest, mut told: impl FnMut(bool)) -> Outcome<AbAnswer> {
    let prepared = prepare(request, Journal::of_this_machine())?;
    let guard = guard_of_this_program()?;
    let never = AtomicBool::new(false);
    let ended = prepared.run(Origin::default(), guard, None, &never, &mut |progress| {
        if let AbProgress::Block { is_judged, .. } = progress {
            told(is_judged);
        }
    })?;
    Ok(ended.outcome?.answer)
}

fn spun(traffic: &mut Traffic, duration: Duration) -> Outcome<AbAnswer> {
    let mut stdin = traffic
        .receiver
        .stdin
        .take()
        .ok_or("the receiver has no input")?;
    let request = request(&traffic.netns, plan(duration, BLOCK, None, draw_seed()));
    run(request, |is_judged| {
        // A missing receiver shows in the answer.
        let _ = writeln!(stdin, "{}", if is_judged { "spin" } else { "rest" });
    })
}

/// Compares the current setting with itself: prints a line for each run, then the number of each verdict.
fn null(runs: u64, only: Option<&str>) -> Outcome<()> {
    let kinds = KINDS.into_iter();
    let mut words: BTreeMap<String, u32> = BTreeMap::new();
    let (mut all, mut wrong) = (0, 0);
    for kind in kinds.filter(|kind| only.is_none_or(|only| only == *kind)) {
        for _ in 0..runs {
            let answer = null_run(kind)?;
            let word = match answer.verdict {
                Some(verdict) => verdict.to_string(),
                None => format!("no verdict: {:?}", answer.no_verdict),
            };
            let found = answer.cpu.map(|cpu| (cpu.reference_cores, cpu.equal_load));
            let found = found.map_or(String::new(), |(of, found)| {
                let [low, middle, high] = [found.cores_low, found.cores, found.cores_high];
                format!("{middle:+.4} [{low:+.4}, {high:+.4}] of {of:.3} cores")
            });
            println!("{kind}\t{} pairs\t{word}\t{found}", answer.pairs);
            let is_wrong = answer.verdict.map(Verdict::without_weight);
            wrong += u32::from(matches!(is_wrong, Some(Verdict::Better | Verdict::Worse)));
            all += 1;
            *words.entry(format!("{kind}: {word}")).or_default() += 1;
        }
    }
    for (word, count) in words {
        println!("{count:5}  {word}");
    }
    println!("{wrong} of {all} runs have a word for a difference");
    match f64::from(wrong) <= f64::from(all) * FALSE_ALARMS_MAX {
        true => Ok(()),
        false => Err("more than 3 of 60".into()),
    }
}

fn null_run(kind: &str) -> Outcome<AbAnswer> {
    let veth = Veth::build()?;
    let traffic = Traffic::start(&veth, kind, with_its_beginning(NULL_RUN), 0)?;
    let plan = AbPlan {
        is_null: true,
        ..plan(NULL_RUN, NULL_BLOCK, None, draw_seed())
    };
    let found = run(request(&traffic.netns, plan), |_| ());
    traffic.end()?;
    found
}
