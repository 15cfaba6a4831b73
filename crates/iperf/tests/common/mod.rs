//! What several tests need: servers on loopback, and datagrams written by hand.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use nicpoll_iperf::udp::ServerConfig;
use nicpoll_iperf::wire::{ClientHeader, DatagramHeader, prepare_payload};

pub const LOOPBACK: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
/// Longer than anything takes that a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Room for what is sent, should nothing be read meanwhile.
pub const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// A server at a port of the kernel's choice.
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

/// A datagram of 2.1 with this id and client header.
pub fn datagram(id: i64, length: usize, client: &ClientHeader) -> Vec<u8> {
    let mut payload = vec![0; length];
    prepare_payload(&mut payload, client);
    let header = DatagramHeader::at(id, Duration::from_secs(1_700_000_000));
    header.write_to(&mut payload);
    payload
}

/// A socket that is connected to a server and waits no longer than `wait`.
pub fn udp_client(server: SocketAddr, wait: Duration) -> UdpSocket {
    let client = UdpSocket::bind((server.ip(), 0)).unwrap();
    client.connect(server).unwrap();
    client.set_read_timeout(Some(wait)).unwrap();
    client
}
