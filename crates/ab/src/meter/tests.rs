//! Delays on a real kernel: the wait of a slow reader is measured, and a program that does not read has no delay.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::Duration;

use nicpoll_switch::Control;
use nicpoll_sys::netns::{NetNamespace, NetnsThread};
use nicpoll_testkit::needs;
use rustix::thread::gettid;

use super::*;

type Side = NetnsThread<()>;

const PORT: u16 = 9000;
/// Wait of a reader before it reads, and the lowest start of its bucket.
const WAIT: Duration = Duration::from_millis(60);
const WAITED_NS: f64 = 56e6;
/// Far fewer datagrams than a socket holds.
const DATAGRAMS: u64 = 20;

fn sh(side: &Side, lines: &str) {
    let script = format!("set -e\n{lines}");
    let run = move |(): &mut ()| Command::new("sh").args(["-c", &script]).status().unwrap();
    assert!(side.run(run).unwrap().success());
}

/// Two namespaces. Packets that the near one receives go through its NAPI instance and are followed.
struct Pair {
    near: Side,
    far: Side,
    delays: DelayMeters,
}

impl Pair {
    fn new() -> Self {
        let [near, far] =
            [(), ()].map(|()| NetnsThread::enter(NetNamespace::create().unwrap(), || ()).unwrap());
        let far_tid = far.run(|()| gettid().as_raw_nonzero().get()).unwrap();
        sh(
            &near,
            &format!("ip link add em0 type veth peer name em0 netns {far_tid}"),
        );
        for (side, number) in [(&near, 2), (&far, 1)] {
            let addresses = format!(
                "ip addr add 198.18.0.{number}/24 dev em0\nip addr add 2001:2::{number}/64 dev em0 nodad"
            );
            sh(
                side,
                &format!("ip link set lo up\nip link set em0 up\n{addresses}"),
            );
        }
        sh(&far, "ethtool -K em0 tso off");
        sh(&near, "ethtool -K em0 gro on");
        let found = near.run(|()| {
            let mut control = Control::new();
            let links = control.links().unwrap();
            let em0 = links.iter().find(|link| link.interface.name == "em0");
            instances(&mut control, &[em0.unwrap().interface.ifindex])
        });
        // Every packet is followed.
        let found = found.unwrap();
        let begin = move |(): &mut ()| DelayMeters::begin(&found, 0.0, None);
        let (delays, unseen) = near.run(begin).unwrap();
        assert_eq!(unseen.len(), 1, "{unseen:?}");
        assert!(unseen[0].why.contains("em0 has no time stamps"));
        Pair { near, far, delays }
    }

    fn counted(&self, kind: AbDelayKind) -> u64 {
        self.delays.read().unwrap()[&kind].count()
    }

    /// Returns the delays of a kind that `work` causes.
    fn of(&self, kind: AbDelayKind, work: impl FnOnce()) -> Histogram {
        let before = self.delays.read().unwrap();
        work();
        self.delays.read().unwrap()[&kind].since(&before[&kind])
    }
}

fn datagrams(from: &Side, to: &'static str, reader: &Side) {
    let bind = move |(): &mut ()| UdpSocket::bind((to, PORT)).unwrap();
    let socket = reader.run(bind).unwrap();
    let send = move |(): &mut ()| {
        let any = if to.contains(':') { "::" } else { "0.0.0.0" };
        let sender = UdpSocket::bind((any, 0)).unwrap();
        for _ in 0..DATAGRAMS {
            sender.send_to(&[0; 100], (to, PORT)).unwrap();
        }
    };
    from.run(send).unwrap();
    thread::sleep(WAIT);
    for _ in 0..DATAGRAMS {
        socket.recv(&mut [0; 200]).unwrap();
    }
}

/// A connection, from the far end to the near one.
fn connection(pair: &Pair, to: &'static str) -> (TcpStream, TcpStream) {
    let listen = move |(): &mut ()| TcpListener::bind((to, PORT)).unwrap();
    let listener = pair.near.run(listen).unwrap();
    let connect = move |(): &mut ()| TcpStream::connect((to, PORT)).unwrap();
    let client = pair.far.run(connect).unwrap();
    (client, listener.accept().unwrap().0)
}

#[test]
fn a_datagram_waits_until_it_is_read() {
    needs!(Root, Ip, Ethtool);
    let pair = Pair::new();
    for to in ["198.18.0.2", "2001:2::2"] {
        let seen = pair.of(AbDelayKind::UdpStackToRead, || {
            datagrams(&pair.far, to, &pair.near);
        });
        assert_eq!(seen.count(), DATAGRAMS, "{to}");
        assert!(seen.quantile_ns(0.01).unwrap() > WAITED_NS, "{to}");
    }
    // Loopback packets may reuse the memory of followed ones.
    let seen = pair.of(AbDelayKind::UdpStackToRead, || {
        datagrams(&pair.near, "127.0.0.1", &pair.near);
    });
    assert_eq!(seen.count(), 0);
}

#[test]
fn a_segment_waits_until_its_last_byte_is_read() {
    needs!(Root, Ip, Ethtool);
    let pair = Pair::new();
    for to in ["198.18.0.2", "2001:2::2"] {
        let (mut client, mut server) = connection(&pair, to);
        let known = pair.counted(AbDelayKind::SmoothedRoundTrip);
        client.set_nodelay(true).unwrap();
        let seen = pair.of(AbDelayKind::TcpStackToRead, || {
            for _ in 0..3 {
                // The kernel joins the segments, and follows the first.
                client.write_all(&[0; 700]).unwrap();
                client.write_all(&[0; 700]).unwrap();
                thread::sleep(WAIT);
                server.read_exact(&mut [0; 500]).unwrap();
                let so_far = pair.counted(AbDelayKind::TcpStackToRead);
                server.read_exact(&mut [0; 900]).unwrap();
                assert!(pair.counted(AbDelayKind::TcpStackToRead) > so_far);
            }
        });
        assert_eq!(seen.count(), 3, "{to}");
        assert!(seen.quantile_ns(0.01).unwrap() > WAITED_NS, "{to}");
        // The near end has sent nothing yet: it knows only the handshake's round trip.
        let sent_nothing = pair.counted(AbDelayKind::SmoothedRoundTrip);
        assert_eq!(sent_nothing, known);
        let seen = pair.of(AbDelayKind::SmoothedRoundTrip, || {
            server.write_all(&[0; 700]).unwrap();
            client.read_exact(&mut [0; 700]).unwrap();
            client.write_all(&[0; 1]).unwrap();
            server.read_exact(&mut [0; 1]).unwrap();
        });
        assert!(seen.count() > 0, "{to}");
    }
}

#[test]
fn threads_of_other_programs_are_not_timed() {
    needs!(Root);
    let mut waits = RunQueue::begin(0, true).unwrap();
    let sleeps = || (0..5).for_each(|_| thread::sleep(Duration::from_millis(1)));
    sleeps();
    assert_eq!(waits.read().unwrap().count(), 0);
    waits.watch(std::iter::once(std::process::id())).unwrap();
    sleeps();
    assert!(waits.read().unwrap().count() >= 5);
    waits.watch(std::iter::empty()).unwrap();
    let seen = waits.read().unwrap();
    sleeps();
    assert_eq!(waits.read().unwrap().since(&seen).count(), 0);
}
