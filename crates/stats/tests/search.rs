//! The search for the highest load, on simulated hosts whose true rate is known.

#[path = "../examples/search_hosts/hosts.rs"]
mod hosts;

use hosts::{HOSTS, Host, Totals, search_all};
use nicpoll_model::SearchGoal;
use nicpoll_stats::search::{
    LoadClass, NDR, NextTrial, PDR, RFC_2544, Search, TrialLoss, classify,
};

/// Checks that the bounds hold the true rate as often as the rule allows, within three standard deviations.
fn holds_as_often_as_stated(all: &Totals) {
    for (held, certain) in all.held.iter().zip(&all.certain) {
        let share = certain / HOSTS as f64;
        let deviation = (HOSTS as f64 * share * (1.0 - share)).sqrt();
        assert!(f64::from(*held) >= certain - 3.0 * deviation, "{all:?}");
    }
}

/// The limits are what the reference implementation took on the same hosts: docs/search.md.
#[test]
fn noisy_hosts_are_searched_as_surely_as_the_rule_allows_and_in_no_more_trials_than_the_reference()
{
    let all = search_all(&[NDR, PDR], false);
    holds_as_often_as_stated(&all);
    assert!(all.inverted > 100, "the hosts are too simple: {all:?}");
    assert!(all.miss < 0.02, "{all:?}");
    assert!(all.trials <= 10_654 && all.seconds <= 10_654.0, "{all:?}");
}

#[test]
fn quiet_hosts_are_searched_without_a_miss_and_in_no_more_trials_than_the_reference() {
    let all = search_all(&[NDR, PDR], true);
    assert_eq!(all.held, [200, 200], "{all:?}");
    assert!(all.trials <= 7000 && all.seconds <= 7000.0, "{all:?}");
    // Queues make short trials look better than those of 60 s.
    let all = search_all(&[RFC_2544], true);
    assert_eq!(all.held, [200], "{all:?}");
    assert!(all.trials <= 1536 && all.seconds <= 28_438.0, "{all:?}");
}

fn trials(of: &[(u32, f64, f64)]) -> Vec<TrialLoss> {
    let each = of.iter().flat_map(|(times, seconds, loss_ratio)| {
        let trial = TrialLoss {
            seconds: *seconds,
            loss_ratio: *loss_ratio,
        };
        std::iter::repeat_n(trial, *times as usize)
    });
    each.collect()
}

#[test]
fn a_load_is_classified_as_soon_as_no_trial_could_change_it() {
    use LoadClass::{LowerBound, Undecided, UpperBound};
    for (goal, of, class) in [
        (NDR, &[][..], Undecided),
        (NDR, &[(10, 1.0, 0.0)], Undecided),
        (NDR, &[(11, 1.0, 0.0)], LowerBound),
        (NDR, &[(11, 1.0, 0.0), (10, 1.0, 0.1)], LowerBound),
        (NDR, &[(10, 1.0, 0.0), (10, 1.0, 0.1)], Undecided),
        (NDR, &[(11, 1.0, 0.001)], UpperBound),
        (PDR, &[(11, 1.0, 0.001)], LowerBound),
        // Good trials that are too short decide nothing; bad ones do, where none may be bad.
        (RFC_2544, &[(100, 1.0, 0.0)], Undecided),
        (RFC_2544, &[(1, 1.0, 0.001)], UpperBound),
        (RFC_2544, &[(1, 60.0, 0.0)], LowerBound),
        (RFC_2544, &[(1, 60.0, 0.0), (1, 1.0, 0.001)], UpperBound),
        // Short good trials make up for short bad ones.
        (short(), &[(10, 0.5, 0.0), (10, 0.5, 0.1)], Undecided),
        (short(), &[(2, 0.5, 0.0), (50, 0.5, 0.1)], UpperBound),
    ] {
        assert_eq!(classify(&goal, &trials(of)), class, "{of:?}");
    }
}

/// A goal whose first trials are half as long.
fn short() -> SearchGoal {
    SearchGoal {
        initial_trial_seconds: 0.5,
        ..NDR
    }
}

/// Searches a sender that offers up to a rate, in front of a host that holds everything.
fn search_sender(offers: f64) -> (Search, u32) {
    let mut search = Search::new(vec![NDR, PDR], 20..=100_000_000);
    let mut voids = 0;
    while let Some(next) = search.next_trial() {
        let offered = offers.min(next.load as f64);
        voids += u32::from(!search.add(next, offered, 0.0));
        assert!(voids < 50);
    }
    (search, voids)
}

#[test]
fn what_the_sender_cannot_offer_is_its_limit_and_no_bound() {
    let (search, voids) = search_sender(350_000.0);
    let limit = search.limit().unwrap();
    assert_eq!(limit.offered_per_second, 350_000.0);
    assert!(
        (350_000..360_000).contains(&limit.asked_per_second)
            || limit.asked_per_second == 100_000_000,
        "{limit:?}"
    );
    assert!(voids > 0);
    for bounds in search.bounds() {
        assert!(bounds.is_finished);
        assert_eq!(bounds.upper_per_second, None);
        let lower = bounds.lower_per_second.unwrap() as f64;
        assert!((0.98..=1.0).contains(&(lower / 350_000.0)), "{bounds:?}");
        assert_eq!(bounds.conditional_throughput_per_second, Some(lower));
    }
    // A moment's disturbance is no limit.
    let mut search = Search::new(vec![NDR], 20..=1000);
    let next = search.next_trial().unwrap();
    for _ in 0..10 {
        assert!(!search.add(next, 950.0, 0.0) && !search.add(next, 950.0, 0.0));
        assert!(search.add(next, 1000.0, 0.0));
    }
    assert_eq!(search.limit(), None);
    // A sender that offers nothing ends the search without a bound.
    let (search, _) = search_sender(10.0);
    assert!(
        search
            .bounds()
            .iter()
            .all(|it| !it.is_finished && it.lower_per_second.is_none())
    );
}

#[test]
fn where_nothing_is_held_there_is_no_lower_bound() {
    let mut search = Search::new(vec![NDR], 20..=10_000);
    let mut last = NextTrial {
        load: 0,
        seconds: 0.0,
    };
    while let Some(next) = search.next_trial() {
        search.add(next, next.load as f64, 0.5);
        last = next;
    }
    let [bounds] = search.bounds()[..] else {
        panic!("one goal")
    };
    assert_eq!(
        (bounds.lower_per_second, bounds.upper_per_second),
        (None, Some(20))
    );
    assert!(bounds.is_finished && last.load == 20);
}

#[test]
fn the_same_seed_makes_the_same_host() {
    let [one, other] = [Host::drawn(7, false), Host::drawn(7, false)];
    assert_eq!((one.knee, one.line), (other.knee, other.line));
}
