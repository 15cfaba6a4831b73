//! Every option of iperf 2.1.8, and those that are nicpoll's own, each as one row: its names, what it does
//! to the [`Draft`], its lines in the help and its row in docs/dialects.md. What 2.1.8 has and is left out
//! here has a row as well, so the scanner knows whether it takes a value, and its refusal names it.

use nicpoll_traffic::repeat::RUNS_MAX;

use super::draft::{Draft, Mode, Way};
use super::types::Json;
use super::values::{self, EXACT_MAX, Given, OptionError};
use crate::config::Input;
use Argument::{None as NoValue, Optional, Required};
use OptionSide::{Both, Client, Server};

/// Longest TCP buffer.
const LENGTH_BYTES_MAX: u64 = 64 << 20;
/// No address has more ports to connect from.
const PARALLEL_MAX: u32 = 65_535;
/// A second of the smallest datagrams at 10 Gbit/s, and then some, would be one burst.
const BURST_MAX: u32 = 1 << 24;

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
pub enum OptionSide {
    /// At both ends.
    Both,
    /// At the client.
    Client,
    /// At the server.
    Server,
}

impl OptionSide {
    /// As messages and docs/dialects.md name it.
    pub fn name(self) -> &'static str {
        match self {
            Both => "both",
            Client => "client",
            Server => "server",
        }
    }
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// It is carried out, and has no value.
    Flag(fn(&mut Draft)),
    /// It is carried out with its value.
    Value(fn(&mut Draft, &Given) -> Result<(), OptionError>),
    /// The help is printed, and nothing else happens.
    Help,
    /// The version is printed, and nothing else happens.
    Version,
    /// It is refused with this advice.
    LeftOut(Argument, &'static str),
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its letter, if it has one, and its long names, the preferred one first; separated by spaces.
    names: &'static str,
    /// Where it means something.
    pub side: OptionSide,
    /// Whether it is refused with TCP.
    pub needs_udp: bool,
    /// What becomes of it.
    pub meaning: Meaning,
    /// An environment variable of 2.1.8 that is not made from a long name.
    variable: Option<&'static str>,
    /// Its entry in the help: what stands for the value, and what it does.
    pub help: (&'static str, &'static str),
    /// Another entry among those of a server.
    pub server_help: Option<(&'static str, &'static str)>,
    /// Its row in docs/dialects.md: what stands for the value, what it does, and the values it takes.
    pub doc: [&'static str; 3],
}

const fn plain(names: &'static str, meaning: Meaning) -> Spec {
    Spec {
        names,
        side: Both,
        needs_udp: false,
        meaning,
        variable: None,
        help: ("", ""),
        server_help: None,
        doc: [""; 3],
    }
}

const fn flag(names: &'static str, take: fn(&mut Draft)) -> Spec {
    plain(names, Meaning::Flag(take))
}

const fn value(
    names: &'static str,
    take: fn(&mut Draft, &Given) -> Result<(), OptionError>,
) -> Spec {
    plain(names, Meaning::Value(take))
}

const fn left_out(
    names: &'static str,
    side: OptionSide,
    argument: Argument,
    instead: &'static str,
) -> Spec {
    Spec {
        side,
        ..plain(names, Meaning::LeftOut(argument, instead))
    }
}

impl Spec {
    const fn client(self) -> Self {
        Spec {
            side: Client,
            ..self
        }
    }

    const fn server(self) -> Self {
        Spec {
            side: Server,
            ..self
        }
    }

    const fn with_udp(self) -> Self {
        Spec {
            needs_udp: true,
            ..self
        }
    }

    const fn variable(self, name: &'static str) -> Self {
        Spec {
            variable: Some(name),
            ..self
        }
    }

    const fn help(self, value: &'static str, text: &'static str) -> Self {
        Spec {
            help: (value, text),
            ..self
        }
    }

    const fn server_help(self, value: &'static str, text: &'static str) -> Self {
        Spec {
            server_help: Some((value, text)),
            ..self
        }
    }

    const fn doc(self, value: &'static str, meaning: &'static str, limits: &'static str) -> Self {
        Spec {
            doc: [value, meaning, limits],
            ..self
        }
    }

    /// Its letter.
    pub fn letter(&self) -> Option<char> {
        let first = self.names.split(' ').next()?;
        first.chars().next().filter(|_| first.len() == 1)
    }

    /// Its long names, the preferred one first.
    pub fn long(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.names.split(' ').filter(|name| name.len() > 1)
    }

    /// The name messages use: the letter where there is one.
    pub fn name(&self) -> String {
        match self.letter() {
            Some(letter) => format!("-{letter}"),
            None => format!("--{}", self.names.split(' ').next().unwrap_or_default()),
        }
    }

    /// Whether a value follows.
    pub fn argument(&self) -> Argument {
        match self.meaning {
            Meaning::Flag(_) | Meaning::Help | Meaning::Version => Argument::None,
            Meaning::Value(_) => Argument::Required,
            Meaning::LeftOut(argument, _) => argument,
        }
    }

    /// The environment variables that stand for the option. None for those that print and leave:
    /// they would make every call useless.
    pub fn variables(&self) -> Vec<String> {
        if matches!(self.meaning, Meaning::Help | Meaning::Version) {
            return Vec::new();
        }
        let from_name =
            |name: &str| format!("IPERF_{}", name.to_ascii_uppercase().replace('-', "_"));
        let own = self.variable.map(String::from);
        own.into_iter().chain(self.long().map(from_name)).collect()
    }
}

/// The sections of the help, in the order in which messages and docs/dialects.md have them. The help has
/// no section of those that are left out.
pub static SECTIONS: [(&str, &[Spec]); 5] = [
    ("Client/Server", BOTH),
    ("Server specific", SERVER),
    ("Client specific", CLIENT),
    ("Miscellaneous", MISCELLANEOUS),
    ("", LEFT_OUT),
];

/// All options, those that are carried out first.
pub fn specs() -> impl Iterator<Item = &'static Spec> {
    SECTIONS.iter().flat_map(|(_, specs)| *specs)
}

static BOTH: &[Spec] = &[
    value("b bandwidth", |draft, given| {
        given
            .rate()
            .map(|value| draft.common.stream.rate = Some(value))
    })
    .help(
        "#[kmgKMG | pps]",
        "rate to send or read at in bits/sec, or for a client with -u in packets/sec",
    )
    .doc(
        "rate",
        "client: bit/s, or datagrams/s with `pps` behind the number, also below one a \
             second (`0.4pps`); UDP 1048576 bit/s without it, TCP as fast as it goes. \
             Server: bit/s that it reads of each TCP stream at most; UDP is read as it \
             comes, with a warning",
        "from 8 bit/s; up to 10^9 pps, UDP only; TCP client at least one buffer a \
             second, UDP client at least one datagram a minute; one rate",
    ),
    flag("e enhanced", |draft| draft.common.enhanced = true)
        .variable("IPERF_ENHANCEDREPORTS")
        .help(
            "",
            "more columns with --style 2.1, and the gaps between datagrams",
        )
        .doc(
            "",
            "with `--style 2.1` more settings and columns, see below; with either style a \
             line on the gaps between datagrams",
            "",
        ),
    value("f format", |draft, given| {
        draft.take_format(given.value);
        Ok(())
    })
    .help(
        "[kmgtpKMGTP]",
        "unit of the report, small letters for bits and capitals for bytes",
    )
    .doc(
        "letter",
        "unit of the report: `k m g t p b` bits, `K M G T P B` bytes, `a A` adaptive",
        "",
    ),
    value("i interval", |draft, given| draft.take_interval(given))
        .help("#", "seconds between periodic reports, at least 0.005")
        .doc(
            "s",
            "interval reports; 0 for none",
            "from 0.005, with a warning below; no `f`",
        ),
    flag("json", |draft| draft.common.json = Some(Json::Whole))
        .help("", "one JSON object at the end instead of text")
        .doc(
            "",
            "one JSON object at the end instead of text and CSV ([schema.md](schema.md)). \
             iperf 2 has no such option",
            "",
        ),
    flag("json-stream", |draft| {
        draft.common.json = Some(Json::Stream)
    })
    .help("", "JSON objects as things happen, one a line")
    .doc(
        "",
        "a JSON object a line as things happen, instead of text and CSV. iperf 2 has \
             no such option",
        "",
    ),
    value("l len", |draft, given| {
        let length = given.count(1, LENGTH_BYTES_MAX)?;
        draft.length = Some((length as usize, given.source.to_owned()));
        Ok(())
    })
    .help(
        "#[kmgKMG]",
        "length of buffer in bytes to read or write (Defaults: TCP=128K, v4 UDP=1470, \
             v6 UDP=1450)",
    )
    .doc(
        "bytes",
        "buffer, 131072, or datagram, 1470 (1450 for a client with `-V`)",
        "TCP 1 to 64 MiB, UDP 16 to 65507 (17 with `-F` or `-I`)",
    ),
    flag("m print_mss", |draft| draft.common.print_mss = true)
        .help("", "print TCP maximum segment size")
        .doc("", "print the segment size", ""),
    value("o output", |draft, given| {
        given.file().map(|value| draft.common.output = Some(value))
    })
    .help("<filename>", "write reports to this file")
    .doc(
        "file",
        "reports go there; errors stay on standard error",
        "",
    ),
    value("p port", |draft, given| {
        (draft.common.port, draft.common.last_port) = given.ports()?;
        Ok(())
    })
    .help(
        "#[-#]",
        "port or range of ports to listen on or to connect to (default 5001)",
    )
    .doc(
        "n[-m]",
        "the server's port, 5001. With a range a server listens on each port, and a \
             client has a stream to each: `-P` grows to as many, and with a greater `-P` \
             the range goes on, with a warning as in 2.1.8",
        "1 to 65535; a server 64 ports",
    ),
    flag("u udp", |draft| draft.use_udp())
        .help("", "use UDP rather than TCP")
        .doc("", "UDP rather than TCP", ""),
    value("w window", |draft, given| draft.take_window(given))
        .variable("TCP_WINDOW_SIZE")
        .help("#[kmgKMG]", "TCP window size (socket buffer size)")
        .doc(
            "bytes",
            "socket buffer; 0 leaves it to the kernel",
            "up to 1 GiB",
        ),
    value("B bind", |draft, given| {
        let bound = values::bind(given.value)
            .ok_or_else(|| given.invalid("address, address:port or address%device"))?;
        draft.common.bind = Some(bound);
        Ok(())
    })
    .help(
        "<ip>[:<port>][%<dev>]",
        "local address; port for the client, device for the server",
    )
    .doc(
        "address",
        "local address; client `address:port`, server `address%device`; an IPv6 \
             address with a port in brackets",
        "",
    ),
    flag("C compatibility", |draft| {
        draft.common.stream.has_header = false
    })
    .variable("IPERF_COMPAT")
    .help("", "send no header, for use with older versions")
    .doc(
        "",
        "no headers; a server tells by itself whether there is one",
        "",
    ),
    value("M mss", |draft, given| {
        let bytes = given.count(1, u16::MAX.into())?;
        draft.common.stream.max_segment_bytes = Some(bytes as u16);
        Ok(())
    })
    .help("#", "set TCP maximum segment size")
    .doc("n", "segment size to ask for", "1 to 65535"),
    flag("N nodelay", |draft| draft.common.stream.no_delay = true)
        .help("", "set TCP no delay, disabling Nagle's Algorithm")
        .doc("", "no Nagle", ""),
    value("P parallel", |draft, given| {
        given
            .integer(1, PARALLEL_MAX)
            .map(|value| draft.parallel = Some(value))
    })
    .help(
        "#",
        "client: streams at once; server: connections to handle before it ends",
    )
    .doc(
        "n",
        "client: streams. Server: connections to handle before it ends",
        "1 to 65535; a server here serves 256 streams at a time, 224 of one address",
    ),
    value("S tos", |draft, given| {
        given
            .type_of_service()
            .map(|value| draft.common.stream.socket.type_of_service = Some(value))
    })
    .help(
        "#",
        "set the IP_TOS byte: decimal, 0x hex, 0 octal or a name",
    )
    .doc(
        "v",
        "IP_TOS byte: decimal, `0x`, `0` octal, or a name: af11 to af43, cs0 to cs7, \
             ef, le, nqb, nqb2, ac_be, ac_bk, ac_vi, ac_vo, lowdelay, throughput, \
             reliability",
        "0 to 255",
    ),
    flag("V ipv6_domain IPv6Version", |draft| {
        draft.common.ipv6 = true
    })
    .help("", "use IPv6")
    .doc("", "IPv6; a server then takes IPv4 as well", ""),
    flag("z realtime", |draft| draft.common.is_realtime = true)
        .help("", "run before all other programs (SCHED_RR)")
        .doc(
            "",
            "run at a realtime priority (`SCHED_RR`), before all programs without one. \
             Priority 1, where 2.1.8 takes 99, which keeps the kernel's own threads \
             waiting; memory is not locked",
            "root or CAP_SYS_NICE; a warning without",
        ),
    flag("4", |draft| draft.common.ipv6 = false)
        .help("", "use IPv4 only (default)")
        .doc(
            "",
            "IPv4, as without it; the later of `-4` and `-V` counts",
            "",
        ),
    flag("sum-only", |draft| draft.common.exclude.streams = true)
        .help("", "print the sums over the streams only")
        .doc(
            "",
            "the sums over all streams, one of each interval and of the whole, without \
             the lines of single ones; `[SUM-n]` states their number. A UDP client tells \
             the server's reports nevertheless, as 2.1.8 does. CSV and JSON are as \
             without it",
            "",
        ),
    value("Z tcp-congestion linux-congestion", |draft, given| {
        let name = given.name("the name of an algorithm")?;
        draft.common.stream.congestion_control = Some(name);
        Ok(())
    })
    .variable("IPERF_CONGESTION_CONTROL")
    .help("<algo>", "set TCP congestion control algorithm")
    .doc("name", "congestion control", ""),
];

static SERVER: &[Spec] = &[
    flag("s server", |draft| draft.choose(Mode::Server))
        .server()
        .help("", "run in server mode")
        .doc("", "receive", "the first of `-s` and `-c` counts"),
    value("allow", |draft, given| {
        let network = given.value.parse();
        let network = network
            .map_err(|_| given.invalid("an address or address/prefix, such as 10.0.0.0/8"))?;
        draft.allow.push(network);
        Ok(())
    })
    .server()
    .help(
        "<address>[/<prefix>]",
        "with -u, send to clients there that ask for it (-d, -r, \
             -R,\n                           --full-duplex); may be repeated",
    )
    .doc(
        "address[/prefix]",
        "with `-u`, send to clients there that ask for it; may be repeated. iperf 2 \
             has no such option",
        "IPv4 or IPv6",
    ),
    flag("1 singleclient", |draft| draft.single_client = true)
        .server()
        .help("", "run one test at a time")
        .doc("", "one test at a time", ""),
    flag("D daemon", |draft| draft.daemon = true)
        .server()
        .help(
            "",
            "run in the background; a TERM signal ends it with its reports",
        )
        .doc(
            "",
            "run in the background, in a session of its own. The command returns when the \
             server listens, or with status 1 when it cannot. Reports go to `-o`, or \
             nowhere; so do errors, unless `-o` takes JSON or CSV. TERM ends it with its \
             reports",
            "",
        ),
    flag("U single_udp", |draft| {
        draft.use_udp();
        draft.single_client = true;
    })
    .help("", "receive UDP from one client at a time")
    .doc("", "server: UDP, one client at a time. Client: as `-u`", ""),
];

static CLIENT: &[Spec] = &[
    value("burst", |draft, given| {
        given
            .integer(1, BURST_MAX)
            .map(|value| draft.common.stream.burst_datagrams = value)
    })
    .client()
    .with_udp()
    .help(
        "#",
        "with -u: datagrams to send back to back, as often as -b allows",
    )
    .doc(
        "n",
        "with `-u`: n datagrams back to back, as often as `-b` allows: `-b 10000pps \
             --burst 10` sends ten each millisecond. iperf 2 has no such option",
        "1 to 16777216, a minute from burst to burst at most",
    ),
    value("c client", |draft, given| {
        let (host, device) =
            values::host(given.value).ok_or_else(|| given.invalid("host or host%device"))?;
        draft.choose(Mode::Client { host, device });
        Ok(())
    })
    .client()
    .help("<host>[%<dev>]", "run in client mode, connecting to <host>")
    .doc("host[%device]", "send to host, through device", ""),
    value("dialect", |draft, given| {
        given
            .dialect()
            .map(|value| draft.common.stream.dialect = value)
    })
    .client()
    .help(
        "2.0.<n>",
        "speak UDP as this version does, 2.0.2 to 2.0.13, for a server of that age",
    )
    .doc(
        "2.0.n",
        "with `-u`, speak as this version does (see below). iperf 2 has no such option",
        "2.0.2 to 2.0.13",
    ),
    flag("d dualtest", |draft| draft.way(Way::Dual))
        .client()
        .help(
            "",
            "both ways at once, the server over a connection of its own",
        )
        .doc(
            "",
            "both send at once, the server over a connection of its own for each of the \
             client's",
            "as `-R`",
        ),
    value("fq-rate", |draft, given| {
        let bits = given.count(8, EXACT_MAX)?;
        draft.common.stream.pacing_bytes_per_second = Some(bits / 8);
        Ok(())
    })
    .client()
    .help(
        "#[kmgKMG]",
        "bits/sec that the kernel paces the socket to (SO_MAX_PACING_RATE)",
    )
    .doc(
        "rate",
        "bit/s that the kernel spreads what is sent to (`SO_MAX_PACING_RATE`), the \
             server's with `-R` and its like: TCP paces itself, UDP needs the `fq` \
             queueing discipline",
        "8 to 2^53",
    ),
    flag("full-duplex", |draft| draft.way(Way::FullDuplex))
        .client()
        .help("", "both ways at once over the same socket")
        .doc("", "both send at once over the client's socket", "as `-R`"),
    value("L listenport", |draft, given| {
        given.port().map(|value| draft.listen_port = Some(value))
    })
    .client()
    .help(
        "#",
        "port for the server's connection of -d and -r (default: that of -p)",
    )
    .doc(
        "n",
        "port for the server's connections of `-d` and `-r`; that of `-p` without it",
        "1 to 65535",
    ),
    value("n num", |draft, given| {
        given
            .count(1, EXACT_MAX)
            .map(|value| draft.bytes = Some(value))
    })
    .client()
    .help("#[kmgKMG]", "number of bytes to transmit (instead of -t)")
    .doc(
        "bytes",
        "bytes to send; the later of `-t` and `-n` counts",
        "1 to 2^53",
    ),
    value("repeat", |draft, given| {
        given
            .integer(1, RUNS_MAX)
            .map(|value| draft.repeat = Some(value))
    })
    .client()
    .help("#", "so many runs, then their median, range and interval")
    .doc(
        "n",
        "n runs, each with its lines, and below them the median, the range and the 95 \
             % interval of their rates: of all streams together, as the server's report \
             tells it where there is one. iperf 2 has no such option",
        "1 to 1000; not with `-t 0` and `-I`; no interval below 6 runs",
    ),
    flag("r tradeoff", |draft| draft.way(Way::TradeOff))
        .client()
        .help(
            "",
            "both ways one after the other, the server over a connection of its own",
        )
        .doc(
            "",
            "the server sends as with `-d`, after the client has ended",
            "as `-R`",
        ),
    flag("R reverse", |draft| draft.way(Way::Reverse))
        .client()
        .help("", "the server sends, the client receives")
        .doc(
            "",
            "the server sends, the client receives, over the client's socket",
            "one of `-R`, `--full-duplex`, `-d` and `-r`, none with `-C`; `-n` up to \
             2147483647",
        ),
    value("t time", |draft, given| draft.take_time(given))
        .help("#", "time in seconds to transmit for (default 10 secs)")
        .server_help(
            "#",
            "time in seconds to listen and to receive (default not set)",
        )
        .doc(
            "s",
            "client: time to send, 10 s. Server: how long to listen and the longest test",
            "0.01 (less counts as that) to 21474836 s; 0 or below: until interrupted",
        ),
    value("F fileinput file_input", |draft, given| {
        draft.common.stream.input = Some(Input::File(given.file()?));
        Ok(())
    })
    .client()
    .help("<name>", "send what is in a file, to its end")
    .doc(
        "name",
        "send the file behind the header, to its end; `-t` and `-n` do not count then",
        "",
    ),
    flag("I stdin stdin_input", |draft| {
        draft.common.stream.input = Some(Input::Stdin)
    })
    .client()
    .help("", "send what comes from standard input, to its end")
    .doc(
        "",
        "send what comes from standard input, as `-F` sends a file",
        "one stream",
    ),
    value("T ttl", |draft, given| {
        let hops = given.integer(1, u8::MAX.into())?;
        draft.common.stream.socket.time_to_live = Some(hops as u8);
        Ok(())
    })
    .client()
    .help("#", "time-to-live of what is sent")
    .doc("n", "time to live", "1 to 255"),
    flag("X peer-detect", |draft| {
        draft.common.stream.asks_for_version = true
    })
    .client()
    .help(
        "",
        "with TCP: exchange versions before the test, at most 2.5 secs",
    )
    .doc(
        "",
        "with TCP: tell the server the version and wait 2.5 s at most for its own; \
             both ends show the other's with `--style 2.1` (a client of 2.1.8 shows none)",
        "not with `-u`",
    ),
    flag("trip-times", |draft| {
        draft.common.stream.has_shared_clock = true
    })
    .client()
    .with_udp()
    .help(
        "",
        "with -u: both ends have one clock, so that the server may measure delays",
    )
    .doc(
        "",
        "with `-u`: tell the server that both ends have one clock, so that it may \
             state delays",
        "`-l` 128 at least",
    ),
];

static MISCELLANEOUS: &[Spec] = &[
    value("x reportexclude", |draft, given| {
        draft.exclude(given.value);
        Ok(())
    })
    .help(
        "[CDMSV]",
        "exclude C(connection) D(data) M(sums) S(settings) V(server) reports",
    )
    .doc(
        "CDMSV",
        "leave out connections, data, sums, settings, the server's report",
        "",
    ),
    value("y reportstyle", |draft, given| {
        draft.take_report_style(given.value);
        Ok(())
    })
    .help("C", "report as Comma-Separated Values")
    .doc("C", "comma-separated values", ""),
    flag("no-batch", |draft| draft.common.stream.is_batched = false)
        .help(
            "",
            "one datagram, or what is there of a TCP stream, a system call",
        )
        .doc(
            "",
            "one datagram a system call, as iperf sends and receives them. Without it a \
             sender that is unpaced or late hands the kernel batches of up to 64 \
             datagrams (`UDP_SEGMENT`), each with its own id and time, and a receiver \
             takes such batches (`UDP_GRO`). A TCP server returns from a read with \
             whatever is there; without the option it waits for a whole one \
             (`SO_RCVLOWAT`) while that takes less than a millisecond, and so is woken \
             less. iperf 2 has no such option",
            "",
        ),
    value("style", |draft, given| {
        given.style().map(|value| draft.common.style = value)
    })
    .help("2.0|2.1", "lines as that version prints them (default 2.0)")
    .doc(
        "2.0 or 2.1",
        "lines as 2.0.5 or 2.1.8 prints them, 2.0 without it. Nothing else changes. \
             iperf 2 has no such option",
        "",
    ),
    plain("h help", Meaning::Help)
        .help("", "print this message and quit")
        .doc("", "print the options and end", ""),
    plain("v version", Meaning::Version)
        .help("", "print version information and quit")
        .doc("", "print the version and end", ""),
];

const CLOCKS: &str = "measure delays with request/response, which needs no common clock";
const BURSTS: &str = "send at a steady rate with -b";
const ONE_TARGET: &str = "start one client for each address or port";
const RUN_COMMAND: &str = "start the program later with the shell or a timer";
const NO_HISTOGRAM: &str = "use -i for a course over time";
const DEFAULT_TUNING: &str = "leave it out: the socket's own behaviour is measured";
const FIREWALL: &str = "let a packet filter admit the client";
const NOT_NEEDED: &str = "leave it out: it is not needed";
const BY_DEVICE: &str = "name the device: -c host%device";
const BY_ADDRESS: &str = "receive at a socket of the device's address with -B";

static LEFT_OUT: &[Spec] = &[
    left_out("6", Both, NoValue, "use -V"),
    left_out("A awdl", Both, NoValue, BY_DEVICE),
    left_out(
        "H ssm-host",
        Both,
        Required,
        "use -B with the group, which admits any source",
    ),
    left_out("incr-dstip", Client, NoValue, ONE_TARGET),
    left_out("incr-dstport", Client, NoValue, ONE_TARGET),
    left_out("incr-srcip", Client, NoValue, ONE_TARGET),
    left_out("incr-srcport", Client, NoValue, ONE_TARGET),
    left_out("local-only", Client, NoValue, BY_DEVICE),
    left_out("tap-dev", Server, Optional, BY_ADDRESS),
    left_out("tun-dev", Server, Optional, BY_ADDRESS),
    left_out("l2checks", Both, NoValue, NOT_NEEDED),
    left_out("permit-key", Both, Optional, FIREWALL),
    left_out("permit-key-timeout", Server, Required, FIREWALL),
    left_out(
        "connect-only",
        Client,
        Optional,
        "measure with request/response, or use -n 1 with -l 1",
    ),
    left_out(
        "connect-retries",
        Client,
        Required,
        "repeat the command while its exit status is 1",
    ),
    left_out("no-connect-sync", Client, NoValue, NOT_NEEDED),
    left_out("no-udp-fin", Client, NoValue, NOT_NEEDED),
    left_out("txstart-time", Client, Required, RUN_COMMAND),
    left_out("txdelay-time", Client, Required, RUN_COMMAND),
    left_out("ipg", Client, Required, "use -b with pps"),
    left_out("isochronous", Client, Optional, BURSTS),
    left_out("burst-size", Client, Required, BURSTS),
    left_out("burst-period", Client, Required, BURSTS),
    left_out("near-congestion", Client, Optional, BURSTS),
    left_out("bounceback", Both, Optional, CLOCKS),
    left_out("bounceback-congest", Both, Optional, CLOCKS),
    left_out("bounceback-hold", Both, Required, CLOCKS),
    left_out("bounceback-no-quickack", Both, NoValue, CLOCKS),
    left_out("bounceback-period", Both, Required, CLOCKS),
    left_out("bounceback-txdelay", Both, Required, CLOCKS),
    left_out("histograms", Both, Optional, NO_HISTOGRAM),
    left_out("udp-histograms udp-histogram", Both, Optional, NO_HISTOGRAM),
    left_out("tcp-rx-window-clamp", Server, Required, "use -w"),
    left_out("tcp-quickack", Client, NoValue, DEFAULT_TUNING),
    left_out("tcp-write-prefetch", Client, Required, DEFAULT_TUNING),
    left_out("tcp-write-times", Client, NoValue, DEFAULT_TUNING),
    left_out("tos-override", Server, Required, "use -S"),
    left_out("sum-dstip", Server, NoValue, NOT_NEEDED),
    left_out("hide-ips", Both, NoValue, "use -x C"),
    left_out(
        "W suggest_win_size",
        Both,
        NoValue,
        "try several -w; 2.1.8 does not have it either",
    ),
    left_out("NUM_REPORT_STRUCTS", Both, Required, NOT_NEEDED),
];
