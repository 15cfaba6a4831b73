//! The command lines: the originals' positional arguments, and the options that nicpoll adds.
//!
//! Arguments that the originals accept have the same meaning here; others are refused in their words. Numbers are read as strtoul(3) reads them, except that nothing is cut to
//! fewer bits and that an empty argument is no number.

use std::fmt;

use nicpoll_model::Rate;

use crate::repeat::RUNS_MAX;

/// Longest payload that the originals send.
pub const PAYLOAD_BYTES_MAX: u64 = 32_768;
/// Highest rate of netsend.
pub const PACKETS_PER_SECOND_MAX: u64 = 100_000_000;
/// Most threads a socket of netreceive may have.
const RECEIVE_THREADS_MAX: u64 = 64;
/// Most threads of netblast. The original has no limit.
const BLAST_THREADS_MAX: u64 = 1024;
/// Exit status of every tool when it refuses its arguments or cannot begin: the original's -1.
pub(crate) const EXIT_REFUSED: u8 = 255;

/// Which of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Sends as fast as it goes.
    Netblast,
    /// Counts what arrives.
    Netreceive,
    /// Sends at a steady rate.
    Netsend,
}

impl Tool {
    /// The tool's name.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Netblast => "netblast",
            Tool::Netreceive => "netreceive",
            Tool::Netsend => "netsend",
        }
    }

    /// The tool of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Tool::Netblast, Tool::Netreceive, Tool::Netsend]
            .into_iter()
            .find(|tool| tool.name() == name)
    }

    /// The original's usage line.
    pub fn usage(self) -> &'static str {
        match self {
            Tool::Netblast => "netblast [ip] [port] [payloadsize] [duration]",
            Tool::Netreceive => "netreceive port [nthreads]",
            Tool::Netsend => {
                "netsend [ip] [port[-port_max]] [payloadsize] [packet_rate] [duration]"
            }
        }
    }

    fn takes(self, option: &str) -> bool {
        match option {
            "--json" => true,
            "--blocking" => self != Tool::Netreceive,
            "--batch" | "--style" | "--repeat" => self == Tool::Netblast,
            _ => false,
        }
    }
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandLine<T> {
    /// The help text.
    Help,
    /// To do this.
    Run(T),
}

/// Which lines netblast prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetrateStyle {
    /// FreeBSD's, and `send success:` and `approx throughput:`, as a router distribution's build of
    /// 2011 printed them.
    #[default]
    Router,
    /// FreeBSD's.
    Freebsd,
}

/// What netblast is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlastOptions {
    /// Address or name of the receiver.
    pub host: String,
    /// Its port, not 0.
    pub port: u16,
    /// Bytes of UDP payload, at most [`PAYLOAD_BYTES_MAX`].
    pub payload_bytes: usize,
    /// How long to send, whole seconds; 0 sends until a signal comes.
    pub duration_seconds: u64,
    /// Threads, when their number was given.
    pub threads: Option<usize>,
    /// How often to send for so long, 1 to [`RUNS_MAX`], when that was given: then what the runs come to is
    /// told below them.
    pub repeat: Option<u32>,
    /// Which lines to print.
    pub style: NetrateStyle,
    /// Up to 64 datagrams a system call.
    pub is_batched: bool,
    /// A send waits for room in the socket's buffer.
    pub is_blocking: bool,
    /// One JSON object instead of lines.
    pub json: bool,
}

/// What netreceive is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveOptions {
    /// The port to receive at, not 0.
    pub port: u16,
    /// Threads for each socket, 1 to 64.
    pub threads: usize,
    /// One JSON object at the end.
    pub json: bool,
}

/// What netsend is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendOptions {
    /// Address or name of the receiver.
    pub host: String,
    /// Its first port, not 0.
    pub port: u16,
    /// Its last port; the same when there is one only.
    pub port_max: u16,
    /// Bytes of UDP payload, at most [`PAYLOAD_BYTES_MAX`].
    pub payload_bytes: usize,
    /// Datagrams a second, at most [`PACKETS_PER_SECOND_MAX`]; as fast as it goes without.
    pub rate: Option<Rate>,
    /// How long to send, whole seconds; 0 sends until a signal comes.
    pub duration_seconds: u64,
    /// A send waits for room in the socket's buffer.
    pub is_blocking: bool,
    /// One JSON object instead of lines.
    pub json: bool,
}

/// Why a command line was refused. Printed as it stands; the exit status is 255.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// Too few or too many arguments, or one that is no number in its range.
    Usage(Tool),
    /// netblast's port.
    InvalidPort(String),
    /// netblast's duration.
    InvalidDuration(String),
    /// The payload is longer than [`PAYLOAD_BYTES_MAX`].
    PayloadTooLong,
    /// The rate is above [`PACKETS_PER_SECOND_MAX`].
    RateTooHigh,
    /// An option that the tool does not have.
    UnknownOption(Tool, String),
    /// The value of `--style`, when there is one.
    InvalidStyle(Option<String>),
    /// The value of `--repeat`, when there is one.
    InvalidRepeat(Option<String>),
    /// `--repeat` with `--json`, or without an end.
    RepeatOfWhat,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blast = Tool::Netblast.usage();
        match self {
            Self::Usage(tool) => f.write_str(tool.usage()),
            Self::InvalidPort(port) => write!(f, "Invalid port number: {port}\n{blast}"),
            Self::InvalidDuration(time) => write!(f, "Invalid duration time: {time}\n{blast}"),
            Self::PayloadTooLong => write!(f, "payloadsize > {PAYLOAD_BYTES_MAX}"),
            Self::RateTooHigh => write!(f, "packet rate at most {PACKETS_PER_SECOND_MAX}"),
            Self::UnknownOption(tool, option) => write!(
                f,
                "{name}: unknown option {option}; '{name} --help' lists the options\n{usage}",
                name = tool.name(),
                usage = tool.usage()
            ),
            Self::InvalidStyle(value) => {
                let given = value.as_deref().unwrap_or("nothing");
                write!(f, "netblast: --style takes freebsd or router, not {given}")
            }
            Self::InvalidRepeat(value) => {
                let given = value.as_deref().unwrap_or("nothing");
                write!(
                    f,
                    "netblast: --repeat takes a number from 1 to {RUNS_MAX}, not {given}"
                )
            }
            Self::RepeatOfWhat => f.write_str(
                "netblast: --repeat needs a duration above 0: the first run would not end",
            ),
        }
    }
}

impl std::error::Error for OptionError {}

/// Reads netblast's command line, without the program's name.
pub fn parse_netblast(args: &[String]) -> Result<CommandLine<BlastOptions>, OptionError> {
    let tool = Tool::Netblast;
    let Some(given) = Given::read(tool, args)? else {
        return Ok(CommandLine::Help);
    };
    let (host, port, payload, duration, threads) = match given.positional[..] {
        [host, port, payload, duration] => (host, port, payload, duration, None),
        [host, port, payload, duration, threads] => (host, port, payload, duration, Some(threads)),
        _ => return Err(OptionError::Usage(tool)),
    };
    let duration_seconds =
        number(duration).ok_or_else(|| OptionError::InvalidDuration(duration.to_owned()))?;
    if given.repeat.is_some() && duration_seconds == 0 {
        return Err(OptionError::RepeatOfWhat);
    }
    Ok(CommandLine::Run(BlastOptions {
        repeat: given.repeat,
        host: host.to_owned(),
        port: port_number(port).ok_or_else(|| OptionError::InvalidPort(port.to_owned()))?,
        payload_bytes: payload_bytes(tool, payload)?,
        duration_seconds,
        threads: threads
            .map(|threads| thread_count(threads, BLAST_THREADS_MAX))
            .map(|threads| threads.ok_or(OptionError::Usage(tool)))
            .transpose()?,
        style: given.style,
        is_batched: given.is_batched,
        is_blocking: given.is_blocking,
        json: given.json,
    }))
}

/// Reads netreceive's command line, without the program's name.
pub fn parse_netreceive(args: &[String]) -> Result<CommandLine<ReceiveOptions>, OptionError> {
    let tool = Tool::Netreceive;
    let Some(given) = Given::read(tool, args)? else {
        return Ok(CommandLine::Help);
    };
    let (port, threads) = match given.positional[..] {
        [port] => (port, "1"),
        [port, threads] => (port, threads),
        _ => return Err(OptionError::Usage(tool)),
    };
    Ok(CommandLine::Run(ReceiveOptions {
        port: port_number(port).ok_or(OptionError::Usage(tool))?,
        threads: thread_count(threads, RECEIVE_THREADS_MAX).ok_or(OptionError::Usage(tool))?,
        json: given.json,
    }))
}

/// Reads netsend's command line, without the program's name.
pub fn parse_netsend(args: &[String]) -> Result<CommandLine<SendOptions>, OptionError> {
    let tool = Tool::Netsend;
    let usage = || OptionError::Usage(tool);
    let Some(given) = Given::read(tool, args)? else {
        return Ok(CommandLine::Help);
    };
    let [host, ports, payload, rate, duration] = given.positional[..] else {
        return Err(usage());
    };
    let (port, port_max) = port_range(ports).ok_or_else(usage)?;
    let payload_bytes = payload_bytes(tool, payload)?;
    let packets_per_second = number(rate).ok_or_else(usage)?;
    if packets_per_second > PACKETS_PER_SECOND_MAX {
        return Err(OptionError::RateTooHigh);
    }
    Ok(CommandLine::Run(SendOptions {
        host: host.to_owned(),
        port,
        port_max,
        payload_bytes,
        rate: Rate::packets_per_second(packets_per_second),
        duration_seconds: number(duration).ok_or_else(usage)?,
        is_blocking: given.is_blocking,
        json: given.json,
    }))
}

/// A command line, sorted into the originals' arguments and nicpoll's options.
#[derive(Default)]
struct Given<'a> {
    positional: Vec<&'a str>,
    repeat: Option<u32>,
    style: NetrateStyle,
    is_batched: bool,
    is_blocking: bool,
    json: bool,
}

impl<'a> Given<'a> {
    /// `None` when help was asked for.
    fn read(tool: Tool, args: &'a [String]) -> Result<Option<Self>, OptionError> {
        let mut given = Given::default();
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            if matches!(arg, "--help" | "-h") {
                return Ok(None);
            }
            if !arg.starts_with("--") {
                given.positional.push(arg);
                continue;
            }
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg, None),
            };
            if !tool.takes(name) || (value.is_some() && !matches!(name, "--style" | "--repeat")) {
                return Err(OptionError::UnknownOption(tool, arg.to_owned()));
            }
            match name {
                "--json" => given.json = true,
                "--blocking" => given.is_blocking = true,
                "--batch" => given.is_batched = true,
                "--repeat" => given.repeat = Some(runs(value.or_else(|| args.next()))?),
                _ => given.style = style(value.or_else(|| args.next()))?,
            }
        }
        Ok(Some(given))
    }
}

fn style(value: Option<&str>) -> Result<NetrateStyle, OptionError> {
    match value {
        Some("freebsd") => Ok(NetrateStyle::Freebsd),
        Some("router") => Ok(NetrateStyle::Router),
        other => Err(OptionError::InvalidStyle(other.map(str::to_owned))),
    }
}

fn runs(value: Option<&str>) -> Result<u32, OptionError> {
    let runs = value
        .and_then(number)
        .and_then(|runs| u32::try_from(runs).ok());
    runs.filter(|runs| (1..=RUNS_MAX).contains(runs))
        .ok_or_else(|| OptionError::InvalidRepeat(value.map(str::to_owned)))
}

fn payload_bytes(tool: Tool, text: &str) -> Result<usize, OptionError> {
    let bytes = number(text).ok_or(OptionError::Usage(tool))?;
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(OptionError::PayloadTooLong);
    }
    Ok(bytes as usize)
}

fn port_number(text: &str) -> Option<u16> {
    let port = u16::try_from(number(text)?).ok()?;
    (port > 0).then_some(port)
}

fn port_range(text: &str) -> Option<(u16, u16)> {
    // A sign of the first number is not the dash of a range; a port has no use for one.
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (port_number(first)?, port_number(last)?);
    (first <= last).then_some((first, last))
}

fn thread_count(text: &str, most: u64) -> Option<usize> {
    let threads = number(text)?;
    (1..=most).contains(&threads).then_some(threads as usize)
}

/// A number as strtoul(3) reads it with base 10: blanks and a sign may stand before it. What would be
/// negative as a `long`, a minus sign or an overflow, is refused.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = digits.parse().ok()?;
    i64::try_from(number).is_ok().then_some(number)
}
