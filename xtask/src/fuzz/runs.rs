//! The table of long runs, `fuzz/runs.md`: a row for each target, which only a run of that target writes.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

const FILE: &str = "fuzz/runs.md";
const HEAD: &str = "\
# Long runs of the fuzz targets

Written by `cargo xtask fuzz --executions N`. Each row is the last such run of its target, from the
committed inputs and its corpus, with overflow checks and debug assertions. A crash is a panic, a
broken assertion, or an input that takes ten seconds; a run ends with its first.

| target | executions | a CPU second | corpus | crashes |
|---|---|---|---|---|
";
const NOT_RUN: &str = "not run";

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct LongRun(String);

impl fmt::Display for LongRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl LongRun {
    /// Of what libFuzzer printed, the CPU time that the run took, the inputs that the corpus has, and whether it failed;
    /// nothing where it told no executions.
    pub fn of(printed: &str, cpu_seconds: f64, inputs: usize, has_failed: bool) -> Option<LongRun> {
        let told = |name: &str| {
            let mut lines = printed.lines();
            lines.find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
        };
        let executions = told("stat::number_of_executed_units:")?;
        let a_second = (executions as f64 / cpu_seconds) as u64;
        let cells = [executions, a_second, inputs as u64, u64::from(has_failed)];
        Some(LongRun(cells.map(grouped).join(" | ")))
    }
}

/// The digits, in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The rows by target.
#[derive(Debug, PartialEq)]
pub struct LongRuns(BTreeMap<String, LongRun>);

impl LongRuns {
    /// The table as it was committed or last written.
    pub fn read() -> Result<Self> {
        let text = fs::read_to_string(FILE).with_context(|| format!("cannot read {FILE}"))?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let rows = text.lines().filter_map(|line| {
            let (target, cells) = line.strip_prefix("| `")?.split_once("` | ")?;
            Some((
                String::from(target),
                LongRun(String::from(cells.strip_suffix(" |")?)),
            ))
        });
        LongRuns(rows.collect())
    }

    /// Writes the row of a target. Targets that are gone leave the table; new ones are told as not run.
    pub fn change(targets: &[String], target: &str, row: LongRun) -> Result<()> {
        let mut table = match Path::new(FILE).exists() {
            true => Self::read()?,
            false => LongRuns(BTreeMap::new()),
        };
        table.0.insert(String::from(target), row);
        table.0.retain(|name, _| targets.contains(name));
        for target in targets {
            let not_run = || LongRun(format!("{NOT_RUN} | | | "));
            table.0.entry(target.clone()).or_insert_with(not_run);
        }
        fs::write(FILE, table.to_string()).with_context(|| format!("cannot write {FILE}"))
    }

    /// Fails for a target without a row, and for a row without a target.
    pub fn names_all(&self, targets: &[String]) -> Result<()> {
        let is_listed = |target: &&String| self.0.contains_key(*target);
        if let Some(target) = targets.iter().find(|target| !is_listed(target)) {
            bail!(
                "{FILE} has no row for {target}: run `cargo xtask fuzz --executions 10000000 {target}`"
            );
        }
        if let Some(gone) = self.0.keys().find(|name| !targets.contains(name)) {
            bail!("{FILE} has a row for {gone}, and there is no such target");
        }
        Ok(())
    }
}

impl fmt::Display for LongRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        for (target, row) in &self.0 {
            writeln!(f, "| `{target}` | {row} |")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_what_the_run_told() {
        let printed = "Done 12345 runs in 3 second(s)\nstat::number_of_executed_units: 1234567\nstat::peak_rss_mb: 40\n";
        let row = LongRun::of(printed, 10.0, 42, false).unwrap();
        assert_eq!(row.to_string(), "1,234,567 | 123,456 | 42 | 0");
        assert_eq!(LongRun::of("ERROR: no output", 1.0, 0, true), None);
    }

    #[test]
    fn a_table_that_was_written_reads_the_same_and_names_each_target() {
        let rows = [("frame", "10 | 20 | 3 | 0"), ("sink", "5 | 1,000 | 2 | 1")];
        let rows = rows.map(|(target, row)| (String::from(target), LongRun(String::from(row))));
        let table = LongRuns(rows.into());
        assert_eq!(LongRuns::parse(&table.to_string()), table);
        let targets = ["frame", "sink"].map(String::from);
        assert!(table.names_all(&targets).is_ok());
        assert!(table.names_all(&targets[..1]).is_err());
        assert!(LongRuns(BTreeMap::new()).names_all(&targets).is_err());
    }
}
