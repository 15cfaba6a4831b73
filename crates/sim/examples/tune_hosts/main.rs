//! Tunes 200 simulated hosts for each goal, and says how often the choice is within 5 % of the best, and what that
//! took (docs/tune.md). A release build takes seven minutes of CPU time.

mod hosts;

use hosts::{GOALS, tune_all};

/// The hosts of `sim/` around whose costs others are drawn.
const AROUND: [&str; 8] = [
    "asa633",
    "linux",
    "marketdata",
    "net6501",
    "node",
    "poweredge",
    "t5000",
    "wrap",
];

fn main() {
    for (goal, totals) in GOALS.iter().zip(tune_all(&AROUND, 0..200)) {
        println!("{goal:?}: {totals:?}");
    }
}
