//! The receive discipline of an interface, by its settings and by its observed polls.
//!
//! The evidence is what started each round of polls, never the settings.

use std::time::Duration;

use nicpoll_model::numbers::{count, duration_text, figure};
use nicpoll_model::{Discipline, Finding, NapiShow};
use nicpoll_observe::PollRhythm;
use nicpoll_switch::{LinkInfo, Napi, goes_by_backlog, is_stacked};

/// Share of rounds above which one cause is the discipline; below, it is hybrid.
const MOST: f64 = 0.9;
/// Share of rounds that find nothing above which something polls without end. A card that interrupts twice for a packet
/// (e1000e) has a half.
const SPINNING: f64 = 2.0 / 3.0;
/// A thread or program that polls without end begins more rounds than that in any look; a card at rest a few.
const SPINNING_ROUNDS: u64 = 100;
/// Deferral that outlasts this time without packets never gives way to interrupts in practice.
const LONG_IDLENESS: Duration = Duration::from_secs(1);
/// `NETDEV_NAPI_THREADED_BUSY_POLL`, include/uapi/linux/netdev.h.
pub const THREADED_BUSY_POLL: u32 = 2;

fn finding(discipline: Discipline, why: impl Into<String>) -> Finding {
    let why = why.into();
    Finding { discipline, why }
}

/// Whether a timer polls with these values.
pub fn is_timed(defer_hard_irqs: u32, gro_flush_timeout_ns: u64) -> bool {
    defer_hard_irqs > 0 && gro_flush_timeout_ns > 0
}

/// Returns the discipline of one instance by its settings.
pub fn by_setting(values: &Napi) -> Finding {
    let timeout_ns = values.gro_flush_timeout_ns.unwrap_or_default();
    let defer = values.defer_hard_irqs.unwrap_or_default();
    let (discipline, mut why) = if values.threaded == Some(THREADED_BUSY_POLL) {
        let why = "a kernel thread polls without end (threaded 2)";
        (Discipline::BusyPoll, String::from(why))
    } else if is_timed(defer, timeout_ns) {
        let idle_ns = u128::from(defer) * u128::from(timeout_ns);
        let timer = duration_text(timeout_ns);
        if idle_ns >= LONG_IDLENESS.as_nanos() {
            let why = format!("a timer polls {timer} after each round (defer-hard-irqs {defer})");
            (Discipline::Polling, why)
        } else {
            let idle = duration_text(idle_ns as u64);
            let why = format!(
                "a timer polls {timer} after each round; interrupts come back after {defer} empty polls, \
                 {idle}"
            );
            (Discipline::Hybrid, why)
        }
    } else {
        let why = match (defer, timeout_ns) {
            (0, 0) => String::from("nothing is deferred"),
            (0, _) => format!(
                "gro-flush-timeout {} without defer-hard-irqs only holds back packets to be joined",
                duration_text(timeout_ns)
            ),
            _ => format!("defer-hard-irqs {defer} without gro-flush-timeout does nothing"),
        };
        (Discipline::Interrupt, why)
    };
    if values.threaded == Some(1) {
        why.push_str("; a kernel thread does the polling");
    }
    if let Some(suspend @ 1..) = values.irq_suspend_timeout_ns {
        let suspend = duration_text(suspend);
        why.push_str(&format!(
            "; an application that polls may keep interrupts off for {suspend}"
        ));
    }
    finding(discipline, why)
}

/// Returns the discipline of an interface by the settings of all its instances.
pub fn by_settings(napis: &[NapiShow], link: &LinkInfo) -> Finding {
    let Some(first) = napis.first() else {
        return without_napi(link);
    };
    if napis.iter().all(|napi| napi.setting == first.setting) {
        return first.setting.clone();
    }
    let same = |napi: &NapiShow| napi.setting.discipline == first.setting.discipline;
    let discipline = match napis.iter().all(same) {
        true => first.setting.discipline,
        false => Discipline::Hybrid,
    };
    finding(discipline, "the NAPI instances have different values")
}

fn without_napi(link: &LinkInfo) -> Finding {
    let driver = link.interface.driver.as_str();
    match (link.is_up, goes_by_backlog(driver)) {
        (false, _) => finding(
            Discipline::Idle,
            "it is down, and has NAPI instances only while it is up",
        ),
        (true, true) => finding(
            Discipline::Backlog,
            "it has no receive NAPI instance (a veth has one with GRO on)",
        ),
        (true, false) => elsewhere(driver),
    }
}

/// The finding for an interface without queues or known interfaces below it.
fn elsewhere(driver: &str) -> Finding {
    let why = match driver {
        "tun" => String::from("a program writes its packets, which no timer can poll"),
        "wireguard" => String::from(
            "each packet that a wireguard has deciphered wakes a NAPI instance, whose polls no number tells apart",
        ),
        kind if is_stacked(kind) => {
            format!("a {kind} has no queue of its own, and nothing below it is in this namespace")
        }
        kind => format!("a {kind} has no receive NAPI instance that could be polled"),
    };
    finding(Discipline::Elsewhere, why)
}

/// Returns the discipline of an interface without queues: that of the interfaces below it, given by name.
pub fn of_lower(below: &[(&str, Option<&Finding>)]) -> Option<Finding> {
    let names: Vec<&str> = below.iter().map(|(name, _)| *name).collect();
    let first = below.first()?.1?;
    let arrive = |how: &str| format!("its packets arrive at {}{how}", names.join(", "));
    if let [_] = below {
        let how = format!(": {}", first.why);
        return Some(finding(first.discipline, arrive(&how)));
    }
    let all: Option<Vec<&Finding>> = below.iter().map(|(_, finding)| *finding).collect();
    let is_same = |one: &&Finding| one.discipline == first.discipline;
    if all?.iter().all(is_same) {
        let how = ", and each of them does so";
        return Some(finding(first.discipline, arrive(how)));
    }
    let each = below.iter().filter_map(|(name, finding)| {
        let discipline = finding.as_ref()?.discipline;
        Some(format!("{name} ({discipline})"))
    });
    let each: Vec<String> = each.collect();
    let why = format!("its packets arrive at {}", each.join(", "));
    Some(finding(Discipline::Elsewhere, why))
}

/// Returns the discipline by polls. `timeout_ns` is the timer's setting, 0 for none.
pub fn of_rhythm(rhythm: &PollRhythm, timeout_ns: u64) -> Finding {
    let (polls, rounds, timed) = (rhythm.polls, rhythm.rounds, rhythm.timer_rounds);
    if polls == 0 {
        return finding(Discipline::Idle, "it did not poll");
    }
    let share = |part: u64, whole: u64| part as f64 / whole as f64;
    let packets = format!("{} packets a poll", figure(share(rhythm.frames, polls)));
    if share(rhythm.foreign_polls, polls) > 1.0 - MOST {
        let own = count(rhythm.foreign_polls);
        let why = format!(
            "{own} of {} polls were made by applications, {packets}",
            count(polls)
        );
        let all = share(rhythm.foreign_polls, polls) >= MOST;
        let discipline = if all {
            Discipline::BusyPoll
        } else {
            Discipline::Hybrid
        };
        return finding(discipline, why);
    }
    if rounds == 0 {
        let why = format!(
            "{} polls used up their budget and no round ended",
            count(polls)
        );
        return finding(Discipline::Polling, why);
    }
    if rounds >= SPINNING_ROUNDS && share(rhythm.empty_rounds, rounds) > SPINNING {
        let why = format!(
            "{} of {} rounds were begun by no timer and found nothing",
            count(rhythm.empty_rounds),
            count(rounds)
        );
        return finding(Discipline::BusyPoll, why);
    }
    let by_timer = share(timed, rounds);
    let mut why = if timed == 0 {
        format!("no timer began any of {} rounds", count(rounds))
    } else {
        format!(
            "its timer began {} of {} rounds",
            count(timed),
            count(rounds)
        )
    };
    if let Some(gap) = rhythm.median_gap_ns() {
        why.push_str(&format!(", {} apart", duration_text(gap)));
        if timeout_ns > 0 {
            why.push_str(&format!(" (timeout {})", duration_text(timeout_ns)));
        }
    }
    why.push_str(&format!(", {packets}"));
    let discipline = if by_timer >= MOST {
        Discipline::Polling
    } else if by_timer <= 1.0 - MOST {
        Discipline::Interrupt
    } else {
        Discipline::Hybrid
    };
    finding(discipline, why)
}

/// Returns the discipline of an interface that did not poll.
pub fn without_polls(has_napi: bool, driver: &str, rx_packets_per_second: Option<f64>) -> Finding {
    if !has_napi && !goes_by_backlog(driver) {
        return elsewhere(driver);
    }
    let idle = |why| finding(Discipline::Idle, why);
    let rx_packets_per_second = match rx_packets_per_second {
        None => return idle("nothing polled; packets are not counted"),
        Some(0.0) => return idle("no packet came and nothing polled"),
        Some(rate) => rate,
    };
    let rate = figure(rx_packets_per_second);
    let why = if has_napi {
        format!("{rate} packets/s went past its NAPI instance, which did not poll")
    } else {
        format!("{rate} packets/s came without a NAPI instance")
    };
    finding(Discipline::Backlog, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(defer_hard_irqs: u32, gro_flush_timeout_ns: u64) -> Napi {
        Napi {
            defer_hard_irqs: Some(defer_hard_irqs),
            gro_flush_timeout_ns: Some(gro_flush_timeout_ns),
            ..Napi::default()
        }
    }

    #[test]
    fn settings_mean_what_the_kernel_makes_of_them() {
        let discipline = |defer, timeout| by_setting(&values(defer, timeout)).discipline;
        assert_eq!(discipline(0, 0), Discipline::Interrupt);
        assert_eq!(discipline(5, 0), Discipline::Interrupt);
        assert_eq!(discipline(0, 20_000), Discipline::Interrupt);
        assert_eq!(discipline(2, 200_000), Discipline::Hybrid);
        assert_eq!(discipline(i32::MAX as u32, 200_000), Discipline::Polling);
        let busy = by_setting(&Napi {
            threaded: Some(2),
            irq_suspend_timeout_ns: Some(20_000_000),
            ..values(0, 0)
        });
        assert_eq!(busy.discipline, Discipline::BusyPoll);
        assert!(busy.why.contains("20 ms"), "{}", busy.why);
    }

    fn rhythm(rounds: u64, timer_rounds: u64) -> PollRhythm {
        PollRhythm {
            polls: rounds,
            frames: 10 * rounds,
            rounds,
            timer_rounds,
            ..PollRhythm::default()
        }
    }

    #[test]
    fn what_began_the_rounds_decides() {
        let discipline = |rhythm: &PollRhythm| of_rhythm(rhythm, 0).discipline;
        assert_eq!(discipline(&rhythm(0, 0)), Discipline::Idle);
        assert_eq!(discipline(&rhythm(100, 0)), Discipline::Interrupt);
        assert_eq!(discipline(&rhythm(100, 9)), Discipline::Interrupt);
        assert_eq!(discipline(&rhythm(100, 50)), Discipline::Hybrid);
        assert_eq!(discipline(&rhythm(100, 95)), Discipline::Polling);
        let mut applications = rhythm(100, 0);
        applications.foreign_polls = 95;
        assert_eq!(discipline(&applications), Discipline::BusyPoll);
        applications.foreign_polls = 30;
        assert_eq!(discipline(&applications), Discipline::Hybrid);
        let mut spinning = rhythm(100, 0);
        spinning.empty_rounds = 99;
        assert_eq!(discipline(&spinning), Discipline::BusyPoll);
        spinning.empty_rounds = 52;
        assert_eq!(discipline(&spinning), Discipline::Interrupt);
        let mut at_rest = rhythm(3, 0);
        at_rest.empty_rounds = 3;
        assert_eq!(discipline(&at_rest), Discipline::Interrupt);
        let mut flooded = rhythm(0, 0);
        (flooded.polls, flooded.full_polls) = (100, 100);
        assert_eq!(discipline(&flooded), Discipline::Polling);
    }

    #[test]
    fn packets_without_polls_went_another_way() {
        assert_eq!(
            without_polls(false, "", Some(0.0)).discipline,
            Discipline::Idle
        );
        assert_eq!(
            without_polls(true, "", Some(5.0)).discipline,
            Discipline::Backlog
        );
        for (driver, is_up, wanted) in [
            ("", true, Discipline::Backlog),
            ("veth", true, Discipline::Backlog),
            ("veth", false, Discipline::Idle),
            ("tun", true, Discipline::Elsewhere),
            ("bridge", true, Discipline::Elsewhere),
            ("wireguard", true, Discipline::Elsewhere),
        ] {
            let mut link = LinkInfo::default();
            link.interface.driver = String::from(driver);
            link.is_up = is_up;
            let found = by_settings(&[], &link).discipline;
            assert_eq!(found, wanted, "{driver} {is_up}");
        }
    }

    #[test]
    fn what_has_no_queue_learns_as_those_below_it_do() {
        let finding = |discipline| Finding {
            discipline,
            why: String::from("its timer began 9 of 9 rounds"),
        };
        let (polling, interrupt) = (finding(Discipline::Polling), finding(Discipline::Interrupt));
        let one = of_lower(&[("em0", Some(&polling))]).unwrap();
        assert_eq!(one.discipline, Discipline::Polling);
        assert_eq!(
            one.why,
            "its packets arrive at em0: its timer began 9 of 9 rounds"
        );
        let both = of_lower(&[("em0", Some(&polling)), ("em1", Some(&polling))]).unwrap();
        assert_eq!(both.discipline, Discipline::Polling);
        let mixed = of_lower(&[("em0", Some(&polling)), ("em1", Some(&interrupt))]).unwrap();
        assert_eq!(mixed.discipline, Discipline::Elsewhere);
        assert_eq!(
            mixed.why,
            "its packets arrive at em0 (polling), em1 (interrupt)"
        );
        assert_eq!(of_lower(&[("em0", None)]), None);
    }
}
