//! Options as they come in, and what they come to when all are there. What an option says by itself goes
//! straight to its place in [`Common`]; what takes another option to judge is judged by
//! [`Draft::finish`].

use std::time::Duration;

use nicpoll_model::{Protocol, Rate, RateUnit};

use super::types::{Bind, ClientOptions, Common, Options, ServerOptions};
use super::values::{Given, OptionError, seconds};
use crate::config::{AddressPrefix, Input, TCP_LENGTH_BYTES, UDP_LENGTH_BYTES, UDP_RATE};
use crate::wire::{
    Amount, Dialect, Directions, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, SHARED_CLOCK_BYTES_MIN,
};

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
const REPEAT: &str = "ERROR: option --repeat is not valid with -t 0, whose first run has no end, and with -I, which \
                      has nothing left for a second one; leave them out";
const EXCLUSIVE: &str =
    "ERROR: options of --full-duplex, --reverse, -d and -r are mutually exclusive";
const NO_HEADERS: &str =
    "ERROR: compatibility mode (-C) not supported with --full-duplex, --reverse, -d and -r";
const OLD_DIALECT: &str = "ERROR: option --dialect is not supported with --full-duplex and --reverse, and with -d and \
                           -r only up to 2.0.9; leave it out, or run a client at each end";
const PACKETS_OVER_TCP: &str = "ERROR: units of pps not supported with TCP";
const VERSION_OVER_UDP: &str = "ERROR: option of -X or --peer-detect not supported with -u UDP";
const OLD_TRIP_TIMES: &str =
    "ERROR: option --trip-times is not known to servers of 2.0.x; leave out --dialect";
const SHARED_STDIN: &str = "ERROR: option -I is not valid with several streams, which cannot share standard \
                            input; leave out -P, or give them a file with -F";

const WINDOW_BYTES_MAX: u64 = 1 << 30;
/// Below this, iperf warns.
const WINDOW_BYTES_SMALL: usize = 2048;
/// The header counts time in these, and none of them would mean for ever.
const TICK: Duration = Duration::from_millis(10);
const INTERVAL_MIN: Duration = Duration::from_millis(5);
const FORMATS: &str = "abkmgtpABKMGTP";

/// The end that is asked for.
#[derive(Debug)]
pub enum Mode {
    /// -c.
    Client {
        host: String,
        device: Option<String>,
    },
    /// -s.
    Server,
}

/// -t and -n: at a client the later one counts, at a server only -t.
#[derive(Clone, Copy, Debug)]
enum Time {
    /// 0 or below.
    Endless,
    For(Duration),
}

/// A direction of data in addition to the client's own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// -d.
    Dual,
    /// -r.
    TradeOff,
    /// -R.
    Reverse,
    /// --full-duplex.
    FullDuplex,
}

impl Way {
    /// Whether it can be asked for over UDP in that dialect. 2.0.10 to 2.0.13 have none that works with
    /// other versions; 2.0.13 understands 2.1's.
    fn has_dialect(self, dialect: Dialect) -> bool {
        match self {
            Way::Dual | Way::TradeOff => {
                matches!(dialect, Dialect::V2_0_2 | Dialect::V2_0_8 | Dialect::V2_1)
            }
            Way::Reverse | Way::FullDuplex => dialect == Dialect::V2_1,
        }
    }
}

/// What has come in so far. What an option says by itself is in its place in `common`; the rest is what takes
/// another option to judge.
#[derive(Debug, Default)]
pub struct Draft {
    pub common: Common,
    mode: Option<Mode>,
    /// -l, and where it came from.
    pub length: Option<(usize, String)>,
    /// -t.
    time: Option<Time>,
    /// -n.
    pub bytes: Option<u64>,
    /// -P.
    pub parallel: Option<u32>,
    /// --repeat.
    pub repeat: Option<u32>,
    /// -1, and -U.
    pub single_client: bool,
    /// -D.
    pub daemon: bool,
    /// The directions asked for in addition to the client's own stream.
    ways: Vec<Way>,
    /// -L.
    pub listen_port: Option<u16>,
    /// --allow.
    pub allow: Vec<AddressPrefix>,
}

impl Draft {
    /// Has a line printed before anything else.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.common.warnings.push(warning.into());
    }

    /// -u.
    pub fn use_udp(&mut self) {
        self.common.stream.protocol = Protocol::Udp;
    }

    /// One of -d, -r, -R and --full-duplex.
    pub fn way(&mut self, way: Way) {
        if !self.ways.contains(&way) {
            self.ways.push(way);
        }
    }

    /// The first of -s and -c counts, as in the original.
    pub fn choose(&mut self, mode: Mode) {
        match (&mut self.mode, mode) {
            (empty @ None, mode) => *empty = Some(mode),
            (Some(set @ Mode::Client { .. }), mode @ Mode::Client { .. }) => *set = mode,
            // The other one is passed over with a warning, as any option of the other end.
            _ => {}
        }
    }

    /// -x.
    pub fn exclude(&mut self, letters: &str) {
        for letter in letters.chars() {
            let exclude = &mut self.common.exclude;
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
    pub fn take_format(&mut self, text: &str) {
        let letter = text.chars().next().filter(|c| FORMATS.contains(*c));
        if letter.is_none() {
            self.warn(format!(
                "WARNING: unknown reporting format \"{text}\", switching to adaptive"
            ));
        }
        self.common.format = letter.unwrap_or('a');
    }

    /// -y.
    pub fn take_report_style(&mut self, text: &str) {
        self.common.csv = matches!(text, "c" | "C");
        if !self.common.csv {
            self.warn(format!(
                "WARNING: unknown reporting style \"{text}\", switching to default"
            ));
        }
    }

    /// -i.
    pub fn take_interval(&mut self, given: &Given) -> Result<(), OptionError> {
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
        self.common.stream.interval = interval.map(|interval| interval.max(INTERVAL_MIN));
        Ok(())
    }

    /// -t.
    pub fn take_time(&mut self, given: &Given) -> Result<(), OptionError> {
        let time = match seconds(given.seconds()?) {
            Some(time) => Time::For(time.max(TICK)),
            None => Time::Endless,
        };
        self.time = Some(time);
        self.bytes = None;
        Ok(())
    }

    /// -w.
    pub fn take_window(&mut self, given: &Given) -> Result<(), OptionError> {
        let bytes = given.count(0, WINDOW_BYTES_MAX)? as usize;
        if (1..WINDOW_BYTES_SMALL).contains(&bytes) {
            self.warn(format!(
                "WARNING: TCP window size set to {bytes} bytes. A small window size\n\
                 will give poor performance. See the Iperf documentation."
            ));
        }
        self.common.stream.buffer_bytes = (bytes > 0).then_some(bytes);
        Ok(())
    }

    /// Which end is asked for.
    ///
    /// # Errors
    /// The usage when neither is.
    pub fn is_client(&self) -> Result<bool, OptionError> {
        match self.mode {
            Some(Mode::Client { .. }) => Ok(true),
            Some(Mode::Server) => Ok(false),
            None => Err(OptionError::usage(None)),
        }
    }

    /// What all of it comes to.
    ///
    /// # Errors
    /// When options contradict each other.
    pub fn finish(mut self) -> Result<Options, OptionError> {
        match self.mode.take() {
            None => Err(OptionError::usage(None)),
            Some(Mode::Server) => self.server().map(Options::Server),
            Some(Mode::Client { host, device }) => self.client(host, device).map(Options::Client),
        }
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
            return Err(OptionError::new(REPEAT));
        }
        Ok(ClientOptions {
            repeat: self.repeat,
            host,
            common: complete(self.common),
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
            let most = format_args!("{ports} at most: there is no port above 65535");
            return Err(OptionError::value("-P", asked, most));
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
            return Err(OptionError::new(VERSION_OVER_UDP));
        }
        if self.common.stream.asks_for_version && !self.common.stream.has_header {
            self.warn("WARNING: option -X has no effect with -C");
        }
        let stream = &self.common.stream;
        if stream.has_shared_clock && is_old {
            return Err(OptionError::new(OLD_TRIP_TIMES));
        }
        if stream.has_shared_clock && stream.length_bytes < SHARED_CLOCK_BYTES_MIN {
            let least = format_args!("{SHARED_CLOCK_BYTES_MIN} bytes at least");
            let value = format_args!("-l {}", stream.length_bytes);
            return Err(OptionError::value("--trip-times", value, least));
        }
        if stream.input == Some(Input::Stdin) && stream.streams > 1 {
            return Err(OptionError::new(SHARED_STDIN));
        }
        match stream.amount {
            Amount::Bytes(bytes)
                if bytes > HEADER_BYTES_MAX && stream.directions != Directions::Forward =>
            {
                let most = format_args!(
                    "1 to {HEADER_BYTES_MAX} bytes with -d, -r, -R and --full-duplex, or -t: \
                     the server cannot be told of more"
                );
                Err(OptionError::value("-n", bytes, most))
            }
            _ => Ok(()),
        }
    }

    /// The direction of the data; like 2.1.8, only one option for it is allowed.
    fn directions(&mut self) -> Result<Directions, OptionError> {
        let port = self.listen_port.unwrap_or(self.common.port);
        let stream = &self.common.stream;
        let is_udp = self.common.is_udp();
        let directions = match self.ways[..] {
            [] => Directions::Forward,
            [_, ..] if !stream.has_header => return Err(OptionError::new(NO_HEADERS)),
            [way, ..] if is_udp && !way.has_dialect(stream.dialect) => {
                return Err(OptionError::new(OLD_DIALECT));
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
            [_, _, ..] => return Err(OptionError::new(EXCLUSIVE)),
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
            let range = format_args!("{}-{last}", self.common.port);
            let most = format_args!("{SERVER_PORTS_MAX} ports at most, the rest to another server");
            return Err(OptionError::value("-p", range, most));
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
            common: complete(self.common),
        })
    }

    /// -b limits what is read of TCP. UDP sends on whether it is read or not.
    fn server_rate(&mut self) -> Result<Option<Rate>, OptionError> {
        match self.common.stream.rate {
            Some(_) if self.common.is_udp() => {
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
        // Payload from elsewhere goes behind the header, a byte of it at least.
        let least = PAYLOAD_BYTES_MIN + usize::from(self.common.stream.input.is_some());
        let range = least..=PAYLOAD_BYTES_MAX;
        let is_udp = self.common.is_udp();
        match &self.length {
            Some((length, source)) if is_udp && !range.contains(length) => {
                let bounds = format_args!("{least} to {PAYLOAD_BYTES_MAX} bytes with -u");
                Err(OptionError::value(source, length, bounds))
            }
            Some((length, _)) => Ok(*length),
            None if !is_udp => Ok(TCP_LENGTH_BYTES),
            None if self.common.ipv6 && client => Ok(UDP_LENGTH_BYTES_IPV6),
            None => Ok(UDP_LENGTH_BYTES),
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

/// Sets what follows from other options: gaps and delays are recorded where the output shows them.
fn complete(mut common: Common) -> Common {
    common.stream.records_times = common.enhanced || common.json.is_some();
    common
}
