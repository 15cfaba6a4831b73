//! A live comparison with a known truth: under one setting the receiver spins for so long at each packet, and nothing
//! else differs. Prints what was found beside what is true.
//!
//! Both settings are polling, with periods that differ by a thousandth: they cost the same. Sender and receiver are
//! processes of their own, since what nicpoll itself uses is not counted.
//!
//! Needs root and ethtool. `cargo run --release -p nicpoll-ab --example ab_truth [SECONDS [SPIN_US]]`.

use std::error::Error;
use std::fs;
use std::io::{self, BufRead, Write};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_ab::{AbProgress, AbRequest, plan, prepare};
use nicpoll_lab::{INTERFACE, Veth, draw_seed};
use nicpoll_model::{Origin, Side};
use nicpoll_switch::{
    GUARD_COMMAND, Journal, Name, POLLING_PERIOD_NS, Values, guard_of_this_program, watch_over,
};
use nicpoll_sys::netns;

const PACKETS_PER_SECOND: u32 = 2_000;
const PORT: u16 = 9_000;
const BLOCK: Duration = Duration::from_secs(2);

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
        Some("send") => send(&args[1]),
        Some("receive") => receive(Duration::from_micros(args[1].parse()?)),
        _ => compare(number(0, 150)?, number(1, 40)?),
    }
}

/// Datagrams at a steady rate, until it is killed.
fn send(to: &str) -> Outcome<()> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    let begin = Instant::now();
    for number in 0.. {
        let due = begin + Duration::from_secs(1) / PACKETS_PER_SECOND * number;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        socket.send_to(&[0; 100], (to, PORT))?;
    }
    Ok(())
}

/// Reads datagrams, and spins at each while the last line of standard input says so.
fn receive(spin: Duration) -> Outcome<()> {
    let spins = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&spins);
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            told.store(line == "spin", Ordering::Relaxed);
        }
    });
    let socket = UdpSocket::bind(("0.0.0.0", PORT))?;
    loop {
        socket.recv(&mut [0; 200])?;
        let until = Instant::now() + spin;
        while spins.load(Ordering::Relaxed) && Instant::now() < until {
            std::hint::spin_loop();
        }
    }
}

/// This program once more, in a namespace of the pair.
fn start(veth: &Veth, side: Side, args: &[&str]) -> Outcome<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args).stdin(Stdio::piped());
    Ok(veth.inside(side).run(move |()| command.spawn())??)
}

/// Has the receiver poll already, so that both settings are polling.
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

fn compare(seconds: u64, spin_us: u64) -> Outcome<()> {
    let veth = Veth::build()?;
    poll(&veth)?;
    let name = format!("nicpoll-truth-{}", std::process::id());
    let place = veth.namespace(Side::Receiver).keep_as(&name)?;
    let mut receiver = start(&veth, Side::Receiver, &["receive", &spin_us.to_string()])?;
    let mut sender = start(&veth, Side::Sender, &["send", "198.18.0.2"])?;
    let ran = run(&name, seconds, spin_us, &mut receiver);
    for child in [&mut sender, &mut receiver] {
        child.kill()?;
        child.wait()?;
    }
    netns::forget(&place)?;
    ran
}

fn run(netns: &str, seconds: u64, spin_us: u64, receiver: &mut Child) -> Outcome<()> {
    let request = AbRequest {
        name: Name::whole(INTERFACE),
        values: Values::polling(POLLING_PERIOD_NS + POLLING_PERIOD_NS / 1_000),
        words: String::from("a spin"),
        netns: Some(String::from(netns)),
        plan: plan(Duration::from_secs(seconds), BLOCK, None, draw_seed()),
        is_disruptive: false,
        loss_factor: 1e6,
    };
    let origin = Origin::default();
    let mut stdin = receiver.stdin.take().ok_or("the receiver has no input")?;
    let prepared = prepare(request, Journal::of_this_machine())?;
    let guard = guard_of_this_program()?;
    let never = AtomicBool::new(false);
    let ended = prepared.run(origin, guard, None, &never, &mut |progress| {
        if let AbProgress::Block { is_judged, .. } = progress {
            // A receiver that is gone shows in the answer.
            let _ = writeln!(stdin, "{}", if is_judged { "spin" } else { "rest" });
        }
    })?;
    let answer = ended.outcome?.answer;
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
