//! What the help of `nicpoll demo` says of the study.
//!
//! What must hold: numbers here are those of the plan.

/// What `nicpoll demo` is.
pub const ABOUT: &str = "\
Measure interrupts against polling on this machine, in namespaces of its own

Builds two network namespaces joined by a veth pair and sends TCP, large and small UDP datagrams and
request/response traffic through the kernel's receive path in three settings: as the link comes up
(default), with NAPI woken by arrivals (interrupt), and with NAPI woken by a timer (polling). Reports
what changes: rates, loss and where it happens, latency, CPU time.

Needs root, two CPUs and Linux 6.12 or later. Touches no interface of this machine and leaves nothing
behind. The link is virtual: it shows the kernel's receive path, not a card's interrupts.";

/// How it is called, and how it ends.
pub const EXAMPLES: &str = "\
Examples:
  nicpoll demo                            all workloads, 16 blocks, within 150 s
  nicpoll demo --quick                    polling against interrupt, 11 blocks, within 40 s
  nicpoll demo --report demo.html         also write a page with plots, for a browser
  nicpoll demo --period 100us --workload udp64,rr
  nicpoll demo --repeats 40 --json > study.json
  nicpoll demo --quick --seed 7           repeat the order of trials of seed 7
  nicpoll demo --null --quick             compare polling with itself, to check the instrument
  nicpoll demo --resume last              go on with a demo that was stopped or killed

A demo ends in its time, however busy the machine is: what does not fit is left out. Comparisons with
default are left out first, then those with interrupt, under udp1470, tcp, rr and udp64 in this order.
Each trial is stored as it ends, in a file of yours; 'nicpoll study --help' says more.
With --repeats, --duration, a long --period or --workload the time is computed and shown at the start.

Exit codes: 0 done, 1 failed, 2 usage, 3 what --fail-on names is proven, 4 no comparison was decided
(no difference proven, or too few trials count), 5 a privilege or kernel feature is missing, 130 and
143 ended by a signal.";
