//! A PostgreSQL server of a test's own: on a socket in a folder that goes with it, under the account that Debian's
//! package makes, since PostgreSQL refuses to run as root.

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The account that the server runs under when the tests run as root.
const ACCOUNT: &str = "postgres";

/// How long the server may take to start on a busy machine.
const STARTED_WITHIN: Duration = Duration::from_secs(30);

/// A server that ends with its value.
pub struct PostgresServer {
    folder: tempfile::TempDir,
    process: Option<Child>,
}

/// Why there is no server to start.
pub(crate) fn missing() -> Option<String> {
    if programs().is_none() {
        return Some(String::from("initdb of PostgreSQL is not installed"));
    }
    (is_root() && account().is_none())
        .then(|| format!("there is no account '{ACCOUNT}' to run a server as"))
}

/// Debian keeps the programs of each version in a folder of its own.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut folders: Vec<PathBuf> = versions
        .flatten()
        .map(|one| one.path().join("bin"))
        .collect();
    folders.sort();
    folders.push(PathBuf::from("/usr/bin"));
    folders
        .into_iter()
        .find(|folder| folder.join("initdb").is_file())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Numbers of the account and its group.
fn account() -> Option<(u32, u32)> {
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    let line = accounts
        .lines()
        .find(|line| line.starts_with("postgres:"))?;
    let mut numbers = line.split(':').skip(2).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

impl PostgresServer {
    /// Makes a server without data, and starts it.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        if let (true, Some((user, group))) = (is_root(), account()) {
            chown(folder.path(), Some(user), Some(group)).unwrap();
        }
        let mut server = PostgresServer {
            folder,
            process: None,
        };
        let mut initdb = server.program("initdb");
        initdb.args(["--auth=trust", "--username=nicpoll", "--no-sync"]);
        let made = initdb.arg("--pgdata").arg(server.data()).output().unwrap();
        let complaints = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{complaints}");
        server.go_on();
        server
    }

    /// The URL of its database.
    pub fn url(&self) -> String {
        let folder = self.folder.path().display();
        format!("postgres://nicpoll@/postgres?host={folder}")
    }

    /// Ends the server as a crash does: nothing is told to its clients, nothing more is written.
    ///
    /// # Panics
    /// When it cannot be killed.
    pub fn crash(&mut self) {
        self.end("-QUIT");
    }

    /// Starts it again on the data that it has.
    ///
    /// # Panics
    /// When it does not start.
    pub fn go_on(&mut self) {
        let mut server = self.program("postgres");
        server.arg("-D").arg(self.data());
        server.arg("-k").arg(self.folder.path()).args(["-h", ""]);
        server.stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(server.spawn().unwrap());
        let ready = self.data().join("postmaster.pid");
        let deadline = Instant::now() + STARTED_WITHIN;
        // The last line of this file says so.
        while !fs::read_to_string(&ready).is_ok_and(|text| text.trim_end().ends_with("ready")) {
            assert!(Instant::now() < deadline, "PostgreSQL does not start");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A program under the account. setpriv(1) becomes the program: a signal to the one is a signal to the other.
    fn program(&self, name: &str) -> Command {
        let path = programs().expect("looked for by `missing`").join(name);
        let mut command = match is_root() {
            false => Command::new(path),
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups"]);
                command.arg(path);
                command
            }
        };
        command.current_dir(self.folder.path());
        command
    }

    fn end(&mut self, signal: &str) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let told = Command::new("kill")
            .args([signal, &process.id().to_string()])
            .status();
        if told.is_ok_and(|status| status.success()) {
            let _ = process.wait();
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.end("-INT");
    }
}
