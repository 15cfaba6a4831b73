//! Compares two settings that alternate, block by block: the values drift, the difference does not.
//!
//! ```console
//! $ cargo run -p nicpoll-stats --example paired_blocks
//! ```

use std::error::Error;

use nicpoll_stats::{Confidence, Pair, hodges_lehmann, log_differences, signed_rank_interval};

/// Mbit/s with and without, by block: the machine became slower and slower.
const BLOCKS: [(f64, f64); 9] = [
    (947.0, 901.0),
    (921.0, 874.0),
    (899.0, 861.0),
    (884.0, 838.0),
    (851.0, 812.0),
    (840.0, 797.0),
    (806.0, 768.0),
    (795.0, 752.0),
    (771.0, 739.0),
];

fn main() -> Result<(), Box<dyn Error>> {
    let pairs = BLOCKS.map(|(with, without)| Pair::measured(with, without));
    let differences = log_differences(&pairs)?;
    let interval = signed_rank_interval(&differences, Confidence::PERCENT_95)?;
    let estimate = hodges_lehmann(&differences).ok_or("there are no blocks")?;
    println!(
        "{:.3} times as fast, 95 % interval {:.3} to {:.3}, {} blocks",
        estimate.exp(),
        interval.low.exp(),
        interval.high.exp(),
        interval.blocks
    );
    Ok(())
}
