//! What sockperf prints: `throughput` the bandwidth of its sender, `ping-pong` and `under-load` latencies.
//!
//! What must hold: sockperf counts megabits of 2^20 bits, and only what was sent. Its latency is half of a round trip
//! unless it was told `--full-rtt`; what is read are round trips.

use nicpoll_model::FileError;

use crate::{Quantity, ToolRun, error, rate};

const BANDWIDTH: &str = "BandWidth is ";
/// sockperf's "Mbps": src/client.cpp divides by 1024 twice.
const BITS_PER_MEGABIT: f64 = 1_048_576.0;
/// The summaries of `ping-pong`: of half a round trip, and of a whole one.
const LATENCIES: [(&str, f64); 2] = [("Latency is ", 2.0), ("Round trip is ", 1.0)];
/// The line that tells how many messages were answered in which time, without warm-up.
const VALID: &str = "[Valid Duration]";

/// Whether it is a summary of sockperf's.
pub fn looks_so(text: &str) -> bool {
    text.contains("sockperf: ")
}

/// The bandwidth of each summary, or the round trips of the only one.
pub fn parse(text: &str) -> Result<Vec<ToolRun>, FileError> {
    if let Some(run) = round_trips(text)? {
        return Ok(vec![run]);
    }
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
        let mut run = ToolRun::new(index + 1, Quantity::BitsPerSecond);
        run.value = Some(BITS_PER_MEGABIT * megabits);
        run.is_sent = true;
        runs.push(run);
    }
    if runs.is_empty() {
        let message = "there is no line 'BandWidth is' or 'Latency is' in this text; sockperf throughput and sockperf \
                       ping-pong print one";
        return Err(error(1, message));
    }
    Ok(runs)
}

/// The round trips of a summary; `None` when it tells of none.
fn round_trips(text: &str) -> Result<Option<ToolRun>, FileError> {
    let mut found = text.lines().enumerate().filter_map(|(index, line)| {
        let mut kinds = LATENCIES.iter();
        kinds.find_map(|(words, times)| Some((index, line.split_once(words)?.1, *times)))
    });
    let Some((index, rest, times)) = found.next() else {
        return Ok(None);
    };
    // Microseconds of sockperf's to nanoseconds of a round trip.
    let ns = |number: &str| rate(number.trim()).map(|us| 1e3 * times * us);
    let mean_ns = rest.split_whitespace().next().and_then(ns);
    let Some(mean_ns) = mean_ns else {
        return Err(error(
            index + 1,
            "after 'Latency is' comes a number of usec",
        ));
    };
    let after = |words: &str| {
        let line = text.lines().find(|line| line.contains(words))?;
        line.split_once('=').and_then(|(_, number)| ns(number))
    };
    let whole = |words: &str| after(words).map(|ns| ns as u64);
    let mut run = ToolRun::new(index + 1, Quantity::TransactionsPerSecond);
    run.value = answered_per_second(text);
    run.round_trip.mean_ns = Some(mean_ns);
    run.round_trip.min_ns = whole("<MIN> observation");
    run.round_trip.p50_ns = whole("percentile 50.000");
    run.round_trip.p99_ns = whole("percentile 99.000");
    run.round_trip.p999_ns = whole("percentile 99.900");
    run.round_trip.max_ns = whole("<MAX> observation");
    Ok(Some(run))
}

/// Answers a second of the part that counts: `RunTime=0.995 sec; SentMessages=101; ReceivedMessages=100`.
fn answered_per_second(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains(VALID))?;
    let after = |words: &str| {
        let (_, rest) = line.split_once(words)?;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        rate(&rest[..end.unwrap_or(rest.len())])
    };
    let seconds = after("RunTime=").filter(|seconds| *seconds > 0.0)?;
    Some(after("ReceivedMessages=")? / seconds)
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
        let none = "sockperf: Starting test...\n";
        assert!(parse(none).unwrap_err().message.contains("throughput"));
        assert!(parse("sockperf: BandWidth is x\n").is_err());
        assert!(parse("sockperf: Summary: Latency is x usec\n").is_err());
    }

    /// sockperf 3.7, ping-pong over UDP.
    const PING_PONG: &str = "sockperf: Test ended
sockperf: [Total Run] RunTime=1.100 sec; Warm up time=400 msec; SentMessages=11000; ReceivedMessages=10999
sockperf: ========= Printing statistics for Server No: 0
sockperf: [Valid Duration] RunTime=0.500 sec; SentMessages=5001; ReceivedMessages=5000
sockperf: ====> avg-latency=12.500 (std-dev=1.000, mean-ad=0.5)
sockperf: Summary: Latency is 12.500 usec
sockperf: Total 5000 observations; each percentile contains 50.00 observations
sockperf: ---> <MAX> observation =  310.000
sockperf: ---> percentile 99.999 =  310.000
sockperf: ---> percentile 99.900 =  120.500
sockperf: ---> percentile 99.000 =   40.000
sockperf: ---> percentile 50.000 =   12.000
sockperf: ---> <MIN> observation =    9.000
";

    #[test]
    fn a_latency_is_half_of_a_round_trip_unless_it_is_of_a_whole_one() {
        let run = &parse(PING_PONG).unwrap()[0];
        assert_eq!(run.quantity, Quantity::TransactionsPerSecond);
        assert_eq!((run.value, run.line), (Some(10_000.0), 6));
        let trips = run.round_trip;
        assert_eq!((trips.min_ns, trips.p50_ns), (Some(18_000), Some(24_000)));
        assert_eq!((trips.p99_ns, trips.p999_ns), (Some(80_000), Some(241_000)));
        assert_eq!(
            (trips.max_ns, trips.mean_ns),
            (Some(620_000), Some(25_000.0))
        );
        let whole = PING_PONG.replace("Latency is", "Round trip is");
        assert_eq!(parse(&whole).unwrap()[0].round_trip.p50_ns, Some(12_000));
        let short: String = PING_PONG
            .lines()
            .take(6)
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(parse(&short).unwrap()[0].round_trip.p50_ns, None);
    }
}
