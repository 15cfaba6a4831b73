//! Collects options and combines them. An option that stands alone is written directly to [`Options`]; those
//! that depend on others are resolved by [`Draft::finish`].

use std::time::Duration;

use nicpoll_model::{Protocol, Rate, RateUnit};
use nicpoll_traffic::repeat::RUNS_MAX;

use super::types::{Bind, Json, Options};
use super::values::{self, EXACT_MAX, Given, OptionError, seconds};
use crate::config::{StreamConfig, TCP_LENGTH_BYTES, UDP_LENGTH_BYTES, UDP_RATE};
use crate::wire::{Amount, Dialect, Directions, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN};

/// Longest TCP read or write.
const LENGTH_BYTES_MAX: u64 = 64 << 20;
/// A client address has no more ports.
const PARALLEL_MAX: u32 = 65_535;
/// More than a second of minimum-size datagrams at 10 Gbit/s in one burst.
const BURST_MAX: u32 = 1 << 24;
/// The IPv4 default less the longer IPv6 header.
const UDP_LENGTH_BYTES_IPV6: usize = 1450;
const SEND_TIME: Duration = Duration::from_secs(10);
/// Most bytes that a header can request.
const HEADER_BYTES_MAX: u64 = i32::MAX as u64;
/// Longest gap between datagrams, or bursts, of a UDP client.
const GAP_MAX: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);
const REPEAT: &str = "ERROR: option --repeat is not valid with -t 0, whose first run has no end";
const EXCLUSIVE: &str =
    "ERROR: options of --full-duplex, --reverse, -d and -r are mutually exclusive";
const NO_HEADERS: &str =
    "ERROR: compatibility mode (-C) not supported with --full-duplex, --reverse, -d and -r";
const OLD_DIALECT: &str = "ERROR: option --dialect is not supported with --full-duplex and --reverse, and with -d and \
                           -r only up to 2.0.9; leave it out, or run a client at each end";
const PACKETS_OVER_TCP: &str = "ERROR: units of pps not supported with TCP";

const WINDOW_BYTES_MAX: u64 = 1 << 30;
/// iperf warns of smaller windows.
const WINDOW_BYTES_SMALL: usize = 2048;
/// Unit of time in the header, and the shortest time: 0 would mean for ever.
const TICK: Duration = Duration::from_millis(10);
const INTERVAL_MIN: Duration = Duration::from_millis(5);
const FORMATS: &str = "abkmgtpABKMGTP";

/// Options seen so far. Those that stand alone are in `options`; the fields below depend on each other.
#[derive(Debug, Default)]
pub struct Draft {
    pub options: Options,
    /// Whether -c came before -s; `None` before either.
    pub is_client: Option<bool>,
    /// -l, and its name in messages.
    length: Option<(usize, String)>,
    /// -t; a client obeys the later one of -t and -n, a server only -t.
    time: Option<Amount>,
    /// -n.
    bytes: Option<u64>,
    /// -d, -r, -R and --full-duplex, each once.
    directions: Vec<Directions>,
    /// -L.
    listen_port: Option<u16>,
}

impl Draft {
    /// Adds a warning, printed before anything else.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.options.warnings.push(warning.into());
    }

    /// Applies an option without a value; `key` is its first name.
    pub fn take_flag(&mut self, key: &str) {
        let options = &mut self.options;
        let stream = &mut options.stream;
        match key {
            "e" => options.enhanced = true,
            "json" => options.json = Some(Json::Whole),
            "json-stream" => options.json = Some(Json::Stream),
            "m" => options.print_mss = true,
            "u" => stream.protocol = Protocol::Udp,
            "C" => stream.has_header = false,
            "N" => stream.no_delay = true,
            "V" => options.ipv6 = true,
            "4" => options.ipv6 = false,
            "z" => options.is_realtime = true,
            "sum-only" => options.exclude.streams = true,
            // The first of -s and -c counts, as in the original.
            "s" => _ = self.is_client.get_or_insert(false),
            "1" => options.single_client = true,
            "D" => options.daemon = true,
            "U" => (stream.protocol, options.single_client) = (Protocol::Udp, true),
            "d" | "r" => self.flow(Directions::Dual {
                port: 0,
                is_at_once: key == "d",
            }),
            "R" => self.flow(Directions::Reverse),
            "full-duplex" => self.flow(Directions::FullDuplex),
            "no-batch" => stream.is_batched = false,
            unknown => unreachable!("option {unknown} is in options.txt and not here"),
        }
    }

    /// Applies an option with its value.
    pub fn take_value(&mut self, key: &str, given: &Given) -> Result<(), OptionError> {
        let options = &mut self.options;
        let stream = &mut options.stream;
        match key {
            "b" => stream.rate = Some(given.rate()?),
            "f" => self.take_format(given.value),
            "i" => self.take_interval(given)?,
            "l" => {
                let length = given.count(1, LENGTH_BYTES_MAX)?;
                self.length = Some((length as usize, given.source.to_owned()));
            }
            "o" => options.output = Some(given.file()?),
            "p" => options.port = given.port_alone()?,
            "w" => self.take_window(given)?,
            "B" => {
                let expected = "address, address:port or address%device";
                options.bind = Some(given.read(values::bind, expected)?);
            }
            "M" => stream.max_segment_bytes = Some(given.count(1, u16::MAX.into())? as u16),
            "P" => options.connections = Some(given.integer(1, PARALLEL_MAX)?),
            "S" => stream.socket.type_of_service = Some(given.type_of_service()?),
            "Z" => stream.congestion_control = Some(given.name("the name of an algorithm")?),
            "allow" => {
                let expected = "an address or address/prefix, such as 10.0.0.0/8";
                options
                    .allow
                    .push(given.read(|text| text.parse().ok(), expected)?);
            }
            "burst" => stream.burst_datagrams = given.integer(1, BURST_MAX)?,
            "c" => {
                let (host, device) = given.read(values::host, "host or host%device")?;
                if *self.is_client.get_or_insert(true) {
                    options.host = Some(host);
                    stream.socket.device = device;
                }
            }
            "dialect" => stream.dialect = given.dialect()?,
            "L" => self.listen_port = Some(given.port()?),
            "n" => self.bytes = Some(given.count(1, EXACT_MAX)?),
            "repeat" => options.repeat = Some(given.integer(1, RUNS_MAX)?),
            "t" => self.take_time(given)?,
            "T" => stream.socket.time_to_live = Some(given.integer(1, u8::MAX.into())? as u8),
            "x" => self.exclude(given.value),
            "y" => self.take_report_style(given.value),
            "style" => options.style = given.style()?,
            unknown => unreachable!("option {unknown} is in options.txt and not here"),
        }
        Ok(())
    }

    fn flow(&mut self, directions: Directions) {
        if !self.directions.contains(&directions) {
            self.directions.push(directions);
        }
    }

    /// -x.
    fn exclude(&mut self, letters: &str) {
        for letter in letters.chars() {
            let exclude = &mut self.options.exclude;
            match letter.to_ascii_uppercase() {
                'C' => exclude.connections = true,
                'D' => exclude.data = true,
                'M' => exclude.sums = true,
                'S' => exclude.settings = true,
                'V' => exclude.server_report = true,
                _ => self.warn(format!(
                    "WARNING: unknown reporting type \"{letter}\", ignored\n valid options are:\n\
                     \t exclude: C(connection) D(data) M(multicast) S(settings) V(server) report\n"
                )),
            }
        }
    }

    /// -f. Only the first letter counts: `-f Mbits` is `-f M`.
    fn take_format(&mut self, text: &str) {
        let letter = text.chars().next().filter(|c| FORMATS.contains(*c));
        if letter.is_none() {
            self.warn(format!(
                "WARNING: unknown reporting format \"{text}\", switching to adaptive"
            ));
        }
        self.options.format = letter.unwrap_or('a');
    }

    /// -y.
    fn take_report_style(&mut self, text: &str) {
        self.options.csv = matches!(text, "c" | "C");
        if !self.options.csv {
            self.warn(format!(
                "WARNING: unknown reporting style \"{text}\", switching to default"
            ));
        }
    }

    /// -i.
    fn take_interval(&mut self, given: &Given) -> Result<(), OptionError> {
        if matches!(given.value, "f" | "F") {
            return Err(given.left_out("give -i in seconds"));
        }
        let asked = given.seconds()?;
        if asked < 0.0 {
            return Err(given.invalid("seconds from 0.005, or 0 for no interval reports"));
        }
        let interval = seconds(asked);
        if interval.is_some_and(|interval| interval < INTERVAL_MIN) {
            self.warn(format!(
                "WARNING: interval too small, increasing to {:.4} milliseconds.",
                INTERVAL_MIN.as_secs_f64() * 1e3
            ));
        }
        self.options.stream.interval = interval.map(|interval| interval.max(INTERVAL_MIN));
        Ok(())
    }

    /// -t.
    fn take_time(&mut self, given: &Given) -> Result<(), OptionError> {
        let time = match seconds(given.seconds()?) {
            Some(time) => Amount::Time(time.max(TICK)),
            None => Amount::ENDLESS,
        };
        self.time = Some(time);
        self.bytes = None;
        Ok(())
    }

    /// -w.
    fn take_window(&mut self, given: &Given) -> Result<(), OptionError> {
        let bytes = given.count(0, WINDOW_BYTES_MAX)? as usize;
        if (1..WINDOW_BYTES_SMALL).contains(&bytes) {
            self.warn(format!(
                "WARNING: TCP window size set to {bytes} bytes. A small window size\n\
                 will give poor performance. See the Iperf documentation."
            ));
        }
        self.options.stream.buffer_bytes = (bytes > 0).then_some(bytes);
        Ok(())
    }

    /// Resolves all options.
    ///
    /// # Errors
    /// When options contradict each other; the usage if neither -s nor -c is given.
    pub fn finish(mut self) -> Result<Options, OptionError> {
        match self.is_client {
            None => return Err(OptionError::usage(None)),
            Some(true) => self.finish_client()?,
            Some(false) => self.finish_server()?,
        }
        // Gaps and transit times are recorded where the output shows them.
        let options = &mut self.options;
        options.stream.records_times = options.enhanced || options.json.is_some();
        Ok(self.options)
    }

    fn finish_client(&mut self) -> Result<(), OptionError> {
        self.options.stream.length_bytes = self.length_bytes(true)?;
        self.options.stream.directions = self.directions()?;
        if let Some(Bind { device, .. }) = &mut self.options.bind
            && let Some(device) = device.take()
        {
            self.warn(format!(
                "WARNING: Client cannot set bind device {device} via -B consider using -c"
            ));
        }
        let amount = self.bytes.map(Amount::Bytes).or(self.time);
        let amount = amount.unwrap_or(Amount::Time(SEND_TIME));
        if amount == Amount::ENDLESS {
            self.warn(
                "WARNING: client will send traffic forever or until an external signal (e.g. SIGINT \
                 or SIGTERM) occurs to stop it",
            );
        }
        self.options.stream.amount = amount;
        self.options.stream.streams = self.options.connections.unwrap_or(1);
        self.judge_client()?;
        self.options.stream.rate = client_rate(&self.options.stream)?;
        Ok(())
    }

    /// Checks --dialect, -n and --repeat against the other options.
    fn judge_client(&mut self) -> Result<(), OptionError> {
        let (is_udp, stream) = (self.options.is_udp(), &self.options.stream);
        let is_old = stream.dialect != Dialect::V2_1;
        if self.options.repeat.is_some() && stream.amount == Amount::ENDLESS {
            return Err(OptionError::new(REPEAT));
        }
        if let Amount::Bytes(bytes) = stream.amount
            && bytes > HEADER_BYTES_MAX
            && stream.directions != Directions::Forward
        {
            let most = format_args!(
                "1 to {HEADER_BYTES_MAX} bytes with -d, -r, -R and --full-duplex, or -t: \
                 the server cannot be told of more"
            );
            return Err(OptionError::value("-n", bytes, most));
        }
        if is_old && !is_udp {
            self.warn("WARNING: option --dialect is not valid without -u, ignored");
        }
        Ok(())
    }

    /// The direction of the data. Like 2.1.8, allows only one of its options.
    fn directions(&mut self) -> Result<Directions, OptionError> {
        let stream = &self.options.stream;
        let directions = match self.directions[..] {
            [] => Directions::Forward,
            [_, ..] if !stream.has_header => return Err(OptionError::new(NO_HEADERS)),
            [first, ..] if self.options.is_udp() && !has_dialect(first, stream.dialect) => {
                return Err(OptionError::new(OLD_DIALECT));
            }
            [Directions::Dual { is_at_once, .. }] => Directions::Dual {
                port: self.listen_port.unwrap_or(self.options.port),
                is_at_once,
            },
            [directions] => directions,
            [_, _, ..] => return Err(OptionError::new(EXCLUSIVE)),
        };
        if self.listen_port.is_some() && !matches!(directions, Directions::Dual { .. }) {
            self.warn("WARNING: option -L has no effect without -d or -r");
        }
        Ok(directions)
    }

    fn finish_server(&mut self) -> Result<(), OptionError> {
        self.options.stream.rate = self.server_rate()?;
        self.options.stream.length_bytes = self.length_bytes(false)?;
        if let Some(bind) = &mut self.options.bind {
            self.options.stream.socket.device = bind.device.take();
            if let Some(port) = bind.port.take() {
                self.warn(format!(
                    "WARNING: port {port} ignored - set receive port on server via -p or -L"
                ));
            }
        }
        if !self.options.allow.is_empty() && !self.options.is_udp() {
            self.warn("WARNING: option --allow has no effect without -u");
        }
        self.options.time = match self.time {
            Some(Amount::Time(time)) if time < Duration::MAX => Some(time),
            _ => None,
        };
        Ok(())
    }

    /// -b limits the rate at which a server reads TCP; it could not limit UDP.
    fn server_rate(&mut self) -> Result<Option<Rate>, OptionError> {
        match self.options.stream.rate {
            Some(_) if self.options.is_udp() => {
                self.warn("WARNING: option -b is not valid for UDP server mode");
                Ok(None)
            }
            Some(rate) if rate.unit() == RateUnit::PacketsPerSecond => {
                Err(OptionError::new(PACKETS_OVER_TCP))
            }
            rate => Ok(rate),
        }
    }

    fn length_bytes(&self, client: bool) -> Result<usize, OptionError> {
        let range = PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX;
        let is_udp = self.options.is_udp();
        match &self.length {
            Some((length, source)) if is_udp && !range.contains(length) => {
                let bounds =
                    format_args!("{PAYLOAD_BYTES_MIN} to {PAYLOAD_BYTES_MAX} bytes with -u");
                Err(OptionError::value(source, length, bounds))
            }
            Some((length, _)) => Ok(*length),
            None if !is_udp => Ok(TCP_LENGTH_BYTES),
            None if self.options.ipv6 && client => Ok(UDP_LENGTH_BYTES_IPV6),
            None => Ok(UDP_LENGTH_BYTES),
        }
    }
}

/// Whether a client of this dialect can request these directions over UDP. 2.0.10 to 2.0.13 have no request
/// that works with other versions; 2.0.13 understands 2.1's.
fn has_dialect(directions: Directions, dialect: Dialect) -> bool {
    match directions {
        Directions::Dual { .. } => {
            matches!(dialect, Dialect::V2_0_2 | Dialect::V2_0_8 | Dialect::V2_1)
        }
        _ => dialect == Dialect::V2_1,
    }
}

/// The rate of a client; refuses rates too low for a test.
fn client_rate(stream: &StreamConfig) -> Result<Option<Rate>, OptionError> {
    let (rate, length_bytes) = (stream.rate, stream.length_bytes);
    let packet_bits = 8 * length_bytes as u64;
    if stream.protocol == Protocol::Udp {
        let rate = rate.unwrap_or(UDP_RATE);
        let gap = rate.time_of(stream.burst_datagrams.into(), packet_bits);
        if gap > GAP_MAX {
            let seconds = gap.as_secs_f64();
            return Err(OptionError::new(format!(
                "ERROR: IPG delay target of {seconds:.1} secs too large (max value is 60 secs)"
            )));
        }
        return Ok(Some(rate));
    }
    match rate {
        Some(rate) if rate.unit() == RateUnit::PacketsPerSecond => {
            Err(OptionError::new(PACKETS_OVER_TCP))
        }
        Some(rate) if rate.packets_in(SECOND, packet_bits) == 0 => {
            let longest_bytes = rate.packets_in(SECOND, 8);
            Err(OptionError::new(format!(
                "ERROR: option -b and -l of {length_bytes} are incompatible, consider setting -l \
                 to {longest_bytes} or lower"
            )))
        }
        rate => Ok(rate),
    }
}
