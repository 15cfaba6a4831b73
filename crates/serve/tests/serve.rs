//! A store in a browser's eyes: pages lead to one another, a running study shows its trials so far, and a stranger gets
//! nothing.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nicpoll_lab::this_runner;
use nicpoll_model::{Study, StudyKind};
use nicpoll_serve::{CONNECTIONS_MAX, PageServer, ServedPage, answer_to, make_pages, pages_socket};
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
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    fn of(file: &Path) -> Self {
        let file = file.to_owned();
        Running::with(None, move |page| {
            let answer = answer_to(page, Store::to_read(&file));
            let mut made = tempfile::tempfile()?;
            answer.put(|piece| made.write_all(piece.as_bytes()))?;
            Ok((String::from(answer.status), answer.is_live, made))
        })
    }

    /// With pages that `make` makes.
    fn with(
        token: Option<&str>,
        make: impl FnMut(&ServedPage) -> io::Result<(String, bool, File)> + Send + 'static,
    ) -> Self {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = PageServer::bind(loopback, token.map(String::from)).unwrap();
        let address = server.address().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let looking = Arc::clone(&is_over);
        let (pages, maker) = pages_socket().unwrap();
        let threads = vec![
            thread::spawn(move || server.run(&pages).unwrap()),
            thread::spawn(move || make_pages(&maker, &looking, make).unwrap()),
        ];
        Running {
            address,
            is_over,
            threads,
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
        for thread in self.threads.drain(..) {
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
    let headers = "\r\nConnection: close\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n\
        X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
        Cross-Origin-Resource-Policy: same-origin\r\n\r\n<!DOCTYPE html>";
    assert!(list.contains(headers), "{list}");
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
    for missing in ["/study/9", "/compare/1.99/1.1", "/etc/passwd", "/metrics"] {
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

/// A page of that many bytes.
fn page(bytes: usize) -> io::Result<(String, bool, File)> {
    let file = tempfile::tempfile()?;
    file.set_len(bytes as u64)?;
    Ok((String::from("200 OK"), false, file))
}

#[test]
fn more_than_can_be_had_take_the_place_of_the_silent_and_a_page_is_made_once_for_all() {
    let (made, is_made) = std::sync::mpsc::channel();
    let server = Running::with(None, move |_| {
        made.send(()).unwrap();
        page(8 << 20)
    });
    let request = format!("GET /study/1 HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    // Each asks and takes nothing.
    let slow: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    let _silent: Vec<TcpStream> = (0..CONNECTIONS_MAX)
        .map_while(|_| TcpStream::connect(server.address).ok())
        .collect();
    let answer = server.get("/study/1");
    assert!(answer.len() > 8 << 20, "{}", answer.len());
    assert!(is_made.try_iter().count() < 64, "made for each");
    // Who asked before still gets it whole.
    let mut last = slow.into_iter().next_back().unwrap();
    let mut whole = Vec::new();
    last.read_to_end(&mut whole).unwrap();
    assert!(whole.len() > 8 << 20, "{}", whole.len());
}

#[test]
fn what_cannot_be_made_is_said_and_the_next_page_is_made() {
    let mut pages = 0;
    let server = Running::with(None, move |_| {
        pages += 1;
        match pages {
            1 => Err(io::Error::other("no room")),
            _ => page(3),
        }
    });
    assert!(server.get("/").starts_with("HTTP/1.1 503"));
    assert!(server.get("/").starts_with("HTTP/1.1 200"));
}

#[test]
fn whoever_has_the_token_gets_a_cookie_and_others_nothing() {
    let server = Running::with(Some("0123456789abcdef"), |_| page(3));
    let without = server.get("/study/7");
    assert!(without.starts_with("HTTP/1.1 401"), "{without}");
    let entered = server.get("/study/7?token=0123456789abcdef");
    assert!(entered.starts_with("HTTP/1.1 303"), "{entered}");
    assert!(entered.contains("\r\nLocation: /study/7\r\n"), "{entered}");
    let cookie = "nicpoll-token=0123456789abcdef";
    let given = format!("\r\nSet-Cookie: {cookie}; HttpOnly; SameSite=Strict");
    assert!(entered.contains(&given), "{entered}");
    let with = server.say(&format!(
        "GET /study/7 HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n\r\n",
        server.address
    ));
    assert!(with.starts_with("HTTP/1.1 200"), "{with}");
}

#[test]
fn a_request_that_does_not_end_is_ended() {
    let server = Running::with(None, |_| page(3));
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let mut bytes = Vec::new();
    assert_eq!(stream.read_to_end(&mut bytes).unwrap_or(0), 0);
}
