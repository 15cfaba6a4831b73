//! `nicpoll sim` for a user: output, refusals, and the documentation's examples.

mod clients;
mod clusters;
#[path = "../common/mod.rs"]
mod common;
mod page;
mod parts;
mod published;
mod router;
mod ticks;

use nicpoll_testkit::golden_cases;

use crate::common::prelude::*;

const GENERIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sim/hosts/generic.toml");

fn sim(args: &[&str]) -> Output {
    nicpoll([&["sim"], args].concat()).output().unwrap()
}

/// Returns the output of a command that must succeed.
fn printed(args: &[&str]) -> String {
    let output = sim(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

/// Short, for a build without optimisation.
const SHORT: [&str; 4] = ["--duration", "50ms", "--warmup", "50ms"];

/// Returns the printed document, which the schema must accept.
fn document(args: &[&str], schema: &str) -> Value {
    let document: Value = serde_json::from_str(&printed(args)).unwrap();
    assert_described(&document, schema);
    document
}

fn run<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["run", GENERIC], &SHORT[..], options].concat()
}

fn sweep<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let over = words("--over offered=20k..120k:3 --disciplines freebsd-interrupt,freebsd-polling");
    [&["sweep", GENERIC], &SHORT[..], &over, options].concat()
}

#[test]
fn runs_say_what_came_out_and_why_no_more() {
    golden_cases("tests/sim/runs.txt", |options, _| {
        printed(&run(&words(&options.replace("GENERIC", GENERIC))))
    });
}

#[test]
fn every_discipline_gives_json_that_its_schema_describes() {
    let schema = "sim-run";
    for discipline in [
        "freebsd-interrupt",
        "freebsd-polling",
        "napi",
        "napi-timer",
        "busy-poll",
    ] {
        let options = format!("--discipline {discipline} --json --workload constant:rate=20k");
        let options = words(&options);
        let run = document(&run(&options), schema);
        assert_eq!(run["schema"], "nicpoll.sim-run/3");
        assert_eq!(run["plan"]["hosts"][0]["discipline"], discipline);
        let figures = &run["figures"];
        assert_eq!(
            figures["hosts"][0]["polling"].is_null(),
            discipline != "freebsd-polling"
        );
        assert_eq!(
            figures["hosts"][0]["storm"].is_null(),
            discipline != "freebsd-interrupt"
        );
        let ledger = &figures["ledger"];
        let losses = ledger["losses"].as_array().unwrap();
        let lost: u64 = losses
            .iter()
            .map(|loss| loss["datagrams"].as_u64().unwrap())
            .sum();
        let count = |name: &str| ledger[format!("{name}_datagrams")].as_u64().unwrap();
        assert_eq!(
            count("in_flight_at_start") + count("offered"),
            count("delivered") + lost + count("in_flight_at_end")
        );
    }
    document(
        &run(&["--workload", "blast:payload=1470", "--json"]),
        schema,
    );
}

#[test]
fn hosts_on_a_path_have_figures_each_and_together() {
    let schema = "sim-run";
    for workload in ["rr", "iperf-udp:rate=200m"] {
        let peer = ["--peer", GENERIC, "--workload", workload, "--json"];
        let document = document(&run(&peer), schema);
        assert_eq!(document["schema"], "nicpoll.sim-run/3");
        let figures = &document["figures"];
        assert_eq!(figures["hosts"].as_array().unwrap().len(), 2);
        let has_round_trips = !figures["flows"][0]["round_trip"].is_null();
        assert_eq!(has_round_trips, workload == "rr");
    }
}

#[test]
fn tcp_tells_of_each_connection_and_of_its_parts() {
    let options = format!(
        "--peer {GENERIC} --discipline freebsd-polling --workload iperf-tcp:window=32k:dual=1 --slices 2 --json"
    );
    let document = document(&run(&words(&options)), "sim-run");
    let connections = document["figures"]["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 2);
    for tcp in connections {
        let read = tcp["bytes"]["read_bytes"].as_u64().unwrap();
        let slices = tcp["slices"].as_array().unwrap();
        let parts = slices.iter().map(|slice| slice["read_bytes"].as_u64());
        assert_eq!(slices.len(), 2);
        assert_eq!(parts.sum::<Option<u64>>(), Some(read));
    }
}

#[test]
fn a_sweep_gives_table_csv_json_and_a_plot() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("livelock.svg");
    let report = folder.path().join("livelock.html");
    let files = [plot.to_str().unwrap(), report.to_str().unwrap()];
    let table = printed(&sweep(&["--svg", files[0], "--report", files[1]]));
    let html = fs::read_to_string(&report).unwrap();
    assert_has_all(
        &html,
        "<h1>Simulated, not measured</h1> | <polyline | sim sweep | nicpoll-sim.json",
    );
    assert!(!html.contains("<script"));
    // The table on the terminal.
    let line = table.lines().find(|line| line.contains("120000")).unwrap();
    assert!(html.contains(line), "{line}");
    assert_has_all(&table, "freebsd-interrupt | 120000");
    let svg = fs::read_to_string(&plot).unwrap();
    assert_has_all(
        &svg,
        "<svg | offered packets/s | delivered packets/s | >freebsd-polling< | simulated",
    );
    assert_eq!(svg.matches("<polyline").count(), 2);

    let csv = printed(&sweep(&["--csv"]));
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 6);
    let columns = lines[0].split(',').count();
    assert!(
        lines.iter().all(|line| line.split(',').count() == columns),
        "{csv}"
    );

    let schema = "sim-sweep";
    let whole = document(&sweep(&["--json"]), schema);
    let mut parts = Vec::new();
    for shard in ["1/2", "2/2"] {
        let part = document(&sweep(&["--json", "--shard", shard]), schema);
        parts.extend(part["points"].as_array().unwrap().clone());
    }
    let points = whole["points"].as_array().unwrap();
    assert_eq!(points.len(), 6);
    assert_eq!(parts.len(), 6);
    assert!(
        points.iter().all(|point| parts.contains(point)),
        "the parts are the whole"
    );
}

#[test]
fn a_sweep_varies_any_number_of_the_host() {
    let args = [&["sweep", GENERIC], &SHORT[..]].concat();
    let over = words("--over link.bits_per_second=10m..100m:2 --disciplines busy-poll");
    let csv = printed(
        &[
            &args[..],
            &over,
            &["--workload", "constant:rate=50k", "--csv"],
        ]
        .concat(),
    );
    let delivered: Vec<f64> = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(7).unwrap().parse().unwrap())
        .collect();
    assert!(delivered[1] > 2.0 * delivered[0], "{csv}");
}

/// Each case of a table is refused; GENERIC is the path of that host.
fn refuses(table: &str) {
    assert_refused(table, |line| sim(&words(&line.replace("GENERIC", GENERIC))));
}

#[test]
fn a_wrong_host_file_is_refused_with_line_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.toml");
    let generic = fs::read_to_string(GENERIC).unwrap();
    let before = generic.lines().position(|line| line.starts_with("rx_ring"));
    let line = 1 + before.unwrap();
    fs::write(&wrong, generic.replacen("rx_ring = 256", "rx_ring = 0", 1)).unwrap();
    let wrong = wrong.to_str().unwrap();
    let place = format!("wrong.toml:{line}: card.rx_ring = 0 is out of range; give a whole number");
    refuses(&format!(
        "2 | run {wrong} | {place}\n2 | sweep {wrong} | {place}"
    ));
}

#[test]
fn a_file_that_is_not_there_is_a_mistake_of_the_command_line() {
    refuses(
        "
        2 | run no-such-host.toml | cannot read the host file no-such-host.toml: there is none, and the program has no host of that name; 'nicpoll sim hosts'
        2 | run GENERIC --workload trace:no-such.txt | cannot read the trace no-such.txt
        2 | merge no-such-part.json | cannot read the part of a sweep or a fit no-such-part.json
        2 | published no-such-folder | cannot read no-such-folder/hosts
        ",
    );
}

#[test]
fn what_cannot_be_simulated_is_refused_with_its_remedy() {
    refuses(
        "
        2 | run GENERIC --discipline fast | there are freebsd-interrupt, freebsd-polling
        2 | run GENERIC --discipline polling | FreeBSD's is freebsd-polling
        2 | run GENERIC --discipline freebsd-polling:user_frac=100 | user_frac 0 to 99
        2 | run GENERIC --workload constant | constant:rate=100k
        2 | run GENERIC --workload iperf-udp | name the other with --peer
        2 | run GENERIC --peer GENERIC | comes from an ideal far end
        2 | run GENERIC --through GENERIC | --peer
        2 | run GENERIC --workload iperf-tcp | name the other with --peer
        2 | run GENERIC --workload iperf-tcp:dual=yes | dual
        2 | run GENERIC --workload rr --peer GENERIC --slices 2 | leave --slices out
        2 | run GENERIC --workload constant:rate=1g --duration 1000 | --long
        2 | run GENERIC --duration 0 | above 0
        2 | sweep GENERIC --over offered=1..2 | NAME=FROM..TO:POINTS
        2 | sweep GENERIC --workload blast | no rate of packets to vary
        2 | sweep GENERIC --shard 3/2 | I from 1 to N
        2 | sweep GENERIC --csv --json | cannot be used with
        ",
    );
}

/// Returns the arguments after `nicpoll sim` of the documentation's example that begins like this, and its output.
fn documented(page: &str, begin: &str) -> (Vec<String>, String) {
    let start = page.find(begin).unwrap() + "nicpoll sim ".len();
    let end = page[start..].find("\n```").unwrap();
    let example = page[start..start + end].replace("\\\n", "");
    let (line, shown) = example.split_once('\n').unwrap_or((example.as_str(), ""));
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let full = |word: &str| match word.strip_prefix("sim/hosts/") {
        Some(_) => format!("{root}{word}"),
        None => String::from(word),
    };
    let words = line.split_whitespace().map(full).collect();
    (words, String::from(shown))
}

/// Returns whether an example shows this output, where a line `...` leaves lines out.
fn shows(example: &str, output: &str) -> bool {
    let mut rest = Some(output);
    for (index, piece) in example.split("...\n").enumerate() {
        rest = rest.and_then(|rest| match index {
            0 => rest.strip_prefix(piece),
            _ => rest.split_once(piece).map(|(_, after)| after),
        });
    }
    rest.is_some_and(|rest| rest.trim().is_empty())
}

#[test]
fn the_documentation_shows_what_the_program_prints() {
    let page = include_str!("../../../../docs/simulator.md");
    let paths = include_str!("../../../../docs/sim-paths.md");
    for (page, begin) in [
        (page, "nicpoll sim run sim/hosts/generic.toml --workload"),
        (page, "nicpoll sim sweep sim/hosts/generic.toml --workload"),
        (paths, "nicpoll sim run sim/hosts/generic.toml --peer"),
        (paths, "nicpoll sim run sim/hosts/asa633.toml --peer"),
    ] {
        let (command, example) = documented(page, begin);
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        let shown = printed(&words);
        assert!(shows(&example, &shown), "the page should show:\n{shown}");
    }

    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("livelock.svg");
    let (command, _) = documented(page, "nicpoll sim sweep sim/hosts");
    let words: Vec<_> = command
        .iter()
        .map(|word| {
            if word == "docs/livelock.svg" {
                plot.to_str().unwrap()
            } else {
                word
            }
        })
        .collect();
    printed(&words);
    assert!(
        fs::read_to_string(&plot).unwrap() == include_str!("../../../../docs/livelock.svg"),
        "docs/livelock.svg is not what the command in docs/simulator.md draws; run it again"
    );
}

#[test]
fn every_host_file_of_the_project_can_be_simulated() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sim/hosts");
    let mut hosts = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let shown = printed(&[&["run", path.to_str().unwrap()], &SHORT[..]].concat());
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(shown.contains(&format!("host {name} ")), "{shown}");
        let text = fs::read_to_string(&path).unwrap();
        let values = text
            .lines()
            .filter(|line| line.contains(" = ") && !line.starts_with("name = "));
        for value in values {
            assert!(
                value.contains('#'),
                "{name}: a value without its source: {value}"
            );
        }
        hosts += 1;
    }
    assert!(hosts >= 3);
}
