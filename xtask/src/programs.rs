//! Builds all test programs at once and runs them, several at a time where they do not disturb one another.
//!
//! Runs every program that cargo builds, in its package's folder, as cargo would, and keeps a program's output
//! together. A program that measures CPU time or the rhythm of polls runs alone: it would measure a second one,
//! too. When few tests fail they run once more, alone, after all others; those that pass only then are named
//! as unsteady.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Error, Result};
use serde_json::Value;

use crate::process::{cargo, kept_output, metadata, run_line_by_line};

/// Test programs that judge processor time, delays or the rhythm of polls, or that look at what the whole machine
/// has or lost.
const ALONE: [&str; 13] = [
    "cpu_truth",
    "demo",
    "disturbed",
    "evidence",
    "exact_cpu",
    "hung",
    "json_host",
    "ledger",
    "old_dialects",
    "rhythm",
    "search",
    "sim_fit_host",
    "user_frac",
];
/// Test programs that send as much as they can, or compare what two ends counted in a time. They run in this order, those
/// that take longest first.
const BUSY: [&str; 9] = [
    "ab",
    "hosts",
    "kills",
    "iperf",
    "study_run",
    "store",
    "netrate",
    "iperf_strangers",
    "show",
];
/// Test programs whose guests have a processor of software: they compute for minutes, whenever no other program does.
const EMULATED: [&str; 2] = ["guests", "kernels"];
/// Runs a program only while nothing else wants the processor (util-linux).
const WHEN_IDLE: [&str; 3] = ["chrt", "--idle", "0"];
/// Programs of which most tests wait for a limit of time: more of them run at once than there are processors.
const SLEEPY: [&str; 1] = ["cli/tests/hosts/main.rs"];
const SLEEPERS: &str = "3";
/// The package whose users touch the kernel.
const KERNEL: &str = "nicpoll-sys";

/// A program of tests.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    name: String,
    file: PathBuf,
    /// The folder of its package, where cargo would run it.
    folder: PathBuf,
    /// Its source, below the workspace.
    source: String,
    company: Company,
}

/// What else may run next to a program, from the first group to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Company {
    /// It computes: others like it.
    Computing,
    /// It computes when all others wait: others like it, next to those that wait or are busy.
    Emulated,
    /// It waits for the kernel, mostly: others that do.
    Waiting,
    /// It keeps a processor busy with traffic: another like it.
    Busy,
    /// Nothing.
    None,
}

impl Company {
    /// So many run at a time.
    fn lanes(self) -> usize {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        match self {
            Self::Computing | Self::Emulated => processors,
            Self::Busy => processors.min(2),
            // They sleep three quarters of their time.
            Self::Waiting => (2 * processors).min(4),
            Self::None => 1,
        }
    }
}

/// More failed tests than this are a defect, whatever ran next to them.
const FAILED_RUN_AGAIN: usize = 5;

/// Tests of a program that failed and were run once more, alone.
pub struct Again {
    /// The program's source, below the workspace.
    pub source: String,
    pub tests: Vec<String>,
    pub output: String,
    pub passed: bool,
}

/// What the programs came to.
pub struct Ended {
    /// Those that were run again.
    pub again: Vec<Again>,
    /// The first failure that stays one.
    pub result: Result<()>,
}

/// A program that failed.
struct Failure<'a> {
    program: &'a Program,
    /// Those that its output names. A program that crashed names none.
    tests: Vec<String>,
    error: Error,
}

/// How programs are run.
struct Runner<'a> {
    variables: &'a [(&'a str, &'a OsStr)],
    args: &'a [String],
}

impl Runner<'_> {
    /// Runs a program, or these tests of it.
    fn run(&self, program: &Program, tests: &[String]) -> (String, Result<()>) {
        let mut command = match program.company {
            Company::Emulated => {
                let mut command = Command::new(WHEN_IDLE[0]);
                command.args(&WHEN_IDLE[1..]).arg(&program.file);
                command
            }
            _ => Command::new(&program.file),
        };
        command.args(self.args).current_dir(&program.folder);
        if !tests.is_empty() {
            command.arg("--exact").args(tests);
        }
        // What cargo says to a program that it runs.
        command.env("CARGO_MANIFEST_DIR", &program.folder);
        command.envs(self.variables.iter().copied());
        if SLEEPY.iter().any(|it| program.source.ends_with(it)) {
            command.env("RUST_TEST_THREADS", SLEEPERS);
        }
        kept_output(&mut command)
    }

    /// Runs the programs of a group, so many at a time as it allows, and adds those that fail.
    fn run_group<'p>(
        &self,
        company: Company,
        programs: &'p [Program],
        line: &Mutex<impl FnMut(&str) + Send>,
        failed: &Mutex<Vec<Failure<'p>>>,
    ) {
        let group = programs.iter().filter(|program| program.company == company);
        let waiting = Mutex::new(group);
        thread::scope(|scope| {
            for _ in 0..company.lanes() {
                scope.spawn(|| {
                    while let Some(program) = next(&waiting) {
                        let start = Instant::now();
                        let (output, ended) = self.run(program, &[]);
                        let seconds = start.elapsed().as_secs_f64();
                        let Ok(mut line) = line.lock() else { return };
                        line(&format!("     Ran {} in {seconds:.1} s", program.source));
                        output.lines().for_each(&mut *line);
                        if let (Err(error), Ok(mut failed)) = (ended, failed.lock()) {
                            let tests = failed_tests(&output);
                            failed.push(Failure {
                                program,
                                tests,
                                error,
                            });
                        }
                    }
                });
            }
        });
    }

    /// Runs few failed tests once more. Many, and a program that crashed, have failed for good.
    fn run_again(&self, failed: Vec<Failure<'_>>) -> Ended {
        let tests: usize = failed.iter().map(|failure| failure.tests.len()).sum();
        let mut ended = Ended {
            again: Vec::new(),
            result: Ok(()),
        };
        for Failure {
            program,
            tests: names,
            error,
        } in failed
        {
            let mut passed = false;
            if tests <= FAILED_RUN_AGAIN && !names.is_empty() {
                let (output, result) = self.run(program, &names);
                passed = result.is_ok();
                let source = program.source.clone();
                ended.again.push(Again {
                    source,
                    tests: names,
                    output,
                    passed,
                });
            }
            if !passed && ended.result.is_ok() {
                ended.result = Err(error);
            }
        }
        ended
    }
}

/// The tests that a program's output says have failed.
fn failed_tests(output: &str) -> Vec<String> {
    let name = |line: &str| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        // A test that has to panic says so behind its name.
        Some(name.split(" - ").next()?.to_owned())
    };
    output.lines().filter_map(name).collect()
}

/// Builds them with these features and runs them with these variables and arguments. Each line of their standard
/// output goes to `line`, but for what is run again.
///
/// # Errors
/// When they cannot be built.
pub fn run(
    features: Option<&str>,
    variables: &[(&str, &OsStr)],
    args: &[String],
    line: impl FnMut(&str) + Send,
) -> Result<Ended> {
    let programs = build(features)?;
    let line = Mutex::new(line);
    let failed = Mutex::new(Vec::new());
    let runner = Runner { variables, args };
    let run = |company| runner.run_group(company, &programs, &line, &failed);
    run(Company::Computing);
    thread::scope(|scope| {
        scope.spawn(|| run(Company::Emulated));
        run(Company::Waiting);
        run(Company::Busy);
    });
    run(Company::None);
    Ok(runner.run_again(failed.into_inner().unwrap_or_default()))
}

/// The next of a group; null at its end.
fn next<'a>(group: &Mutex<impl Iterator<Item = &'a Program>>) -> Option<&'a Program> {
    group.lock().ok()?.next()
}

/// Compiles all test programs, and lists them.
fn build(features: Option<&str>) -> Result<Vec<Program>> {
    let packages = Packages::of(&metadata()?);
    let mut command = cargo();
    // Not the examples: clippy has looked at them, and linking each takes seconds.
    command.args([
        "test",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
        "--no-run",
    ]);
    command.arg("--message-format=json-render-diagnostics");
    command.args(features);
    let mut programs = Vec::new();
    run_line_by_line(&mut command, |line| {
        programs.extend(packages.program(line));
    })?;
    let rank = |it: &Program| BUSY.iter().position(|name| *name == it.name);
    programs.sort_by(|a, b| (rank(a), &a.source).cmp(&(rank(b), &b.source)));
    Ok(programs)
}

/// What the workspace's packages say of their test programs.
struct Packages {
    /// The manifests of those that use the kernel themselves.
    kernel_users: BTreeSet<String>,
    root: PathBuf,
}

impl Packages {
    /// From `cargo metadata --no-deps`.
    fn of(metadata: &Value) -> Self {
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let uses_kernel = |package: &&Value| {
            let uses = package["dependencies"].as_array();
            uses.is_some_and(|uses| uses.iter().any(|used| used["name"] == KERNEL))
        };
        let manifest = |package: &Value| package["manifest_path"].as_str().map(str::to_owned);
        Self {
            kernel_users: packages.filter(uses_kernel).filter_map(manifest).collect(),
            root: PathBuf::from(metadata["workspace_root"].as_str().unwrap_or_default()),
        }
    }

    /// The program of one of cargo's messages, where that is about a test program.
    fn program(&self, message: &str) -> Option<Program> {
        let message: Value = serde_json::from_str(message).ok()?;
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let target = &message["target"];
        let manifest = message["manifest_path"].as_str()?;
        let source = Path::new(target["src_path"].as_str()?);
        let is_unit = target["kind"][0] != "test";
        let name = target["name"].as_str()?;
        let company = match name {
            // The simulator's commands compute, although their package uses the kernel.
            "sim" => Company::Computing,
            _ if is_unit || !self.kernel_users.contains(manifest) => Company::Computing,
            _ if ALONE.contains(&name) => Company::None,
            _ if EMULATED.contains(&name) => Company::Emulated,
            _ if BUSY.contains(&name) => Company::Busy,
            _ => Company::Waiting,
        };
        Some(Program {
            name: String::from(name),
            file: PathBuf::from(message["executable"].as_str()?),
            folder: Path::new(manifest).parent()?.to_owned(),
            source: source
                .strip_prefix(&self.root)
                .unwrap_or(source)
                .display()
                .to_string(),
            company,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn packages() -> Packages {
        Packages::of(&json!({
            "workspace_root": "/w",
            "packages": [
                {"manifest_path": "/w/crates/observe/Cargo.toml", "dependencies": [{"name": KERNEL}]},
                {"manifest_path": "/w/crates/sim/Cargo.toml", "dependencies": [{"name": "toml"}]},
            ],
        }))
    }

    fn company(package: &str, name: &str, kind: &str) -> Company {
        let message = json!({
            "reason": "compiler-artifact",
            "manifest_path": format!("/w/crates/{package}/Cargo.toml"),
            "target": {"name": name, "kind": [kind], "src_path": format!("/w/crates/{package}/tests/{name}.rs")},
            "profile": {"test": true},
            "executable": "/w/target/debug/deps/it",
        });
        let program = packages().program(&message.to_string()).unwrap();
        assert_eq!(program.folder, Path::new("/w/crates").join(package));
        assert_eq!(program.source, format!("crates/{package}/tests/{name}.rs"));
        program.company
    }

    #[test]
    fn a_program_that_measures_runs_alone_and_one_that_computes_not_beside_one_that_waits() {
        assert_eq!(company("observe", "exact_cpu", "test"), Company::None);
        assert_eq!(company("observe", "counters", "test"), Company::Waiting);
        assert_eq!(company("observe", "netrate", "test"), Company::Busy);
        assert_eq!(
            company("observe", "nicpoll_observe", "lib"),
            Company::Computing
        );
        assert_eq!(company("sim", "digests", "test"), Company::Computing);
        assert_eq!(company("observe", "sim", "test"), Company::Computing);
        assert_eq!(company("observe", "kernels", "test"), Company::Emulated);
    }

    #[test]
    fn what_failed_is_named_by_the_output() {
        let output = "test tests::one ... ok\ntest tests::two ... FAILED\n\
                      test tests::three - should panic ... FAILED\ntest result: FAILED. 1 passed\n";
        assert_eq!(failed_tests(output), ["tests::two", "tests::three"]);
    }

    /// A program of two tests, one of which passes only the second time.
    fn unsteady(folder: &Path, output: &str) -> Program {
        use std::os::unix::fs::PermissionsExt as _;
        let file = folder.join("unsteady");
        let script = format!(
            "#!/bin/sh\nif [ -e ran ]; then echo \"$@\"; exit; fi\ntouch ran\nprintf '{output}'\nexit 101\n"
        );
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        Program {
            name: "unsteady".to_owned(),
            file,
            folder: folder.to_owned(),
            source: "tests/unsteady.rs".to_owned(),
            company: Company::Busy,
        }
    }

    fn ended(output: &str) -> (Ended, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let programs = [unsteady(folder.path(), output)];
        let runner = Runner {
            variables: &[],
            args: &[],
        };
        let lines = Mutex::new(Vec::new());
        let line = Mutex::new(|line: &str| lines.lock().unwrap().push(line.to_owned()));
        let failed = Mutex::new(Vec::new());
        runner.run_group(Company::Busy, &programs, &line, &failed);
        let ended = runner.run_again(failed.into_inner().unwrap());
        (ended, lines.lock().unwrap().clone())
    }

    #[test]
    fn a_test_that_fails_is_run_once_more_alone() {
        let (ended, lines) = ended("test one ... ok\\ntest two ... FAILED\\n");
        assert!(lines.contains(&"test two ... FAILED".to_owned()));
        assert!(ended.result.is_ok());
        let [again] = &ended.again[..] else {
            panic!("{} were run again", ended.again.len())
        };
        assert!(again.passed);
        assert_eq!(again.tests, ["two"]);
        assert_eq!(again.output, "--exact two\n");
    }

    #[test]
    fn many_failures_and_a_crash_stay_failures() {
        let many = "test one ... FAILED\\n".repeat(FAILED_RUN_AGAIN + 1);
        for output in [many.as_str(), "Segmentation fault\\n"] {
            let (ended, _) = ended(output);
            assert!(ended.result.is_err());
            assert!(ended.again.is_empty());
        }
    }

    #[test]
    fn what_is_no_test_program_is_left_out() {
        for line in [
            "",
            "warning: text",
            r#"{"reason":"build-finished","success":true}"#,
            r#"{"reason":"compiler-artifact","profile":{"test":false},"executable":"/w/it"}"#,
        ] {
            assert_eq!(packages().program(line), None, "{line}");
        }
    }
}
