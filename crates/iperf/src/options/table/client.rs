//! Options that mean something at the client only, and -c and -t.

use super::{Doc, Group, Help, Meaning, OptionSide, SPEC, Spec};
use crate::input::Input;
use crate::options::bind;
use crate::options::draft::{Mode, Way};
use crate::options::units::EXACT_MAX;
use nicpoll_traffic::repeat::RUNS_MAX;

/// A second of the smallest datagrams at 10 Gbit/s, and then some, would be one burst.
const BURST_MAX: u32 = 1 << 24;

const fn help(value: &'static str, text: &'static str) -> Help {
    Help {
        group: Group::Client,
        value,
        text,
    }
}

pub static TABLE: &[Spec] = &[
    Spec {
        long: &["burst"],
        side: OptionSide::Client,
        needs_udp: true,
        meaning: Meaning::Value(|draft, given| {
            draft.common.stream.burst_datagrams = given.integer(1, BURST_MAX)?;
            Ok(())
        }),
        help: &[help(
            "#",
            "with -u: datagrams to send back to back, as often as -b allows",
        )],
        doc: Doc {
            value: "n",
            meaning: "with `-u`: n datagrams back to back, as often as `-b` allows: `-b 10000pps \
                      --burst 10` sends ten each millisecond. iperf 2 has no such option",
            limits: "1 to 16777216, a minute from burst to burst at most",
        },
        ..SPEC
    },
    Spec {
        short: Some('c'),
        long: &["client"],
        side: OptionSide::Client,
        meaning: Meaning::Value(|draft, given| {
            let (host, device) =
                bind::host(given.value).ok_or_else(|| given.invalid("host or host%device"))?;
            draft.choose(Mode::Client { host, device });
            Ok(())
        }),
        help: &[help(
            "<host>[%<dev>]",
            "run in client mode, connecting to <host>",
        )],
        doc: Doc {
            value: "host[%device]",
            meaning: "send to host, through device",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        long: &["dialect"],
        side: OptionSide::Client,
        meaning: Meaning::Value(|draft, given| {
            draft.common.stream.dialect = given.dialect()?;
            Ok(())
        }),
        help: &[help(
            "2.0.<n>",
            "speak UDP as this version does, 2.0.2 to 2.0.13, for a server of that age",
        )],
        doc: Doc {
            value: "2.0.n",
            meaning: "with `-u`, speak as this version does (see below). iperf 2 has no such option",
            limits: "2.0.2 to 2.0.13",
        },
        ..SPEC
    },
    Spec {
        short: Some('d'),
        long: &["dualtest"],
        side: OptionSide::Client,
        meaning: Meaning::Flag(|draft| draft.way(Way::Dual)),
        help: &[help(
            "",
            "both ways at once, the server over a connection of its own",
        )],
        doc: Doc {
            value: "",
            meaning: "both send at once, the server over a connection of its own for each of the \
                      client's",
            limits: "as `-R`",
        },
        ..SPEC
    },
    Spec {
        long: &["fq-rate"],
        side: OptionSide::Client,
        meaning: Meaning::Value(|draft, given| {
            let bits = given.count(8, EXACT_MAX)?;
            draft.common.stream.pacing_bytes_per_second = Some(bits / 8);
            Ok(())
        }),
        help: &[help(
            "#[kmgKMG]",
            "bits/sec that the kernel paces the socket to (SO_MAX_PACING_RATE)",
        )],
        doc: Doc {
            value: "rate",
            meaning: "bit/s that the kernel spreads what is sent to (`SO_MAX_PACING_RATE`), the \
                      server's with `-R` and its like: TCP paces itself, UDP needs the `fq` queueing \
                      discipline",
            limits: "8 to 2^53",
        },
        ..SPEC
    },
    Spec {
        long: &["full-duplex"],
        side: OptionSide::Client,
        meaning: Meaning::Flag(|draft| draft.way(Way::FullDuplex)),
        help: &[help("", "both ways at once over the same socket")],
        doc: Doc {
            value: "",
            meaning: "both send at once over the client's socket",
            limits: "as `-R`",
        },
        ..SPEC
    },
    Spec {
        short: Some('L'),
        long: &["listenport"],
        side: OptionSide::Client,
        meaning: Meaning::Value(|draft, given| {
            draft.listen_port = Some(given.port()?);
            Ok(())
        }),
        help: &[help(
            "#",
            "port for the server's connection of -d and -r (default: that of -p)",
        )],
        doc: Doc {
            value: "n",
            meaning: "port for the server's connections of `-d` and `-r`; that of `-p` without it",
            limits: "1 to 65535",
        },
        ..SPEC
    },
    Spec {
        short: Some('n'),
        long: &["num"],
        side: OptionSide::Client,
        meaning: Meaning::Value(|draft, given| {
            draft.bytes = Some(given.count(1, EXACT_MAX)?);
            Ok(())
        }),
        help: &[help(
            "#[kmgKMG]",
            "number of bytes to transmit (instead of -t)",
        )],
        doc: Doc {
            value: "bytes",
            meaning: "bytes to send; the later of `-t` and `-n` counts",
            limits: "1 to 2^53",
        },
        ..SPEC
    },
    Spec {
        long: &["repeat"],
        side: OptionSide::Client,
        meaning: Meaning::Value(|draft, given| {
            draft.repeat = Some(given.integer(1, RUNS_MAX)?);
            Ok(())
        }),
        help: &[help(
            "#",
            "so many runs, then their median, range and interval",
        )],
        doc: Doc {
            value: "n",
            meaning: "n runs, each with its lines, and below them the median, the range and the 95 % \
                      interval of their rates: of all streams together, as the server's report tells \
                      it where there is one. iperf 2 has no such option",
            limits: "1 to 1000; not with `-t 0` and `-I`; no interval below 6 runs",
        },
        ..SPEC
    },
    Spec {
        short: Some('r'),
        long: &["tradeoff"],
        side: OptionSide::Client,
        meaning: Meaning::Flag(|draft| draft.way(Way::TradeOff)),
        help: &[help(
            "",
            "both ways one after the other, the server over a connection of its own",
        )],
        doc: Doc {
            value: "",
            meaning: "the server sends as with `-d`, after the client has ended",
            limits: "as `-R`",
        },
        ..SPEC
    },
    Spec {
        short: Some('R'),
        long: &["reverse"],
        side: OptionSide::Client,
        meaning: Meaning::Flag(|draft| draft.way(Way::Reverse)),
        help: &[help("", "the server sends, the client receives")],
        doc: Doc {
            value: "",
            meaning: "the server sends, the client receives, over the client's socket",
            limits: "one of `-R`, `--full-duplex`, `-d` and `-r`, none with `-C`; `-n` up to \
                     2147483647",
        },
        ..SPEC
    },
    Spec {
        short: Some('t'),
        long: &["time"],
        meaning: Meaning::Value(|draft, given| draft.take_time(given)),
        help: &[
            help("#", "time in seconds to transmit for (default 10 secs)"),
            Help {
                group: Group::Server,
                value: "#",
                text: "time in seconds to listen and to receive (default not set)",
            },
        ],
        doc: Doc {
            value: "s",
            meaning: "client: time to send, 10 s. Server: how long to listen and the longest test",
            limits: "0.01 (less counts as that) to 21474836 s; 0 or below: until interrupted",
        },
        ..SPEC
    },
    Spec {
        short: Some('F'),
        long: &["fileinput", "file_input"],
        side: OptionSide::Client,
        meaning: Meaning::Value(|draft, given| {
            draft.common.stream.input = Some(Input::File(given.file()?));
            Ok(())
        }),
        help: &[help("<name>", "send what is in a file, to its end")],
        doc: Doc {
            value: "name",
            meaning: "send the file behind the header, to its end; `-t` and `-n` do not count then",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('I'),
        long: &["stdin", "stdin_input"],
        side: OptionSide::Client,
        meaning: Meaning::Flag(|draft| draft.common.stream.input = Some(Input::Stdin)),
        help: &[help("", "send what comes from standard input, to its end")],
        doc: Doc {
            value: "",
            meaning: "send what comes from standard input, as `-F` sends a file",
            limits: "one stream",
        },
        ..SPEC
    },
    Spec {
        short: Some('T'),
        long: &["ttl"],
        side: OptionSide::Client,
        meaning: Meaning::Value(|draft, given| {
            let hops = given.integer(1, u8::MAX.into())?;
            draft.common.stream.socket.time_to_live = Some(hops as u8);
            Ok(())
        }),
        help: &[help("#", "time-to-live of what is sent")],
        doc: Doc {
            value: "n",
            meaning: "time to live",
            limits: "1 to 255",
        },
        ..SPEC
    },
    Spec {
        short: Some('X'),
        long: &["peer-detect"],
        side: OptionSide::Client,
        meaning: Meaning::Flag(|draft| draft.common.stream.asks_for_version = true),
        help: &[help(
            "",
            "with TCP: exchange versions before the test, at most 2.5 secs",
        )],
        doc: Doc {
            value: "",
            meaning: "with TCP: tell the server the version and wait 2.5 s at most for its own; both \
                      ends show the other's with `--style 2.1` (a client of 2.1.8 shows none)",
            limits: "not with `-u`",
        },
        ..SPEC
    },
    Spec {
        long: &["trip-times"],
        side: OptionSide::Client,
        needs_udp: true,
        meaning: Meaning::Flag(|draft| draft.common.stream.has_shared_clock = true),
        help: &[help(
            "",
            "with -u: both ends have one clock, so that the server may measure delays",
        )],
        doc: Doc {
            value: "",
            meaning: "with `-u`: tell the server that both ends have one clock, so that it may state \
                      delays",
            limits: "`-l` 128 at least",
        },
        ..SPEC
    },
];
