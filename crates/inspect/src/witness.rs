//! The proof that a setting is in force: what began the rounds of polls after it was made.

use std::error::Error;
use std::time::Duration;

use nicpoll_model::InterfaceShow;
use nicpoll_switch::{Sighting, Witness};

use crate::show::Look;

/// Watches the polls of interfaces by BPF.
#[derive(Clone, Copy, Debug)]
pub struct PollWitness;

impl Witness for PollWitness {
    fn watch(
        &self,
        interfaces: &[String],
        time: Duration,
    ) -> Result<Vec<Sighting>, Box<dyn Error + Send + Sync>> {
        // Storms prove nothing about a setting.
        let mut look = Look::new(interfaces, 0)?;
        let seconds = look.watch(time)?;
        let (interfaces, unseen) = look.finish();
        let seen = interfaces.into_iter().map(|interface| Sighting {
            rounds: rounds_of(&interface),
            interface: interface.name,
            seconds,
            setting: interface.setting,
            evidence: interface.evidence,
            unseen: unseen.clone(),
        });
        Ok(seen.collect())
    }
}

/// Rounds of all instances, or polls where no round ended.
fn rounds_of(interface: &InterfaceShow) -> u64 {
    let rhythms = || {
        let napis = interface.napis.iter().flatten();
        napis.filter_map(|napi| napi.rhythm.as_ref())
    };
    match rhythms().map(|rhythm| rhythm.rounds).sum() {
        0 => rhythms().map(|rhythm| rhythm.polls).sum(),
        rounds => rounds,
    }
}
