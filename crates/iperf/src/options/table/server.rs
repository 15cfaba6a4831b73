//! Options that mean something at the server only, and -s.

use super::{Doc, Group, Help, Meaning, OptionSide, SPEC, Spec};
use crate::options::draft::Mode;

const fn help(value: &'static str, text: &'static str) -> Help {
    Help {
        group: Group::Server,
        value,
        text,
    }
}

pub static TABLE: &[Spec] = &[
    Spec {
        short: Some('s'),
        long: &["server"],
        side: OptionSide::Server,
        meaning: Meaning::Flag(|draft| draft.choose(Mode::Server)),
        help: &[help("", "run in server mode")],
        doc: Doc {
            value: "",
            meaning: "receive",
            limits: "the first of `-s` and `-c` counts",
        },
        ..SPEC
    },
    Spec {
        long: &["allow"],
        side: OptionSide::Server,
        meaning: Meaning::Value(|draft, given| {
            let network = given.value.parse();
            let network = network
                .map_err(|_| given.invalid("an address or address/prefix, such as 10.0.0.0/8"))?;
            draft.allow.push(network);
            Ok(())
        }),
        help: &[help(
            "<address>[/<prefix>]",
            "with -u, send to clients there that ask for it (-d, -r, -R,\n                           \
             --full-duplex); may be repeated",
        )],
        doc: Doc {
            value: "address[/prefix]",
            meaning: "with `-u`, send to clients there that ask for it; may be repeated. iperf 2 has \
                      no such option",
            limits: "IPv4 or IPv6",
        },
        ..SPEC
    },
    Spec {
        short: Some('1'),
        long: &["singleclient"],
        side: OptionSide::Server,
        meaning: Meaning::Flag(|draft| draft.single_client = true),
        help: &[help("", "run one test at a time")],
        doc: Doc {
            value: "",
            meaning: "one test at a time",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('D'),
        long: &["daemon"],
        side: OptionSide::Server,
        meaning: Meaning::Flag(|draft| draft.daemon = true),
        help: &[help(
            "",
            "run in the background; a TERM signal ends it with its reports",
        )],
        doc: Doc {
            value: "",
            meaning: "run in the background, in a session of its own. The command returns when the \
                      server listens, or with status 1 when it cannot. Reports go to `-o`, or \
                      nowhere; so do errors, unless `-o` takes JSON or CSV. TERM ends it with its \
                      reports",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('U'),
        long: &["single_udp"],
        meaning: Meaning::Flag(|draft| {
            draft.use_udp();
            draft.single_client = true;
        }),
        help: &[help("", "receive UDP from one client at a time")],
        doc: Doc {
            value: "",
            meaning: "server: UDP, one client at a time. Client: as `-u`",
            limits: "",
        },
        ..SPEC
    },
];
