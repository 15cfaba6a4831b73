//! A headless Chromium for tests of pages: layout, console, and requests to the network.
//!
//! The browser reaches no host, keeps no profile, and ends when its value is dropped. A browser that does not answer
//! fails the test in time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The browser's program, in Debian's package of that name.
pub(crate) const PROGRAM: &str = "chromium";
/// Where `cargo xtask test --all` puts axe-core, below the workspace. This project holds no copy of it.
const AXE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../target/axe/node_modules/axe-core/axe.min.js"
);
/// The browser talks over the descriptors 3 and 4.
const OVER_PIPES: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";
/// How long an answer may take on a busy machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// Why axe-core cannot be used; null when it can.
pub(crate) fn missing_axe() -> Option<String> {
    (!Path::new(AXE).is_file()).then(|| String::from("axe-core is not installed"))
}

/// How a page is to be shown.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Width in CSS pixels.
    pub width: u32,
    /// Height in CSS pixels.
    pub height: u32,
    /// Whether the reader's pages are dark.
    pub is_dark: bool,
    /// Whether it is on paper.
    pub is_print: bool,
}

/// A browser with one page, which talks the Chrome DevTools protocol.
pub struct Chromium {
    process: Child,
    input: ChildStdin,
    answers: Receiver<Value>,
    session: Option<String>,
    next: u64,
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    /// Starts it with an empty page.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start() -> Self {
        let profile = tempfile::tempdir().expect("a folder for the browser's profile");
        let mut command = Command::new("sh");
        command.args(["-c", OVER_PIPES, PROGRAM]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        // What it leaves when it is killed goes with the profile.
        command.env("TMPDIR", profile.path());
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--remote-debugging-pipe",
            "about:blank",
        ]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("a shell starts");
        let input = process.stdin.take().expect("it is piped");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let (told, answers) = channel();
        thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).unwrap_or(Value::Null);
                if told.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser = Chromium {
            process,
            input,
            answers,
            session: None,
            next: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let page = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", page);
        browser.session = session["sessionId"].as_str().map(String::from);
        for domain in ["Page", "Network", "Log", "Runtime"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method of the protocol and returns its result. What happens meanwhile is kept.
    ///
    /// # Panics
    /// When the browser refuses, or does not answer.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.write_all(&bytes).expect("the browser listens");
        loop {
            let answer = self.answer();
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    fn answer(&self) -> Value {
        let answer = self.answers.recv_timeout(ANSWERED_WITHIN);
        answer.expect("the browser answers in time")
    }

    /// Shows a file on such a screen, and waits until it is loaded. Forgets what happened before.
    pub fn open(&mut self, file: &Path, screen: Screen) {
        let Screen { width, height, .. } = screen;
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if screen.is_dark { "dark" } else { "light" };
        let media = if screen.is_print { "print" } else { "screen" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        let media = json!({ "media": media, "features": features });
        self.call("Emulation.setEmulatedMedia", media);
        self.events.clear();
        let url = format!("file://{}", file.display());
        self.call("Page.navigate", json!({ "url": url }));
        while !self
            .events
            .iter()
            .any(|event| event["method"] == "Page.loadEventFired")
        {
            let event = self.answer();
            self.events.push(event);
        }
    }

    /// What axe-core finds wrong with the page: one sentence a finding, with the part of the page that it is about.
    ///
    /// # Panics
    /// When axe-core is not there, or fails.
    pub fn axe(&mut self) -> Vec<String> {
        let script = std::fs::read_to_string(AXE).expect("axe-core is installed");
        self.evaluate(&format!("{script}; null"));
        let found = self.evaluate(
            "axe.run().then((found) => found.violations.flatMap((it) => it.nodes.map((part) => \
             `${it.id}: ${it.help}: ${part.html}`)))",
        );
        let found = found.as_array().expect("a list of findings").iter();
        let found = found.filter_map(Value::as_str);
        found.map(String::from).collect()
    }

    /// The value of an expression in the page, or of what it promises.
    ///
    /// # Panics
    /// When it throws.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", asked);
        assert!(result["exceptionDetails"].is_null(), "{result}");
        result["result"]["value"].clone()
    }

    /// What the browser told since the page was opened.
    pub fn events(&self) -> &[Value] {
        &self.events
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
