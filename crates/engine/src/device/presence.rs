//! Whether an interface is there, by name or by index, and what is told of it while it is not.

use std::time::{Duration, Instant};

use nicpoll_model::engine::LinkEvent;
use nicpoll_sys::link::{Link, LinkState};

use crate::error::EngineError;

/// The pause before an interface that is back, and could not be had, is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// What to do when an interface is removed, or leaves the network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GonePolicy {
    /// End, and do not wait for it.
    pub exits: bool,
    /// Only the one of the same index is taken when it is back, and not another one of its name.
    pub by_index_only: bool,
}

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It has gone.
    Gone,
    /// One is there, and up.
    Back,
}

/// An interface of the calling thread's network namespace that may go and come back.
#[derive(Debug)]
pub(crate) struct Presence {
    /// The name that it had last.
    pub(crate) name: String,
    link: Link,
    policy: GonePolicy,
    began: Instant,
    is_there: bool,
    /// Why it could not be had when it was last tried, and when that was.
    refused: Option<(String, Instant)>,
}

impl Presence {
    /// Of an interface that is there.
    ///
    /// # Errors
    /// When there is none of that name.
    pub(crate) fn of(name: &str, policy: GonePolicy) -> Result<Self, EngineError> {
        let link = Link::named(name)
            .map_err(|source| EngineError::io(&format!("watching '{name}'"), &source))?;
        Ok(Presence {
            name: name.to_owned(),
            link,
            policy,
            began: Instant::now(),
            is_there: true,
            refused: None,
        })
    }

    /// Whether it was there at the last look.
    pub(crate) fn is_there(&self) -> bool {
        self.is_there
    }

    /// Whether it is gone, and nobody is to wait for it.
    pub(crate) fn ends(&self) -> bool {
        !self.is_there && self.policy.exits
    }

    /// Looks, and says what has changed with the line that tells it.
    pub(crate) fn look(&mut self) -> Option<(Change, LinkEvent)> {
        if self.is_there {
            return self.look_whether_it_went();
        }
        let is_early = |(_, at): &(String, Instant)| at.elapsed() < TRY_AGAIN;
        if self.policy.exits || self.refused.as_ref().is_some_and(is_early) {
            return None;
        }
        let found = match self.policy.by_index_only {
            true => Link::of_index(self.link.ifindex()),
            false => Link::named(&self.name),
        };
        let found = found.ok().filter(|link| link.state() == LinkState::Up)?;
        self.link = found;
        self.is_there = true;
        let event = self.event("attached", None);
        Some((Change::Back, event))
    }

    fn look_whether_it_went(&mut self) -> Option<(Change, LinkEvent)> {
        if state_of(&self.link) == LinkState::Gone {
            self.is_there = false;
            self.refused = None;
            return Some((Change::Gone, self.event("gone", None)));
        }
        if let Ok(name) = self.link.name() {
            self.name = name;
        }
        None
    }

    /// It was back and could not be had: it is tried again. Tells why, once.
    pub(crate) fn refuse(&mut self, error: &EngineError) -> Option<LinkEvent> {
        self.is_there = false;
        let why = error.to_string();
        let before = self.refused.replace((why.clone(), Instant::now()));
        let is_told = before.is_some_and(|(before, _)| before == why);
        (!is_told).then(|| self.event("refused", Some(why)))
    }

    fn event(&self, what: &str, why: Option<String>) -> LinkEvent {
        LinkEvent {
            seconds: self.began.elapsed().as_secs_f64(),
            interface: self.name.clone(),
            ifindex: self.is_there.then(|| self.link.ifindex()),
            what: what.to_owned(),
            why,
        }
    }
}

/// What has become of an interface. While it is renamed, neither name finds it for a moment, and its index does.
pub(crate) fn state_of(link: &Link) -> LinkState {
    match link.state() {
        LinkState::Gone if link.name().is_ok() => LinkState::Down,
        state => state,
    }
}
