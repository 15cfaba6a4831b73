//! A UDP server for one client.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use super::{PATIENCE, Report, V2_0_10, Version, filler, put, word};

/// The originals answer repeated FINs until a second of silence; this is enough here.
const SILENCE: Duration = Duration::from_millis(300);
const ANSWERS_MAX: u32 = 10;

pub struct Server {
    version: Version,
    socket: UdpSocket,
    /// FINs lost by the network.
    pub fins_lost: u32,
}

/// What it saw.
#[derive(Debug)]
pub struct Outcome {
    pub first: Vec<u8>,
    /// Every FIN that arrived.
    pub fins: Vec<Vec<u8>>,
    /// Its counts, which it also reported to the client.
    pub report: Report,
}

impl Server {
    pub fn bind(version: Version) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        nicpoll_sys::socket::set_receive_buffer(&socket, 16 << 20).unwrap();
        Server {
            version,
            socket,
            fins_lost: 0,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    pub fn run(mut self) -> Outcome {
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = filler(2048);
        let (length, client) = self.socket.recv_from(&mut buffer).unwrap();
        // The acceptor takes the first datagram without counting it.
        let first = buffer[..length].to_vec();
        self.socket.connect(client).unwrap();
        if self.version >= V2_0_10 && length >= 20 && word(&first, 16) & 0x4000_0000 != 0 {
            self.socket.send(&self.version.header_ack()).unwrap();
        }
        let mut report = Report {
            jitter: (0, 7),
            elapsed: (1, 16_340),
            ..Report::default()
        };
        loop {
            let length = self.socket.recv(&mut buffer).unwrap();
            let (id, is_fin) = self.read_id(&buffer);
            if is_fin && self.fins_lost > 0 {
                self.fins_lost -= 1;
                continue;
            }
            report.count(id, length);
            if is_fin {
                let fins = self.answer(&mut buffer, length, &report);
                return Outcome {
                    first,
                    fins,
                    report,
                };
            }
        }
    }

    /// Reads the id like this version; also returns whether it ends the test.
    fn read_id(&self, datagram: &[u8]) -> (u64, bool) {
        let low = word(datagram, 0);
        let is_negative = low & 0x8000_0000 != 0;
        match self.version.0 {
            0..=9 => (u64::from((low as i32).unsigned_abs()), is_negative),
            10..=12 => (u64::from(low & 0x7fff_ffff), is_negative),
            _ => {
                let wide = word(datagram, 16) & 0x0800_0000 != 0;
                let high = if wide { word(datagram, 12) } else { 0 };
                let id = (u64::from(high) << 32 | u64::from(low)) as i64;
                let id = if wide { id } else { i64::from(low as i32) };
                (id.unsigned_abs(), id < 0)
            }
        }
    }

    /// Answers the FIN and its repetitions from the buffer into which the FIN was read.
    fn answer(&self, buffer: &mut [u8], length: usize, report: &Report) -> Vec<Vec<u8>> {
        let mut fins = vec![buffer[..length].to_vec()];
        self.socket.set_read_timeout(Some(SILENCE)).unwrap();
        for _ in 0..ANSWERS_MAX {
            put(buffer, self.version.base(), &self.report_words(report));
            self.socket.send(&buffer[..1470]).unwrap();
            let Ok(length) = self.socket.recv(buffer) else {
                break;
            };
            fins.push(buffer[..length].to_vec());
        }
        fins
    }

    fn report_words(&self, report: &Report) -> Vec<u32> {
        let low = |value: u64| value as u32;
        let high = |value: u64| (value >> 32) as u32;
        let mark = if self.version.has_wide_ids() {
            0x8800_0000
        } else {
            0x8000_0000
        };
        let mut words = vec![
            mark,
            high(report.bytes),
            low(report.bytes),
            report.elapsed.0,
            report.elapsed.1,
            low(report.lost),
            low(report.out_of_order),
            low(report.datagrams),
        ];
        if (10..=12).contains(&self.version.0) {
            words.push(high(report.datagrams));
        }
        words.extend([report.jitter.0, report.jitter.1]);
        if self.version.has_wide_ids() {
            // Transit times; the last one counts.
            words.extend([0, 2, 0, 79, 0, 554, 0, 5, 0, 0, 0, 1, 93, 91, 1]);
            let wide = [report.lost, report.out_of_order, report.datagrams];
            words.extend(wide.map(high));
        }
        words
    }
}

impl Report {
    /// Counts like the originals, including the FIN.
    fn count(&mut self, id: u64, length: usize) {
        self.bytes += length as u64;
        let expected = self.datagrams + 1;
        if id < expected {
            self.out_of_order += 1;
        } else {
            self.lost += id - expected;
        }
        self.datagrams = self.datagrams.max(id);
    }
}
