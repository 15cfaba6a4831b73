//! FreeBSD's kern.polling variables, derived from Linux.
//!
//! A value is measured during the look or is a setting. A variable without a counterpart says so.

use nicpoll_model::{NapiShow, PollingVariable, ValueSource};
use nicpoll_observe::PollRhythm;

use crate::discipline::{THREADED_BUSY_POLL, is_timed};
use crate::error::InspectError;

/// A variable's name without the prefix `kern.polling.`, and how it is derived.
type NamedVariable = (&'static str, fn(&Sources) -> VariableRow);

/// All variables in order of display: `enable`, which older releases have, the tick rate, which is `kern.hz` in
/// FreeBSD, and FreeBSD's knobs.
const VARIABLES: [NamedVariable; 17] = [
    ("enable", enable),
    ("hz", hz),
    ("burst", burst),
    ("burst_max", burst_max),
    ("each_burst", each_burst),
    ("idle_poll", idle_poll),
    ("user_frac", |_| {
        missing("no counterpart (SCHED_DEADLINE on its thread)")
    }),
    ("reg_frac", |_| {
        missing("no counterpart: drivers watch their links")
    }),
    ("short_ticks", |sources| {
        let note = "rounds under half a timeout apart";
        of_gaps(sources, |rhythm| rhythm.short_gaps, note)
    }),
    ("lost_polls", |sources| {
        let note = "rounds over two timeouts apart";
        of_gaps(sources, |rhythm| rhythm.long_gaps, note)
    }),
    ("pending_polls", |sources| {
        let note = "timeouts that passed without a round";
        of_gaps(sources, |rhythm| rhythm.missed_periods, note)
    }),
    ("residual_burst", residual_burst),
    ("handlers", handlers),
    ("phase", |_| missing("not exported; see the discipline")),
    ("suspect", |_| {
        missing("no counterpart: the timer begins rounds itself")
    }),
    ("stalled", |sources| {
        let note = "no round came for a hundred timeouts";
        of_gaps(sources, |rhythm| rhythm.stalls, note)
    }),
    ("idlepoll_sleeping", idlepoll_sleeping),
];

/// Returns the names of all variables, without the prefix `kern.polling.`.
pub fn variable_names() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().map(|(name, _)| *name)
}

/// Finds a variable by its name with or without the prefix `kern.polling.`, or by `kern.hz`.
pub fn variable_name(name: &str) -> Option<&'static str> {
    let name = match name {
        "kern.hz" => "hz",
        _ => name.strip_prefix("kern.polling.").unwrap_or(name),
    };
    variable_names().find(|known| *known == name)
}

/// The name of the whole tree.
const TREE: &str = "kern.polling";

/// Requested variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedVariables {
    /// Their names as `show -n` prints them.
    pub names: Vec<&'static str>,
    /// Whether all were requested, by the name of the tree.
    pub is_tree: bool,
}

/// Parses requested names; `None` without names.
///
/// # Errors
/// When a name is not that of a variable.
pub fn asked_variables(names: &[String]) -> Result<Option<AskedVariables>, InspectError> {
    if names.iter().any(|name| name.trim_end_matches('.') == TREE) {
        return Ok(Some(AskedVariables {
            names: variable_names().collect(),
            is_tree: true,
        }));
    }
    let find = |name: &String| {
        variable_name(name).ok_or_else(|| {
            let known: Vec<&str> = variable_names().collect();
            let known = known.join(", ");
            InspectError::Failed(format!(
                "there is no variable '{name}'; under kern.polling there are: {known}"
            ))
        })
    };
    let names: Vec<&'static str> = names.iter().map(find).collect::<Result<_, _>>()?;
    Ok((!names.is_empty()).then_some(AskedVariables {
        names,
        is_tree: false,
    }))
}

/// The sources of an interface's variables.
pub struct Sources<'a> {
    /// Its NAPI instances; `None` when they cannot be listed.
    pub napis: Option<&'a [NapiShow]>,
    /// The polls of all instances; `None` if they were not watched.
    pub rhythm: Option<&'a PollRhythm>,
    /// Slots of one receive ring.
    pub ring_slots: Option<u32>,
}

/// A value, its source, and a note.
type VariableRow = (Option<f64>, ValueSource, &'static str);

/// The note of a value that needs a look when there was none.
pub const NOT_WATCHED: &str = "polls were not watched";
const NOT_LOOKED: VariableRow = missing(NOT_WATCHED);
const NO_LIST: VariableRow = missing("the NAPI instances cannot be listed");
const NO_POLL: VariableRow = missing("it did not poll");
const NO_TIMER: VariableRow = missing("no timer is set to compare rounds with");

const fn missing(why: &'static str) -> VariableRow {
    (None, ValueSource::None, why)
}

fn set(value: u64, note: &'static str) -> VariableRow {
    (Some(value as f64), ValueSource::Set, note)
}

fn measured(value: f64, note: &'static str) -> VariableRow {
    (Some(value), ValueSource::Measured, note)
}

/// Derives all variables.
pub fn read_all(sources: &Sources) -> Vec<PollingVariable> {
    let read = |(name, read): &NamedVariable| {
        let (value, source, note) = read(sources);
        PollingVariable {
            name: String::from(*name),
            value,
            source,
            note: String::from(note),
        }
    };
    VARIABLES.iter().map(read).collect()
}

fn is_handler(napi: &NapiShow) -> bool {
    is_timed(napi.defer_hard_irqs, napi.gro_flush_timeout_ns)
}

fn enable(sources: &Sources) -> VariableRow {
    sources.napis.map_or(NO_LIST, |napis| {
        let all = !napis.is_empty() && napis.iter().all(is_handler);
        set(all.into(), "1 when a timer is set to poll all of it")
    })
}

fn handlers(sources: &Sources) -> VariableRow {
    sources.napis.map_or(NO_LIST, |napis| {
        let polled = napis.iter().filter(|napi| is_handler(napi)).count();
        set(polled as u64, "NAPI instances that a timer is set to poll")
    })
}

fn hz(sources: &Sources) -> VariableRow {
    let Some(rhythm) = sources.rhythm else {
        return NOT_LOOKED;
    };
    match rhythm.median_gap_ns() {
        Some(gap) => measured(
            1e9 / gap as f64,
            "1 s over the median time between its rounds",
        ),
        None => missing("no round was begun by a timer"),
    }
}

fn idle_poll(sources: &Sources) -> VariableRow {
    let Some(napis) = sources.napis else {
        return NO_LIST;
    };
    if napis.iter().any(|napi| napi.threaded.is_none()) {
        return missing("this kernel does not report it (Linux 6.17 does)");
    }
    let spins = |napi: &NapiShow| napi.threaded == Some(THREADED_BUSY_POLL);
    set(
        napis.iter().any(spins).into(),
        "1 when a thread polls without end",
    )
}

fn idlepoll_sleeping(sources: &Sources) -> VariableRow {
    let threads = sources.napis.into_iter().flatten();
    let mut threads = threads.filter_map(|napi| napi.thread.as_ref()).peekable();
    if threads.peek().is_none() {
        return missing("no kernel thread polls");
    }
    let sleeps = threads.all(|thread| thread.state != 'R');
    measured(u8::from(sleeps).into(), "1 when no polling thread runs")
}

fn burst_max(sources: &Sources) -> VariableRow {
    match sources.ring_slots {
        Some(slots) => set(slots.into(), "slots of a receive ring"),
        None => missing("the driver does not report its ring size"),
    }
}

fn residual_burst(sources: &Sources) -> VariableRow {
    sources.rhythm.map_or(NOT_LOOKED, |rhythm| {
        measured(rhythm.full_polls as f64, "polls that used up their budget")
    })
}

fn each_burst(sources: &Sources) -> VariableRow {
    sources.rhythm.map_or(NOT_LOOKED, |rhythm| {
        let read = |budget: u32| measured(budget.into(), "budget of a poll");
        rhythm.budget.map_or(NO_POLL, read)
    })
}

fn burst(sources: &Sources) -> VariableRow {
    match sources.rhythm {
        None => NOT_LOOKED,
        Some(rhythm) if rhythm.rounds == 0 => NO_POLL,
        Some(rhythm) => measured(
            rhythm.frames as f64 / rhythm.rounds as f64,
            "packets a round, mean",
        ),
    }
}

fn of_gaps(sources: &Sources, read: fn(&PollRhythm) -> u64, note: &'static str) -> VariableRow {
    let Some(napis) = sources.napis else {
        return NO_LIST;
    };
    let Some(rhythm) = sources.rhythm else {
        return NOT_LOOKED;
    };
    if !napis.iter().any(is_handler) {
        return NO_TIMER;
    }
    measured(read(rhythm) as f64, note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::by_setting;
    use nicpoll_core::Knob;
    use nicpoll_switch::Napi;

    fn napi(defer_hard_irqs: u32, threaded: Option<u32>) -> NapiShow {
        NapiShow {
            id: 8193,
            irq: None,
            rx_queues: Vec::new(),
            defer_hard_irqs,
            gro_flush_timeout_ns: 1_000_000,
            irq_suspend_timeout_ns: None,
            threaded,
            thread: None,
            setting: by_setting(&Napi::default()),
            rhythm: None,
        }
    }

    fn value_of(name: &str, sources: &Sources) -> (Option<f64>, ValueSource) {
        let all = read_all(sources);
        let found = all.into_iter().find(|one| one.name == name).unwrap();
        assert!(!found.note.is_empty(), "{name}");
        assert_eq!(
            found.value.is_none(),
            found.source == ValueSource::None,
            "{name}"
        );
        (found.value, found.source)
    }

    #[test]
    fn names_are_found_with_and_without_their_prefix() {
        assert_eq!(variable_name("kern.polling.hz"), Some("hz"));
        assert_eq!(variable_name("kern.hz"), Some("hz"));
        assert_eq!(variable_name("lost_polls"), Some("lost_polls"));
        assert_eq!(variable_name("kern.polling.burst_max"), Some("burst_max"));
        assert_eq!(variable_name("kern.polling"), None);
        let ask = |name: &str| asked_variables(&[String::from(name)]);
        let tree = ask("kern.polling").unwrap().unwrap();
        assert!(tree.is_tree && tree.names.len() == VARIABLES.len());
        assert!(!ask("kern.polling.hz").unwrap().unwrap().is_tree);
        assert_eq!(asked_variables(&[]).unwrap(), None);
        let unknown = ask("kern.polling.brust").unwrap_err().to_string();
        assert!(unknown.contains("burst, burst_max"), "{unknown}");
    }

    #[test]
    fn every_knob_of_the_original_is_there_in_its_order() {
        let originals = Knob::ALL.iter().map(|knob| knob.name());
        let all: Vec<&str> = ["enable", "hz"].into_iter().chain(originals).collect();
        assert_eq!(variable_names().collect::<Vec<_>>(), all);
    }

    #[test]
    fn what_polls_did_is_told_by_the_originals_names() {
        let napis = [napi(100, Some(2)), napi(0, Some(0))];
        let rhythm = PollRhythm {
            polls: 30,
            frames: 800,
            full_polls: 10,
            rounds: 20,
            timer_rounds: 20,
            short_gaps: 1,
            long_gaps: 2,
            missed_periods: 5,
            budget: Some(64),
            gaps_ns: vec![(983_040, 19)],
            ..PollRhythm::default()
        };
        let sources = Sources {
            napis: Some(&napis),
            rhythm: Some(&rhythm),
            ring_slots: Some(256),
        };
        let measured = |value| (Some(value), ValueSource::Measured);
        let set = |value| (Some(value), ValueSource::Set);
        let (hz, _) = value_of("hz", &sources);
        assert!((hz.unwrap() / 1e3 - 1.0).abs() < 0.05, "{hz:?}");
        assert_eq!(value_of("enable", &sources), set(0.0));
        assert_eq!(value_of("handlers", &sources), set(1.0));
        assert_eq!(value_of("burst_max", &sources), set(256.0));
        assert_eq!(value_of("idle_poll", &sources), set(1.0));
        assert_eq!(value_of("burst", &sources), measured(40.0));
        assert_eq!(value_of("each_burst", &sources), measured(64.0));
        assert_eq!(value_of("residual_burst", &sources), measured(10.0));
        assert_eq!(value_of("short_ticks", &sources), measured(1.0));
        assert_eq!(value_of("lost_polls", &sources), measured(2.0));
        assert_eq!(value_of("pending_polls", &sources), measured(5.0));
        assert_eq!(value_of("stalled", &sources), measured(0.0));
        for none in [
            "user_frac",
            "reg_frac",
            "phase",
            "suspect",
            "idlepoll_sleeping",
        ] {
            assert_eq!(
                value_of(none, &sources),
                (None, ValueSource::None),
                "{none}"
            );
        }
    }

    #[test]
    fn what_was_not_seen_is_not_zero() {
        let sources = Sources {
            napis: Some(&[]),
            rhythm: None,
            ring_slots: None,
        };
        for name in ["hz", "burst", "lost_polls", "residual_burst", "burst_max"] {
            assert_eq!(value_of(name, &sources).0, None, "{name}");
        }
        assert_eq!(value_of("enable", &sources).0, Some(0.0));
        let unlisted = Sources {
            napis: None,
            ..sources
        };
        assert_eq!(value_of("handlers", &unlisted).0, None);
        let idle = PollRhythm::default();
        let sources = Sources {
            napis: Some(&[napi(0, None)]),
            rhythm: Some(&idle),
            ring_slots: None,
        };
        assert_eq!(value_of("short_ticks", &sources).0, None);
        assert_eq!(value_of("idle_poll", &sources).0, None);
        assert_eq!(value_of("residual_burst", &sources).0, Some(0.0));
        assert_eq!(value_of("burst", &sources).0, None);
    }
}
