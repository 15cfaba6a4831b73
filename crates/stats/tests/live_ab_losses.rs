//! How often a live comparison ends by chance, and how soon it ends under a setting that loses three times as much,
//! over many simulated runs with losses in bursts.
//!
//! Seeds are fixed: these tests give the same result every time. docs/method-evidence.md has the table that they
//! print.

mod draws;

use draws::uniform;
use nicpoll_stats::ab::{BLOCK_SECONDS, LossLimit, Losses};
use nicpoll_stats::order::{Pcg64, Seed};

const RUNS: u32 = 1_000;
const PAIRS: u32 = 30;
const FACTOR: f64 = 2.0;
const PACKETS_PER_SECOND: f64 = 20_000.0;

/// Where and how packets are lost.
#[derive(Clone, Copy, Debug)]
struct World {
    name: &'static str,
    /// Bursts of losses a second, and packets lost in each on average.
    bursts_per_second: f64,
    burst: f64,
    /// Factor on the rate of bursts under both settings, from half of the run on.
    worsens: f64,
}

const fn world(name: &'static str, bursts_per_second: f64, burst: f64) -> World {
    World {
        name,
        bursts_per_second,
        burst,
        worsens: 1.0,
    }
}

const WORLDS: [World; 7] = [
    world("no losses", 0.0, 0.0),
    world("a burst of 60 in 20 s", 0.05, 60.0),
    world("a burst of 60 in 3 s", 0.33, 60.0),
    world("3 bursts of 60 a second", 3.0, 60.0),
    world("a burst of 200 in 5 s", 0.2, 200.0),
    world("single losses, 100 a second", 100.0, 1.0),
    World {
        worsens: 4.0,
        ..world("a burst of 60 a second, 4 from half way on", 1.0, 60.0)
    },
];

/// A block, with the times and sizes of its bursts.
struct Block {
    losses: Losses,
    bursts: Vec<(f64, f64)>,
}

/// Draws the losses of a block: bursts at random times, of exponential sizes.
fn block(world: &World, bursts_per_second: f64, generator: &mut Pcg64) -> Block {
    let [shortest, longest] = BLOCK_SECONDS;
    let seconds = shortest + (longest - shortest) * uniform(generator);
    let (mut at, mut bursts) = (0.0, Vec::new());
    loop {
        at -= uniform(generator).ln() / bursts_per_second;
        if at >= seconds {
            break;
        }
        let size = match world.burst {
            1.0 => 1.0,
            mean => (-uniform(generator).ln() * mean).ceil(),
        };
        bursts.push((at, size));
    }
    Block {
        losses: Losses {
            seconds,
            lost: bursts.iter().map(|(_, size)| size).sum(),
            packets: PACKETS_PER_SECOND * seconds,
        },
        bursts,
    }
}

/// The rule that one block ends a run at any of five looks a second: more than twice the rate of the first stretch,
/// and more than 100 packets or 0.5 % of those so far.
fn is_over_alone(first: &Losses, block: &Block) -> bool {
    let [_, longest] = BLOCK_SECONDS;
    let usual = (first.lost / first.seconds * longest).max(50.0);
    let mut lost = 0.0;
    block.bursts.iter().any(|(at, size)| {
        lost += size;
        let packets = (at / 0.2).ceil() * 0.2 * PACKETS_PER_SECOND;
        lost > FACTOR * usual.max(0.0025 * packets)
    })
}

/// Returns the pair that ends a run, and whether single blocks would have ended it.
fn run(world: &World, judged_factor: f64, seed: u64) -> (Option<u32>, bool) {
    let mut generator = Seed(seed).generator();
    let [shortest, longest] = BLOCK_SECONDS;
    let mut first = block(world, world.bursts_per_second, &mut generator).losses;
    let share = shortest / first.seconds;
    first = Losses {
        seconds: shortest,
        lost: (first.lost * share).round(),
        packets: first.packets * share,
    };
    let mut limit = LossLimit::new(FACTOR, longest, first);
    let mut is_over = false;
    for pair in 1..=PAIRS {
        let worsens = if pair > PAIRS / 2 { world.worsens } else { 1.0 };
        let usual = world.bursts_per_second * worsens;
        let reference = block(world, usual, &mut generator);
        let judged = block(world, usual * judged_factor, &mut generator);
        is_over |= is_over_alone(&first, &reference) || is_over_alone(&first, &judged);
        let at_once = [&reference, &judged]
            .iter()
            .any(|one| limit.at_once(&one.losses).is_some());
        if at_once || limit.pair(reference.losses, judged.losses).is_some() {
            return (Some(pair), is_over);
        }
    }
    (None, is_over)
}

/// Returns the share of runs that are ended, the same under the rule of single blocks, and the mean pair that ended
/// them.
fn ended(world: &World, judged_factor: f64) -> [f64; 3] {
    let (mut ended, mut alone, mut pairs) = (0, 0, 0);
    for seed in 0..RUNS {
        let (pair, is_over) = run(world, judged_factor, u64::from(seed));
        ended += u32::from(pair.is_some());
        pairs += pair.unwrap_or_default();
        alone += u32::from(is_over);
    }
    let share = |count: u32| f64::from(count) / f64::from(RUNS);
    let found = [
        share(ended),
        share(alone),
        f64::from(pairs) / f64::from(ended.max(1)),
    ];
    println!("{} x {judged_factor}: {found:.3?}", world.name);
    found
}

#[test]
fn chance_ends_hardly_any_run() {
    for world in &WORLDS {
        let [by_chance, ..] = ended(world, 1.0);
        assert!(by_chance <= 0.01, "{world:?}: {by_chance}");
    }
    let [_, alone, _] = ended(&WORLDS[2], 1.0);
    assert!(alone > 0.5, "{alone}");
}

#[test]
fn a_setting_that_loses_several_times_as_much_is_found_out() {
    for (index, world) in WORLDS.iter().enumerate() {
        let [thrice, six, twenty] = [3.0, 6.0, 20.0].map(|factor| ended(world, factor));
        let is_within = |[found, _, pairs]: [f64; 3], most: f64| found > 0.95 && pairs < most;
        // Less than 0.5 % is allowed.
        if index >= 2 {
            assert!(is_within(six, 11.0), "{world:?}: {six:?}");
            assert!(is_within(twenty, 3.0), "{world:?}: {twenty:?}");
        }
        if [3, 5].contains(&index) {
            assert!(is_within(thrice, 12.0), "{world:?}: {thrice:?}");
        }
    }
}

#[test]
fn without_usual_losses_a_few_are_never_too_many_and_a_hundredth_is() {
    let lossy = |share: f64, seed: u64| {
        let mut generator = Seed(seed).generator();
        let none = |generator: &mut Pcg64| block(&WORLDS[0], 0.0, generator).losses;
        let mut limit = LossLimit::new(FACTOR, BLOCK_SECONDS[1], none(&mut generator));
        (1..=PAIRS).find(|_| {
            let reference = none(&mut generator);
            let judged = none(&mut generator);
            let lost = (share * judged.packets).round();
            let judged = Losses { lost, ..judged };
            limit.at_once(&judged).is_some() || limit.pair(reference, judged).is_some()
        })
    };
    assert_eq!(lossy(0.004, 1), None);
    assert_eq!(lossy(0.01, 1), Some(2));
    assert_eq!(lossy(0.1, 1), Some(1));
}
