//! iperf 2's command line: what each option means, without doing any of it.
//!
//! Meanings and units are those of 2.1.8, whichever version's lines are printed. What 2.1.8 reads
//! but is not carried out here is refused by name rather than passed over, and so is a value that
//! 2.1.8 would silently turn into another.

mod bind;
mod draft;
mod error;
mod given;
mod help;
mod scan;
mod table;
#[cfg(test)]
mod tests;
mod units;

use std::path::PathBuf;
use std::time::Duration;

use nicpoll_model::Protocol;

pub use error::OptionError;
pub use help::{OPTION_TABLES, help_text};

use draft::Draft;
use scan::{Scanner, Token};
use table::{Argument, Meaning, VARIABLES};

use crate::config::StreamConfig;
use crate::network::AddressPrefix;
use crate::pace::Amount;
use crate::text::Style;
use crate::wire::DEFAULT_PORT;

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Options {
    /// To send.
    Client(ClientOptions),
    /// To receive.
    Server(ServerOptions),
    /// To print [`help_text`].
    Help,
    /// To print the version.
    Version,
}

/// What both ends understand.
#[derive(Clone, Debug, PartialEq)]
pub struct Common {
    /// The streams.
    pub stream: StreamConfig,
    /// The server's port (-p), the first one of a range.
    pub port: u16,
    /// The last one of a range, greater than the first (-p first-last): a server listens on each, and a
    /// client has a stream to each.
    pub last_port: Option<u16>,
    /// Local address (-B).
    pub bind: Option<Bind>,
    /// IPv6 (-V); a server then serves IPv4 as well.
    pub ipv6: bool,
    /// Unit letter of the reports (-f); `a` adapts it to each figure.
    pub format: char,
    /// Which version's lines to print (--style).
    pub style: Style,
    /// Comma-separated values (-y C).
    pub csv: bool,
    /// More columns (-e).
    pub enhanced: bool,
    /// What not to print (-x).
    pub exclude: Exclude,
    /// Print the segment size (-m).
    pub print_mss: bool,
    /// JSON instead of text.
    pub json: Option<Json>,
    /// File that takes all output (-o).
    pub output: Option<PathBuf>,
    /// Run before programs without a realtime priority (-z).
    pub is_realtime: bool,
    /// Lines to print to standard error before anything else.
    pub warnings: Vec<String>,
}

impl Default for Common {
    fn default() -> Self {
        Common {
            stream: StreamConfig {
                is_batched: true,
                ..StreamConfig::tcp(Amount::Bytes(0))
            },
            port: DEFAULT_PORT,
            last_port: None,
            is_realtime: false,
            bind: None,
            ipv6: false,
            format: 'a',
            style: Style::default(),
            csv: false,
            enhanced: false,
            exclude: Exclude::default(),
            print_mss: false,
            json: None,
            output: None,
            warnings: Vec::new(),
        }
    }
}

impl Common {
    /// Whether UDP carries the streams.
    pub fn is_udp(&self) -> bool {
        self.stream.protocol == Protocol::Udp
    }
}

/// A client.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientOptions {
    /// What both ends understand.
    pub common: Common,
    /// The server as typed (-c), without the device.
    pub host: String,
    /// How often to run the test, when that was given (--repeat): then what the runs came to is told below
    /// them.
    pub repeat: Option<u32>,
}

/// A server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerOptions {
    /// What both ends understand.
    pub common: Common,
    /// Connections to handle before it ends (-P).
    pub connections: Option<u32>,
    /// One test at a time (-1, -U).
    pub single_client: bool,
    /// Whom datagrams may be sent to that ask for them (--allow).
    pub allow: Vec<AddressPrefix>,
    /// How long to listen, and the longest test (-t); `None` is until interrupted.
    pub time: Option<Duration>,
    /// Leave the terminal (-D).
    pub daemon: bool,
}

/// JSON instead of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Json {
    /// One object at the end (--json).
    Whole,
    /// One object a line as things happen (--json-stream).
    Stream,
}

/// A local address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// Address or name as typed, without brackets.
    pub address: String,
    /// Device; a server's only.
    pub device: Option<String>,
    /// Port; a client's only.
    pub port: Option<u16>,
}

/// What not to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exclude {
    /// Connection lines (C).
    pub connections: bool,
    /// Data lines (D).
    pub data: bool,
    /// Sums over streams (M).
    pub sums: bool,
    /// Settings (S).
    pub settings: bool,
    /// The server's report at a UDP client (V).
    pub server_report: bool,
    /// Every stream by itself (--sum-only).
    pub streams: bool,
}

/// Reads the environment, then the arguments, which do not hold the program's name.
///
/// # Errors
/// See [`OptionError`]. Help and version are found before any error behind them.
/// ```
/// use nicpoll_iperf::options::{Options, parse};
///
/// let args = "-c 192.0.2.7 -u -b 500M -l 18 -t 60".split(' ');
/// let options = parse(args.map(String::from), |_| None)?;
/// let Options::Client(client) = options else { panic!("-c makes a client") };
/// assert_eq!(client.common.port, 5001);
/// // What cannot be meant is refused by name.
/// let error = parse(["-s", "-t", "soon"].map(String::from), |_| None).unwrap_err();
/// assert!(error.to_string().contains("soon"));
/// # Ok::<(), nicpoll_iperf::options::OptionError>(())
/// ```
pub fn parse(
    args: impl IntoIterator<Item = String>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Options, OptionError> {
    let mut draft = Draft::default();
    for (variable, spec) in VARIABLES.iter() {
        if let Some(value) = environment(variable) {
            // A flag is set by being there, also when empty.
            let value = (spec.argument() != Argument::None).then_some(value);
            draft.take(spec, value, variable)?;
        }
    }
    for token in Scanner::new(args.into_iter()) {
        match token? {
            Token::Option { spec, value } => match spec.meaning {
                Meaning::Help => return Ok(Options::Help),
                Meaning::Version => return Ok(Options::Version),
                _ => draft.take(spec, value, &spec.name())?,
            },
            Token::Extra(extra) => draft.extra(&extra),
        }
    }
    draft.finish()
}
