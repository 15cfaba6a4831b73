//! What `--help` prints.

/// The options that are carried out, in iperf's layout.
pub(super) const HELP: &str = "\
Usage: iperf [-s|-c host] [options]
       iperf [-h|--help] [-v|--version]

Client/Server:
  -b, --bandwidth #[kmgKMG | pps]  rate to send or read at in bits/sec, or for a client with -u in packets/sec
  -e, --enhanced           more columns with --style 2.1, and the gaps between datagrams
  -f, --format    [kmgtpKMGTP]  unit of the report, small letters for bits and capitals for bytes
  -i, --interval  #        seconds between periodic reports, at least 0.005
      --json               one JSON object at the end instead of text
      --json-stream        JSON objects as things happen, one a line
  -l, --len       #[kmgKMG]  length of buffer in bytes to read or write (Defaults: TCP=128K, v4 UDP=1470, v6 UDP=1450)
  -m, --print_mss          print TCP maximum segment size
  -o, --output    <filename>  write reports to this file
  -p, --port      #        port to listen on or to connect to (default 5001)
  -u, --udp                use UDP rather than TCP
  -w, --window    #[kmgKMG]  TCP window size (socket buffer size)
  -B, --bind      <ip>[:<port>][%<dev>]  local address; port for the client, device for the server
  -C, --compatibility      send no header, for use with older versions
  -M, --mss       #        set TCP maximum segment size
  -N, --nodelay            set TCP no delay, disabling Nagle's Algorithm
  -P, --parallel  #        client: streams at once; server: connections to handle before it ends
  -S, --tos       #        set the IP_TOS byte: decimal, 0x hex, 0 octal or a name
  -V, --ipv6_domain        use IPv6
  -Z, --tcp-congestion <algo>  set TCP congestion control algorithm

Server specific:
  -s, --server             run in server mode
      --allow     <address>[/<prefix>]  with -u, send to clients there that ask for it (-d, -r, -R,
                           --full-duplex); may be repeated
  -1, --singleclient       run one test at a time
  -D, --daemon             run in the background; a TERM signal ends it with its reports
  -U, --single_udp         receive UDP from one client at a time
  -t, --time      #        time in seconds to listen and to receive (default not set)

Client specific:
      --burst     #        with -u: datagrams to send back to back, as often as -b allows
  -c, --client    <host>[%<dev>]  run in client mode, connecting to <host>
      --dialect   2.0.<n>  speak UDP as this version does, 2.0.2 to 2.0.13, for a server of that age
  -d, --dualtest           both ways at once, the server over a connection of its own
      --full-duplex        both ways at once over the same socket
  -L, --listenport #       port for the server's connection of -d and -r (default: that of -p)
  -n, --num       #[kmgKMG]  number of bytes to transmit (instead of -t)
  -r, --tradeoff           both ways one after the other, the server over a connection of its own
  -R, --reverse            the server sends, the client receives
  -t, --time      #        time in seconds to transmit for (default 10 secs)
  -F, --fileinput <name>   send what is in a file, to its end
  -I, --stdin              send what comes from standard input, to its end
  -T, --ttl       #        time-to-live of what is sent
      --trip-times         with -u: both ends have one clock, so that the server may measure delays

Miscellaneous:
  -x, --reportexclude [CDMSV]  exclude C(connection) D(data) M(sums) S(settings) V(server) reports
  -y, --reportstyle C      report as Comma-Separated Values
      --no-batch           one datagram, or what is there of a TCP stream, a system call
      --style     2.0|2.1  lines as that version prints them (default 2.0)
  -h, --help               print this message and quit
  -v, --version            print version information and quit

[kmgKMG] k, m, g are powers of 1000 and K, M, G powers of 1024, with every option:
1k = 1000, 1K = 1024, 1m = 1000000, 1M = 1048576

Names for -S: af11 to af13, af21 to af23, af31 to af33, af41 to af43, cs0 to cs7, ef, le, nqb, nqb2,
ac_be, ac_bk, ac_vi, ac_vo, lowdelay, throughput, reliability

The environment variable TCP_WINDOW_SIZE sets -w, and IPERF_<long option name>, such as
IPERF_BANDWIDTH, any other option. The command line comes after it.
";
