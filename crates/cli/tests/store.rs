//! Stored studies: `nicpoll study`'s output for a demo, the state after a kill, and errors of unusable files.

mod common;

use crate::common::prelude::*;
use rusqlite::{Connection, OpenFlags};

/// Four trials, polling and interrupt in two blocks.
const FOUR_TRIALS: &str = "demo --quick --workload rr --repeats 2 --duration 0.1 --seed 5";

/// Runs a command that must succeed.
fn done(stage: &Stage, line: &str) -> Output {
    let output = stage.run(&words(line));
    let is_done = output.status.success();
    assert!(is_done, "{line}: {}", stderr(&output));
    output
}

/// Checks that the report of study 1 is the demo's, and exists in each format.
fn assert_reported(stage: &Stage, report: &str) {
    let page = fs::read_to_string(report).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Does polling pay here"));
    // It can be mailed: it names the machine only on request.
    let machine = |line: &str| {
        let json = stdout(&done(stage, &format!("study {line} 1 --format json")));
        serde_json::from_str::<Value>(&json).unwrap()["host"]["machine"].clone()
    };
    if let Some(name) = machine("export").as_str() {
        assert!(!page.contains(name), "{name}");
        assert!(machine("report -o -").is_null());
        assert_eq!(machine("report -o - --with-names"), name);
    }
    let again = stdout(&done(stage, "study report 1 -o -"));
    assert!(again == page, "the stored study gives the same page");
    done(stage, &format!("study report last -o {report} --format md"));
    let markdown = fs::read_to_string(report).unwrap();
    assert!(
        markdown.starts_with("# Does polling pay here, and"),
        "{markdown}"
    );
    for format in ["text", "csv", "json"] {
        let text = stdout(&done(
            stage,
            &format!("study report 1 -o - --format {format}"),
        ));
        assert!(
            text.contains("udp64") || text.contains("rr"),
            "{format}: {text}"
        );
    }
}

#[test]
fn what_the_demo_printed_is_shown_again_exported_and_deleted() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let list = done(&stage, "study list");
    assert!(stdout(&list).starts_with("No studies are stored in "));
    let ready = |line: &str| {
        line.starts_with("servers-2006 ") && line.contains(" Does polling every ms carry more TCP")
    };
    assert!(stdout(&list).lines().any(ready), "{}", stdout(&list));
    assert!(!stage.store().exists(), "looking makes nothing");

    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("demo.html").display().to_string();
    let asked = [&words(FOUR_TRIALS)[..], &["--json", "--report", &report]].concat();
    let printed = stage.run(&asked);
    let file = stage.store().display().to_string();
    let words = format!(
        "Stored as study 1 in {file}; 'nicpoll study show 1' shows it again.\n\
         The report is in {report}.\n"
    );
    assert_eq!(stderr(&printed), words);
    assert_reported(&stage, &report);
    for line in ["study show last --json", "study export 1 --format=json"] {
        let again = done(&stage, line);
        assert_eq!(stdout(&again), stdout(&printed), "{line}");
    }
    let page = stdout(&done(&stage, "study show 1"));
    assert!(page.contains("round trip p99.9"), "{page}");
    let csv = stdout(&done(&stage, "study export 1 --format csv"));
    let trials = json_of(&printed)["trials"].as_array().unwrap().len();
    assert_eq!(csv.lines().count(), 1 + trials, "{csv}");

    let list = json_of(&done(&stage, "study list --json"));
    assert_described(&list, "studies");
    assert_eq!(list["studies"][0]["kind"], "demo");
    assert_eq!(list["studies"][0]["state"], "finished");
    assert_eq!(list["studies"][0]["trials_done"], trials);
    let unasked = stage.run(&["study", "delete", "1"]);
    assert_code(&unasked, 2);
    assert_has(stderr(&unasked), "give --yes");
    let would = json_of(&done(&stage, "study delete 1 --dry-run --json"));
    assert_eq!(would["action"], "would_delete");
    assert_eq!(stage.run(&["study", "show", "2"]).status.code(), Some(1));
    done(&stage, "study show 1 --brief");
    let deleted = stdout(&done(&stage, "study delete 1 --yes"));
    assert!(deleted.starts_with("Deleted from "), "{deleted}");
    assert_eq!(stage.run(&["study", "show", "last"]).status.code(), Some(1));
}

/// Returns the stored trials as they are. A file that is being created has none.
fn stored(file: &Path) -> Vec<String> {
    let read = || {
        let file = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        file.busy_timeout(Duration::from_secs(2))?;
        let verdict: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        assert_eq!(verdict, "ok");
        let mut rows = file.prepare("SELECT document FROM trial ORDER BY sequence")?;
        let rows = rows.query_map([], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<Vec<String>>>()
    };
    read().unwrap_or_default()
}

fn has_a_study(file: &Path) -> bool {
    Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .and_then(|file| file.query_row("SELECT id FROM study", [], |row| row.get::<_, i64>(0)))
        .is_ok()
}

/// Returns the host's state, without other programs' namespaces, which come and go.
fn interfaces_and_namespaces() -> BTreeMap<String, String> {
    let mut state = host_state();
    let is_of_a_study =
        |name: &str| name.contains("nicpoll-sender") || name.contains("nicpoll-receiver");
    state.retain(|name, _| !name.starts_with("/run/netns/") || is_of_a_study(name));
    state
}

/// Changes a sysctl in the stored facts of a study's host.
fn has_recorded(file: &Path, name: &str, value: &str) {
    let store = Connection::open(file).unwrap();
    let text: String = store
        .query_row("SELECT document FROM study", [], |row| row.get(0))
        .unwrap();
    let mut study: Value = serde_json::from_str(&text).unwrap();
    let sysctls = study["host"]["sysctls"].as_array_mut().unwrap();
    let own = sysctls.iter_mut().find(|pair| pair[0] == name);
    own.expect("each study records it")[1] = value.into();
    let changed = store.execute("UPDATE study SET document = ?1", [study.to_string()]);
    assert_eq!(changed.unwrap(), 1);
}

/// Checks that the trials are those of the plan, each once, as far as time allowed.
fn assert_in_order_of_the_plan(study: &Value) {
    // On a busy machine the last blocks may be left out, as without a kill.
    let ran = study["trials"].as_array().unwrap();
    let planned = study["plan"]["order"].as_array().unwrap();
    assert!(ran.len() >= 4, "{ran:?}");
    for (index, (trial, planned)) in ran.iter().zip(planned).enumerate() {
        assert_eq!(trial["sequence"], index + 1);
        assert_eq!(trial["block"], index / 2 + 1);
        assert_eq!(trial["setting"], planned[1]);
    }
}

#[test]
fn killed_after_each_trial_and_at_any_time_a_study_loses_nothing_and_runs_nothing_twice() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let before = interfaces_and_namespaces();
    let file = stage.store();
    let args = "demo --quick --workload rr --repeats 4 --duration 0.1 --seed 5";
    let args: Vec<&str> = args.split(' ').collect();
    let mut child = stage.nicpoll(&args).spawn().unwrap();
    // A study killed during its preparations can be resumed, too.
    wait_until("the study is stored", || has_a_study(&file));
    kill(child);
    let mut known = stored(&file);
    assert!(known.is_empty());
    // In milliseconds, drawn once: within the preparations, within a trial. The example `kills` draws many.
    let mut delays = [312, 1_741].into_iter();
    while known.len() < 3 {
        child = stage
            .nicpoll(&["demo", "--resume", "last"])
            .spawn()
            .unwrap();
        match delays.next() {
            Some(delay) => thread::sleep(Duration::from_millis(delay)),
            None => wait_until("one more trial is stored", || {
                stored(&file).len() > known.len()
            }),
        }
        kill(child);
        wait_until("the guard puts everything back", || {
            stage.records().is_empty()
        });
        assert_eq!(interfaces_and_namespaces(), before);
        let now = stored(&file);
        assert_eq!(now[..known.len()], known, "what was stored stays as it was");
        known = now;
        let list = json_of(&done(&stage, "study list --json"));
        assert_eq!(list["studies"][0]["state"], "killed");
        assert_eq!(list["studies"][0]["trials_done"], known.len());
    }
    let unfinished = done(&stage, "study show last");
    // One trial more may have been stored before the kill.
    let words = format!("{} of 8 trials, are stored", known.len());
    assert_has_all(stdout(&unfinished), &format!("was interrupted: | {words}"));

    // Its conditions have changed: trials are mixed only on request.
    has_recorded(&file, "net.ipv4.tcp_congestion_control", "another");
    has_recorded(&file, "net.core.dev_weight", "63");
    let changed = stage.run(&["demo", "--resume", "1"]);
    assert_code(&changed, 1);
    assert_has_all(
        stderr(&changed),
        "net.ipv4.tcp_congestion_control was another and is | net.core.dev_weight was 63 and is | --anyway",
    );
    assert_eq!(stored(&file), known);

    let output = stage.run(&["demo", "--resume", "1", "--anyway", "--json"]);
    assert_eq!(output.stdout, done(&stage, "study show 1 --json").stdout);
    let study = json_of(&output);
    assert_in_order_of_the_plan(&study);
    assert_eq!(stored(&file)[..known.len()], known);
    let warnings = study["warnings"].as_array().unwrap();
    assert!(
        warnings
            .iter()
            .any(|warning| warning["name"] == "interrupted")
    );
    let told = warnings.iter().map(|warning| warning["text"].to_string());
    assert!(
        told.collect::<String>()
            .contains("although net.core.dev_weight was 63")
    );
    wait_until("no record is left", || !stage.state().exists());
    assert_eq!(interfaces_and_namespaces(), before);
    let again = stage.run(&["demo", "--resume", "1"]);
    assert_has(stderr(&again), "study 1 is finished");
}

#[test]
fn a_file_that_cannot_be_stored_in_is_refused_before_anything_is_built() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    done(&stage, "study list");
    let folder = stage.home.path();
    let file = |name: &str| folder.join(name).display().to_string();
    fs::write(
        file("text.db"),
        "This is a text of somebody, and no database.\n".repeat(9),
    )
    .unwrap();
    let future = Connection::open(file("future.db")).unwrap();
    future.execute_batch("PRAGMA user_version = 99").unwrap();
    let locked = Connection::open(file("locked.db")).unwrap();
    locked.execute_batch("BEGIN EXCLUSIVE").unwrap();
    fs::write(file("file"), "").unwrap();
    for (name, code, words) in [
        ("text.db", 1, "it is no database of studies"),
        (
            "future.db",
            1,
            "schema is version 99, and this program knows 2",
        ),
        ("locked.db", 1, "another program holds a lock on it"),
        ("file/below.db", 2, "there is no folder"),
        ("none/a.db", 2, "make it with 'mkdir -p"),
    ] {
        let output = stage.run(&["demo", "--quick", "--store", &file(name)]);
        assert_eq!(output.status.code(), Some(code), "{name}");
        assert!(
            stderr(&output).contains(words),
            "{name}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty());
    }
    let resumed = stage.run(&["demo", "--resume", "last"]);
    assert_has(stderr(&resumed), "nothing is stored in");
    assert!(!stage.store().exists(), "looking makes nothing");
}

#[cfg(not(feature = "postgres"))]
#[test]
fn a_program_without_postgresql_says_so_before_anything_is_built() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let url = "postgres://ann@localhost/lab";
    for args in [["study", "list"], ["demo", "--quick"]] {
        let output = stage.run(&[&args[..], &["--store", url]].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert_has(stderr(&output), "--features postgres");
    }
    assert!(!Path::new("postgres:").exists(), "a URL is no file");
}

/// Runs a script in a mount namespace with a file system of its own.
fn in_mounts(stage: &Stage, script: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_nicpoll");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]);
    command.env("NICPOLL_STATE_DIR", stage.state());
    let folder = stage.home.path().join("mounted");
    fs::create_dir_all(&folder).unwrap();
    command.env("NICPOLL", program).env("FOLDER", folder);
    command.output().unwrap()
}

#[test]
fn when_the_disk_fills_up_the_study_ends_with_what_was_stored() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let output = in_mounts(
        &stage,
        "mount -t tmpfs -o size=128k none $FOLDER && cd $FOLDER && \
         { $NICPOLL demo --quick --workload rr --repeats 40 --duration 0.1 --store s.db; code=$?; \
           $NICPOLL study list --json --store s.db; exit $code; }",
    );
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the disk is full"), "{said}");
    let list = json_of(&output);
    let stored = list["studies"][0]["trials_done"].as_u64().unwrap();
    assert!((1..80).contains(&stored), "{stored}");
    assert!(said.contains(&format!("{stored} trial")), "{said}");
    assert_has(&said, "'nicpoll study run --resume 1' goes on");
    assert!(!stage.state().exists());
}

#[test]
fn where_files_may_not_grow_the_study_ends_with_what_was_stored() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let output = in_mounts(
        &stage,
        "cd $FOLDER && { ( ulimit -f 100; exec $NICPOLL demo --quick --workload rr --repeats 40 \
           --duration 0.1 --store s.db ); code=$?; $NICPOLL study list --json --store s.db; exit $code; }",
    );
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("(ulimit -f)"), "{said}");
    let stored = json_of(&output)["studies"][0]["trials_done"]
        .as_u64()
        .unwrap();
    assert!(said.contains(&format!("{stored} trial")), "{said}");
    wait_until("no record is left", || stage.records().is_empty());
}

#[test]
fn a_read_only_folder_is_named_with_a_remedy_and_can_be_read() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let output = in_mounts(
        &stage,
        "mount -t tmpfs none $FOLDER && cd $FOLDER && : > s.db && $NICPOLL study list --store s.db && \
         mount -o remount,ro $FOLDER && $NICPOLL study list --store s.db && \
         { $NICPOLL demo --quick --store new.db; $NICPOLL demo --quick --store s.db; }",
    );
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(stdout(&output).matches("No studies are stored").count(), 2);
    assert!(said.contains("can be neither opened nor made"), "{said}");
    assert_has(&said, "it is read-only; name another file with --store");
}

#[cfg(feature = "postgres")]
#[test]
fn a_teams_server_holds_what_was_stored_when_a_study_is_killed_and_it_goes_on_there() {
    needs!(Time, Root, PerNapi, Postgres);
    let stage = Stage::new();
    let server = nicpoll_testkit::PostgresServer::start();
    let url = server.url();
    let on_server = |line: &str| format!("{line} --store {url}");
    let state = || {
        let list = stage.run(&words(&on_server("study list --json")));
        let list: Value = serde_json::from_slice(&list.stdout).unwrap_or_default();
        list["studies"][0].clone()
    };
    let done_trials = || state()["trials_done"].as_u64().unwrap_or(0);
    let demo = on_server(FOUR_TRIALS);
    let child = stage.nicpoll(&words(&demo)).spawn().unwrap();
    wait_until("a trial is stored", || done_trials() > 0);
    kill(child);
    wait_until("the server knows that it was killed", || {
        state()["state"] == "killed"
    });
    let known = done_trials();
    let resumed = stage.run(&words(&on_server("study run --resume last --json")));
    let study = json_of(&resumed);
    assert!(study["trials"].as_array().unwrap().len() as u64 >= known.max(1));
    assert!(stderr(&resumed).contains("Stored as study 1 in postgres://"));
    let shown = done(&stage, &on_server("study show 1 --json"));
    assert_eq!(stdout(&shown), stdout(&resumed));
    assert_eq!(state()["state"], "finished");
    let page = stdout(&done(&stage, &on_server("study show 1")));
    assert!(page.contains("round trip p99.9"), "{page}");
    done(&stage, &on_server("study delete 1 --yes"));
    assert_eq!(state(), Value::Null);
    assert!(!stage.store().exists(), "nothing goes into a file");
    wait_until("no record is left", || stage.records().is_empty());
}
