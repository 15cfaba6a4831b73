//! The comparisons.

use crate::contest::{Contender, Row, Target};
use crate::figures::{
    cpu_seconds_per_gigabyte, delivered_pps, delivered_pps_iperf3, send_calls, tcp_mbps,
};

/// iperf prints a second line of dashes when it listens.
const DASHES: (&str, usize) = ("-----\n", 2);

/// All comparisons.
pub const ROWS: &[Row] = &[TCP, TCP_CPU, UDP_64, UDP_1470, NETBLAST];

const OURS_TCP: Contender = Contender {
    name: "nicpoll",
    server: "nicpoll iperf -s -P 1",
    ready: DASHES,
    last: Some("sec"),
    client: "nicpoll iperf -c HOST -t 1 -f m",
    figure: tcp_mbps,
};

const IPERF_TCP: Contender = Contender {
    name: "iperf",
    server: "iperf -s -P 1",
    client: "iperf -c HOST -t 1 -f m",
    ..OURS_TCP
};

const TCP: Row = Row {
    title: "TCP, one stream, Mbit/s",
    contenders: &[
        OURS_TCP,
        IPERF_TCP,
        Contender {
            name: "iperf3",
            server: "iperf3 -s -1 --forceflush",
            last: Some("receiver"),
            client: "iperf3 -c HOST -t 1 -f m",
            ..OURS_TCP
        },
        Contender {
            name: "nicpoll to iperf",
            server: "iperf -s -P 1",
            ..OURS_TCP
        },
        Contender {
            name: "iperf to nicpoll",
            server: "nicpoll iperf -s -P 1",
            ..IPERF_TCP
        },
    ],
    targets: &[
        Target::AtLeast(1.0, &[1, 2]),
        Target::Pair(1.0, 3, 1),
        Target::Pair(1.0, 4, 1),
    ],
};

const TCP_CPU: Row = Row {
    title: "TCP, one stream, processor seconds of the client by 10^9 bytes sent (less is better)",
    contenders: &[
        Contender {
            client: "nicpoll iperf -c HOST -t 2 -f m",
            figure: cpu_seconds_per_gigabyte,
            ..OURS_TCP
        },
        Contender {
            client: "iperf -c HOST -t 2 -f m",
            figure: cpu_seconds_per_gigabyte,
            ..IPERF_TCP
        },
    ],
    targets: &[Target::AtMost(1.0, 1)],
};

const OURS_UDP: Contender = Contender {
    name: "nicpoll",
    server: "nicpoll iperf -s -u -P 1 -w 8M --style 2.1",
    ready: DASHES,
    last: Some("%)"),
    client: "nicpoll iperf -u -c HOST -b 100g -l 64 -t 1",
    figure: delivered_pps,
};

const IPERF_UDP: Contender = Contender {
    name: "iperf",
    server: "iperf -s -u -P 1 -w 8M",
    client: "iperf -u -c HOST -b 100g -l 64 -t 1",
    ..OURS_UDP
};

const UDP_64: Row = Row {
    title: "UDP 64 B, delivered, datagrams/s",
    contenders: &[
        OURS_UDP,
        IPERF_UDP,
        Contender {
            name: "nicpoll to iperf",
            server: IPERF_UDP.server,
            ..OURS_UDP
        },
        Contender {
            name: "iperf to nicpoll",
            server: OURS_UDP.server,
            ..IPERF_UDP
        },
    ],
    targets: &[
        Target::AtLeast(2.0, &[1]),
        Target::Pair(1.0, 2, 1),
        Target::Pair(1.0, 3, 1),
    ],
};

const UDP_1470: Row = Row {
    title: "UDP 1470 B, delivered, datagrams/s",
    contenders: &[
        Contender {
            client: "nicpoll iperf -u -c HOST -b 100g -t 1",
            ..OURS_UDP
        },
        Contender {
            client: "iperf -u -c HOST -b 100g -t 1",
            ..IPERF_UDP
        },
        Contender {
            name: "iperf3",
            server: "iperf3 -s -1 --forceflush",
            ready: DASHES,
            last: Some("receiver"),
            client: "iperf3 -u -c HOST -b 0 -l 1470 -w 4M -t 1",
            figure: delivered_pps_iperf3,
        },
        Contender {
            name: "nicpoll to iperf",
            server: IPERF_UDP.server,
            client: "nicpoll iperf -u -c HOST -b 100g -t 1",
            ..OURS_UDP
        },
        Contender {
            name: "iperf to nicpoll",
            server: OURS_UDP.server,
            client: "iperf -u -c HOST -b 100g -t 1",
            ..IPERF_UDP
        },
    ],
    targets: &[
        Target::AtLeast(1.5, &[1, 2]),
        Target::Pair(1.0, 3, 1),
        Target::Pair(1.0, 4, 1),
    ],
};

const NETBLAST: Row = Row {
    title: "netblast 64 B, send calls/s that did not fail",
    contenders: &[
        Contender {
            name: "netblast --batch",
            server: "nicpoll netreceive 9000",
            ready: ("listening on UDP port", 1),
            last: None,
            client: "nicpoll netblast --batch HOST 9000 64 1",
            figure: send_calls,
        },
        // The original's loop: one blocking send a datagram.
        Contender {
            name: "one send a datagram",
            server: "nicpoll netreceive 9000",
            ready: ("listening on UDP port", 1),
            last: None,
            client: "nicpoll netblast --blocking HOST 9000 64 1",
            figure: send_calls,
        },
    ],
    targets: &[Target::AtLeast(3.0, &[1])],
};
