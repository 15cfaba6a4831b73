//! What works on which kernel: each boots once, and runs one script of what people do with the program. The cells of
//! the table in docs/kernels.md are what the script showed; a cell that differs from the committed one fails.

mod cases;
#[path = "../common/mod.rs"]
mod common;
#[path = "../guests/guest.rs"]
mod guest;
mod hosts;

use std::fmt::Write as _;

use crate::common::prelude::*;
use crate::guest::{Console, Guest, rewrite_between};

/// Kernels by the names of their folders, whose tests everybody runs, and the rest.
const KERNELS: [&str; 6] = ["5.10", "5.15", "6.1", "6.8", "6.12", "newest"];
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/kernels.md");
/// The lines of the page between which the table stands.
const BOUNDS: [&str; 2] = ["<!-- guests: begin -->\n", "<!-- guests: end -->"];

/// The other end of the cable. It sends 300 datagrams a second until its guest is ended: by iperf, which sleeps between
/// them.
const PEER: &str = "
load e1000e; ip link set eth1 up; ip addr add 192.0.2.2/24 dev eth1
while :; do nicpoll iperf -u -c 192.0.2.1 -p 9 -l 64 -b 153600 -t 600; sleep 1; done
";

const SCRIPT: &str = r#"
run() { name=$1; shift; "$@" >/out 2>/err; echo "$name-ended: $?"; echo "$name-said: $(grep -v '^ *$' /err | tail -n 3 | tr '\n' ' ')"; echo "$name: $(tr -d '\n' </out)"; }
values() { (cd /sys/class/net/eth1; cat napi_defer_hard_irqs gro_flush_timeout threaded 2>/dev/null | tr '\n' ' '); }
echo "kernel: $(uname -r)"
mkdir -p /run /root /sys/fs/bpf; export HOME=/root
load e1000e; load veth; load tun
ip link set lo up; ip link set eth1 up; ip addr add 192.0.2.1/24 dev eth1
nicpoll netreceive 9 >/dev/null 2>&1 &
for wait in $(seq 300); do [ $(cat /sys/class/net/eth1/statistics/rx_packets) -gt 100 ] && break; sleep 0.2; done
run doctor nicpoll doctor --json
run show nicpoll show eth1 --for 2s --json
before=$(values)
run set nicpoll set eth1 polling --period 1ms --look 2s --json
run back nicpoll set eth1 -polling
run threaded nicpoll set eth1 --threaded --look 0
nicpoll restore
kills=0; same=0
for wait in 0.05 0.1 0.2 0.4 0.8; do
    nicpoll set eth1 polling --for 60s --look 0 >/dev/null 2>&1 & killed=$!
    sleep $wait; kill -9 $killed; wait $killed; kills=$((kills + 1))
    nicpoll restore >/dev/null 2>&1
    [ "$(values)" = "$before" ] && same=$((same + 1))
done
echo "undone: $same of $kills"
run ab nicpoll ab eth1 --for 8s --block 0.4s --loss-limit 100000 --no-store --json
run demo nicpoll demo --quick --workload udp64 --no-store --json
# Not busybox's, which makes no pairs.
/bin/ip link add v0 type veth peer name v1; /bin/ip link set v0 up; /bin/ip link set v1 up
/bin/ip addr add 198.18.0.1/24 dev v0; /bin/ip neigh add 198.18.0.2 lladdr 02:00:00:00:00:02 dev v0
started() { for wait in $(seq 200); do [ -s $1 ] && break; sleep 0.2; done; }
# Ends a command, and prints what its stream began and ended with.
ended() {
    kill -INT $1; wait $1; echo "$2-ended: $?"; echo "$2-said: $(tail -n 2 /err-of-$2 | tr '\n' ' ')"
    echo "$2-start: $(head -n 1 /$2)"; echo "$2: $(tail -n 1 /$2)"
}
nicpoll sink v1 --json-stream >/sink 2>/err-of-sink & sink=$!
started /sink
run blast nicpoll blast v0 --to 198.18.0.2 --count 1000 --rate 500 --json
sleep 1; ended $sink sink
echo 1 >/proc/sys/net/ipv4/ip_forward
/bin/ip link add w0 type veth peer name w1; /bin/ip link set w0 up; /bin/ip link set w1 up
/bin/ip addr add 198.18.1.1/24 dev w0; /bin/ip addr add 198.18.0.2/24 dev v1; /bin/ip addr del 198.18.0.1/24 dev v0
nicpoll set w1 --knob gro=on --look 0
/bin/ip neigh add 198.18.1.2 lladdr 02:00:00:00:00:03 dev w0
nicpoll forward v1 w0 --json-stream >/forward 2>/err-of-forward & forward=$!
started /forward
run sent nicpoll blast v0 --to 198.18.1.2 --from 198.18.0.3 --mac $(cat /sys/class/net/v1/address) --count 1000 --rate 500
sleep 1; ended $forward forward
run import nicpoll study import /published.txt --store /studies.db
run report nicpoll study report 1 --store /studies.db -o /page.html
"#;

/// A published measurement, as pages have them.
const PUBLISHED: &str = "------------------------------------------------------------
Client connecting to 10.0.0.2, TCP port 5001
TCP window size: 0.06 MByte (default)
------------------------------------------------------------
[  3] local 10.0.0.1 port 50001 connected with 10.0.0.2 port 5001
[ ID] Interval       Transfer     Bandwidth
[  3]  0.0-10.0 sec  1.09 GBytes   938 Mbits/sec
";

/// A row of the table: its name, and what a console shows of it.
type Row = (&'static str, fn(&Console) -> String);

const ROWS: [Row; 11] = [
    ("kernel", |console| String::from(console.line("kernel"))),
    ("`doctor`: features that are missing", doctor),
    ("`show`, a card (e1000e)", show),
    ("`set IF polling`", set),
    ("`set IF --threaded`", threaded),
    ("killed with `kill -9`, then `restore`", |console| {
        format!("{} as before", console.line("undone"))
    }),
    ("`ab`, traffic from another guest", ab),
    ("`demo --quick`, `udp64`", demo),
    ("`blast` to `sink`, veth", sink),
    ("`forward`, veth", forward),
    ("`study import`, `report`", report),
];

fn ended(console: &Console, name: &str) -> String {
    let code = console.line(&format!("{name}-ended"));
    let said = console.line(&format!("{name}-said"));
    format!("exit code {code}: {said}")
}

/// What a command printed as JSON; or how it ended.
fn told(console: &Console, name: &str) -> Result<Value, String> {
    let name_of_end = name.trim_end_matches("-start");
    serde_json::from_str(console.line(name)).map_err(|_| ended(console, name_of_end))
}

fn cell(found: Result<String, String>) -> String {
    found.unwrap_or_else(|why| why)
}

fn doctor(console: &Console) -> String {
    cell(told(console, "doctor").map(|doctor| {
        let checks = doctor["checks"].as_array().unwrap().iter();
        let missing = checks.filter(|check| {
            check["group"] == "kernel"
                && (check["status"] == "missing" || check["status"] == "absent")
        });
        let missing: Vec<_> = missing.filter_map(|check| check["name"].as_str()).collect();
        match missing.is_empty() {
            true => String::from("none"),
            false => missing.join(", "),
        }
    }))
}

fn show(console: &Console) -> String {
    cell(told(console, "show").map(|show| {
        let interface = &show["interfaces"][0];
        let instances = interface["napis"].as_array().map_or(0, Vec::len);
        let discipline = interface["evidence"]["discipline"]
            .as_str()
            .unwrap_or("unknown");
        match instances {
            1 => format!("{discipline}, 1 NAPI instance"),
            _ => format!("{discipline}, {instances} NAPI instances"),
        }
    }))
}

fn set(console: &Console) -> String {
    cell(told(console, "set").map(|set| {
        let proof = &set["proofs"][0];
        match proof["is_proven"].as_bool() {
            Some(true) => String::from("proven by its polls"),
            _ => format!("set, not proven: {}", proof["finding"]),
        }
    }))
}

fn threaded(console: &Console) -> String {
    match console.line("threaded-ended") {
        "0" => String::from("yes"),
        _ => String::from(
            console
                .line("threaded-said")
                .trim_start_matches("nicpoll: "),
        ),
    }
}

fn ab(console: &Console) -> String {
    cell(told(console, "ab").map(|ab| {
        let pairs = ab["pairs"].as_array().unwrap();
        let blocks = || {
            pairs
                .iter()
                .flat_map(|pair| [&pair["reference"], &pair["judged"]])
        };
        let all = blocks().count();
        let counted = |what: &str, is_there: fn(&Value) -> bool| match blocks()
            .filter(|block| is_there(block))
            .count()
        {
            0 => format!("{what} not counted"),
            some if some == all => format!("{what} counted"),
            _ => format!("{what} partly counted"),
        };
        let cpu = counted("exact CPU time", |block| {
            block["window"]["cpu"]["source"] == "exact"
        });
        let polls = counted("polls", |block| !block["polls"].is_null());
        format!("{cpu}, {polls}")
    }))
}

fn demo(console: &Console) -> String {
    cell(told(console, "demo").map(|demo| {
        let settings = demo["settings"].as_array().unwrap();
        let names: Vec<_> = settings.iter().map(|one| text(&one["setting"])).collect();
        let trials = demo["trials"].as_array().unwrap();
        let failed = trials
            .iter()
            .filter(|trial| !trial["failure"].is_null())
            .count();
        format!("{}; {failed} trials failed", names.join(", "))
    }))
}

fn sink(console: &Console) -> String {
    let ended = told(console, "sink");
    cell(ended.and_then(|end| {
        let (start, blast) = (told(console, "sink-start")?, told(console, "blast")?);
        let path = text(&blast["start"]["links"][0]["path"]);
        let device = text(&start["data"]["device"]);
        let sent = &blast["end"]["links"][0]["account"]["completed_frames"];
        let taken = &end["data"]["account"]["taken_packets"];
        Ok(format!("{taken} of {sent} frames, {path} to {device}"))
    }))
}

fn forward(console: &Console) -> String {
    let ended = told(console, "forward");
    cell(ended.and_then(|end| {
        let start = told(console, "forward-start")?;
        let forwarded = &end["data"]["account"]["forwarded_packets"];
        Ok(format!(
            "{forwarded} of 1000 by {}",
            text(&start["data"]["path"])
        ))
    }))
}

fn report(console: &Console) -> String {
    match (console.line("import-ended"), console.line("report-ended")) {
        ("0", "0") => String::from("yes"),
        ("0", _) => ended(console, "report"),
        _ => ended(console, "import"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

/// Boots a kernel and its peer. `None` if it is not there, which the test has said.
fn boot(test: &str, name: &str) -> Option<Console> {
    let need = match name {
        "6.1" | "newest" => Need::Qemu,
        _ => Need::Kernels,
    };
    let guest = Guest::of_kernel(test, name, need)?.with_cpus(2);
    Some(guest.run_with_peer(SCRIPT, PEER, &[("published.txt", PUBLISHED)]))
}

fn is_refreshing() -> bool {
    std::env::var_os("NICPOLL_REFRESH_GOLDEN").is_some()
}

/// Whether a test runs that takes minutes: else it is skipped.
fn is_asked_for(test: &str) -> bool {
    if !is_refreshing() {
        let why = "it takes minutes; `cargo xtask guests` runs it";
        skip(test, Need::Kernels, why);
    }
    is_refreshing()
}

/// Checks what a kernel shows against its column, or writes that.
fn try_kernel(test: &str, name: &str) {
    let Some(console) = boot(test, name) else {
        return;
    };
    let found: Vec<_> = ROWS.iter().map(|(_, read)| read(&console)).collect();
    for ((row, _), cell) in ROWS.iter().zip(&found) {
        println!("{name}: {row}: {cell}");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::write(folder.join(format!("console-{name}")), &console.0).unwrap();
    if is_refreshing() {
        rewrite_between(PAGE, BOUNDS, |table| with_column(table, name, &found));
        return;
    }
    let page = fs::read_to_string(PAGE).unwrap();
    let table = page.split(BOUNDS[0]).nth(1).unwrap();
    let table = table.split(BOUNDS[1]).next().unwrap();
    let committed = column(table, name);
    // The first row names the release, which changes with each update of a distribution.
    let differ = (1..ROWS.len()).filter(|row| committed.get(*row) != Some(&found[*row]));
    let differ: Vec<_> = differ
        .map(|row| {
            format!(
                "{}: {:?}, in docs/kernels.md {:?}",
                ROWS[row].0,
                found[row],
                committed.get(row)
            )
        })
        .collect();
    assert!(
        differ.is_empty(),
        "{name}: {}\n{}",
        differ.join("\n"),
        console.0
    );
}

/// Returns the cells of a line of a table.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner
        .split('|')
        .map(|cell| String::from(cell.trim()))
        .collect()
}

/// Returns the cells of a kernel's column.
fn column(table: &str, name: &str) -> Vec<String> {
    let at = 1 + KERNELS.iter().position(|kernel| *kernel == name).unwrap();
    let rows = table.lines().map(cells);
    let rows = rows.filter(|cells| ROWS.iter().any(|(row, _)| cells[0] == *row));
    rows.map(|cells| cells[at].clone()).collect()
}

/// Returns the table with these cells in a kernel's column.
fn with_column(table: &str, name: &str, found: &[String]) -> String {
    let columns = KERNELS.map(|kernel| match kernel == name {
        true => found.to_vec(),
        false => column(table, kernel),
    });
    let mut text = format!(
        "| | {} |\n|---|{}\n",
        KERNELS.join(" | "),
        "---|".repeat(KERNELS.len())
    );
    for (row, (title, _)) in ROWS.iter().enumerate() {
        let cells = columns
            .iter()
            .map(|cells| cells.get(row).map_or("", |cell| cell));
        let _ = writeln!(
            text,
            "| {title} | {} |",
            cells.collect::<Vec<_>>().join(" | ")
        );
    }
    text
}

#[test]
fn linux_5_10() {
    try_kernel(test_name!(), KERNELS[0]);
}

#[test]
fn linux_5_15() {
    try_kernel(test_name!(), KERNELS[1]);
}

#[test]
fn linux_6_1() {
    try_kernel(test_name!(), KERNELS[2]);
}

#[test]
fn linux_6_8() {
    try_kernel(test_name!(), KERNELS[3]);
}

#[test]
fn linux_6_12() {
    try_kernel(test_name!(), KERNELS[4]);
}

#[test]
fn the_newest_linux() {
    try_kernel(test_name!(), KERNELS[5]);
}
