//! What netperf prints for its stream and request/response tests: a table whose last full line ends with the result.
//!
//! What must hold: only throughput in 10^6 bit/s and transactions a second are read; the table of another test is
//! refused.

use nicpoll_model::FileError;

use crate::{Quantity, ToolRun, error, rate};

const THROUGHPUT: &str = "10^6bits/s";
/// The last word but one and the last of the line of units of TCP_RR and UDP_RR.
const TRANSACTIONS: &str = "per sec";

/// Whether it is a table of netperf's.
pub fn looks_so(text: &str) -> bool {
    text.contains("MIGRATED ") || text.contains(THROUGHPUT)
}

/// The result of one run. Throughput: of TCP the receiver's, of UDP that of the table's second line, which is the
/// receiver's. Transactions: those of the first line; a second one has socket buffers alone.
pub fn parse(text: &str) -> Result<Vec<ToolRun>, FileError> {
    let has_transactions = text
        .lines()
        .any(|line| line.trim_end().ends_with(TRANSACTIONS));
    let (quantity, unit) = match (text.contains(THROUGHPUT), has_transactions) {
        (true, _) => (Quantity::BitsPerSecond, 1e6),
        (false, true) => (Quantity::TransactionsPerSecond, 1.0),
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
        // A line with the buffers of the other end alone has no result.
        fields.len() > 2 && fields.iter().all(|field| rate(field).is_some())
    };
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| is_table(line))
        .collect();
    let Some((index, line)) = lines.last() else {
        return Err(error(1, "the table of this text has no line with figures"));
    };
    let mut run = ToolRun::new(index + 1, quantity);
    let result = line.split_whitespace().next_back().and_then(rate);
    run.value = result.map(|number| unit * number);
    Ok(vec![run])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: &str = "MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 198.18.0.2 () port 0 AF_INET
Recv   Send    Send
Socket Socket  Message  Elapsed
Size   Size    Size     Time     Throughput
bytes  bytes   bytes    secs.    10^6bits/sec

131072  16384  16384    10.00    9413.25
";
    const UDP: &str = "MIGRATED UDP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 198.18.0.2 () port 0 AF_INET
Socket  Message  Elapsed      Messages
Size    Size     Time         Okay Errors   Throughput
bytes   bytes    secs            #      #   10^6bits/sec

212992   65507   10.00       67213      0    3522.31
212992           10.00       61108           3202.38
";

    #[test]
    fn the_receivers_throughput_is_read() {
        let value = |text| parse(text).unwrap()[0].value.unwrap();
        assert_eq!(value(TCP), 9413.25e6);
        assert_eq!(value(UDP), 3202.38e6);
    }

    /// From netperf 2.7.1's manual, TCP_RR.
    const RR: &str = "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to lag.hpl.hp.com (16.89.4.16) port 0 AF_INET
Local /Remote
Socket Size   Request  Resp.   Elapsed  Trans.
Send   Recv   Size     Size    Time     Rate
bytes  Bytes  bytes    bytes   secs.    per sec

16384  87380  1        1       10.00    29150.15
16384  87380
";

    #[test]
    fn transactions_are_read_from_the_line_that_has_them() {
        let run = &parse(RR).unwrap()[0];
        assert_eq!(run.quantity, Quantity::TransactionsPerSecond);
        assert_eq!((run.value, run.line), (Some(29150.15), 7));
        assert!(looks_so(RR));
    }

    #[test]
    fn another_test_is_refused() {
        let other = TCP.replace("10^6bits/sec", "us");
        assert!(parse(&other).unwrap_err().message.contains("TCP_STREAM"));
        let cut = &TCP[..TCP.find("131072").unwrap()];
        assert!(parse(cut).unwrap_err().message.contains("no line"));
    }
}
