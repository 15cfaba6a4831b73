//! A user's own study: the plan, a run, and mistakes in the file.

mod commands;
#[path = "../common/mod.rs"]
mod common;
mod existing;
mod search;

use crate::common::prelude::*;
use crate::common::stage::{polling, udp200};

/// Returns two periods under one workload, in three short blocks.
fn two_periods() -> String {
    let head = r#"
question = "Does a longer period cost anything?"
blocks = 3
trial = "100ms"
seed = 4
"#;
    let settings = [polling("short", "100us"), polling("long", "1ms")];
    format!("{head}{}{}", settings.concat(), udp200(2000))
}

fn written(stage: &Stage, text: &str) -> String {
    let path = stage.home.path().join("period.toml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn the_plan_is_shown_and_nothing_is_done() {
    let stage = Stage::new();
    let file = written(&stage, &two_periods());
    let shown = stage.run(&["study", "run", &file, "--dry-run"]);
    assert_code(&shown, 0);
    let text = stdout(&shown);
    assert_has_all(
        &text,
        "Does a longer period cost anything? | 3 blocks | at the receiver gro on | UDP \
         with 200 bytes of payload, 2000 a second | long | against short | nothing was changed",
    );
    assert!(!stage.state().exists() && !stage.store().exists());
    let one_length = stage.run(&["study", "run", &file, "--full", "--dry-run"]);
    assert_code(&one_length, 2);
    assert!(stderr(&one_length).contains("full = {"));
    let json = stage.run(&["study", "run", &file, "--dry-run", "--json"]);
    let plan = json_of(&json);
    assert_eq!(plan["schema"], "nicpoll.study-plan/1");
    assert_eq!(plan["seed"], 4);
    assert_eq!(plan["plan"]["order"].as_array().unwrap().len(), 3 * 2);
}

#[test]
fn a_mistake_is_told_with_file_and_line_before_anything_is_built() {
    let stage = Stage::new();
    let file = written(&stage, &two_periods().replacen("gro = ", "groo = ", 1));
    let refused = stage.run(&["study", "run", &file]);
    assert_code(&refused, 2);
    let told = stderr(&refused);
    assert_has(&told, format!("{file}, line 10: there is no knob 'groo'"));
    assert!(!stage.state().exists() && !stage.store().exists());
    let stream = "kind = \"udp\", payload_bytes = 200, packets_per_second = 2000";
    let tcp = written(&stage, &two_periods().replacen(stream, "kind = \"tcp\"", 1));
    let refused = stage.run(&["study", "run", &tcp, "--simulate", "generic"]);
    assert_code(&refused, 2);
    assert_has(stderr(&refused), "nothing of this study can be simulated");
    let missing = stage.run(&["study", "run", "no-such-file.toml"]);
    assert_code(&missing, 2);
    let expected =
        "there is no file and no ready study 'no-such-file.toml'; ready studies are demo,";
    assert_has(stderr(&missing), expected);
    let period = written(&stage, &two_periods().replacen("1ms", "1s", 1));
    let refused = stage.run(&["study", "run", &period, "--dry-run"]);
    assert_code(&refused, 2);
    assert_has(stderr(&refused), "ask for a period of");
}

#[test]
fn a_study_of_a_file_runs_is_stored_and_leaves_nothing() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let before = host_state();
    let file = written(&stage, &two_periods());
    let ran = stage.run(&["study", "run", &file, "--json", "--simulate", "generic"]);
    assert!(
        [Some(0), Some(4)].contains(&ran.status.code()),
        "{}",
        stderr(&ran)
    );
    let study = json_of(&ran);
    assert_eq!(study["question"], "Does a longer period cost anything?");
    assert_eq!(study["seed"], 4);
    let trials = study["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 3 * 2);
    for trial in trials {
        assert_eq!(trial["workload"], "udp200");
    }
    assert_eq!(study["simulated"]["host"], "generic");
    for setting in ["short", "long"] {
        let figures = study["simulated"]["figures"].as_array().unwrap().iter();
        let mut own = figures.filter(|figure| figure["setting"] == setting);
        let rate = own.find(|figure| figure["quantity"] == "delivered_pps");
        let rate = rate.unwrap()["value"].as_f64().unwrap();
        assert!((1900.0..2100.0).contains(&rate), "{setting}: {rate}");
    }
    // Each value that a setting changed, with the earlier one.
    let changed = study["setting_changes"].as_array().unwrap().iter();
    let changed = changed.filter(|one| one["host"] == "receiver");
    let writes = changed.flat_map(|one| one["writes"].as_array().unwrap());
    let timeouts: Vec<&Value> = writes
        .filter(|write| write["name"] == "gro_flush_timeout" && write["napi_id"].is_null())
        .collect();
    assert_eq!(timeouts.len(), 2);
    for write in timeouts {
        assert!(
            write["before"] == 0 && write["after"].as_u64() > Some(0),
            "{write}"
        );
    }
    let [comparison] = &study["plan"]["contrasts"].as_array().unwrap()[..] else {
        panic!("{}", study["plan"]["contrasts"]);
    };
    assert_eq!(comparison, &serde_json::json!(["long", "short"]));
    assert_eq!(host_state(), before);
    assert!(stage.records().is_empty());
    let again = stage.run(&["study", "show", "last", "--json"]);
    assert_eq!(again.stdout, ran.stdout);
    let list = stage.run(&["study", "list", "--json"]);
    let list = json_of(&list);
    assert_eq!(list["studies"][0]["kind"], "study");
}

#[test]
fn a_loss_that_is_proven_ends_with_3_while_it_runs_and_when_it_is_stored() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    // Each request waits for the period: ten times as long.
    let traffic = "{ kind = \"udp\", payload_bytes = 200, packets_per_second = 2000 }";
    let file = written(&stage, &two_periods().replace(traffic, "{ kind = \"rr\" }"));
    let ran = stage.run(&["study", "run", &file, "--fail-on", "worse:5%"]);
    assert_code(&ran, 3);
    let compared = |reference: &str, judged: &str, more: &[&str]| {
        let names = [format!("last:{reference}"), format!("last:{judged}")];
        let args = ["study", "compare", &names[0], &names[1]];
        stage.run(&[&args, more].concat())
    };
    let gate = ["--fail-on", "worse:5%"];
    let lost = compared("short", "long", &gate);
    assert_code(&lost, 3);
    assert_eq!(compared("long", "short", &gate).status.code(), Some(0));
    // Trials of one study are pairs, block by block.
    let found = compared("short", "long", &["--json"]);
    let found = json_of(&found);
    let sets = &found["comparisons"][0];
    assert_eq!(sets["method"], "paired_t");
    assert_eq!(sets["judged"]["values"].as_array().unwrap().len(), 3);
    assert!(sets["ratio"].as_f64().unwrap() < 0.5, "{sets}");
}

#[test]
fn a_study_runs_under_the_workloads_that_are_asked_for() {
    let stage = Stage::new();
    let run = |workload: &str| {
        stage.run(&words(&format!(
            "study run demo --dry-run --json --workload {workload}"
        )))
    };
    let planned = run("rr,udp64");
    let plan = json_of(&planned);
    let names = plan["workloads"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|one| one["workload"].as_str().unwrap()).collect();
    assert_eq!(names, ["udp64", "rr"]);
    assert_eq!(plan["plan"]["family_comparisons"], 4);
    let refused = run("udp46x");
    assert_code(&refused, 2);
    assert_has(stderr(&refused), "known are tcp, udp1470, udp64, rr");
}

#[test]
fn a_sweep_shows_offered_against_delivered_and_the_greatest_rate_held() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let file = written(&stage, &two_periods());
    let planned = stage.run(&words(&format!(
        "study run {file} --sweep rate=10%,20% --dry-run"
    )));
    assert_has(stdout(&planned), "in this sweep at 20 % of the knee");
    let closed = stage.run(&["study", "run", &file, "--sweep", "20000", "--dry-run"]);
    assert_code(&closed, 2);
    assert_has(stderr(&closed), "write rate=20000,40000");
    // Any machine holds ten datagrams a millisecond, and none a hundred million.
    let one_block = written(&stage, &two_periods().replace("blocks = 3", "blocks = 1"));
    let rates = "rate=1000,2000,100000000";
    let ran = stage.run(&["study", "run", &one_block, "--sweep", rates, "--json"]);
    assert!(
        [Some(0), Some(4)].contains(&ran.status.code()),
        "{}",
        stderr(&ran)
    );
    let study = json_of(&ran);
    assert_eq!(study["workloads"][1]["load"]["asked_per_second"], 2000);
    let sweep = &study["sweeps"][0];
    assert_eq!(
        (&sweep["sweep"], &sweep["unit"]),
        (&Value::from("udp200"), &Value::from("datagrams"))
    );
    for setting in sweep["settings"].as_array().unwrap() {
        let points = setting["points"].as_array().unwrap();
        assert_eq!(points.len(), 3);
        assert_ne!(setting["held_per_second"], 100_000_000, "{setting}");
        assert_ne!(setting["ended_by"], "sweep", "{setting}");
        let offered = points[2]["offered_per_second"].as_f64().unwrap();
        assert!(offered > 0.0 && offered < 9e7, "{setting}");
    }
    let page = stage.run(&["study", "show", "last"]);
    let page = stdout(&page);
    assert_has(&page, "udp200: offered against delivered, packets a second");
    assert!(page.contains("Greatest rate held"), "{page}");
    assert!(stage.records().is_empty());
}

/// Nothing passes the router under either setting.
const DEAD_ROUTER: &str = r#"
question = "Does a router that forwards nothing say so?"
blocks = 3
trial = "100ms"
topology = { kind = "router" }
[common]
before = [{ host = "router", command = ["sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward"] }]
after = [{ host = "router", command = ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"] }]
[[setting]]
name = "off"
[[setting]]
name = "on"
router = { gro = "on" }
[[workload]]
name = "flood"
traffic = { kind = "netrate", payload_bytes = 64 }
"#;

#[test]
fn a_router_that_forwards_nothing_has_no_verdict_in_any_form() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let file = written(&stage, DEAD_ROUTER);
    let html = stage.home.path().join("page.html").display().to_string();
    let run = [
        "study",
        "run",
        &file,
        "--brief",
        "--fail-on",
        "worse",
        "--report",
        &html,
    ];
    let ran = stage.run(&run);
    assert_code(&ran, 4);
    let why = "trials failed: nothing was delivered; an interval takes 3 blocks, and there are 0.";
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = flat(&stdout(&ran));
    assert_has(&text, "say so? No verdict under flood: ");
    assert_has(&text, why);
    assert_has(&text, "flood rate no verdict");
    let verdicts = text.replace("the same command", "");
    for word in [" same ", " wins ", " loses ", "equivalent: "] {
        assert!(!verdicts.contains(word), "{text}");
    }
    let page = fs::read_to_string(&html).unwrap();
    assert_has(&page, "No verdict under flood: ");
    assert_has(&page, why);
    assert!(!page.contains("equivalent:"), "{page}");
    let compared = stage.run(&["study", "compare", "1:off", "1:on"]);
    assert_code(&compared, 4);
    let words = flat(&stdout(&compared));
    assert_has(
        &words,
        "flood, rate: no verdict: 1:on and 1:off have no ratio: ",
    );
    assert_has(&words, why);
    let gated = ["study", "compare", "1:off", "1:on", "--fail-on", "worse"];
    assert_code(&stage.run(&gated), 4);
}

/// A program that ignores SIGTERM, with a child that has left its process group and its pipes.
const STUBBORN: &str = r#"
question = "Does anything stay?"
blocks = 3
trial = "30s"
[[setting]]
name = "one"
[[setting]]
name = "two"
[[workload]]
name = "own"
traffic = { kind = "command", parser = "regex", unit = "Mbit/s", pattern = "rate ([0-9.]+)", sender = ["sh", "-c", "trap '' TERM HUP INT; (trap '' TERM HUP; setsid sleep 304.125 >/dev/null 2>&1 &) ; sleep 304.125; true"] }
"#;

#[test]
fn no_program_of_a_study_outlives_it_however_it_ends() {
    needs!(Root, PerNapi);
    let runs = || {
        let lines = fs::read_dir("/proc").unwrap().flatten();
        let lines = lines.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        lines.filter(|line| line == b"sleep\x00304.125\x00").count()
    };
    let stage = Stage::new();
    let file = written(&stage, STUBBORN);
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let mut command = stage.nicpoll(&["study", "run", &file, "--no-store"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        wait_until("the program and its part run", || runs() == 2);
        let namespaces = namespaces_of(child.id());
        assert_eq!(namespaces.len(), 2);
        send_signal(&child, signal);
        child.wait().unwrap();
        wait_until("the programs are gone", || runs() == 0);
        wait_until("the namespaces are gone", || !in_use(&namespaces));
        wait_until("the records are closed", || !stage.state().exists());
    }
}

/// Programs that end with an error at once.
const FAILING: &str = r#"
question = "Is it told?"
blocks = 2
trial = "200ms"
[[setting]]
name = "one"
[[setting]]
name = "two"
[[workload]]
name = "own"
[workload.traffic]
kind = "command"
parser = "regex"
unit = "Mbit/s"
pattern = "rate ([0-9.]+)"
capabilities = ["net_raw"]
user = "nobody"
sender = ["sh", "-c", "echo first >&2; echo no route >&2; grep CapEff /proc/self/status >&2; id -un >&2; exit 3"]
"#;

#[test]
fn a_program_that_fails_is_told_with_its_rights_its_last_lines_and_what_to_do() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let unknown = written(&stage, &FAILING.replacen("net_raw", "net_rawer", 1));
    let refused = stage.run(&["study", "run", &unknown, "--dry-run"]);
    assert_code(&refused, 2);
    assert_has(stderr(&refused), "there is no capability 'net_rawer'");
    let file = written(&stage, FAILING);
    let plan = json_of(&stage.run(&["study", "run", &file, "--dry-run", "--json"]));
    let described = plan["workloads"][0]["description"].as_str().unwrap();
    assert_has(described, ", run as nobody, with net_raw");
    let ran = stage.run(&["study", "run", &file, "--json"]);
    assert_code(&ran, 4);
    let study = json_of(&ran);
    let why = study["trials"][0]["failure"].as_str().unwrap();
    assert_has_all(
        why,
        "exit status: 3, and said: no route | CapEff: | 0000000000002000 | nobody; run it by hand",
    );
    let told = stdout(&stage.run(&["study", "show", "last", "--brief"]));
    assert_has(told, "exit status: 3");
}
