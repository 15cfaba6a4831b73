//! Whether an interface is there and as it was when its device was opened, and what is told when it is not.

use std::time::{Duration, Instant};

use netlink_socket2::NetlinkSocket;
use nicpoll_model::engine::LinkEvent;
use nicpoll_sys::ethtool;
use nicpoll_sys::link::{LinkHandle, LinkState};

use crate::device::interface::takes_redirected;
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
pub(crate) enum PresenceChange {
    /// It has gone.
    Gone,
    /// One is there, and up.
    Back,
    /// It is there, and no longer what its device was opened for.
    Otherwise,
}

/// What of an interface a device is opened for; `None` where the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct InterfaceShape {
    mtu_bytes: Option<u32>,
    receive_queues: Option<u32>,
    /// `None` where nobody asks, too.
    takes_redirected: Option<bool>,
}

impl InterfaceShape {
    /// What is otherwise now, in words.
    fn changes(&self, now: &InterfaceShape) -> Vec<String> {
        let numbers = [
            ("MTU", self.mtu_bytes, now.mtu_bytes),
            ("receive queues", self.receive_queues, now.receive_queues),
        ];
        let mut changes = Vec::new();
        for (what, before, now) in numbers {
            if let Some((before, now)) = before.zip(now).filter(|(before, now)| before != now) {
                changes.push(format!("{what} {before} -> {now}"));
            }
        }
        let takes = match self.takes_redirected.zip(now.takes_redirected) {
            Some((false, true)) => Some("takes frames from XDP programs now"),
            Some((true, false)) => Some("takes no frames from XDP programs any more"),
            _ => None,
        };
        changes.extend(takes.map(String::from));
        changes
    }
}

/// An interface of the calling thread's network namespace that may go, come back and change.
pub(crate) struct Presence {
    /// The name that it had last.
    pub(crate) name: String,
    link: LinkHandle,
    policy: GonePolicy,
    began: Instant,
    is_there: bool,
    shape: InterfaceShape,
    watches_exit: bool,
    netlink: NetlinkSocket,
    /// Why it could not be had when it was last tried, and when that was.
    refused: Option<(String, Instant)>,
}

impl Presence {
    /// Of an interface that is there.
    ///
    /// # Errors
    /// When there is none of that name.
    pub(crate) fn of(name: &str, policy: GonePolicy) -> Result<Self, EngineError> {
        let link = LinkHandle::named(name)
            .map_err(|source| EngineError::io(&format!("watching '{name}'"), &source))?;
        let mut presence = Presence {
            name: name.to_owned(),
            link,
            policy,
            began: Instant::now(),
            is_there: true,
            shape: InterfaceShape::default(),
            watches_exit: false,
            netlink: NetlinkSocket::new(),
            refused: None,
        };
        presence.shape = presence.shape_now();
        Ok(presence)
    }

    /// Looks from now on whether it takes frames that XDP programs redirect to it, too.
    pub(crate) fn watch_exit(&mut self) {
        self.watches_exit = true;
        self.shape = self.shape_now();
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
    pub(crate) fn look(&mut self) -> Option<(PresenceChange, LinkEvent)> {
        if self.is_there {
            return self.look_at_it();
        }
        let is_early = |(_, at): &(String, Instant)| at.elapsed() < TRY_AGAIN;
        if self.policy.exits || self.refused.as_ref().is_some_and(is_early) {
            return None;
        }
        let found = match self.policy.by_index_only {
            true => LinkHandle::of_index(self.link.ifindex()),
            false => LinkHandle::named(&self.name),
        };
        let found = found.ok().filter(|link| link.state() == LinkState::Up)?;
        self.link = found;
        self.is_there = true;
        self.shape = self.shape_now();
        let event = self.event("attached", None);
        Some((PresenceChange::Back, event))
    }

    fn look_at_it(&mut self) -> Option<(PresenceChange, LinkEvent)> {
        if state_of(&self.link) == LinkState::Gone {
            self.is_there = false;
            self.refused = None;
            return Some((PresenceChange::Gone, self.event("gone", None)));
        }
        if let Ok(name) = self.link.name() {
            self.name = name;
        }
        let now = self.shape_now();
        let changes = self.shape.changes(&now).join(", ");
        self.shape = now;
        let event = || self.event("changed", Some(changes.clone()));
        (!changes.is_empty()).then(|| (PresenceChange::Otherwise, event()))
    }

    /// What cannot be asked for now is as it was.
    fn shape_now(&mut self) -> InterfaceShape {
        let (before, ifindex) = (self.shape, self.link.ifindex());
        let netlink = &mut self.netlink;
        let takes = self
            .watches_exit
            .then(|| takes_redirected(netlink, ifindex));
        InterfaceShape {
            mtu_bytes: self.link.mtu_bytes().ok().or(before.mtu_bytes),
            receive_queues: ethtool::receive_queues(&self.name)
                .ok()
                .or(before.receive_queues),
            takes_redirected: takes.flatten().or(before.takes_redirected),
        }
    }

    /// What is told of a change, after which the interface could be taken again or not.
    pub(crate) fn events_of(
        &mut self,
        (change, event): (PresenceChange, LinkEvent),
        outcome: Result<(), EngineError>,
    ) -> Vec<LinkEvent> {
        let Err(error) = outcome else {
            return vec![event];
        };
        let changed = Some(event).filter(|_| change == PresenceChange::Otherwise);
        changed.into_iter().chain(self.refuse(&error)).collect()
    }

    /// It could not be had: it is tried again. Tells why, once.
    fn refuse(&mut self, error: &EngineError) -> Option<LinkEvent> {
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
pub(crate) fn state_of(link: &LinkHandle) -> LinkState {
    match link.state() {
        LinkState::Gone if link.name().is_ok() => LinkState::Down,
        state => state,
    }
}
