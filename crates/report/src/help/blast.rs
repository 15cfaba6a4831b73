//! Of `nicpoll blast`.

/// What it is.
pub const ABOUT: &str = "\
Send frames as fast as they go, or at a rate, past the kernel's stack

Sends UDP over IPv4 or IPv6 by an interface, or the frames of a capture. Each datagram has a number,
the time and its flow in it; netreceive, a plain UDP socket and 'nicpoll sink' receive it. The
figures say by which way frames left: the kernel's own live frames are the fastest, then AF_XDP.
Nothing is left at the interface when it ends, also after a kill -9. docs/blast.md explains the
ways and the figures.

The receiver's hardware address comes from the kernel's routes and neighbours. What the blast sends
goes past firewall rules and traffic shaping of this host: send only where you may.";

/// How it is called, and how it ends.
pub const EXAMPLES: &str = "\
Examples:
  sudo nicpoll blast eth0 --to 198.18.0.2                       64-byte frames to port 9, until Ctrl-C
  sudo nicpoll blast eth0 --to 198.18.0.2 --rate 500k --for 10s
  sudo nicpoll blast eth0 --to 2001:2::2 --size imix --flows 64
  sudo nicpoll blast eth0 eth1 --to 198.18.0.2 --to 198.18.1.2  two links at once
  sudo nicpoll blast eth0 --to 198.18.0.2 --rate 10k --burst 32 --count 100000
  sudo nicpoll blast eth0 --replay FILE.pcap                    as it was recorded

At the other end:
  nicpoll netreceive 9
  sudo nicpoll sink eth0

Exit codes: 0 done, 1 failed, 2 usage or a capture that cannot be replayed, 5 a privilege or kernel
feature is missing; 129, 130 or 143 when a signal ended it: the figures until then are printed.";
