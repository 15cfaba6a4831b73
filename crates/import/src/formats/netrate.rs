//! Output of netblast, netsend and netreceive.

use nicpoll_model::FileError;

use crate::cursor::Cursor;
use crate::formats::run::{MeasuredQuantity, ToolRun, error};
use crate::lines::netrate;
use crate::lines::seen::BlastField;

/// Whether the text has a netblast line.
pub fn looks_like_netblast(text: &str) -> bool {
    let field = |line: &str| netrate::field(&mut Cursor::new(line.as_bytes(), 0));
    text.lines()
        .any(|line| field(line) == Some(BlastField::Calls))
}

/// The lines that every run needs, and their labels.
const COUNTED: [(BlastField, &str); 4] = [
    (BlastField::Start, "start"),
    (BlastField::Finish, "finish"),
    (BlastField::Calls, "send calls"),
    (BlastField::Errors, "send errors"),
];

/// Returns each block of counts as a run; datagrams sent per second.
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
        // Only a remark may follow the number: (datagrams, up to 64 a call).
        let value = value.filter(|_| {
            let rest = line[cursor.at..].trim();
            rest.is_empty() || rest.starts_with('(')
        });
        let wrong = || error(at, format!("'{behind}' is not a count or a time"));
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
    let mut run = ToolRun::new(line, MeasuredQuantity::PacketsPerSecond);
    run.value = Some((calls - errors) / (finish - start)).filter(|rate| rate.is_finite());
    run.is_sent = true;
    Ok(run)
}

/// Whether the text has a netreceive line.
pub fn looks_like_netreceive(text: &str) -> bool {
    text.lines().any(is_line)
}

fn is_line(line: &str) -> bool {
    line.contains(" pps ") && line.contains(" Mbps - ")
}

/// Returns each stretch of lines between silent ones as a run; datagrams received per second. Drops the first
/// and the last line if more than five are there, since traffic began or ended within them.
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

/// The run of a stretch, given packets and seconds of each line.
fn run(began: usize, stretch: &[(f64, f64)]) -> Option<ToolRun> {
    if stretch.is_empty() {
        return None;
    }
    let whole = netrate::steady(stretch);
    let packets: f64 = whole.iter().map(|(packets, _)| packets).sum();
    let seconds: f64 = whole.iter().map(|(_, seconds)| seconds).sum();
    let mut run = ToolRun::new(began, MeasuredQuantity::PacketsPerSecond);
    run.value = Some(packets / seconds).filter(|rate| rate.is_finite());
    let rates = whole.iter().map(|(packets, seconds)| packets / seconds);
    run.series = rates.collect();
    Some(run)
}
