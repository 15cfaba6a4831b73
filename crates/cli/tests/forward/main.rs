//! `nicpoll forward` between three network namespaces: packets that a router must forward, and those that it must
//! leave to the kernel, on every path.

#[path = "../common/mod.rs"]
mod common;
mod routed;

use crate::common::prelude::*;
use crate::common::running::{ended, thread_of};
use crate::routed::{
    BEHIND, Echo, Lab, PORT, RECEIVER, ROUTER, SENDER, await_icmp, capture, say_hello_by_tcp,
    transport,
};
use nicpoll_sys::schedule;

/// Starts a router on a path; returns its start event.
fn router(lab: &Lab, path: &str) -> (Running, Value) {
    Running::start(&lab.router, &["forward", "em0", "em1", "--path", path])
}

/// Starts a router with a receiver that answers and whose neighbour entry exists.
fn routing(lab: &Lab, path: &str) -> (Running, Echo) {
    let (running, _) = router(lab, path);
    let echo = lab.echo();
    lab.await_answer(RECEIVER[0]);
    (running, echo)
}

/// Makes the kernel look up the receiver's neighbour entry again.
fn forget_receiver(lab: &Lab) {
    let forget = format!("ip neigh del {} dev em1", RECEIVER[0]);
    shell(&lab.router, &forget);
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
            // The kernel finds neighbours.
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
        let end = running.end_closed();
        assert!(passed(&end, "not_ip") > 0, "ARP is the kernel's: {end}");
        let link = shell(&lab.router, "ip link");
        assert!(!link.contains("xdp"), "{link}");
    });
}

#[test]
fn what_takes_more_than_sending_on_is_the_kernels() {
    needs!(Root, Ip, Ethtool);
    with_each_path(|lab, path| {
        let (running, _echo) = routing(lab, path);
        for to in [ROUTER[0], RECEIVER[0]] {
            say_hello_by_tcp(lab, to);
        }
        let expired = await_icmp(&lab.sender, 11);
        lab.send(RECEIVER[0], 1, 64, Some(1));
        assert_eq!(expired.recv_timeout(PATIENCE).unwrap(), ROUTER[0]);
        // The route goes by an IPv6 router then.
        let ipv6_router = RECEIVER[1];
        let way = format!("ip route replace {BEHIND}/32 via inet6 {ipv6_router} dev em1");
        shell(&lab.router, &way);
        for _ in 0..3 {
            lab.await_answer(BEHIND);
        }
        // The route is added while it runs, then its MTU becomes too small.
        let way = format!("ip route replace {BEHIND}/32 via {}", RECEIVER[0]);
        shell(&lab.router, &way);
        lab.await_answer(BEHIND);
        shell(&lab.router, &format!("{way} mtu lock 600"));
        let too_long = await_icmp(&lab.sender, 3);
        lab.send(BEHIND, 1, 1000, None);
        assert_eq!(too_long.recv_timeout(PATIENCE).unwrap(), ROUTER[0]);
        // An unfinished checksum, which no card completes.
        shell(&lab.sender, "ethtool -K em0 tx on");
        lab.await_answer(RECEIVER[0]);
        let end = running.end_closed();
        for reason in ["no_route", "ttl", "too_long", "no_neighbour", "checksum"] {
            assert!(passed(&end, reason) > 0, "{reason}: {end}");
        }
    });
}

#[test]
fn a_neighbour_that_is_gone_is_looked_for_by_the_kernel() {
    needs!(Root, Ip, Ethtool);
    with_each_path(|lab, path| {
        let (mut running, _echo) = routing(lab, path);
        forget_receiver(lab);
        lab.await_answer(RECEIVER[0]);
        lab.send(RECEIVER[0], 20, 64, None);
        running.await_counted("forwarded_packets", 20);
        let end = running.end_closed();
        assert!(passed(&end, "no_neighbour") > 1, "{end}");
    });
}

#[test]
fn no_frame_is_lost_for_a_neighbour_that_appears() {
    needs!(Root, Ip, Ethtool);
    with_each_path(|lab, path| {
        let (running, _echo) = routing(lab, path);
        for _ in 0..5 {
            forget_receiver(lab);
            lab.send(RECEIVER[0], 2_000, 64, None);
        }
        let end = running.interrupt();
        assert!(passed(&end, "no_neighbour") > 1, "{end}");
        for fate in end["account"]["lost"].as_array().unwrap() {
            // A ring may be full at any time.
            let of_load = ["ring_full", "no_memory", "exit_full"];
            let name = fate["name"].as_str().unwrap();
            assert!(of_load.contains(&name) || fate["packets"] == 0, "{end}");
        }
    });
}

/// Returns a payload of two bytes with which a datagram's checksum equals that of its pseudo header.
fn colliding_payload(from: Ipv4Addr, to: Ipv4Addr, ports: [u16; 2]) -> [u8; 2] {
    let udp_bytes = 10;
    let pseudo = folded(sum(&from.octets()) + sum(&to.octets()) + 17 + udp_bytes);
    let header = folded(u64::from(ports[0]) + u64::from(ports[1]) + udp_bytes);
    let word = folded((0xFFFF - folded(2 * pseudo)) + (0xFFFF - header));
    (word as u16).to_be_bytes()
}

#[test]
fn a_finished_checksum_that_looks_like_an_unfinished_one_overtakes_nobody() {
    needs!(Root, Ip, Ethtool);
    with_each_path(|lab, path| {
        let (mut running, _echo) = routing(lab, path);
        let captured = capture(&lab.receiver, 1);
        lab.sender
            .run(|()| {
                let socket = UdpSocket::bind((SENDER[0], PORT)).unwrap();
                let [from, to] = [SENDER[0], RECEIVER[0]].map(|it| it.parse().unwrap());
                let payload = colliding_payload(from, to, [PORT, PORT + 1]);
                socket.send_to(&payload, (to, PORT + 1)).unwrap();
            })
            .unwrap();
        let frames = captured.recv_timeout(PATIENCE).unwrap();
        let (udp, addresses) = (transport(&frames[0]).unwrap(), &frames[0][26..34]);
        let checksum = u64::from(u16::from_be_bytes([udp[6], udp[7]]));
        assert_eq!(checksum, folded(sum(addresses) + 17 + 10));
        running.await_counted("forwarded_packets", 1);
        let end = running.interrupt();
        assert_eq!(passed(&end, "checksum"), 0, "{end}");
    });
}

#[test]
fn a_stale_neighbour_is_asked_for_while_frames_go_to_it() {
    needs!(Root, Ip, Ethtool);
    let lab = Lab::new();
    let (running, _echo) = routing(&lab, "xdp");
    let neighbour = format!("{} dev em1", RECEIVER[0]);
    let change = format!("ip neigh change {neighbour} lladdr 02:00:00:00:00:04 nud stale");
    shell(&lab.router, &change);
    let began = Instant::now();
    while shell(&lab.router, &format!("ip neigh show {neighbour}")).contains("STALE") {
        assert!(began.elapsed() < PATIENCE);
        lab.send(RECEIVER[0], 1, 64, None);
        thread::sleep(Duration::from_millis(50));
    }
    running.interrupt();
}

#[test]
fn longer_frames_are_sent_on_when_an_exit_takes_them() {
    needs!(Root, Ip, Ethtool);
    let lab = Lab::new();
    for host in [&lab.sender, &lab.router] {
        shell(host, "ip link set em0 mtu 3000");
    }
    let (mut running, _echo) = routing(&lab, "user");
    shell(&lab.receiver, "ip link set em0 mtu 3000");
    // The engine's memory for what leaves by it was for shorter ones.
    shell(&lab.router, "ip link set em1 mtu 3000");
    assert_eq!(running.await_link()["what"], "changed");
    let captured = capture(&lab.receiver, 3);
    lab.send(RECEIVER[0], 3, 2500, None);
    for frame in captured.recv_timeout(PATIENCE).unwrap() {
        assert_eq!((frame.len(), frame[22]), (2542, 63));
        assert_eq!(folded(sum(&frame[14..34])), 0xFFFF);
    }
    running.await_counted("forwarded_packets", 3);
    running.end_closed();
    let link = shell(&lab.router, "ip link");
    assert!(!link.contains("npfwd"), "{link}");
}

/// What is done at the router or the receiver, the path to which it matters, and what is told of it.
const CHANGES: [(bool, &str, &str, &str); 5] = [
    (true, "ip link set em1 mtu 1400", "", "MTU 1500 -> 1400"),
    (true, "ip link set em1 mtu 1500", "", "MTU 1400 -> 1500"),
    (true, "ethtool -L em1 rx 2", "", "receive queues 1 -> 2"),
    (
        false,
        "ethtool -K em0 gro off",
        "xdp",
        "takes no frames from XDP programs any more",
    ),
    (
        false,
        "ethtool -K em0 gro on",
        "xdp",
        "takes frames from XDP programs now",
    ),
];

#[test]
fn an_interface_that_changes_or_moves_away_and_back_is_told_of_and_forwarding_goes_on() {
    needs!(Root, Ip, Ethtool);
    with_each_path(|lab, path| {
        let (mut running, _echo) = routing(lab, path);
        let pass = || {
            lab.await_answer(RECEIVER[0]);
            let captured = capture(&lab.receiver, 20);
            lab.send(RECEIVER[0], 20, 64, None);
            assert_eq!(captured.recv_timeout(PATIENCE).unwrap().len(), 20);
        };
        for (at_router, change, of_path, why) in CHANGES {
            let host = if at_router {
                &lab.router
            } else {
                &lab.receiver
            };
            shell(host, change);
            if of_path.is_empty() || of_path == path {
                let event = running.await_link();
                assert_eq!(
                    (&event["what"], &event["why"]),
                    (&"changed".into(), &why.into()),
                    "{path}"
                );
            }
            pass();
        }
        let other = thread_of(&lab.receiver);
        shell(&lab.router, &format!("ip link set em1 netns {other}"));
        assert_eq!(running.await_link()["what"], "gone", "{path}");
        let back = format!("ip link set em1 netns {}", thread_of(&lab.router));
        shell(&lab.receiver, &back);
        lab.address_exit();
        assert_eq!(running.await_link()["what"], "attached", "{path}");
        pass();
        let end = running.end_closed();
        // Only the engine checks the status, that of each queue.
        let counted = (path == "user").then_some([2, 2]);
        assert_eq!(
            end["mtu_changes"].as_u64(),
            counted.map(|[it, _]| it),
            "{end}"
        );
        assert_eq!(
            end["link_loss_events"].as_u64(),
            counted.map(|[_, it]| it),
            "{end}"
        );
    });
}

#[test]
fn an_interface_that_is_removed_is_taken_again_when_it_is_back() {
    needs!(Root, Ip, Ethtool);
    with_each_path(|lab, path| {
        let (mut running, _echo) = routing(lab, path);
        lab.send(RECEIVER[0], 50, 64, None);
        shell(&lab.router, "ip link del em1");
        let gone = running.await_link();
        assert_eq!(
            (&gone["what"], &gone["interface"]),
            (&"gone".into(), &"em1".into())
        );
        lab.connect_receiver();
        assert_eq!(running.await_link()["what"], "attached");
        lab.await_answer(RECEIVER[0]);
        let captured = capture(&lab.receiver, 20);
        lab.send(RECEIVER[0], 20, 64, None);
        assert_eq!(captured.recv_timeout(PATIENCE).unwrap().len(), 20);
        let end = running.end_closed();
        let forwarded = end["account"]["forwarded_packets"].as_u64().unwrap();
        assert!(forwarded >= 70, "{end}");
    });
}

#[test]
fn accounts_close_over_ten_flaps_under_load() {
    needs!(Root, Ip, Ethtool);
    with_each_path(|lab, path| {
        let (running, _echo) = routing(lab, path);
        let flaps = "for i in 1 2 3 4 5 6 7 8 9 10; do ip link set em1 down; sleep 0.03; ip link set em1 up; \
                     sleep 0.03; done";
        thread::scope(|scope| {
            scope.spawn(|| (0..10).for_each(|_| lab.send(RECEIVER[0], 3_000, 64, None)));
            shell(&lab.router, flaps);
        });
        let end = running.interrupt();
        for from in end["interfaces"].as_array().unwrap() {
            assert_eq!(from["residual_packets"], 0, "{path}: {end}");
        }
        assert!(
            end["account"]["forwarded_packets"].as_u64() > Some(0),
            "{path}: {end}"
        );
        let link = shell(&lab.router, "ip link");
        assert!(!link.contains("xdp") && !link.contains("npfwd"), "{link}");
    });
}

#[test]
fn where_the_kernel_describes_no_types_the_engine_forwards() {
    needs!(Root, Ip, Ethtool);
    let nicpoll = env!("CARGO_BIN_EXE_nicpoll");
    let hidden = format!(
        "mount -t tmpfs none /sys/kernel/btf && exec {nicpoll} forward em0 em1 --for 100ms"
    );
    let command = move |_: &mut ()| {
        let mut command = std::process::Command::new("unshare");
        command.args(["--mount", "sh", "-c", &hidden]);
        command.output().unwrap()
    };
    let said = stdout(&Lab::new().router.run(command).unwrap());
    assert!(
        said.contains("path user: without /sys/kernel/btf/vmlinux"),
        "{said}"
    );
}

/// Options of the engine.
const OF_THE_ENGINE: [[&str; 2]; 6] = [
    ["--discipline", "interrupt"],
    ["--hz", "2000"],
    ["--controller", "share"],
    ["--set", "burst_max=1000"],
    ["--storm-threshold", "0"],
    ["--cpu", "0"],
];

#[test]
fn an_option_of_the_engine_takes_the_engine_and_is_refused_where_there_is_none() {
    needs!(Root, Ip, Ethtool, PerNapi);
    let lab = Lab::new();
    let args = ["forward", "em0", "em1"];
    for option in OF_THE_ENGINE {
        let with_xdp = [&args[..], &["--path", "xdp"], &option].concat();
        let refused = ended(&lab.router, &with_xdp);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{option:?}: {said}");
        let named = format!("only the engine has {}", option[0]);
        assert!(
            said.contains(&named) && said.contains("'--path user'"),
            "{said}"
        );
    }
    let (running, start) = Running::start(&lab.router, &[&args[..], &OF_THE_ENGINE[1]].concat());
    assert_eq!(start["path"], "user", "{start}");
    assert_eq!(start["path_reason"], "only the engine has --hz");
    assert_eq!(start["engine"]["hz"], 2000);
    running.interrupt();
    let threaded = [&args[..], &["--kernel-side", "threaded"]].concat();
    let (running, start) = Running::start(&lab.router, &threaded);
    assert_eq!(start["path"], "xdp", "{start}");
    // Without an engine the kernel's threads may use every CPU.
    let thread_cpus = &start["interfaces"][0]["kernel_side"]["thread_cpus"];
    let allowed = schedule::allowed_cpus().unwrap();
    assert_eq!(*thread_cpus, serde_json::json!(allowed), "{start}");
    running.interrupt();
}

#[test]
fn an_engine_on_two_cpus_forwards_both_ways() {
    needs!(Root, Ip, Ethtool);
    let lab = Lab::new();
    let allowed = schedule::allowed_cpus().unwrap();
    let cpus: Vec<u32> = allowed.into_iter().take(2).collect();
    let list = cpus
        .iter()
        .map(u32::to_string)
        .collect::<Vec<_>>()
        .join(",");
    let args = ["forward", "em0", "em1", "--path", "user", "--cpu", &list];
    let (mut running, start) = Running::start(&lab.router, &args);
    assert_eq!(start["engine"]["cpus"], serde_json::json!(cpus));
    let _echo = lab.echo();
    // The first CPU has the queue of one interface, the second CPU that of the other.
    for to in RECEIVER {
        for _ in 0..20 {
            lab.await_answer(to);
        }
    }
    running.await_counted("forwarded_packets", 60);
    let end = running.end_closed();
    for from in end["interfaces"].as_array().unwrap() {
        assert!(from["forwarded_packets"].as_u64().unwrap() >= 30, "{end}");
    }
    let by_cpu = end["polling_by_cpu"].as_array().unwrap();
    let at: Vec<&Value> = by_cpu.iter().map(|of_cpu| &of_cpu["cpu"]).collect();
    assert_eq!(at, cpus, "{end}");
}

#[test]
fn the_kernels_side_is_changed_at_every_interface_on_each_path_and_put_back() {
    needs!(Root, Ip, Ethtool, PerNapi);
    with_each_path(|lab, path| {
        let kernel_side = || {
            shell(
                &lab.router,
                "cat /sys/class/net/em[01]/threaded; for i in em0 em1; do ethtool -k $i | grep ^generic-receive; done",
            )
        };
        let before = kernel_side();
        let args = ["forward", "em0", "em1", "--path", path];
        let options = ["--kernel-side", "threaded", "--kernel-cpu", "0"];
        let (mut running, start) = Running::start(&lab.router, &[&args[..], &options].concat());
        for interface in start["interfaces"].as_array().unwrap() {
            let side = &interface["kernel_side"];
            assert_eq!(side["name"], "threaded", "{start}");
            assert_eq!(side["thread_cpus"], serde_json::json!([0]), "{start}");
        }
        assert!(kernel_side().starts_with("1\n1\n"), "{}", kernel_side());
        let _echo = lab.echo();
        lab.await_answer(RECEIVER[0]);
        lab.send(RECEIVER[0], 20, 64, None);
        running.await_counted("forwarded_packets", 20);
        running.end_closed();
        assert_eq!(kernel_side(), before, "{path}");
    });
}

#[test]
fn a_packet_filter_for_routed_packets_is_not_gone_around_unasked() {
    needs!(Root, Ip, Ethtool, Nft);
    let lab = Lab::new();
    let chain = "{ type filter hook forward priority 0; policy drop; }";
    shell(
        &lab.router,
        &format!("nft 'add table inet f'\nnft 'add chain inet f to_others {chain}'"),
    );
    let mut args = vec!["forward", "em0", "em1", "--for", "100ms"];
    let refused = ended(&lab.router, &args);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    let named = "chain to_others of table inet f (policy drop)";
    assert!(said.contains(named), "{said}");
    args.push("--past-filters");
    let asked = ended(&lab.router, &args);
    assert_eq!(asked.status.code(), Some(0), "{asked:?}");
    let text = stdout(&asked);
    assert!(text.contains(&format!("do not come to {named}")), "{text}");
}

#[test]
fn the_account_closes_under_overload() {
    needs!(Time, Root, Ip, Ethtool);
    with_each_path(|lab, path| {
        let (mut running, _echo) = routing(lab, path);
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
    let end = running.end_closed();
    assert!(passed(&end, "other_exit") > 0, "{end}");
}

#[test]
fn a_router_that_is_killed_leaves_nothing_and_what_cannot_be_is_refused() {
    needs!(Root, Ip, Ethtool);
    let lab = Lab::new();
    let (mut first, _) = router(&lab, "xdp");
    let output = ended(&lab.router, &["forward", "em0", "em1"]);
    assert_has(stderr(&output), "'em0' has an XDP program of another");
    send_signal(&first.child, Signal::KILL);
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
        let said = stderr(&output);
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
        let document = json_of(&json);
        crate::common::schema::assert_described(&document, "forward");
        assert_eq!(document["intervals"].as_array().unwrap().len(), 2);
        let text = String::from_utf8(ended(&lab.router, &options).stdout).unwrap();
        assert_has_all(
            &text,
            "em0, em1: forwarding IPv4 and IPv6 | 0 unaccounted for",
        );
    });
}
