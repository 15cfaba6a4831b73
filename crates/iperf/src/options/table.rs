//! Every option of iperf 2.1.8 in one table: the scanner must know which of them take a value, and
//! one that is left out must be told from one that never was.

use std::sync::LazyLock;

/// Whether a value follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// None may.
    None,
    /// One must.
    Required,
    /// One may, after `=` only.
    Optional,
}

/// Where an option means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// At both ends.
    Both,
    /// At the client.
    Client,
    /// At the server.
    Server,
}

/// The options that are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id {
    Allow,
    Bandwidth,
    Bind,
    Burst,
    Client,
    Compatibility,
    Congestion,
    Daemon,
    Dialect,
    Dual,
    Enhanced,
    Exclude,
    FileInput,
    Format,
    FullDuplex,
    Help,
    Interval,
    Ipv6,
    Json,
    JsonStream,
    Length,
    ListenPort,
    Mss,
    NoBatch,
    Nodelay,
    Number,
    Output,
    Parallel,
    Port,
    PrintMss,
    ReportStyle,
    Reverse,
    Server,
    SingleClient,
    SingleUdp,
    StdinInput,
    Style,
    Time,
    Tos,
    TradeOff,
    TripTimes,
    Ttl,
    Udp,
    Version,
    Window,
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// It is carried out.
    Known(Id),
    /// It is refused with this advice.
    LeftOut(&'static str),
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its letter.
    pub short: Option<char>,
    /// Its long names, the first one preferred.
    pub long: &'static [&'static str],
    /// Whether a value follows.
    pub argument: Argument,
    /// Where it means something.
    pub side: Side,
    /// What becomes of it.
    pub meaning: Meaning,
    /// Environment variables of 2.1.8 that are not made from a long name.
    pub environment: &'static [&'static str],
}

impl Spec {
    /// The name messages use: the letter where there is one.
    pub fn name(&self) -> String {
        match (self.short, self.long.first()) {
            (Some(letter), _) => format!("-{letter}"),
            (None, Some(name)) => format!("--{name}"),
            (None, None) => String::new(),
        }
    }

    /// The environment variables that stand for the option. None for those that print and leave:
    /// they would make every call useless.
    fn variables(&self) -> Vec<String> {
        if matches!(self.meaning, Meaning::Known(Id::Help | Id::Version)) {
            return Vec::new();
        }
        let from_name =
            |name: &&str| format!("IPERF_{}", name.to_ascii_uppercase().replace('-', "_"));
        let own = self.environment.iter().map(|name| (*name).to_owned());
        own.chain(self.long.iter().map(from_name)).collect()
    }

    const fn environment(mut self, names: &'static [&'static str]) -> Self {
        self.environment = names;
        self
    }

    const fn only(mut self, side: Side) -> Self {
        self.side = side;
        self
    }
}

const fn flag(short: char, long: &'static [&'static str], id: Id) -> Spec {
    spec(Some(short), long, Argument::None, Meaning::Known(id))
}

const fn value(short: char, long: &'static [&'static str], id: Id) -> Spec {
    spec(Some(short), long, Argument::Required, Meaning::Known(id))
}

const fn out(
    short: Option<char>,
    long: &'static [&'static str],
    argument: Argument,
    instead: &'static str,
) -> Spec {
    spec(short, long, argument, Meaning::LeftOut(instead))
}

const fn spec(
    short: Option<char>,
    long: &'static [&'static str],
    argument: Argument,
    meaning: Meaning,
) -> Spec {
    Spec {
        short,
        long,
        argument,
        side: Side::Both,
        meaning,
        environment: &[],
    }
}

const CLOCKS: &str = "measure delays with request/response, which needs no common clock";
const BURSTS: &str = "send at a steady rate with -b";
const ONE_TARGET: &str = "start one client for each address or port";
const RUN_COMMAND: &str = "start the program later with the shell or a timer";
const NO_HISTOGRAM: &str = "use -i for a course over time";
const DEFAULT_TUNING: &str = "leave it out: the socket's own behaviour is measured";
const FIREWALL: &str = "let a packet filter admit the client";
const ALWAYS_THERE: &str = "leave it out: it is not needed";

/// Every environment variable with its option, in the table's order.
pub static VARIABLES: LazyLock<Vec<(String, &Spec)>> = LazyLock::new(|| {
    let of = |spec: &'static Spec| spec.variables().into_iter().map(move |name| (name, spec));
    TABLE.iter().flat_map(of).collect()
});

/// All options, those that are carried out first.
pub static TABLE: &[Spec] = &[
    spec(
        None,
        &["allow"],
        Argument::Required,
        Meaning::Known(Id::Allow),
    )
    .only(Side::Server),
    value('b', &["bandwidth"], Id::Bandwidth),
    value('B', &["bind"], Id::Bind),
    spec(
        None,
        &["burst"],
        Argument::Required,
        Meaning::Known(Id::Burst),
    )
    .only(Side::Client),
    value('c', &["client"], Id::Client),
    flag('C', &["compatibility"], Id::Compatibility).environment(&["IPERF_COMPAT"]),
    value('Z', &["tcp-congestion", "linux-congestion"], Id::Congestion)
        .environment(&["IPERF_CONGESTION_CONTROL"]),
    flag('D', &["daemon"], Id::Daemon).only(Side::Server),
    spec(
        None,
        &["dialect"],
        Argument::Required,
        Meaning::Known(Id::Dialect),
    )
    .only(Side::Client),
    flag('d', &["dualtest"], Id::Dual).only(Side::Client),
    flag('e', &["enhanced"], Id::Enhanced).environment(&["IPERF_ENHANCEDREPORTS"]),
    value('x', &["reportexclude"], Id::Exclude),
    value('F', &["fileinput", "file_input"], Id::FileInput).only(Side::Client),
    value('f', &["format"], Id::Format),
    spec(
        None,
        &["full-duplex"],
        Argument::None,
        Meaning::Known(Id::FullDuplex),
    )
    .only(Side::Client),
    flag('h', &["help"], Id::Help),
    value('i', &["interval"], Id::Interval),
    flag('V', &["ipv6_domain", "IPv6Version"], Id::Ipv6),
    spec(None, &["json"], Argument::None, Meaning::Known(Id::Json)),
    spec(
        None,
        &["json-stream"],
        Argument::None,
        Meaning::Known(Id::JsonStream),
    ),
    value('l', &["len"], Id::Length),
    value('L', &["listenport"], Id::ListenPort).only(Side::Client),
    value('M', &["mss"], Id::Mss),
    spec(
        None,
        &["no-batch"],
        Argument::None,
        Meaning::Known(Id::NoBatch),
    ),
    flag('N', &["nodelay"], Id::Nodelay),
    value('n', &["num"], Id::Number).only(Side::Client),
    value('o', &["output"], Id::Output),
    value('P', &["parallel"], Id::Parallel),
    value('p', &["port"], Id::Port),
    flag('m', &["print_mss"], Id::PrintMss),
    value('y', &["reportstyle"], Id::ReportStyle),
    flag('R', &["reverse"], Id::Reverse).only(Side::Client),
    flag('s', &["server"], Id::Server),
    flag('1', &["singleclient"], Id::SingleClient).only(Side::Server),
    flag('U', &["single_udp"], Id::SingleUdp),
    flag('I', &["stdin", "stdin_input"], Id::StdinInput).only(Side::Client),
    spec(
        None,
        &["style"],
        Argument::Required,
        Meaning::Known(Id::Style),
    ),
    value('t', &["time"], Id::Time),
    value('S', &["tos"], Id::Tos),
    spec(
        None,
        &["trip-times"],
        Argument::None,
        Meaning::Known(Id::TripTimes),
    )
    .only(Side::Client),
    flag('r', &["tradeoff"], Id::TradeOff).only(Side::Client),
    value('T', &["ttl"], Id::Ttl).only(Side::Client),
    flag('u', &["udp"], Id::Udp),
    flag('v', &["version"], Id::Version),
    value('w', &["window"], Id::Window).environment(&["TCP_WINDOW_SIZE"]),
    // How the process runs.
    out(
        Some('z'),
        &["realtime"],
        Argument::None,
        "start it with chrt --rr",
    ),
    // Addresses.
    out(
        Some('4'),
        &[],
        Argument::None,
        "leave it out: IPv4 is the default",
    ),
    out(Some('6'), &[], Argument::None, "use -V"),
    out(
        Some('A'),
        &["awdl"],
        Argument::None,
        "name the device: -c host%device",
    ),
    out(
        Some('H'),
        &["ssm-host"],
        Argument::Required,
        "use -B with the group, which admits any source",
    ),
    out(None, &["incr-dstip"], Argument::None, ONE_TARGET).only(Side::Client),
    out(None, &["incr-dstport"], Argument::None, ONE_TARGET).only(Side::Client),
    out(None, &["incr-srcip"], Argument::None, ONE_TARGET).only(Side::Client),
    out(None, &["incr-srcport"], Argument::None, ONE_TARGET).only(Side::Client),
    out(
        None,
        &["local-only"],
        Argument::None,
        "name the device: -c host%device",
    )
    .only(Side::Client),
    out(
        None,
        &["tap-dev"],
        Argument::Optional,
        "receive at a socket of the device's address with -B",
    )
    .only(Side::Server),
    out(
        None,
        &["tun-dev"],
        Argument::Optional,
        "receive at a socket of the device's address with -B",
    )
    .only(Side::Server),
    out(None, &["l2checks"], Argument::None, ALWAYS_THERE),
    // Handshakes.
    out(
        Some('X'),
        &["peer-detect"],
        Argument::None,
        "leave it out: a server of either version is understood",
    )
    .only(Side::Client),
    out(None, &["permit-key"], Argument::Optional, FIREWALL),
    out(None, &["permit-key-timeout"], Argument::Required, FIREWALL).only(Side::Server),
    out(
        None,
        &["connect-only"],
        Argument::Optional,
        "measure with request/response, or use -n 1 with -l 1",
    )
    .only(Side::Client),
    out(
        None,
        &["connect-retries"],
        Argument::Required,
        "repeat the command while its exit status is 1",
    )
    .only(Side::Client),
    out(None, &["no-connect-sync"], Argument::None, ALWAYS_THERE).only(Side::Client),
    out(None, &["no-udp-fin"], Argument::None, ALWAYS_THERE).only(Side::Client),
    // When and how fast.
    out(None, &["txstart-time"], Argument::Required, RUN_COMMAND).only(Side::Client),
    out(None, &["txdelay-time"], Argument::Required, RUN_COMMAND).only(Side::Client),
    out(
        None,
        &["fq-rate"],
        Argument::Required,
        "use -b, or the fq queueing discipline",
    )
    .only(Side::Client),
    out(None, &["ipg"], Argument::Required, "use -b with pps").only(Side::Client),
    out(None, &["isochronous"], Argument::Optional, BURSTS).only(Side::Client),
    out(None, &["burst-size"], Argument::Required, BURSTS).only(Side::Client),
    out(None, &["burst-period"], Argument::Required, BURSTS).only(Side::Client),
    out(None, &["near-congestion"], Argument::Optional, BURSTS).only(Side::Client),
    // Delays.
    out(None, &["bounceback"], Argument::Optional, CLOCKS),
    out(None, &["bounceback-congest"], Argument::Optional, CLOCKS),
    out(None, &["bounceback-hold"], Argument::Required, CLOCKS),
    out(None, &["bounceback-no-quickack"], Argument::None, CLOCKS),
    out(None, &["bounceback-period"], Argument::Required, CLOCKS),
    out(None, &["bounceback-txdelay"], Argument::Required, CLOCKS),
    out(None, &["histograms"], Argument::Optional, NO_HISTOGRAM),
    out(
        None,
        &["udp-histograms", "udp-histogram"],
        Argument::Optional,
        NO_HISTOGRAM,
    ),
    // TCP.
    out(None, &["tcp-rx-window-clamp"], Argument::Required, "use -w").only(Side::Server),
    out(None, &["tcp-quickack"], Argument::None, DEFAULT_TUNING).only(Side::Client),
    out(
        None,
        &["tcp-write-prefetch"],
        Argument::Required,
        DEFAULT_TUNING,
    )
    .only(Side::Client),
    out(None, &["tcp-write-times"], Argument::None, DEFAULT_TUNING).only(Side::Client),
    out(None, &["tos-override"], Argument::Required, "use -S").only(Side::Server),
    // Output.
    out(
        None,
        &["sum-only"],
        Argument::None,
        "leave out -P's other lines with grep SUM",
    ),
    out(None, &["sum-dstip"], Argument::None, ALWAYS_THERE).only(Side::Server),
    out(None, &["hide-ips"], Argument::None, "use -x C"),
    // Of the program itself.
    out(
        Some('W'),
        &["suggest_win_size"],
        Argument::None,
        "try several -w; 2.1.8 does not have it either",
    ),
    out(
        None,
        &["NUM_REPORT_STRUCTS"],
        Argument::Required,
        ALWAYS_THERE,
    ),
];
