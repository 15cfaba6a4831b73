//! A sweep in parts, and refusals before it begins.

use crate::common::prelude::*;
use crate::{GENERIC, printed, sim};

/// Short, for a build without optimisation.
const SWEEP: [&str; 8] = [
    "--duration",
    "20ms",
    "--warmup",
    "20ms",
    "--over",
    "offered=20k..120k:3",
    "--disciplines",
    "freebsd-interrupt,freebsd-polling",
];

fn sweep<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["sweep", GENERIC], &SWEEP[..], options].concat()
}

/// Writes the parts of the sweep with these options to files.
fn parts(folder: &TempDir, of: u32, options: &[&str]) -> Vec<String> {
    let part = |number| {
        let shard = format!("{number}/{of}");
        let json = printed(&sweep(&[options, &["--json", "--shard", &shard]].concat()));
        let path = folder.path().join(format!("{number}-of-{of}.json"));
        fs::write(&path, json).unwrap();
        String::from(path.to_str().unwrap())
    };
    (1..=of).map(part).collect()
}

fn merge<'a>(files: &'a [String], options: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["merge"];
    args.extend(files.iter().map(String::as_str));
    args.extend(options);
    args
}

#[test]
fn merged_parts_are_the_sweep_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let plot = |name: &str| -> PathBuf { folder.path().join(name) };
    let (whole, joined) = (plot("whole.svg"), plot("joined.svg"));
    // Uneven parts, and more parts than points.
    for of in [1, 4, 8] {
        let mut files = parts(&folder, of, &[]);
        files.reverse();
        for form in [&["--json"][..], &["--csv"], &[]] {
            assert!(
                printed(&merge(&files, form)) == printed(&sweep(form)),
                "{of} parts, {form:?}"
            );
        }
        printed(&merge(&files, &["--svg", joined.to_str().unwrap()]));
        printed(&sweep(&["--svg", whole.to_str().unwrap()]));
        assert!(fs::read(&joined).unwrap() == fs::read(&whole).unwrap());
    }
}

#[test]
fn what_does_not_join_is_refused_with_file_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let other_folder = tempfile::tempdir().unwrap();
    let files = parts(&folder, 2, &[]);
    let other = parts(&other_folder, 2, &["--seed", "2"]);
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        String::from(path.to_str().unwrap())
    };
    let text = fs::read_to_string(&files[0]).unwrap();
    let whole = write("whole.json", &printed(&sweep(&["--json"])));
    let broken = write(
        "broken.json",
        &text.replacen("\"number\": 1", "\"number\": 9", 1),
    );
    let none = write("none.json", "{}");
    let layout = write(
        "layout.json",
        &text.replacen("nicpoll.sim-sweep/3", "x/1", 1),
    );
    let first = &files[0];
    for (given, words) in [
        (
            vec![first.clone()],
            "missing; make them by --shard 2/2, in a Slurm array by --array=2,",
        ),
        (vec![files[1].clone()], "missing; make them by --shard 1/2,"),
        (vec![first.clone(), first.clone()], "give each once"),
        (
            vec![first.clone(), other[1].clone()],
            "not of the same as the first file",
        ),
        (vec![whole], "it is no part but the whole"),
        (vec![broken], "not those of the part"),
        (vec![none], "none.json: this is not what"),
        (vec![layout], "its schema is not nicpoll.sim-sweep/3"),
    ] {
        let output = sim(&merge(&given, &[]));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{given:?}: {said}");
        assert!(said.contains(words), "{given:?}: {said}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(sim(&["merge"]).status.code(), Some(2));
}

#[test]
fn too_much_time_or_memory_is_said_first() {
    let folder = tempfile::tempdir().unwrap();
    let vast = folder.path().join("vast.toml");
    let generic = fs::read_to_string(GENERIC).unwrap();
    let set = |line: &str, name: &str, value: &str| match line.starts_with(name) {
        true => format!("{name} = {value}"),
        false => String::from(line),
    };
    let lines = generic.lines().map(|line| {
        let line = set(line, "buffer_bytes", "2147483648");
        set(&line, "packet_overhead_bytes", "0")
    });
    fs::write(&vast, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let vast = vast.to_str().unwrap();
    let tiny = "constant:rate=10m:payload=0";
    let empty = ["--workload", "constant:payload=0"];
    let long = [
        &["sweep", GENERIC, "--over", "offered=1m..1g:1000"][..],
        &["--duration", "60"],
    ];
    let wide = [
        &["sweep", vast, "--over", "offered=10m..20m:2"][..],
        &empty,
        &["--duration", "20"],
    ];
    for (args, words) in [
        (long.concat(), "minutes; shorten --duration"),
        (wide.concat(), "GiB of memory"),
        (
            vec!["run", vast, "--workload", tiny, "--duration", "30"],
            "GiB of memory",
        ),
    ] {
        let output = sim(&args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(words) && said.contains("--long"), "{said}");
        assert!(output.stdout.is_empty());
    }
    // Few packets do not fill a large buffer.
    let few = words("--workload constant:rate=1k:payload=0 --duration 20ms");
    printed(&[&["run", vast][..], &few].concat());
}

/// A run of a second at an impossible rate takes minutes, and the trials of improvements hours.
#[test]
fn the_trials_count_as_work_and_can_be_left_out() {
    let run = ["run", GENERIC, "--workload", "constant:rate=1g"];
    let output = sim(&[&run[..], &["--duration", "1s"]].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_has_all(
        &said,
        "minutes | try what would move | --no-explain | --duration",
    );
    let short = ["--duration", "2ms", "--warmup", "0", "--no-explain"];
    let shown = printed(&[&run[..], &short].concat());
    let words = "What would move it was not tried.";
    assert!(
        shown.contains("Bottleneck: line") && shown.contains(words),
        "{shown}"
    );
    let json = printed(&[&run[..], &short, &["--json"]].concat());
    assert!(json.contains("\"moves\": null"), "{json}");
}

/// From parts of an old layout the fuzz target `sim_parts` would hardly reach any that join.
#[test]
fn seeds_of_the_fuzz_target_are_parts_of_today() {
    let seed = include_str!("../../../../fuzz/seeds/sim_parts/two.json");
    let sweep: nicpoll_model::sim::SimSweep =
        nicpoll_model::sim::join(serde_json::from_str(seed).unwrap()).unwrap();
    assert_eq!(sweep.points.len(), 2);
}
