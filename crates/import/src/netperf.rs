//! What netperf prints for its stream tests: a table whose last line ends with the throughput.
//!
//! What must hold: only throughput in 10^6 bit/s is read; the table of another test is refused.

use nicpoll_model::FileError;

use crate::{Quantity, Run, error, rate};

const UNIT: &str = "10^6bits/s";

/// Whether it is a table of netperf's.
pub fn looks_so(text: &str) -> bool {
    text.contains("MIGRATED ") || text.contains(UNIT)
}

/// The throughput of one run: of TCP the receiver's, of UDP that of the table's second line, which is the receiver's.
pub fn parse(text: &str) -> Result<Vec<Run>, FileError> {
    if !text.contains(UNIT) {
        let message = format!(
            "there is no throughput in {UNIT} in this text; netperf's TCP_STREAM and UDP_STREAM print one"
        );
        return Err(error(1, message));
    }
    let is_table = |line: &str| {
        let mut fields = line.split_whitespace().peekable();
        fields.peek().is_some() && fields.all(|field| rate(field).is_some())
    };
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| is_table(line))
        .collect();
    let Some((index, line)) = lines.last() else {
        return Err(error(1, "the table of this text has no line with figures"));
    };
    let mut run = Run::new(index + 1, Quantity::BitsPerSecond);
    run.value = line
        .split_whitespace()
        .next_back()
        .and_then(rate)
        .map(|megabits| 1e6 * megabits);
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

    #[test]
    fn another_test_is_refused() {
        let rr = TCP.replace("10^6bits/sec", "per sec");
        assert!(parse(&rr).unwrap_err().message.contains("TCP_STREAM"));
        let cut = &TCP[..TCP.find("131072").unwrap()];
        assert!(parse(cut).unwrap_err().message.contains("no line"));
    }
}
