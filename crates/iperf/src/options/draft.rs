//! Options as they come in.

mod outcome;

use std::path::PathBuf;
use std::time::Duration;

use nicpoll_model::Rate;

use crate::wire::Dialect;

use super::bind;
use super::error::OptionError;
use super::table::{Id, Meaning, Side, Spec};
use super::units::{self, EXACT_MAX, SECONDS_MAX};
use super::{Bind, Exclude, Input, Json, Network, Style};

const TCP_LENGTH_BYTES_MAX: usize = 64 << 20;
const WINDOW_BYTES_MAX: u64 = 1 << 30;
/// Below this, iperf warns.
const WINDOW_BYTES_SMALL: usize = 2048;
/// The header counts time in these, and none of them would mean for ever.
const TICK: Duration = Duration::from_millis(10);
const INTERVAL_MIN: Duration = Duration::from_millis(5);
const PARALLEL_MAX: u32 = 128;
/// A second of the smallest datagrams at 10 Gbit/s, and then some, would be one burst.
const BURST_MAX: u32 = 1 << 24;
const FORMATS: &str = "abkmgtpABKMGTP";

/// The end that is asked for.
#[derive(Debug)]
enum Mode {
    Client {
        host: String,
        device: Option<String>,
    },
    Server,
}

/// -t and -n, of which the later one counts at a client. -t alone counts at a server.
#[derive(Clone, Copy, Debug)]
enum Time {
    /// 0 or below.
    Endless,
    For(Duration),
}

/// A way that data flow besides the client's own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Dual,
    TradeOff,
    Reverse,
    FullDuplex,
}

/// A value, and how to complain about it.
struct Given<'a> {
    value: &'a str,
    /// The option or the variable it came with.
    source: &'a str,
}

impl Given<'_> {
    fn invalid(&self, expected: impl Into<String>) -> OptionError {
        OptionError::Value {
            option: self.source.to_owned(),
            value: self.value.to_owned(),
            expected: expected.into(),
        }
    }

    fn left_out(&self, instead: &'static str) -> OptionError {
        OptionError::NotYet {
            option: format!("{} {}", self.source, self.value),
            instead,
        }
    }

    fn count(&self, least: u64, most: u64) -> Result<u64, OptionError> {
        units::count(self.value, least..=most).ok_or_else(|| {
            self.invalid(format!(
                "a number from {least} to {most}, with k, m, g, K, M or G behind it if you like"
            ))
        })
    }

    fn integer(&self, least: u32, most: u32) -> Result<u32, OptionError> {
        units::integer(self.value, least..=most)
            .ok_or_else(|| self.invalid(format!("a whole number from {least} to {most}")))
    }

    fn seconds(&self) -> Result<f64, OptionError> {
        units::number(self.value)
            .filter(|seconds| *seconds <= SECONDS_MAX)
            .ok_or_else(|| self.invalid(format!("seconds, at most {SECONDS_MAX}")))
    }
}

/// What has come in so far.
#[derive(Debug, Default)]
pub struct Draft {
    mode: Option<Mode>,
    udp: bool,
    port: Option<u16>,
    /// -l, and where it came from.
    length: Option<(usize, String)>,
    window_bytes: Option<usize>,
    bind: Option<Bind>,
    ipv6: bool,
    interval: Option<Duration>,
    format: Option<char>,
    style: Style,
    csv: bool,
    enhanced: bool,
    exclude: Exclude,
    mss: Option<u32>,
    print_mss: bool,
    no_batch: bool,
    nodelay: bool,
    tos: Option<u8>,
    congestion: Option<String>,
    dialect: Option<Dialect>,
    output: Option<PathBuf>,
    warnings: Vec<String>,
    /// -t, and where it came from.
    time: Option<(Time, String)>,
    bytes: Option<u64>,
    rate: Option<Rate>,
    parallel: Option<u32>,
    single_client: bool,
    ttl: Option<u8>,
    compatibility: bool,
    json: Option<Json>,
    burst: Option<u32>,
    trip_times: bool,
    input: Option<Input>,
    daemon: bool,
    single_udp: bool,
    /// The ways that were asked for besides the client's own stream.
    ways: Vec<Way>,
    listen_port: Option<u16>,
    allow: Vec<Network>,
    /// Options that are left out or mean something at one end only, and where they came from.
    to_judge: Vec<(&'static Spec, String)>,
}

impl Draft {
    /// Notes that an argument is passed over.
    pub fn extra(&mut self, argument: &str) {
        self.warnings
            .push(format!("iperf: ignoring extra argument -- {argument}"));
    }

    /// Takes one option with the value it needs. `source` is what messages call it.
    pub fn take(
        &mut self,
        spec: &'static Spec,
        value: Option<String>,
        source: &str,
    ) -> Result<(), OptionError> {
        let left_out = matches!(spec.meaning, Meaning::LeftOut(_));
        if left_out || spec.side != Side::Both {
            self.to_judge.push((spec, source.to_owned()));
        }
        let Meaning::Known(id) = spec.meaning else {
            return Ok(());
        };
        match value {
            None => self.flag(id),
            Some(value) => {
                let value = &value;
                self.value(id, &Given { value, source })?;
            }
        }
        Ok(())
    }

    fn flag(&mut self, id: Id) {
        match id {
            Id::Compatibility => self.compatibility = true,
            Id::Daemon => self.daemon = true,
            Id::Dual => self.way(Way::Dual),
            Id::Enhanced => self.enhanced = true,
            Id::FullDuplex => self.way(Way::FullDuplex),
            Id::Ipv6 => self.ipv6 = true,
            Id::Json => self.json = Some(Json::Whole),
            Id::JsonStream => self.json = Some(Json::Stream),
            Id::NoBatch => self.no_batch = true,
            Id::Nodelay => self.nodelay = true,
            Id::PrintMss => self.print_mss = true,
            Id::Reverse => self.way(Way::Reverse),
            Id::Server => self.choose(Mode::Server, 's'),
            Id::SingleClient => self.single_client = true,
            Id::SingleUdp => (self.udp, self.single_udp) = (true, true),
            Id::StdinInput => self.input = Some(Input::Stdin),
            Id::TripTimes => self.trip_times = true,
            Id::TradeOff => self.way(Way::TradeOff),
            Id::Udp => self.udp = true,
            // Handled before, or with a value.
            _ => {}
        }
    }

    fn value(&mut self, id: Id, given: &Given) -> Result<(), OptionError> {
        match id {
            Id::Allow => {
                let network = given.value.parse().map_err(|_| {
                    given.invalid("an address or address/prefix, such as 10.0.0.0/8")
                })?;
                self.allow.push(network);
            }
            Id::Bandwidth => self.rate = Some(rate(given)?),
            Id::Bind => {
                let bound = bind::bind(given.value);
                self.bind = Some(
                    bound
                        .ok_or_else(|| given.invalid("address, address:port or address%device"))?,
                );
            }
            Id::Burst => self.burst = Some(given.integer(1, BURST_MAX)?),
            Id::Client => {
                let (host, device) =
                    bind::host(given.value).ok_or_else(|| given.invalid("host or host%device"))?;
                self.choose(Mode::Client { host, device }, 'c');
            }
            Id::Congestion => self.congestion = Some(named(given, "the name of an algorithm")?),
            Id::Dialect => self.dialect = Some(dialect(given)?),
            Id::Exclude => self.exclude(given.value),
            Id::FileInput => {
                self.input = Some(Input::File(named(given, "the name of a file")?.into()));
            }
            Id::Format => self.format(given.value),
            Id::Interval => self.interval = self.interval(given)?,
            Id::Length => {
                let length = given.count(1, TCP_LENGTH_BYTES_MAX as u64)?;
                self.length = Some((length as usize, given.source.to_owned()));
            }
            Id::ListenPort => self.listen_port = Some(port(given)?),
            Id::Mss => self.mss = Some(given.count(1, u16::MAX.into())? as u32),
            Id::Number => {
                self.bytes = Some(given.count(1, EXACT_MAX)?);
            }
            Id::Output => self.output = Some(named(given, "the name of a file")?.into()),
            Id::Parallel => self.parallel = Some(given.integer(1, PARALLEL_MAX)?),
            Id::Port => self.port = Some(port(given)?),
            Id::ReportStyle => self.report_style(given.value),
            Id::Style => self.style = style(given)?,
            Id::Time => {
                let seconds = given.seconds()?;
                let time =
                    units::seconds(seconds).map_or(Time::Endless, |time| Time::For(time.max(TICK)));
                self.time = Some((time, given.source.to_owned()));
                self.bytes = None;
            }
            Id::Tos => {
                let tos = units::tos(given.value);
                self.tos = Some(tos.ok_or_else(|| {
                    given.invalid("a byte (decimal, 0x hex, 0 octal) or a name such as cs1 or ef")
                })?);
            }
            Id::Ttl => self.ttl = Some(given.integer(1, u8::MAX.into())? as u8),
            Id::Window => self.window(given)?,
            // Flags, which have no value.
            _ => {}
        }
        Ok(())
    }

    fn way(&mut self, way: Way) {
        if !self.ways.contains(&way) {
            self.ways.push(way);
        }
    }

    /// The first of -s and -c counts, as in the original.
    fn choose(&mut self, mode: Mode, letter: char) {
        match (&mut self.mode, mode) {
            (empty @ None, mode) => *empty = Some(mode),
            (Some(Mode::Server), Mode::Client { .. }) => {
                self.warnings
                    .push(wrong_side(&format!("-{letter}"), "server"));
            }
            (Some(Mode::Client { .. }), Mode::Server) => {
                self.warnings
                    .push(wrong_side(&format!("-{letter}"), "client"));
            }
            (Some(set), mode) => *set = mode,
        }
    }

    fn exclude(&mut self, letters: &str) {
        for letter in letters.chars() {
            match letter.to_ascii_uppercase() {
                'C' => self.exclude.connections = true,
                'D' => self.exclude.data = true,
                'M' => self.exclude.sums = true,
                'S' => self.exclude.settings = true,
                'V' => self.exclude.server_report = true,
                _ => self.warnings.push(format!(
                    "WARNING: unknown reporting type \"{letter}\", ignored\n valid options are:\n\
                     \t exclude: C(connection) D(data) M(multicast) S(settings) V(server) report\n"
                )),
            }
        }
    }

    /// Only the first letter counts, so that `-f Mbits` means what it says.
    fn format(&mut self, text: &str) {
        let letter = text.chars().next().filter(|c| FORMATS.contains(*c));
        if letter.is_none() {
            self.warnings.push(format!(
                "WARNING: unknown reporting format \"{text}\", switching to adaptive"
            ));
        }
        self.format = letter;
    }

    fn report_style(&mut self, text: &str) {
        self.csv = matches!(text, "c" | "C");
        if !self.csv {
            self.warnings.push(format!(
                "WARNING: unknown reporting style \"{text}\", switching to default"
            ));
        }
    }

    fn interval(&mut self, given: &Given) -> Result<Option<Duration>, OptionError> {
        if matches!(given.value, "f" | "F") {
            return Err(given.left_out("give -i in seconds"));
        }
        let seconds = given.seconds()?;
        if seconds < 0.0 {
            return Err(given.invalid("seconds from 0.005, or 0 for no interval reports"));
        }
        let Some(interval) = units::seconds(seconds) else {
            return Ok(None);
        };
        if interval < INTERVAL_MIN {
            self.warnings.push(format!(
                "WARNING: interval too small, increasing to {:.4} milliseconds.",
                INTERVAL_MIN.as_secs_f64() * 1e3
            ));
        }
        Ok(Some(interval.max(INTERVAL_MIN)))
    }

    fn window(&mut self, given: &Given) -> Result<(), OptionError> {
        let bytes = given.count(0, WINDOW_BYTES_MAX)? as usize;
        if (1..WINDOW_BYTES_SMALL).contains(&bytes) {
            self.warnings.push(format!(
                "WARNING: TCP window size set to {bytes} bytes. A small window size\n\
                 will give poor performance. See the Iperf documentation."
            ));
        }
        self.window_bytes = (bytes > 0).then_some(bytes);
        Ok(())
    }
}

fn wrong_side(option: &str, mode: &str) -> String {
    format!("WARNING: option {option} is not valid for {mode} mode")
}

fn named(given: &Given, expected: &str) -> Result<String, OptionError> {
    if given.value.is_empty() || given.value.contains('\0') {
        return Err(given.invalid(expected));
    }
    Ok(given.value.to_owned())
}

fn port(given: &Given) -> Result<u16, OptionError> {
    let number = |text: &str| units::integer(text, 1..=u16::MAX.into());
    if let Some((first, last)) = given.value.split_once('-')
        && number(first).is_some()
        && number(last).is_some()
    {
        return Err(given.left_out("start one server for each port"));
    }
    Ok(given.integer(1, u16::MAX.into())? as u16)
}

/// The dialect of a version before 2.1, which is spoken without being asked for.
fn style(given: &Given) -> Result<Style, OptionError> {
    match given.value {
        "2.0" => Ok(Style::V2_0),
        "2.1" => Ok(Style::V2_1),
        _ => Err(given.invalid("2.0 or 2.1")),
    }
}

fn dialect(given: &Given) -> Result<Dialect, OptionError> {
    let patch = given.value.strip_prefix("2.0.");
    match patch.and_then(|patch| units::integer(patch, 2..=13)) {
        Some(..=9) => Ok(Dialect::V2_0_2),
        Some(..=12) => Ok(Dialect::V2_0_10),
        Some(_) => Ok(Dialect::V2_0_13),
        None => Err(given.invalid("the server's version, 2.0.2 to 2.0.13; 2.1 needs none")),
    }
}

fn rate(given: &Given) -> Result<Rate, OptionError> {
    if given.value.contains(',') {
        return Err(given.left_out("give one rate, which does not vary"));
    }
    units::rate(given.value).ok_or_else(|| {
        given.invalid(
            "bits a second from 8, with k, m, g, K, M or G behind it if you like, or packets a \
             second up to 1000000000 with pps behind it",
        )
    })
}
