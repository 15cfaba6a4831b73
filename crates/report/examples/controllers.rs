//! Draws both controllers over a step of the load: the cost of a packet grows fourfold, and falls again.
//!
//! ```text
//! cargo run -p nicpoll-report --example controllers > docs/controllers.svg
//! ```

#[path = "../../core/tests/closed_loop/mod.rs"]
mod closed_loop;

use closed_loop::{BURST_MAX, HZ, Host};
use nicpoll_core::Controller;
use nicpoll_report::{Chart, Curve, Panel, plot_chart};

const USER_FRAC: u32 = 50;
const CHEAP_NS: u64 = 2_500;
const DEAR_NS: u64 = 10_000;
/// Cost of a packet, and ticks: cheap, dear, and cheap again.
const TICKS: [(u64, u64); 3] = [(CHEAP_NS, 250), (DEAR_NS, 150), (CHEAP_NS, 200)];

fn main() {
    print!("{}", plot_chart(&chart()));
}

/// Makes a chart of both controllers' burst and share, tick by tick.
pub fn chart() -> Chart {
    let hosts: Vec<_> = Controller::ALL
        .into_iter()
        .map(|controller| (controller.name(), played(controller)))
        .collect();
    let panel = |name: &str, of: fn(&Host) -> Vec<(f64, f64)>| Panel {
        y_name: String::from(name),
        curves: hosts
            .iter()
            .map(|(name, host)| Curve {
                name: String::from(*name),
                points: of(host),
            })
            .collect(),
    };
    let [(_, before), (_, during), _] = TICKS;
    Chart {
        title: format!(
            "Two controllers while a packet costs four times as much, ticks {before} to {}",
            before + during
        ),
        facts: format!(
            "the core's poller in a closed loop: {HZ} ticks a second, user_frac {USER_FRAC}, burst_max \
             {BURST_MAX}, {} then {} us a packet",
            CHEAP_NS as f64 / 1e3,
            DEAR_NS as f64 / 1e3
        ),
        x_name: String::from("ticks"),
        panels: vec![
            panel("burst, packets", bursts),
            panel("CPU used by polling, %", used),
        ],
    }
}

fn played(controller: Controller) -> Host {
    let mut host = Host::new(controller, USER_FRAC, CHEAP_NS);
    for (packet_ns, ticks) in TICKS {
        host.packet_ns = packet_ns;
        host.run(ticks);
    }
    host
}

fn bursts(host: &Host) -> Vec<(f64, f64)> {
    let cycles = host.cycles.iter();
    cycles
        .map(|cycle| (cycle.tick as f64, f64::from(cycle.burst)))
        .collect()
}

fn used(host: &Host) -> Vec<(f64, f64)> {
    let shares = host.shares(0).into_iter().enumerate();
    shares
        .map(|(tick, share)| (tick as f64, 100.0 * share))
        .collect()
}
