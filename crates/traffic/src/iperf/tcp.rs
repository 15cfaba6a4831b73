//! TCP streams, client to server.

mod client;
mod listener;
mod low_water;
mod server;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use nicpoll_sys::socket;

pub use client::{ClientConfig, ClientError, ClientReport, run_client};
pub use listener::{Accepted, Listener, ListenerConfig};
pub use server::{End, Server, ServerConfig, ServerError, ServerReport};

use crate::iperf::observer::{Connected, TcpStart};
use crate::sockets::SocketBuffer;

/// Length of a write and of a read, iperf's default.
pub const BUFFER_BYTES: usize = 131_072;

fn connected(
    stream: &TcpStream,
    peer: SocketAddr,
    buffer: SocketBuffer,
    connecting: Option<Duration>,
) -> io::Result<Connected> {
    let info = socket::tcp_info(stream)?;
    Ok(Connected {
        local: stream.local_addr()?,
        peer,
        buffer,
        tcp: Some(TcpStart {
            segment_bytes: info.send_segment_bytes,
            congestion_window_segments: info.congestion_window_segments,
            round_trip: info.round_trip,
            connecting,
        }),
    })
}
