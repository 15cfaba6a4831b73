//! The help texts.

use crate::netrate::options::Tool;

const NETBLAST: &str = "\
Send datagrams as fast as it goes, as FreeBSD's netblast does

Usage: netblast [options] ip port payloadsize duration [nthreads]

  ip           the receiver: an IPv4 or IPv6 address, or a name
  port         its port, 1 to 65535
  payloadsize  bytes of UDP payload, 0 to 32768; zeros, a counter in the first four
  duration     whole seconds; 0 sends until a signal comes
  nthreads     threads, each with a socket of its own, bound to one CPU each

Options that the original does not have:
  --batch          up to 64 datagrams a system call, where the original makes one for each: until
                   the first refusal, then one by one. Each line then says so
  --blocking       wait for room in the socket's buffer. Without it a full buffer, and a datagram
                   that the interface refuses, is a send error, as on FreeBSD
  --repeat N       N runs, each with its lines, then their median, range and interval
  --style freebsd  leave out 'send success:' and 'approx throughput:'
  --json           print one JSON object instead (docs/schema.md)
  -h, --help       print this

Examples:
  netblast 198.18.0.2 9000 64 10             small packets for ten seconds
  netblast --batch 198.18.0.2 9000 64 10     more of them, which tells less about packets
  netblast --json 2001:2::2 9000 1430 10     IPv6

Exit codes: 0 done, 255 refused (the original's -1), 1 failed otherwise.
";

const NETRECEIVE: &str = "\
Receive and count datagrams, as FreeBSD's netreceive does

Usage: netreceive [options] port [nthreads]

  port      the port to receive at, IPv4 and IPv6, 1 to 65535
  nthreads  threads for each of the two sockets, 1 to 64 [default: 1]

Every half second a line on standard error says what came. A signal ends it; it then prints, on
standard error too, what was received in all and where this host dropped packets.

Options that the original does not have:
  --json      print one JSON object at the end (docs/schema.md)
  -h, --help  print this

Examples:
  netreceive 9000                            until Ctrl-C
  timeout -s INT 10 netreceive --json 9000   ten seconds

Exit codes: 0 ended by a signal, 255 refused (the original's -1), 1 failed otherwise.
";

const NETSEND: &str = "\
Send datagrams at a steady rate, as FreeBSD's netsend does

Usage: netsend [options] ip port[-port_max] payloadsize packet_rate duration

  ip           the receiver: an IPv4 or IPv6 address, or a name
  port         its port, 1 to 65535; with port_max all of them in turn
  payloadsize  bytes of UDP payload, 0 to 32768; zeros, a counter in the first four
  packet_rate  datagrams a second, up to 100000000; 0 sends as fast as it goes
  duration     whole seconds; 0 sends until a signal comes

It starts at a whole second, one to two seconds from now, and keeps one CPU busy with watching
the clock. Each datagram is a system call of its own.

Options that the original does not have:
  --blocking  wait for room in the socket's buffer. Without it a full buffer, and a datagram that
              the interface refuses, is a send error, as on FreeBSD
  --json      print one JSON object instead (docs/schema.md)
  -h, --help  print this

Examples:
  netsend 198.18.0.2 9000 64 50000 10        50,000 a second for ten seconds
  netsend 198.18.0.2 9000-9003 64 50000 10   over four ports

Exit codes: 0 done, 255 refused (the original's -1), 1 failed otherwise.
";

/// The help text of a tool.
pub fn text(tool: Tool) -> &'static str {
    match tool {
        Tool::Netblast => NETBLAST,
        Tool::Netreceive => NETRECEIVE,
        Tool::Netsend => NETSEND,
    }
}
