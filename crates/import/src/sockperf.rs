//! What `sockperf throughput` prints: the bandwidth of its sender.
//!
//! What must hold: sockperf counts megabits of 2^20 bits, and only what was sent.

use nicpoll_model::FileError;

use crate::{Quantity, Run, error, rate};

const BANDWIDTH: &str = "BandWidth is ";
/// sockperf's "Mbps": src/client.cpp divides by 1024 twice.
const BITS_PER_MEGABIT: f64 = 1_048_576.0;

/// Whether it is a summary of sockperf's.
pub fn looks_so(text: &str) -> bool {
    text.contains("sockperf: ")
}

/// The bandwidth of each summary.
pub fn parse(text: &str) -> Result<Vec<Run>, FileError> {
    let mut runs = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some((_, rest)) = line.split_once(BANDWIDTH) else {
            continue;
        };
        let megabits = rest
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(" Mbps"))
            .and_then(|(number, _)| rate(number));
        let Some(megabits) = megabits else {
            let message = "after 'BandWidth is' comes a number of Mbps in brackets";
            return Err(error(index + 1, message));
        };
        let mut run = Run::new(index + 1, Quantity::BitsPerSecond);
        run.value = Some(BITS_PER_MEGABIT * megabits);
        run.is_sent = true;
        runs.push(run);
    }
    if runs.is_empty() {
        let message =
            "there is no line 'BandWidth is' in this text; sockperf throughput prints one";
        return Err(error(1, message));
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bandwidth_is_what_was_sent() {
        let text = "sockperf: Total of 312345 messages sent in 1.100 sec\n\
            sockperf: Summary: Message Rate is 283950 [msg/sec]\n\
            sockperf: Summary: BandWidth is 3.791 MBps (30.330 Mbps)\n";
        let runs = parse(text).unwrap();
        assert_eq!(runs[0].value, Some(30.330 * 1_048_576.0));
        assert_eq!((runs[0].line, runs[0].is_sent), (3, true));
        let latency = "sockperf: Summary: Latency is 12.3 usec\n";
        assert!(parse(latency).unwrap_err().message.contains("throughput"));
        assert!(parse("sockperf: BandWidth is x\n").is_err());
    }
}
