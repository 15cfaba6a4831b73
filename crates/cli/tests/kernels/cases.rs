//! Situations that people ask about, each compared live in a guest under traffic of its kind. docs/cases.md has what
//! it showed. A guest's timing means nothing, but its packets, interrupts and polls can be counted.

use crate::common::prelude::*;
use crate::guest::{Guest, rewrite_between};
use crate::is_asked_for;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cases.md");
const BOUNDS: [&str; 2] = ["<!-- cases: begin -->\n", "<!-- cases: end -->"];
const BOUNDS_OF_TUNE: [&str; 2] = ["<!-- tune: begin -->\n", "<!-- tune: end -->"];

/// A case: its name, the driver of its card, what the other end of the cable runs, what runs here, and what is compared.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const CASES: [Case; 7] = [
    (
        "router",
        "e1000e",
        "ip route add 198.51.100.0/24 via 192.0.2.1; nicpoll netsend 198.51.100.2 9 64 300 600",
        "far; echo 1 >/proc/sys/net/ipv4/ip_forward; $far nicpoll netreceive 9 >/dev/null 2>&1 &",
        "eth1 polling",
    ),
    (
        "DNS server",
        "e1000e",
        "nicpoll rr -c 192.0.2.1 -u -t 600",
        "nicpoll rr -s >/dev/null 2>&1 &",
        "eth1 polling",
    ),
    (
        "WireGuard gateway",
        "e1000e",
        "",
        "far
umask 077; wg genkey >/a; wg genkey >/b
/bin/ip link add wg0 type wireguard; $far /bin/ip link add wg0 type wireguard
wg set wg0 listen-port 51820 private-key /a peer $(wg pubkey </b) endpoint 198.51.100.2:51820 allowed-ips 0.0.0.0/0
$far wg set wg0 listen-port 51820 private-key /b peer $(wg pubkey </a) endpoint 198.51.100.1:51820 allowed-ips 0.0.0.0/0
/bin/ip addr add 10.9.0.1/24 dev wg0; /bin/ip link set wg0 up
$far /bin/ip addr add 10.9.0.2/24 dev wg0; $far /bin/ip link set wg0 up
nicpoll netreceive 9 >/dev/null 2>&1 &
$far nicpoll netsend 10.9.0.1 9 64 300 600 >/dev/null 2>&1 &",
        "wg0 --threaded",
    ),
    (
        "virtual machine",
        "virtio_net",
        "nicpoll rr -c 192.0.2.1 -u -t 600",
        "nicpoll rr -s >/dev/null 2>&1 &",
        "eth1 polling",
    ),
    (
        "market data",
        "e1000e",
        "ip neigh add 192.0.2.1 lladdr 52:54:00:12:34:57 dev eth1; nicpoll blast eth1 --to 192.0.2.1 --mac 52:54:00:12:34:57 --rate 400 --burst 40",
        "nicpoll netreceive 9 >/dev/null 2>&1 &",
        "eth1 polling",
    ),
    (
        "storage",
        "e1000e",
        "nicpoll iperf -c 192.0.2.1 -b 10m -t 600",
        "nicpoll iperf -s >/dev/null 2>&1 &",
        "eth1 polling",
    ),
    (
        "storage",
        "e1000e",
        "nicpoll iperf -c 192.0.2.1 -b 10m -t 600",
        "nicpoll iperf -s >/dev/null 2>&1 &",
        "eth1 --moderation rx-usecs=300",
    ),
];

/// A network namespace behind the guest, for whoever routes or has a tunnel.
const FAR: &str = r#"
far="/bin/ip netns exec far"
far() {
    mkdir -p /run/netns; /bin/ip netns add far
    /bin/ip link add v0 type veth peer name v1; /bin/ip link set v1 netns far; /bin/ip link set v0 up
    /bin/ip addr add 198.51.100.1/24 dev v0
    $far /bin/ip link set v1 up; $far /bin/ip addr add 198.51.100.2/24 dev v1; $far /bin/ip link set lo up
    $far /bin/ip route add default via 198.51.100.1
}
"#;

/// Runs a case with a command, whose JSON it returns.
fn run(test: &str, (name, driver, peer, here, _): &Case, command: &str) -> Option<Value> {
    let up = |address: &str| {
        format!(
            "\nload virtio_pci; load {driver}; ip link set lo up; ip link set eth1 up; ip addr add {address}/24 dev eth1\n"
        )
    };
    let script = format!(
        "{}{FAR}mkdir -p /run /root; export HOME=/root; load veth; load wireguard\n{here}\nsleep 4
nicpoll {command} --loss-limit 100000 --no-store --json >/out 2>/err
echo \"said: $(tail -n 3 /err | tr '\\n' ' ')\"; echo \"json: $(tr -d '\\n' </out)\"\n",
        up("192.0.2.1")
    );
    let peer = format!("{}while :; do {peer}\nsleep 1; done\n", up("192.0.2.2"));
    let guest = Guest::of_kernel(test, "6.1", Need::Kernels)?.with_cpus(2);
    let console = guest.with_card(driver).run_with_peer(&script, &peer, &[]);
    let json = serde_json::from_str(console.line("json"));
    Some(json.unwrap_or_else(|_| panic!("{name}: {}", console.0)))
}

/// Compares live in a case, and returns its line of the table.
fn line_of(test: &str, case: &Case) -> Option<String> {
    let (name, .., compared) = case;
    let ab = run(test, case, &format!("ab {compared} --for 27s --block 0.4s"))?;
    let pairs = ab["pairs"].as_array().unwrap();
    let rate = |side: &str, what: fn(&Value) -> &Value| {
        let blocks = pairs.iter().map(|pair| &pair[side]);
        let seconds: f64 = blocks
            .clone()
            .map(|block| block["window"]["seconds"].as_f64().unwrap())
            .sum();
        let counts: Option<Vec<f64>> = blocks.map(|block| what(block).as_f64()).collect();
        counts.map(|counts| counts.iter().sum::<f64>() / seconds)
    };
    let both = |what: fn(&Value) -> &Value| {
        ["reference", "judged"]
            .map(|side| {
                rate(side, what).map_or_else(|| String::from("-"), |rate| format!("{rate:.0}"))
            })
            .join(" -> ")
    };
    let packets = both(|block| &block["window"]["rx_packets"]);
    let interrupts = both(|block| &block["interrupts"]);
    let polls = both(|block| &block["polls"]);
    Some(format!(
        "| {name} | `nicpoll ab {compared}` | {} | {packets} | {interrupts} | {polls} |\n",
        pairs.len()
    ))
}

#[test]
fn cases_on_linux_6_1() {
    if !is_asked_for(test_name!()) {
        return;
    }
    let mut table = String::from(
        "| case | command | pairs of blocks | packets/s | interrupts/s | polls/s |\n|---|---|---|---|---|---|\n",
    );
    for case in &CASES {
        let Some(line) = line_of(test_name!(), case) else {
            return;
        };
        print!("{line}");
        table += &line;
    }
    rewrite_between(PAGE, BOUNDS, |_| table.clone());
}

/// Tunes a card in a case, and returns its line of the table.
fn tuned(test: &str, case: &Case) -> Option<String> {
    let command = "tune eth1 --try 'polling 200us,polling 1ms,moderation 0us,moderation 100us' --for 8m --block 0.4s";
    let tune = run(test, case, command)?;
    let candidates = tune["candidates"].as_array().unwrap();
    let said = |value: &Value| value.as_str().map(String::from);
    let of = |tried: &Value| {
        let ratio = &tried["ratio"];
        let ends = [0, 1, 2].map(|at| ratio[at].as_f64());
        let ratio = match ends {
            [Some(ratio), Some(low), Some(high)] => format!("{ratio:.2} [{low:.2}, {high:.2}]"),
            _ => format!("- {}", tried["dropped"].as_str().unwrap_or_default()),
        };
        format!("{} {ratio}", tried["name"].as_str().unwrap())
    };
    let tried: Vec<_> = candidates.iter().skip(1).map(of).collect();
    let choice = said(&tune["choice"]).unwrap_or_else(|| String::from("keep what it has"));
    let because = said(&tune["because"]).unwrap();
    println!("not tried: {}", tune["not_tried"]);
    Some(format!(
        "| {}, {} | {} | {choice}: {because} |\n",
        case.1,
        case.0,
        tried.join("; ")
    ))
}

#[test]
fn tuned_cards_of_linux_6_1() {
    if !is_asked_for(test_name!()) {
        return;
    }
    let mut table = String::from(
        "| card, case | CPU time a byte against what it had | answer |\n|---|---|---|\n",
    );
    let case = |driver: &str| {
        CASES
            .iter()
            .rfind(|case| case.1 == driver && case.4.starts_with("eth1 polling"))
    };
    for driver in ["e1000e", "virtio_net"] {
        let Some(line) = case(driver).and_then(|case| tuned(test_name!(), case)) else {
            return;
        };
        print!("{line}");
        table += &line;
    }
    rewrite_between(PAGE, BOUNDS_OF_TUNE, |_| table.clone());
}
