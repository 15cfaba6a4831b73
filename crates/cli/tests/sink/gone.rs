//! An interface that is removed, comes back, is renamed, changes or leaves its namespace under a running sink.

use super::{at_receiver, shell_at_receiver, sink};
use crate::common::prelude::*;
use crate::common::running::thread_of;

const MAKE: &str =
    "ip link add x0 type veth peer name x1 && ip link set x0 up && ip link set x1 up";

/// Sends exactly this many frames from the other end of `x0`, in flows enough for two queues.
fn blast(veth: &Veth, frames: u32, bytes: &str) {
    let count = frames.to_string();
    let args = [
        "blast",
        "x1",
        "--to",
        "198.18.5.2:9000",
        "--from",
        "198.18.5.1",
        "--mac",
        "02:00:00:00:05:02",
        "--count",
        &count,
        "--rate",
        "2k",
        "--path",
        "af-packet",
        "--flows",
        "20",
        "--size",
        bytes,
    ];
    let output = at_receiver(veth, &args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

fn lost_polls(of: &Value) -> u64 {
    let polling = of["polling"].as_array().unwrap();
    let knob = polling.iter().find(|knob| knob["name"] == "lost_polls");
    knob.unwrap()["value"].as_u64().unwrap()
}

#[test]
fn a_sink_waits_for_its_interface_and_takes_it_again() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    for device in ["af-xdp", "af-packet"] {
        shell_at_receiver(&veth, MAKE);
        let (mut running, _) = sink(&veth, "x0", "polling", &["--device", device]);
        blast(&veth, 40, "64");
        running.await_counted("received_packets", 40);
        shell_at_receiver(&veth, "ip link del x0");
        let gone = running.await_link();
        assert_eq!(
            (&gone["what"], &gone["interface"]),
            (&"gone".into(), &"x0".into())
        );
        assert!(gone["ifindex"].is_null(), "{gone}");
        // An interval that begins afterwards polls nothing, so nothing is lost.
        running.await_intervals(1);
        let waiting: Vec<Value> = (0..3).map(|_| running.await_interval()).collect();
        assert!(
            waiting
                .iter()
                .all(|it| lost_polls(it) == 0 && it["polls"] == 0),
            "{waiting:?}"
        );
        shell_at_receiver(&veth, MAKE);
        let back = running.await_link();
        assert_eq!(back["what"], "attached", "{back}");
        assert!(back["ifindex"].is_u64(), "{back}");
        blast(&veth, 30, "64");
        running.await_counted("received_packets", 30);
        // Renamed, it is the same interface; both names reach its knobs.
        shell_at_receiver(
            &veth,
            "ip link set x0 down && ip link set x0 name y0 && ip link set y0 up",
        );
        for name in ["x0", "y0"] {
            let output = at_receiver(
                &veth,
                &["sysctl", "-n", "--engine", name, "hz", "user_frac"],
            );
            assert_eq!(stdout(&output), "1000\n50\n", "{}", stderr(&output));
        }
        blast(&veth, 20, "64");
        running.await_counted("received_packets", 20);
        let end = running.end_closed();
        assert_eq!(end["totals"]["received_packets"], 90, "{end}");
        shell_at_receiver(&veth, "ip link del y0");
    }
}

#[test]
fn a_sink_ends_with_its_own_code_when_it_is_not_to_wait() {
    needs!(Root, Ip);
    let veth = Veth::build().unwrap();
    shell_at_receiver(&veth, MAKE);
    let (mut running, _) = sink(&veth, "x0", "polling", &["--gone", "exit"]);
    blast(&veth, 10, "64");
    running.await_counted("received_packets", 10);
    shell_at_receiver(&veth, "ip link del x0");
    assert_eq!(running.await_link()["what"], "gone");
    assert_eq!(running.child.wait().unwrap().code(), Some(6));
}

/// What is done to `x0` or its other end, what is told of it, and the length of frames that come afterwards.
const CHANGES: [(&str, &[[&str; 2]], &str); 5] = [
    (
        "ethtool -L x0 rx 2; ethtool -L x1 tx 2",
        &[["changed", "receive queues 1 -> 2"]],
        "64",
    ),
    (
        "ip link set x1 mtu 3000; ip link set x0 mtu 3000",
        &[["changed", "MTU 1500 -> 3000"]],
        "2500",
    ),
    (
        "ip link set x0 mtu 1400",
        &[["changed", "MTU 3000 -> 1400"]],
        "64",
    ),
    // No feature matters to receiving.
    (
        "ethtool -K x0 gro on; ethtool -K x1 tx off gro on",
        &[],
        "64",
    ),
    (
        "ip link set x0 netns $SENDER; nsenter -t $SENDER -n ip link set x0 netns $RECEIVER; ip link set x0 up",
        &[["gone", ""], ["attached", ""]],
        "64",
    ),
];

#[test]
fn a_sink_goes_on_at_an_interface_that_changes_or_moves_away_and_back() {
    needs!(Root, Ip, Ethtool);
    let veth = Veth::build().unwrap();
    let [sender, receiver] =
        [Side::Sender, Side::Receiver].map(|side| thread_of(veth.inside(side)));
    for device in ["af-xdp", "af-packet"] {
        shell_at_receiver(&veth, MAKE);
        let (mut running, _) = sink(&veth, "x0", "polling", &["--device", device]);
        let mut told = Vec::new();
        for (change, events, bytes) in CHANGES {
            shell_at_receiver(
                &veth,
                &format!("SENDER={sender}; RECEIVER={receiver}; {change}"),
            );
            for [what, why] in events {
                let event = running.await_link();
                let of_event = [&event["what"], &event["why"]].map(|it| it.as_str().unwrap_or(""));
                assert_eq!(of_event, [*what, *why], "{device}, {change}: {event}");
                told.push(if why.is_empty() { *what } else { *why });
            }
            blast(&veth, 60, bytes);
            running.await_counted("received_packets", 60);
        }
        let mut said = running.child.stderr.take().unwrap();
        let end = running.end_closed();
        assert_eq!(
            end["totals"]["received_packets"],
            60 * CHANGES.len(),
            "{device}: {end}"
        );
        assert_eq!(
            end["account"]["without_socket_packets"], 0,
            "{device}: {end}"
        );
        assert!(end["mtu_changes"].as_u64() >= Some(2), "{device}: {end}");
        let mut lines = String::new();
        said.read_to_string(&mut lines).unwrap();
        // "attached" is told as "is back".
        told.retain(|words| *words != "attached");
        assert_has_all(&lines, &told.join(" | "));
        shell_at_receiver(&veth, "ip link del x0");
    }
}
