//! The tools' report of losses without a counter, and of duplicates, to the datagram.

use crate::common::prelude::*;
use crate::{Receiver, count};

const SENT: u64 = 2000;
/// Time after which everything is counted.
const QUIET: Duration = Duration::from_millis(100);
/// The counter does not count the verdict: a condition is between them.
const RULE: &str = "counter udp dport 9000 numgen inc mod 100 == 0 drop";

/// Makes a chain at a side with these rules, one in each line.
fn filter(veth: &Veth, side: Side, family: &str, hook: &str, rule: &str) {
    let script = format!(
        "table {family} t {{ chain c {{ type filter hook {hook} priority 0; {rule}; }}; }}"
    );
    assert_code(&run_in(veth.inside(side), kept("nft", [script])), 0);
}

/// Sends numbered datagrams to a netreceive, and returns its standard output and standard error.
fn received(veth: &Veth, options: &[&str]) -> (String, String) {
    let receiver = Receiver::start(veth.inside(Side::Receiver), options);
    let send = |_: &mut ()| {
        let socket = UdpSocket::bind(("198.18.0.1", 0)).unwrap();
        for number in 0..SENT as u32 {
            let mut payload = [0; 64];
            payload[..4].copy_from_slice(&number.to_be_bytes());
            socket.send_to(&payload, ("198.18.0.2", 9000)).unwrap();
            if number % 50 == 49 {
                thread::sleep(Duration::from_millis(2));
            }
        }
    };
    veth.inside(Side::Sender).run(send).unwrap();
    thread::sleep(QUIET);
    receiver.end()
}

#[test]
fn netreceive_names_what_a_rule_without_a_counter_drops() {
    needs!(Root, Nft);
    let (_alone, veth) = (alone(), Veth::build().unwrap());
    filter(&veth, Side::Receiver, "inet", "input", RULE);
    let (_, said) = received(&veth, &[]);
    let lost = SENT / 100;
    let left = SENT - lost;
    assert_has(
        &said,
        format!("received: {left} pkts, {} bytes\n", left * 64),
    );
    assert_has(&said, format!(", nftables {lost} (no counter), "));
    let reason = "NETFILTER_DROP: A rule or a chain's policy of nftables";
    assert_has(&said, format!("\n  nftables: {lost} UDP, {reason}"));
}

#[test]
fn netreceive_tells_duplicates_from_datagrams() {
    needs!(Root, Nft);
    let (_alone, veth) = (alone(), Veth::build().unwrap());
    let twice = "udp dport 9000 numgen inc mod 10 == 0 dup to em0";
    filter(&veth, Side::Sender, "netdev", "egress device em0", twice);
    filter(&veth, Side::Receiver, "inet", "input", RULE);
    let (document, _) = received(&veth, &["--json"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    let figure = |name: &str| count(&document, &format!("/{name}"));
    let [uncounted] = &document["host"]["uncounted"].as_array().unwrap()[..] else {
        panic!("{document}");
    };
    assert_eq!(uncounted["place"], "nftables");
    let lost = uncounted["packets"].as_u64().unwrap();
    // Retransmissions pass the sender's rule again.
    let arrived = figure("received_packets") + lost;
    assert!(arrived > SENT * 11 / 10, "{document}");
    assert_eq!(lost, arrived.div_ceil(100), "{document}");
    let different = figure("received_packets") - figure("duplicate_packets");
    assert!((SENT - lost..=SENT).contains(&different), "{document}");
}

#[test]
fn iperf_names_them_on_standard_error() {
    needs!(Root, Nft);
    let (_alone, veth) = (alone(), Veth::build().unwrap());
    let rule = "udp dport 5001 numgen inc mod 100 == 0 drop";
    filter(&veth, Side::Receiver, "inet", "input", rule);
    let server = nicpoll(words("iperf -s -u -P 1"));
    let mut server = spawn_in(veth.inside(Side::Receiver), server);
    let mut stdout = BufReader::new(server.stdout.take().unwrap());
    let mut text = read_until_it_listens(&mut stdout);
    let client = nicpoll(words("iperf -u -c 198.18.0.2 -b 1000pps -l 64 -t 0.5"));
    let client = run_in(veth.inside(Side::Sender), client);
    assert!(client.status.success(), "{client:?}");
    stdout.read_to_string(&mut text).unwrap();
    let said = std::io::read_to_string(server.stderr.take().unwrap()).unwrap();
    assert!(server.wait().unwrap().success(), "{said}");
    let dropped = said.split_once("dropped by this host: nftables ");
    let (_, dropped) = dropped.unwrap_or_else(|| panic!("{said}\n{text}"));
    let (dropped, rest) = dropped.split_once(' ').unwrap();
    assert!(rest.starts_with("(no counter)\n  nftables: "), "{said}");
    // One in a hundred of some 500, and of the FINs.
    assert!((5..=6).contains(&dropped.parse::<u64>().unwrap()), "{said}");
    // The sender has lost nothing itself.
    assert!(!stderr(&client).contains("dropped by"), "{client:?}");
}
