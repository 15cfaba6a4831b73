//! What netreceive prints twice a second: datagrams that arrived since the last line.

use nicpoll_model::FileError;

use crate::transcript::Cursor;
use crate::transcript::netrate;
use crate::{Quantity, ToolRun, error};

/// One line.
struct Line {
    packets: f64,
    seconds: f64,
}

/// Whether a line of it is there.
pub fn looks_so(text: &str) -> bool {
    text.lines().any(is_line)
}

fn is_line(line: &str) -> bool {
    line.contains(" pps ") && line.contains(" Mbps - ")
}

/// Each stretch of lines between two of silence is a run: datagrams that arrived, a second. The first and the last
/// line of a stretch are left out where more than three are left: traffic began or ended within them.
pub fn parse(text: &str) -> Result<Vec<ToolRun>, FileError> {
    let mut runs = Vec::new();
    let mut stretch: Vec<Line> = Vec::new();
    let mut began = 1;
    for (index, text) in text.lines().enumerate() {
        if !is_line(text) {
            continue;
        }
        let line = line(text).ok_or_else(|| {
            let expected = "expected '{n} pps {n} Mbps - {n} pkts in {seconds} ns'";
            error(index + 1, expected)
        })?;
        if line.packets > 0.0 {
            if stretch.is_empty() {
                began = index + 1;
            }
            stretch.push(line);
        } else {
            runs.extend(run(began, &std::mem::take(&mut stretch)));
        }
    }
    runs.extend(run(began, &stretch));
    Ok(runs)
}

fn line(text: &str) -> Option<Line> {
    let mut cursor = Cursor::new(text.as_bytes(), 0);
    let (packets, seconds) = netrate::line(cursor.spaces())?;
    Some(Line { packets, seconds })
}

fn run(began: usize, stretch: &[Line]) -> Option<ToolRun> {
    if stretch.is_empty() {
        return None;
    }
    let whole = netrate::steady(stretch);
    let packets: f64 = whole.iter().map(|line| line.packets).sum();
    let seconds: f64 = whole.iter().map(|line| line.seconds).sum();
    let mut run = ToolRun::new(began, Quantity::PacketsPerSecond);
    run.value = Some(packets / seconds).filter(|rate| rate.is_finite());
    let rates = whole.iter().map(|line| line.packets / line.seconds);
    run.series = rates.collect();
    Some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(packets: &[u32]) -> String {
        let line = |packets: &u32| {
            format!(
                "{:9} pps {:8.3} Mbps - {packets} pkts in 0.500000000 ns\n",
                2 * packets,
                0.5
            )
        };
        packets.iter().map(line).collect()
    }

    #[test]
    fn silence_divides_runs_and_edges_are_left_out() {
        let text = lines(&[0, 0, 30, 100, 100, 110, 90, 20, 0, 50, 0]);
        assert!(looks_so(&text));
        let runs = parse(&text).unwrap();
        assert_eq!(runs.len(), 2);
        assert_eq!((runs[0].line, runs[0].value), (3, Some(200.0)));
        assert_eq!(runs[0].series, [200.0, 200.0, 220.0, 180.0]);
        assert_eq!((runs[1].line, runs[1].value), (10, Some(100.0)));
        assert!(!runs[0].is_sent);
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        let text = format!(
            "start at 1.0\n{}  7 pps 8 Mbps - x pkts in 0.5 ns\n",
            lines(&[3])
        );
        let fails = parse(&text).unwrap_err().to_string();
        assert!(fails.starts_with("line 3: expected"), "{fails}");
    }
}
