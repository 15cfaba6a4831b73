//! The HTML report in a browser: wide and narrow, light and dark, on a screen and on paper.

mod fixture;

use std::fs;
use std::path::{Path, PathBuf};

use nicpoll_model::ab::LiveAb;
use nicpoll_model::{Studies, Study};
use nicpoll_report::{choice_page, render_html};
use nicpoll_testkit::{Chromium, Screen, needs};
use serde_json::Value;

const DESK: Screen = Screen {
    width: 1280,
    height: 900,
    is_dark: false,
    is_print: false,
};
const PHONE: Screen = Screen {
    width: 380,
    height: 800,
    ..DESK
};

const SCREENS: [Screen; 5] = [
    DESK,
    Screen {
        is_dark: true,
        ..DESK
    },
    PHONE,
    Screen {
        is_dark: true,
        ..PHONE
    },
    Screen {
        width: 690,
        is_print: true,
        ..DESK
    },
];

/// Makes the fixture with a long workload name, as in sweeps.
fn study() -> Study {
    let text = serde_json::to_string(&fixture::study()).unwrap();
    let named = text.replace("\"udp1470\"", "\"netblast1470-both-ways@1600000\"");
    serde_json::from_str(&named).unwrap()
}

/// Returns the tested pages.
fn pages() -> [PathBuf; 2] {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let compared: LiveAb = serde_json::from_str(include_str!("golden/ab.json")).unwrap();
    let pages = [
        ("report.html", render_html(&study())),
        ("report-ab.html", render_html(&compared)),
    ];
    pages.map(|(name, html)| {
        let file = folder.join(name);
        fs::write(&file, html).unwrap();
        file
    })
}

#[test]
fn the_page_is_legible_whole_and_silent_wherever_it_is_shown() {
    needs!(Chromium);
    let mut browser = Chromium::start();
    for page in pages() {
        for screen in SCREENS {
            browser.open(&page, screen);
            let wrong = browser.evaluate(include_str!("browser.js"));
            let wrong: Vec<&Value> = wrong.as_array().unwrap().iter().collect();
            assert!(
                wrong.is_empty(),
                "{}, {screen:?}: {wrong:#?}",
                page.display()
            );
            for event in browser.events() {
                let method = event["method"].as_str().unwrap_or_default();
                let told = [
                    "Log.entryAdded",
                    "Runtime.consoleAPICalled",
                    "Runtime.exceptionThrown",
                ];
                assert!(!told.contains(&method), "{event}");
                if method == "Network.requestWillBeSent" {
                    let url = event["params"]["request"]["url"].as_str().unwrap();
                    assert!(
                        url.ends_with(page.file_name().unwrap().to_str().unwrap()),
                        "{url}"
                    );
                }
            }
        }
    }
}

/// A second opinion on the script's checks above, and many more.
#[test]
fn axe_core_finds_nothing_wrong() {
    needs!(Chromium, Axe);
    let mut browser = Chromium::start();
    let studies = studies();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let of_store = [
        ("studies.html", render_html(&studies)),
        (
            "choice.html",
            render_html(&choice_page(7, &["interrupt", "polling"], &studies)),
        ),
    ];
    let of_store = of_store.map(|(name, html)| {
        let file = folder.join(name);
        fs::write(&file, html).unwrap();
        file
    });
    for page in pages().into_iter().chain(of_store) {
        for screen in [DESK, SCREENS[1], PHONE] {
            browser.open(&page, screen);
            let found = browser.axe();
            assert!(
                found.is_empty(),
                "{}, {screen:?}: {found:#?}",
                page.display()
            );
        }
    }
}

/// Makes a store with a running study.
fn studies() -> Studies {
    serde_json::from_str(include_str!("golden/studies.json")).unwrap()
}

#[test]
fn the_first_screen_has_the_question_and_the_first_verdicts() {
    needs!(Chromium);
    let mut browser = Chromium::start();
    let [page, _] = pages();
    // On a telephone the answer in words comes first, with room for a verdict.
    for (screen, rows) in [(DESK, 4), (PHONE, 1)] {
        browser.open(&page, screen);
        let seen = browser.evaluate(
            "[...document.querySelectorAll('h1, table.answer tbody tr')]\
             .filter((part) => part.getBoundingClientRect().bottom <= innerHeight).length",
        );
        assert!(seen.as_u64().unwrap() > rows, "{screen:?}: {seen}");
    }
}

/// A page of words alone would pass the tests above: each bar must have its estimate, or an arrow towards it.
#[test]
fn the_bars_of_the_answer_are_drawn() {
    needs!(Chromium);
    let mut browser = Chromium::start();
    let [page, _] = pages();
    browser.open(&page, DESK);
    let drawn = browser.evaluate(
        "[...document.querySelectorAll('.interval')].map((bar) => \
         [...bar.querySelectorAll('circle, polygon')].filter((part) => part.getBoundingClientRect().width > 0).length)",
    );
    let drawn: Vec<u64> = drawn
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    assert!(
        drawn.len() >= 6 && drawn.iter().all(|parts| *parts >= 1),
        "{drawn:?}"
    );
}
