//! netperf's tables, sockperf's summaries, and columns of numbers.

use nicpoll_model::FileError;

use crate::formats::run::{MeasuredQuantity, ToolRun, error, rate};

const THROUGHPUT: &str = "10^6bits/s";
/// The last two words of the unit line of TCP_RR and UDP_RR.
const TRANSACTIONS: &str = "per sec";

/// Whether the text is a netperf table.
pub fn looks_like_netperf(text: &str) -> bool {
    text.contains("MIGRATED ") || text.contains(THROUGHPUT)
}

/// Returns the result of one run. Throughput is the receiver's: TCP's only figure, UDP's in the second line.
/// Transactions are in the first line; a second one has only socket buffers.
pub fn parse_netperf(text: &str) -> Result<Vec<ToolRun>, FileError> {
    let has_transactions = text
        .lines()
        .any(|line| line.trim_end().ends_with(TRANSACTIONS));
    let (quantity, unit) = match (text.contains(THROUGHPUT), has_transactions) {
        (true, _) => (MeasuredQuantity::BitsPerSecond, 1e6),
        (false, true) => (MeasuredQuantity::TransactionsPerSecond, 1.0),
        (false, false) => {
            let message = format!(
                "there is neither throughput in {THROUGHPUT} nor a rate '{TRANSACTIONS}' in this text; netperf's \
                 TCP_STREAM, UDP_STREAM, TCP_RR and UDP_RR print one"
            );
            return Err(error(1, message));
        }
    };
    let is_table = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // A line with only the other end's buffers has no result.
        fields.len() > 2 && fields.iter().all(|field| rate(field).is_some())
    };
    let lines = text.lines().enumerate();
    let Some((index, line)) = lines.filter(|(_, line)| is_table(line)).last() else {
        return Err(error(1, "the table of this text has no line with figures"));
    };
    let mut run = ToolRun::new(index + 1, quantity);
    let result = line.split_whitespace().next_back().and_then(rate);
    run.value = result.map(|number| unit * number);
    Ok(vec![run])
}

const BANDWIDTH: &str = "BandWidth is ";
/// sockperf's "Mbps": src/client.cpp divides by 1024 twice.
const BITS_PER_MEGABIT: f64 = 1_048_576.0;
/// The latency lines of `ping-pong`, with the factor to a round trip: half a round trip, or a whole one.
const LATENCIES: [(&str, f64); 2] = [("Latency is ", 2.0), ("Round trip is ", 1.0)];
/// Starts the line with messages answered and time, without warm-up.
const VALID: &str = "[Valid Duration]";

/// Whether the text is a sockperf summary.
pub fn looks_like_sockperf(text: &str) -> bool {
    text.contains("sockperf: ")
}

/// Returns the bandwidth of each summary, or the round trips of a single one.
pub fn parse_sockperf(text: &str) -> Result<Vec<ToolRun>, FileError> {
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
            let message = "expected a number of Mbps in brackets after 'BandWidth is'";
            return Err(error(index + 1, message));
        };
        let mut run = ToolRun::new(index + 1, MeasuredQuantity::BitsPerSecond);
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

/// Parses the round trips of a summary; `None` when it has none.
fn round_trips(text: &str) -> Result<Option<ToolRun>, FileError> {
    let mut found = text.lines().enumerate().filter_map(|(index, line)| {
        let mut kinds = LATENCIES.iter();
        kinds.find_map(|(words, times)| Some((index, line.split_once(words)?.1, *times)))
    });
    let Some((index, rest, times)) = found.next() else {
        return Ok(None);
    };
    // Converts sockperf's microseconds to nanoseconds of a round trip.
    let ns = |number: &str| rate(number.trim()).map(|us| 1e3 * times * us);
    let mean_ns = rest.split_whitespace().next().and_then(ns);
    let Some(mean_ns) = mean_ns else {
        return Err(error(
            index + 1,
            "expected a number of usec after 'Latency is'",
        ));
    };
    let after = |words: &str| {
        let line = text.lines().find(|line| line.contains(words))?;
        line.split_once('=').and_then(|(_, number)| ns(number))
    };
    let whole = |words: &str| after(words).map(|ns| ns as u64);
    let mut run = ToolRun::new(index + 1, MeasuredQuantity::TransactionsPerSecond);
    run.value = answered_per_second(text);
    run.round_trip.mean_ns = Some(mean_ns);
    run.round_trip.min_ns = whole("<MIN> observation");
    run.round_trip.p50_ns = whole("percentile 50.000");
    run.round_trip.p99_ns = whole("percentile 99.000");
    run.round_trip.p999_ns = whole("percentile 99.900");
    run.round_trip.max_ns = whole("<MAX> observation");
    Ok(Some(run))
}

/// Answers per second without warm-up: `RunTime=0.995 sec; SentMessages=101; ReceivedMessages=100`.
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

/// Returns each number of a column, from 1, as a run. Columns are separated by blanks or commas.
pub fn parse_columns(text: &str, column: usize) -> Result<Vec<ToolRun>, FileError> {
    let mut runs = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        let data = line.split('#').next().unwrap_or_default();
        let words = data.split([' ', '\t', ',', '\r']);
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        if words.is_empty() {
            continue;
        }
        let Some(word) = column.checked_sub(1).and_then(|it| words.get(it)) else {
            let columns = words.len();
            let message = format!("there is no column {column}: the line has {columns}");
            return Err(error(at, message));
        };
        let value = word.parse().ok().filter(|value: &f64| value.is_finite());
        let Some(value) = value else {
            return Err(error(at, unread(word, runs.is_empty())));
        };
        let mut run = ToolRun::new(at, MeasuredQuantity::Number);
        run.value = Some(value);
        runs.push(run);
    }
    Ok(runs)
}

/// The error for a word that is not a number.
fn unread(word: &str, is_first: bool) -> String {
    let word: String = word.chars().take(40).collect();
    let other = match is_first {
        true => ", and the text is not that of iperf3 -J, iperf 2, netblast or netreceive",
        false => "",
    };
    format!("'{word}' is not a number{other}; comments begin with #")
}
