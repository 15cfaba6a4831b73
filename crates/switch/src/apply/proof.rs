//! Proof that a setting is in force: what started each round of polls just after the change.
//!
//! Watching changes nothing, and a failed watch does not undo the change. Without a packet nothing is proven: no packet
//! has started the timer.

use std::time::Duration;

use nicpoll_model::{Discipline, Finding, Refused, SwitchProof, Unseen};

use crate::kernel::Machine;
use crate::knob::table;
use crate::request::{KnobValues, POLLING_PERIOD_NS};

/// Rounds that a watch should see if the timer starts them.
const ROUNDS: u32 = 25;
/// Rounds needed for a verdict, which takes nine of ten.
const ROUNDS_ENOUGH: u64 = 10;
/// Limits of a watch at any period: packets need time to arrive.
const WATCH_MIN: Duration = Duration::from_millis(250);
const WATCH_MAX: Duration = Duration::from_secs(2);

/// The unjudged observation of each watched interface, with its number of rounds, or of polls if no round ended.
pub type Sightings = Vec<(SwitchProof, u64)>;

/// Returns the default length of a watch.
pub fn watch_time(values: &KnobValues) -> Duration {
    let period_ns = values.number(&table::GRO_FLUSH_TIMEOUT);
    Duration::from_nanos(period_ns.unwrap_or(POLLING_PERIOD_NS))
        .saturating_mul(ROUNDS)
        .clamp(WATCH_MIN, WATCH_MAX)
}

/// Runs `watch` in a namespace that has been entered, and judges its observations. If the watch fails, no interface is
/// judged, and each proof says why.
pub fn prove(
    machine: &Machine,
    watch: impl FnOnce(&[String], Duration) -> Result<Sightings, Refused> + Send + 'static,
    netns_inode: u64,
    interfaces: &[String],
    time: Duration,
) -> Vec<SwitchProof> {
    let names = interfaces.to_vec();
    let seen = machine.run(netns_inode, move |_| watch(&names, time));
    let blind = |why: String| {
        let proof = |interface: &String| SwitchProof {
            interface: interface.clone(),
            look_seconds: None,
            setting: None,
            evidence: None,
            is_proven: None,
            unseen: vec![Unseen {
                what: String::from("polls"),
                why: why.clone(),
            }],
        };
        interfaces.iter().map(proof).collect()
    };
    match seen {
        Ok(Ok(seen)) => seen.into_iter().map(judged).collect(),
        Ok(Err(why)) => blind(why.0),
        Err(error) => blind(error.to_string()),
    }
}

fn judged((mut proof, rounds): (SwitchProof, u64)) -> SwitchProof {
    let discipline = |finding: &Option<Finding>| Some(finding.as_ref()?.discipline);
    let found = discipline(&proof.setting).zip(discipline(&proof.evidence));
    if (1..ROUNDS_ENOUGH).contains(&rounds) {
        if let Some(evidence) = &mut proof.evidence {
            let why = &evidence.why;
            evidence.why = format!("too few rounds of polls to tell ({rounds}): {why}");
        }
    } else {
        proof.is_proven = found.and_then(|(set, seen)| agree(set, seen));
    }
    proof
}

/// Whether the polls agree with the setting; `None` if they cannot tell.
fn agree(setting: Discipline, evidence: Discipline) -> Option<bool> {
    match (setting, evidence) {
        (_, Discipline::Idle) | (Discipline::Elsewhere, Discipline::Elsewhere) => None,
        // Hybrid: timer or arrival, depending on the traffic of the moment.
        (Discipline::Hybrid, Discipline::Polling) => Some(true),
        (Discipline::Hybrid, Discipline::Interrupt) => None,
        _ => Some(setting == evidence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_happened_proves_or_refutes() {
        use Discipline::{Backlog, BusyPoll, Elsewhere, Hybrid, Idle, Interrupt, Polling};
        for (setting, evidence, wanted) in [
            (Polling, Polling, Some(true)),
            (Polling, Interrupt, Some(false)),
            (Polling, Backlog, Some(false)),
            (Polling, Idle, None),
            (Elsewhere, Elsewhere, None),
            (Hybrid, Polling, Some(true)),
            (Hybrid, Interrupt, None),
            (BusyPoll, BusyPoll, Some(true)),
            (Interrupt, Interrupt, Some(true)),
            (Interrupt, Polling, Some(false)),
        ] {
            assert_eq!(agree(setting, evidence), wanted, "{setting} {evidence}");
        }
    }

    #[test]
    fn a_few_rounds_prove_and_refute_nothing() {
        let finding = |discipline| {
            Some(Finding {
                discipline,
                why: String::from("its timer began 2 of 3 rounds"),
            })
        };
        let seen = || SwitchProof {
            interface: String::from("em0"),
            look_seconds: Some(1.0),
            setting: finding(Discipline::Polling),
            evidence: finding(Discipline::Hybrid),
            is_proven: None,
            unseen: Vec::new(),
        };
        let few = judged((seen(), 3));
        assert_eq!(few.is_proven, None);
        assert!(few.evidence.unwrap().why.starts_with("too few rounds"));
        assert_eq!(judged((seen(), 30)).is_proven, Some(false));
    }

    #[test]
    fn a_watch_sees_rounds_of_any_period() {
        let time =
            |ns| watch_time(&KnobValues::new().with(&table::GRO_FLUSH_TIMEOUT, ns)).as_millis();
        assert_eq!(time(50_000), 250);
        assert_eq!(time(20_000_000), 500);
        assert_eq!(time(u64::MAX), 2_000);
    }
}
