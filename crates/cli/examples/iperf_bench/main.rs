//! The traffic commands against the originals: one run, interleaved, medians of five, in namespaces joined by a veth
//! pair, sender on one core and receiver on the next.
//!
//! As root, with iperf and iperf3 installed:
//!
//! ```console
//! # cargo build --release && cargo run --release -p nicpoll --example iperf_bench
//! ```
//!
//! Each row names our command and the peers'. Payload is read into user space at every end, and the link carries
//! single datagrams: its received frames are compared with the datagrams. On a shared machine the medians move by a
//! tenth from run to run: read the ratios.

mod contest;
mod figures;
#[path = "../peers/mod.rs"]
mod peers;
mod rows;

use anyhow::Result;
use nicpoll_lab::Veth;

use contest::{Contest, Row};

fn main() -> Result<()> {
    let veth = Veth::build()?;
    veth.cut_batches()?;
    for row in rows::ROWS {
        print(row, &Contest::hold(&veth, row)?);
    }
    Ok(())
}

fn print(row: &Row, contest: &Contest) {
    println!("{}", row.title);
    for (contender, result) in row.contenders.iter().zip(&contest.results) {
        let spread: Vec<String> = result.figures.iter().map(|x| format!("{x:.4}")).collect();
        let loss = match result.loss {
            Some(loss) => format!("{:.2} % lost", 100.0 * loss),
            None => String::new(),
        };
        println!(
            "  {:20} {:>12.4}  ours/this {:>5.2}  {loss:12} ({})",
            contender.name,
            result.median,
            contest.results[0].median / result.median,
            spread.join(" "),
        );
        println!("      {} | {}", contender.server, contender.client);
    }
    for (target, reached) in row.targets.iter().zip(&contest.reached) {
        let verdict = if target.is_met_by(*reached) {
            "met"
        } else {
            "missed"
        };
        println!("  {target}: {reached:.2}, {verdict}");
    }
}
