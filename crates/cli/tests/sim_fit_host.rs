//! `nicpoll sim fit --host`: its output, files and refusals.

mod common;

use crate::common::prelude::*;

fn sim(args: &[&str]) -> std::process::Output {
    let mut command = Command::new(NICPOLL);
    command.arg("sim").args(args).output().unwrap()
}

/// A refused fit writes no file.
fn refused_a_busy_machine(output: &std::process::Output, file: &str) {
    assert_code(output, 1);
    assert!(fs::read(file).is_err(), "{file} is there");
}

#[test]
fn a_quick_fit_measures_every_cost_writes_a_host_that_runs_and_leaves_nothing() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let file = stage.home.path().join("here.toml");
    let file = file.to_str().unwrap();
    let before = host_state();
    let output = stage.run(&words(&format!(
        "sim fit --host --quick --check --json --out {file}"
    )));
    assert_eq!(host_state(), before);
    assert!(!stage.state().exists());
    let errors = stderr(&output);
    if errors.contains("other programs took") {
        refused_a_busy_machine(&output, file);
        return skip(test_name!(), Need::QuietMachine, errors.trim());
    }
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "", "progress belongs on a terminal only");
    let fit = json_of(&output);
    assert_described(&fit, "sim-fit-host");
    let costs = fit["costs"].as_array().unwrap();
    for cost in costs {
        let ns = &cost["ns"];
        assert!(ns.is_null() || ns.as_f64().unwrap() > 0.0, "{cost}");
    }
    let told = |name: &str| {
        costs
            .iter()
            .any(|cost| cost["cost"] == name && !cost["ns"].is_null())
    };
    // On a busy machine the others scatter around 0.
    for name in [
        "one-packet-poll",
        "empty-poll",
        "send",
        "thread-switch",
        "round-trip",
    ] {
        assert!(told(name), "{name}: {costs:?}");
    }
    let checks = fit["checks"].as_array().unwrap();
    for kind in ["fitted", "predicted"] {
        assert!(checks.iter().any(|check| check["kind"] == kind), "{kind}");
    }
    for check in checks {
        assert!(check["simulated"].as_f64().unwrap() > 0.0, "{check}");
        let is_predicted = check["kind"] == "predicted";
        assert_eq!(is_predicted, check["setting"] == "polling", "{check}");
    }
    let text = fs::read_to_string(file).unwrap();
    let numbers = fit["numbers"].as_array().unwrap();
    assert_eq!(text.matches(" = ").count(), numbers.len() + 1, "{text}");
    let output = sim(&words(&format!(
        "run {file} --peer {file} --workload rr --discipline napi --duration 50ms"
    )));
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_file_that_exists_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("here.toml");
    fs::write(&file, "mine").unwrap();
    let output = sim(&["fit", "--host", "--out", file.to_str().unwrap()]);
    assert_code(&output, 2);
    assert_has(stderr(&output), "exists and is left alone");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}
