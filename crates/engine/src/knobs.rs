//! The knobs under `kern.polling` as people write them: what the original refuses, and why.

use nicpoll_core::{Access, Errno, Knob, Poller};
use thiserror::Error;

/// A knob was not written. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("kern.polling.{}={value}: {errno}: {why}", knob.name())]
pub struct KnobRefusal {
    /// Which.
    pub knob: Knob,
    /// What was to be written.
    pub value: u32,
    /// The original's error.
    pub errno: Errno,
    /// The values that are possible, or that none is.
    pub why: String,
}

/// Writes a knob as sysctl(8) does.
///
/// # Errors
/// `EINVAL` for a value out of range, `EPERM` for a knob that can only be read.
pub fn write_knob(poller: &mut Poller, knob: Knob, value: u32) -> Result<(), KnobRefusal> {
    poller.write(knob, value).map_err(|errno| KnobRefusal {
        knob,
        value,
        errno,
        why: possible(poller, knob),
    })
}

/// There is no knob of a name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KnobNameError {
    /// Older releases had it.
    #[error(
        "kern.polling.enable is deprecated; 'nicpoll set IF polling' and '-polling' switch an interface"
    )]
    Deprecated,
    /// Nobody has it.
    #[error("unknown oid 'kern.polling.{0}'; there are {known}", known = names())]
    Unknown(String),
}

fn names() -> String {
    let names: Vec<_> = Knob::ALL.iter().map(|knob| knob.name()).collect();
    names.join(", ")
}

/// The knob of a name, with or without `kern.polling.` before it.
///
/// # Errors
/// When there is none.
pub fn parse_knob(name: &str) -> Result<Knob, KnobNameError> {
    let bare = name.strip_prefix("kern.polling.").unwrap_or(name);
    if bare == "enable" {
        return Err(KnobNameError::Deprecated);
    }
    Knob::from_name(bare).ok_or_else(|| KnobNameError::Unknown(bare.to_owned()))
}

/// The values that a knob takes now.
fn possible(poller: &Poller, knob: Knob) -> String {
    match (knob.access(), knob) {
        (Access::ReadOnly, _) => String::from("it can only be read"),
        (_, Knob::BurstMax) => String::from("10 to 20000 are possible"),
        (_, Knob::EachBurst) => format!(
            "1 to {} are possible, which is burst_max",
            poller.read(Knob::BurstMax)
        ),
        (_, Knob::UserFrac) => String::from("0 to 99 are possible"),
        (_, Knob::RegFrac) => format!("1 to {} are possible, which is hz", poller.hz()),
        _ => String::from("any value is possible"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_limits_that_the_core_has() {
        let mut poller = Poller::new(1000).unwrap();
        write_knob(&mut poller, Knob::BurstMax, 400).unwrap();
        for (knob, refused, limits) in [
            (Knob::BurstMax, [9, 20_001], "10 to 20000"),
            (Knob::EachBurst, [0, 401], "1 to 400"),
            (Knob::UserFrac, [100, u32::MAX], "0 to 99"),
            (Knob::RegFrac, [0, 1001], "1 to 1000"),
        ] {
            for value in refused {
                let refusal = write_knob(&mut poller, knob, value)
                    .unwrap_err()
                    .to_string();
                let begins = format!("kern.polling.{}={value}: EINVAL: {limits}", knob.name());
                assert!(refusal.starts_with(&begins), "{refusal}");
            }
            let (least, most) = limits.split_once(" to ").unwrap();
            for value in [least, most] {
                write_knob(&mut poller, knob, value.parse().unwrap()).unwrap();
            }
            write_knob(&mut poller, Knob::BurstMax, 400).unwrap();
        }
        let refusal = write_knob(&mut poller, Knob::Phase, 0).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "kern.polling.phase=0: EPERM: it can only be read"
        );
    }
}
