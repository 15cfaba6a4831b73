//! `nicpoll demo` as a user meets it: what it prints, what it refuses, and that nothing is left after
//! any way out.

mod common;

use crate::common::prelude::*;
use crate::common::terminal::Terminal;

/// The shortest demo with every setting, apart from measuring the cost of counting.
const SHORT: [&str; 7] = [
    "demo",
    "--workload",
    "rr",
    "--repeats",
    "1",
    "--duration",
    "0.1",
];

/// A guard needs less than a second; the machine may be busy.
const GUARD_MAX: Duration = Duration::from_secs(2);

/// Shortens that measurement, too, for other tests.
fn shortest(more: &[&'static str]) -> Vec<&'static str> {
    [&SHORT[..], &["--quick"], more].concat()
}

#[test]
fn a_quick_demo_prints_an_object_that_holds_what_the_schema_says() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let before = host_state();
    let output = stage.run(&["demo", "--quick", "--repeats", "3", "--seed", "7", "--json"]);
    assert_eq!(host_state(), before);
    let code = output.status.code().unwrap();
    // On a busy machine too few blocks may fit into the time.
    assert!(code == 0 || code == 4, "{code}: {}", stderr(&output));
    let told = stderr(&output);
    assert!(told.starts_with("Stored as study 1 in "), "{told}");
    assert_eq!(
        told.lines().count(),
        1,
        "progress belongs on a terminal only: {told}"
    );
    let study = json_of(&output);
    assert_described(&study, "demo");
    assert_eq!(study["seed"], 7);
    let trials = study["trials"].as_array().unwrap();
    assert!(!trials.is_empty());
    for trial in trials {
        check_trial(trial);
    }
    // Its time limit holds, however busy the machine is.
    let limit = study["plan"]["limit_seconds"].as_f64().unwrap();
    assert!(study["elapsed_seconds"].as_f64().unwrap() < limit);
    assert_eq!(study["plan"]["blocks"], 3);
    assert!(!stage.state().exists());
}

#[test]
fn what_the_simulator_says_is_kept_beside_what_was_measured() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let page = stage.home.path().join("page.html");
    let page = page.to_str().unwrap();
    let asked = ["--json", "--simulate", "generic", "--report", page];
    let output = stage.run(&[&SHORT[..], &["--quick"], &asked].concat());
    assert_code(&output, 0);
    let study = json_of(&output);
    assert_described(&study, "demo");
    assert_eq!(study["simulated"]["host"], "generic");
    let figures = study["simulated"]["figures"].as_array().unwrap();
    for setting in ["interrupt", "polling"] {
        let is_median = |figure: &&Value| {
            figure["setting"] == setting && figure["quantity"] == "round_trip_p50_ns"
        };
        let median = figures.iter().find(is_median).unwrap();
        assert_eq!(median["workload"], "rr");
        assert!(median["value"].as_f64().unwrap() > 0.0);
    }
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Predicted by the simulator, against the median of the trials"));
}

/// Checks what holds for every trial on any machine.
fn check_trial(trial: &Value) {
    let setting = trial["setting"].as_str().unwrap();
    let is_tcp = trial["workload"] == "tcp";
    let cpus = &trial["placement"];
    assert_ne!(cpus["sender_cpu"], cpus["receiver_cpu"]);
    assert!(trial["findings"]["load_average_1min"].is_number());
    let figures = &trial["figures"];
    assert_eq!(figures["offered_packets"].is_null(), is_tcp, "{trial}");
    assert!(figures["delivered_bits_per_second"].as_f64().unwrap() > 0.0);
    assert_eq!(figures["packets_per_poll"].is_null(), setting == "default");
    if trial["unproven"].is_null() {
        let rounds = figures["rounds_per_second"].as_f64().unwrap();
        match setting {
            "default" => assert_eq!(rounds, 0.0),
            "interrupt" => assert!(rounds > 0.0),
            _ => assert!((4500.0..=5500.0).contains(&rounds), "{rounds}"),
        }
        let napi = &figures["polls"]["napi_id"];
        assert_eq!(napi.is_null(), setting == "default");
    }
    let residual = &figures["ledger"]["residual_packets"];
    assert_eq!(residual.is_null(), is_tcp);
    check_cpu(trial);
}

/// Checks that CPU time is exact wherever polls can be counted, and adds up without steal.
fn check_cpu(trial: &Value) {
    let figures = &trial["figures"];
    let cpu = &figures["cpu"];
    assert_eq!(cpu["source"], "exact");
    let sampled = &figures["cpu_tick_sampled"];
    for states in [&cpu["cores"], sampled] {
        assert_eq!(states.as_array().unwrap().len(), 2, "{trial}");
    }
    for core in cpu["cores"].as_array().unwrap() {
        let share = |state: &str| core[state].as_f64().unwrap();
        let sum: f64 = [
            "user_ratio",
            "nice_ratio",
            "system_ratio",
            "irq_ratio",
            "softirq_ratio",
            "idle_ratio",
        ]
        .map(share)
        .iter()
        .sum();
        assert!((sum - 1.0).abs() < 0.005, "{core}");
    }
    let foreign = trial["findings"]["foreign_cpu"].as_array().unwrap();
    assert_eq!(foreign.len(), 2, "{trial}");
    if cpu["ledger_void"].is_null() {
        assert!(cpu["busy_ns_per_byte"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_demo_ends_in_its_time_beside_other_work_and_shows_that_work() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let mut others: Vec<_> = (0..4)
        .map(|_| {
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .spawn()
                .unwrap()
        })
        .collect();
    let begin = Instant::now();
    let line = "demo --quick --null --workload udp64 --repeats 10 --json";
    let output = stage.run(&line.split(' ').collect::<Vec<_>>());
    let taken = begin.elapsed();
    for other in &mut others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    let code = output.status.code().unwrap();
    assert!(code == 0 || code == 4, "{code}: {}", stderr(&output));
    let study = json_of(&output);
    let limit = study["plan"]["limit_seconds"].as_f64().unwrap();
    assert!(taken.as_secs_f64() < limit, "{taken:?} of {limit} s");
    let trials = study["trials"].as_array().unwrap();
    let foreign = |trial: &Value| -> f64 {
        let cores = trial["findings"]["foreign_cpu"].as_array().unwrap();
        cores
            .iter()
            .map(|core| core["busy_ratio"].as_f64().unwrap())
            .sum()
    };
    let greatest = trials.iter().map(foreign).fold(0.0, f64::max);
    assert!(
        greatest > 0.1,
        "four busy programs and {greatest} of a core"
    );
    // Other programs' CPU use voids no trial.
    assert!(trials.iter().all(|trial| trial["external"].is_null()));
    let labels: Vec<&str> = trials
        .iter()
        .map(|trial| trial["setting"].as_str().unwrap())
        .collect();
    assert!(labels.contains(&"polling-1") && labels.contains(&"polling-2"));
}

#[test]
fn what_the_machine_lacks_is_named_with_code_5() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let program = env!("CARGO_BIN_EXE_nicpoll");
    let inside = |before: &str| format!("{before} && exec {program} demo --quick");
    let state = stage.state().display().to_string();
    for (before, state, words) in [
        ("taskset -p -c 0 $$ > /dev/null", state.as_str(), "two CPUs"),
        ("umount -l /proc", &state, "mount -t proc"),
        ("true", "/sys/nicpoll", "NICPOLL_STATE_DIR=/run/nicpoll"),
    ] {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &inside(before)]);
        let output = command.env("NICPOLL_STATE_DIR", state).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(5),
            "{before}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(words),
            "{before}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn without_bpf_settings_are_read_back_and_cpu_time_is_sampled() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let output = without_bpf(stage.nicpoll(&[&SHORT[..], &["--json"]].concat()));
    assert_code(&output, 0);
    let study = json_of(&output);
    assert_described(&study, "demo");
    let warnings = study["warnings"].to_string();
    assert_has_all(&warnings, "not proven by polls | sampled by the clock tick");
    let trials = study["trials"].as_array().unwrap();
    assert!(!trials.is_empty());
    for trial in trials {
        assert!(trial["failure"].is_null(), "{trial}");
        assert_has(&trial["unproven"], "not proven by polls");
        let figures = &trial["figures"];
        assert!(figures["polls"].is_null() && figures["polls_per_second"].is_null());
        let cpu = &figures["cpu"];
        assert_eq!(cpu["source"], "tick_sampled");
        assert!(cpu["busy_ns_per_packet"].as_f64().unwrap() > 0.0, "{cpu}");
    }
    let text = stdout(&stage.run(&["study", "show", "last"]));
    assert_has_all(&text, "read back only | not proven by polls");
    assert!(!text.contains("out of rhythm"), "{text}");
}

#[test]
fn the_table_shows_every_setting_and_says_that_the_link_is_virtual() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let output = stage.run(&SHORT);
    assert_code(&output, 0);
    let text = stdout(&output);
    assert_has_all(
        &text,
        "default | interrupt | polling | virtual | round trip p99.9 | seed",
    );
    assert!(!text.contains('\u{1b}'), "no colour where no terminal is");
}

#[test]
fn progress_is_one_line_at_any_width() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    for columns in [40, 80] {
        let mut terminal = Terminal::of_errors(columns, stage.nicpoll(&shortest(&["--json"])));
        // The output must not fill its pipe.
        let printed = terminal.child.stdout.take().unwrap();
        let printed = std::io::read_to_string(printed).unwrap();
        assert!(terminal.wait().success());
        assert!(printed.starts_with('{'), "{printed}");
        let drawn = terminal.drawn();
        assert!(drawn.contains("ends within "), "{drawn}");
        // A wrapped line would be cleared by moving up.
        assert!(!drawn.contains("\u{1b}[1A"), "{columns} columns: {drawn:?}");
        let lines = drawn.split(['\r', '\n']).map(visible);
        let lines: Vec<String> = lines.filter(|line| line.contains(" s left")).collect();
        assert!(!lines.is_empty(), "{drawn:?}");
        for line in lines {
            let width = line.trim_end().chars().count();
            assert!(width <= usize::from(columns), "{columns} columns: {line}");
        }
    }
}

/// Removes escape sequences from a line.
fn visible(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default();
    let after = |part: &str| {
        let end = part.find(|letter: char| letter.is_ascii_alphabetic());
        end.map_or_else(String::new, |end| String::from(&part[end + 1..]))
    };
    parts.fold(String::from(first), |line, part| line + &after(part))
}

#[test]
fn a_second_after_a_kill_in_mid_trial_nothing_is_left_not_even_a_record() {
    needs!(Root, PerNapi);
    let stage = Stage::new();
    let before = host_state();
    let mut child = stage.demo_in_mid_trial();
    let namespaces = namespaces_of(child.id());
    assert_eq!(namespaces.len(), 2);
    assert!(in_use(&namespaces));
    assert_eq!(stage.records().len(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let killed = Instant::now();
    // The guard keeps no namespace alive, and closes the records without a write.
    wait_until("the records are closed", || !stage.state().exists());
    assert!(killed.elapsed() < GUARD_MAX, "{:?}", killed.elapsed());
    wait_until("the namespaces are gone", || !in_use(&namespaces));
    assert_eq!(host_state(), before);
    let next = stage.run(&shortest(&[]));
    assert_code(&next, 0);
    assert!(!stage.state().exists(), "{:?}", stage.records());
}

#[test]
fn when_the_guard_is_killed_too_the_next_start_closes_the_records() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let mut child = stage.demo_in_mid_trial();
    stop_with_two_records(&stage, &child);
    let namespaces = namespaces_of(child.id());
    let guard = guard_of(child.id());
    kill_process(guard, Signal::KILL).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the namespaces are gone", || !in_use(&namespaces));
    assert_eq!(stage.records().len(), 2);
    let next = stage.run(&shortest(&[]));
    assert_code(&next, 0);
    assert!(!stage.state().exists(), "{:?}", stage.records());
}

/// Stops the program while a setting is in force: on a busy machine it could otherwise end its trial before it is
/// killed.
fn stop_with_two_records(stage: &Stage, child: &Child) {
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    let is_stopped = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with('T')
    };
    for _ in 0..10 {
        wait_until("a trial applies a setting", || stage.records().len() == 2);
        kill_process(pid, Signal::STOP).unwrap();
        wait_until("it has stopped", is_stopped);
        if stage.records().len() == 2 {
            return;
        }
        kill_process(pid, Signal::CONT).unwrap();
    }
    panic!("no trial was met with its setting in force");
}

/// Returns the guard that a program started: its child of that name.
fn guard_of(parent: u32) -> Pid {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    let is_guard = |pid: &&str| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        line.split('\0').any(|word| word == "guard")
    };
    let pid = children.split_whitespace().find(is_guard).unwrap();
    Pid::from_raw(pid.parse().unwrap()).unwrap()
}

#[test]
fn signals_put_everything_back_and_say_so_in_the_exit_code() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let before = host_state();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let child = stage.demo_in_mid_trial();
        let namespaces = namespaces_of(child.id());
        send_signal(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_code(&output, code);
        assert_has(stderr(&output), "settings are restored");
        assert!(output.stdout.is_empty());
        assert!(!in_use(&namespaces));
        assert!(!stage.state().exists());
        assert_eq!(host_state(), before);
    }
}

#[test]
fn namespaces_are_kept_by_name_when_asked() {
    needs!(Time, Root, PerNapi);
    let stage = Stage::new();
    let output = stage.run(&shortest(&["--keep", "--json"]));
    assert_code(&output, 0);
    let study = json_of(&output);
    let names = study["lab"]["kept_as"].as_array().unwrap();
    assert_eq!(names.len(), 2);
    for name in names {
        let path = Path::new("/run/netns").join(name.as_str().unwrap());
        assert!(path.exists(), "{}", path.display());
        nicpoll_sys::netns::forget(&path).unwrap();
    }
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy_before_anything_is_made() {
    let stage = Stage::new();
    assert_refused(
        "
        2 | demo --period 0 | a unit is needed, such as '0us'
        2 | demo --period 0us | ask for 20us or more
        2 | demo --period 1s | ask for a period of 5ms or less
        2 | demo --null=fast --quick | known are default, interrupt, polling
        2 | demo --period soon | is not a time
        2 | demo --workload sctp | known are tcp, udp1470, udp64, rr
        2 | demo --repeats 0 | a whole number from 1 to 1000
        2 | demo --duration 1us | ask for 100ms to 600s
        2 | demo --seed x | a whole number from 0
        2 | demo --report /no/such/folder/page.html | an existing folder
        ",
        |line| {
            let output = stage.run(&words(line));
            assert!(!stage.state().exists(), "{line}");
            output
        },
    );
}

#[test]
fn without_root_it_says_what_is_missing_and_how_to_run_it() {
    let stage = Stage::new();
    let mut command = as_nobody(&copy_for_anybody(stage.home.path()));
    command.arg("demo").env("NICPOLL_STATE_DIR", stage.state());
    let output = command.output().unwrap();
    assert_code(&output, 5);
    assert!(stderr(&output).contains("CAP_NET_ADMIN"));
    assert!(stderr(&output).contains("sudo"));
    assert!(!stage.state().exists());
}

#[test]
fn help_has_examples_and_exit_codes() {
    let stage = Stage::new();
    let output = stage.run(&["demo", "--help"]);
    let text = stdout(&output);
    assert_code(&output, 0);
    assert_has_all(
        &text,
        "Examples: | --quick | --null | 150 s | Exit codes: | udp1470",
    );
    for args in [&["completions", "bash"][..], &["man"]] {
        let output = stage.run(args);
        assert_code(&output, 0);
        assert!(output.stdout.len() > 500);
    }
}
