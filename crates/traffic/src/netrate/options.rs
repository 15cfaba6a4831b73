//! The command lines: the originals' positional arguments, and the options that nicpoll adds.
//!
//! Arguments that the originals accept have the same meaning here; others are refused in their words. Numbers are read as
//! strtoul(3) reads them, except that nothing is cut to fewer bits and that an empty argument is no number.

use nicpoll_model::{Rate, Refused};

use crate::repeat::RUNS_MAX;

/// Longest payload that the originals send.
pub const PAYLOAD_BYTES_MAX: u64 = 32_768;
/// Highest rate of netsend.
pub const PACKETS_PER_SECOND_MAX: u64 = 100_000_000;
/// Most threads a socket of netreceive may have.
const RECEIVE_THREADS_MAX: u64 = 64;
/// Most threads of netblast. The original has no limit.
const BLAST_THREADS_MAX: u64 = 1024;

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
    fn usage(self) -> &'static str {
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

/// What a tool is to do. What it takes no argument for has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetrateOptions {
    /// Address or name of the receiver.
    pub host: String,
    /// Its port, or the first of several; netreceive's own. Not 0.
    pub port: u16,
    /// netsend's last port; the same when there is one only.
    pub port_max: u16,
    /// Bytes of UDP payload, at most 32 KiB.
    pub payload_bytes: usize,
    /// Datagrams a second of netsend; as fast as it goes without.
    pub rate: Option<Rate>,
    /// How long to send, whole seconds; 0 sends until a signal comes.
    pub duration_seconds: u64,
    /// Threads, for each socket of netreceive, when their number was given.
    pub threads: Option<usize>,
    /// How often netblast sends for so long, 1 to [`RUNS_MAX`], when that was given: then what the runs come to is
    /// told below them.
    pub repeat: Option<u32>,
    /// Which lines netblast prints.
    pub style: NetrateStyle,
    /// Up to 64 datagrams a system call.
    pub is_batched: bool,
    /// A send waits for room in the socket's buffer. Without it, a send for which there is no room is an
    /// error at once, and so is one that the interface or its queue refuses.
    pub is_blocking: bool,
    /// One JSON object instead of lines.
    pub json: bool,
}

impl NetrateOptions {
    /// Reads a tool's command line, without the program's name; `None` when help was asked for.
    ///
    /// # Errors
    /// Why it was refused, to be printed as it stands.
    pub fn parse(tool: Tool, args: &[String]) -> Result<Option<Self>, Refused> {
        let mut options = NetrateOptions::default();
        let Some(positional) = options.read_own(tool, args)? else {
            return Ok(None);
        };
        let usage = || String::from(tool.usage());
        match (tool, &positional[..]) {
            (Tool::Netblast, [host, port, payload, duration, threads @ ..])
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
            (Tool::Netreceive, [port, threads @ ..]) if threads.len() <= 1 => {
                options.port = port_number(port).ok_or_else(usage)?;
                let threads = thread_count(threads.first().unwrap_or(&"1"), RECEIVE_THREADS_MAX);
                options.threads = Some(threads.ok_or_else(usage)?);
            }
            (Tool::Netsend, [host, ports, payload, rate, duration]) => {
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

    /// Reads nicpoll's own options, and returns the originals' arguments; `None` when help was asked for.
    fn read_own<'a>(
        &mut self,
        tool: Tool,
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

fn payload_bytes(tool: Tool, text: &str) -> Result<usize, Refused> {
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
