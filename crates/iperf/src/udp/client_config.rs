//! What a UDP client is told to send.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nicpoll_model::{Rate, RateUnit};

use crate::wire::datagram::{PAYLOAD_BYTES_MIN, SHARED_CLOCK_BYTES_MIN, mark_shared_clock};
use crate::wire::{self, ClientHeader, Dialect, Directions, upper_flags};

use super::PAYLOAD_BYTES_DEFAULT;
use crate::input::Input;
use crate::pace::Amount;
use crate::socket_options::SocketOptions;

/// What to send where, and how.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The server.
    pub peer: SocketAddr,
    /// Which way data flow. What is said of sending here holds for the server as well when it sends.
    pub directions: Directions,
    /// UDP payload of each datagram, 20 to 65507 bytes.
    pub payload_bytes: usize,
    /// How much to send. The last datagram carries what is left of a number of bytes, but never less
    /// than the least payload.
    pub amount: Amount,
    /// Payload behind the header of each datagram, to its end; the pattern when `None`. With it
    /// `amount` does not count.
    pub input: Option<Input>,
    /// Rate to keep to; as fast as it goes when `None`.
    pub rate: Option<Rate>,
    /// Datagrams to send back to back at a time, 1 at least, as far apart in time as the rate says.
    pub burst_datagrams: u32,
    /// Whether to tell the server that both ends have one clock; the payload must have room for that
    /// ([`SHARED_CLOCK_BYTES_MIN`]).
    pub has_shared_clock: bool,
    /// Datagrams that one system call may hand to the kernel; 64 at most are. More than one is a train
    /// (`UDP_SEGMENT`), which passes the sender's stack once. A stream with a rate sends one a call
    /// while that keeps up.
    pub datagrams_per_call: usize,
    /// Send buffer to ask for, and receive buffer where data are received; `None` leaves it to the
    /// kernel.
    pub send_buffer_bytes: Option<usize>,
    /// Length of the intervals to record; none when `None`.
    pub interval: Option<Duration>,
    /// Local address; port 0 lets the kernel choose.
    pub bind: Option<SocketAddr>,
    /// Options of the socket.
    pub options: SocketOptions,
    /// Parallel streams that the header tells the server of.
    pub threads: u32,
    /// The version to speak as. Servers of 2.0.9 and older understand [`Dialect::V2_0_2`] only. Later
    /// ones understand [`Dialect::V2_1`], but those of 2.0.x count its first datagram as lost. Only
    /// [`Directions::Forward`] is possible with another than that.
    pub dialect: Dialect,
    /// Whether to record the gaps between datagrams.
    pub records_times: bool,
    /// Whether datagrams carry the client header; without, zeros are at its place, which no server
    /// takes for one.
    pub has_header: bool,
}

impl ClientConfig {
    /// One stream, as fast as it goes with one datagram a system call.
    pub fn new(peer: SocketAddr, payload_bytes: usize, amount: Amount) -> Self {
        ClientConfig {
            peer,
            directions: Directions::Forward,
            payload_bytes,
            amount,
            input: None,
            rate: None,
            burst_datagrams: 1,
            has_shared_clock: false,
            datagrams_per_call: 1,
            send_buffer_bytes: None,
            interval: None,
            bind: None,
            options: SocketOptions::default(),
            threads: 1,
            records_times: false,
            has_header: true,
            dialect: Dialect::V2_1,
        }
    }

    fn header(&self) -> ClientHeader {
        let amount = match self.amount {
            Amount::Time(duration) => wire::Amount::from_duration(duration),
            Amount::Bytes(bytes) => wire::Amount::Bytes(bytes.try_into().unwrap_or(u32::MAX)),
        };
        let (rate, rate_flags) = self.header_rate();
        let mut header = match self.dialect {
            Dialect::V2_0_2 => ClientHeader::for_udp_v2_0_5(self.peer.port(), amount, rate),
            _ => ClientHeader::for_udp(self.peer.port(), amount, rate),
        };
        header.threads = self.threads;
        if self.payload_bytes != PAYLOAD_BYTES_DEFAULT {
            header.buffer_bytes = self.payload_bytes.try_into().unwrap_or(u32::MAX);
        }
        header.ask_for(self.directions);
        if let Some(extension) = &mut header.extension {
            extension.upper_flags |= rate_flags;
            extension.type_of_service = self.options.type_of_service.unwrap_or(0).into();
        }
        header
    }

    /// The rate as the header states it: in bits where the dialect knows no others, and where there is no
    /// whole number of packets.
    fn header_rate(&self) -> (u64, u16) {
        let Some(rate) = self.rate else {
            return (0, 0);
        };
        let whole = rate.whole_per_second();
        match whole.filter(|_| rate.unit() == RateUnit::PacketsPerSecond) {
            Some(packets) if self.dialect != Dialect::V2_0_2 => {
                (packets, upper_flags::RATE_IN_PACKETS)
            }
            _ => (rate.bits_of(8 * self.payload_bytes as u64), 0),
        }
    }

    /// How long the test takes, if that was asked for.
    pub(super) fn duration(&self) -> Option<Duration> {
        match self.amount {
            Amount::Time(duration) => Some(duration),
            Amount::Bytes(_) => None,
        }
    }

    /// The least payload that holds the headers.
    pub(super) fn least_payload_bytes(&self) -> usize {
        match self.has_shared_clock {
            true => SHARED_CLOCK_BYTES_MIN,
            false => PAYLOAD_BYTES_MIN,
        }
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        let mut payload = vec![0; self.payload_bytes];
        self.dialect.prepare_payload(&mut payload, &self.header());
        if !self.has_header {
            let offset = self.dialect.client_header_offset();
            let place = payload.iter_mut().skip(offset);
            place.take(ClientHeader::BYTES).for_each(|byte| *byte = 0);
        } else if self.has_shared_clock {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            mark_shared_clock(&mut payload, now.unwrap_or_default());
        }
        payload
    }
}
