//! FreeBSD's kern.polling variables, read off Linux.
//!
//! What must hold: a value was seen during the look or is set; what has no counterpart says so by its name.

use nicpoll_core::Knob;
use nicpoll_model::{NapiShow, PollingVariable, ValueSource};
use nicpoll_observe::PollRhythm;

use super::evidence::{THREADED_BUSY_POLL, is_timed};

/// A variable under `kern.polling`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// `enable`, which older releases have.
    Enable,
    /// Ticks a second: the original polls at the clock's own rate, `kern.hz`.
    Hz,
    /// One of the original's own.
    Knob(Knob),
}

impl Variable {
    /// All, in the order in which they are shown.
    pub fn all() -> impl Iterator<Item = Variable> {
        let knobs = Knob::ALL.iter().map(|knob| Variable::Knob(*knob));
        [Variable::Enable, Variable::Hz].into_iter().chain(knobs)
    }

    /// Its name, without `kern.polling.` before it.
    pub fn name(self) -> &'static str {
        match self {
            Variable::Enable => "enable",
            Variable::Hz => "hz",
            Variable::Knob(knob) => knob.name(),
        }
    }

    /// The variable of a name, with or without `kern.polling.` before it; `kern.hz` too.
    pub fn from_name(name: &str) -> Option<Variable> {
        let name = match name {
            "kern.hz" => "hz",
            _ => name.strip_prefix("kern.polling.").unwrap_or(name),
        };
        Variable::all().find(|variable| variable.name() == name)
    }
}

/// What the variables of one interface are read off.
pub struct Sources<'a> {
    /// Its NAPI instances; `None` when they cannot be listed.
    pub napis: Option<&'a [NapiShow]>,
    /// What all of them did; `None` when nobody looked.
    pub rhythm: Option<&'a PollRhythm>,
    /// Slots of one receive ring.
    pub ring_slots: Option<u32>,
}

/// A value, where it comes from, and what stands for it.
type Reading = (Option<f64>, ValueSource, &'static str);

/// What a value says that takes a look, when there was none.
pub const NOT_WATCHED: &str = "polls were not watched";
const NOT_LOOKED: Reading = missing(NOT_WATCHED);
const NO_LIST: Reading = missing("the NAPI instances cannot be listed");
const NO_TIMER: Reading = missing("no timer is set to hold rounds against");

const fn missing(why: &'static str) -> Reading {
    (None, ValueSource::None, why)
}

fn set(value: u64, note: &'static str) -> Reading {
    (Some(value as f64), ValueSource::Set, note)
}

fn measured(value: f64, note: &'static str) -> Reading {
    (Some(value), ValueSource::Measured, note)
}

/// Reads all variables.
pub fn read_all(sources: &Sources) -> Vec<PollingVariable> {
    let read = |variable| {
        let (value, source, note) = read(variable, sources);
        PollingVariable {
            name: String::from(Variable::name(variable)),
            value,
            source,
            note: String::from(note),
        }
    };
    Variable::all().map(read).collect()
}

fn read(variable: Variable, sources: &Sources) -> Reading {
    match variable {
        Variable::Enable => enable(sources),
        Variable::Hz => hz(sources),
        Variable::Knob(knob) => match knob {
            Knob::Handlers => handlers(sources),
            Knob::BurstMax => match sources.ring_slots {
                Some(slots) => set(slots.into(), "slots of a receive ring"),
                None => missing("the driver does not tell its rings' size"),
            },
            Knob::IdlePoll => idle_poll(sources),
            Knob::IdlepollSleeping => idlepoll_sleeping(sources),
            Knob::Burst | Knob::EachBurst | Knob::ResidualBurst => of_polls(knob, sources),
            Knob::ShortTicks | Knob::LostPolls | Knob::PendingPolls | Knob::Stalled => {
                of_gaps(knob, sources)
            }
            Knob::UserFrac => missing("no counterpart (SCHED_DEADLINE on its thread)"),
            Knob::RegFrac => missing("no counterpart: drivers watch their links"),
            Knob::Phase => missing("not exported; see the discipline"),
            Knob::Suspect => missing("no counterpart: the timer begins rounds itself"),
        },
    }
}

fn is_handler(napi: &NapiShow) -> bool {
    is_timed(napi.defer_hard_irqs, napi.gro_flush_timeout_ns)
}

fn enable(sources: &Sources) -> Reading {
    sources.napis.map_or(NO_LIST, |napis| {
        let all = !napis.is_empty() && napis.iter().all(is_handler);
        set(all.into(), "1 when a timer is set to poll all of it")
    })
}

fn handlers(sources: &Sources) -> Reading {
    sources.napis.map_or(NO_LIST, |napis| {
        let polled = napis.iter().filter(|napi| is_handler(napi)).count();
        set(polled as u64, "NAPI instances that a timer is set to poll")
    })
}

fn hz(sources: &Sources) -> Reading {
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

fn idle_poll(sources: &Sources) -> Reading {
    let Some(napis) = sources.napis else {
        return NO_LIST;
    };
    if napis.iter().any(|napi| napi.threaded.is_none()) {
        return missing("this kernel does not tell (Linux 6.17 does)");
    }
    let spins = |napi: &NapiShow| napi.threaded == Some(THREADED_BUSY_POLL);
    set(
        napis.iter().any(spins).into(),
        "1 when a thread polls without end",
    )
}

fn idlepoll_sleeping(sources: &Sources) -> Reading {
    let threads = sources.napis.into_iter().flatten();
    let mut threads = threads.filter_map(|napi| napi.thread.as_ref()).peekable();
    if threads.peek().is_none() {
        return missing("no kernel thread polls");
    }
    let sleeps = threads.all(|thread| thread.state != 'R');
    measured(u8::from(sleeps).into(), "1 when no polling thread runs")
}

fn of_polls(knob: Knob, sources: &Sources) -> Reading {
    let Some(rhythm) = sources.rhythm else {
        return NOT_LOOKED;
    };
    match (knob, rhythm.budget) {
        (Knob::ResidualBurst, _) => {
            measured(rhythm.full_polls as f64, "polls that used up their budget")
        }
        (Knob::EachBurst, Some(budget)) => measured(budget.into(), "budget of a poll"),
        (Knob::Burst, _) if rhythm.rounds > 0 => measured(
            rhythm.frames as f64 / rhythm.rounds as f64,
            "packets a round, mean",
        ),
        _ => missing("it did not poll"),
    }
}

fn of_gaps(knob: Knob, sources: &Sources) -> Reading {
    let Some(napis) = sources.napis else {
        return NO_LIST;
    };
    let Some(rhythm) = sources.rhythm else {
        return NOT_LOOKED;
    };
    if !napis.iter().any(is_handler) {
        return NO_TIMER;
    }
    let (count, note) = match knob {
        Knob::ShortTicks => (rhythm.short_gaps, "rounds under half a timeout apart"),
        Knob::LostPolls => (rhythm.long_gaps, "rounds over two timeouts apart"),
        Knob::PendingPolls => (
            rhythm.missed_periods,
            "timeouts that passed without a round",
        ),
        _ => (rhythm.stalls, "no round came for a hundred timeouts"),
    };
    measured(count as f64, note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::evidence::{Values, by_setting};

    fn napi(defer_hard_irqs: u32, threaded: Option<u32>) -> NapiShow {
        let values = Values {
            defer_hard_irqs,
            gro_flush_timeout_ns: 1_000_000,
            irq_suspend_timeout_ns: None,
            threaded,
        };
        NapiShow {
            id: 8193,
            irq: None,
            rx_queues: Vec::new(),
            defer_hard_irqs,
            gro_flush_timeout_ns: values.gro_flush_timeout_ns,
            irq_suspend_timeout_ns: None,
            threaded,
            thread: None,
            setting: by_setting(values),
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
        let name = |text| Variable::from_name(text).map(Variable::name);
        assert_eq!(name("kern.polling.hz"), Some("hz"));
        assert_eq!(name("kern.hz"), Some("hz"));
        assert_eq!(name("lost_polls"), Some("lost_polls"));
        assert_eq!(name("kern.polling.burst_max"), Some("burst_max"));
        assert_eq!(name("kern.polling"), None);
        assert_eq!(Variable::all().count(), Knob::ALL.len() + 2);
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
