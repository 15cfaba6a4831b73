//! Helper programs of the benchmark: a receiver with a plain socket, one that waits for each packet, one that
//! measures delays, one that measures gaps, a spinner, one that only sleeps, and one whose XDP program redirects all frames.

use std::hint;
use std::io;
use std::net::UdpSocket;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use aya::Ebpf;
use aya::maps::DevMap;
use aya::programs::Xdp;
use nicpoll_engine::Work;
use nicpoll_stats::Latencies;
use nicpoll_switch::Control;
use nicpoll_sys::schedule;
use nicpoll_sys::socket::{ReceiveBatch, Wait, enable_arrival_times};
use nicpoll_sys::xdp::{AttachMode, XdpLink};
use nicpoll_wire::frame::Mark;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, clock_gettime};

use crate::trial::CPUS;

const NS_PER_SECOND: u64 = 1_000_000_000;
/// netreceive's receive buffer.
const RECEIVE_BUFFER_BYTES: usize = 128 * 1024;

/// Runs a helper: `socket PORT WORK_NS`, `poll PORT`, `delay PORT`, `gaps PORT RATE`, `spin MILLISECONDS`,
/// `sleep HZ`, `redirect`. `delay` and `gaps` end with a line of input, `spin` by itself, all others with their process.
pub fn run(words: &[String]) -> Result<()> {
    let number = |index: usize| -> Result<u64> {
        let word = words.get(index).ok_or_else(|| anyhow!("too few words"))?;
        Ok(word.parse()?)
    };
    match words.first().map(String::as_str) {
        Some("socket") => receive(number(1)? as u16, number(2)?),
        Some("poll") => wait_for_each(number(1)? as u16),
        Some("delay") => tell_delay(number(1)? as u16),
        Some("gaps") => tell_gaps(number(1)? as u16, number(2)?),
        Some("spin") => {
            println!("{:.4}", spin(Duration::from_millis(number(1)?)));
            Ok(())
        }
        Some("sleep") => sleep_by_ticks(number(1)?),
        Some("redirect") => redirect(),
        other => Err(anyhow!("there is no helper {other:?}")),
    }
}

fn socket(port: u16) -> Result<UdpSocket> {
    let socket = UdpSocket::bind(("0.0.0.0", port))?;
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES)?;
    println!("ready");
    Ok(socket)
}

/// netreceive's loop: one receive a datagram. Then as much work as the sink does with `--work`.
fn receive(port: u16, work_ns: u64) -> Result<()> {
    let work = Work::of_ns(work_ns);
    let socket = socket(port)?;
    let mut datagram = [0; 2048];
    loop {
        if socket.recv(&mut datagram).is_ok() {
            work.spend();
        }
    }
}

/// poll(2), then one receive.
fn wait_for_each(port: u16) -> Result<()> {
    let socket = socket(port)?;
    let mut datagram = [0; 2048];
    loop {
        let _ = poll(&mut [PollFd::new(&socket, PollFlags::IN)], None);
        let _ = socket.recv(&mut datagram);
    }
}

/// Reports the delays of packets that carry their sending time.
fn tell_delay(port: u16) -> Result<()> {
    let mut datagram = [0; 2048];
    tell(socket(port)?, move |socket| {
        let bytes = socket.recv(&mut datagram)?;
        let time = clock_gettime(ClockId::Monotonic);
        let now_ns = time.tv_sec as u64 * NS_PER_SECOND + time.tv_nsec as u64;
        Ok(Mark::parse(&datagram[..bytes]).and_then(|mark| mark.age_ns(now_ns)))
    })
}

/// Reports by how much gaps between arrivals differ from those of a rate, by the kernel's time of arrival.
fn tell_gaps(port: u16, rate: u64) -> Result<()> {
    let socket = socket(port)?;
    enable_arrival_times(&socket)?;
    let (mut batch, mut last_ns) = (ReceiveBatch::new(1, 2048)?, None);
    tell(socket, move |socket| {
        let came_ns = batch.receive(socket, Wait::ForFirst)?.next();
        let came_ns = came_ns.and_then(|datagram| datagram.arrival_ns);
        let before_ns = std::mem::replace(&mut last_ns, came_ns);
        let gap_ns = came_ns.zip(before_ns).map(|(now, before)| now - before);
        Ok(gap_ns.map(|gap_ns| gap_ns.abs_diff((NS_PER_SECOND / rate) as i64)))
    })
}

/// Reports a time of each datagram, if it has one.
fn tell(
    socket: UdpSocket,
    mut next_ns: impl FnMut(&UdpSocket) -> io::Result<Option<u64>> + Send + 'static,
) -> Result<()> {
    let latencies = Arc::new(Mutex::new(Latencies::default()));
    let recorded = Arc::clone(&latencies);
    thread::spawn(move || {
        while let Ok(ns) = next_ns(&socket) {
            let mut all = recorded.lock().unwrap_or_else(PoisonError::into_inner);
            ns.into_iter().for_each(|ns| all.record_ns(ns));
        }
    });
    io::stdin().read_line(&mut String::new())?;
    let all = latencies.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{}", serde_json::to_string(&all.summary())?);
    Ok(())
}

/// Sleeps until each tick, on the core and at the priority of an engine: the cost of waking up alone.
fn sleep_by_ticks(hz: u64) -> Result<()> {
    schedule::pin(CPUS[1])?;
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    let mut tick = clock_gettime(ClockId::Monotonic);
    println!("ready");
    loop {
        tick.tv_nsec += 1_000_000_000 / hz as i64;
        tick.tv_sec += tick.tv_nsec / 1_000_000_000;
        tick.tv_nsec %= 1_000_000_000;
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &tick);
    }
}

/// Returns the share of a core that an ordinary program gets.
fn spin(duration: Duration) -> f64 {
    let used = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let (begun, before) = (Instant::now(), used());
    while begun.elapsed() < duration {
        (0..1000).for_each(|_| hint::spin_loop());
    }
    (used() - before) / begun.elapsed().as_secs_f64()
}

/// Has an XDP program redirect every frame from em0 to em1, unseen.
fn redirect() -> Result<()> {
    let mut control = Control::new();
    let mut ifindex = |name| control.interface(name).map(|it| it.ifindex);
    let (from, to) = (ifindex("em0")?, ifindex("em1")?);
    let object = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../observe/bpf/xdp_redirect.bpf.o"
    );
    let mut loaded = Ebpf::load_file(object).context(object)?;
    let exit = loaded.map_mut("EXIT").context("no map EXIT")?;
    DevMap::try_from(exit)?.set(0, to, None, 0)?;
    let program = loaded.program_mut("redirect_all_frames");
    let program: &mut Xdp = program.context("no such program")?.try_into()?;
    program.load()?;
    let _link = XdpLink::attach(program.fd()?.as_fd(), from, AttachMode::Driver)?;
    println!("ready");
    loop {
        thread::park();
    }
}
