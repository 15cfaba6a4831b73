//! Options of iperf 2.1.8 that are refused by name, with what to do instead.

use super::Argument::{None, Optional, Required};
use super::{Argument, Meaning, OptionSide, SPEC, Spec};

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

const fn long(
    side: OptionSide,
    long: &'static [&'static str],
    argument: Argument,
    instead: &'static str,
) -> Spec {
    Spec {
        long,
        side,
        meaning: Meaning::LeftOut(argument, instead),
        ..SPEC
    }
}

const fn both(name: &'static [&'static str], argument: Argument, instead: &'static str) -> Spec {
    long(OptionSide::Both, name, argument, instead)
}

const fn client(name: &'static [&'static str], argument: Argument, instead: &'static str) -> Spec {
    long(OptionSide::Client, name, argument, instead)
}

const fn server(name: &'static [&'static str], argument: Argument, instead: &'static str) -> Spec {
    long(OptionSide::Server, name, argument, instead)
}

const fn letter(letter: char, spec: Spec) -> Spec {
    Spec {
        short: Some(letter),
        ..spec
    }
}

pub static TABLE: &[Spec] = &[
    // Addresses.
    letter('6', both(&[], None, "use -V")),
    letter('A', both(&["awdl"], None, BY_DEVICE)),
    letter(
        'H',
        both(
            &["ssm-host"],
            Required,
            "use -B with the group, which admits any source",
        ),
    ),
    client(&["incr-dstip"], None, ONE_TARGET),
    client(&["incr-dstport"], None, ONE_TARGET),
    client(&["incr-srcip"], None, ONE_TARGET),
    client(&["incr-srcport"], None, ONE_TARGET),
    client(&["local-only"], None, BY_DEVICE),
    server(&["tap-dev"], Optional, BY_ADDRESS),
    server(&["tun-dev"], Optional, BY_ADDRESS),
    both(&["l2checks"], None, NOT_NEEDED),
    // Handshakes.
    both(&["permit-key"], Optional, FIREWALL),
    server(&["permit-key-timeout"], Required, FIREWALL),
    client(
        &["connect-only"],
        Optional,
        "measure with request/response, or use -n 1 with -l 1",
    ),
    client(
        &["connect-retries"],
        Required,
        "repeat the command while its exit status is 1",
    ),
    client(&["no-connect-sync"], None, NOT_NEEDED),
    client(&["no-udp-fin"], None, NOT_NEEDED),
    // When and how fast.
    client(&["txstart-time"], Required, RUN_COMMAND),
    client(&["txdelay-time"], Required, RUN_COMMAND),
    client(&["ipg"], Required, "use -b with pps"),
    client(&["isochronous"], Optional, BURSTS),
    client(&["burst-size"], Required, BURSTS),
    client(&["burst-period"], Required, BURSTS),
    client(&["near-congestion"], Optional, BURSTS),
    // Delays.
    both(&["bounceback"], Optional, CLOCKS),
    both(&["bounceback-congest"], Optional, CLOCKS),
    both(&["bounceback-hold"], Required, CLOCKS),
    both(&["bounceback-no-quickack"], None, CLOCKS),
    both(&["bounceback-period"], Required, CLOCKS),
    both(&["bounceback-txdelay"], Required, CLOCKS),
    both(&["histograms"], Optional, NO_HISTOGRAM),
    both(&["udp-histograms", "udp-histogram"], Optional, NO_HISTOGRAM),
    // TCP.
    server(&["tcp-rx-window-clamp"], Required, "use -w"),
    client(&["tcp-quickack"], None, DEFAULT_TUNING),
    client(&["tcp-write-prefetch"], Required, DEFAULT_TUNING),
    client(&["tcp-write-times"], None, DEFAULT_TUNING),
    server(&["tos-override"], Required, "use -S"),
    // Output.
    server(&["sum-dstip"], None, NOT_NEEDED),
    both(&["hide-ips"], None, "use -x C"),
    // Of the program itself.
    letter(
        'W',
        both(
            &["suggest_win_size"],
            None,
            "try several -w; 2.1.8 does not have it either",
        ),
    ),
    both(&["NUM_REPORT_STRUCTS"], Required, NOT_NEEDED),
];
