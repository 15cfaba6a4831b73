//! Of `nicpoll forward`.

/// What it is.
pub const ABOUT: &str = "\
Forward packets between interfaces past the kernel's stack, by the kernel's routes

A router's fast path for two or more interfaces. An XDP program at each of them looks up the kernel's
routes and neighbours for each IPv4 and IPv6 packet, and sends it out by the other interface: one hop
less, checksum and hardware addresses changed. Whatever takes more than that goes to the kernel as
before: packets for this host, ARP, neighbours that are not known yet, fragments to be made, answers
by ICMP. Forwarded packets do not come to nftables, iptables, traffic control or rp_filter: where the
packet filter has rules for them, it refuses to start without '--past-filters'. When it ends, the
programs leave the interfaces, also after a kill -9. An interface that has another XDP program is
refused. On the path 'user' the polled engine sends the packets instead of the program itself; an
option of the engine (discipline, hz, controller, set, storm-threshold, cpu) takes that path, and is
refused with '--path xdp'.
docs/forward.md explains the figures.";

/// How it is called, and how it ends.
pub const EXAMPLES: &str = "\
Examples:
  sudo nicpoll forward eth0 eth1
  sudo nicpoll forward eth0 eth1 eth2 --for 10s --json
  sudo nicpoll forward eth0 eth1 --path user --set burst_max=5000 --cpu 2,3
  sudo nicpoll set eth0 polling                       its interrupts become timer polling, as of any

The kernel must forward: 'sysctl net.ipv4.ip_forward=1', 'sysctl net.ipv6.conf.all.forwarding=1'.

Exit codes: 0 done, 1 failed, 2 usage, 5 a privilege or kernel feature is missing; 129, 130 or 143
when a signal ended it: the figures until then are printed.";
