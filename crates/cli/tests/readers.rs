//! Strangers' files and requests: read without rights, shown without terminal controls, and answered within limits.

mod common;

use crate::common::prelude::*;
use std::io;
use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;

const PAGE: &str = "../import/tests/transcripts/servers.txt";
/// Text that clears the screen, sets the title, changes the direction of writing, and has letters without width.
const HOSTILE: &str = "x\u{1b}[2J\u{1b}]0;t\u{7}\u{202e}\u{200b}\u{9b}y";

fn study(store: &Path, args: &[&str]) -> Output {
    let mut command = nicpoll(["study"]);
    command.args(args).arg("--store").arg(store);
    command.output().unwrap()
}

/// A store with an import in it.
fn imported(folder: &Path, transcript: &Path) -> PathBuf {
    let store = folder.join("studies.db");
    let output = study(&store, &["import", transcript.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    store
}

fn is_raw(letter: char) -> bool {
    letter.is_control() && letter != '\n' && letter != '\t'
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn assert_shown(what: &str, output: &Output) {
    for text in [stdout(output), stderr(output)] {
        let raw = text.find(is_raw);
        assert!(raw.is_none(), "{what}: {:?}", &text[raw.unwrap_or(0)..]);
    }
}

#[test]
fn nothing_of_strangers_reaches_a_terminal_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let transcript = folder.path().join(format!("{HOSTILE}.txt"));
    fs::copy(PAGE, &transcript).unwrap();
    let store = imported(folder.path(), &transcript);
    // Escaped for JSON, to be read back as the letters.
    let escaped = serde_json::to_string(HOSTILE).unwrap();
    let escaped = escaped.trim_matches('"');
    for table in ["study", "trial"] {
        let sql = format!(
            "UPDATE {table} SET document = replace(document, 'interrupt', '=inter{escaped}')"
        );
        Connection::open(&store)
            .unwrap()
            .execute_batch(&sql)
            .unwrap();
    }
    let hostile = folder.path().join(format!("{HOSTILE}.toml"));
    fs::write(
        &hostile,
        format!("question = \"{HOSTILE}\"\n{HOSTILE} = 1\n"),
    )
    .unwrap();
    let hostile = hostile.to_str().unwrap();
    let commands: [&[&str]; 15] = [
        &["list"],
        &["list", "--json"],
        &["show", "1"],
        &["show", "1", "--json"],
        &["report", "1", "-o", "-"],
        &["report", "1", "-o", "-", "--format", "md"],
        &["report", "1", "-o", "-", "--format", "text"],
        &["export", "1"],
        &["export", "1", "--format", "csv"],
        &["compare", "1:polling", &format!("1:=inter{HOSTILE}")],
        &["compare", hostile, hostile],
        &["show", HOSTILE],
        &["import", hostile],
        &["delete", "1", "--dry-run"],
        &[HOSTILE],
    ];
    let mut seen = 0;
    for args in commands {
        let output = study(&store, args);
        assert_shown(&args.join(" "), &output);
        seen += usize::from(said(&output).contains("\\u202e"));
    }
    assert!(seen >= 12, "the words themselves are to be seen: {seen}");
    for args in [
        &["study", "run", hostile][..],
        &["study", "list", "--store", hostile],
        &["sim", "run", "--host", hostile],
        &["show", HOSTILE, "--for", "0"],
        &[HOSTILE],
    ] {
        let output = nicpoll(args).output().unwrap();
        assert!(!output.status.success());
        assert_shown(&args.join(" "), &output);
    }
    let report = folder.path().join("report.html");
    study(&store, &["report", "1", "-o", report.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(report).unwrap().find(is_raw), None);
    // CSV quotes what a spreadsheet would compute; JSON returns the letters themselves.
    let csv = stdout(&study(&store, &["export", "1", "--format", "csv"]));
    assert!(csv.contains("'=inter") && !csv.contains(",=inter"), "{csv}");
    let document = json_of(&study(&store, &["export", "1"]));
    assert!(document.to_string().contains('\u{202e}'));
}

#[test]
fn deleting_converts_an_older_store_and_showing_what_would_go_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("studies.db");
    let older = Connection::open(&store).unwrap();
    let tables = include_str!("../../store/tests/old/version-1.sql");
    older.execute_batch(tables).unwrap();
    let sql = "INSERT INTO study (kind, state, trials_planned, design, document) \
               VALUES ('demo', 'finished', 1, '{}', ?1)";
    let demo = include_str!("../../report/tests/golden/demo.json");
    older.execute(sql, [demo]).unwrap();
    drop(older);
    let as_it_was = fs::read(&store).unwrap();
    let output = study(&store, &["delete", "last", "--dry-run"]);
    assert_code(&output, 0);
    assert_eq!(fs::read(&store).unwrap(), as_it_was);
    let output = study(&store, &["delete", "last", "--yes"]);
    assert_code(&output, 0);
    assert_has(stderr(&output), "its schema was version 1 and is version 2");
}

#[test]
fn a_store_is_changed_and_looked_at_for_resuming_without_rights() {
    let folder = tempfile::tempdir().unwrap();
    let store = imported(folder.path(), Path::new(PAGE));
    let of_root = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(&store, of_root(0o600)).unwrap();
    fs::set_permissions(folder.path(), of_root(0o700)).unwrap();
    let sql = Connection::open(&store).unwrap();
    // Checking it takes a moment. A trigger of a stranger does nothing.
    sql.execute_batch(
        "WITH RECURSIVE n(i) AS (SELECT 1001 UNION ALL SELECT i + 1 FROM n WHERE i < 1064)
         INSERT INTO trial (study, sequence, taken_seconds, document)
         SELECT 1, i, 0.1, json_array(hex(randomblob(500000))) FROM n;
         CREATE TRIGGER strange BEFORE DELETE ON study BEGIN INSERT INTO study (kind) VALUES (1); END",
    )
    .unwrap();
    let journal = folder.path().join("studies.db-journal");
    let changes: [&[&str]; 2] = [&["import", PAGE], &["delete", "1", "--yes"]];
    for args in changes {
        let mut command = nicpoll(["study"]);
        command.args(args).arg("--store").arg(&store);
        let child = command.spawn().unwrap();
        wait_for_reader(&child, &journal);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(!journal.exists());
    }
    let list = json_of(&study(&store, &["list", "--json"]));
    let ids: Vec<&Value> = list["studies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(ids, [2]);

    needs!(Root, PerNapi);
    // It waits for the lock.
    sql.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let mut command = nicpoll(["study", "run", "--resume", "last", "--store"]);
    let child = command.arg(&store).spawn().unwrap();
    wait_for_reader(&child, &store);
    sql.execute_batch("ROLLBACK").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_code(&output, 1);
    assert_has(stderr(&output), "none is unfinished");
}

#[test]
fn a_journal_of_a_stranger_is_not_applied() {
    needs!(Root);
    let folder = tempfile::tempdir().unwrap();
    let store = imported(folder.path(), Path::new(PAGE));
    let journal = folder.path().join("studies.db-journal");
    fs::write(&journal, "it may name a file to delete").unwrap();
    std::os::unix::fs::chown(&journal, Some(65_534), None).unwrap();
    let commands: [&[&str]; 3] = [&["list"], &["import", PAGE], &["delete", "1", "--yes"]];
    for args in commands {
        let output = study(&store, args);
        assert_code(&output, 1);
        assert_has(
            stderr(&output),
            "its owner's 'nicpoll study list' puts it right",
        );
    }
    assert!(journal.exists());
}

/// `nicpoll serve`, until it is dropped.
struct Serving {
    child: Child,
    address: SocketAddr,
    printed: String,
}

impl Serving {
    fn of(store: &Path, listen: &str) -> Self {
        let mut command = nicpoll(["serve", "--listen", listen, "--store"]);
        command.arg(store);
        Serving::started(command)
    }

    fn started(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut printed = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut printed).unwrap();
        let address = printed
            .strip_prefix("http://")
            .and_then(|it| it.split('/').next());
        let address = address.and_then(|it| it.parse().ok());
        let address: SocketAddr = address.unwrap_or_else(|| panic!("{printed}"));
        Serving {
            child,
            address: (Ipv4Addr::LOCALHOST, address.port()).into(),
            printed,
        }
    }

    fn ask(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn get(&self, path: &str) -> String {
        let mut answer = String::new();
        self.ask(path).read_to_string(&mut answer).unwrap();
        answer
    }
}

/// Returns the status in /proc of a process and of those that it made.
fn processes(child: &Child) -> Vec<BTreeMap<String, String>> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let statuses = all.filter_map(|it| fs::read_to_string(it.path().join("status")).ok());
    let fields = statuses.map(|status| {
        let fields = status.lines().filter_map(|line| line.split_once(":\t"));
        let fields = fields.map(|(name, value)| (name.into(), value.trim().into()));
        fields.collect::<BTreeMap<String, String>>()
    });
    let own = child.id().to_string();
    fields
        .filter(|it| it["Pid"] == own || it["PPid"] == own)
        .collect()
}

fn has_rights(status: &BTreeMap<String, String>) -> bool {
    let sets = ["CapEff", "CapPrm", "CapInh", "CapAmb"];
    let is_root = status["Uid"].split_whitespace().any(|id| id == "0");
    is_root
        || sets.iter().any(|set| status[*set] != "0000000000000000")
        || (&*status["Seccomp"], &*status["NoNewPrivs"]) != ("2", "1")
}

/// Waits until a process without rights that `child` made has a file open.
fn wait_for_reader(child: &Child, file: &Path) {
    let has_open = |status: &&BTreeMap<String, String>| {
        let open = fs::read_dir(format!("/proc/{}/fd", status["Pid"]));
        let mut open = open.into_iter().flatten().flatten();
        open.any(|it| fs::read_link(it.path()).is_ok_and(|open| open == file))
    };
    wait_until("a process without rights that has the file open", || {
        let all = processes(child);
        all.iter().filter(has_open).any(|it| !has_rights(it))
    });
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn whoever_meets_strangers_has_no_rights_and_reads_what_root_alone_may_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = imported(folder.path(), Path::new(PAGE));
    // Nobody else may enter or read.
    fs::set_permissions(&store, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_has(
        stdout(&study(&store, &["show", "1"])),
        "nothing here is paired",
    );
    let serving = Serving::of(&store, "127.0.0.1:0");
    assert_has(serving.get("/study/1"), "nothing here is paired");
    assert_has(serving.get("/study/7"), "there is no study 7");
    let processes = processes(&serving.child);
    let own = serving.child.id().to_string();
    let met: Vec<_> = processes.iter().filter(|it| it["PPid"] == own).collect();
    assert_eq!(met.len(), 1, "{processes:?}");
    assert!(!has_rights(met[0]), "{processes:?}");
    let pid = met[0]["Pid"].clone();
    drop(serving);
    // Killing it ends that process, too.
    wait_until("the process that met strangers", || {
        !Path::new("/proc").join(&pid).exists()
    });
}

#[test]
fn what_is_no_store_is_refused_at_the_start_and_elsewhere_a_token_is_asked_for() {
    for place in ["/etc/passwd", "/dev/zero", "/etc"] {
        let output = nicpoll(["serve", "--store", place]).output().unwrap();
        assert_code(&output, 1);
        assert_has(stderr(&output), "it is no database of studies");
    }
    let folder = tempfile::tempdir().unwrap();
    let store = imported(folder.path(), Path::new(PAGE));
    let token = folder.path().join("token");
    fs::write(&token, "short\n").unwrap();
    let mut command = nicpoll(["serve", "--listen", "127.0.0.1:0", "--token-file"]);
    let output = command
        .arg(&token)
        .arg("--store")
        .arg(&store)
        .output()
        .unwrap();
    assert_code(&output, 2);
    assert_has(stderr(&output), "has to hold one word of 16 letters");

    let serving = Serving::of(&store, "0.0.0.0:0");
    let printed = serving.printed.trim();
    let token = printed.split_once("/?token=").unwrap().1;
    assert_eq!(token.len(), 32, "{printed}");
    assert!(serving.get("/").starts_with("HTTP/1.1 401"));
    let entered = serving.get(&format!("/?token={token}"));
    assert!(entered.starts_with("HTTP/1.1 303"), "{entered}");
}

/// Stores 1,100 times the trials of a demo: a page of 33 MB.
fn store_long_study(store: &Path) {
    let demo = include_str!("../../report/tests/golden/demo.json");
    let sql = Connection::open(store).unwrap();
    for insert in [
        "INSERT INTO study (kind, state, trials_planned, design, document) \
         VALUES ('demo', 'finished', 4400, '{}', json_set(?1, '$.trials', json('[]')))",
        "WITH RECURSIVE time(n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM time WHERE n < 1099) \
         INSERT INTO trial (study, sequence, taken_seconds, document) \
         SELECT 2, 4 * n + key + 1, 0, json_set(value, '$.sequence', 4 * n + key + 1, '$.block', n + 1) \
         FROM time, json_each(?1, '$.trials')",
    ] {
        sql.execute(insert, [demo]).unwrap();
    }
}

/// Strangers that ask for a page and take nothing of it.
const STRANGERS: usize = 1_000;
/// Memory limit of all processes of a server then.
const MEMORY_MAX_KIB: u64 = 64 << 10;

#[test]
fn a_thousand_slow_strangers_hold_no_memory_and_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = imported(folder.path(), Path::new(PAGE));
    store_long_study(&store);
    let serving = Serving::of(&store, "127.0.0.1:0");
    let mut slow = Vec::new();
    for _ in 0..STRANGERS {
        slow.push(serving.ask("/study/1"));
    }
    assert_has(serving.get("/"), "href=\"/study/1\"");
    let asked = serving.ask("/study/2");
    let long = thread::spawn(move || io::copy(&mut &asked, &mut io::sink()).unwrap());
    let mut peaks = BTreeMap::new();
    while !long.is_finished() {
        for it in processes(&serving.child) {
            // One that has ended has none.
            let kib = |name| it.get(name)?.trim_end_matches(" kB").parse::<u64>().ok();
            if let (Some(all), Some(program)) = (kib("VmHWM"), kib("RssFile")) {
                peaks.insert(it["Pid"].clone(), [all - program, program]);
            }
        }
        thread::sleep(Duration::from_millis(50));
    }
    assert!(long.join().unwrap() > 33_000_000);
    // The processes share the program in memory.
    let program = peaks.values().map(|it| it[1]).max().unwrap();
    let held = program + peaks.values().map(|it| it[0]).sum::<u64>();
    assert!(held < MEMORY_MAX_KIB, "{held} KiB: {peaks:?}");
    drop(slow);
    assert_has(serving.get("/study/1"), "nothing here is paired");
}

#[test]
fn a_server_without_a_descriptor_left_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = imported(folder.path(), Path::new(PAGE));
    let few = "ulimit -n 24; exec \"$0\" serve --listen 127.0.0.1:0 --store \"$1\"";
    let mut command = kept("sh", ["-c", few, NICPOLL]);
    command.arg(&store);
    let serving = Serving::started(command);
    let _silent: Vec<TcpStream> = (0..64)
        .map(|_| TcpStream::connect(serving.address).unwrap())
        .collect();
    assert_has(serving.get("/"), "href=\"/study/1\"");
}
