//! How options and files are read or refused; `words.txt` records both.

use std::error::Error;
use std::sync::Arc;

use nicpoll_sim::{HostModel, ReceiveDiscipline, Simulation, TraceReader, TrafficModel, number};
use nicpoll_testkit::golden_cases;

use crate::common::*;

const GENERIC: &str = include_str!("../../hosts/generic.toml");
const ROUTER: &str = "name = \"mine\"\n[cpu]\npreset = \"wrap\"\n[card]\npreset = \"em\"\nrx_ring = 64\n\
    [link]\npreset = \"1g\"\n";

#[test]
fn words_and_files_are_read_or_refused_with_what_would_be_right() {
    golden_cases("tests/sim/words.txt", |name, text| {
        let (kind, words) = name.split_once(' ').unwrap_or((name, ""));
        read(kind, words, text).unwrap_or_else(|error| error.to_string())
    });
}

fn read(kind: &str, words: &str, text: &str) -> Result<String, Box<dyn Error>> {
    Ok(match kind {
        "number" => number(words)?.to_string(),
        "discipline" => format!("{:?}", ReceiveDiscipline::parse(words)?),
        "workload" => {
            let workload = TrafficModel::parse(words)?;
            let shown = workload.to_string();
            assert_eq!(TrafficModel::parse(&shown)?, workload);
            shown
        }
        "set" => {
            let (name, value) = words.split_once(" = ").expect("a name and a value");
            host()
                .set(name, value.parse()?)
                .map(|()| String::from("set"))?
        }
        // Hosts in a row, each under its discipline, and a workload.
        "plan" => {
            let (disciplines, workload) = words.split_once(" | ").expect("both");
            let disciplines = disciplines.split(" > ").filter(|it| !it.is_empty());
            path(&Vec::from_iter(disciplines), workload).check()?;
            String::from("it can run")
        }
        // A host file with one text replaced by another.
        "host" => {
            let words = words.replace("\\n", "\n").replace("NOTHING", "");
            let (from, to) = words.split_once(" -> ").expect("both");
            let file = [GENERIC, ROUTER]
                .into_iter()
                .find(|file| file.contains(from));
            let file = file.expect("a file has it");
            HostModel::parse(&file.replacen(from, to, 1)).map(|host| host.name)?
        }
        "file" => HostModel::parse(text).map(|host| host.name)?,
        "trace" => replay(words, text)?,
        other => unreachable!("{other}"),
    })
}

/// A recorded trace, with options as after its name.
fn replay(options: &str, text: &str) -> Result<String, Box<dyn Error>> {
    let mut reader = TraceReader::default();
    let text = text.replace("\\r", "\r").replace("\\t", "\t");
    for line in text.replace("BLANKS", &" ".repeat(300)).lines() {
        reader.line(line.as_bytes())?;
    }
    let trace = Arc::new(reader.finish("trace")?);
    let facts = format!(
        "{:?}, {} ns, {} ns a round",
        trace.packets(),
        trace.span_ns(),
        trace.period_ns()
    );
    let options = Vec::from_iter(options.split_once('='));
    let workload = TrafficModel::replay(trace, &options)?;
    let other_rate = workload.clone().at(1000).unwrap_err();
    let plan = Simulation {
        workload,
        ..plan("napi", "rr")
    };
    plan.check()?;
    Ok(format!("{facts}\n{other_rate}"))
}
