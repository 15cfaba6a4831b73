//! Options that mean something at both ends.

use super::{Doc, Group, Help, Meaning, SPEC, Spec};
use crate::options::{Json, bind};

/// Longest TCP buffer.
const LENGTH_BYTES_MAX: u64 = 64 << 20;
/// No address has more ports to connect from.
const PARALLEL_MAX: u32 = 65_535;

const fn help(value: &'static str, text: &'static str) -> Help {
    Help {
        group: Group::Both,
        value,
        text,
    }
}

pub static TABLE: &[Spec] = &[
    Spec {
        short: Some('b'),
        long: &["bandwidth"],
        meaning: Meaning::Value(|draft, given| {
            draft.common.stream.rate = Some(given.rate()?);
            Ok(())
        }),
        help: &[help(
            "#[kmgKMG | pps]",
            "rate to send or read at in bits/sec, or for a client with -u in packets/sec",
        )],
        doc: Doc {
            value: "rate",
            meaning: "client: bit/s, or datagrams/s with `pps` behind the number, also below one a \
                      second (`0.4pps`); UDP 1048576 bit/s without it, TCP as fast as it goes. \
                      Server: bit/s that it reads of each TCP stream at most; UDP is read as it \
                      comes, with a warning",
            limits: "from 8 bit/s; up to 10^9 pps, UDP only; TCP client at least one buffer a \
                     second, UDP client at least one datagram a minute; one rate",
        },
        ..SPEC
    },
    Spec {
        short: Some('e'),
        long: &["enhanced"],
        meaning: Meaning::Flag(|draft| draft.common.enhanced = true),
        environment: &["IPERF_ENHANCEDREPORTS"],
        help: &[help(
            "",
            "more columns with --style 2.1, and the gaps between datagrams",
        )],
        doc: Doc {
            value: "",
            meaning: "with `--style 2.1` more settings and columns, see below; with either style a \
                      line on the gaps between datagrams",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('f'),
        long: &["format"],
        meaning: Meaning::Value(|draft, given| {
            draft.take_format(given.value);
            Ok(())
        }),
        help: &[help(
            "[kmgtpKMGTP]",
            "unit of the report, small letters for bits and capitals for bytes",
        )],
        doc: Doc {
            value: "letter",
            meaning: "unit of the report: `k m g t p b` bits, `K M G T P B` bytes, `a A` adaptive",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('i'),
        long: &["interval"],
        meaning: Meaning::Value(|draft, given| draft.take_interval(given)),
        help: &[help(
            "#",
            "seconds between periodic reports, at least 0.005",
        )],
        doc: Doc {
            value: "s",
            meaning: "interval reports; 0 for none",
            limits: "from 0.005, with a warning below; no `f`",
        },
        ..SPEC
    },
    Spec {
        long: &["json"],
        meaning: Meaning::Flag(|draft| draft.common.json = Some(Json::Whole)),
        help: &[help("", "one JSON object at the end instead of text")],
        doc: Doc {
            value: "",
            meaning: "one JSON object at the end instead of text and CSV ([schema.md](schema.md)). \
                      iperf 2 has no such option",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        long: &["json-stream"],
        meaning: Meaning::Flag(|draft| draft.common.json = Some(Json::Stream)),
        help: &[help("", "JSON objects as things happen, one a line")],
        doc: Doc {
            value: "",
            meaning: "a JSON object a line as things happen, instead of text and CSV. iperf 2 has no \
                      such option",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('l'),
        long: &["len"],
        meaning: Meaning::Value(|draft, given| {
            let length = given.count(1, LENGTH_BYTES_MAX)?;
            draft.length = Some((length as usize, given.source.to_owned()));
            Ok(())
        }),
        help: &[help(
            "#[kmgKMG]",
            "length of buffer in bytes to read or write (Defaults: TCP=128K, v4 UDP=1470, v6 \
             UDP=1450)",
        )],
        doc: Doc {
            value: "bytes",
            meaning: "buffer, 131072, or datagram, 1470 (1450 for a client with `-V`)",
            limits: "TCP 1 to 64 MiB, UDP 16 to 65507 (17 with `-F` or `-I`)",
        },
        ..SPEC
    },
    Spec {
        short: Some('m'),
        long: &["print_mss"],
        meaning: Meaning::Flag(|draft| draft.common.print_mss = true),
        help: &[help("", "print TCP maximum segment size")],
        doc: Doc {
            value: "",
            meaning: "print the segment size",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('o'),
        long: &["output"],
        meaning: Meaning::Value(|draft, given| {
            draft.common.output = Some(given.file()?);
            Ok(())
        }),
        help: &[help("<filename>", "write reports to this file")],
        doc: Doc {
            value: "file",
            meaning: "reports go there; errors stay on standard error",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('p'),
        long: &["port"],
        meaning: Meaning::Value(|draft, given| {
            (draft.common.port, draft.common.last_port) = given.ports()?;
            Ok(())
        }),
        help: &[help(
            "#[-#]",
            "port or range of ports to listen on or to connect to (default 5001)",
        )],
        doc: Doc {
            value: "n[-m]",
            meaning: "the server's port, 5001. With a range a server listens on each port, and a client \
                      has a stream to each: `-P` grows to as many, and with a greater `-P` the range \
                      goes on, with a warning as in 2.1.8",
            limits: "1 to 65535; a server 64 ports",
        },
        ..SPEC
    },
    Spec {
        short: Some('u'),
        long: &["udp"],
        meaning: Meaning::Flag(|draft| draft.use_udp()),
        help: &[help("", "use UDP rather than TCP")],
        doc: Doc {
            value: "",
            meaning: "UDP rather than TCP",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('w'),
        long: &["window"],
        meaning: Meaning::Value(|draft, given| draft.take_window(given)),
        environment: &["TCP_WINDOW_SIZE"],
        help: &[help("#[kmgKMG]", "TCP window size (socket buffer size)")],
        doc: Doc {
            value: "bytes",
            meaning: "socket buffer; 0 leaves it to the kernel",
            limits: "up to 1 GiB",
        },
        ..SPEC
    },
    Spec {
        short: Some('B'),
        long: &["bind"],
        meaning: Meaning::Value(|draft, given| {
            let bound = bind::bind(given.value)
                .ok_or_else(|| given.invalid("address, address:port or address%device"))?;
            draft.common.bind = Some(bound);
            Ok(())
        }),
        help: &[help(
            "<ip>[:<port>][%<dev>]",
            "local address; port for the client, device for the server",
        )],
        doc: Doc {
            value: "address",
            meaning: "local address; client `address:port`, server `address%device`; an IPv6 address \
                      with a port in brackets",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('C'),
        long: &["compatibility"],
        meaning: Meaning::Flag(|draft| draft.common.stream.has_header = false),
        environment: &["IPERF_COMPAT"],
        help: &[help("", "send no header, for use with older versions")],
        doc: Doc {
            value: "",
            meaning: "no headers; a server tells by itself whether there is one",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('M'),
        long: &["mss"],
        meaning: Meaning::Value(|draft, given| {
            let bytes = given.count(1, u16::MAX.into())?;
            draft.common.stream.max_segment_bytes = Some(bytes as u16);
            Ok(())
        }),
        help: &[help("#", "set TCP maximum segment size")],
        doc: Doc {
            value: "n",
            meaning: "segment size to ask for",
            limits: "1 to 65535",
        },
        ..SPEC
    },
    Spec {
        short: Some('N'),
        long: &["nodelay"],
        meaning: Meaning::Flag(|draft| draft.common.stream.no_delay = true),
        help: &[help("", "set TCP no delay, disabling Nagle's Algorithm")],
        doc: Doc {
            value: "",
            meaning: "no Nagle",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('P'),
        long: &["parallel"],
        meaning: Meaning::Value(|draft, given| {
            draft.parallel = Some(given.integer(1, PARALLEL_MAX)?);
            Ok(())
        }),
        help: &[help(
            "#",
            "client: streams at once; server: connections to handle before it ends",
        )],
        doc: Doc {
            value: "n",
            meaning: "client: streams. Server: connections to handle before it ends",
            limits: "1 to 65535; a server here serves 256 streams at a time, 224 of one address",
        },
        ..SPEC
    },
    Spec {
        short: Some('S'),
        long: &["tos"],
        meaning: Meaning::Value(|draft, given| {
            draft.common.stream.socket.type_of_service = Some(given.type_of_service()?);
            Ok(())
        }),
        help: &[help(
            "#",
            "set the IP_TOS byte: decimal, 0x hex, 0 octal or a name",
        )],
        doc: Doc {
            value: "v",
            meaning: "IP_TOS byte: decimal, `0x`, `0` octal, or a name: af11 to af43, cs0 to cs7, \
                      ef, le, nqb, nqb2, ac_be, ac_bk, ac_vi, ac_vo, lowdelay, throughput, \
                      reliability",
            limits: "0 to 255",
        },
        ..SPEC
    },
    Spec {
        short: Some('V'),
        long: &["ipv6_domain", "IPv6Version"],
        meaning: Meaning::Flag(|draft| draft.common.ipv6 = true),
        help: &[help("", "use IPv6")],
        doc: Doc {
            value: "",
            meaning: "IPv6; a server then takes IPv4 as well",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('z'),
        long: &["realtime"],
        meaning: Meaning::Flag(|draft| draft.common.is_realtime = true),
        help: &[help("", "run before all other programs (SCHED_RR)")],
        doc: Doc {
            value: "",
            meaning: "run at a realtime priority (`SCHED_RR`), before all programs without one. \
                      Priority 1, where 2.1.8 takes 99, which keeps the kernel's own threads \
                      waiting; memory is not locked",
            limits: "root or CAP_SYS_NICE; a warning without",
        },
        ..SPEC
    },
    Spec {
        short: Some('4'),
        meaning: Meaning::Flag(|draft| draft.common.ipv6 = false),
        help: &[help("", "use IPv4 only (default)")],
        doc: Doc {
            value: "",
            meaning: "IPv4, as without it; the later of `-4` and `-V` counts",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        long: &["sum-only"],
        meaning: Meaning::Flag(|draft| draft.common.exclude.streams = true),
        help: &[help("", "print the sums over the streams only")],
        doc: Doc {
            value: "",
            meaning: "the sums over all streams, one of each interval and of the whole, without the \
                      lines of single ones; `[SUM-n]` states their number. A UDP client tells the \
                      server's reports nevertheless, as 2.1.8 does. CSV and JSON are as without it",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('Z'),
        long: &["tcp-congestion", "linux-congestion"],
        meaning: Meaning::Value(|draft, given| {
            let name = given.name("the name of an algorithm")?;
            draft.common.stream.congestion_control = Some(name);
            Ok(())
        }),
        environment: &["IPERF_CONGESTION_CONTROL"],
        help: &[help("<algo>", "set TCP congestion control algorithm")],
        doc: Doc {
            value: "name",
            meaning: "congestion control",
            limits: "",
        },
        ..SPEC
    },
];
