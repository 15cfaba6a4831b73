//! What the options come to when all are there.

use std::time::Duration;

use nicpoll_model::{Rate, RateUnit};

use crate::wire::datagram::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, SHARED_CLOCK_BYTES_MIN};
use crate::wire::{DEFAULT_PORT, Dialect, Directions};

use super::{Draft, Mode, Time, Way, wrong_side};
use crate::UDP_RATE;
use crate::options::error::OptionError;
use crate::options::table::{Meaning, Side};
use crate::options::{Amount, Bind, ClientOptions, Common, Input, Options, ServerOptions};

const TCP_LENGTH_BYTES: usize = 131_072;
const UDP_LENGTH_BYTES: usize = 1470;
/// With the longer header of IPv6, the same packet.
const UDP_LENGTH_BYTES_IPV6: usize = 1450;
const SEND_TIME: Duration = Duration::from_secs(10);
/// The most bytes that the header can ask a server for.
const HEADER_BYTES_MAX: u64 = i32::MAX as u64;
/// A UDP client that waits longer than this between datagrams is no test.
const GAP_MAX: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

impl Draft {
    /// What all of it comes to.
    pub fn finish(mut self) -> Result<Options, OptionError> {
        match self.mode.take() {
            None => Err(OptionError::NoMode),
            Some(Mode::Server) => {
                self.judge(Side::Server, "server")?;
                self.server().map(Options::Server)
            }
            Some(Mode::Client { host, device }) => {
                self.judge(Side::Client, "client")?;
                self.client(host, device).map(Options::Client)
            }
        }
    }

    /// An option of the other end is passed over with a warning, whether it is left out or not.
    fn judge(&mut self, side: Side, mode: &str) -> Result<(), OptionError> {
        for (spec, source) in std::mem::take(&mut self.to_judge) {
            if spec.side != Side::Both && spec.side != side {
                self.warnings.push(wrong_side(&source, mode));
            } else if let Meaning::LeftOut(instead) = spec.meaning {
                return Err(OptionError::NotYet {
                    option: source,
                    instead,
                });
            }
        }
        Ok(())
    }

    fn client(
        mut self,
        host: String,
        device: Option<String>,
    ) -> Result<ClientOptions, OptionError> {
        let length_bytes = self.length_bytes(true)?;
        let directions = self.directions()?;
        if let Some(Bind { device, .. }) = &mut self.bind
            && let Some(device) = device.take()
        {
            self.warnings.push(format!(
                "WARNING: Client cannot set bind device {device} via -B consider using -c"
            ));
        }
        let amount = match (self.bytes, self.time.take()) {
            (Some(bytes), _) => Amount::Bytes(bytes),
            (None, None) => Amount::Time(SEND_TIME),
            (None, Some((Time::For(time), _))) => Amount::Time(time),
            (None, Some((Time::Endless, source))) => {
                return Err(OptionError::NotYet {
                    option: format!("{source} 0 (until interrupted)"),
                    instead: "give the time in seconds",
                });
            }
        };
        let (burst, trip_times, input) = self.client_only(length_bytes)?;
        if self.dialect.is_some() && !self.udp {
            self.warnings.push(String::from(
                "WARNING: option --dialect is not valid without -u, ignored",
            ));
        }
        if let (Amount::Bytes(bytes), true) = (amount, directions != Directions::Forward)
            && bytes > HEADER_BYTES_MAX
        {
            return Err(OptionError::Value {
                option: "-n".to_owned(),
                value: bytes.to_string(),
                expected: format!(
                    "1 to {HEADER_BYTES_MAX} bytes with -d, -r, -R and --full-duplex, or -t: the \
                     server cannot be told of more"
                ),
            });
        }
        Ok(ClientOptions {
            host,
            device,
            directions,
            amount,
            rate: client_rate(self.rate, self.udp, length_bytes, burst)?,
            streams: self.parallel.unwrap_or(1),
            ttl: self.ttl,
            compatibility: self.compatibility,
            burst,
            trip_times,
            input,
            dialect: self.dialect.unwrap_or(Dialect::V2_1),
            common: self.common(length_bytes),
        })
    }

    /// --burst, --trip-times and what -F and -I name, which not every client can have.
    fn client_only(
        &mut self,
        length_bytes: usize,
    ) -> Result<(u32, bool, Option<Input>), OptionError> {
        if !self.udp && self.burst.is_some() {
            return Err(OptionError::NeedsUdp("--burst"));
        }
        if !self.udp && self.trip_times {
            return Err(OptionError::NeedsUdp("--trip-times"));
        }
        let dialect = self.dialect.unwrap_or(Dialect::V2_1);
        if self.trip_times && dialect != Dialect::V2_1 {
            return Err(OptionError::OldTripTimes);
        }
        if self.trip_times && length_bytes < SHARED_CLOCK_BYTES_MIN {
            return Err(OptionError::Value {
                option: String::from("--trip-times"),
                value: format!("-l {length_bytes}"),
                expected: format!("{SHARED_CLOCK_BYTES_MIN} bytes at least"),
            });
        }
        let input = self.input.take();
        if input == Some(Input::Stdin) && self.parallel.is_some_and(|streams| streams > 1) {
            return Err(OptionError::SharedStdin);
        }
        Ok((self.burst.unwrap_or(1), self.trip_times, input))
    }

    /// Which way data flow, of which 2.1.8 allows one.
    fn directions(&mut self) -> Result<Directions, OptionError> {
        let port = self.listen_port.or(self.port).unwrap_or(DEFAULT_PORT);
        let directions = match self.ways[..] {
            [] => Directions::Forward,
            [_, ..] if self.compatibility => return Err(OptionError::NoHeaders),
            [_, ..] if self.udp && self.dialect.is_some() => return Err(OptionError::OldDialect),
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
            let warning = "WARNING: option -L has no effect without -d or -r";
            self.warnings.push(warning.to_owned());
        }
        Ok(directions)
    }

    fn server(mut self) -> Result<ServerOptions, OptionError> {
        let rate = self.server_rate()?;
        let length_bytes = self.length_bytes(false)?;
        if let Some(Bind { port, .. }) = &mut self.bind
            && let Some(port) = port.take()
        {
            self.warnings.push(format!(
                "WARNING: port {port} ignored - set receive port on server via -p or -L"
            ));
        }
        if !self.allow.is_empty() && !self.udp {
            let warning = "WARNING: option --allow has no effect without -u";
            self.warnings.push(warning.to_owned());
        }
        Ok(ServerOptions {
            allow: std::mem::take(&mut self.allow),
            connections: self.parallel,
            single_client: self.single_client || self.single_udp,
            rate,
            daemon: self.daemon,
            time: match self.time {
                Some((Time::For(time), _)) => Some(time),
                Some((Time::Endless, _)) | None => None,
            },
            common: self.common(length_bytes),
        })
    }

    /// -b limits what is read of TCP. UDP sends on whether it is read or not.
    fn server_rate(&mut self) -> Result<Option<Rate>, OptionError> {
        match self.rate {
            Some(_) if self.udp => {
                self.warnings.push(wrong_side("-b", "UDP server"));
                Ok(None)
            }
            Some(rate) if rate.unit() == RateUnit::PacketsPerSecond => {
                Err(OptionError::PacketsOverTcp)
            }
            rate => Ok(rate),
        }
    }

    fn length_bytes(&self, client: bool) -> Result<usize, OptionError> {
        let range = PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX;
        match &self.length {
            Some((length, source)) if self.udp && !range.contains(length) => {
                Err(OptionError::Value {
                    option: source.clone(),
                    value: length.to_string(),
                    expected: format!("{PAYLOAD_BYTES_MIN} to {PAYLOAD_BYTES_MAX} bytes with -u"),
                })
            }
            Some((length, _)) => Ok(*length),
            None if !self.udp => Ok(TCP_LENGTH_BYTES),
            None if self.ipv6 && client => Ok(UDP_LENGTH_BYTES_IPV6),
            None => Ok(UDP_LENGTH_BYTES),
        }
    }

    fn common(self, length_bytes: usize) -> Common {
        Common {
            udp: self.udp,
            port: self.port.unwrap_or(DEFAULT_PORT),
            length_bytes,
            length_was_set: self.length.is_some(),
            window_bytes: self.window_bytes,
            bind: self.bind,
            ipv6: self.ipv6,
            interval: self.interval,
            format: self.format.unwrap_or('a'),
            style: self.style,
            csv: self.csv,
            enhanced: self.enhanced,
            exclude: self.exclude,
            mss: self.mss,
            print_mss: self.print_mss,
            no_batch: self.no_batch,
            nodelay: self.nodelay,
            tos: self.tos,
            congestion: self.congestion,
            json: self.json,
            output: self.output,
            warnings: self.warnings,
        }
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
