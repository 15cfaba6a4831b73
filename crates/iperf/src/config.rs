//! Configuration of streams, at either end and over either protocol. The command line fills these types; the
//! streams read them directly.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::str::FromStr;
use std::time::Duration;

use nicpoll_model::{Protocol, Rate};
use nicpoll_sys::socket;
use nicpoll_traffic::sockets::{self, SocketBuffer};
use nicpoll_traffic::udp_server::ServerConfig;
use rustix::net::{SocketFlags, SocketType, sockopt};

use crate::wire::{Amount, ClientHeader, Dialect, Directions};

/// Length of a TCP write or read: iperf's default.
pub const TCP_LENGTH_BYTES: usize = 131_072;
/// UDP payload of a datagram: iperf's default over IPv4.
pub const UDP_LENGTH_BYTES: usize = 1470;

/// UDP rate by default.
pub(crate) const UDP_RATE: Rate = match Rate::bits_per_second(1 << 20) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// Default limit on the time to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Configuration of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamConfig {
    /// Transport protocol (-u).
    pub protocol: Protocol,
    /// Direction of the data (-d, -r, -R, --full-duplex, and -L); clients only. A server that sends uses the
    /// sending options below, too.
    pub directions: Directions,
    /// How much to send, the TCP header included (-t, -n). The last datagram carries the remaining bytes, but
    /// at least the minimum payload.
    pub amount: Amount,
    /// Limit on the sending time, whatever the amount. Set at a server; never above the protocol's own limit.
    pub time_max: Duration,
    /// Send rate, and for a server's TCP reads the maximum rate (-b); unlimited when `None`.
    pub rate: Option<Rate>,
    /// Length of a TCP write or read, at least 1, or UDP payload of a datagram, 16 to 65507 bytes (-l). A
    /// client's first datagram is at least 76 bytes long, to hold the whole header. A server's value applies
    /// when the client states none.
    pub length_bytes: usize,
    /// Datagrams to send back to back, at least 1; the rate then sets the time between bursts (--burst).
    pub burst_datagrams: u32,
    /// Whether system calls may move several datagrams (not with --no-batch). A UDP sender that is unpaced or
    /// late hands the kernel up to 64 datagrams at a time (`UDP_SEGMENT`). A UDP receiver takes consecutive
    /// datagrams together (`UDP_GRO`), with one arrival time, and lets fast streams queue for 50 µs. A fast TCP
    /// stream is read in full buffers.
    pub is_batched: bool,
    /// Socket buffer to ask for, in the direction of the data (-w); the kernel's choice when `None`.
    pub buffer_bytes: Option<usize>,
    /// Interval of the records (-i); no records when `None`.
    pub interval: Option<Duration>,
    /// Socket options (-S, -T and the device in -c and -B).
    pub socket: SocketOptions,
    /// Disables Nagle's algorithm (`TCP_NODELAY`, -N).
    pub no_delay: bool,
    /// Maximum segment size to ask for (`TCP_MAXSEG`, -M).
    pub max_segment_bytes: Option<u16>,
    /// Congestion control algorithm (-Z).
    pub congestion_control: Option<String>,
    /// Number of parallel streams that the header states (-P).
    pub streams: u32,
    /// Whether to send the client header (not with -C). Without it, TCP carries filler from the first byte,
    /// datagrams have zeros in place of the header, and only [`Directions::Forward`] is possible.
    pub has_header: bool,
    /// The version to speak over UDP (--dialect). Servers up to 2.0.9 understand only [`Dialect::V2_0_2`] and
    /// [`Dialect::V2_0_8`]. Later ones understand [`Dialect::V2_1`], but those of 2.0.x count its first
    /// datagram as lost. Other dialects than that allow only [`Directions::Forward`]; the first two also
    /// [`Directions::Dual`].
    pub dialect: Dialect,
    /// Whether to record gaps between datagrams and transit times.
    pub records_times: bool,
}

impl StreamConfig {
    /// TCP with iperf's defaults: one stream, unpaced, 131072-byte writes, and reads that return whatever is
    /// available.
    pub fn tcp(amount: Amount) -> Self {
        StreamConfig {
            protocol: Protocol::Tcp,
            directions: Directions::Forward,
            amount,
            time_max: Duration::MAX,
            rate: None,
            length_bytes: TCP_LENGTH_BYTES,
            burst_datagrams: 1,
            is_batched: false,
            buffer_bytes: None,
            interval: None,
            socket: SocketOptions::default(),
            no_delay: false,
            max_segment_bytes: None,
            congestion_control: None,
            streams: 1,
            has_header: true,
            dialect: Dialect::V2_1,
            records_times: false,
        }
    }

    /// UDP, unpaced, one datagram per system call.
    pub fn udp(payload_bytes: usize, amount: Amount) -> Self {
        StreamConfig {
            protocol: Protocol::Udp,
            length_bytes: payload_bytes,
            ..Self::tcp(amount)
        }
    }

    /// Limits on the sending time and on the bytes sent; the stream ends at whichever comes first.
    pub(crate) fn bounds(&self) -> (Duration, u64) {
        match self.amount {
            Amount::Time(duration) => (duration.min(self.time_max), u64::MAX),
            Amount::Bytes(bytes) => (self.time_max, bytes),
        }
    }

    /// Adds this stream's requests to a client header. A length equal to `usual_length` is not stated.
    pub(crate) fn asked(&self, plain: ClientHeader, usual_length: usize) -> ClientHeader {
        let mut header = plain;
        header.threads = self.streams;
        if self.length_bytes != usual_length {
            header.buffer_bytes = self.length_bytes.try_into().unwrap_or(u32::MAX);
        }
        header.ask_for(self.directions);
        if let Some(extension) = &mut header.extension {
            extension.type_of_service = self.socket.type_of_service.unwrap_or(0).into();
        }
        header
    }
}

/// Configuration of a client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The server.
    pub peer: SocketAddr,
    /// Local address; port 0 lets the kernel choose.
    pub bind: Option<SocketAddr>,
    /// Limit on the time to connect over TCP.
    pub connect_timeout: Duration,
    /// The stream to send.
    pub stream: StreamConfig,
}

impl ClientConfig {
    /// A client whose local address the kernel chooses.
    pub fn new(peer: SocketAddr, stream: StreamConfig) -> Self {
        ClientConfig {
            peer,
            bind: None,
            connect_timeout: CONNECT_LIMIT,
            stream,
        }
    }

    /// A TCP stream to a server; ends after `amount`.
    pub fn tcp(peer: SocketAddr, amount: Amount) -> Self {
        Self::new(peer, StreamConfig::tcp(amount))
    }

    /// A UDP stream of `payload_bytes` datagrams to a server; ends after `amount`.
    pub fn udp(peer: SocketAddr, payload_bytes: usize, amount: Amount) -> Self {
        Self::new(peer, StreamConfig::udp(payload_bytes, amount))
    }
}

/// Where to listen, how to read, and how to send to clients that ask for data.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// Where to listen; port 0 lets the kernel choose.
    pub bind: SocketAddr,
    /// How long to wait for the client, and then for each further byte or datagram.
    pub idle_timeout: Duration,
    /// Clients allowed to ask for UDP data; none when empty.
    pub allow: Vec<AddressPrefix>,
    /// At a client (-d and -r): the server to accept streams from, and no other.
    pub of_server: Option<SocketAddr>,
    /// Options of each stream.
    pub stream: StreamConfig,
}

impl ListenerConfig {
    /// A server that sends UDP data to nobody.
    pub fn new(bind: SocketAddr, idle_timeout: Duration, stream: StreamConfig) -> Self {
        ListenerConfig {
            bind,
            idle_timeout,
            allow: Vec::new(),
            of_server: None,
            stream,
        }
    }

    /// Whether to serve a client at this address.
    pub(crate) fn is_for(&self, client: IpAddr) -> bool {
        let server = self.of_server.map(|server| server.ip().to_canonical());
        server.is_none_or(|server| server == client.to_canonical())
    }

    /// TCP with iperf's defaults.
    pub fn tcp(server: ServerConfig) -> Self {
        Self::of(server, StreamConfig::tcp(Amount::Bytes(0)))
    }

    /// UDP: one datagram per system call, no intervals, no socket options, no times recorded.
    pub fn udp(server: ServerConfig) -> Self {
        let stream = StreamConfig::udp(UDP_LENGTH_BYTES, Amount::Bytes(0));
        Self::of(server, stream)
    }

    fn of(server: ServerConfig, stream: StreamConfig) -> Self {
        let buffer_bytes = server.receive_buffer_bytes;
        let stream = StreamConfig {
            buffer_bytes,
            ..stream
        };
        Self::new(server.bind, server.idle_timeout, stream)
    }
}

/// Asks for a receive buffer within the host's limit (`net.core.rmem_max`), as iperf does, or leaves it to the
/// kernel; returns the size granted.
pub(crate) fn receive_window(fd: impl AsFd, asked: Option<usize>) -> io::Result<SocketBuffer> {
    let granted = match asked {
        Some(bytes) => socket::ask_receive_buffer(fd, bytes)?,
        None => socket::receive_buffer(fd)?,
    };
    Ok(sockets::described(asked, granted))
}

/// Socket options other than the buffer; the kernel's choice where `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SocketOptions {
    /// Network device to bind the socket to.
    pub device: Option<String>,
    /// IP type of service, or IPv6 traffic class.
    pub type_of_service: Option<u8>,
    /// IP time to live, or IPv6 hop limit; the multicast one when the peer is a group.
    pub time_to_live: Option<u8>,
}

impl SocketOptions {
    /// Makes a socket to send to or listen at `address`.
    pub(crate) fn open(
        &self,
        kind: SocketType,
        flags: SocketFlags,
        address: SocketAddr,
    ) -> io::Result<OwnedFd> {
        let fd = sockets::open(address, kind, flags)?;
        self.apply(&fd, address)?;
        Ok(fd)
    }

    fn apply(&self, fd: impl AsFd, address: SocketAddr) -> io::Result<()> {
        if let Some(device) = &self.device {
            socket::bind_to_device(&fd, device)?;
        }
        let is_multicast = address.ip().is_multicast();
        if let Some(service) = self.type_of_service {
            set_type_of_service(&fd, address, service)?;
        }
        let Some(hops) = self.time_to_live else {
            return Ok(());
        };
        let (option, set) = match (address, is_multicast) {
            (SocketAddr::V4(_), true) => (
                "IP_MULTICAST_TTL",
                sockopt::set_ip_multicast_ttl(&fd, hops.into()),
            ),
            (SocketAddr::V4(_), false) => ("IP_TTL", sockopt::set_ip_ttl(&fd, hops.into())),
            (SocketAddr::V6(_), true) => (
                "IPV6_MULTICAST_HOPS",
                sockopt::set_ipv6_multicast_hops(&fd, hops.into()),
            ),
            (SocketAddr::V6(_), false) => (
                "IPV6_UNICAST_HOPS",
                sockopt::set_ipv6_unicast_hops(&fd, Some(hops)),
            ),
        };
        socket::named(option, set)
    }
}

/// Sets the IP type of service, or the IPv6 traffic class, of a socket to or at `address`.
pub(crate) fn set_type_of_service(
    fd: impl AsFd,
    address: SocketAddr,
    service: u8,
) -> io::Result<()> {
    let is_ipv4 = match address {
        SocketAddr::V4(_) => true,
        SocketAddr::V6(v6) => {
            let set = sockopt::set_ipv6_tclass(&fd, service.into());
            socket::named("IPV6_TCLASS", set)?;
            // An IPv6 socket with an IPv4-mapped address sends IPv4 packets and takes their TOS from `IP_TOS`.
            v6.ip().to_ipv4_mapped().is_some()
        }
    };
    if is_ipv4 {
        socket::named("IP_TOS", sockopt::set_ip_tos(&fd, service))?;
    }
    Ok(())
}

/// An address prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPrefix {
    address: IpAddr,
    prefix_bits: u8,
}

impl AddressPrefix {
    /// Whether the prefix contains `address`. IPv4-mapped IPv6 addresses count as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let equal_bits = match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros()
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        equal_bits >= u32::from(self.prefix_bits)
    }
}

impl FromStr for AddressPrefix {
    type Err = &'static str;

    /// Parses `address` or `address/prefix`; without a prefix length, the whole address must match. The error
    /// states the expected form.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RIGHT: &str = "an address or address/prefix, such as 10.0.0.0/8";
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| RIGHT)?;
        let address = address.to_canonical();
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match prefix {
            None => bits,
            // `parse` would accept a sign.
            Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => {
                prefix.parse().map_err(|_| RIGHT)?
            }
            Some(_) => return Err(RIGHT),
        };
        if prefix_bits > bits {
            return Err(RIGHT);
        }
        Ok(AddressPrefix {
            address,
            prefix_bits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_what_begins_with_its_prefix() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.1.2.3/31", "10.1.2.2", "10.1.2.4"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.2"),
            ("10.1.2.3", "::ffff:10.1.2.3", "::10.1.2.3"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::1", "::1", "::2"),
            ("::/0", "fe80::1", "10.0.0.1"),
        ] {
            let parsed: AddressPrefix = network.parse().unwrap();
            assert!(parsed.contains(inside.parse().unwrap()), "{network}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{network}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        let texts = "|/|10.0.0.0/|10.0.0.0/33|10.0.0.0/+8|::/129|10.0.0/8|host|10.0.0.0/8/8|\
            10.0.0.0/256";
        for text in texts.split('|') {
            let error = text.parse::<AddressPrefix>().unwrap_err();
            assert!(error.contains("such as 10.0.0.0/8"), "{text}");
        }
    }

    #[test]
    fn no_amount_is_beyond_the_bounds() {
        let hour = Duration::from_secs(3600);
        let second = Duration::from_secs(1);
        for (asked, bounded) in [
            (Amount::Time(second), (second, u64::MAX)),
            (Amount::Time(Duration::MAX), (hour, u64::MAX)),
            (Amount::Bytes(0), (hour, 0)),
            (Amount::Bytes(i32::MAX as u64), (hour, i32::MAX as u64)),
        ] {
            let mut stream = StreamConfig::tcp(asked);
            stream.time_max = hour;
            assert_eq!(stream.bounds(), bounded);
        }
    }
}
