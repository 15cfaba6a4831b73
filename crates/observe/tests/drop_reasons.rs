//! Drop reasons on a real kernel: for each place, what was sent is what arrived and what the reasons say, to the
//! datagram.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::LossPlace;
use nicpoll_observe::{DropCounts, DropGroup, DropReasons, HostAccount, KernelSymbols};
use nicpoll_sys::netns::{NetNamespace, NetnsThread};
use nicpoll_sys::socket;
use nicpoll_testkit::needs;
use rustix::thread::gettid;

const SENDER: &str = "198.18.0.1";
const RECEIVER: &str = "198.18.0.2";
const PORT: u16 = 9000;
const PAYLOAD_BYTES: usize = 100;
/// A datagram with the headers of UDP and IPv4.
const IPV4_BYTES: u64 = PAYLOAD_BYTES as u64 + 28;
/// What is not there after this will not come.
const QUIET: Duration = Duration::from_millis(20);
/// A receiver that has all of it does not wait so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// Packets in a CPU's backlog or a veth's ring at one time: far fewer than either holds.
const BURST: u64 = 50;

/// What a test has in a namespace.
#[derive(Default)]
struct State {
    sockets: Vec<UdpSocket>,
    account: Option<HostAccount>,
}

type Side = NetnsThread<State>;

/// Two namespaces and a veth between them.
struct Pair {
    sender: Side,
    receiver: Side,
    drops: DropReasons,
}

impl Pair {
    fn new() -> Self {
        let [sender, receiver] = [(), ()]
            .map(|()| NetnsThread::enter(NetNamespace::create().unwrap(), State::default).unwrap());
        let tid = |side: &Side| side.run(|_| gettid().as_raw_nonzero().get()).unwrap();
        let add = format!(
            "link add em0 type veth peer name em0 netns {}",
            tid(&receiver)
        );
        run(&sender, &format!("ip {add}"));
        for (side, host) in [(&sender, 1), (&receiver, 2)] {
            let peer = 3 - host;
            run(
                side,
                &format!(
                    "echo 0 > /proc/sys/net/ipv6/conf/em0/accept_dad\n\
                     ip link set lo up\n\
                     ip link set em0 address 02:00:00:00:00:0{host} up\n\
                     ip addr add 198.18.0.{host}/24 dev em0\n\
                     ip addr add 2001:2::{host}/64 dev em0 nodad\n\
                     ip neigh replace 198.18.0.{peer} lladdr 02:00:00:00:00:0{peer} dev em0\n\
                     ip neigh replace 2001:2::{peer} lladdr 02:00:00:00:00:0{peer} dev em0"
                ),
            );
        }
        let inodes = [sender.netns_inode(), receiver.netns_inode()];
        Pair {
            drops: DropReasons::begin(&inodes).unwrap(),
            sender,
            receiver,
        }
    }

    /// A socket that receives what is sent to the port.
    fn listen(&self, receive_buffer_bytes: usize) {
        self.receiver
            .run(move |state| {
                let socket = UdpSocket::bind((RECEIVER, PORT)).unwrap();
                socket::set_receive_buffer(&socket, receive_buffer_bytes).unwrap();
                socket.set_nonblocking(true).unwrap();
                state.sockets.push(socket);
            })
            .unwrap();
    }

    /// Sends datagrams, with a rest after each few so that they cannot be lost on the way for other reasons.
    fn send(&self, from: &'static str, to: &'static str, datagrams: u64) {
        for burst in 0..datagrams.div_ceil(BURST) {
            let left = datagrams - burst * BURST;
            self.send_at_once(from, to, left.min(BURST));
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn send_at_once(&self, from: &'static str, to: &'static str, datagrams: u64) {
        let send = move |_: &mut State| {
            let socket = UdpSocket::bind((from, 0)).unwrap();
            for _ in 0..datagrams {
                // Where the filter or a queue of the sender's own drops it, some kernels say so.
                let _ = socket.send_to(&[0; PAYLOAD_BYTES], (to, PORT));
            }
        };
        self.sender.run(send).unwrap();
    }

    /// Reads what has arrived at the last socket, waiting for as many as are expected and then for more.
    fn received(&self, expected: u64) -> u64 {
        let mut received = 0;
        let began = Instant::now();
        while received < expected && began.elapsed() < PATIENCE {
            received += self.arrived();
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(QUIET);
        received + self.arrived()
    }

    fn arrived(&self) -> u64 {
        let read_all = |state: &mut State| {
            let mut datagram = [0; 2048];
            let mut received = 0;
            while state.sockets[0].recv(&mut datagram).is_ok() {
                received += 1;
            }
            received
        };
        self.receiver.run(read_all).unwrap()
    }

    /// Datagrams that were dropped in a namespace, by the kernel's name of the reason, and how many bytes they had.
    fn dropped_in(&self, side: &Side) -> BTreeMap<String, (u64, u64)> {
        let netns = side.netns_inode() as u32;
        self.dropped(|group| group.netns_inode == netns && group.protocol.is_udp())
    }

    fn dropped(&self, is_meant: impl Fn(&DropGroup) -> bool) -> BTreeMap<String, (u64, u64)> {
        let reasons = self.counts().by_reason(is_meant);
        let named = reasons.iter().map(|(&(reason, location), dropped)| {
            let mut name = self.drops.names().of(reason).into_owned();
            if let Some(location) = location {
                let symbols = KernelSymbols::read();
                name += &format!(" in {}", symbols.function_at(location).unwrap());
            }
            (name, (dropped.packets, dropped.bytes))
        });
        named.collect()
    }

    /// All that was counted. None of these tests may leave anything uncounted in its own namespaces.
    fn counts(&self) -> DropCounts {
        thread::sleep(QUIET);
        let counts = self.drops.read().unwrap();
        assert_eq!(counts.overflow_packets, 0);
        counts
    }

    fn assert_dropped(&self, side: &Side, reason: &str, packets: u64) {
        let expected = (packets, packets * IPV4_BYTES);
        let expected = BTreeMap::from([(String::from(reason), expected)]);
        assert_eq!(self.dropped_in(side), expected);
    }
}

/// Runs lines of a shell in a namespace.
fn run(side: &Side, lines: &str) -> String {
    let script = format!("set -e\n{lines}");
    side.run(move |_| {
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{complaints}");
        String::from_utf8(output.stdout).unwrap()
    })
    .unwrap()
}

/// Rules for a chain at a hook of the filter.
fn filter(side: &Side, chain: &str, rules: &[&str]) {
    let rules: String = rules
        .iter()
        .map(|rule| format!("nft 'add rule inet t c {rule}'\n"))
        .collect();
    run(
        side,
        &format!(
            "nft 'add table inet t; add chain inet t c {{ type filter hook {chain}; }}'\n{rules}"
        ),
    );
}

#[test]
fn a_rule_that_drops_without_a_counter() {
    needs!(Root, Ip, Nft);
    let pair = Pair::new();
    pair.listen(8 << 20);
    let rule = "udp dport 9000 numgen inc mod 100 == 0 drop";
    filter(&pair.receiver, "input priority 0", &[rule]);
    pair.send(SENDER, RECEIVER, 4000);
    assert_eq!(pair.received(3960), 3960);
    pair.assert_dropped(&pair.receiver, "NETFILTER_DROP", 40);
    assert!(pair.dropped_in(&pair.sender).is_empty());
}

#[test]
fn a_chain_whose_policy_is_to_drop() {
    needs!(Root, Ip, Nft);
    let pair = Pair::new();
    pair.listen(8 << 20);
    filter(&pair.receiver, "input priority 0; policy drop", &[]);
    pair.send(SENDER, RECEIVER, 100);
    assert_eq!(pair.received(0), 0);
    pair.assert_dropped(&pair.receiver, "NETFILTER_DROP", 100);
}

#[test]
fn a_rule_that_rejects() {
    needs!(Root, Ip, Nft);
    let pair = Pair::new();
    pair.listen(8 << 20);
    filter(
        &pair.receiver,
        "input priority 0",
        &["udp dport 9000 reject"],
    );
    pair.send(SENDER, RECEIVER, 100);
    assert_eq!(pair.received(0), 0);
    pair.assert_dropped(&pair.receiver, "NETFILTER_DROP", 100);
}

#[test]
fn a_verdict_map() {
    needs!(Root, Ip, Nft);
    let pair = Pair::new();
    pair.listen(8 << 20);
    let rule = "udp dport vmap { 9000 : drop }";
    filter(&pair.receiver, "prerouting priority 0", &[rule]);
    pair.send(SENDER, RECEIVER, 100);
    assert_eq!(pair.received(0), 0);
    pair.assert_dropped(&pair.receiver, "NETFILTER_DROP", 100);
}

#[test]
fn the_senders_own_filter_drops_before_there_is_an_interface() {
    needs!(Root, Ip, Nft);
    let pair = Pair::new();
    pair.listen(8 << 20);
    let rule = "udp dport 9000 numgen inc mod 2 == 0 drop";
    filter(&pair.sender, "output priority 0", &[rule]);
    pair.send(SENDER, RECEIVER, 100);
    assert_eq!(pair.received(50), 50);
    pair.assert_dropped(&pair.sender, "NETFILTER_DROP", 50);
    let counts = pair.counts();
    let udp = |without_interface: bool| {
        let reasons = counts.by_reason(|group| {
            group.protocol.is_udp() && group.ifindex.is_none() == without_interface
        });
        reasons.values().map(|dropped| dropped.packets).sum::<u64>()
    };
    assert_eq!((udp(true), udp(false)), (50, 0));
}

/// Neither gives a reason, though the kernel has one of that name: the function that drops says what it is.
#[test]
fn xdp_programs_generic_and_in_the_driver() {
    needs!(Root, Ip);
    for (mode, function) in [
        ("xdpgeneric", "do_xdp_generic"),
        ("xdpdrv", "veth_xdp_rcv_skb"),
    ] {
        let pair = Pair::new();
        pair.listen(8 << 20);
        let object = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/xdp_drop_eighth.bpf.o");
        let attach = format!("ip link set dev em0 {mode} obj {object} sec xdp");
        run(&pair.receiver, &attach);
        pair.send(SENDER, RECEIVER, 800);
        let received = pair.received(700);
        // The program counts neighbour discovery too.
        assert!((699..=701).contains(&received), "{received}");
        let reason = format!("NOT_SPECIFIED in {function}");
        pair.assert_dropped(&pair.receiver, &reason, 800 - received);
    }
}

#[test]
fn a_source_that_the_reverse_path_filter_refuses() {
    needs!(Root, Ip);
    let pair = Pair::new();
    pair.listen(8 << 20);
    run(&pair.sender, "ip addr add 203.0.113.1/32 dev em0");
    run(
        &pair.receiver,
        "echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter",
    );
    pair.send("203.0.113.1", RECEIVER, 100);
    assert_eq!(pair.received(0), 0);
    pair.assert_dropped(&pair.receiver, "IP_RPFILTER", 100);
}

#[test]
fn a_full_socket_buffer() {
    needs!(Root, Ip);
    let pair = Pair::new();
    pair.listen(4096);
    pair.send(SENDER, RECEIVER, 200);
    let received = pair.received(0);
    assert!(received > 0 && received < 200, "{received}");
    pair.assert_dropped(&pair.receiver, "SOCKET_RCVBUFF", 200 - received);
}

#[test]
fn a_port_without_a_socket() {
    needs!(Root, Ip);
    let pair = Pair::new();
    pair.send(SENDER, RECEIVER, 100);
    pair.assert_dropped(&pair.receiver, "NO_SOCKET", 100);
    pair.send("2001:2::1", "2001:2::2", 50);
    let ipv6_bytes = 50 * (IPV4_BYTES + 20);
    let expected = (150, 100 * IPV4_BYTES + ipv6_bytes);
    assert_eq!(pair.dropped_in(&pair.receiver)["NO_SOCKET"], expected);
}

/// A tenth of a second's worth of queue at the most: what is in it arrives while the test waits.
const SHAPER: &str = "tc qdisc add dev em0 root tbf rate 1mbit burst 8kb limit 4000";

#[test]
fn a_queueing_discipline_that_drops() {
    needs!(Root, Ip, Tc);
    let pair = Pair::new();
    pair.listen(8 << 20);
    run(&pair.sender, SHAPER);
    pair.send_at_once(SENDER, RECEIVER, 400);
    thread::sleep(Duration::from_millis(200));
    let received = pair.received(1);
    assert!(received > 20 && received < 300, "{received}");
    pair.assert_dropped(&pair.sender, "QDISC_DROP", 400 - received);
}

/// The qdisc's own count says how many batches it dropped. The loss is in datagrams.
#[test]
fn a_batch_is_dropped_as_the_datagrams_that_it_holds() {
    const IN_A_BATCH: u64 = 8;
    needs!(Root, Ip, Tc);
    let pair = Pair::new();
    pair.listen(8 << 20);
    run(&pair.sender, SHAPER);
    let batches = 50;
    let send = move |_: &mut State| {
        let socket = UdpSocket::bind((SENDER, 0)).unwrap();
        socket::set_segment(&socket, PAYLOAD_BYTES as u16).unwrap();
        for _ in 0..batches {
            let batch = [0; PAYLOAD_BYTES * IN_A_BATCH as usize];
            let _ = socket.send_to(&batch, (RECEIVER, PORT));
        }
    };
    pair.sender.run(send).unwrap();
    thread::sleep(Duration::from_millis(200));
    let received = pair.received(1);
    let lost = batches * IN_A_BATCH - received;
    assert!(lost > 0 && lost.is_multiple_of(IN_A_BATCH), "{received}");
    let dropped = pair.dropped_in(&pair.sender);
    assert_eq!(dropped["QDISC_DROP"].0, lost, "{dropped:?}");
    let counted = run(&pair.sender, "tc -s qdisc show dev em0");
    let in_batches = format!("dropped {}", lost / IN_A_BATCH);
    assert!(counted.contains(&in_batches), "{counted}");
}

/// veth frees what its ring has no room for without a reason, in the receiver's name; the function says what it is.
/// `tx_dropped` of the sending end counts the same.
#[test]
fn a_full_ring_of_a_veth() {
    needs!(Root, Ip, Ethtool);
    let pair = Pair::new();
    pair.listen(8 << 20);
    // The ring is emptied once in 200 ms, and holds 256.
    let defer = "/sys/class/net/em0/napi_defer_hard_irqs";
    let timeout = "/sys/class/net/em0/gro_flush_timeout";
    let lines = format!("ethtool -K em0 gro on\necho 1000 > {defer}\necho 200000000 > {timeout}");
    run(&pair.receiver, &lines);
    run(&pair.sender, "ethtool -K em0 tso off");
    let tx_dropped = || {
        let file = "/sys/class/net/em0/statistics/tx_dropped";
        let text = run(&pair.sender, &format!("cat {file}"));
        text.trim().parse::<u64>().unwrap()
    };
    let before = tx_dropped();
    pair.send_at_once(SENDER, RECEIVER, 1000);
    thread::sleep(Duration::from_millis(500));
    let received = pair.received(1);
    assert!((200..900).contains(&received), "{received}");
    let reason = "NOT_SPECIFIED in veth_xmit";
    // Some of the kernel's own packets may have found the ring full too.
    let (dropped, _) = pair.dropped(|_| true)[reason];
    assert_eq!(tx_dropped() - before, dropped);
    pair.assert_dropped(&pair.receiver, reason, 1000 - received);
}

#[test]
fn namespaces_that_nobody_watches_are_not_counted() {
    needs!(Root, Ip);
    let pair = Pair::new();
    let only_sender = DropReasons::begin(&[pair.sender.netns_inode()]).unwrap();
    pair.send(SENDER, RECEIVER, 100);
    pair.assert_dropped(&pair.receiver, "NO_SOCKET", 100);
    assert!(
        only_sender
            .read()
            .unwrap()
            .by_reason(|group| group.protocol.is_udp())
            .is_empty()
    );
}

/// A counter before the last condition counts what passes it, too.
#[test]
fn the_account_of_a_host_names_losses_that_no_counter_has() {
    needs!(Root, Ip, Nft);
    let cases = [
        ("udp dport 9000 numgen inc mod 10 == 0 drop", 100),
        ("counter udp dport 9000 numgen inc mod 10 == 0 drop", 100),
        ("udp dport 9000 numgen inc mod 10 == 0 counter drop", 100),
        ("udp dport 9000 numgen inc mod 10 == 0 reject", 100),
        ("udp dport 9000 counter accept", 0),
    ];
    for (rule, dropped) in cases {
        let pair = Pair::new();
        pair.listen(8 << 20);
        filter(&pair.receiver, "input priority 0", &[rule]);
        let begin = |state: &mut State| state.account = HostAccount::begin().ok();
        pair.receiver.run(begin).unwrap();
        pair.send(SENDER, RECEIVER, 1000);
        assert_eq!(pair.received(1000 - dropped), 1000 - dropped, "{rule}");
        let end = |state: &mut State| state.account.take().unwrap().end().unwrap();
        let drops = pair.receiver.run(end).unwrap().dropped_packets;
        let mut lost = drops
            .0
            .iter()
            .filter(|(_, packets)| packets.unwrap_or(0) > 0);
        if dropped > 0 {
            assert_eq!(
                lost.next(),
                Some((&LossPlace::Nftables, &Some(dropped))),
                "{rule}"
            );
        }
        assert_eq!(lost.next(), None, "{rule}");
    }
}
