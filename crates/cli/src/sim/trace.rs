//! A workload as the command line names it: a trace's file is read here.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use nicpoll_sim::{TRACE_LINE_BYTES_MAX, Trace, TraceReader, Workload};

/// Reads a workload's name with its options; `trace:FILE` with the trace that the file holds.
pub fn parse_workload(text: &str) -> Result<Workload, String> {
    let Some(rest) = text.strip_prefix("trace:") else {
        return Workload::parse(text).map_err(|error| error.to_string());
    };
    let mut parts = rest.split(':');
    let file = parts.next().unwrap_or_default();
    let options: Result<Vec<_>, String> = parts
        .map(|part| {
            part.split_once('=').ok_or_else(|| {
                format!("'{part}' is no option; the form is NAME=VALUE, as in repeat=1")
            })
        })
        .collect();
    Workload::replay(Arc::new(read(file)?), &options?).map_err(|error| error.to_string())
}

fn read(path: &str) -> Result<Trace, String> {
    let unreadable = |error| format!("cannot read the trace {path}: {error}");
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut reader = TraceReader::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        // One byte more than a line may have, so that a longer one is seen to be.
        let mut rest = (&mut file).take(TRACE_LINE_BYTES_MAX as u64 + 2);
        let bytes = rest.read_until(b'\n', &mut line).map_err(unreadable)?;
        if bytes == 0 {
            break;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        let taken = reader.line(&line);
        taken.map_err(|error| format!("{path}:{}: {}", error.line, error.message))?;
    }
    let finished = reader.finish(path);
    finished.map_err(|error| format!("{path}:{}: {}", error.line, error.message))
}
