//! `nicpoll sim published` and `nicpoll sim fit`, and the proof that no row under polling affects the fit.

use crate::common::prelude::*;
use std::sync::LazyLock;

const SIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sim");

fn sim(args: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(NICPOLL);
    command
        .arg("sim")
        .args(args)
        .arg(directory)
        .output()
        .unwrap()
}

/// All tables, simulated once, which takes most of these tests' time.
static ALL: LazyLock<Value> = LazyLock::new(|| {
    let output = sim(&["published", "--json"], Path::new(SIM));
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
});

/// Makes a directory with copies of the files.
fn copied() -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for part in ["hosts", "published"] {
        fs::create_dir(copy.path().join(part)).unwrap();
        for entry in fs::read_dir(Path::new(SIM).join(part)).unwrap() {
            let from = entry.unwrap().path();
            fs::copy(
                &from,
                copy.path().join(part).join(from.file_name().unwrap()),
            )
            .unwrap();
        }
    }
    fs::copy(
        Path::new(SIM).join("fit.toml"),
        copy.path().join("fit.toml"),
    )
    .unwrap();
    copy
}

fn tables(directory: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(directory.join("published")).unwrap();
    listed.map(|entry| entry.unwrap().path()).collect()
}

/// Removes every run under polling from the tables. Returns their number.
fn delete_polling(directory: &Path) -> usize {
    let mut deleted = 0;
    for path in tables(directory) {
        let table = fs::read_to_string(&path).unwrap();
        let mut kept = String::new();
        for (number, part) in table.split("[[run]]").enumerate() {
            if part.contains("\ndiscipline = \"freebsd-polling\"") {
                deleted += 1;
            } else {
                if number > 0 {
                    kept.push_str("[[run]]");
                }
                kept.push_str(part);
            }
        }
        fs::write(&path, kept).unwrap();
    }
    deleted
}

/// Replaces fitted numbers by others.
fn spoil_fitted(directory: &Path) {
    let path = directory.join("hosts/wrap.toml");
    let host = fs::read_to_string(&path).unwrap();
    let lines = host.lines().map(|line| match line.split_once("# fitted") {
        Some((number, remark)) => {
            let name = number.split('=').next().unwrap();
            format!("{name}= 7777 # fitted{remark}\n")
        }
        None => format!("{line}\n"),
    });
    fs::write(&path, lines.collect::<String>()).unwrap();
}

#[test]
fn the_fit_gives_the_committed_numbers_without_the_rows_under_polling() {
    needs!(Time);
    let copy = copied();
    let deleted = delete_polling(copy.path());
    assert!(deleted > 10, "{deleted}");
    spoil_fitted(copy.path());
    let output = sim(&["fit", "--write"], copy.path());
    let told = text(&output.stdout);
    assert!(output.status.success(), "{told}{}", text(&output.stderr));
    for entry in fs::read_dir(Path::new(SIM).join("hosts")).unwrap() {
        let committed = entry.unwrap().path();
        let written = copy
            .path()
            .join("hosts")
            .join(committed.file_name().unwrap());
        assert_eq!(
            fs::read_to_string(&written).unwrap(),
            fs::read_to_string(&committed).unwrap(),
            "run `nicpoll sim fit --write` and look at what changed:\n{told}"
        );
    }
}

/// Makes the fit quick: without table C and its hosts, the most of it, and with shorter runs. Its numbers are others.
fn hasten(directory: &Path) {
    let path = directory.join("fit.toml");
    let plan = fs::read_to_string(&path).unwrap();
    let groups = plan.split("[[group]]\n");
    let kept = groups.filter(|it| {
        !["name = \"thin clients\"", "name = \"wrap\""]
            .iter()
            .any(|name| it.starts_with(name))
    });
    let kept = kept.collect::<Vec<_>>().join("[[group]]\n");
    let lines = kept
        .lines()
        .map(|line| match line.starts_with("milliseconds") {
            true => "milliseconds = 2\n".to_owned(),
            false => format!("{line}\n"),
        });
    fs::write(&path, lines.collect::<String>()).unwrap();
    for file in ["published/c.toml", "hosts/t5000.toml", "hosts/wrap.toml"] {
        fs::remove_file(directory.join(file)).unwrap();
    }
}

#[test]
fn a_fit_in_parts_is_the_whole_to_the_byte_and_sets_the_same_numbers() {
    needs!(Time);
    let (copy, other) = (copied(), copied());
    hasten(copy.path());
    hasten(other.path());
    let whole = sim(&["fit", "--json", "--write"], copy.path());
    assert_code(&whole, 0);
    let document: Value = serde_json::from_slice(&whole.stdout).unwrap();
    assert_described(&document, "sim-fit");
    let names = |set: &Value| -> Vec<String> {
        let groups = set.as_array().unwrap().iter();
        groups
            .map(|it| String::from(it["name"].as_str().unwrap()))
            .collect()
    };
    let sets: Vec<_> = document["sets"]
        .as_array()
        .unwrap()
        .iter()
        .map(names)
        .collect();
    // Groups with the same hosts stay together.
    assert_eq!(sets, [vec!["servers", "servers, TCP"], vec!["router"]]);
    let part = |number: usize| {
        let shard = format!("{number}/2");
        let output = sim(&["fit", "--json", "--shard", &shard], other.path());
        assert_code(&output, 0);
        let path = other.path().join(format!("{number}.json"));
        fs::write(&path, output.stdout).unwrap();
        path.display().to_string()
    };
    let parts = [1, 2].map(part);
    let merged = |files: &[String]| {
        let words = ["sim", "merge", "--json"].map(String::from);
        Command::new(NICPOLL)
            .args([&words[..], files].concat())
            .output()
            .unwrap()
    };
    let lost = merged(&parts[1..]);
    assert_code(&lost, 2);
    assert_has(
        stderr(&lost),
        "make them by --shard 1/2, in a Slurm array by --array=1,",
    );
    let part = sim(&["fit", "--fitted", &parts[0]], other.path());
    assert_code(&part, 2);
    assert_has(
        stderr(&part),
        "join all of them with `nicpoll sim merge --json` first",
    );
    let joined = merged(&parts);
    assert!(joined.stdout == whole.stdout, "{}", stderr(&joined));
    let fitted = other.path().join("fit.json");
    fs::write(&fitted, joined.stdout).unwrap();
    let output = sim(
        &["fit", "--write", "--fitted", fitted.to_str().unwrap()],
        other.path(),
    );
    assert_code(&output, 0);
    for entry in fs::read_dir(copy.path().join("hosts")).unwrap() {
        let own = entry.unwrap().path();
        let others = other.path().join("hosts").join(own.file_name().unwrap());
        assert!(
            fs::read(&own).unwrap() == fs::read(&others).unwrap(),
            "{}",
            own.display()
        );
    }
}

#[test]
fn every_row_tells_what_it_is() {
    assert_described(&ALL, "sim-published");
    let rows = ALL["rows"].as_array().unwrap();
    assert!(rows.len() > 150, "{}", rows.len());
    for row in rows {
        assert!(
            row["discipline"] != "freebsd-polling" || row["kind"] != "fitted",
            "{row}"
        );
        assert!(
            row["simulated"].is_number() || row["missing"].is_string(),
            "{row}"
        );
        assert!(
            row["error_kind"] != "unscored" || row["error"].is_null(),
            "{row}"
        );
    }
}

#[test]
fn the_score_counts_what_says_something_beside_a_guess() {
    needs!(Time);
    let (score, rows) = (&ALL["score"], ALL["rows"].as_array().unwrap());
    let of = |is_meant: &dyn Fn(&Value) -> bool| rows.iter().filter(|row| is_meant(row)).count();
    let polled = |row: &Value| {
        row["discipline"] == "freebsd-polling"
            && row["kind"] == "predicted"
            && row["is_restated"] == false
            && !row["is_within_aim"].is_null()
    };
    assert_eq!(score["polled"]["rows"], of(&polled));
    assert_eq!(
        score["polled"]["simulated"],
        of(&|row| polled(row) && row["is_within_aim"] == true)
    );
    let guessed = of(&|row| polled(row) && row["is_guess_within_aim"] == true);
    assert_eq!(score["polled"]["guessed"], guessed);
    // A guess that knows nothing of polling hits some rows, but fewer.
    assert!(guessed > 0 && score["polled"]["simulated"].as_u64().unwrap() > guessed as u64);
    // If the ticks' phases decide, a figure has a range.
    let loss = rows
        .iter()
        .find(|row| row["row"] == "UDP, asked 500 Mbit/s, polling" && row["quantity"] == "loss");
    let range = loss.unwrap()["simulated_range"].as_array().unwrap();
    assert!(range[0].as_f64() < range[1].as_f64(), "{range:?}");
    for row in rows
        .iter()
        .filter(|row| row["table"] == "B" || row["quantity"] == "socket_drops")
    {
        assert_eq!(row["error_kind"], "unscored", "{row}");
    }
}

#[test]
fn parameters_are_tried_at_other_values() {
    // The table that is simulated fastest.
    let output = sim(
        &["published", "--table", "B", "--sensitivity"],
        Path::new(SIM),
    );
    let told = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        told.contains("_ns +20 %") || told.contains("_ns -20 %"),
        "{told}"
    );
    assert!(told.contains("Simulated, not measured"), "{told}");
}

#[test]
fn what_is_wrong_is_refused_with_its_place_and_remedy() {
    let refused = |args: &[&str], directory: &Path, words: &[&str]| {
        let output = sim(args, directory);
        let error = text(&output.stderr);
        assert_ne!(output.status.code(), Some(0), "{error}");
        for word in words {
            assert!(error.contains(word), "{word}: {error}");
        }
    };
    refused(
        &["published", "--table", "F"],
        Path::new(SIM),
        &["there is no table 'F'; there are A, B, C, D, E"],
    );
    let empty = tempfile::tempdir().unwrap();
    refused(
        &["fit"],
        empty.path(),
        &["hosts", "run this in the project's directory"],
    );

    let copy = copied();
    let path = copy.path().join("published/a.toml");
    let table = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        table.replacen("unit = \"%\"", "unit = \"percent\"", 1),
    )
    .unwrap();
    refused(
        &["fit"],
        copy.path(),
        &["a.toml:", "'percent' is no known unit"],
    );

    let copy = copied();
    let path = copy.path().join("hosts/wrap.toml");
    let host = fs::read_to_string(&path).unwrap();
    fs::write(&path, host.replacen("# fitted", "# guessed", 1)).unwrap();
    refused(
        &["fit"],
        copy.path(),
        &["wrap.toml", "is fitted; end its line with '# fitted'"],
    );

    let copy = copied();
    fs::remove_file(copy.path().join("hosts/wrap.toml")).unwrap();
    refused(&["published"], copy.path(), &["'wrap'", "there are asa633"]);
}
