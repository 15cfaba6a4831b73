//! `nicpoll sim --page`: the page in a browser runs what the program runs. Each command that the page shows is run as it
//! stands, and must print the digest that the page shows.

use std::path::{Path, PathBuf};
use std::process::Command;

use nicpoll_testkit::{Chromium, Screen, needs};
use serde_json::{Value, json};

const DESK: Screen = Screen {
    width: 1280,
    height: 900,
    is_dark: false,
    is_print: false,
};
const PHONE: Screen = Screen {
    width: 380,
    height: 800,
    is_dark: true,
    ..DESK
};

/// Ends when the page has drawn the chosen run, or all that was asked of it.
const RUN: &str = "['curves', 'done']";
const ALL: &str = "['done']";

/// A page that is chosen from by keyboard alone.
struct Page {
    browser: Chromium,
}

impl Page {
    fn press(&mut self, key: &str, code: u32) {
        for kind in ["keyDown", "keyUp"] {
            let event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.browser.call("Input.dispatchKeyEvent", event);
        }
    }

    fn wait(&mut self, states: &str) {
        let drawn = format!(
            "new Promise((end) => {{ const look = () => {states}.includes(document.body.dataset.state) \
             ? end(true) : setTimeout(look, 20); look(); }})"
        );
        assert_eq!(self.browser.evaluate(&drawn), json!(true));
    }

    /// Moves a slider, or the choice of a list, to its next values.
    fn next(&mut self, id: &str, steps: usize) {
        self.browser
            .evaluate(&format!("document.getElementById('{id}').focus()"));
        for _ in 0..steps {
            match id {
                "preset" => self.press("ArrowDown", 40),
                _ => self.press("ArrowRight", 39),
            }
        }
        self.wait(RUN);
    }

    fn text(&mut self, id: &str) -> String {
        let text = self
            .browser
            .evaluate(&format!("document.getElementById('{id}').textContent"));
        text.as_str().unwrap().to_owned()
    }

    /// Runs the command that the page shows, and compares its digest with the page's.
    fn compare(&mut self) -> String {
        let (command, digest) = (self.text("command"), self.text("digest"));
        let program = Path::new(env!("CARGO_BIN_EXE_nicpoll")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let ran = Command::new("sh")
            .args(["-c", &command])
            .env("PATH", path)
            .output();
        let printed = String::from_utf8(ran.unwrap().stdout).unwrap();
        assert_eq!(printed, format!("{digest}  -\n"), "{command}");
        command
    }

    /// Checks that the page is as legible as a report, said nothing on the console and asked for nothing else.
    fn check(&mut self, screen: Screen) {
        let wrong = self
            .browser
            .evaluate(include_str!("../../../report/tests/browser.js"));
        assert_eq!(wrong, json!([]), "{screen:?}");
        for event in self.browser.events() {
            let method = event["method"].as_str().unwrap_or_default();
            let told = [
                "Log.entryAdded",
                "Runtime.consoleAPICalled",
                "Runtime.exceptionThrown",
            ];
            assert!(!told.contains(&method), "{event}");
            let url: &Value = &event["params"]["request"]["url"];
            let is_own = |url: &str| url.starts_with("file:") || url.starts_with("blob:");
            assert!(url.as_str().is_none_or(is_own), "{url}");
        }
    }
}

/// Writes the page into a folder.
fn write(folder: &Path) -> PathBuf {
    let file = folder.join("sim.html");
    let mut program = Command::new(env!("CARGO_BIN_EXE_nicpoll"));
    let wrote = program.args(["sim", "--page"]).arg(&file).status().unwrap();
    assert!(wrote.success());
    file
}

/// A second opinion on what [`Page::check`] checks.
#[test]
fn axe_core_finds_nothing_wrong_with_the_page() {
    needs!(Chromium, Axe);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path());
    let mut page = Page {
        browser: Chromium::start(),
    };
    for screen in [DESK, PHONE] {
        page.browser.open(&file, screen);
        page.wait(RUN);
        page.next("preset", 2);
        assert_eq!(page.browser.axe(), Vec::<String>::new(), "{screen:?}");
    }
}

#[test]
fn the_page_prints_what_the_program_prints() {
    needs!(Chromium);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path());
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written == include_str!("../../../../docs/simulator.html"));
    assert!(written.len() <= 2 << 20);
    let mut page = Page {
        browser: Chromium::start(),
    };
    for (screen, moves) in [
        (DESK, [("load", 3), ("preset", 2)]),
        (PHONE, [("speed", 2), ("preset", 3)]),
    ] {
        page.browser.open(&file, screen);
        page.wait(RUN);
        let mut commands = vec![page.compare()];
        for (id, steps) in moves {
            page.next(id, steps);
            commands.push(page.compare());
        }
        let seed = "const seed = document.getElementById('seed'); seed.value = 7; \
            seed.dispatchEvent(new Event('input'))";
        page.browser.evaluate(seed);
        page.wait(ALL);
        commands.push(page.compare());
        page.check(screen);
        commands.dedup();
        assert_eq!(commands.len(), 4, "{commands:#?}");
        let points = page
            .browser
            .evaluate("document.querySelectorAll('#curve polygon').length");
        assert!(points.as_u64().unwrap() > 0, "no published point is drawn");
    }
}
