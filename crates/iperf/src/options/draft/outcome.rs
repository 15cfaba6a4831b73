//! What the options come to when all are there.

use std::time::Duration;

use nicpoll_model::{Rate, RateUnit};

use super::{Draft, Mode, Time, Way, wrong_side};
use crate::input::Input;
use crate::options::error::OptionError;
use crate::options::table::{Meaning, OptionSide};
use crate::options::{Amount, Bind, ClientOptions, Common, Options, ServerOptions};
use crate::wire::datagram::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, SHARED_CLOCK_BYTES_MIN};
use crate::wire::{Dialect, Directions};
use crate::{UDP_RATE, tcp, udp};

/// With the longer header of IPv6, the same packet.
const UDP_LENGTH_BYTES_IPV6: usize = 1450;
const SEND_TIME: Duration = Duration::from_secs(10);
/// The most bytes that the header can ask a server for.
const HEADER_BYTES_MAX: u64 = i32::MAX as u64;
/// A UDP client that waits longer than this between datagrams is no test.
const GAP_MAX: Duration = Duration::from_secs(60);
/// Each is a socket that is looked at in turn.
const SERVER_PORTS_MAX: u16 = 64;
const SECOND: Duration = Duration::from_secs(1);

impl Draft {
    /// What all of it comes to.
    pub fn finish(mut self) -> Result<Options, OptionError> {
        match self.mode.take() {
            None => Err(OptionError::NoMode),
            Some(Mode::Server) => {
                self.judge(OptionSide::Server)?;
                self.server().map(Options::Server)
            }
            Some(Mode::Client { host, device }) => {
                self.judge(OptionSide::Client)?;
                self.client(host, device).map(Options::Client)
            }
        }
    }

    /// An option of the other end is passed over with a warning, whether it is left out or not.
    fn judge(&mut self, side: OptionSide) -> Result<(), OptionError> {
        for (spec, source) in std::mem::take(&mut self.to_judge) {
            if spec.side != OptionSide::Both && spec.side != side {
                self.warn(wrong_side(&source, side.name()));
            } else if let Meaning::LeftOut(_, instead) = spec.meaning {
                return Err(OptionError::NotYet {
                    option: source,
                    instead,
                });
            } else if spec.needs_udp && !self.common.is_udp() {
                return Err(OptionError::NeedsUdp(format!(
                    "--{}",
                    spec.long.first().copied().unwrap_or_default()
                )));
            }
        }
        Ok(())
    }

    fn client(
        mut self,
        host: String,
        device: Option<String>,
    ) -> Result<ClientOptions, OptionError> {
        self.common.stream.length_bytes = self.length_bytes(true)?;
        self.common.stream.directions = self.directions()?;
        if let Some(Bind { device, .. }) = &mut self.common.bind
            && let Some(device) = device.take()
        {
            self.warn(format!(
                "WARNING: Client cannot set bind device {device} via -B consider using -c"
            ));
        }
        let amount = match (self.bytes, self.time.take()) {
            (Some(bytes), _) => Amount::Bytes(bytes),
            (None, None) => Amount::Time(SEND_TIME),
            (None, Some(Time::For(time))) => Amount::Time(time),
            (None, Some(Time::Endless)) => {
                self.warn(
                    "WARNING: client will send traffic forever or until an external signal (e.g. SIGINT \
                     or SIGTERM) occurs to stop it",
                );
                Amount::ENDLESS
            }
        };
        self.common.stream.amount = amount;
        self.common.stream.streams = self.streams()?;
        self.common.stream.socket.device = device;
        self.judge_client()?;
        let (is_udp, stream) = (self.common.is_udp(), &mut self.common.stream);
        stream.rate = client_rate(
            stream.rate,
            is_udp,
            stream.length_bytes,
            stream.burst_datagrams,
        )?;
        let is_stdin = stream.input == Some(Input::Stdin);
        if self.repeat.is_some() && (amount == Amount::ENDLESS || is_stdin) {
            return Err(OptionError::Repeat);
        }
        Ok(ClientOptions {
            repeat: self.repeat,
            host,
            common: self.common.complete(),
        })
    }

    /// How many streams there are: of a range of ports, one to each at least.
    fn streams(&mut self) -> Result<u32, OptionError> {
        let asked = self.parallel.unwrap_or(1);
        let Some(last) = self.common.last_port else {
            return Ok(asked);
        };
        let first = u32::from(self.common.port);
        let ports = u32::from(last) - first + 1;
        if asked < ports {
            let text = "WARNING: port-range and -P mismatch (adjusting -P to";
            self.warn(format!("{text} {ports})"));
            return Ok(ports);
        }
        let last = first + asked - 1;
        if last > u16::MAX.into() {
            return Err(OptionError::Value {
                option: String::from("-P"),
                value: asked.to_string(),
                expected: format!("{} at most: there is no port above 65535", ports),
            });
        }
        if asked > ports {
            let text = "WARNING: port-range and -P mismatch (adjusting port-range to";
            self.warn(format!("{text} {first}-{last})"));
        }
        Ok(asked)
    }

    /// -X, --trip-times, --dialect, -I and -n, which not every client can have.
    fn judge_client(&mut self) -> Result<(), OptionError> {
        let is_old = self.common.stream.dialect != Dialect::V2_1;
        if is_old && !self.common.is_udp() {
            self.warn("WARNING: option --dialect is not valid without -u, ignored");
        }
        if self.common.stream.asks_for_version && self.common.is_udp() {
            return Err(OptionError::VersionOverUdp);
        }
        if self.common.stream.asks_for_version && !self.common.stream.has_header {
            self.warn("WARNING: option -X has no effect with -C");
        }
        let stream = &self.common.stream;
        if stream.has_shared_clock && is_old {
            return Err(OptionError::OldTripTimes);
        }
        if stream.has_shared_clock && stream.length_bytes < SHARED_CLOCK_BYTES_MIN {
            return Err(OptionError::Value {
                option: String::from("--trip-times"),
                value: format!("-l {}", stream.length_bytes),
                expected: format!("{SHARED_CLOCK_BYTES_MIN} bytes at least"),
            });
        }
        if stream.input == Some(Input::Stdin) && stream.streams > 1 {
            return Err(OptionError::SharedStdin);
        }
        match stream.amount {
            Amount::Bytes(bytes)
                if bytes > HEADER_BYTES_MAX && stream.directions != Directions::Forward =>
            {
                Err(OptionError::Value {
                    option: "-n".to_owned(),
                    value: bytes.to_string(),
                    expected: format!(
                        "1 to {HEADER_BYTES_MAX} bytes with -d, -r, -R and --full-duplex, or -t: \
                         the server cannot be told of more"
                    ),
                })
            }
            _ => Ok(()),
        }
    }

    /// Which way data flow, of which 2.1.8 allows one.
    fn directions(&mut self) -> Result<Directions, OptionError> {
        let port = self.listen_port.unwrap_or(self.common.port);
        let stream = &self.common.stream;
        let is_udp = self.common.is_udp();
        let directions = match self.ways[..] {
            [] => Directions::Forward,
            [_, ..] if !stream.has_header => return Err(OptionError::NoHeaders),
            [way, ..] if is_udp && !way.has_dialect(stream.dialect) => {
                return Err(OptionError::OldDialect);
            }
            [Way::Reverse] => Directions::Reverse,
            [Way::FullDuplex] => Directions::FullDuplex,
            [Way::Dual] => Directions::Dual {
                port,
                is_at_once: true,
            },
            [Way::TradeOff] => Directions::Dual {
                port,
                is_at_once: false,
            },
            [_, _, ..] => return Err(OptionError::Exclusive),
        };
        if self.listen_port.is_some() && !matches!(directions, Directions::Dual { .. }) {
            self.warn("WARNING: option -L has no effect without -d or -r");
        }
        Ok(directions)
    }

    fn server(mut self) -> Result<ServerOptions, OptionError> {
        self.common.stream.rate = self.server_rate()?;
        self.common.stream.length_bytes = self.length_bytes(false)?;
        if let Some(bind) = &mut self.common.bind {
            self.common.stream.socket.device = bind.device.take();
            if let Some(port) = bind.port.take() {
                self.warn(format!(
                    "WARNING: port {port} ignored - set receive port on server via -p or -L"
                ));
            }
        }
        if let Some(last) = self.common.last_port
            && last - self.common.port >= SERVER_PORTS_MAX
        {
            return Err(OptionError::Value {
                option: String::from("-p"),
                value: format!("{}-{last}", self.common.port),
                expected: format!("{SERVER_PORTS_MAX} ports at most, the rest to another server"),
            });
        }
        if !self.allow.is_empty() && !self.common.is_udp() {
            self.warn("WARNING: option --allow has no effect without -u");
        }
        Ok(ServerOptions {
            allow: self.allow,
            connections: self.parallel,
            single_client: self.single_client,
            daemon: self.daemon,
            time: match self.time {
                Some(Time::For(time)) => Some(time),
                Some(Time::Endless) | None => None,
            },
            common: self.common.complete(),
        })
    }

    /// -b limits what is read of TCP. UDP sends on whether it is read or not.
    fn server_rate(&mut self) -> Result<Option<Rate>, OptionError> {
        match self.common.stream.rate {
            Some(_) if self.common.is_udp() => {
                self.warn(wrong_side("-b", "UDP server"));
                Ok(None)
            }
            Some(rate) if rate.unit() == RateUnit::PacketsPerSecond => {
                Err(OptionError::PacketsOverTcp)
            }
            rate => Ok(rate),
        }
    }

    fn length_bytes(&self, client: bool) -> Result<usize, OptionError> {
        // Payload from elsewhere goes behind the header, a byte of it at least.
        let least = PAYLOAD_BYTES_MIN + usize::from(self.common.stream.input.is_some());
        let range = least..=PAYLOAD_BYTES_MAX;
        let is_udp = self.common.is_udp();
        match &self.length {
            Some((length, source)) if is_udp && !range.contains(length) => {
                Err(OptionError::Value {
                    option: source.clone(),
                    value: length.to_string(),
                    expected: format!("{least} to {PAYLOAD_BYTES_MAX} bytes with -u"),
                })
            }
            Some((length, _)) => Ok(*length),
            None if !is_udp => Ok(tcp::BUFFER_BYTES),
            None if self.common.ipv6 && client => Ok(UDP_LENGTH_BYTES_IPV6),
            None => Ok(udp::PAYLOAD_BYTES_DEFAULT),
        }
    }
}

impl Common {
    /// What follows from options of other things: gaps and delays are recorded for those who are shown them.
    fn complete(mut self) -> Self {
        self.stream.records_times = self.enhanced || self.json.is_some();
        self
    }
}

/// What a client sends at, if it is a test at all.
fn client_rate(
    rate: Option<Rate>,
    udp: bool,
    length_bytes: usize,
    burst: u32,
) -> Result<Option<Rate>, OptionError> {
    let packet_bits = 8 * length_bytes as u64;
    if udp {
        let rate = rate.unwrap_or(UDP_RATE);
        let gap = rate.time_of(burst.into(), packet_bits);
        if gap > GAP_MAX {
            let seconds = gap.as_secs_f64();
            return Err(OptionError::Gap { seconds });
        }
        return Ok(Some(rate));
    }
    match rate {
        Some(rate) if rate.unit() == RateUnit::PacketsPerSecond => Err(OptionError::PacketsOverTcp),
        Some(rate) if rate.packets_in(SECOND, packet_bits) == 0 => Err(OptionError::Incompatible {
            length_bytes,
            longest_bytes: rate.packets_in(SECOND, 8),
        }),
        rate => Ok(rate),
    }
}
