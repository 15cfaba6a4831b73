//! What the command line comes to: one type for all that streams, outputs and the two commands read.

use std::path::PathBuf;
use std::time::Duration;

use nicpoll_model::Protocol;

use crate::config::{AddressPrefix, StreamConfig};
use crate::wire::{Amount, DEFAULT_PORT};

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// A test.
    Test(Box<Options>),
    /// To print the help.
    Help,
    /// To print the version.
    Version,
}

/// A test, at either end.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The streams.
    pub stream: StreamConfig,
    /// At a client, the server as typed (-c), without the device; `None` at a server.
    pub host: Option<String>,
    /// The server's port (-p).
    pub port: u16,
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
    /// How often a client is to run the test (--repeat); a summary of the runs then follows them. `None` without
    /// the option.
    pub repeat: Option<u32>,
    /// -P: a server's connections to handle before it ends; a client's are the streams.
    pub connections: Option<u32>,
    /// One test at a time (-1, -U), at a server.
    pub single_client: bool,
    /// Whom a server may send datagrams to that ask for them (--allow).
    pub allow: Vec<AddressPrefix>,
    /// How long a server is to listen, and its longest test (-t); `None` is until interrupted.
    pub time: Option<Duration>,
    /// Leave the terminal (-D), as a server.
    pub daemon: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            stream: StreamConfig {
                is_batched: true,
                ..StreamConfig::tcp(Amount::Bytes(0))
            },
            host: None,
            port: DEFAULT_PORT,
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
            is_realtime: false,
            warnings: Vec::new(),
            repeat: None,
            connections: None,
            single_client: false,
            allow: Vec::new(),
            time: None,
            daemon: false,
        }
    }
}

impl Options {
    /// Whether this is the end that connects.
    pub fn is_client(&self) -> bool {
        self.host.is_some()
    }

    /// Whether UDP carries the streams.
    pub fn is_udp(&self) -> bool {
        self.stream.protocol == Protocol::Udp
    }
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
