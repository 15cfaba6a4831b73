//! iperf 2's command line: what each option means, without doing any of it.
//!
//! Meanings and units are those of 2.1.8, whichever version's lines are printed. What 2.1.8 reads
//! but is not carried out here is refused by name rather than passed over, and so is a value that
//! 2.1.8 would silently turn into another.

mod bind;
mod draft;
mod error;
mod help;
mod scan;
mod table;
#[cfg(test)]
mod tests;
mod units;

use std::path::PathBuf;
use std::time::Duration;

use nicpoll_model::Rate;

use crate::wire::Dialect;

pub use error::OptionError;

pub use super::input::Input;
pub use super::text::Style;
pub use super::{Amount, Network};
pub use crate::wire::Directions;

use draft::Draft;
use scan::{Scanner, Token};
use table::{Argument, Id, Meaning, VARIABLES};

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
    /// UDP rather than TCP (-u).
    pub udp: bool,
    /// The server's port (-p).
    pub port: u16,
    /// Bytes of a write, of a read or of a datagram (-l).
    pub length_bytes: usize,
    /// Whether -l was given.
    pub length_was_set: bool,
    /// Socket buffer to ask for (-w).
    pub window_bytes: Option<usize>,
    /// Local address (-B).
    pub bind: Option<Bind>,
    /// IPv6 (-V); a server then serves IPv4 as well.
    pub ipv6: bool,
    /// Time between interval reports (-i).
    pub interval: Option<Duration>,
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
    /// Segment size to ask for (-M).
    pub mss: Option<u32>,
    /// Print the segment size (-m).
    pub print_mss: bool,
    /// One datagram a system call at either end, and TCP reads that return whatever is there
    /// (--no-batch).
    pub no_batch: bool,
    /// No Nagle (-N).
    pub nodelay: bool,
    /// IP_TOS byte (-S).
    pub tos: Option<u8>,
    /// Congestion control by name (-Z).
    pub congestion: Option<String>,
    /// JSON instead of text.
    pub json: Option<Json>,
    /// File that takes all output (-o).
    pub output: Option<PathBuf>,
    /// Lines to print to standard error before anything else.
    pub warnings: Vec<String>,
}

/// A client.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientOptions {
    /// What both ends understand.
    pub common: Common,
    /// The server as typed (-c), without the device.
    pub host: String,
    /// Device to send through (`-c host%device`).
    pub device: Option<String>,
    /// Which way data flow (-d, -r, -R, --full-duplex, and -L).
    pub directions: Directions,
    /// How much to send (-t or -n, whichever came last).
    pub amount: Amount,
    /// How fast (-b). Always set with UDP; `None` is as fast as TCP goes.
    pub rate: Option<Rate>,
    /// Streams at once (-P).
    pub streams: u32,
    /// Time to live (-T).
    pub ttl: Option<u8>,
    /// No headers (-C).
    pub compatibility: bool,
    /// Datagrams back to back (--burst), with as much time from burst to burst as the rate leaves.
    pub burst: u32,
    /// Tell the server that both ends have one clock (--trip-times); UDP only.
    pub trip_times: bool,
    /// Payload (-F, -I), whose end is that of the test.
    pub input: Option<Input>,
    /// The version to speak as over UDP (--dialect); 2.1 without it.
    pub dialect: Dialect,
}

/// A server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerOptions {
    /// What both ends understand.
    pub common: Common,
    /// Connections to handle before it ends (-P).
    pub connections: Option<u32>,
    /// One test at a time (-1).
    pub single_client: bool,
    /// Whom datagrams may be sent to that ask for them (--allow).
    pub allow: Vec<Network>,
    /// How long to listen, and the longest test (-t); `None` is until interrupted.
    pub time: Option<Duration>,
    /// How fast to read a TCP stream at most (-b).
    pub rate: Option<Rate>,
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
}

/// Reads the environment, then the arguments, which do not hold the program's name.
///
/// # Errors
/// See [`OptionError`]. Help and version are found before any error behind them.
pub fn parse(
    args: impl IntoIterator<Item = String>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Options, OptionError> {
    let mut draft = Draft::default();
    for (variable, spec) in VARIABLES.iter() {
        if let Some(value) = environment(variable) {
            // A flag is set by being there, also when empty.
            let value = (spec.argument != Argument::None).then_some(value);
            draft.take(spec, value, variable)?;
        }
    }
    for token in Scanner::new(args.into_iter()) {
        match token? {
            Token::Option { spec, value } => match spec.meaning {
                Meaning::Known(Id::Help) => return Ok(Options::Help),
                Meaning::Known(Id::Version) => return Ok(Options::Version),
                _ => draft.take(spec, value, &spec.name())?,
            },
            Token::Extra(extra) => draft.extra(&extra),
        }
    }
    draft.finish()
}

/// What `--help` prints.
pub fn help_text() -> String {
    help::HELP.to_owned()
}
