//! What a server says of clients that it could not serve.
//!
//! What must hold: whoever refuses to be served cannot fill a log.

use std::mem::{Discriminant, discriminant};
use std::time::{Duration, Instant};

use crate::ClientRefusal;

/// Of each kind of refusal there is one line in this time.
const EVERY: Duration = Duration::from_secs(60);

/// The refusals that were told of.
#[derive(Debug, Default)]
pub struct Notices {
    told: Vec<(Discriminant<ClientRefusal>, Instant)>,
}

impl Notices {
    /// The refusal, unless one like it was told of lately.
    pub fn due(&mut self, refusal: Option<ClientRefusal>) -> Option<ClientRefusal> {
        refusal.filter(|refusal| self.is_due(refusal, Instant::now()))
    }

    fn is_due(&mut self, refusal: &ClientRefusal, now: Instant) -> bool {
        let kind = discriminant(refusal);
        self.told.retain(|(_, at)| now.duration_since(*at) < EVERY);
        let is_due = self.told.iter().all(|(told, _)| *told != kind);
        if is_due {
            self.told.push((kind, now));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Caller;

    #[test]
    fn each_kind_is_told_once_a_minute() {
        let mut notices = Notices::default();
        let begun = Instant::now();
        let peer = Caller(None);
        let full = ClientRefusal::Full {
            peer,
            in_use: "all streams are in use",
            rule: "has to wait",
        };
        let share = ClientRefusal::Share {
            peer,
            most: 1,
            what: "streams",
        };
        let second = |second| begun + Duration::from_secs(second);
        assert!(notices.is_due(&full, begun));
        assert!(notices.is_due(&share, second(30)));
        assert!(!notices.is_due(&full, second(59)));
        assert!(notices.is_due(&full, second(60)));
        assert!(!notices.is_due(&share, second(60)));
    }
}
