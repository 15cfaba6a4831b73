//! Runs one study in turn between two hosts with their own sshd and between two plain namespaces, and prints how much
//! the ssh changes: of each comparison, whether both reach the same verdict, and the ratio of their results with its
//! 95 % interval.
//!
//! ```text
//! cargo build --release -p nicpoll --examples --bins && sudo target/release/examples/host_pairs [PAIRS]
//! ```
//!
//! A pair takes about half a minute. The machine should be quiet.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use nicpoll_stats::{Confidence, Pair, ratio_interval};
use serde_json::Value;

#[path = "../tests/hosts/place.rs"]
#[allow(dead_code)]
mod place;

use place::{PAIR, SshHosts};

/// Two polling periods under requests and responses, whose rate the period decides: what differs between runs of one
/// kind is small. CPU time is not compared: between machines it is the receiver's alone.
const STUDY: &str = r#"
question = "Does ssh change a verdict?"
blocks = 6
trial = "200ms"
time = "1m"
[[setting]]
name = "short"
sender = { tso = "off" }
receiver = { gro = "on", napi_defer_hard_irqs = 2147483647, gro_flush_timeout = "200us" }
[[setting]]
name = "long"
sender = { tso = "off" }
receiver = { gro = "on", napi_defer_hard_irqs = 2147483647, gro_flush_timeout = "1ms" }
[[workload]]
name = "rr"
traffic = { kind = "rr" }
[[compare]]
reference = "short"
"#;

/// A comparison's verdict and ratio, by its workload and metric.
type Results = BTreeMap<String, (String, Option<f64>)>;

fn main() -> Result<()> {
    let pairs: usize = env::args().nth(1).map_or(Ok(20), |word| word.parse())?;
    let own = env::current_exe()?;
    let program = own.ancestors().nth(2).context("this is no example")?;
    let program = program.join("nicpoll");
    let hosts = SshHosts::pair();
    hosts.install(&program);
    let home = tempfile::tempdir()?;
    let mut all: Vec<[Results; 2]> = Vec::new();
    for pair in 0..pairs {
        let mut both = [const { BTreeMap::new() }; 2];
        // What drifts favours neither.
        for is_apart in [pair % 2 == 0, pair % 2 == 1] {
            both[usize::from(is_apart)] = results(&hosts, home.path(), &program, is_apart)?;
        }
        nicpoll_sys::tell!("{} of {pairs}", pair + 1);
        all.push(both);
    }
    nicpoll_sys::stdio::print(&table(&all)?)?;
    Ok(())
}

/// Runs the study, and returns its results.
fn results(hosts: &SshHosts, home: &Path, program: &Path, is_apart: bool) -> Result<Results> {
    let path = home.join("study.toml");
    let own = if is_apart { PAIR } else { "" };
    fs::write(&path, format!("{STUDY}{own}"))?;
    let mut command = Command::new(program);
    command
        .args(["study", "run", "--no-store", "--json"])
        .arg(&path);
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    command.env("NICPOLL_STATE_DIR", home.join("state"));
    hosts.equip(&mut command);
    let output = match is_apart {
        true => hosts.controller.run(move |()| command.output())??,
        false => command.output()?,
    };
    let is_done = matches!(output.status.code(), Some(0 | 4));
    ensure!(is_done, "the study ended, {}", output.status);
    let study: Value = serde_json::from_slice(&output.stdout)?;
    let comparisons = study["comparisons"].as_array().into_iter().flatten();
    let comparisons = comparisons.filter(|one| one["primary"] == true);
    let result = |one: &Value| {
        let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        let name = format!("{}, {}", text("workload"), text("metric"));
        (name, (text("verdict"), one["ratio"].as_f64()))
    };
    Ok(comparisons.map(result).collect())
}

fn table(all: &[[Results; 2]]) -> Result<String> {
    let mut text = String::from(
        "| comparison | pairs | same verdict | by ssh / plain | 95 % interval |\n|---|---|---|---|---|\n",
    );
    let names = all.first().map(|both| both[0].keys());
    for name in names.into_iter().flatten() {
        let both = |pair: &[Results; 2]| {
            let [plain, apart] = pair.each_ref().map(|own| own.get(name).cloned());
            plain.zip(apart)
        };
        let both: Vec<_> = all.iter().filter_map(both).collect();
        let same = both.iter().filter(|(plain, apart)| plain.0 == apart.0);
        let pairs = both
            .iter()
            .filter_map(|(plain, apart)| plain.1.zip(apart.1));
        let pairs: Vec<Pair> = pairs
            .map(|(plain, apart)| Pair::measured(apart, plain))
            .collect();
        let shown = match ratio_interval(&pairs, Confidence::new(0.95)?) {
            Ok(found) => format!(
                "{:.4} | {:.4} to {:.4}",
                found.estimate, found.low, found.high
            ),
            Err(why) => format!("- | {why}"),
        };
        let (count, same) = (both.len(), same.count());
        writeln!(text, "| {name} | {count} | {same} | {shown} |")?;
    }
    Ok(text)
}
