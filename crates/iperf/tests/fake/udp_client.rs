//! A UDP client.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use super::{Header, Report, V2_0_8, V2_0_10, Version, filler, put, word};

/// The originals wait this long for an answer before they send the FIN again.
const FIN_EVERY: Duration = Duration::from_millis(250);
const FINS_MAX: u32 = 10;

pub struct Client {
    pub version: Version,
    pub header: Header,
    pub payload_bytes: usize,
    /// Ids of data from 0, in the order sent.
    pub ids: Vec<u32>,
    /// The number that the client believes it sent.
    pub sent: u32,
    /// FINs lost by the network, and then answers lost.
    pub fins_lost: u32,
    pub answers_lost: u32,
    /// How long to wait for an answer. Longer than the originals, so a busy host does not change what is sent.
    pub patience: Duration,
}

/// The outcome.
#[derive(Debug, Default)]
pub struct Outcome {
    pub fins_sent: u32,
    /// The last answer, in the length received.
    pub answer: Option<Vec<u8>>,
    /// The report in it, if it is where this version expects it.
    pub report: Option<Report>,
}

impl Client {
    pub fn new(version: Version, sent: u32) -> Self {
        Client {
            version,
            header: Header::Sent,
            payload_bytes: 1470,
            ids: (0..sent).collect(),
            sent,
            fins_lost: 0,
            answers_lost: 0,
            patience: Duration::from_secs(3),
        }
    }

    pub fn run(&self, server: SocketAddr) -> Outcome {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.connect(server).unwrap();
        for &id in &self.ids {
            socket.send(&self.datagram(id, 0)).unwrap();
        }
        self.end(&socket)
    }

    /// Sends FINs until one is answered.
    fn end(&self, socket: &UdpSocket) -> Outcome {
        let mut outcome = Outcome::default();
        let (mut fins_lost, mut answers_lost) = (self.fins_lost, self.answers_lost);
        for retry in 0..FINS_MAX {
            outcome.fins_sent += 1;
            if fins_lost > 0 {
                fins_lost -= 1;
                continue;
            }
            socket.send(&self.fin(retry)).unwrap();
            let is_to_be_answered = answers_lost == 0;
            let wait = if is_to_be_answered {
                self.patience
            } else {
                FIN_EVERY
            };
            socket.set_read_timeout(Some(wait)).unwrap();
            let mut buffer = [0; 2048];
            if let Ok(length) = socket.recv(&mut buffer) {
                if !is_to_be_answered {
                    // Lost on the way: the client would still be waiting.
                    answers_lost -= 1;
                    std::thread::sleep(FIN_EVERY);
                    continue;
                }
                outcome.report = self.report(&buffer[..length]);
                outcome.answer = Some(buffer[..length].to_vec());
                return outcome;
            }
        }
        outcome
    }

    fn fin(&self, retry: u32) -> Vec<u8> {
        let complement = self.sent.wrapping_neg();
        match self.version.0 {
            0..=9 => self.datagram(complement, 0),
            10..=12 => self.datagram((self.sent | 0x8000_0000) - retry, 0),
            _ => self.datagram(complement.wrapping_sub(retry), u32::MAX),
        }
    }

    fn datagram(&self, id: u32, id_high: u32) -> Vec<u8> {
        let mut payload = filler(self.payload_bytes.max(64));
        put(&mut payload, 0, &[id, 0x6b00_bbde, 0x0003_522b]);
        if self.version.has_wide_ids() {
            put(&mut payload, 12, &[id_high]);
        }
        if self.header == Header::Sent {
            let (port, rate, amount) = (5001, 0x0010_0000, 0xffff_ff9c);
            match self.version {
                V2_0_8 => {
                    let header = [0, 1, port, 0, rate, amount, rate, 0, 0];
                    put(&mut payload, 12, &header);
                }
                older if older < V2_0_8 => {
                    put(&mut payload, 12, &[0, 1, port, 0, rate, amount]);
                }
                later if later.has_wide_ids() => put(&mut payload, 16, &[0x0800_0000]),
                _ => put(&mut payload, 16, &[0]),
            }
        }
        payload.truncate(self.payload_bytes);
        payload
    }

    /// What this version prints as the server's report.
    fn report(&self, answer: &[u8]) -> Option<Report> {
        let base = self.version.base();
        let at = |index: usize| word(answer, base + 4 * index);
        if answer.len() < self.version.shortest_report() || at(0) & 0x8000_0000 == 0 {
            return None;
        }
        // It prints the loss only with a rate, which is the quotient of these two.
        if self.version == V2_0_8 && (at(23) == 0 || at(24) == 0) {
            return None;
        }
        let wide = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let has_wide_counters = self.version.has_wide_ids() && at(0) & 0x0800_0000 != 0;
        let high = |index| if has_wide_counters { at(index) } else { 0 };
        let is_10_to_12 = self.version >= V2_0_10 && !self.version.has_wide_ids();
        let shift = usize::from(is_10_to_12);
        Some(Report {
            bytes: wide(at(1), at(2)),
            elapsed: (at(3), at(4)),
            lost: wide(high(25), at(5)),
            out_of_order: wide(high(26), at(6)),
            datagrams: wide(if is_10_to_12 { at(8) } else { high(27) }, at(7)),
            jitter: (at(8 + shift), at(9 + shift)),
        })
    }
}
