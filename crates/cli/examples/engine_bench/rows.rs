//! What is compared with what.

use crate::contest::{Contender, Row, Target};
use crate::kernel::Kernel;
use crate::trial::{Delivered, End, Receiver};

/// 64-byte frames (60 without FCS) of UDP to port 9, each by itself, as fast as one core makes them.
pub const FLOOD: &str = "nicpoll blast em0 --to 198.18.0.2 --port 9 --cpu 0 --path live";
/// 10,000 a second.
const TEN_THOUSAND: &str = "nicpoll blast em0 --to 198.18.0.2 --port 9 --cpu 0 --rate 10000";

/// nicpoll's sink, polling.
const SINK: Receiver = Receiver {
    command: "nicpoll sink em0 --json --cpu 1 --discipline polling --hz 1000 --set burst_max=4000 --set user_frac=10",
    ready: None,
    end: End::Signal,
    delivered: Delivered::Printed("\"received_packets\""),
};
/// nicpoll's sink, which asks without a pause, as testpmd does.
const SINK_SPINS: Receiver = Receiver {
    command: "nicpoll sink em0 --json --cpu 1 --discipline busy-poll",
    ..SINK
};
/// DPDK's over an AF_XDP socket. Its own busy polling receives nothing on a veth.
const TESTPMD: Receiver = Receiver {
    command: "taskset -c 0,1 dpdk-testpmd -l 0,1 --main-lcore 0 --no-huge -m 256 --no-pci --file-prefix rx \
              --vdev=net_af_xdp0,iface=em0,busy_budget=0 -- --forward-mode=rxonly --total-num-mbufs=16384 --nb-cores=1",
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

/// Nobody receives: senders are compared. The frames go to a hardware address that nobody has.
const NOBODY: Receiver = Receiver {
    command: "sleep 60",
    ready: None,
    end: End::Signal,
    delivered: Delivered::Sockets,
};

const fn of(name: &'static str, kernel: Kernel, receiver: Receiver) -> Contender {
    Contender {
        name,
        kernel,
        receiver,
        feeder: None,
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

/// All comparisons but that under overload.
pub const ROWS: [Row; 5] = [
    Row {
        name: "sink-testpmd",
        title: "sink, packets/s delivered to user space: dpdk-testpmd rxonly over AF_XDP",
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
        feeder: None,
        needs_surplus: false,
        contenders: &[
            of("sink, polling, 1000 Hz", Kernel::OfSender, SINK),
            of("testpmd", Kernel::OfSender, TESTPMD),
        ],
        targets: &[Target::TakesAtMost(0.02, 0)],
    },
    Row {
        name: "light",
        title: "CPU at 10,000 packets/s",
        feeder: Some(TEN_THOUSAND),
        needs_surplus: false,
        contenders: &[
            of("sink, polling, 1000 Hz", Kernel::OfSender, SINK),
            of("poll(2) and a receive", Kernel::OfSender, POLL),
        ],
        targets: &[Target::TakesNoMore(0, 1)],
    },
    Row {
        name: "blast",
        title: "blast, frames/s sent, each with a number of its own",
        feeder: None,
        needs_surplus: false,
        contenders: &[
            sender(
                "blast, live frames",
                "nicpoll blast em0 --to 198.18.0.2 --mac 02:00:00:00:00:01 --cpu 0 --path live",
            ),
            sender(
                "blast, AF_XDP",
                "nicpoll blast em0 --to 198.18.0.2 --mac 02:00:00:00:00:01 --cpu 0 --path af-xdp",
            ),
            sender(
                "trafgen",
                "trafgen -o em0 --cpus 1 --no-sock-mem \
                 {eth(da=02:00:00:00:00:01),ipv4(saddr=198.18.0.1,daddr=198.18.0.2),udp(sp=9,dp=9),dinc(0,255,1),fill(0,17)}",
            ),
            sender(
                "testpmd, AF_PACKET",
                "taskset -c 0,1 dpdk-testpmd -l 1,0 --main-lcore 1 --no-huge -m 256 --no-pci --file-prefix tx \
                 --vdev=net_af_packet0,iface=em0 -- --forward-mode=txonly --total-num-mbufs=16384 --nb-cores=1",
            ),
            sender(
                "testpmd, AF_XDP",
                "taskset -c 0,1 dpdk-testpmd -l 1,0 --main-lcore 1 --no-huge -m 256 --no-pci --file-prefix tx \
                 --vdev=net_af_xdp0,iface=em0,busy_budget=0 -- --forward-mode=txonly --total-num-mbufs=16384 \
                 --nb-cores=1",
            ),
        ],
        targets: &[
            Target::Sends(1.6, 0, &[2, 3, 4]),
            Target::Sends(1.0, 1, &[2, 3, 4]),
        ],
    },
];
