//! What shows that a setting is in force: the polls of the interfaces, just after they were set.
//!
//! What must hold: a look changes nothing, and one that fails does not make the command fail, because what was
//! asked for is done by then. Without a packet nothing is proven: a timer that nothing started does not run.

use std::time::Duration;

use nicpoll_inspect::{InspectError, Look, inside};
use nicpoll_model::{Discipline, InterfaceShow, SwitchProof, Unseen};
use nicpoll_switch::Request;

use super::args::PERIOD_NS;

/// Rounds that a look should see, if a timer begins them.
const ROUNDS: u32 = 25;
/// No look is shorter, so that packets have time to come, or longer, whatever the period.
const LOOK_MIN: Duration = Duration::from_millis(250);
const LOOK_MAX: Duration = Duration::from_secs(2);

/// How long to look when nobody says.
pub fn default_look(request: &Request) -> Duration {
    let period_ns = request.gro_flush_timeout_ns.unwrap_or(PERIOD_NS);
    Duration::from_nanos(period_ns)
        .saturating_mul(ROUNDS)
        .clamp(LOOK_MIN, LOOK_MAX)
}

/// Looks at interfaces of one namespace.
pub fn prove(names: &[String], netns: Option<&str>, time: Duration) -> Vec<SwitchProof> {
    let seen = match netns {
        None => look(names, time),
        Some(netns) => {
            let names = names.to_vec();
            inside(netns, move || look(&names, time))
        }
    };
    seen.unwrap_or_else(|failure| {
        let blind = |name: &String| SwitchProof {
            interface: name.clone(),
            look_seconds: None,
            setting: None,
            evidence: None,
            is_proven: None,
            unseen: vec![Unseen {
                what: String::from("polls"),
                why: failure.to_string(),
            }],
        };
        names.iter().map(blind).collect()
    })
}

fn look(names: &[String], time: Duration) -> Result<Vec<SwitchProof>, InspectError> {
    // Storms prove nothing about a setting.
    let mut look = Look::new(names, 0)?;
    let look_seconds = look.watch(time)?;
    let (interfaces, unseen) = look.finish();
    let proof = |interface: InterfaceShow| SwitchProof {
        is_proven: is_proven(&interface),
        interface: interface.name,
        look_seconds,
        setting: interface.setting,
        evidence: interface.evidence,
        unseen: unseen.clone(),
    };
    Ok(interfaces.into_iter().map(proof).collect())
}

fn is_proven(interface: &InterfaceShow) -> Option<bool> {
    let setting = interface.setting.as_ref()?.discipline;
    let evidence = interface.evidence.as_ref()?.discipline;
    agree(setting, evidence)
}

/// Whether polls were as the values mean; `None` when they do not tell.
fn agree(setting: Discipline, evidence: Discipline) -> Option<bool> {
    match (setting, evidence) {
        (_, Discipline::Idle) => None,
        // Now a timer, now an arrival: which of the two depends on the traffic of the moment.
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
        use Discipline::{Backlog, BusyPoll, Hybrid, Idle, Interrupt, Polling};
        for (setting, evidence, wanted) in [
            (Polling, Polling, Some(true)),
            (Polling, Interrupt, Some(false)),
            (Polling, Backlog, Some(false)),
            (Polling, Idle, None),
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
    fn a_look_sees_rounds_of_any_period() {
        let look = |ns| {
            let request = Request {
                gro_flush_timeout_ns: Some(ns),
                ..Request::default()
            };
            default_look(&request).as_millis()
        };
        assert_eq!(look(50_000), 250);
        assert_eq!(look(20_000_000), 500);
        assert_eq!(look(u64::MAX), 2_000);
    }
}
