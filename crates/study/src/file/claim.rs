//! What a study file asks of the machine that it is run on.
//!
//! What must hold: what the machine lacks is known with its line before anything is built. Reading a file asks for
//! nothing of the machine, so that a file can be read anywhere.

use std::ops::Range;

use nicpoll_model::{FileError, Side};

use super::StudyFile;
use crate::design::Cpus;

/// Something that the machine has to have, and where the file asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    span: Range<usize>,
    wanted: Wanted,
}

/// What the machine has to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Cores for the traffic.
    Cpus(Cpus),
}

impl Claim {
    /// Something that stands at `span`.
    pub fn new(span: Range<usize>, wanted: Wanted) -> Self {
        Claim { span, wanted }
    }
}

/// What the machine has, as far as files may ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Here {
    /// The cores that this process may use, ascending.
    pub cpus: Vec<u32>,
}

impl Here {
    /// Looks at this machine.
    ///
    /// # Errors
    /// When the kernel does not say which cores may be used.
    pub fn look() -> std::io::Result<Self> {
        Ok(Here {
            cpus: nicpoll_sys::affinity::allowed_cpus()?,
        })
    }
}

impl StudyFile {
    /// Refuses what the machine cannot do. `text` is what the file was read from.
    ///
    /// # Errors
    /// With the line, and what would be possible.
    pub fn check(&self, text: &str, here: &Here) -> Result<(), FileError> {
        for Claim { span, wanted } in &self.claims {
            let missing = match wanted {
                Wanted::Cpus(cpus) => missing_cpus(*cpus, &here.cpus),
            };
            if let Some(message) = missing {
                return Err(FileError::at(text, span.clone(), message));
            }
        }
        Ok(())
    }
}

fn missing_cpus(asked: Cpus, here: &[u32]) -> Option<String> {
    let list = || {
        let cpus: Vec<String> = here.iter().map(ToString::to_string).collect();
        cpus.join(", ")
    };
    // The lab takes the first two where nothing is asked for.
    let [first, second, ..] = here else {
        return None;
    };
    let own = Cpus {
        sender: Some(*first),
        receiver: Some(*second),
    };
    let in_force = own.under(asked);
    for side in [Side::Sender, Side::Receiver] {
        let cpu = in_force.of(side)?;
        if !here.contains(&cpu) {
            return Some(format!(
                "cpu {cpu} cannot run the {side}: this program may use {}",
                list()
            ));
        }
    }
    (in_force.sender == in_force.receiver).then(|| {
        format!(
            "sender and receiver would share cpu {}, and their CPU time is told apart by core; give both, of {}",
            in_force.sender.unwrap_or_default(),
            list()
        )
    })
}
