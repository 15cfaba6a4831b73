//! What netblast and netsend print at their end: counts, and when they began and finished.

use nicpoll_model::FileError;

use crate::transcript::Cursor;
use crate::transcript::netrate::{self, BlastField};
use crate::{Quantity, ToolRun, error};

/// Whether a line of it is there.
pub fn looks_so(text: &str) -> bool {
    let field = |line: &str| netrate::field(&mut Cursor::new(line.as_bytes(), 0));
    text.lines()
        .any(|line| field(line) == Some(BlastField::Calls))
}

/// The lines of one run that count.
#[derive(Default)]
struct Block {
    line: usize,
    start: Option<f64>,
    finish: Option<f64>,
    calls: Option<f64>,
    errors: Option<f64>,
}

/// Each block of counts is a run: datagrams that were sent, a second.
pub fn parse(text: &str) -> Result<Vec<ToolRun>, FileError> {
    let mut runs = Vec::new();
    let mut block: Option<Block> = None;
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        let mut cursor = Cursor::new(line.as_bytes(), 0);
        let Some(field) = netrate::field(&mut cursor) else {
            continue;
        };
        if field == BlastField::Start {
            runs.extend(block.take().map(Block::run).transpose()?);
            block = Some(Block {
                line: at,
                ..Block::default()
            });
        }
        let Some(block) = &mut block else { continue };
        let place = match field {
            BlastField::Start => &mut block.start,
            BlastField::Finish => &mut block.finish,
            BlastField::Calls => &mut block.calls,
            BlastField::Errors => &mut block.errors,
            _ => continue,
        };
        let behind = line.get(cursor.at..).unwrap_or_default().trim();
        let value = netrate::value(&mut cursor, field);
        // Behind the number nothing stands but a remark: (datagrams, up to 64 a call).
        let value = value.filter(|_| {
            let rest = line[cursor.at..].trim();
            rest.is_empty() || rest.starts_with('(')
        });
        *place = Some(value.ok_or_else(|| error(at, format!("'{behind}' is no count or time")))?);
    }
    runs.extend(block.map(Block::run).transpose()?);
    Ok(runs)
}

impl Block {
    fn run(self) -> Result<ToolRun, FileError> {
        let missing = |what: &str| {
            error(
                self.line,
                format!("the run that begins here has no line '{what}:'"),
            )
        };
        let start = self.start.ok_or_else(|| missing("start"))?;
        let finish = self.finish.ok_or_else(|| missing("finish"))?;
        let calls = self.calls.ok_or_else(|| missing("send calls"))?;
        let errors = self.errors.ok_or_else(|| missing("send errors"))?;
        if finish <= start || errors > calls {
            return Err(error(
                self.line,
                "the run that begins here finishes before it starts, or has more errors than calls",
            ));
        }
        let mut run = ToolRun::new(self.line, Quantity::PacketsPerSecond);
        run.value = Some((calls - errors) / (finish - start)).filter(|rate| rate.is_finite());
        run.is_sent = true;
        Ok(run)
    }
}

#[cfg(test)]
mod tests {
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
        let runs = parse(TWO).unwrap();
        assert!(looks_so(TWO));
        let values: Vec<_> = runs.iter().map(|run| (run.line, run.value)).collect();
        assert_eq!(values, [(2, Some(80.0)), (9, Some(50.0))]);
        assert!(runs.iter().all(|run| run.is_sent));
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        let fails = |text: &str| parse(text).unwrap_err().to_string();
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
