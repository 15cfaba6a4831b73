//! Runs nicpoll here, in a namespace or as an ordinary user, and checks its output.

use super::prelude::*;
use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

/// The program under test.
pub const NICPOLL: &str = env!("CARGO_BIN_EXE_nicpoll");
/// Longest wait for an event.
pub const PATIENCE: Duration = Duration::from_secs(20);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// User id of nobody.
const NOBODY: u32 = 65_534;

/// Gives a test the cores for itself, until the result is dropped.
pub fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Splits a command line into words.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Makes the command of nicpoll with these arguments, without input, and with both outputs captured.
pub fn nicpoll<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    kept(NICPOLL, args)
}

/// Makes such a command of any program.
pub fn kept<A: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a command in a namespace.
pub fn spawn_in(host: &NetnsThread<()>, mut command: Command) -> Child {
    host.run(move |_| command.spawn().unwrap()).unwrap()
}

/// Runs a command in a namespace to its end.
pub fn run_in(host: &NetnsThread<()>, command: Command) -> Output {
    spawn_in(host, command).wait_with_output().unwrap()
}

/// Copies the program to a folder that it opens to everybody: nobody could not start it elsewhere.
pub fn copy_for_anybody(folder: &Path) -> PathBuf {
    let program = folder.join("nicpoll");
    fs::copy(NICPOLL, &program).unwrap();
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    program
}

/// Makes a command that runs as nobody, or as the caller if that is not root.
pub fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new(program);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Converts a program's output to text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub fn stdout(output: &Output) -> String {
    text(&output.stdout)
}

pub fn stderr(output: &Output) -> String {
    text(&output.stderr)
}

/// Returns both outputs.
pub fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Parses the single JSON document that was printed.
#[track_caller]
pub fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(output)))
}

/// Fails, with the whole output, if the exit code is another one.
#[track_caller]
pub fn assert_code(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
}

/// Checks several parts, separated by ` | `.
#[track_caller]
pub fn assert_has_all(text: impl AsRef<str>, parts: &str) {
    for part in parts.split(" | ") {
        assert_has(text.as_ref(), part);
    }
}

/// Parses a table of cases, `column | column | column` a line.
pub fn cases<const N: usize>(table: &str) -> Vec<[&str; N]> {
    let rows = table.lines().map(str::trim).filter(|row| !row.is_empty());
    rows.map(|row| {
        let columns: Vec<&str> = row.split(" | ").map(str::trim).collect();
        columns.try_into().unwrap_or_else(|_| panic!("{row}"))
    })
    .collect()
}

/// Runs each case of a table `exit code | arguments | words of the error`: it must be refused with these words,
/// without output.
#[track_caller]
pub fn assert_refused(table: &str, mut run: impl FnMut(&str) -> Output) {
    for [code, line, words] in cases(table) {
        let output = run(line);
        let case = format!("{line}: {}", said(&output));
        assert_eq!(output.status.code(), Some(code.parse().unwrap()), "{case}");
        assert!(stderr(&output).contains(words), "no {words:?}: {case}");
        assert!(output.stdout.is_empty(), "{case}");
    }
}

pub fn send_signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Kills a program and waits for its end.
pub fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Reads lines of a program until one contains `mark`, and returns them.
#[track_caller]
pub fn read_until(printed: &mut impl BufRead, mark: &str) -> String {
    let mut text = String::new();
    while !text.contains(mark) {
        let read = printed.read_line(&mut text).unwrap();
        assert_ne!(read, 0, "no {mark:?} in {text}");
    }
    text
}

/// Waits until a server with iperf's output listens: after its second line of dashes. Returns the output up to then.
pub fn read_until_it_listens(printed: &mut impl BufRead) -> String {
    read_until(printed, "-----\n") + &read_until(printed, "-----\n")
}

/// Reads the counters of a namespace.
pub fn counters(host: &NetnsThread<()>) -> HostSnapshot {
    let snapshot = host.run(|()| HostCounters::of_caller().snapshot());
    snapshot.unwrap()
}

/// Returns the frames that the interfaces of a namespace have received.
pub fn frames_received(host: &NetnsThread<()>) -> u64 {
    let interfaces = counters(host).interfaces.unwrap();
    interfaces.values().map(|one| one.link.rx_packets).sum()
}
