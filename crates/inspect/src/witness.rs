//! The proof that a setting is in force: what began the rounds of polls after it was made.

use std::error::Error;
use std::time::Duration;

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
            interface: interface.name,
            seconds,
            setting: interface.setting,
            evidence: interface.evidence,
            unseen: unseen.clone(),
        });
        Ok(seen.collect())
    }
}
