//! The comparisons.

use crate::contest::{Contender, Row, Target};
use crate::course::Place;
use crate::kernel::Kernel;
use crate::trial::{Delivered, End, Receiver};

/// 64-byte frames (60 without FCS) of UDP to port 9, as fast as one core makes them.
pub const FLOOD: &str = blast!("--to 198.18.0.2 --port 9 --path live");
/// The same through an AF_XDP socket, which keeps a rate without bursts.
pub const ONE_BY_ONE: &str = blast!("--to 198.18.0.2 --port 9 --path af-xdp");
/// As fast as one core makes them, for a host behind a router.
const FLOOD_BEHIND: &str = blast!("--to 198.18.1.2 --port 9 --path live");
/// 10,000 a second.
const TEN_THOUSAND: &str = blast!("--to 198.18.0.2 --port 9 --rate 10000");

/// nicpoll's sink, polling. It takes at most `burst_max` in each tick.
const SINK: Receiver = Receiver {
    command: sink!(
        "--json --discipline polling --hz 2000",
        share!(),
        "--set user_frac=10"
    ),
    ready: None,
    end: End::Signal,
    delivered: Delivered::Printed("\"received_packets\""),
};
/// The same with default knobs.
const SINK_AS_IT_IS: Receiver = Receiver {
    command: sink!("--json --discipline polling --hz 1000"),
    ..SINK
};
const SINK_AT_4000: Receiver = Receiver {
    command: sink!("--json --discipline polling --hz 4000"),
    ..SINK
};
const SINK_AT_10000: Receiver = Receiver {
    command: sink!("--json --discipline polling --hz 10000"),
    ..SINK
};
/// nicpoll's sink in busy polling, like testpmd.
const SINK_SPINS: Receiver = Receiver {
    command: sink!("--json --discipline busy-poll"),
    ..SINK
};
/// DPDK's over an AF_XDP socket. Its own busy polling receives nothing on a veth.
const TESTPMD: Receiver = Receiver {
    command: testpmd!(
        "-l 0,1 --main-lcore 0",
        "--file-prefix rx --vdev=net_af_xdp0,iface=em0,busy_budget=0",
        "rxonly"
    ),
    ready: None,
    end: End::Enter,
    delivered: Delivered::Printed("RX-packets:"),
};
const IPERF: Receiver = Receiver {
    command: "iperf -s -u -p 9 -w 8M",
    ready: None,
    end: End::Signal,
    delivered: Delivered::Sockets,
};
/// netreceive's loop: one blocking receive a datagram.
const NETRECEIVE: Receiver = Receiver {
    command: "bench helper socket 9 0",
    ready: Some("ready"),
    end: End::Signal,
    delivered: Delivered::Sockets,
};
const POLL: Receiver = Receiver {
    command: "bench helper poll 9",
    ..NETRECEIVE
};

/// A loop that only sleeps until each tick.
const SLEEPS: Receiver = Receiver {
    command: "bench helper sleep 1000",
    ..NETRECEIVE
};

/// Measures the gaps between packets that are to come at a rate.
const fn gaps(command: &'static str) -> Receiver {
    Receiver {
        command,
        end: End::Enter,
        ..NETRECEIVE
    }
}

/// No receiver: senders are compared. The frames go to a hardware address that nobody has.
const NOBODY: Receiver = Receiver {
    command: "sleep 60",
    ready: None,
    end: End::Signal,
    delivered: Delivered::Sockets,
};

/// The kernel alone forwards.
const NO_ROUTER: Receiver = Receiver {
    delivered: Delivered::Behind,
    ..NOBODY
};
/// An XDP program that redirects every frame unchanged.
const REDIRECT: Receiver = Receiver {
    command: "bench helper redirect",
    ready: Some("ready"),
    ..NO_ROUTER
};
const FORWARD_XDP: Receiver = Receiver {
    command: "nicpoll forward em0 em1 --path xdp",
    ..NO_ROUTER
};
/// nicpoll's router in user space, polling. One system call sends a batch.
const FORWARD: Receiver = Receiver {
    command: forward_user!(
        "--discipline polling --hz 1000",
        large_bursts!(),
        "--set user_frac=10"
    ),
    ..NO_ROUTER
};
/// The same in busy polling, like testpmd.
const FORWARD_SPINS: Receiver = Receiver {
    command: forward_user!("--discipline busy-poll"),
    ..NO_ROUTER
};
/// DPDK's over two AF_XDP sockets: it exchanges the hardware addresses and looks up nothing.
const MACSWAP: Receiver = Receiver {
    command: testpmd!(
        "-l 0,1 --main-lcore 0",
        "--file-prefix fwd --vdev=net_af_xdp0,iface=em0,busy_budget=0 --vdev=net_af_xdp1,iface=em1,busy_budget=0",
        "macswap"
    ),
    end: End::Enter,
    ..NO_ROUTER
};

const fn of(name: &'static str, kernel: Kernel, receiver: Receiver) -> Contender {
    Contender {
        name,
        kernel,
        receiver,
        feeder: None,
    }
}

const fn paced(name: &'static str, gaps_of: &'static str, command: &'static str) -> Contender {
    Contender {
        receiver: gaps(gaps_of),
        ..sender(name, command)
    }
}

const fn sender(name: &'static str, command: &'static str) -> Contender {
    Contender {
        name,
        kernel: Kernel::OfSender,
        receiver: NOBODY,
        feeder: Some(command),
    }
}

/// All comparisons except overload.
pub const ROWS: [Row; 8] = [
    Row {
        name: "sink-testpmd",
        title: "sink, packets/s delivered to user space: dpdk-testpmd rxonly over AF_XDP",
        place: Place::End,
        feeder: Some(FLOOD),
        needs_surplus: true,
        contenders: &[
            of("sink, polling", Kernel::OfSender, SINK),
            of("sink, busy-poll", Kernel::OfSender, SINK_SPINS),
            of("testpmd", Kernel::OfSender, TESTPMD),
            of("sink, polling, threaded", Kernel::Threaded, SINK),
            of("testpmd, threaded", Kernel::Threaded, TESTPMD),
        ],
        targets: &[
            Target::Delivers(1.0, &[0, 1, 3], &[2, 4]),
            Target::DeliversFor(1.0, 0.25, &[0, 1, 3], 2),
        ],
    },
    Row {
        name: "sink-sockets",
        title: "sink, packets/s delivered to user space: plain UDP sockets",
        place: Place::End,
        feeder: Some(FLOOD),
        needs_surplus: true,
        contenders: &[
            of("sink, polling", Kernel::OfSender, SINK),
            of("iperf 2 server", Kernel::OfSender, IPERF),
            of("netreceive's loop", Kernel::OfSender, NETRECEIVE),
            of("iperf 2 server, timer", Kernel::Timer, IPERF),
            of("netreceive's loop, timer", Kernel::Timer, NETRECEIVE),
        ],
        targets: &[Target::Delivers(4.0, &[0], &[1, 2, 3, 4])],
    },
    Row {
        name: "idle",
        title: "CPU of an idle interface",
        place: Place::End,
        feeder: None,
        needs_surplus: false,
        contenders: &[
            of("sink, polling, 1000 Hz", Kernel::OfSender, SINK_AS_IT_IS),
            of("testpmd", Kernel::OfSender, TESTPMD),
            of("a loop of sleeps, 1000 Hz", Kernel::OfSender, SLEEPS),
            of("sink, polling, 4000 Hz", Kernel::OfSender, SINK_AT_4000),
            of("sink, polling, 10000 Hz", Kernel::OfSender, SINK_AT_10000),
        ],
        targets: &[Target::TakesAtMost(0.02, 0), Target::TakesAtMost(0.06, 3)],
    },
    Row {
        name: "light",
        title: "CPU at 10,000 packets/s",
        place: Place::End,
        feeder: Some(TEN_THOUSAND),
        needs_surplus: false,
        contenders: &[
            of("sink, polling, 1000 Hz", Kernel::OfSender, SINK_AS_IT_IS),
            of("poll(2) and a receive", Kernel::OfSender, POLL),
        ],
        targets: &[Target::TakesNoMore(0, 1)],
    },
    Row {
        name: "paced",
        title: "blast at a rate: CPU, and what gaps between packets are off by at the receiver",
        place: Place::End,
        feeder: None,
        needs_surplus: false,
        contenders: &[
            paced(
                "af-xdp, 1,000/s",
                "bench helper gaps 9 1000",
                blast!("--to 198.18.0.2 --port 9 --path af-xdp --rate 1000"),
            ),
            paced(
                "af-xdp, 20,000/s",
                "bench helper gaps 9 20000",
                blast!("--to 198.18.0.2 --port 9 --path af-xdp --rate 20000"),
            ),
            paced(
                "af-xdp, 100,000/s",
                "bench helper gaps 9 100000",
                blast!("--to 198.18.0.2 --port 9 --path af-xdp --rate 100000"),
            ),
            paced(
                "af-packet, 1,000/s",
                "bench helper gaps 9 1000",
                blast!("--to 198.18.0.2 --port 9 --path af-packet --rate 1000"),
            ),
            paced(
                "af-packet, 20,000/s",
                "bench helper gaps 9 20000",
                blast!("--to 198.18.0.2 --port 9 --path af-packet --rate 20000"),
            ),
            paced(
                "af-packet, 100,000/s",
                "bench helper gaps 9 100000",
                blast!("--to 198.18.0.2 --port 9 --path af-packet --rate 100000"),
            ),
        ],
        targets: &[Target::TakesAtMost(0.05, 1)],
    },
    Row {
        name: "blast",
        title: "blast, frames/s sent, each with a number of its own",
        place: Place::End,
        feeder: None,
        needs_surplus: false,
        contenders: &[
            sender(
                "blast, live frames",
                blast!("--to 198.18.0.2 --mac 02:00:00:00:00:01 --path live"),
            ),
            sender(
                "blast, AF_XDP",
                blast!("--to 198.18.0.2 --mac 02:00:00:00:00:01 --path af-xdp"),
            ),
            sender(
                "blast, AF_PACKET",
                blast!("--to 198.18.0.2 --mac 02:00:00:00:00:01 --path af-packet"),
            ),
            sender(
                "trafgen",
                // Its own children outlive SIGTERM.
                "timeout -k 1 30 trafgen -o em0 --cpus 1 --no-sock-mem \
                 {eth(da=02:00:00:00:00:01),ipv4(saddr=198.18.0.1,daddr=198.18.0.2),udp(sp=9,dp=9),dinc(0,255,1),fill(0,17)}",
            ),
            sender(
                "testpmd, AF_PACKET",
                testpmd!(
                    "-l 1,0 --main-lcore 1",
                    "--file-prefix tx --vdev=net_af_packet0,iface=em0",
                    "txonly"
                ),
            ),
            sender(
                "testpmd, AF_XDP",
                testpmd!(
                    "-l 1,0 --main-lcore 1",
                    "--file-prefix tx --vdev=net_af_xdp0,iface=em0,busy_budget=0",
                    "txonly"
                ),
            ),
        ],
        targets: &[
            Target::Sends(1.6, 0, &[3, 4, 5]),
            Target::Sends(1.0, 1, &[3, 4, 5]),
            Target::Sends(1.1, 2, &[4]),
        ],
    },
    Row {
        name: "forward-xdp",
        title: "forward by XDP, packets/s",
        place: Place::Middle,
        feeder: Some(FLOOD_BEHIND),
        needs_surplus: true,
        contenders: &[
            of("the kernel", Kernel::OfSender, NO_ROUTER),
            of("a bare XDP_REDIRECT", Kernel::OfSender, REDIRECT),
            of("forward, xdp", Kernel::OfSender, FORWARD_XDP),
            of("the kernel, threaded", Kernel::Threaded, NO_ROUTER),
            of("a bare XDP_REDIRECT, threaded", Kernel::Threaded, REDIRECT),
            of("forward, xdp, threaded", Kernel::Threaded, FORWARD_XDP),
        ],
        targets: &[
            Target::Delivers(3.0, &[2], &[0]),
            Target::Delivers(0.85, &[2], &[1]),
            Target::Delivers(0.85, &[5], &[4]),
        ],
    },
    Row {
        name: "forward-user",
        title: "forward in user space, packets/s",
        place: Place::Middle,
        feeder: Some(FLOOD_BEHIND),
        needs_surplus: true,
        contenders: &[
            of("the kernel", Kernel::OfSender, NO_ROUTER),
            of("the kernel, threaded", Kernel::Threaded, NO_ROUTER),
            of("testpmd macswap", Kernel::OfSender, MACSWAP),
            of("testpmd macswap, threaded", Kernel::Threaded, MACSWAP),
            of("forward, polling", Kernel::OfSender, FORWARD),
            of("forward, busy-poll", Kernel::OfSender, FORWARD_SPINS),
            of("forward, polling, threaded", Kernel::Threaded, FORWARD),
        ],
        targets: &[
            Target::Delivers(1.5, &[4, 5, 6], &[0]),
            Target::Delivers(1.2, &[4, 5, 6], &[1]),
            Target::Delivers(1.0, &[4, 5, 6], &[2, 3]),
        ],
    },
];
