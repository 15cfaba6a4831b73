//! Command lines of contenders and feeders, as constants; a macro for what those of one program share.

/// nicpoll's sink on the receiver's core.
macro_rules! sink {
    ($($options:expr),+) => {
        concat!("nicpoll sink em0 --cpu 1", $(" ", $options),+)
    };
}

/// nicpoll's router in user space, on the router's core.
macro_rules! forward_user {
    ($($options:expr),+) => {
        concat!("nicpoll forward em0 em1 --path user --cpu 1", $(" ", $options),+)
    };
}

/// Knobs for bursts as large as a tick's arrivals, in few calls.
macro_rules! large_bursts {
    () => {
        "--set burst_max=4000 --set each_burst=64"
    };
}

/// The controller that raises its burst at once, where `freebsd` raises it by a packet a tick.
macro_rules! share {
    () => {
        concat!("--controller share ", large_bursts!())
    };
}

/// nicpoll's sender on the sender's core.
macro_rules! blast {
    ($($options:expr),+) => {
        concat!("nicpoll blast em0 --cpu 0", $(" ", $options),+)
    };
}

/// dpdk-testpmd: its main thread on one core, and the thread that moves packets on the other.
macro_rules! testpmd {
    ($cores:literal, $devices:literal, $mode:literal) => {
        concat!(
            "taskset -c 0,1 dpdk-testpmd ",
            $cores,
            " --no-huge -m 256 --no-pci ",
            $devices,
            " -- --forward-mode=",
            $mode,
            " --total-num-mbufs=16384 --nb-cores=1"
        )
    };
}
