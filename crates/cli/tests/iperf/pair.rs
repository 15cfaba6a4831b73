//! Two programs in two namespaces: iperf 2 and ours, or both ours.

use crate::common::prelude::*;
use std::process::ExitStatus;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Time after which a client counts as hung.
const TIME_TO_SEND: Duration = Duration::from_secs(60);
/// Time for the last lines of a server that does not end by itself.
const TIME_TO_REPORT: Duration = Duration::from_millis(500);

/// Lock for the cores: datagrams are lost if a receiver waits too long for its core.
static CORES: RwLock<()> = RwLock::new(());

/// How a test holds the cores.
enum Held {
    Alone {
        _cores: RwLockWriteGuard<'static, ()>,
    },
    Shared {
        _cores: RwLockReadGuard<'static, ()>,
    },
}

/// The program at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Ours,
    Iperf,
}

impl Program {
    fn command(self, args: &[&str]) -> Command {
        match self {
            Program::Ours => nicpoll([&["iperf"], args].concat()),
            Program::Iperf => kept("iperf", args),
        }
    }
}

/// The link between them.
pub struct Pair {
    pub veth: Veth,
    _held: Held,
}

impl Pair {
    /// Makes a link with the cores for itself.
    pub fn new() -> Self {
        Self::held(Held::Alone {
            _cores: CORES.write().unwrap_or_else(PoisonError::into_inner),
        })
    }

    /// Makes a link next to others, for a test that leaves the cores mostly idle.
    pub fn beside_others() -> Self {
        Self::held(Held::Shared {
            _cores: CORES.read().unwrap_or_else(PoisonError::into_inner),
        })
    }

    fn held(held: Held) -> Self {
        let veth = Veth::build().unwrap();
        veth.cut_batches().unwrap();
        Pair { veth, _held: held }
    }

    /// Runs a fresh server and one client with these options, and returns what each printed. The server gets the
    /// options that it needs, -w and -i too; `--style` is for our programs only, `--allow` for our server.
    pub fn run(&self, client: Program, server: Program, options: &[&str]) -> (String, String) {
        self.run_while(client, server, options, |_| {})
    }

    /// As [`Pair::run`], and does something while the client runs.
    pub fn run_while(
        &self,
        client: Program,
        server: Program,
        options: &[&str],
        act: impl FnOnce(&Child),
    ) -> (String, String) {
        let is_server_option = |option: &&&str| matches!(**option, "-u" | "-V");
        let (style, options) = taken_out("--style", options);
        let (allow, options) = taken_out("--allow", &options);
        let [window, interval] = ["-w", "-i"].map(|name| taken_out(name, &options).0);
        let streams = match options.iter().position(|option| *option == "-P") {
            Some(at) => options[at + 1],
            None => "1",
        };
        // The original counts connections, and may end before it has connected back.
        let connects_back = options.iter().any(|option| matches!(*option, "-d" | "-r"));
        let counts = server == Program::Ours || !connects_back;
        let mut server_args = vec!["-s", "-f", "B"];
        if counts {
            server_args.extend(["-P", streams]);
        }
        server_args.extend(options.iter().filter(is_server_option));
        server_args.extend(window.iter().chain(&interval));
        if server == Program::Ours {
            server_args.extend(style.iter().chain(&allow));
        }
        if options.contains(&"-u") && window.is_empty() {
            // A client that waited for a core catches up with more than the default buffer holds.
            server_args.extend(["-w", "4M"]);
        }
        let mut serving = spawn(self.veth.inside(Side::Receiver), server, &server_args);
        let mut printed = BufReader::new(serving.stdout.take().unwrap());
        let mut server_text = read_until_it_listens(&mut printed);
        let address = if options.contains(&"-V") {
            "2001:2::2"
        } else {
            "198.18.0.2"
        };
        let mut client_args = [&["-c", address, "-f", "B"], &options[..]].concat();
        if client == Program::Ours {
            client_args.extend(&style);
        }
        let sending = spawn(self.veth.inside(Side::Sender), client, &client_args);
        act(&sending);
        let sent = ended(sending).wait_with_output().unwrap();
        let client_text = stdout(&sent);
        if !counts {
            thread::sleep(TIME_TO_REPORT);
            send_signal(&serving, Signal::INT);
        }
        let (ending, complaints) = end(serving);
        for line in printed.lines() {
            server_text.push_str(&line.unwrap());
            server_text.push('\n');
        }
        assert!(
            sent.status.success(),
            "{client:?} to {server:?} {options:?}: {}\n{client_text}\n{server_text}\n{ending}: {complaints}",
            String::from_utf8_lossy(&sent.stderr)
        );
        (client_text, server_text)
    }

    /// Returns the frames that the receiver has received.
    pub fn frames_received(&self) -> u64 {
        frames_received(self.veth.inside(Side::Receiver))
    }
}

/// Takes an option with its value out of the options.
fn taken_out<'a>(name: &str, options: &[&'a str]) -> (Vec<&'a str>, Vec<&'a str>) {
    let mut rest = options.to_vec();
    match rest.iter().position(|option| *option == name) {
        Some(at) => (rest.drain(at..at + 2).collect(), rest),
        None => (Vec::new(), rest),
    }
}

fn spawn(host: &NetnsThread<()>, program: Program, args: &[&str]) -> Child {
    spawn_in(host, program.command(args))
}

/// Waits for a client, which is ended after [`TIME_TO_SEND`].
fn ended(mut sending: Child) -> Child {
    let deadline = Instant::now() + TIME_TO_SEND;
    while sending.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            sending.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(10));
    }
    sending
}

/// Waits for a server with a number of streams, or ends it. Returns its exit status and standard error.
fn end(mut serving: Child) -> (ExitStatus, String) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while serving.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            serving.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(10));
    }
    let ended = serving.wait_with_output().unwrap();
    let complaints = stderr(&ended);
    (ended.status, complaints)
}

/// Returns the bytes of the last line with `mark` that has a number of bytes.
pub fn bytes(text: &str, mark: &str) -> u64 {
    let words = |line: &str| -> Option<u64> {
        let (before, _) = line.split_once(" Bytes  ")?;
        before.rsplit(' ').next()?.parse().ok()
    };
    let mut told = text.lines().filter(|line| line.contains(mark));
    told.rfind(|line| words(line).is_some())
        .and_then(words)
        .unwrap_or_else(|| panic!("no line with bytes and '{mark}' in:\n{text}"))
}

/// Returns lost and total of the last line that has them.
pub fn lost_and_total(text: &str) -> (u64, u64) {
    let numbers = |line: &str| -> Option<(u64, u64)> {
        let (_, rest) = line.split_once(" ms ")?;
        let (lost, rest) = rest.split_once('/')?;
        let total = rest.trim_start().split(' ').next()?;
        Some((lost.trim().parse().ok()?, total.parse().ok()?))
    };
    text.lines()
        .rev()
        .find_map(numbers)
        .unwrap_or_else(|| panic!("no line with losses in:\n{text}"))
}
