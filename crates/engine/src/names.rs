//! Values that people choose by name: one table of names for each, and one way to look them up.
//!
//! Each value has one name, and the name that is shown for it chooses it.

use crate::error::EngineError;
use nicpoll_model::Refused;

/// A value that is chosen by name.
pub trait Named: Copy + PartialEq + 'static {
    /// All values with their names, in the order in which people are told of them.
    fn all() -> impl Iterator<Item = (Self, &'static str)>;

    /// The name by which it is chosen.
    fn name(self) -> &'static str {
        let row = Self::all().find(|(value, _)| *value == self);
        row.expect("every value has its row").1
    }

    /// The value of a name.
    ///
    /// # Errors
    /// When there is none, with those that there are.
    fn by_name(name: &str) -> Result<Self, Refused> {
        let row = Self::all().find(|(_, known)| *known == name);
        let unknown = || unknown_among(Self::all().map(|(_, name)| name));
        row.map(|(value, _)| value).ok_or_else(unknown)
    }
}

/// The error of a name that is none of these.
pub fn unknown_among(names: impl Iterator<Item = &'static str>) -> Refused {
    let known: Vec<_> = names.collect();
    Refused(format!("one of these was expected: {}", known.join(", ")))
}

/// One of several, or whichever is best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice<T> {
    /// The fastest that works.
    #[default]
    Auto,
    /// This one.
    Only(T),
}

impl<T: Named> Named for Choice<T> {
    fn all() -> impl Iterator<Item = (Self, &'static str)> {
        let each = T::all().map(|(value, name)| (Choice::Only(value), name));
        std::iter::once((Choice::Auto, "auto")).chain(each)
    }
}

/// One that was not taken, and why.
pub(crate) type Skipped = (&'static str, String);

impl<T: Named> Choice<T> {
    /// Opens this one, or the first of `automatic` that can be had, and says why those before it cannot. An error that
    /// is no reason to try the next one is final, and so is that of the last one.
    pub(crate) fn first<R>(
        self,
        automatic: Vec<T>,
        mut open: impl FnMut(T) -> Result<R, EngineError>,
        is_reason: impl Fn(&EngineError) -> bool,
    ) -> Result<(R, Vec<Skipped>), EngineError> {
        let mut candidates = match self {
            Choice::Auto => automatic,
            Choice::Only(one) => vec![one],
        };
        let last = candidates.pop().expect("there is one at least");
        let mut refused = Vec::new();
        for candidate in candidates {
            match open(candidate) {
                Err(error) if is_reason(&error) => {
                    refused.push((candidate.name(), error.to_string()));
                }
                opened => return Ok((opened?, refused)),
            }
        }
        Ok((open(last)?, refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blast::BlastPath;
    use crate::{DeviceKind, Drive, ForwardPath, KernelSide};

    #[test]
    fn the_first_that_can_be_had_is_taken_and_the_reasons_of_others_are_told() {
        let all = || vec![DeviceKind::AfXdp, DeviceKind::AfPacket, DeviceKind::Tap];
        let open = |kind: DeviceKind| match kind {
            DeviceKind::AfXdp => Err(EngineError::Device(String::from("busy"))),
            DeviceKind::AfPacket => Err(EngineError::Failed(String::from("gone"))),
            DeviceKind::Tap => Ok(kind),
        };
        let (taken, refused) = Choice::Auto.first(all(), open, |_| true).unwrap();
        assert_eq!(taken, DeviceKind::Tap);
        let reasons = [("af-xdp", "busy"), ("af-packet", "gone")];
        assert_eq!(refused, reasons.map(|(name, why)| (name, why.to_owned())));
        let outcome = Choice::Auto.first(all(), open, EngineError::is_of_device);
        assert_eq!(outcome.unwrap_err().to_string(), "gone");
        let outcome = Choice::Only(DeviceKind::AfXdp).first(all(), open, |_| true);
        assert_eq!(outcome.unwrap_err().to_string(), "busy");
    }

    fn each_name_is_that_of_one_value<T: Named + std::fmt::Debug>(names: &str) {
        let told: Vec<&str> = T::all().map(|(_, name)| name).collect();
        assert_eq!(told.join(", "), names);
        for (value, name) in T::all() {
            assert_eq!((T::by_name(name), value.name()), (Ok(value), name));
        }
        let refusal = T::by_name("no-such-name").unwrap_err();
        assert_eq!(refusal.0, format!("one of these was expected: {names}"));
    }

    #[test]
    fn whatever_is_chosen_by_name_has_one() {
        each_name_is_that_of_one_value::<Drive>("polling, interrupt, busy-poll, adaptive");
        each_name_is_that_of_one_value::<KernelSide>("as-is, threaded, polling");
        each_name_is_that_of_one_value::<ForwardPath>("auto, xdp, user");
        each_name_is_that_of_one_value::<Choice<DeviceKind>>("auto, af-xdp, af-packet, tap");
        each_name_is_that_of_one_value::<Choice<BlastPath>>("auto, live, af-xdp, af-packet");
    }
}
