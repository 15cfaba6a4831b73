//! What is sent: patterns of datagrams and iperf's TCP, read from a name with options.

use std::fmt;
use std::sync::Arc;

use nicpoll_model::line::IpVersion;

use super::options::{NameAndOptions, SimError, number, ranged, refuse};
use super::trace::Trace;

const NAMES: &str =
    "constant, poisson, pulses, trace:FILE, blast (or netblast), iperf-udp, iperf-tcp, rr";
/// Most lines to a single host, and most cards of a host: an interrupt source has a bit for each.
pub(crate) const LINKS_MAX: usize = 8;
/// More than any line carries.
const RATE_MAX_PPS: u64 = 1_000_000_000;
const BUFFER_BYTES_MAX: u64 = 1 << 30;
const BITS_PER_SECOND_MAX: u64 = 1_000_000_000_000;

/// Traffic: what is sent, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficModel {
    /// When datagrams are sent.
    pub pattern: Pattern,
    /// Packets a second; `None` when it is not given, or when the host sends as fast as it can.
    pub rate_pps: Option<u64>,
    /// Bytes of UDP payload in each; TCP chooses its own segments.
    pub payload_bytes: u32,
    /// IP version.
    pub ip: IpVersion,
    /// Independent senders, 1 to 10,000. More than one are ideal hosts at the far end of the lines.
    pub(crate) clients: u16,
    /// Flows among which a sending program deals out its datagrams, 1 to 10,000.
    pub(crate) flows: u16,
    /// Lines to the simulated host, each with a card of its own, 1 to 8. The clients are dealt out to them in turn.
    pub(crate) links: u8,
}

/// When datagrams are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Another host sends at equal intervals.
    Constant,
    /// Another host sends, at times independent of each other.
    Poisson,
    /// Another host sends the datagrams of a period at its start, back to back.
    Pulses {
        /// Time from pulse to pulse.
        period_ns: u64,
    },
    /// The simulated host itself sends, without a pause, and does not wait when a queue is full.
    Blast,
    /// One simulated host sends to another at a payload rate, paced as by iperf 2.0.
    IperfUdp {
        /// The rate asked for.
        bits_per_second: u64,
        /// Whether it sleeps through a pause, as 2.0.5 does, or reads the clock until the pause is over.
        sleeps: bool,
    },
    /// Another host sends a recorded trace.
    Trace {
        /// The recording.
        trace: Arc<Trace>,
        /// Whether it starts again after its last packet.
        repeats: bool,
    },
    /// One simulated host writes to a TCP connection to another, as iperf 2 does.
    IperfTcp(IperfTcp),
    /// A client sends a request, waits for the reply, and sends the next: one simulated host to another, or
    /// ideal hosts at the far end to the simulated one.
    RequestResponse,
}

/// Options of iperf over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IperfTcp {
    /// Send and receive buffers (`-w`); `None` for those of the hosts.
    pub window_bytes: Option<u64>,
    /// Bytes of a call to write or to read (`-l`).
    pub write_bytes: u64,
    /// Whether the other host sends too, over a connection of its own (`-d`).
    pub is_dual: bool,
}

impl Pattern {
    /// Returns the pattern named `name`, with its defaults.
    fn named(name: &str) -> Result<Pattern, SimError> {
        Ok(match name {
            "constant" => Pattern::Constant,
            "poisson" => Pattern::Poisson,
            "pulses" => Pattern::Pulses {
                period_ns: 1_000_000,
            },
            "blast" | "netblast" => Pattern::Blast,
            // iperf's own default is 1 Mbit/s.
            "iperf-udp" => Pattern::IperfUdp {
                bits_per_second: 1_048_576,
                sleeps: false,
            },
            "iperf-tcp" => Pattern::IperfTcp(IperfTcp {
                window_bytes: None,
                // iperf 2's default in the code; its help differs.
                write_bytes: 131_072,
                is_dual: false,
            }),
            "rr" => Pattern::RequestResponse,
            "trace" => return refuse("a trace is named by its file: trace:FILE"),
            other => return refuse(format!("no such workload: '{other}'; there are {NAMES}")),
        })
    }

    /// Returns its name, and the options that it takes.
    fn row(&self) -> (&'static str, &'static str) {
        match self {
            Pattern::Constant => ("constant", "rate, clients, links, payload, ip"),
            Pattern::Poisson => ("poisson", "rate, clients, links, payload, ip"),
            Pattern::Pulses { .. } => ("pulses", "rate, period, clients, links, payload, ip"),
            Pattern::Blast => ("blast", "flows, payload, ip"),
            Pattern::IperfUdp { .. } => ("iperf-udp", "rate, sleep, payload, ip"),
            Pattern::IperfTcp(_) => ("iperf-tcp", "window, write, dual, ip"),
            Pattern::RequestResponse => ("rr", "clients, links, payload, ip"),
            Pattern::Trace { .. } => ("trace", "repeat, ip"),
        }
    }

    fn takes(&self, option: &str) -> bool {
        self.row().1.split(", ").any(|known| known == option)
    }

    /// Whether it goes from one simulated host to another.
    pub(crate) fn needs_peer(&self) -> bool {
        matches!(self, Pattern::IperfUdp { .. } | Pattern::IperfTcp(_))
    }

    /// Whether it comes from an ideal far end.
    pub(crate) fn needs_far_end(&self) -> bool {
        matches!(
            self,
            Pattern::Constant | Pattern::Poisson | Pattern::Pulses { .. } | Pattern::Trace { .. }
        )
    }
}

impl fmt::Display for TrafficModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = |name, value: u64| (name, Some(value));
        let above_1 = |value: u64| Some(value).filter(|value| *value > 1);
        let ip = some("ip", if self.ip == IpVersion::V4 { 4 } else { 6 });
        let options = match &self.pattern {
            Pattern::Trace { repeats, .. } => vec![some("repeat", u64::from(*repeats)), ip],
            Pattern::IperfTcp(options) => vec![
                ("window", options.window_bytes),
                some("write", options.write_bytes),
                some("dual", u64::from(options.is_dual)),
                ip,
            ],
            pattern => {
                let (mut rate, mut period_ns, mut sleep) = (self.rate_pps, None, None);
                match pattern {
                    Pattern::IperfUdp {
                        bits_per_second,
                        sleeps,
                    } => {
                        rate = Some(*bits_per_second);
                        sleep = sleeps.then_some(1);
                    }
                    Pattern::Pulses { period_ns: of } => period_ns = Some(*of),
                    _ => {}
                }
                let clients = Some(u64::from(self.clients));
                vec![
                    ("rate", rate),
                    some("payload", u64::from(self.payload_bytes)),
                    ip,
                    ("sleep", sleep),
                    ("period", period_ns),
                    (
                        "clients",
                        clients.filter(|_| self.clients != u16::from(self.links)),
                    ),
                    ("flows", above_1(u64::from(self.flows))),
                    ("links", above_1(u64::from(self.links))),
                ]
            }
        };
        f.write_str(self.name())?;
        if let Pattern::Trace { trace, .. } = &self.pattern {
            write!(f, ":{}", trace.name())?;
        }
        for (name, value) in options {
            if let Some(value) = value {
                let unit = if name == "period" { "ns" } else { "" };
                write!(f, ":{name}={value}{unit}")?;
            }
        }
        Ok(())
    }
}

impl TrafficModel {
    /// Most clients.
    pub const CLIENTS_MAX: u64 = 10_000;

    /// Reads a name with its options: `constant:rate=100k`, `poisson:rate=5k:payload=1470`,
    /// `pulses:rate=50k:period=1ms`, `rr:clients=1000:links=4`, `blast:payload=64:ip=6`,
    /// `iperf-tcp:window=32k:dual=1`.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(text: &str) -> Result<TrafficModel, SimError> {
        let spec = NameAndOptions::parse(text)?;
        let payload_bytes = if spec.name == "iperf-udp" { 1470 } else { 64 };
        let mut traffic = TrafficModel::of(Pattern::named(spec.name)?, payload_bytes);
        for (name, value) in &spec.options {
            traffic.set(name, value)?;
        }
        let has_clients = spec.options.iter().any(|(name, _)| *name == "clients");
        let clients = if has_clients {
            traffic.clients
        } else {
            u16::from(traffic.links)
        };
        traffic.with_clients(u64::from(clients))
    }

    /// Sets an option.
    fn set(&mut self, name: &str, value: &str) -> Result<(), SimError> {
        let (own, known) = self.pattern.row();
        if !self.pattern.takes(name) {
            return refuse(format!("{own} has no option '{name}'; it has {known}"));
        }
        let within = |min, max| ranged(name, value, min, max);
        match (name, &mut self.pattern) {
            (
                "rate",
                Pattern::IperfUdp {
                    bits_per_second, ..
                },
            ) => *bits_per_second = within(1, BITS_PER_SECOND_MAX)?,
            ("sleep", Pattern::IperfUdp { sleeps, .. }) => *sleeps = within(0, 1)? == 1,
            ("rate", _) => {
                let value = value.strip_suffix("pps").unwrap_or(value);
                self.rate_pps = Some(ranged(name, value, 1, RATE_MAX_PPS)?);
            }
            ("window", Pattern::IperfTcp(options)) => {
                options.window_bytes = Some(within(2_048, BUFFER_BYTES_MAX)?);
            }
            ("write", Pattern::IperfTcp(options)) => {
                options.write_bytes = within(1, BUFFER_BYTES_MAX)?;
            }
            ("dual", Pattern::IperfTcp(options)) => options.is_dual = within(0, 1)? == 1,
            ("period", Pattern::Pulses { period_ns }) => *period_ns = within(1_000, 1_000_000_000)?,
            ("repeat", Pattern::Trace { repeats, .. }) => *repeats = within(0, 1)? == 1,
            ("payload", _) => self.payload_bytes = within(0, 65_535)? as u32,
            ("clients", _) => self.clients = within(1, TrafficModel::CLIENTS_MAX)? as u16,
            ("flows", _) => self.flows = within(1, TrafficModel::CLIENTS_MAX)? as u16,
            ("links", _) => self.links = within(1, LINKS_MAX as u64)? as u8,
            _ => {
                self.ip = match number(value) {
                    Ok(4) => IpVersion::V4,
                    Ok(6) => IpVersion::V6,
                    _ => return refuse(format!("ip={value}: 4 or 6 was expected")),
                }
            }
        }
        Ok(())
    }

    fn of(pattern: Pattern, payload_bytes: u32) -> TrafficModel {
        TrafficModel {
            pattern,
            rate_pps: None,
            payload_bytes,
            ip: IpVersion::V4,
            clients: 1,
            flows: 1,
            links: 1,
        }
    }

    /// Returns the traffic with another number of clients.
    ///
    /// # Errors
    /// Why this number is refused.
    pub fn with_clients(self, clients: u64) -> Result<TrafficModel, SimError> {
        let links = self.links;
        if clients != u64::from(links) && !self.pattern.takes("clients") {
            return refuse(format!(
                "{} comes from one sender; constant, poisson, pulses and rr take clients",
                self.name()
            ));
        }
        if !(1..=TrafficModel::CLIENTS_MAX).contains(&clients) {
            return refuse(format!(
                "clients={clients} is out of range; give 1 to {}",
                TrafficModel::CLIENTS_MAX
            ));
        }
        if clients < u64::from(links) {
            return refuse(format!(
                "clients={clients} are too few for links={links}: each link has one at least; give more clients or \
                 fewer links"
            ));
        }
        Ok(TrafficModel {
            clients: clients as u16,
            ..self
        })
    }

    /// Returns traffic from another host that sends a recorded trace. `options` are `repeat=1` and `ip=6`, as after a
    /// name.
    ///
    /// # Errors
    /// Which option is wrong, and what would be right.
    pub fn replay(trace: Arc<Trace>, options: &[(&str, &str)]) -> Result<TrafficModel, SimError> {
        let (pps, payload_bytes) = (trace.mean_pps(), trace.payload_bytes_max());
        let pattern = Pattern::Trace {
            trace,
            repeats: false,
        };
        let mut traffic = TrafficModel::of(pattern, payload_bytes);
        traffic.rate_pps = Some(pps);
        for (name, value) in options {
            traffic.set(name, value)?;
        }
        Ok(traffic)
    }

    /// Returns the traffic at another rate.
    ///
    /// # Errors
    /// Why it has no rate.
    pub fn at(self, rate_pps: u64) -> Result<TrafficModel, SimError> {
        if !self.pattern.needs_far_end() || !self.pattern.takes("rate") {
            let or_clients = match self.pattern.takes("clients") {
                true => ", or clients",
                false => "",
            };
            return refuse(format!(
                "{} has no rate of packets to vary; vary a number of the host{or_clients}",
                self.name()
            ));
        }
        Ok(TrafficModel {
            rate_pps: Some(rate_pps),
            ..self
        })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.pattern.row().0
    }
}
