//! The command lines: the originals' positional arguments, and nicpoll's own options.
//!
//! Arguments that the originals accept mean the same here; others are refused in the originals' words. Numbers
//! are parsed like strtoul(3), except that nothing is truncated and an empty argument is not a number.

use nicpoll_model::{Rate, Refused};

use crate::repeat::RUNS_MAX;

/// Longest payload that the originals send.
pub const PAYLOAD_BYTES_MAX: u64 = 32_768;
/// Highest rate of netsend.
pub const PACKETS_PER_SECOND_MAX: u64 = 100_000_000;
/// Most threads per socket of netreceive.
const RECEIVE_THREADS_MAX: u64 = 64;
/// Most threads of netblast. The original has no limit.
const BLAST_THREADS_MAX: u64 = 1024;

/// The tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetrateTool {
    /// Sends as fast as possible.
    Netblast,
    /// Counts what arrives.
    Netreceive,
    /// Sends at a steady rate.
    Netsend,
}

impl NetrateTool {
    /// The tool's name.
    pub fn name(self) -> &'static str {
        match self {
            NetrateTool::Netblast => "netblast",
            NetrateTool::Netreceive => "netreceive",
            NetrateTool::Netsend => "netsend",
        }
    }

    /// The tool with this name.
    pub fn named(name: &str) -> Option<Self> {
        [
            NetrateTool::Netblast,
            NetrateTool::Netreceive,
            NetrateTool::Netsend,
        ]
        .into_iter()
        .find(|tool| tool.name() == name)
    }

    /// The original's usage line.
    fn usage(self) -> &'static str {
        match self {
            NetrateTool::Netblast => "netblast [ip] [port] [payloadsize] [duration]",
            NetrateTool::Netreceive => "netreceive port [nthreads]",
            NetrateTool::Netsend => {
                "netsend [ip] [port[-port_max]] [payloadsize] [packet_rate] [duration]"
            }
        }
    }

    fn takes(self, option: &str) -> bool {
        match option {
            "--json" => true,
            "--blocking" => self != NetrateTool::Netreceive,
            "--batch" | "--style" | "--repeat" => self == NetrateTool::Netblast,
            _ => false,
        }
    }
}

/// The lines that netblast prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetrateStyle {
    /// FreeBSD's, plus `send success:` and `approx throughput:`, as printed by a router distribution's build of
    /// 2011.
    #[default]
    Router,
    /// FreeBSD's.
    Freebsd,
}

/// What a tool is to do. Options that a tool does not take keep their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetrateOptions {
    /// Address or name of the receiver.
    pub host: String,
    /// The receiver's port, or the first of several; netreceive's own port. Not 0.
    pub port: u16,
    /// netsend's last port; equal to `port` if there is only one.
    pub port_max: u16,
    /// Bytes of UDP payload, at most 32 KiB.
    pub payload_bytes: usize,
    /// netsend's datagrams per second; `None` is unlimited.
    pub rate: Option<Rate>,
    /// How long to send, in whole seconds; 0 sends until a signal.
    pub duration_seconds: u64,
    /// Threads, for netreceive per socket; `None` if not given.
    pub threads: Option<usize>,
    /// How often netblast repeats the run (1 to [`RUNS_MAX`]), followed by a summary; `None` if not given.
    pub repeat: Option<u32>,
    /// The lines that netblast prints.
    pub style: NetrateStyle,
    /// Sends up to 64 datagrams per system call.
    pub is_batched: bool,
    /// Sends wait for room in the socket buffer. Otherwise, a full buffer is an immediate error, as is a
    /// refusal by the interface or its queue.
    pub is_blocking: bool,
    /// Prints one JSON object instead of lines.
    pub json: bool,
}

impl NetrateOptions {
    /// Parses a tool's arguments, without the program's name; `None` for help.
    ///
    /// # Errors
    /// The refusal, printed unchanged.
    pub fn parse(tool: NetrateTool, args: &[String]) -> Result<Option<Self>, Refused> {
        let mut options = NetrateOptions::default();
        let Some(positional) = options.read_own(tool, args)? else {
            return Ok(None);
        };
        let usage = || String::from(tool.usage());
        match (tool, &positional[..]) {
            (NetrateTool::Netblast, [host, port, payload, duration, threads @ ..])
                if threads.len() <= 1 =>
            {
                let invalid = |what, text| format!("Invalid {what}: {text}\n{}", tool.usage());
                options.host = String::from(*host);
                options.duration_seconds =
                    number(duration).ok_or_else(|| invalid("duration time", duration))?;
                if options.repeat.is_some() && options.duration_seconds == 0 {
                    return Err(String::from(
                        "netblast: --repeat needs a duration above 0: the first run would not end",
                    )
                    .into());
                }
                options.port = port_number(port).ok_or_else(|| invalid("port number", port))?;
                options.payload_bytes = payload_bytes(tool, payload)?;
                let threads = threads.first();
                let threads = threads.map(|text| thread_count(text, BLAST_THREADS_MAX));
                options.threads = threads.map(|it| it.ok_or_else(usage)).transpose()?;
            }
            (NetrateTool::Netreceive, [port, threads @ ..]) if threads.len() <= 1 => {
                options.port = port_number(port).ok_or_else(usage)?;
                let threads = thread_count(threads.first().unwrap_or(&"1"), RECEIVE_THREADS_MAX);
                options.threads = Some(threads.ok_or_else(usage)?);
            }
            (NetrateTool::Netsend, [host, ports, payload, rate, duration]) => {
                options.host = String::from(*host);
                (options.port, options.port_max) = port_range(ports).ok_or_else(usage)?;
                options.payload_bytes = payload_bytes(tool, payload)?;
                let rate = number(rate).ok_or_else(usage)?;
                if rate > PACKETS_PER_SECOND_MAX {
                    return Err(format!("packet rate at most {PACKETS_PER_SECOND_MAX}").into());
                }
                options.rate = Rate::packets_per_second(rate);
                options.duration_seconds = number(duration).ok_or_else(usage)?;
            }
            _ => return Err(usage().into()),
        }
        Ok(Some(options))
    }

    /// Parses nicpoll's own options; returns the originals' arguments, or `None` for help.
    fn read_own<'a>(
        &mut self,
        tool: NetrateTool,
        args: &'a [String],
    ) -> Result<Option<Vec<&'a str>>, Refused> {
        let mut positional = Vec::new();
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            if matches!(arg, "--help" | "-h") {
                return Ok(None);
            }
            if !arg.starts_with("--") {
                positional.push(arg);
                continue;
            }
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg, None),
            };
            if !tool.takes(name) || (value.is_some() && !matches!(name, "--style" | "--repeat")) {
                return Err(format!(
                    "{name}: unknown option {arg}; '{name} --help' lists the options\n{usage}",
                    name = tool.name(),
                    usage = tool.usage()
                )
                .into());
            }
            match name {
                "--json" => self.json = true,
                "--blocking" => self.is_blocking = true,
                "--batch" => self.is_batched = true,
                "--repeat" => self.repeat = Some(runs(value.or_else(|| args.next()))?),
                _ => self.style = style(value.or_else(|| args.next()))?,
            }
        }
        Ok(Some(positional))
    }
}

fn style(value: Option<&str>) -> Result<NetrateStyle, Refused> {
    match value {
        Some("freebsd") => Ok(NetrateStyle::Freebsd),
        Some("router") => Ok(NetrateStyle::Router),
        other => Err(format!(
            "netblast: --style takes freebsd or router, not {}",
            other.unwrap_or("nothing")
        )
        .into()),
    }
}

fn runs(value: Option<&str>) -> Result<u32, Refused> {
    let runs = value.and_then(number);
    match runs.and_then(|runs| u32::try_from(runs).ok()) {
        Some(runs @ 1..=RUNS_MAX) => Ok(runs),
        _ => Err(format!(
            "netblast: --repeat takes a number from 1 to {RUNS_MAX}, not {}",
            value.unwrap_or("nothing")
        )
        .into()),
    }
}

fn payload_bytes(tool: NetrateTool, text: &str) -> Result<usize, Refused> {
    match number(text) {
        Some(bytes @ 0..=PAYLOAD_BYTES_MAX) => Ok(bytes as usize),
        Some(_) => Err(format!("payloadsize > {PAYLOAD_BYTES_MAX}").into()),
        None => Err(String::from(tool.usage()).into()),
    }
}

fn port_number(text: &str) -> Option<u16> {
    let port = u16::try_from(number(text)?).ok()?;
    (port > 0).then_some(port)
}

fn port_range(text: &str) -> Option<(u16, u16)> {
    // A sign before the first port would look like a range; ports need none.
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (port_number(first)?, port_number(last)?);
    (first <= last).then_some((first, last))
}

fn thread_count(text: &str, most: u64) -> Option<usize> {
    let threads = number(text)?;
    (1..=most).contains(&threads).then_some(threads as usize)
}

/// Parses a number like strtoul(3) with base 10, with leading blanks and a plus sign. Refuses values that are
/// negative as a `long`, by a minus sign or by overflow.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = digits.parse().ok()?;
    i64::try_from(number).is_ok().then_some(number)
}
