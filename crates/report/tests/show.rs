//! Interfaces and checks as text: missing values never print as numbers, and lines fit the page.

use nicpoll_model::{Check, CheckGroup, CheckStatus, Doctor, Origin, Show};
use nicpoll_report::{TextOptions, render_text};
use nicpoll_testkit::assert_has;

fn show() -> Show {
    serde_json::from_str(include_str!("golden/show-hybrid.json")).unwrap()
}

fn lines_fit(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.chars().count() <= width, "{line}");
    }
    assert!(!text.contains('\x1b'));
}

#[test]
fn what_is_known_is_shown_and_what_is_not_is_no_number() {
    for width in [80, 100] {
        let options = TextOptions::wide(width);
        let text = render_text(&show(), &options);
        lines_fit(&text, width);
        let has = |part: &str| assert!(text.contains(part), "{part}:\n{text}");
        has("em0: no driver, up, 2.5 Gbit/s");
        has("not looked at");
        has("2 to receive, ? to send");
        has("gro-flush-timeout 200 us");
        has("2,048 slots x 4,720 rounds/s (predicted from the timeout)");
        has("kern.polling.hz                   4717  measured");
        has("kern.polling.burst                23.1  measured");
        has("kern.polling.phase                   -  -");
        has("0.0900 %");
        has("Not seen: polls: a reason.");
        has("gro_flush_timeout is gone; nicpoll had set it to 200000");
        has(", 3.50/s, STORM");
        has("STORM: 1,000 or more entries");
    }
}

#[test]
fn an_interface_that_nothing_polls_has_no_block() {
    let mut show = show();
    show.interfaces[0].napis = Some(Vec::new());
    let text = render_text(&show, &TextOptions::default());
    assert!(!text.contains("kern.polling"), "{text}");
}

fn doctor(statuses: &[CheckStatus]) -> Doctor {
    let check = |status: &CheckStatus| Check {
        group: CheckGroup::Kernel,
        name: String::from("a feature"),
        interface: Some(String::from("em0\x1b[31m")),
        status: *status,
        finding: String::from("found"),
        remedy: status.is_bad().then(|| String::from("do this")),
    };
    Doctor {
        schema: String::from("nicpoll.doctor-1"),
        origin: Origin::default(),
        kernel: String::from("Linux"),
        checks: statuses.iter().map(check).collect(),
    }
}

#[test]
fn bad_checks_have_their_remedies_below_them_and_are_counted() {
    use CheckStatus::{Absent, Confounds, Good, Missing, Unknown};
    let well = doctor(&[Good, Absent, Unknown]);
    assert!(well.is_well());
    let text = render_text(&well, &TextOptions::default());
    assert!(text.contains("Nothing is missing"), "{text}");
    let ill = doctor(&[Good, Missing, Confounds]);
    assert!(!ill.is_well());
    let text = render_text(&ill, &TextOptions::default());
    lines_fit(&text, 100);
    assert_eq!(text.matches("-> do this").count(), 2, "{text}");
    assert_has(&text, "2 things are missing or disturb measurements.");
}
