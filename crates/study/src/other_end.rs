//! What an XDP program at one end of a veth changes at the other. While it is there, Linux turns segmentation offloads
//! off at the other end and lowers the greatest MTU that can be set there, since its frames have to fit the memory of the
//! program's end. Both come back when the program leaves, in whatever way.
//!
//! What must hold: what was there is read before the program comes. What is not as it was is named.

use std::collections::BTreeSet;

use nicpoll_engine::{EngineApplication, EngineError, Sink};
use nicpoll_model::sink::{SinkEnd, SinkInterval, SinkStart};
use nicpoll_switch::Peer;
use nicpoll_sys::xdp::AttachMode;

use crate::kernel_side::facts_of;

/// The other end of a veth, as it was.
pub struct OtherEnd {
    interface: String,
    before: Option<State>,
}

/// What may be changed there.
#[derive(Debug, PartialEq, Eq)]
struct State {
    interface: String,
    features_on: BTreeSet<String>,
    max_mtu_bytes: Option<u32>,
}

impl OtherEnd {
    /// As it is now, of an interface of the calling thread's network namespace. Nothing is known where that is no veth,
    /// or the other end cannot be found.
    pub fn of(interface: &str) -> Self {
        OtherEnd {
            interface: interface.to_owned(),
            before: State::of(interface),
        }
    }

    /// A sink that also says what its XDP program changes there.
    pub fn around(&self, sink: Sink) -> SinkWithOtherEnd<'_> {
        SinkWithOtherEnd::new(sink, self)
    }

    /// What is otherwise now, one value each.
    fn changes(&self) -> Vec<String> {
        match (&self.before, State::of(&self.interface)) {
            (Some(before), Some(now)) => before.until(&now),
            _ => Vec::new(),
        }
    }
}

/// A sink that says what its XDP program changes at the other end of a veth, and what is still so when it has ended.
pub struct SinkWithOtherEnd<'a> {
    sink: Sink,
    start: SinkStart,
    /// Of a program in the driver: one in the kernel's generic code changes nothing.
    other_end: Option<&'a OtherEnd>,
}

impl<'a> SinkWithOtherEnd<'a> {
    fn new(sink: Sink, other_end: &'a OtherEnd) -> Self {
        let mut start = sink.facts().clone();
        let is_in_driver = start.program_mode.as_deref() == Some(AttachMode::Driver.name());
        let other_end = is_in_driver.then_some(other_end);
        start.other_end_changes = other_end.map_or_else(Vec::new, OtherEnd::changes);
        SinkWithOtherEnd {
            sink,
            start,
            other_end,
        }
    }
}

impl EngineApplication for SinkWithOtherEnd<'_> {
    type Start = SinkStart;
    type Interval = SinkInterval;
    type End = SinkEnd;

    fn facts(&self) -> &SinkStart {
        &self.start
    }

    fn interval(&mut self) -> Result<SinkInterval, EngineError> {
        self.sink.interval()
    }

    fn end(self, signal: Option<i32>) -> Result<SinkEnd, EngineError> {
        let end = self.sink.end(signal)?;
        Ok(SinkEnd {
            other_end_left: self.other_end.map_or_else(Vec::new, OtherEnd::changes),
            ..end
        })
    }
}

impl State {
    fn of(interface: &str) -> Option<Self> {
        let facts = facts_of(interface).ok()?;
        let Peer {
            target: Some(target),
            features_on,
            max_mtu_bytes,
            ..
        } = facts.into_iter().next()?.peer?
        else {
            return None;
        };
        Some(State {
            interface: target.interface.name,
            features_on,
            max_mtu_bytes,
        })
    }

    /// What changed until a later state.
    fn until(&self, now: &State) -> Vec<String> {
        let name = &self.interface;
        let became = |feature: &String| match now.features_on.contains(feature) {
            true => format!("{name} {feature} off -> on"),
            false => format!("{name} {feature} on -> off"),
        };
        let features = self.features_on.symmetric_difference(&now.features_on);
        let mut changes: Vec<String> = features.map(became).collect();
        if let (Some(before), Some(now)) = (self.max_mtu_bytes, now.max_mtu_bytes)
            && before != now
        {
            changes.push(format!("{name} greatest MTU {before} -> {now}"));
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_otherwise_is_named_and_nothing_else() {
        let state = |features: &[&str], max_mtu_bytes| State {
            interface: String::from("em0"),
            features_on: features.iter().map(|name| String::from(*name)).collect(),
            max_mtu_bytes: Some(max_mtu_bytes),
        };
        let before = state(&["rx-gro", "tx-udp-segmentation"], 65_535);
        let with_program = state(&["rx-gro"], 3506);
        assert_eq!(
            before.until(&with_program),
            [
                "em0 tx-udp-segmentation on -> off",
                "em0 greatest MTU 65535 -> 3506"
            ]
        );
        assert!(with_program.until(&with_program).is_empty());
    }
}
