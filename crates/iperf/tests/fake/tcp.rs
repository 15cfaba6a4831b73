//! TCP clients and servers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use super::{Header, PATIENCE, V2_0_10, V2_0_13, Version, filler, put, word, words};

const BUFFER_BYTES: usize = 10_000;

/// Sends `writes` buffers; returns the total number of bytes.
pub fn send(version: Version, header: Header, server: SocketAddr, writes: usize) -> u64 {
    let mut stream = TcpStream::connect(server).unwrap();
    let mut buffer = filler(BUFFER_BYTES);
    let mut sent = 0;
    match (header, version) {
        (Header::LeftOut, _) => {}
        (_, old) if old < V2_0_10 => {
            let v1 = words(&[0, 1, 5001, 0, 0, 0xffff_ff9c]);
            stream.write_all(&v1).unwrap();
            sent += v1.len() as u64;
            buffer[..v1.len()].copy_from_slice(&v1);
        }
        (_, V2_0_13) => put(&mut buffer, 0, &[0x0800_0000]),
        _ => put(&mut buffer, 0, &[0]),
    }
    for _ in 0..writes {
        stream.write_all(&buffer).unwrap();
        sent += buffer.len() as u64;
    }
    // They close both directions at once.
    sent
}

/// Like `send` with one buffer, after the header of -X was acknowledged; returns the acknowledgement, too.
pub fn send_after_peer_detection(version: Version, server: SocketAddr) -> (u64, [u8; 28]) {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut header = filler(60);
    let flags = if version.has_wide_ids() {
        0x4800_0000
    } else {
        0x4000_0000
    };
    put(&mut header, 0, &[flags]);
    let stated = [1, 28, 0, 0x0002_0000, version.0 << 16 | 3, 0, 10_000_000];
    put(&mut header, 24, &stated);
    stream.write_all(&header).unwrap();
    let mut ack = [0; 28];
    stream.read_exact(&mut ack).unwrap();
    stream.write_all(&filler(BUFFER_BYTES)).unwrap();
    ((60 + BUFFER_BYTES) as u64, ack)
}

/// What a server received from one client.
#[derive(Debug)]
pub struct Received {
    pub flags: u32,
    pub bytes: u64,
}

pub struct Server {
    version: Version,
    listener: TcpListener,
}

impl Server {
    pub fn bind(version: Version) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        Server { version, listener }
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// Accepts one connection and reads it to its end.
    pub fn run(self) -> Received {
        let (mut stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut header = [0; 24];
        if self.version < V2_0_10 {
            // A single read, as in the original.
            let length = stream.read(&mut header).unwrap();
            assert_eq!(length, 24, "the header came in parts");
        } else {
            stream.read_exact(&mut header).unwrap();
        }
        let flags = word(&header, 0);
        if self.version >= V2_0_10 && flags & 0x4000_0000 != 0 {
            stream.write_all(&self.version.header_ack()).unwrap();
        }
        let mut bytes = header.len() as u64;
        let mut buffer = [0; 65_536];
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return Received { flags, bytes },
                read => bytes += read as u64,
            }
        }
    }
}
