//! The cost of strangers to an open server: bytes that come back for each byte of a forged peer, leftovers of
//! thousands of short connections, and memory of a thousand connections at once. All of it is on loopback: every
//! address there is this host's, so a socket of each represents a forged source.
//!
//! ```console
//! $ cargo build --release && cargo run --release -p nicpoll --example strangers [PEERS] [CONNECTIONS]
//! ```
//!
//! Then 1,000 of them connect at once and stay: `serve` is asked for a page of 51 MB by each, which takes nothing of
//! it. The peak memory of the server's processes is printed as a table.
//!
//! Exits with 1 if a peer got more than it sent, or the server serves nobody afterwards.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nicpoll_iperf::Amount;
use nicpoll_iperf::wire::{ClientHeader, DatagramHeader, Directions};
use nicpoll_model::{Study, StudyKind, Trial};
use nicpoll_store::Store;
use nicpoll_wire::rr::Message;

/// Peers at a time, limited by this program's descriptors.
const PEERS_AT_ONCE: u32 = 200;
/// Time to wait for answers.
const PATIENCE: Duration = Duration::from_millis(400);
/// Longer than a server takes a stranger to be no idle one.
const IDLE_AFTER: Duration = Duration::from_millis(1500);
/// A server of either kind, with its client for as short a test as there is.
const SERVERS: [(&str, &[&str], &[&str]); 2] = [
    ("iperf", &["-s", "-u"], &["-u", "-n", "10K"]),
    ("rr", &["-s"], &["-n", "10"]),
];

fn main() -> Result<ExitCode> {
    let mut counts = env::args().skip(1).map(|count| count.parse::<u32>());
    let peers = counts.next().transpose()?.unwrap_or(6_000);
    let connections = counts.next().transpose()?.unwrap_or(20_000);
    ensure!(
        peers <= 60_000 && connections <= 25_000,
        "at most 60000 peers, 25000 connections"
    );
    let mut is_well = true;
    for (name, options, client) in SERVERS {
        let server = Server::start(name, options)?;
        let (all, most) = amplification(name, server.address, peers)?;
        println!(
            "{name}: {peers} forged peers got {all:.3} of the bytes they sent, no peer more than {most:.3}"
        );
        is_well &= most <= 1.0 && server.serves(name, client)?;
    }
    for (name, options, client) in [("iperf", &["-s"][..], &["-n", "10K"][..]), SERVERS[1]] {
        let server = Server::start(name, options)?;
        // Memory of a first client stays.
        is_well &= server.serves(name, client)?;
        let before = server.holds()?;
        for number in 0..connections {
            connect_shortly(server.address, number)?;
        }
        thread::sleep(Duration::from_secs(6));
        let after = server.holds()?;
        println!(
            "{name}: {connections} short connections; (KiB, threads, descriptors) were {before:?}, are {after:?}"
        );
        is_well &= after.1 <= before.1 && after.2 <= before.2 && server.serves(name, client)?;
    }
    println!(
        "\n| server | processes | peak memory, MiB | another client is served |\n|---|---|---|---|"
    );
    for (name, options, client) in [("iperf", &["-s"][..], &["-n", "10K"][..]), SERVERS[1]] {
        let server = Server::start(name, options)?;
        let _strangers = strangers(server.address, &[0; 20])?;
        thread::sleep(IDLE_AFTER);
        let peak = peak_kib(server.child.id()).context("the server has ended")?;
        let is_served = server.serves(name, client)?;
        println!("| `{name} -s` | 1 | {} | {is_served} |", mib(peak));
    }
    is_well &= of_serve()?;
    Ok(ExitCode::from(u8::from(!is_well)))
}

/// Strangers at once.
const AT_ONCE: u32 = 1_000;
/// Memory limit of `serve` then, KiB.
const SERVE_MAX_KIB: u64 = 64 << 10;
/// A study whose page is made long below.
const STUDY: &str = include_str!("../../report/tests/golden/demo.json");
/// Copies of its trials in the long page.
const TIMES: u32 = 1_700;

fn mib(kib: u64) -> f64 {
    (kib as f64 / 102.4).round() / 10.0
}

/// Opens connections that send this and stay.
fn strangers(server: SocketAddr, says: &[u8]) -> Result<Vec<TcpStream>> {
    let connect = |_| -> Result<TcpStream> {
        let mut stream = TcpStream::connect(server)?;
        // A server that is full has closed it.
        let _ = stream.write_all(says);
        Ok(stream)
    };
    (0..AT_ONCE).map(connect).collect()
}

/// Returns the peak memory of a process.
fn peak_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.split_whitespace().next()?.parse().ok()
}

/// Starts `serve`, which prints its address.
fn serving(command: &mut Command) -> Result<Server> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    let stdout = child.stdout.take().context("no output")?;
    BufReader::new(stdout).read_line(&mut line)?;
    let address = line.trim().trim_matches('/').replace("http://", "");
    Ok(Server {
        child,
        address: address.parse()?,
    })
}

/// Has a thousand strangers ask `serve` for the same long page. Returns whether all was well.
fn of_serve() -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("studies.db");
    let mut head: Study = serde_json::from_str(STUDY)?;
    let trials = std::mem::take(&mut head.trials);
    let owner = String::from("nobody");
    let planned = trials.len() as u32 * TIMES;
    let store = Store::to_write(&file)?;
    let mut recording = store.begin(StudyKind::Demo, &head, planned, "{}", &owner)?;
    let blocks = 1 + trials.iter().map(|it| it.block).max().unwrap_or_default();
    let all: Vec<Trial> = (0..TIMES)
        .flat_map(|time| trials.iter().map(move |it| (time, it.clone())))
        .zip(1..)
        .map(|((time, mut trial), sequence)| {
            trial.block += time * blocks;
            trial.sequence = sequence;
            trial
        })
        .collect();
    recording.trials(&head, all.iter().map(|it| (it, Duration::ZERO)))?;
    recording.finish(&head)?;

    let mut command = nicpoll("serve")?;
    command
        .args(["--listen", "127.0.0.1:0", "--store"])
        .arg(&file);
    let server = serving(&mut command)?;
    let address = server.address;
    let pid = server.child.id();
    let is_over = AtomicBool::new(false);
    let (page, made, length) = thread::scope(|scope| {
        let watching = scope.spawn(|| watch_children(pid, &is_over));
        let asked = || -> Result<usize> {
            let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
            let mut first = TcpStream::connect(address)?;
            first.write_all(request("/study/1").as_bytes())?;
            let length = io::copy(&mut first, &mut io::sink())? as usize;
            let _strangers = strangers(address, request("/study/1").as_bytes())?;
            let mut list = TcpStream::connect(address)?;
            list.write_all(request("/").as_bytes())?;
            let mut answer = String::new();
            list.read_to_string(&mut answer)?;
            ensure!(
                answer.starts_with("HTTP/1.1 200"),
                "nobody else is served: {length} bytes, then {answer:.300}"
            );
            Ok(length)
        };
        let length = asked();
        is_over.store(true, Ordering::Relaxed);
        let (page, made) = watching.join().expect("it only looks");
        length.map(|length| (page, made, length))
    })?;
    let own = peak_kib(pid).context("the server has ended")?;
    println!(
        "| `serve`, a page of {} MB | 2 | {} | true |",
        length / 1_000_000,
        mib(own + page)
    );
    println!(
        "| the process that makes the page, and ends | 1 | {} | |",
        mib(made)
    );
    Ok(own + page < SERVE_MAX_KIB)
}

/// Returns the peak memory of the permanent child, and the greatest of the others.
fn watch_children(pid: u32, is_over: &AtomicBool) -> (u64, u64) {
    let mut peaks = BTreeMap::<u32, u64>::new();
    while !is_over.load(Ordering::Relaxed) {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        for child in children.split_whitespace().filter_map(|it| it.parse().ok()) {
            let peak = peak_kib(child).unwrap_or_default();
            let known = peaks.entry(child).or_default();
            *known = peak.max(*known);
        }
        thread::sleep(Duration::from_millis(10));
    }
    // The first child answers strangers.
    let first = peaks.pop_first().map_or(0, |(_, peak)| peak);
    (first, peaks.into_values().max().unwrap_or_default())
}

/// Where servers listen: below the ports that the kernel gives to clients, and keeps for a minute after each.
static PORTS: AtomicU16 = AtomicU16::new(21_000);

/// A server, until it is dropped.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(name: &str, options: &[&str]) -> Result<Self> {
        let number = PORTS.fetch_add(1, Ordering::Relaxed);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, number));
        let port = number.to_string();
        let mut command = nicpoll(name)?;
        command.args(options).args(["-B", "127.0.0.1", "-p", &port]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        // A connection to check that it listens would count as a stranger's.
        thread::sleep(Duration::from_secs(3));
        Ok(Server { child, address })
    }

    /// Returns whether our own client is served now.
    fn serves(&self, name: &str, options: &[&str]) -> Result<bool> {
        let port = self.address.port().to_string();
        let mut client = nicpoll(name)?;
        client.args(["-c", "127.0.0.1", "-p", &port]).args(options);
        client.stdout(Stdio::null());
        Ok(client.status()?.success())
    }

    /// Returns its memory in KiB, its threads and its descriptors.
    fn holds(&self) -> Result<(u64, usize, usize)> {
        let process = format!("/proc/{}", self.child.id());
        let status = fs::read_to_string(format!("{process}/status"))?;
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.and_then(|memory| memory.split_whitespace().next());
        let count = |of: &str| fs::read_dir(format!("{process}/{of}")).map(Iterator::count);
        Ok((
            memory.context("no VmRSS")?.parse()?,
            count("task")?,
            count("fd")?,
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the program next to this example.
fn nicpoll(name: &str) -> Result<Command> {
    let example = env::current_exe()?;
    let folder = example
        .ancestors()
        .nth(2)
        .context("not in a target folder")?;
    let mut command = Command::new(folder.join("nicpoll"));
    command.arg(name).stdin(Stdio::null());
    Ok(command)
}

/// Returns the ratio of returned to sent payload: of all peers, and of the one that got most.
fn amplification(name: &str, server: SocketAddr, peers: u32) -> Result<(f64, f64)> {
    let (mut sent, mut received, mut most) = (0, 0, 0.0f64);
    let numbers: Vec<u32> = (0..peers).collect();
    for some in numbers.chunks(PEERS_AT_ONCE as usize) {
        let sockets: Vec<(UdpSocket, usize)> = some
            .iter()
            .map(|&number| {
                let address = Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 9, 0, 1)) + number);
                let socket = UdpSocket::bind((address, 0))?;
                socket.set_nonblocking(true)?;
                let mut bytes = 0;
                for datagram in datagrams(name, number) {
                    bytes += socket.send_to(&datagram, server)?;
                }
                Ok((socket, bytes))
            })
            .collect::<Result<_>>()?;
        thread::sleep(PATIENCE);
        for (socket, bytes) in sockets {
            let mut back = 0;
            let mut buffer = [0; 65_536];
            while let Ok(length) = socket.recv(&mut buffer) {
                back += length;
            }
            sent += bytes;
            received += back;
            most = most.max(back as f64 / bytes as f64);
        }
    }
    Ok((received as f64 / sent as f64, most))
}

/// Returns the datagrams of a peer, by its number: a kind that might make a server answer with more.
fn datagrams(name: &str, number: u32) -> Vec<Vec<u8>> {
    if name == "rr" {
        let request = |bytes: u32| Message {
            response_bytes: bytes,
            ..Message::request(u64::from(number), 1)
        };
        let message = match number % 5 {
            4 => request(64).response(),
            kind => request([64, 65, 1_400, 60_000][kind as usize]),
        };
        return vec![message.to_bytes().to_vec()];
    }
    let amount = Amount::Time(Duration::from_secs(10));
    let first = |directions: Directions, bytes: usize| {
        let mut header = ClientHeader::for_udp(5001, amount, 1_000_000_000);
        header.ask_for(directions);
        let mut payload = datagram(1, bytes.max(128));
        header.write_to(&mut payload[16..]);
        payload.truncate(bytes);
        payload
    };
    match number % 6 {
        0 => vec![datagram(-1, 16)],
        1 => vec![datagram(1, 16), datagram(-2, 16), datagram(-2, 16)],
        2 => vec![datagram(1, 128), datagram(-2, 128)],
        3 => vec![first(Directions::Reverse, 76)],
        4 => vec![first(Directions::FullDuplex, 128)],
        _ => {
            let dual = Directions::Dual {
                port: 9,
                is_at_once: true,
            };
            vec![first(dual, 1470), datagram(-2, 20)]
        }
    }
}

fn datagram(id: i64, bytes: usize) -> Vec<u8> {
    let header = DatagramHeader {
        id,
        sent_seconds: 1,
        sent_microseconds: 0,
    };
    let mut payload = vec![0; bytes];
    header.write_to(&mut payload);
    payload
}

/// Makes a connection that ends after nothing, a byte, or a part of a header or message.
fn connect_shortly(server: SocketAddr, number: u32) -> Result<()> {
    let bytes = [0, 1, 20][number as usize % 3];
    for _ in 0..1_000 {
        let Ok(mut stream) = TcpStream::connect(server) else {
            // The server has no room yet.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        // A server that is full has closed it.
        let _ = stream.write_all(&[0; 20][..bytes]);
        return Ok(());
    }
    anyhow::bail!("{server} takes no connections any more")
}
