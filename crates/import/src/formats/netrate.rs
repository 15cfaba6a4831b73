//! Text of netblast, netsend and netreceive.

use nicpoll_model::FileError;

use crate::cursor::Cursor;
use crate::formats::run::{Quantity, ToolRun, error};
use crate::lines::netrate;
use crate::lines::seen::BlastField;

/// Whether a line of it is there.
pub fn looks_like_netblast(text: &str) -> bool {
    let field = |line: &str| netrate::field(&mut Cursor::new(line.as_bytes(), 0));
    text.lines()
        .any(|line| field(line) == Some(BlastField::Calls))
}

/// The lines of a run that count, with what they are called.
const COUNTED: [(BlastField, &str); 4] = [
    (BlastField::Start, "start"),
    (BlastField::Finish, "finish"),
    (BlastField::Calls, "send calls"),
    (BlastField::Errors, "send errors"),
];

/// Each block of counts is a run: datagrams that were sent, a second.
pub fn parse_netblast(text: &str) -> Result<Vec<ToolRun>, FileError> {
    let mut blocks: Vec<(usize, [Option<f64>; 4])> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        let mut cursor = Cursor::new(line.as_bytes(), 0);
        let Some(field) = netrate::field(&mut cursor) else {
            continue;
        };
        if field == BlastField::Start {
            blocks.push((at, [None; 4]));
        }
        let place = COUNTED.iter().position(|(counted, _)| *counted == field);
        let (Some(place), Some((_, values))) = (place, blocks.last_mut()) else {
            continue;
        };
        let behind = line.get(cursor.at..).unwrap_or_default().trim();
        let value = netrate::value(&mut cursor, field);
        // Behind the number nothing stands but a remark: (datagrams, up to 64 a call).
        let value = value.filter(|_| {
            let rest = line[cursor.at..].trim();
            rest.is_empty() || rest.starts_with('(')
        });
        let wrong = || error(at, format!("'{behind}' is no count or time"));
        values[place] = Some(value.ok_or_else(wrong)?);
    }
    blocks.into_iter().map(run_of_block).collect()
}

fn run_of_block((line, values): (usize, [Option<f64>; 4])) -> Result<ToolRun, FileError> {
    let fails = |why: &str| error(line, format!("the run that begins here {why}"));
    if let Some(missing) = values.iter().position(Option::is_none) {
        return Err(fails(&format!("has no line '{}:'", COUNTED[missing].1)));
    }
    let [start, finish, calls, errors] = values.map(Option::unwrap_or_default);
    if finish <= start || errors > calls {
        let why = "finishes before it starts, or has more errors than calls";
        return Err(fails(why));
    }
    let mut run = ToolRun::new(line, Quantity::PacketsPerSecond);
    run.value = Some((calls - errors) / (finish - start)).filter(|rate| rate.is_finite());
    run.is_sent = true;
    Ok(run)
}

/// Whether a line of it is there.
pub fn looks_like_netreceive(text: &str) -> bool {
    text.lines().any(is_line)
}

fn is_line(line: &str) -> bool {
    line.contains(" pps ") && line.contains(" Mbps - ")
}

/// Each stretch of lines between two of silence is a run: datagrams that arrived, a second. The first and the last
/// line of a stretch are left out where more than three are left: traffic began or ended within them.
pub fn parse_netreceive(text: &str) -> Result<Vec<ToolRun>, FileError> {
    let mut runs = Vec::new();
    let mut stretch: Vec<(f64, f64)> = Vec::new();
    let mut began = 1;
    for (index, text) in text.lines().enumerate() {
        if !is_line(text) {
            continue;
        }
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        let line = netrate::line(cursor.spaces()).ok_or_else(|| {
            let expected = "expected '{n} pps {n} Mbps - {n} pkts in {seconds} ns'";
            error(index + 1, expected)
        })?;
        if line.0 > 0.0 {
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

/// The run of a stretch: packets and seconds of each of its lines.
fn run(began: usize, stretch: &[(f64, f64)]) -> Option<ToolRun> {
    if stretch.is_empty() {
        return None;
    }
    let whole = netrate::steady(stretch);
    let packets: f64 = whole.iter().map(|(packets, _)| packets).sum();
    let seconds: f64 = whole.iter().map(|(_, seconds)| seconds).sum();
    let mut run = ToolRun::new(began, Quantity::PacketsPerSecond);
    run.value = Some(packets / seconds).filter(|rate| rate.is_finite());
    let rates = whole.iter().map(|(packets, seconds)| packets / seconds);
    run.series = rates.collect();
    Some(run)
}

#[cfg(test)]
mod netblast_tests {
    use super::*;

    const TWO: &str = "
start:             1700000000.500000000
finish:            1700000010.500000000
send calls:        1000
send errors:       200
approx send rate:  80
approx error rate: 0

start:             1700000020.000000000
finish:            1700000030.000000000
send calls:        500 (datagrams, up to 64 a call)
send errors:       0 (datagrams, up to 64 a call)
send success:      500 (datagrams, up to 64 a call)
approx send rate:  50
approx error rate: 0
approx throughput: 1 Mib/s
";

    #[test]
    fn each_block_is_a_run() {
        let runs = parse_netblast(TWO).unwrap();
        assert!(looks_like_netblast(TWO));
        let values: Vec<_> = runs.iter().map(|run| (run.line, run.value)).collect();
        assert_eq!(values, [(2, Some(80.0)), (9, Some(50.0))]);
        assert!(runs.iter().all(|run| run.is_sent));
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        let fails = |text: &str| parse_netblast(text).unwrap_err().to_string();
        let cut = TWO.split("send errors:       0 (").next().unwrap();
        assert_eq!(
            fails(cut),
            "line 9: the run that begins here has no line 'send errors:'"
        );
        for odd in ["many", "10x0", "1.5"] {
            let text = TWO.replace("1000", odd);
            assert_eq!(fails(&text), format!("line 4: '{odd}' is no count or time"));
        }
        let late = TWO.replace("1700000030", "1600000030");
        assert!(fails(&late).starts_with("line 9: the run that begins here finishes before"));
    }
}

#[cfg(test)]
mod netreceive_tests {
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
        assert!(looks_like_netreceive(&text));
        let runs = parse_netreceive(&text).unwrap();
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
        let fails = parse_netreceive(&text).unwrap_err().to_string();
        assert!(fails.starts_with("line 3: expected"), "{fails}");
    }
}
