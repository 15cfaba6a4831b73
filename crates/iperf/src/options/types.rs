//! The parsed command line, read by streams, outputs and commands.

use std::path::PathBuf;
use std::time::Duration;

use nicpoll_model::Protocol;

use crate::config::{AddressPrefix, StreamConfig};
use crate::wire::{Amount, DEFAULT_PORT};

/// What the command line requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// Run a test.
    Test(Box<Options>),
    /// Print the help.
    Help,
    /// Print the version.
    Version,
}

/// Options of a test, at either end.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The streams.
    pub stream: StreamConfig,
    /// At a client: the server as typed (-c), without the device; `None` at a server.
    pub host: Option<String>,
    /// The server's port (-p).
    pub port: u16,
    /// Local address (-B).
    pub bind: Option<Bind>,
    /// Use IPv6 (-V); a server then serves IPv4, too.
    pub ipv6: bool,
    /// Unit letter of the reports (-f); `a` adapts to each figure.
    pub format: char,
    /// The version whose lines to print (--style).
    pub style: Style,
    /// Comma-separated values (-y C).
    pub csv: bool,
    /// Print more columns (-e).
    pub enhanced: bool,
    /// What not to print (-x).
    pub exclude: Exclude,
    /// Print the segment size (-m).
    pub print_mss: bool,
    /// Print JSON instead of text.
    pub json: Option<Json>,
    /// File for all output (-o).
    pub output: Option<PathBuf>,
    /// Run with real-time priority (-z).
    pub is_realtime: bool,
    /// Lines to print on standard error before anything else.
    pub warnings: Vec<String>,
    /// How often a client repeats the test, followed by a summary (--repeat). `None` without the option.
    pub repeat: Option<u32>,
    /// -P: at a server, the connections to handle before it ends; at a client, the number of streams.
    pub connections: Option<u32>,
    /// Serve one test at a time (-1, -U); servers only.
    pub single_client: bool,
    /// Clients that a server may send UDP data to (--allow).
    pub allow: Vec<AddressPrefix>,
    /// How long a server listens, and the longest test it serves (-t); `None` until interrupted.
    pub time: Option<Duration>,
    /// Run as a daemon (-D); servers only.
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
    /// Whether this is the client.
    pub fn is_client(&self) -> bool {
        self.host.is_some()
    }

    /// Whether the streams use UDP.
    pub fn is_udp(&self) -> bool {
        self.stream.protocol == Protocol::Udp
    }
}

/// Form of the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Json {
    /// One object at the end (--json).
    Whole,
    /// One object per line as things happen (--json-stream).
    Stream,
}

/// A local address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// Address or name as typed, without brackets.
    pub address: String,
    /// Network device; servers only.
    pub device: Option<String>,
    /// Port; clients only.
    pub port: Option<u16>,
}

/// What to leave out.
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
    /// Each single stream (--sum-only).
    pub streams: bool,
}

/// The iperf version whose lines to print (--style).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Version 2.0.5: times with one decimal, streams numbered by socket descriptor.
    #[default]
    V2_0,
    /// Version 2.1.8 as built by Debian: times with four decimals, streams numbered from 1.
    V2_1,
}
