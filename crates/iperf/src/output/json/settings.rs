//! What ran, and what it was asked for.

use nicpoll_model::iperf::{IPERF_SCHEMA, IperfDirections, IperfRole, IperfSettings, IperfStart};
use nicpoll_model::{Rate, RateUnit};

use crate::options::{ClientOptions, Common, ServerOptions};
use crate::wire::Directions;
use crate::{Amount, Input};

/// What the command line asks for.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    /// To connect.
    Client(&'a ClientOptions),
    /// To be connected to.
    Server(&'a ServerOptions),
}

impl<'a> Asked<'a> {
    /// What both ends understand.
    pub fn common(self) -> &'a Common {
        match self {
            Asked::Client(options) => &options.common,
            Asked::Server(options) => &options.common,
        }
    }
}

/// The record that begins everything.
pub(super) fn start(asked: Asked<'_>) -> IperfStart {
    let (role, settings) = match asked {
        Asked::Client(options) => (IperfRole::Client, client(options)),
        Asked::Server(options) => (IperfRole::Server, server(options)),
    };
    IperfStart {
        schema: String::from(IPERF_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        argv: std::env::args_os()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect(),
        kernel: kernel(),
        started_at: jiff::Timestamp::now().to_string(),
        role,
        settings,
    }
}

fn kernel() -> String {
    let name = rustix::system::uname();
    let parts = [name.sysname(), name.release(), name.machine()];
    parts.map(|part| part.to_string_lossy()).join(" ")
}

fn client(options: &ClientOptions) -> IperfSettings {
    let stream = &options.common.stream;
    let (duration, amount_bytes) = match stream.amount {
        // Payload from elsewhere ends the test when it ends.
        _ if stream.input.is_some() => (None, None),
        Amount::ENDLESS => (None, None),
        Amount::Time(time) => (Some(time), None),
        Amount::Bytes(bytes) => (None, Some(bytes)),
    };
    let first = options.common.port;
    IperfSettings {
        host: Some(options.host.clone()),
        // The options have been judged: of a range there are ports for all streams.
        port_max: options
            .common
            .last_port
            .map_or(first, |_| first + stream.streams.saturating_sub(1) as u16),
        directions: Some(match stream.directions {
            Directions::Forward => IperfDirections::Forward,
            Directions::Reverse => IperfDirections::Reverse,
            Directions::FullDuplex => IperfDirections::FullDuplex,
            Directions::Dual {
                is_at_once: true, ..
            } => IperfDirections::Dual,
            Directions::Dual { .. } => IperfDirections::TradeOff,
        }),
        duration_seconds: duration.map(|time| time.as_secs_f64()),
        amount_bytes,
        burst_datagrams: options.common.is_udp().then_some(stream.burst_datagrams),
        streams: Some(stream.streams),
        input: stream.input.as_ref().map(|input| match input {
            Input::File(path) => path.to_string_lossy().into_owned(),
            Input::Stdin => String::from("-"),
        }),
        ..common(&options.common)
    }
}

fn bits(rate: Rate) -> Option<u64> {
    rate.whole_per_second()
        .filter(|_| rate.unit() == RateUnit::BitsPerSecond)
}

fn datagrams(rate: Rate) -> Option<f64> {
    (rate.unit() == RateUnit::PacketsPerSecond).then(|| rate.per_second())
}

fn server(options: &ServerOptions) -> IperfSettings {
    IperfSettings {
        duration_seconds: options.time.map(|time| time.as_secs_f64()),
        streams: options.connections,
        ..common(&options.common)
    }
}

fn common(common: &Common) -> IperfSettings {
    let stream = &common.stream;
    IperfSettings {
        protocol: stream.protocol,
        host: None,
        port: common.port,
        port_max: common.last_port.unwrap_or(common.port),
        bind: common.bind.as_ref().map(|bind| bind.address.clone()),
        directions: None,
        length_bytes: stream.length_bytes as u64,
        duration_seconds: None,
        amount_bytes: None,
        rate_bits_per_second: stream.rate.and_then(bits),
        rate_datagrams_per_second: stream.rate.and_then(datagrams),
        pacing_bytes_per_second: stream.pacing_bytes_per_second,
        burst_datagrams: None,
        interval_seconds: stream.interval.map(|interval| interval.as_secs_f64()),
        streams: None,
        window_bytes: stream.buffer_bytes.map(|bytes| bytes as u64),
        type_of_service: stream.socket.type_of_service,
        congestion_control: stream.congestion_control.clone(),
        asks_for_version: stream.asks_for_version,
        has_nodelay: stream.no_delay,
        is_batched: stream.is_batched,
        input: None,
    }
}
