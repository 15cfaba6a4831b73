//! A study with commands before and after its traffic: their changes are the study's own, and are always undone.

use crate::common::prelude::*;
use crate::common::stage::{host_state, in_use, namespaces_of, udp200};
use crate::written;

const HEAD: &str = r#"
question = "Does a queue cost anything?"
blocks = 3
trial = "100ms"
"#;

/// Returns a study of two settings, the second with commands around its traffic.
fn with_commands(commands: &str) -> String {
    let other =
        format!("[[setting]]\nname = \"none\"\n[[setting]]\nname = \"queue\"\n{commands}\n");
    format!("{HEAD}{other}{}", udp200(2000))
}

/// Returns a command at the sender.
fn at_sender(script: &str) -> String {
    format!("[{{ host = \"sender\", command = [\"sh\", \"-c\", \"{script}\"] }}]")
}

fn warnings(study: &Value) -> String {
    study["warnings"].to_string()
}

#[test]
fn what_commands_change_is_the_studys_own_and_is_undone() {
    needs!(Root, PerNapi, Tc);
    let stage = Stage::new();
    let log = stage.home.path().join("after");
    let after = format!(
        "tc qdisc del dev {{interface}} root; echo ran >> {}",
        log.display()
    );
    let file = written(
        &stage,
        &with_commands(&format!(
            "before = [{{ host = \"sender\", command = [\"tc\", \"qdisc\", \"replace\", \"dev\", \"{{interface}}\", \"root\", \
             \"pfifo\"] }}]\nafter = {}",
            at_sender(&after)
        )),
    );
    let planned = stage.run(&["study", "run", &file, "--dry-run"]);
    let planned = stdout(&planned);
    let planned = planned.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_has_all(
        planned,
        "tc qdisc replace dev {interface} root pfifo | take is not known, and not in the estimate",
    );
    let ran = stage.run(&["study", "run", &file, "--json"]);
    let study = json_of(&ran);
    let trials = study["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 3 * 2, "{}", said(&ran));
    for trial in trials {
        assert_eq!(trial["external"], Value::Null, "{trial}");
        assert!(
            trial["figures"]["delivered_packets"].as_u64() > Some(0),
            "{trial}"
        );
    }
    // Lines of the trials and of the measurements before them.
    assert!(fs::read_to_string(&log).unwrap().lines().count() >= 3);
    let changes = study["setting_changes"].as_array().unwrap();
    let writes = |setting: &str| {
        let own = changes.iter().filter(|one| one["setting"] == setting);
        let own: Vec<&Value> = own
            .flat_map(|one| one["writes"].as_array().unwrap())
            .collect();
        own.iter()
            .map(|it| format!("{} {} {}", it["name"], it["before"], it["after"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(writes("queue"), ["\"qdisc\" \"noqueue\" \"pfifo\""]);
    assert!(writes("none").is_empty());
    assert_eq!(study["confounders"], serde_json::json!([]));
    assert!(
        !warnings(&study).contains("commands"),
        "{}",
        warnings(&study)
    );
}

#[test]
fn what_nothing_undoes_is_put_back_or_told() {
    needs!(Root, PerNapi, Tc);
    let stage = Stage::new();
    let script = "tc qdisc replace dev {interface} root pfifo; ip link set {interface} txqueuelen 77; \
                  sysctl -qw net.ipv4.tcp_ecn=1";
    let text = with_commands(&format!("before = {}", at_sender(script)));
    let file = written(&stage, &text);
    let study = json_of(&stage.run(&["study", "run", &file, "--json"]));
    let trials = study["trials"].as_array().unwrap();
    assert!(trials.iter().all(|it| it["external"] == Value::Null));
    assert!(
        !warnings(&study).contains("nothing put it back"),
        "{}",
        warnings(&study)
    );
    assert_eq!(study["confounders"], serde_json::json!([]));
    // The study's queue for its line is not the kernel's default.
    let shaped = text.replacen(
        "[[setting]]",
        "[topology]\nrate = \"100Mbit/s\"\n[[setting]]",
        1,
    );
    let file = written(&stage, &shaped);
    let study = json_of(&stage.run(&["study", "run", &file, "--json"]));
    let told = "sender: the commands before traffic changed tc qdisc, which was 'tbf";
    assert_has(warnings(&study), told);
}

#[test]
fn a_command_that_fails_fails_its_trials_and_what_undoes_it_runs() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let log = stage.home.path().join("after");
    let [before, after] = [
        at_sender("echo fq: no such module >&2; exit 3"),
        at_sender(&format!("echo ran >> {}", log.display())),
    ];
    let text = with_commands(&format!("before = {before}\nafter = {after}")).replacen("3", "6", 1);
    let file = written(&stage, &text);
    let ran = stage.run(&["study", "run", &file, "--json"]);
    assert_code(&ran, 4);
    let study = json_of(&ran);
    let trials = study["trials"].as_array().unwrap();
    let failed: Vec<&Value> = trials
        .iter()
        .filter(|it| it["setting"] == "queue")
        .collect();
    // Two like failures end the comparison.
    assert_eq!(failed.len(), 2);
    for trial in failed {
        let why = trial["failure"].as_str().unwrap();
        assert_has(
            why,
            "'sh' ended with exit status: 3, and said: fq: no such module",
        );
    }
    assert!(fs::read_to_string(&log).unwrap().lines().count() >= 2);
}

#[test]
fn a_kill_in_a_command_leaves_nothing_of_what_it_changed() {
    needs!(Time, Root, PerNapi, Tc);
    let stage = Stage::new();
    let before = host_state();
    let log = stage.home.path().join("begun");
    let script = format!(
        "tc qdisc replace dev {{interface}} root pfifo; echo begun > {}; exec sleep 9",
        log.display()
    );
    let text = with_commands(&format!("before = {}", at_sender(&script)));
    let file = written(&stage, &text);
    let mut child = stage.nicpoll(&["study", "run", &file]).spawn().unwrap();
    wait_until("a command has changed the link", || log.exists());
    let namespaces = namespaces_of(child.id());
    assert!(!namespaces.is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("nobody is in the namespaces", || !in_use(&namespaces));
    assert_eq!(host_state(), before);
}

#[test]
fn a_program_of_the_study_that_changes_the_link_ends_it_early_with_what_to_do() {
    needs!(Root, PerNapi, Tc);
    let stage = Stage::new();
    let text = r#"
question = "Does a queue cost anything?"
blocks = 9
trial = "1s"
[[setting]]
name = "fifo"
variant = { disc = "pfifo" }
[[setting]]
name = "queue"
variant = { disc = "bfifo" }
[[workload]]
name = "prog"
[workload.traffic]
kind = "command"
capabilities = ["net_admin"]
sender = ["sh", "-c", "tc qdisc replace dev em0 root {disc}; sleep 0.1; echo rate 5"]
parser = "regex"
pattern = "rate ([0-9]+)"
unit = "Mbit/s"
"#;
    let file = written(&stage, text);
    let ran = stage.run(&["study", "run", &file, "--brief"]);
    assert_code(&ran, 4);
    let shown = stdout(&ran)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert_has(
        &shown,
        "What this means here - 4 of 4 trials were disturbed from outside, and their pairs do not count: another process \
         changed a queueing discipline or filter during the trial. If a program of this study does that, make it a command \
         before the traffic",
    );
}

/// Interrupts a study as soon as one of its programs writes to the log, and checks that nothing is left.
fn interrupted(text: impl Fn(&Path) -> String) {
    let stage = Stage::new();
    let log = stage.home.path().join("log");
    let before = host_state();
    let file = written(&stage, &text(&log));
    let mut command = stage.nicpoll(&["study", "run", &file]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let has = |word: &str| fs::read_to_string(&log).unwrap_or_default().contains(word);
    wait_until("the program runs", || has("begun"));
    let namespaces = namespaces_of(child.id());
    send_signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_code(&output, 130);
    assert_has(stderr(&output), "all settings are restored");
    assert_has(stderr(&output), "'nicpoll study run --resume 1' goes on");
    assert!(has("undone"), "what undoes it runs");
    assert!(!has("waited"), "it was waited for");
    assert!(!in_use(&namespaces) && !stage.state().exists());
    assert_eq!(host_state(), before);
}

#[test]
fn an_interrupt_ends_a_command_or_a_program_at_once_and_what_undoes_it_runs() {
    needs!(Root, PerNapi, Tc);
    let queue = "tc qdisc replace dev {interface} root pfifo";
    let slow = |log: &Path| {
        format!(
            "echo begun >> {0}; sleep 8; echo waited >> {0}",
            log.display()
        )
    };
    let undone = |log: &Path| {
        let log = log.display();
        format!("tc qdisc del dev {{interface}} root; echo undone >> {log}")
    };
    let around = |before: &str, after: &str| {
        let [before, after] = [before, after].map(at_sender);
        format!("before = {before}\nafter = {after}")
    };
    // In a command before the traffic.
    interrupted(|log| {
        let before = format!("{queue}; {}", slow(log));
        with_commands(&around(&before, &undone(log)))
    });
    // In a command after it, which is allowed to end: it undoes changes.
    interrupted(|log| {
        let begun = format!("echo begun >> {}; sleep 0.5", log.display());
        with_commands(&around(queue, &format!("{begun}; {}", undone(log))))
    });
    // In a program of the traffic.
    interrupted(|log| {
        let program = format!(
            "[[setting]]\nname = \"one\"\n[[setting]]\nname = \"two\"\n[[workload]]\nname = \"own\"\n{}\n\
             traffic = {{ kind = \"command\", parser = \"regex\", unit = \"Mbit/s\", pattern = \"rate ([0-9]+)\", \
             sender = [\"sh\", \"-c\", \"{}; echo rate 5\"] }}\n",
            around(queue, &undone(log)),
            slow(log)
        );
        format!("{HEAD}{program}")
    });
}
