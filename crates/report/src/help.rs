//! What `--help` says of commands beyond their options: what each is for, how it is called, and how it ends.
//!
//! What must hold: numbers here are those of the program; every page ends with the exit codes.

/// Of `nicpoll doctor`.
pub mod doctor {
    /// What '--help' says first.
    pub const ABOUT: &str = "\
Check what this machine supports, and what would disturb measurements on it

Prints one line for each privilege, kernel feature and driver capability, and for each thing that
disturbs measurements, with a remedy. It samples the load of the machine for about a second and
changes nothing.";

    /// How it is called, and how it ends.
    pub const EXAMPLES: &str = "\
Examples:
  sudo nicpoll doctor
  sudo nicpoll doctor --cpu-truth              check both accounts of CPU time against a known load
  sudo nicpoll doctor --cpu-truth --fold 1ms   also CPU time by phase of a burst of datagrams
  nicpoll doctor --json | jq -r '.checks[] | select(.status == \"confounds\") | .remedy'

Exit codes: 0 all is well, 1 failed, 2 usage, 4 something that nicpoll needs is missing or a
measurement would be disturbed, 5 /proc is not mounted. With --cpu-truth: 0 the exact account is
right, 1 it is wrong or failed, 4 inconclusive: the machine was disturbed, 5 a privilege or kernel
feature is missing.";
}

/// Of `nicpoll serve`.
pub mod serve {
    /// What it is.
    pub const ABOUT: &str = "\
Show stored studies in a browser

Prints an address of this machine for a browser. Its pages are the list of the studies, the report
of each, and any two compared. The list and the report of a study that still runs load again every
five seconds, with the trials that have ended. The pages only read the store. They are given out
under the address that was printed and under no other name, to this machine alone unless --listen
names an address that others reach. There is no password: whoever reaches it can read it.";

    /// How it is called, and how it ends.
    pub const EXAMPLES: &str = "\
Examples:
  nicpoll serve
  nicpoll serve --store lab.db --listen 127.0.0.1:9000
  ssh -L 8077:127.0.0.1:8077 lab nicpoll serve       the studies of another machine, in a browser here

Exit codes: 1 failed, 2 usage, 130 or 143 ended by a signal, which is how it ends.";
}

/// Of `nicpoll linerate`.
pub mod linerate {
    /// What it is.
    pub const ABOUT: &str = "\
Show what an Ethernet line carries, and what share of it a rate takes

Between payloads a line also carries headers, padding, checksum, preamble and gap (IEEE 802.3). This
prints packets and frames a second at full line, exact and cut to whole numbers, for frames or for
UDP and TCP payloads. Frame lengths count the check sequence (FCS) and not the VLAN tags, as in RFC
2544. Nothing is sent and nothing is measured.";

    /// How it is called, and how it ends.
    pub const EXAMPLES: &str = "\
Examples:
  nicpoll linerate 100m                       the frame sizes of RFC 2544
  nicpoll linerate 100m --udp 64,1470         UDP payloads over IPv4 and IPv6
  nicpoll linerate 10g --tcp 1448 --tcp-timestamps --ip 4
  nicpoll linerate 1g --udp 64 --rate 70kpps  the share of the line that a rate takes
  nicpoll linerate --interface eth0 --vlan 1 --json

Exit codes: 0 done, 1 failed, 2 usage.";
}

pub mod blast;

pub mod forward;
pub mod sink;

pub mod sysctl;

/// Of `nicpoll man`.
pub mod man {
    /// What follows the options.
    pub const EXAMPLES: &str = "\
Examples:
  nicpoll man | man -l -
  nicpoll man sim run | man -l -
  nicpoll man --out /usr/local/share/man/man1

Exit codes: 0 done, 1 failed, 2 usage.";
}

/// Of `nicpoll rr`.
pub mod rr {
    /// What it is.
    pub const ABOUT: &str = "\
Measure request/response latency over UDP or TCP

The server answers over both at one port. The client works as a closed loop, where the next request
follows the response to the one before, or as an open loop (--rate), where requests go out at times
that no response can shift: latency then counts from the scheduled time, so that a stalled server
cannot hide the wait (no coordinated omission). Requests without a response within --timeout count
as lost. Both ends print what they counted; Ctrl-C ends either with its report.

The server may stay open to strangers: over UDP it never sends more than it got.";

    /// How it is called, and how it ends.
    pub const EXAMPLES: &str = "\
Examples:
  nicpoll rr -s                                  serve until Ctrl-C
  nicpoll rr -c 198.18.0.2                       TCP, one request at a time, 10 s
  nicpoll rr -c 198.18.0.2 -u -i 1 -t 30         UDP, a line every second
  nicpoll rr -c 198.18.0.2 -u --rate 10k         open loop: 10,000 requests/s
  nicpoll rr -c host -n 100000 --response-bytes 16384 --json > rr.json

Exit codes: 0 done, 1 failed or no response came, 2 usage, 130 and 143 ended by a signal.";
}

/// Of `nicpoll set` and `nicpoll restore`.
pub mod set {
    /// What `nicpoll set` is.
    pub const SET_ABOUT: &str = "\
Switch interfaces to polling and back, as 'ifconfig em0 polling' did

With 'polling' a timer decides when the kernel looks for packets: after the first packet the card's
interrupt stays masked, and every period one round of polls takes what has arrived. '-polling'
restores every value. A setting persists after exit, until '-polling' or a reboot; --persist keeps it
across reboots. Needs root.

After the change it watches the polls for a moment and reports what starts them: a timer or an
arriving packet. Without traffic nothing can be proven.

Every old value is saved in /var/lib/nicpoll before it is changed. A command changes all interfaces
that it names, or none. A VLAN, bond or bridge stands for the interfaces below it; 'all' for every
interface that can be polled.";

    /// How it is called, and how it ends.
    pub const EXAMPLES: &str = "\
Examples:
  nicpoll set eth0 polling                  poll eth0 by a timer of 200us
  nicpoll set eth0 -polling                 restore everything
  nicpoll set eth0 polling --period 50us --dry-run
  nicpoll set eth0 polling --for 60s        undo after 60 s, unless confirmed:
  nicpoll set eth0 --confirm                ... keep it
  nicpoll set eth0 polling --threaded --threaded-cpus 1 --nice -5
  nicpoll set eth0 polling --threaded --cpu-share 50
  nicpoll set eth0:rx0-3 polling            four receive queues only
  nicpoll set eth0 --moderation rx-usecs=50,adaptive=off
  nicpoll set veth0 polling --fix           also GRO here and TSO at the other end
  nicpoll set all polling --netns lab
  nicpoll set eth0 polling --persist        also after a reboot (shows what it writes)
  nicpoll set eth0 polling --json | jq '.proofs[].is_proven'
  nicpoll set root@bsd:em0 polling --user-frac 20     a FreeBSD host

Over ssh: if the interface carries your own connection, the change is undone after 60 s unless you
confirm it. '--for forever' keeps it at once.

Exit codes: 0 done, 1 failed and nothing is changed, 2 usage, 5 a privilege or kernel feature is
missing. More in docs/switch.md.";

    /// What `nicpoll restore` is.
    pub const RESTORE_ABOUT: &str = "\
Restore everything that nicpoll changed

Without a name: every interface of every network namespace, including what killed programs left, and
every FreeBSD host. Values that something else changed in the meantime are listed.";
}

/// Of `nicpoll show`.
pub mod show {
    /// What '--help' says first.
    pub const ABOUT: &str = "\
Show how interfaces learn of packets: by interrupts or by polling, with the evidence

Samples the polls of each interface and reports what starts them: arriving packets or a timer
(discipline), and what the settings say (setting). Also shows the driver, queues, NAPI instances,
interrupts, and FreeBSD's kern.polling variables where Linux has a counterpart. It changes nothing.

Settings and interrupts need no privilege. Sampling polls needs root (CAP_BPF and CAP_PERFMON).";

    /// How it is called, and how it ends.
    pub const EXAMPLES: &str = "\
Examples:
  nicpoll show                            all interfaces but the loopback
  nicpoll show eth0 --for 10s             sample for 10 seconds
  nicpoll show --for 0                    settings only
  nicpoll show --netns red em0            in a network namespace
  nicpoll show eth0 -n kern.polling.hz    print the value only
  nicpoll show root@bsd:em0               kern.polling of a FreeBSD host, over ssh
  nicpoll show --json | jq '.interfaces[].evidence'

Exit codes: 0 done, 1 failed, 2 usage, 5 -n named a value that needs a missing privilege or kernel
feature.";
}

/// Of `nicpoll sim`.
pub mod sim {
    /// What it is.
    pub const ABOUT: &str = "\
Simulate hosts that receive packets: what would interrupts, polling and their like do?

A host file (sim/hosts/*.toml) says what the host's processor, card, line and protocols can hold and what
each thing costs. The host then runs in virtual time; device polling is the same code that polls real
interfaces. Nothing is sent and nothing is measured: every figure is a prediction from the host file. The
same file, options and seed give the same figures to the last digit (docs/simulator.md).";

    /// How it is called, and how it ends.
    pub const RUN_EXAMPLES: &str = "\
Disciplines: freebsd-interrupt, freebsd-polling, napi, napi-timer, busy-poll. Options follow with colons, and
so do numbers of the host file: freebsd-polling:user_frac=20:burst_max=1000, napi:card.moderation_ns=100us.
What nicpoll set and the demo call interrupt and polling is napi and napi-timer here.
Workloads: constant, poisson and pulses (rate, payload, ip; pulses also period) come from outside;
under rr (payload, ip) clients there send a request, wait for the reply, and send the next. These
four take clients=N (1 to 10,000, each by itself; the rate is that of all) and links=N (1 to 8
lines, each with a card, that the clients are dealt out to).
trace:FILE (repeat, ip) replays a recorded one; under blast (payload, ip) the host sends. With --peer both
ends are simulated hosts: netblast (payload, ip) sends without a pause, iperf-udp (rate in bit/s of payload,
payload, ip) as iperf 2.0 keeps its rate, iperf-tcp (window, write, dual, ip) writes to a TCP connection,
with dual=1 from both ends at once, and rr (payload, ip) has the host as its one client and the peer as server.

Examples:
  nicpoll sim run sim/hosts/generic.toml --workload poisson:rate=70k
  nicpoll sim run sim/hosts/generic.toml --discipline freebsd-polling:controller=share
  nicpoll sim run sim/hosts/generic.toml --discipline napi --workload pulses:rate=50k --json
  nicpoll sim run sim/hosts/generic.toml --discipline freebsd-polling --warmup 0 --slices 20
  nicpoll sim run sim/hosts/generic.toml --discipline freebsd-polling --workload blast:payload=1470
  nicpoll sim run sim/hosts/generic.toml --discipline napi --workload rr:clients=1000
  nicpoll sim run sim/hosts/generic.toml --discipline freebsd-polling --workload poisson:rate=60k:clients=100:links=4
  nicpoll sim run sim/hosts/asa633.toml --peer sim/hosts/poweredge.toml --workload iperf-udp:rate=500m
  nicpoll sim run sim/hosts/asa633.toml --peer sim/hosts/poweredge.toml --workload iperf-tcp:window=32k
  nicpoll sim run sim/hosts/generic.toml --peer sim/hosts/generic.toml --through sim/hosts/generic.toml \\
      --router-discipline freebsd-polling --workload netblast

Exit codes: 0 done, 1 failed, 2 usage or a host file that is missing or wrong.";

    /// How it is called, and how it ends.
    pub const SWEEP_EXAMPLES: &str = "\
Examples:
  nicpoll sim sweep sim/hosts/generic.toml
  nicpoll sim sweep sim/hosts/generic.toml --disciplines freebsd-interrupt,freebsd-polling --svg livelock.svg
  nicpoll sim sweep sim/hosts/generic.toml --over cpu.hz=100..4000:14 --workload poisson:rate=60k \\
      --disciplines freebsd-polling,freebsd-polling:controller=share --csv
  nicpoll sim sweep sim/hosts/generic.toml --workload rr --over clients=1..50:50 --svg clients.svg
  nicpoll sim sweep sim/hosts/generic.toml --over offered=10k..1m:100 --shard 1/4 --json > 1.json

Exit codes: 0 done, 1 failed, 2 usage or a host file that is missing or wrong.";
}

/// Of `nicpoll sim fit --host`.
pub mod sim_fit_host {
    /// How it is called, and how it ends.
    pub const EXAMPLES: &str = "\
Measures in two namespaces that a veth pair joins, as nicpoll demo does (root is needed), what the
running kernel takes for a poll, a packet in it, delivery to a socket, waking a program and the
programs' calls. What comes out is a host file. With --check the demo's traffic runs under interrupt
and polling afterwards, and what the simulator says of it stands beside what was measured.

Examples:
  nicpoll sim fit --host
  nicpoll sim fit --host --out here.toml --check
  nicpoll sim run here.toml --peer here.toml --workload netblast --discipline napi \\
      --peer-discipline napi-timer:defer=1000000:timeout=150us
  nicpoll sim run here.toml --peer here.toml --workload rr --discipline napi

Exit codes: 0 done, 1 failed, 2 usage, 5 a privilege or kernel feature is missing, 130 and 143 ended by
a signal.";
}

/// Of `nicpoll sim hosts`.
pub mod sim_hosts {
    /// How it is called, and how it ends.
    pub const EXAMPLES: &str = "\
A host file may begin from presets: [cpu] preset = a host of the list, which gives every number,
[card] preset = a driver, [link] preset = a speed. What the file states itself counts. docs/router.md has
a router in ten lines. Wherever a host file is wanted, a name of the list will do.

Examples:
  nicpoll sim hosts
  nicpoll sim hosts net6501 > mine.toml
  nicpoll sim run net6501 --discipline freebsd-polling

Exit codes: 0 done, 1 failed, 2 usage.";
}

/// Of `nicpoll sim merge`.
pub mod sim_merge {
    /// How it is called, and how it ends.
    pub const EXAMPLES: &str = "\
Each file is what `nicpoll sim sweep --shard I/N --json` printed. What comes out is, to the byte, what the
sweep without --shard prints. Parts may come in any order, from different machines.

Examples:
  nicpoll sim sweep sim/hosts/generic.toml --shard 1/2 --json > 1.json
  nicpoll sim sweep sim/hosts/generic.toml --shard 2/2 --json > 2.json
  nicpoll sim merge 1.json 2.json --svg livelock.svg

Exit codes: 0 done, 1 failed, 2 usage or files that are not the parts of one sweep.";
}

/// Of `nicpoll sim published` and `nicpoll sim fit`.
pub mod sim_published {
    /// What follows the options of `nicpoll sim published --help`.
    pub const PUBLISHED_EXAMPLES: &str = "\
Each row shows the measured figure, the simulated one, the error, and whether parameters were fitted to the
row or it is a prediction. Rows under polling are always predictions. --sensitivity adds how much the row
changes at most when one parameter is 20 % greater or smaller; it takes minutes on a slow machine.

Examples:
  nicpoll sim published
  nicpoll sim published --table C --sensitivity
  nicpoll sim published --json > published.json

Exit codes: 0 done, 1 failed, 2 usage or a file that is missing or wrong.";

    /// What follows the options of `nicpoll sim fit --help`.
    pub const FIT_EXAMPLES: &str = "\
DIR/fit.toml says what is fitted; lines of DIR/hosts/*.toml that end with '# fitted' hold what came out. The
same files give the same numbers to the last digit, whatever the host files held before.

Examples:
  nicpoll sim fit
  nicpoll sim fit --write

Exit codes: 0 the host files hold what the fit gives, 1 they hold other numbers or it failed, 2 usage or a
file that is missing or wrong.";
}

/// Of `nicpoll sim ticks`.
pub mod sim_ticks {
    /// How it is called, and how it ends.
    pub const EXAMPLES: &str = "\
Every pulse has the processor work: the kernel first, then the program. The kernel's account looks at it
at each tick only. When the pulses come almost in step with the ticks, what the account says wanders
through the pulse, while what the processor does stays as it is (docs/cpu-time.md).

Examples:
  nicpoll sim ticks
  nicpoll sim ticks --pulse 4ms --hz 250
  nicpoll sim ticks --ppm 25 --kernel 10 --user 60 --reading 2s --svg ticks.svg
  nicpoll sim ticks --hz 1024 --json

Exit codes: 0 done, 1 failed, 2 usage.";
}

/// Of `nicpoll study`.
pub mod study {
    /// What `nicpoll study` is.
    pub const ABOUT: &str = "\
Run a study of your own; compare results; list, show, export and delete stored studies

'nicpoll study run' and 'nicpoll demo' store each trial as it ends in $XDG_DATA_HOME/nicpoll/studies.db
or, without that, ~/.local/share/nicpoll/studies.db. A study that was stopped or killed goes on with
'nicpoll study run --resume last'.";

    /// How results are compared, and how that ends.
    pub const COMPARE_EXAMPLES: &str = "\
Examples:
  nicpoll study compare before.json after.json    files with one or more runs of 'iperf3 -J'
  nicpoll study compare 7:interrupt 7:polling     two settings of one study: paired by block
  nicpoll study compare 7 8                       two studies, for each workload and setting of both
  nicpoll study compare a.txt b.txt --ministat    what ministat prints of the same numbers
  nicpoll study compare before.json after.json --fail-on worse:5%

Files hold what iperf3 -J, iperf 2, netblast, netsend, netreceive, netperf or sockperf printed, or a
column of numbers; the format is found out and named. docs/compare.md describes the tests, and use in CI.

Exit codes: 0 done, 1 failed, 2 usage or a file that is missing or wrong, 3 what --fail-on names is
proven, 4 nothing was decided (with --fail-on: there are too few values for an interval).";

    /// How transcripts are imported.
    pub const IMPORT_EXAMPLES: &str = "\
Examples:
  nicpoll study import page.txt --dry-run        what is found, with its lines, and what has no place
  nicpoll study import client.txt server.txt     both ends of the same tests: paired by ports
  nicpoll study import page.txt --map 120-180:setting=polling --map 12:host=PC1
  nicpoll study compare last:interrupt last:polling

Reads what iperf 2, netblast and netreceive print, with prompts, top's CPU line, vmstat -i, netstat -s
and -m, systat -ifstat, sysctl, ifconfig and dmesg between, however a page has glued or wrapped it.
KEY is host, setting, sender, receiver or workload; LINES:skip leaves lines out. What is inferred is
marked with '?'; a figure without a place is listed, never guessed (docs/import.md).

Exit codes: 0 done, 1 failed or no test was found, 2 usage or a file that cannot be read.";

    /// How a report is written.
    pub const REPORT_EXAMPLES: &str = "\
Examples:
  nicpoll study report last                       study-ID.html, for a browser
  nicpoll study report 7 -o polling.html
  nicpoll study report 7 --format md -o -         Markdown to standard output

The HTML file needs nothing else: it loads nothing, runs no script, and holds the whole study, which
a reader can save from it (docs/report.md).";

    /// How a study of one's own is run, and how it ends.
    pub const RUN_EXAMPLES: &str = "\
Examples:
  nicpoll study run period.toml --dry-run      what would be set, in which order, for how long
  sudo nicpoll study run period.toml
  sudo nicpoll study run period.toml --json > study.json
  sudo nicpoll study run servers-2006          a ready study: what servers were tried with in 2006
  sudo nicpoll study run servers-2006 --full   the same for as long as they were
  sudo nicpoll study run period.toml --workload udp64,rr
                                               under two of its workloads only
  sudo nicpoll study run period.toml --sweep rate=25%,50%,100%,150%
                                               how much each setting holds, and at what cost
  sudo nicpoll study run period.toml --simulate here.toml --report period.html
                                               with what the simulator predicts beside it
  sudo nicpoll study run --resume last         go on with a study that was stopped or killed

A file names settings, workloads and what is held against what (docs/studies.md). The study runs in
namespaces of its own, joined by veth pairs: no interface of this machine is touched unless the file
names it.

Exit codes: 0 done, 1 failed, 2 usage or a file that is missing or wrong, 3 what --fail-on names is
proven, 4 nothing was decided, 5 a privilege or kernel feature is missing, 130 and 143 ended by a signal.";

    /// How it is called, and how it ends.
    pub const EXAMPLES: &str = "\
Examples:
  sudo nicpoll study run period.toml      run the study that a file describes
  nicpoll study compare before.json after.json --fail-on worse:5%
  nicpoll study list
  nicpoll study show last                 the page that the demo printed
  nicpoll study report last -o demo.html  one page with plots, to be shown around
  nicpoll study export 7 > study.json     what 'nicpoll demo --json' printed
  nicpoll study export 7 --format csv     a line for each trial
  nicpoll study delete 3 4 --dry-run

Exit codes: 0 done, 1 failed, 2 usage; 'run' and 'compare' have more.";
}

/// Of `nicpoll watch`.
pub mod watch {
    /// What '--help' says first.
    pub const ABOUT: &str = "\
Watch rates, CPU time, interrupts, polls and drops live

One screen for systat, top, vmstat -i and netstat: current, peak and total rates of interfaces, CPU
time by state with exact interrupt and softirq time, context switches, interrupts by source, polls,
packets per poll, and where packets are dropped.

Exact CPU time, polls and storms need root (CAP_BPF and CAP_PERFMON). Without root, CPU time is
tick-sampled and labelled so. The cost of watching is shown too.

Keys: up/down select an interface, p toggles polling on it as 'nicpoll set' does (restored when
watch exits), s changes the unit, q quits.";

    /// How it is called, and how it ends.
    pub const EXAMPLES: &str = "\
Examples:
  nicpoll watch                           all interfaces but the loopback, full screen
  nicpoll watch eth0 --scale packets
  nicpoll watch --plain --interval 10s >> watch.log
  nicpoll watch eth0 --plain --count 1    one interval as text
  nicpoll watch --netns red em0
  nicpoll watch --json-stream | jq -c 'select(.event == \"interval\") | .data.interfaces'

Exit codes: 0 done, 1 failed, 2 usage, 5 a privilege or /proc is missing, 130 and 143 ended by a
signal. See docs/watch.md.";
}
