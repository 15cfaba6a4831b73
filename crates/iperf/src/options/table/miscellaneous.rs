//! What is printed, and how; and how much a system call does.

use super::{Doc, Group, Help, Meaning, SPEC, Spec};

const fn help(value: &'static str, text: &'static str) -> Help {
    Help {
        group: Group::Miscellaneous,
        value,
        text,
    }
}

pub static TABLE: &[Spec] = &[
    Spec {
        short: Some('x'),
        long: &["reportexclude"],
        meaning: Meaning::Value(|draft, given| {
            draft.exclude(given.value);
            Ok(())
        }),
        help: &[help(
            "[CDMSV]",
            "exclude C(connection) D(data) M(sums) S(settings) V(server) reports",
        )],
        doc: Doc {
            value: "CDMSV",
            meaning: "leave out connections, data, sums, settings, the server's report",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('y'),
        long: &["reportstyle"],
        meaning: Meaning::Value(|draft, given| {
            draft.take_report_style(given.value);
            Ok(())
        }),
        help: &[help("C", "report as Comma-Separated Values")],
        doc: Doc {
            value: "C",
            meaning: "comma-separated values",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        long: &["no-batch"],
        meaning: Meaning::Flag(|draft| draft.common.stream.is_batched = false),
        help: &[help(
            "",
            "one datagram, or what is there of a TCP stream, a system call",
        )],
        doc: Doc {
            value: "",
            meaning: "one datagram a system call, as iperf sends and receives them. Without it a \
                      sender that is unpaced or late hands the kernel batches of up to 64 datagrams \
                      (`UDP_SEGMENT`), each with its own id and time, and a receiver takes such \
                      batches (`UDP_GRO`). A TCP server returns from a read with whatever is there; \
                      without the option it waits for a whole one (`SO_RCVLOWAT`) while that takes \
                      less than a millisecond, and so is woken less. iperf 2 has no such option",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        long: &["style"],
        meaning: Meaning::Value(|draft, given| {
            draft.common.style = given.style()?;
            Ok(())
        }),
        help: &[help(
            "2.0|2.1",
            "lines as that version prints them (default 2.0)",
        )],
        doc: Doc {
            value: "2.0 or 2.1",
            meaning: "lines as 2.0.5 or 2.1.8 prints them, 2.0 without it. Nothing else changes. \
                      iperf 2 has no such option",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('h'),
        long: &["help"],
        meaning: Meaning::Help,
        help: &[help("", "print this message and quit")],
        doc: Doc {
            value: "",
            meaning: "print the options and end",
            limits: "",
        },
        ..SPEC
    },
    Spec {
        short: Some('v'),
        long: &["version"],
        meaning: Meaning::Version,
        help: &[help("", "print version information and quit")],
        doc: Doc {
            value: "",
            meaning: "print the version and end",
            limits: "",
        },
        ..SPEC
    },
];
