//! Live comparisons and studies in a guest: their scripts and expected results.

use super::Console;
use crate::common::stage::{polling, udp200};
use nicpoll_model::ab::{AbEndCause, LiveAb};
use nicpoll_model::{LossPlace, Study};

/// Compares two settings of an interface, the second word, under pings; the first word labels the output. The
/// function `values` is in the common part.
pub const COMPARE: &str = r#"
compare() {
    ping -q -c 100000 -i 0.02 10.0.2.2 >/dev/null &
    pings=$!
    touch /running
    (while [ -e /running ]; do cat /sys/class/net/eth0/gro_flush_timeout; sleep 0.05; done | sort -u | tr '\n' ' ' >/seen) &
    nicpoll ab $2 --for 8s --block 0.5s --loss-limit 100000 --no-store --json >/compared 2>/said; echo "$1-ended: $?"
    echo "$1-said: $(tail -n 4 /said | tr '\n' ' ')"
    rm /running; kill $pings; wait
    echo "$1-took-turns: $(cat /seen)"
    echo "$1-compared: $(tr -d '\n' </compared)"
    values $1-compared-values
}
"#;

/// Checks the output of `nicpoll ab` over an interface above the card, and the values that it leaves.
pub fn expect_turns(console: &Console, name: &str) {
    let of = |what: &str| console.line(&format!("{name}-{what}"));
    // Too few pairs for a verdict.
    assert_eq!(of("ended"), "4", "{}", console.0);
    assert_eq!(of("took-turns"), "0 200000");
    assert_eq!(of("compared-values"), "0 0 0");
    let compared: LiveAb = serde_json::from_str(of("compared")).unwrap();
    assert_eq!(compared.end.cause, AbEndCause::Planned);
    assert_eq!(compared.members, ["eth0"]);
    assert!(compared.restored.iter().all(|one| one.is_as_before));
    let pairs = compared.pairs.iter();
    let blocks: Vec<_> = pairs.flat_map(|it| [&it.reference, &it.judged]).collect();
    assert!(blocks.len() >= 2, "{}", console.0);
    for block in blocks {
        // The pings' answers arrived at the card, and their polls were counted there.
        assert!(
            block.window.rx_packets > 0 && block.polls > Some(0),
            "{block:?}"
        );
        assert!(block.window.cpu.is_some(), "{block:?}");
    }
}

/// Returns a slow link, with a delay above the answer time of a near one, that loses every tenth packet.
pub fn worse() -> String {
    let head = r#"
question = "What does a bad link do?"
blocks = 1
trial = "1s"
time = "600s"
seed = 1

[topology]
rate = "10Mbit/s"
delay = "60ms"
loss = "10%"

[[setting]]
name = "as-it-comes"

[[workload]]
name = "rr"
traffic = { kind = "rr", requests_per_second = 100 }
"#;
    format!("{head}{}{}", polling("polling", "1ms"), udp200(1000))
}

pub const IMPAIRED: &str = r#"
for driver in veth sch_netem sch_tbf; do load $driver; done
nicpoll study run /worse.toml --no-store --json >/worse.json 2>/said; echo "worse-ended: $?"
echo "worse-said: $(tail -n 4 /said | tr '\n' ' ')"
echo "worse: $(tr -d '\n' </worse.json)"
ls -d /var/lib/nicpoll || echo "left-by-study: nothing"
"#;

/// Checks that each packet is delayed, and that the account places the lost ones.
pub fn expect_impaired(console: &Console) {
    assert_eq!(console.line("worse-ended"), "0", "{}", console.0);
    let study: Study = serde_json::from_str(console.line("worse")).unwrap();
    assert_eq!(study.trials.len(), 4, "{:?}", study.dropped);
    for trial in &study.trials {
        let of = format!("{} under {}", trial.workload, trial.setting);
        // On a busy machine polls of a guest come late, and polling need not be shown to be in force: the link is worse
        // either way.
        let figures = trial.figures.as_deref();
        let figures = figures.unwrap_or_else(|| panic!("{of}: {:?}", trial.validity));
        let ledger = &figures.ledger;
        let queues = ledger
            .lines
            .iter()
            .filter(|line| line.place == LossPlace::SendQueue);
        let lost: u64 = queues.filter_map(|line| line.packets).sum();
        println!(
            "{of}: {lost} of {:?} lost, residual {:?}, {:?}, {:?}",
            figures.offered_packets, ledger.residual_packets, trial.validity, figures.round_trip
        );
        assert!(
            lost > 0 && figures.loss_ratio > Some(0.01),
            "{of}: {ledger:?}"
        );
        if let Some(trip) = figures.round_trip {
            assert_eq!(trial.validity.ledger_void, None, "{of}");
            assert!(
                trip.transactions > 0 && trip.quantiles.min_ns > Some(120_000_000),
                "{of}: {trip:?}"
            );
        }
    }
}
