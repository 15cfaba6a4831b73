//! Frames a second that each way of `nicpoll blast` sends by a veth, one after the other in each of five rounds.
//!
//! ```console
//! $ sudo cargo run --release -p nicpoll-engine --example blast_bench
//! ```
//! Frames have 64 bytes with FCS, each with its own number, time and checksum. One core sends, and on a veth the same
//! core does what the receiver's kernel does with a frame: that is the least possible where an XDP program drops it, and
//! more where the stack looks at it.

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::Write as _;
use std::time::Duration;

use nicpoll_engine::blast::{
    Blast, BlastPath, BlastSettings, FrameReceiver, LinkSettings, LinkTraffic,
};
use nicpoll_engine::{Choice, EngineApplication};
use nicpoll_model::Origin;
use nicpoll_sys::schedule;

use common::{Pair, RECEIVER, attach};

const ROUNDS: usize = 5;
const TRIAL: Duration = Duration::from_secs(1);
/// Nobody's, so that the stack drops the frame as soon as it has looked at it.
const OTHER_HOST: &str = "02:00:00:00:00:99";

struct Case {
    name: &'static str,
    path: BlastPath,
    /// The object of the receiver's XDP program.
    program: &'static str,
    mac: Option<&'static str>,
    /// Frames of one flow are joined for AF_PACKET, and those of several are not.
    flows: u16,
}

const CASES: [Case; 8] = [
    Case {
        name: "live frames, dropped by an XDP program",
        path: BlastPath::Live,
        program: "xdp_drop",
        mac: None,
        flows: 1,
    },
    Case {
        name: "AF_XDP, dropped by an XDP program",
        path: BlastPath::AfXdp,
        program: "xdp_drop",
        mac: None,
        flows: 1,
    },
    Case {
        name: "AF_PACKET joined, dropped by an XDP program",
        path: BlastPath::AfPacket,
        program: "xdp_drop",
        mac: None,
        flows: 1,
    },
    Case {
        name: "AF_PACKET one by one, dropped by an XDP program",
        path: BlastPath::AfPacket,
        program: "xdp_drop",
        mac: None,
        flows: 2,
    },
    Case {
        name: "live frames, dropped by the stack",
        path: BlastPath::Live,
        program: "xdp_pass",
        mac: Some(OTHER_HOST),
        flows: 1,
    },
    Case {
        name: "AF_XDP, dropped by the stack",
        path: BlastPath::AfXdp,
        program: "xdp_pass",
        mac: Some(OTHER_HOST),
        flows: 1,
    },
    Case {
        name: "AF_PACKET joined, dropped by the stack",
        path: BlastPath::AfPacket,
        program: "xdp_pass",
        mac: Some(OTHER_HOST),
        flows: 1,
    },
    Case {
        name: "AF_PACKET one by one, dropped by the stack",
        path: BlastPath::AfPacket,
        program: "xdp_pass",
        mac: Some(OTHER_HOST),
        flows: 2,
    },
];

fn frames_a_second(case: &Case) -> f64 {
    let pair = Pair::new();
    attach(&pair, case.program);
    let settings = BlastSettings {
        links: vec![LinkSettings {
            interface: String::from("em0"),
            cpu: schedule::allowed_cpus().unwrap()[0],
            traffic: LinkTraffic::Datagrams {
                receiver: FrameReceiver {
                    to: format!("{RECEIVER}:9").parse().unwrap(),
                    from: None,
                    mac: case.mac.map(|mac| mac.parse().unwrap()),
                },
                lengths: "64".parse().unwrap(),
                flows: case.flows,
            },
        }],
        path: Choice::Only(case.path),
        rate: None,
        burst: 1,
        count: None,
        duration: Some(TRIAL),
        gone: Default::default(),
    };
    let origin = Origin {
        nicpoll_version: String::new(),
        argv: Vec::new(),
        started_at: String::new(),
    };
    let start = move |(): &mut ()| Blast::start(&settings, origin).unwrap();
    let blast = pair.sender.run(start).unwrap();
    std::thread::sleep(TRIAL);
    let end = blast.end(None).unwrap();
    let account = end.links[0].account;
    let sent = account.completed_frames.unwrap_or(account.handed_frames);
    sent as f64 / end.duration_seconds
}

fn main() {
    let mut rates = [(); CASES.len()].map(|()| Vec::new());
    for _ in 0..ROUNDS {
        for (case, rates) in CASES.iter().zip(&mut rates) {
            rates.push(frames_a_second(case));
        }
    }
    let mut out = std::io::stdout().lock();
    let _ = writeln!(
        out,
        "{:>12} {:>12} {:>12}  frames/s",
        "least", "median", "most"
    );
    for (case, rates) in CASES.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        let [least, median, most] = [0, ROUNDS / 2, ROUNDS - 1].map(|at| rates[at]);
        let _ = writeln!(
            out,
            "{least:>12.0} {median:>12.0} {most:>12.0}  {}",
            case.name
        );
    }
}
