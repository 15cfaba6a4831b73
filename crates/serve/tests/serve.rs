//! A store in a browser's eyes: pages lead to one another, a running study shows its trials so far, and a stranger gets
//! nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nicpoll_lab::this_runner;
use nicpoll_model::{Study, StudyKind};
use nicpoll_serve::StoreServer;
use nicpoll_store::{Recording, Store};
use nicpoll_study::demo;

const STUDY: &str = include_str!("../../report/tests/golden/demo.json");

/// Begins a study, of which `trials` end. The recording is of this process, which runs.
fn begin(file: &Path, trials: usize) -> (Recording, Study) {
    let mut head: Study = serde_json::from_str(STUDY).unwrap();
    let all = std::mem::take(&mut head.trials);
    let design = demo::design(Duration::from_micros(200));
    let design = serde_json::to_string(&design).unwrap();
    let store = Store::to_write(file).unwrap();
    let planned = all.len() as u32;
    let owner = this_runner().unwrap();
    let mut recording = store
        .begin(StudyKind::Demo, &head, planned, &design, &owner)
        .unwrap();
    for trial in all.iter().take(trials) {
        recording
            .trial(&head, trial, Duration::from_secs(1))
            .unwrap();
    }
    (recording, head)
}

struct Running {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn of(file: &Path) -> Self {
        let server = StoreServer::bind(SocketAddr::from(([127, 0, 0, 1], 0)), file.into()).unwrap();
        let address = server.address().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let looking = Arc::clone(&is_over);
        let thread = thread::spawn(move || server.run(&looking).unwrap());
        Running {
            address,
            is_over,
            thread: Some(thread),
        }
    }

    /// All that comes back of a request.
    fn say(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(&self, path: &str) -> String {
        self.say(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n",
            self.address
        ))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

#[test]
fn studies_lead_to_their_reports_and_to_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    for _ in 0..2 {
        let (mut recording, head) = begin(&file, usize::MAX);
        recording.finish(&head).unwrap();
    }
    let server = Running::of(&file);
    let list = server.get("/");
    assert!(list.starts_with("HTTP/1.1 200 OK\r\n"), "{list}");
    assert!(list.contains("href=\"/study/1\"") && list.contains("href=\"/compare/2\""));
    assert!(!list.contains("Refresh:"), "nothing runs: {list}");
    let report = server.get("/study/1");
    assert!(report.contains("The rate within the trials"));
    assert!(!report.contains("<script"));
    assert!(server.get("/compare/1").contains("/compare/1/2"));
    let compared = server.get("/compare/1/2");
    assert!(
        compared.contains("2:polling") && compared.contains("1:polling"),
        "{compared}"
    );
    assert!(server.get("/compare/1.1/1.2").starts_with("HTTP/1.1 200"));
    for missing in ["/study/9", "/compare/1.99/1.1", "/etc/passwd"] {
        let answer = server.get(missing);
        assert!(answer.starts_with("HTTP/1.1 404"), "{missing}: {answer}");
    }
}

#[test]
fn a_study_that_runs_is_shown_so_far_and_asked_for_anew() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    let (_recording, head) = begin(&file, 2);
    let server = Running::of(&file);
    let list = server.get("/");
    assert!(
        list.contains("\r\nRefresh: ") && list.contains("<progress"),
        "{list}"
    );
    let report = server.get("/study/1");
    assert!(report.contains("\r\nRefresh: "), "{report}");
    assert!(report.contains(&head.question));
    assert!(report.contains("2 of 4 trials, are stored"), "{report}");
}

#[test]
fn a_stranger_gets_nothing_and_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("studies.db");
    let (mut recording, head) = begin(&file, 1);
    recording.finish(&head).unwrap();
    let server = Running::of(&file);
    let port = server.address.port();
    let foreign = server.say(&format!(
        "GET / HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n"
    ));
    assert!(foreign.starts_with("HTTP/1.1 421"), "{foreign}");
    assert!(!foreign.contains("/study/1"));
    let post = format!("POST / HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    assert!(server.say(&post).starts_with("HTTP/1.1 405"));
    let head = format!("HEAD / HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    assert!(server.say(&head).ends_with("\r\n\r\n"), "no body");
    // Whoever says nothing keeps nobody from asking.
    let silent: Vec<TcpStream> = (0..8)
        .map(|_| TcpStream::connect(server.address).unwrap())
        .collect();
    assert!(server.get("/").starts_with("HTTP/1.1 200"));
    drop(silent);
}
