//! Shared by the tests: servers on loopback, and hand-written datagrams.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use nicpoll_iperf::udp::ServerConfig;
use nicpoll_iperf::wire::{ClientHeader, DatagramHeader, prepare_payload};
use nicpoll_iperf::{ClientConfig, Listen, Observer, Streams, Total, tcp, udp};
use nicpoll_model::Protocol;
use nicpoll_traffic::Signals;

pub const LOOPBACK: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
/// Longer than any wait in a test.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Room for everything sent, even if nothing is read meanwhile.
pub const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// A server on a port that the kernel chooses.
pub fn server_config(ip: impl Into<IpAddr>) -> ServerConfig {
    ServerConfig {
        bind: SocketAddr::new(ip.into(), 0),
        receive_buffer_bytes: None,
        idle_timeout: PATIENCE,
    }
}

/// The same with a receive buffer of this size.
pub fn roomy(ip: impl Into<IpAddr>, bytes: usize) -> ServerConfig {
    ServerConfig {
        receive_buffer_bytes: Some(bytes),
        ..server_config(ip)
    }
}

/// The streams of a listener's next client.
pub fn accepted(listener: &mut dyn Listen, signals: &Signals) -> Streams {
    let taken = listener.accept(signals, PATIENCE).unwrap().unwrap();
    (taken.open)(signals).unwrap()
}

/// Runs one stream from a client to a listener with an observer at each end; returns both totals.
pub fn observed(
    listener: &mut dyn Listen,
    config: &ClientConfig,
    [at_client, at_server]: [&mut (dyn Observer + Send); 2],
) -> (Total, Total) {
    let signals = Signals::default();
    thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let incoming = accepted(listener, &signals).incoming.unwrap();
            incoming(&signals, at_server).unwrap()
        });
        let sent = match config.stream.protocol {
            Protocol::Tcp => tcp::run_client(config, &signals, at_client),
            Protocol::Udp => udp::run_client(config, &signals, at_client),
        };
        (sent.unwrap(), receiving.join().unwrap())
    })
}

/// The same without observers.
pub fn stream(listener: &mut dyn Listen, config: &ClientConfig) -> (Total, Total) {
    observed(listener, config, [&mut (), &mut ()])
}

/// A receiver's counts of lost, late, duplicate and foreign datagrams.
pub fn faults(received: &Total) -> [i64; 4] {
    let receipt = received.receipt();
    let [late, again] = [receipt.out_of_order, receipt.duplicates].map(|it| it as i64);
    [receipt.lost, late, again, received.foreign_datagrams as i64]
}

/// A datagram of 2.1 with this id and client header.
pub fn datagram(id: i64, length: usize, client: &ClientHeader) -> Vec<u8> {
    let mut payload = vec![0; length];
    prepare_payload(&mut payload, client);
    let header = DatagramHeader::at(id, Duration::from_secs(1_700_000_000));
    header.write_to(&mut payload);
    payload
}

/// A socket connected to a server, with a read timeout of `wait`.
pub fn udp_client(server: SocketAddr, wait: Duration) -> UdpSocket {
    let client = UdpSocket::bind((server.ip(), 0)).unwrap();
    client.connect(server).unwrap();
    client.set_read_timeout(Some(wait)).unwrap();
    client
}
