//! `nicpoll forward` in the middle of three network namespaces: what a router must do with a packet, and what it must
//! leave to the kernel, on every path that packets can take.

mod described;
mod routed;
mod running;

use std::thread;
use std::time::{Duration, Instant};

use nicpoll_testkit::{needs, shell};
use rustix::process::Signal;
use serde_json::Value;

use routed::{BEHIND, Lab, RECEIVER, ROUTER, await_icmp, capture, say_hello_by_tcp, transport};
use running::{PATIENCE, Running, ended, kill};

/// A router on a path, and what it says of its start.
fn router(lab: &Lab, path: &str) -> (Running, Value) {
    Running::start(&lab.router, &["forward", "em0", "em1", "--path", path])
}

fn passed(end: &Value, reason: &str) -> u64 {
    let fates = end["account"]["passed"].as_array().unwrap();
    let fate = fates.iter().find(|fate| fate["name"] == reason).unwrap();
    fate["packets"].as_u64().unwrap()
}

fn with_each_path(test: impl Fn(&Lab, &str)) {
    for path in ["xdp", "user"] {
        test(&Lab::new(), path);
    }
}

fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2);
    words
        .map(|word| u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0)))
        .sum()
}

fn folded(mut sum: u64) -> u64 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum
}

#[test]
fn packets_arrive_one_hop_on_with_the_right_addresses_and_checksums() {
    needs!(Root, Ip, Ethtool);
    with_each_path(|lab, path| {
        let (mut running, start) = router(lab, path);
        assert_eq!(start["path"], path);
        let _echo = lab.echo();
        for to in RECEIVER {
            // Neighbours are the kernel's to find.
            lab.await_answer(to);
            let captured = capture(&lab.receiver, 20);
            lab.send(to, 20, 64, None);
            for frame in captured.recv_timeout(PATIENCE).unwrap() {
                assert_eq!(frame[..12], [2, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0, 3]);
                let udp = transport(&frame).unwrap();
                let pseudo = sum(&frame[if frame[12] == 8 { 26..34 } else { 22..54 }]);
                assert_eq!(folded(pseudo + 17 + sum(udp) + udp.len() as u64), 0xFFFF);
                if frame[12] == 8 {
                    assert_eq!(frame[22], 63);
                    assert_eq!(folded(sum(&frame[14..34])), 0xFFFF);
                } else {
                    assert_eq!(frame[21], 63);
                }
            }
        }
        running.await_counted("forwarded_packets", 40);
        let end = running.interrupt();
        assert_eq!(end["account"]["residual_packets"], 0, "{end}");
        assert!(passed(&end, "not_ip") > 0, "ARP is the kernel's: {end}");
        let link = shell(&lab.router, "ip link");
        assert!(!link.contains("xdp"), "{link}");
    });
}

#[test]
fn what_takes_more_than_sending_on_is_the_kernels() {
    needs!(Root, Ip, Ethtool);
    with_each_path(|lab, path| {
        let (running, _) = router(lab, path);
        let _echo = lab.echo();
        lab.await_answer(RECEIVER[0]);
        for to in [ROUTER[0], RECEIVER[0]] {
            say_hello_by_tcp(lab, to);
        }
        let expired = await_icmp(&lab.sender, 11);
        lab.send(RECEIVER[0], 1, 64, Some(1));
        assert_eq!(expired.recv_timeout(PATIENCE).unwrap(), ROUTER[0]);
        // The way there is learnt while it runs, then it becomes too narrow.
        let way = format!("ip route replace {BEHIND}/32 via {}", RECEIVER[0]);
        shell(&lab.router, &way);
        lab.await_answer(BEHIND);
        shell(&lab.router, &format!("{way} mtu lock 600"));
        let too_long = await_icmp(&lab.sender, 3);
        lab.send(BEHIND, 1, 1000, None);
        assert_eq!(too_long.recv_timeout(PATIENCE).unwrap(), ROUTER[0]);
        // A checksum that no card is there to finish.
        shell(&lab.sender, "ethtool -K em0 tx on");
        lab.await_answer(RECEIVER[0]);
        let end = running.interrupt();
        assert_eq!(end["account"]["residual_packets"], 0, "{end}");
        for reason in ["no_route", "ttl", "too_long", "no_neighbour", "checksum"] {
            assert!(passed(&end, reason) > 0, "{reason}: {end}");
        }
    });
}

#[test]
fn a_neighbour_that_is_gone_is_looked_for_by_the_kernel() {
    needs!(Root, Ip, Ethtool);
    with_each_path(|lab, path| {
        let (mut running, _) = router(lab, path);
        let _echo = lab.echo();
        lab.await_answer(RECEIVER[0]);
        let forget = format!("ip neigh del {} dev em1", RECEIVER[0]);
        shell(&lab.router, &forget);
        // The second question goes as the datagrams will: the table in user space may be some milliseconds behind the
        // kernel's, and loses it until then.
        lab.await_answer(RECEIVER[0]);
        lab.await_answer(RECEIVER[0]);
        lab.send(RECEIVER[0], 20, 64, None);
        running.await_counted("forwarded_packets", 20);
        let end = running.interrupt();
        assert!(passed(&end, "no_neighbour") > 1, "{end}");
        assert_eq!(end["account"]["residual_packets"], 0, "{end}");
    });
}

#[test]
fn the_account_closes_under_overload() {
    needs!(Root, Ip, Ethtool);
    with_each_path(|lab, path| {
        let (mut running, _) = router(lab, path);
        let _echo = lab.echo();
        lab.await_answer(RECEIVER[0]);
        lab.send(RECEIVER[0], 50_000, 18, None);
        running.await_counted("forwarded_packets", 1_000);
        let end = running.interrupt();
        let account = &end["account"];
        assert!(
            account["received_packets"].as_u64().unwrap() > 1_000,
            "{end}"
        );
        assert_eq!(account["residual_packets"], 0, "{end}");
        let interfaces = end["interfaces"].as_array().unwrap();
        assert!(
            interfaces.iter().all(|from| from["residual_packets"] == 0),
            "{end}"
        );
    });
}

#[test]
fn a_veth_without_a_napi_at_its_other_end_is_left_to_the_kernel_and_named() {
    needs!(Root, Ip, Ethtool);
    let lab = Lab::new();
    shell(&lab.receiver, "ethtool -K em0 gro off");
    let (running, start) = router(&lab, "xdp");
    assert_eq!(start["interfaces"][1]["takes_redirected"], false, "{start}");
    let notes = start["notes"].to_string();
    assert!(notes.contains("ethtool -K PEER gro on"), "{notes}");
    let _echo = lab.echo();
    // The first one finds the neighbour.
    for _ in 0..2 {
        lab.await_answer(RECEIVER[0]);
    }
    let end = running.interrupt();
    assert!(passed(&end, "other_exit") > 0, "{end}");
    assert_eq!(end["account"]["residual_packets"], 0, "{end}");
}

#[test]
fn a_router_that_is_killed_leaves_nothing_and_what_cannot_be_is_refused() {
    needs!(Root, Ip, Ethtool);
    let lab = Lab::new();
    let (mut first, _) = router(&lab, "xdp");
    let output = ended(&lab.router, &["forward", "em0", "em1"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("'em0' has an XDP program of another"),
        "{said}"
    );
    kill(&first.child, Signal::KILL);
    first.child.wait().unwrap();
    let began = Instant::now();
    while shell(&lab.router, "ip link").contains("xdp") {
        assert!(began.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(5));
    }
    let off = "echo 0 > /proc/sys/net/ipv4/ip_forward\n\
               echo 0 > /proc/sys/net/ipv6/conf/all/forwarding";
    for (args, code, reason) in [
        (&["forward", "em0"][..], 2, "2 values"),
        (&["forward", "em0", "em9"], 1, "there is no interface 'em9'"),
        (&["forward", "em0", "em0"], 2, "'em0' is named twice"),
        (&["forward", "em0", "lo"], 1, "'lo' is no Ethernet"),
        (
            &["forward", "em0", "em1"],
            1,
            "'sysctl net.ipv4.ip_forward=1'",
        ),
    ] {
        if reason.contains("sysctl") {
            shell(&lab.router, off);
        }
        let output = ended(&lab.router, args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(reason), "{args:?}: {said}");
    }
    let link = shell(&lab.router, "ip link");
    assert!(!link.contains("xdp"), "{link}");
}

#[test]
fn the_document_is_as_its_schema_says_and_the_text_closes_the_account() {
    needs!(Root, Ip, Ethtool);
    with_each_path(|lab, path| {
        let mut options = vec!["forward", "em0", "em1", "--path", path];
        options.extend(["--for", "200ms", "--interval", "100ms"]);
        let json = ended(&lab.router, &[&options[..], &["--json"]].concat());
        let document: Value = serde_json::from_slice(&json.stdout).unwrap();
        described::assert_described(&document, "forward");
        assert_eq!(document["intervals"].as_array().unwrap().len(), 2);
        let text = String::from_utf8(ended(&lab.router, &options).stdout).unwrap();
        for part in ["em0, em1: forwarding IPv4 and IPv6", "0 unaccounted for"] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
    });
}
