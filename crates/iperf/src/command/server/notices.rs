//! What a server says of clients that it could not serve.
//!
//! What must hold: whoever refuses to be served cannot fill a log.

use std::mem::{Discriminant, discriminant};
use std::time::{Duration, Instant};

use crate::Refusal;

/// Of each kind of refusal there is one line in this time.
const EVERY: Duration = Duration::from_secs(60);

/// The refusals that were told of.
#[derive(Default)]
pub(super) struct Notices {
    told: Vec<(Discriminant<Refusal>, Instant)>,
}

impl Notices {
    /// Tells of a refusal on standard error, unless one like it was told of lately.
    pub(super) fn tell(&mut self, refusal: Option<Refusal>) {
        if let Some(refusal) = refusal
            && self.is_due(&refusal, Instant::now())
        {
            eprintln!("nicpoll iperf: {refusal}");
        }
    }

    fn is_due(&mut self, refusal: &Refusal, now: Instant) -> bool {
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
        let (full, share) = (Refusal::Full { peer }, Refusal::Share { peer });
        let second = |second| begun + Duration::from_secs(second);
        assert!(notices.is_due(&full, begun));
        assert!(notices.is_due(&share, second(30)));
        assert!(!notices.is_due(&full, second(59)));
        assert!(notices.is_due(&full, second(60)));
        assert!(!notices.is_due(&share, second(60)));
    }
}
