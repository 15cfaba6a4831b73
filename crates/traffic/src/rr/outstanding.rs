//! The requests that are on their way, and what became of the others.
//!
//! What must hold: `sent = answered + lost + on their way`, whatever comes in whatever order. No
//! request is answered twice, and none that was given up counts as answered.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// Requests given up whose late answer is still known for one.
const REMEMBERED_MAX: usize = 65_536;

/// What a response was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It answers a request that was on its way, so long after its time began.
    InTime(Duration),
    /// It answers one that was given up.
    Late,
    /// It answers none.
    Foreign,
}

/// A request on its way, or one that was answered while an older one is on its way.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// Its latency counts from here; since the first request.
    from: Duration,
    /// When it was sent.
    sent: Duration,
    is_answered: bool,
}

/// The books of the requests. Times count from an origin that the caller chooses.
#[derive(Debug)]
pub struct Outstanding {
    timeout: Duration,
    /// By number, without a gap: the first one's is `first`.
    requests: VecDeque<Request>,
    first: u64,
    on_their_way: usize,
    given_up: BTreeSet<u64>,
    answered: u64,
    lost: u64,
    late: u64,
    foreign: u64,
}

impl Outstanding {
    /// Requests count as lost when `timeout` after their sending there is no answer.
    pub fn new(timeout: Duration) -> Self {
        Outstanding {
            timeout,
            requests: VecDeque::new(),
            first: 1,
            on_their_way: 0,
            given_up: BTreeSet::new(),
            answered: 0,
            lost: 0,
            late: 0,
            foreign: 0,
        }
    }

    /// The number of the next request.
    pub fn next_sequence(&self) -> u64 {
        self.first + self.requests.len() as u64
    }

    /// The next request was sent.
    pub fn sent(&mut self, from: Duration, sent: Duration) {
        self.requests.push_back(Request {
            from,
            sent,
            is_answered: false,
        });
        self.on_their_way += 1;
    }

    /// A response came.
    pub fn answered(&mut self, sequence: u64, now: Duration) -> Answer {
        self.give_up(now);
        let index = sequence.checked_sub(self.first);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let open = index.and_then(|index| self.requests.get_mut(index));
        if let Some(request) = open.filter(|request| !request.is_answered) {
            request.is_answered = true;
            let latency = now.saturating_sub(request.from);
            self.on_their_way -= 1;
            self.answered += 1;
            self.drop_answered();
            return Answer::InTime(latency);
        }
        if self.given_up.remove(&sequence) {
            self.late += 1;
            return Answer::Late;
        }
        self.foreign += 1;
        Answer::Foreign
    }

    /// Something came that is no response.
    pub fn foreign(&mut self) {
        self.foreign += 1;
    }

    /// Gives up the requests whose time is over.
    pub fn give_up(&mut self, now: Duration) {
        while let Some(request) = self.requests.front() {
            if !request.is_answered {
                if now.saturating_sub(request.sent) < self.timeout {
                    return;
                }
                self.remember();
                self.on_their_way -= 1;
                self.lost += 1;
            }
            self.requests.pop_front();
            self.first += 1;
        }
    }

    /// Gives up all that are on their way: nothing comes any more.
    pub fn give_up_all(&mut self) {
        self.give_up(Duration::MAX);
    }

    /// Time from `now` until the oldest request's is over; `None` when none is on its way.
    pub fn left(&self, now: Duration) -> Option<Duration> {
        let oldest = self.requests.front()?;
        Some((oldest.sent + self.timeout).saturating_sub(now))
    }

    fn drop_answered(&mut self) {
        while self.requests.front().is_some_and(|one| one.is_answered) {
            self.requests.pop_front();
            self.first += 1;
        }
    }

    fn remember(&mut self) {
        self.given_up.insert(self.first);
        if self.given_up.len() > REMEMBERED_MAX {
            self.given_up.pop_first();
        }
    }

    /// Requests that were sent.
    pub fn requests_sent(&self) -> u64 {
        self.next_sequence() - 1
    }

    /// Requests that may still be answered in time.
    pub fn on_their_way(&self) -> usize {
        self.on_their_way
    }

    /// Entries kept: requests on their way, and those answered after an older one that is.
    pub fn kept(&self) -> usize {
        self.requests.len()
    }

    /// Whether late answers may still come.
    pub fn awaits_late(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Requests answered in time.
    pub fn transactions(&self) -> u64 {
        self.answered
    }

    /// Requests given up.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Of these, those that were answered after all.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// What answers no request, or one once more.
    pub fn foreign_messages(&self) -> u64 {
        self.foreign
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Send,
        Answer(u64),
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            Just(Step::Send),
            (0..60u64).prop_map(Step::Answer),
            (0..40u64).prop_map(Step::Wait),
        ]
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Fate {
        OnItsWay { sent: u64 },
        Answered,
        Lost,
        Late,
    }

    proptest! {
        /// Against books that keep every request for good.
        #[test]
        fn every_request_has_one_fate(steps in proptest::collection::vec(step(), 0..400)) {
            const TIMEOUT: u64 = 100;
            let ms = Duration::from_millis;
            let mut books = Outstanding::new(ms(TIMEOUT));
            let mut fates: BTreeMap<u64, Fate> = BTreeMap::new();
            let mut now = 0;
            let mut foreign = 0;
            for step in steps {
                match step {
                    Step::Wait(time) => now += time,
                    Step::Send => {
                        fates.insert(books.next_sequence(), Fate::OnItsWay { sent: now });
                        books.sent(ms(now), ms(now));
                    }
                    Step::Answer(_) => {}
                }
                for fate in fates.values_mut() {
                    if matches!(fate, Fate::OnItsWay { sent } if now - *sent >= TIMEOUT) {
                        *fate = Fate::Lost;
                    }
                }
                if let Step::Answer(sequence) = step {
                    let fate = fates.get_mut(&sequence);
                    let expected = match fate.as_deref() {
                        Some(Fate::OnItsWay { sent }) => Answer::InTime(ms(now - sent)),
                        Some(Fate::Lost) => Answer::Late,
                        _ => Answer::Foreign,
                    };
                    match (expected, fate) {
                        (Answer::InTime(_), Some(fate)) => *fate = Fate::Answered,
                        (Answer::Late, Some(fate)) => *fate = Fate::Late,
                        _ => foreign += 1,
                    }
                    prop_assert_eq!(books.answered(sequence, ms(now)), expected);
                }
                books.give_up(ms(now));
                let count = |wanted: fn(&Fate) -> bool| {
                    fates.values().filter(|fate| wanted(fate)).count() as u64
                };
                let on_their_way = count(|fate| matches!(fate, Fate::OnItsWay { .. }));
                let lost = count(|fate| matches!(fate, Fate::Lost | Fate::Late));
                prop_assert_eq!(books.on_their_way() as u64, on_their_way);
                prop_assert_eq!(books.transactions(), count(|fate| *fate == Fate::Answered));
                prop_assert_eq!(books.lost(), lost);
                prop_assert_eq!(books.late(), count(|fate| *fate == Fate::Late));
                prop_assert_eq!(books.foreign_messages(), foreign);
                let sent = books.requests_sent();
                prop_assert_eq!(sent, books.transactions() + lost + on_their_way);
            }
            books.give_up_all();
            prop_assert_eq!(books.requests_sent(), books.transactions() + books.lost());
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut books = Outstanding::new(Duration::ZERO);
        for _ in 0..REMEMBERED_MAX + 10 {
            books.sent(Duration::ZERO, Duration::ZERO);
            books.give_up(Duration::ZERO);
        }
        assert_eq!(books.given_up.len(), REMEMBERED_MAX);
        assert_eq!(books.answered(1, Duration::ZERO), Answer::Foreign);
        assert_eq!(books.answered(11, Duration::ZERO), Answer::Late);
    }
}
