//! A UDP relay that loses or repeats datagrams on request.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::Duration;

use nicpoll_traffic::Signals;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToServer,
    ToClient,
}

/// Between one client and one server.
pub struct Relay {
    client_side: UdpSocket,
    server_side: UdpSocket,
}

impl Relay {
    pub fn to(server: SocketAddr) -> Self {
        let socket = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            nicpoll_sys::socket::set_receive_buffer(&socket, 16 << 20).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_millis(1)))
                .unwrap();
            socket
        };
        let server_side = socket();
        server_side.connect(server).unwrap();
        Relay {
            client_side: socket(),
            server_side,
        }
    }

    /// The address for the client to send to.
    pub fn address(&self) -> SocketAddr {
        self.client_side.local_addr().unwrap()
    }

    /// Forwards each datagram as many times as `copies` says, until the sender is done.
    pub fn run(&self, signals: &Signals, mut copies: impl FnMut(Direction, &[u8]) -> u32) {
        let mut buffer = [0; 2048];
        let mut client = None;
        let mut is_last_round = false;
        while !is_last_round {
            is_last_round = signals.sender_done.load(Ordering::Acquire);
            while let Ok((length, source)) = self.client_side.recv_from(&mut buffer) {
                client = Some(source);
                for _ in 0..copies(Direction::ToServer, &buffer[..length]) {
                    self.server_side.send(&buffer[..length]).unwrap();
                }
            }
            while let Ok(length) = self.server_side.recv(&mut buffer) {
                let client = client.unwrap();
                for _ in 0..copies(Direction::ToClient, &buffer[..length]) {
                    self.client_side.send_to(&buffer[..length], client).unwrap();
                }
            }
        }
    }
}
