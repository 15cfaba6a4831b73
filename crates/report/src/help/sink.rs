//! Of `nicpoll sink`.

/// What it is.
pub const ABOUT: &str = "\
Receive packets by polling, past the kernel's stack, and count them

Takes UDP packets out of the kernel's way by an XDP program and receives them as FreeBSD's polling(4)
would: at each tick of a clock, so many at a time that programs beside it keep their share of the
CPU. Everything else that comes to the interface goes to the kernel as before: ARP, TCP, logins over
ssh. Each packet is counted and forgotten, so no other program receives it. When the sink ends, the
XDP program leaves the interface, also after a kill -9. Another program's XDP program is never
replaced. Where none can be attached, the sink reads copies of the packets (AF_PACKET), and the
kernel and its programs have them, too; the first lines say so. docs/engine.md explains the figures.";

/// How it is called, and how it ends.
pub const EXAMPLES: &str = "\
Examples:
  sudo nicpoll sink eth0                              UDP to port 9 and 5001, polled at 1000 Hz
  sudo nicpoll sink eth0 --port 9000 --for 10s
  sudo nicpoll sink eth0 --set burst_max=2000 --set user_frac=20
  sudo nicpoll sink eth0 --discipline interrupt --storm-threshold 1000
  sudo nicpoll sink eth0 --work 2000 --json           spend 2 us of CPU time on each packet
  sudo nicpoll sink eth0 --cpu 0,1                    queues shared out to two CPUs
  sudo nicpoll sink eth0 --kernel-side threaded       kernel threads on the other CPUs take the arrivals
  sudo nicpoll sink eth0 --device af-packet           copies of packets, which the kernel has, too
  sudo nicpoll sink tap0 --device tap                 what this host sends through tap0
  sudo nicpoll sink eth0 --check netrate              and how many were lost on the way

At the other end:
  nicpoll netblast 198.51.100.2 9 64 10

Exit codes: 0 done, 1 failed, 2 usage, 5 a privilege or kernel feature is missing; 129, 130 or 143
when a signal ended it: the figures until then are printed.";
