//! What strangers get of a server that is open to them: how many bytes come back for each byte that a
//! forged peer sends, and what thousands of short connections leave behind. All of it is on loopback,
//! every address of which is this host's, so that a socket of each stands for a forged source.
//!
//! ```console
//! $ cargo build --release && cargo run --release -p nicpoll --example strangers [PEERS] [CONNECTIONS]
//! ```
//!
//! It ends with 1 when a peer got more than it sent, or the server serves nobody afterwards.

use std::env;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nicpoll_iperf::Amount;
use nicpoll_iperf::wire::{ClientHeader, DatagramHeader, Directions};
use nicpoll_wire::rr::Message;

/// Peers at a time, so that this program's descriptors last.
const PEERS_AT_ONCE: u32 = 200;
/// How long answers are waited for.
const PATIENCE: Duration = Duration::from_millis(400);
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
        // What a first client has made stays.
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
    Ok(ExitCode::from(u8::from(!is_well)))
}

/// A server, until it is dropped.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(name: &str, options: &[&str]) -> Result<Self> {
        let address = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let port = address.port().to_string();
        let mut command = nicpoll(name)?;
        command.args(options).args(["-B", "127.0.0.1", "-p", &port]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        // It listens when its kernel has the socket; a connection would be a stranger's.
        thread::sleep(Duration::from_secs(3));
        Ok(Server { child, address })
    }

    /// Whether a client of ours is served now.
    fn serves(&self, name: &str, options: &[&str]) -> Result<bool> {
        let port = self.address.port().to_string();
        let mut client = nicpoll(name)?;
        client.args(["-c", "127.0.0.1", "-p", &port]).args(options);
        client.stdout(Stdio::null());
        Ok(client.status()?.success())
    }

    /// Its memory in KiB, its threads and its descriptors.
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

/// The program beside this example.
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

/// Bytes of payload that came back, over those that were sent: of all peers, and of the one that got most.
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

/// What one peer sends: by its number, one of what might make a server answer with more.
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

/// A connection that ends after nothing, a byte, or a part of a header or message.
fn connect_shortly(server: SocketAddr, number: u32) -> Result<()> {
    let bytes = [0, 1, 20][number as usize % 3];
    for _ in 0..1_000 {
        let Ok(mut stream) = TcpStream::connect(server) else {
            // No room for it yet.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        // A server that is full has closed it.
        let _ = stream.write_all(&[0; 20][..bytes]);
        return Ok(());
    }
    anyhow::bail!("{server} takes no connections any more")
}
