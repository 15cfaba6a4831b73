//! The knobs under `kern.polling` as people write them: what the original refuses, and why.

use nicpoll_core::{Access, Knob, Poller};
use thiserror::Error;

/// Why there is no such knob, or why it was not written. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct KnobError(pub(crate) String);

/// Writes a knob as sysctl(8) does.
///
/// # Errors
/// `EINVAL` for a value out of range, `EPERM` for a knob that can only be read.
pub fn write_knob(poller: &mut Poller, knob: Knob, value: u32) -> Result<(), KnobError> {
    poller.write(knob, value).map_err(|errno| {
        let (name, why) = (knob.name(), possible(poller, knob));
        KnobError(format!("{TREE}{name}={value}: {errno}: {why}"))
    })
}

/// What is before the names.
pub(crate) const TREE: &str = "kern.polling.";

/// The knob of a name, with or without `kern.polling.` before it.
///
/// # Errors
/// When there is none.
pub fn parse_knob(name: &str) -> Result<Knob, KnobError> {
    let bare = name.strip_prefix(TREE).unwrap_or(name);
    Knob::from_name(bare).ok_or_else(|| {
        // Older releases had it.
        if bare == "enable" {
            return KnobError(String::from(
                "kern.polling.enable is deprecated; 'nicpoll set IF polling' and '-polling' switch an interface",
            ));
        }
        let known: Vec<_> = Knob::ALL.iter().map(|knob| knob.name()).collect();
        let known = known.join(", ");
        KnobError(format!("unknown oid '{TREE}{bare}'; there are {known}"))
    })
}

/// A knob and a value for it, `burst_max=1000`.
///
/// # Errors
/// When it has another form, or there is no such knob.
pub fn parse_knob_setting(text: &str) -> Result<(Knob, u32), KnobError> {
    let form = "NAME=VALUE was expected, such as burst_max=1000";
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| KnobError(form.to_owned()))?;
    let knob = parse_knob(name)?;
    let wrong = |_| KnobError(String::from("a whole number was expected as VALUE"));
    Ok((knob, value.parse().map_err(wrong)?))
}

/// The knob of a name that may be of one CPU: `cpu1.burst`. Without a CPU it is that of all.
///
/// # Errors
/// When there is no such knob.
pub(crate) fn parse_knob_of_cpu(name: &str) -> Result<(Option<u32>, Knob), KnobError> {
    let bare = name.strip_prefix(TREE).unwrap_or(name);
    let numbered = bare
        .strip_prefix("cpu")
        .and_then(|rest| rest.split_once('.'));
    match numbered.and_then(|(cpu, knob)| Some((cpu.parse().ok()?, knob))) {
        Some((cpu, knob)) => Ok((Some(cpu), parse_knob(knob)?)),
        None => Ok((None, parse_knob(bare)?)),
    }
}

/// One value for the knobs of all CPUs: counters add up, and so does what is per device. A setting is the same on all
/// unless one of them was written.
pub(crate) fn over_all_cpus(knob: Knob, values: &[u32]) -> u32 {
    let mut each = values.iter().copied();
    match knob {
        Knob::ShortTicks
        | Knob::LostPolls
        | Knob::PendingPolls
        | Knob::ResidualBurst
        | Knob::Handlers
        | Knob::Suspect
        | Knob::Stalled => each.fold(0, u32::wrapping_add),
        // All of them sleep.
        Knob::IdlepollSleeping => each.min().unwrap_or(0),
        Knob::Burst | Knob::Phase => each.max().unwrap_or(0),
        Knob::BurstMax | Knob::EachBurst | Knob::UserFrac | Knob::RegFrac | Knob::IdlePoll => {
            each.next().unwrap_or(0)
        }
    }
}

/// Whether a knob only ever counts up.
pub(crate) fn is_counter(knob: Knob) -> bool {
    matches!(
        knob,
        Knob::ShortTicks | Knob::LostPolls | Knob::Suspect | Knob::Stalled
    )
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
    fn a_name_may_be_of_one_cpu() {
        for (name, cpu, knob) in [
            ("burst", None, Knob::Burst),
            ("kern.polling.cpu1.burst", Some(1), Knob::Burst),
            ("cpu12.user_frac", Some(12), Knob::UserFrac),
        ] {
            assert_eq!(parse_knob_of_cpu(name), Ok((cpu, knob)));
        }
        for wrong in ["cpu.burst", "cpux.burst", "cpu1.speed", "cpu1"] {
            assert!(parse_knob_of_cpu(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counters_of_cpus_add_up_and_settings_do_not() {
        assert_eq!(over_all_cpus(Knob::LostPolls, &[3, 4]), 7);
        assert_eq!(over_all_cpus(Knob::UserFrac, &[50, 50]), 50);
        assert_eq!(over_all_cpus(Knob::IdlepollSleeping, &[1, 0]), 0);
        assert_eq!(over_all_cpus(Knob::Burst, &[5, 9]), 9);
    }

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
