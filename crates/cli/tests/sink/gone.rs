//! An interface that is removed, comes back, is renamed or leaves its namespace under a running sink.

use super::{at_receiver, shell_at_receiver, sink};
use crate::common::prelude::*;

const MAKE: &str =
    "ip link add x0 type veth peer name x1 && ip link set x0 up && ip link set x1 up";

/// Sends exactly this many frames from the other end of `x0`.
fn blast(veth: &Veth, frames: u32) {
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
        blast(&veth, 40);
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
        blast(&veth, 30);
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
        blast(&veth, 20);
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
    blast(&veth, 10);
    running.await_counted("received_packets", 10);
    shell_at_receiver(&veth, "ip link del x0");
    assert_eq!(running.await_link()["what"], "gone");
    assert_eq!(running.child.wait().unwrap().code(), Some(6));
}
