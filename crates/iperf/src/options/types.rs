//! What the command line comes to, in the types that streams and outputs take.

use std::path::PathBuf;
use std::time::Duration;

use nicpoll_model::Protocol;

use crate::config::{AddressPrefix, StreamConfig};
use crate::wire::{Amount, DEFAULT_PORT};

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Options {
    /// To send.
    Client(ClientOptions),
    /// To receive.
    Server(ServerOptions),
    /// To print the help.
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
    /// How often to run the test (--repeat); a summary of the runs then follows them. `None` without the
    /// option.
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

/// Whose lines are printed (--style).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Version 2.0.5: times with one decimal, streams numbered as their sockets are.
    #[default]
    V2_0,
    /// Version 2.1.8 as Debian builds it: times with four decimals, streams numbered from 1.
    V2_1,
}

/// The options of whichever end runs.
#[derive(Clone, Copy, Debug)]
pub enum End<'a> {
    /// The one that connects.
    Client(&'a ClientOptions),
    /// The one that is connected to.
    Server(&'a ServerOptions),
}

impl<'a> End<'a> {
    /// What both ends understand.
    pub fn common(self) -> &'a Common {
        match self {
            End::Client(options) => &options.common,
            End::Server(options) => &options.common,
        }
    }
}
