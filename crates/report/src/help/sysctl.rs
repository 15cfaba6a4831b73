//! Of `nicpoll sysctl`.

/// What it is.
pub const ABOUT: &str = "\
Read and write the knobs of a running engine, as FreeBSD's sysctl(8) does

A running 'nicpoll sink' has the knobs and counters of FreeBSD's kern.polling. This command reads
them, and writes those that can be written, while packets come. What the original refuses is
refused, with the values that are possible. An engine on several CPUs has them once for each:
kern.polling.NAME writes all and adds counters up, kern.polling.cpu1.NAME is that of CPU 1. Where the
kernel polls instead ('nicpoll set IF polling'), --engine IF shows what stands for them, after a
second's look.";

/// How it is called, and how it ends.
pub const EXAMPLES: &str = "\
Examples:
  sudo nicpoll sysctl                                all of them
  sudo nicpoll sysctl kern.polling.user_frac=30      prints: kern.polling.user_frac: 50 -> 30
  sudo nicpoll sysctl -n lost_polls stalled          values alone
  sudo nicpoll sysctl --engine eth1 burst            of the engine at eth1, where several run
  sudo nicpoll sysctl cpu1.burst_max=1000            of CPU 1 alone

Exit codes: 0 done, 1 no engine runs, or a value was refused, 2 usage.";
