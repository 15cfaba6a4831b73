//! What `nicpoll set` says: what was meant, what is kept, what waits, and in which namespace.

use crate::common::prelude::*;

#[test]
fn a_mistyped_word_is_told_from_an_interface() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    assert_refused(
        "
        2 | set em0 poling | did you mean 'polling'?
        1 | set em0 poling --period 50us | did you mean 'polling'?
        1 | set em1 polling | did you mean 'em0'?
        ",
        |line| pair.run(line),
    );
    assert!(pair.is_clean());
}

#[test]
fn what_is_confirmed_is_listed_and_what_waits_is_shown() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let option = format!("--netns {}", pair.netns());
    pair.done("set em0 polling --fix --for 60s --look 0");
    let text = unwrapped(&pair.done("show em0 --for 0"));
    let keep = format!("nicpoll set em0 {option} --confirm");
    assert_has(&text, "pending its settings are undone in");
    assert!(text.contains(&keep), "{text}");
    let refusal = pair.refused("set em0 --period 50us", 1);
    assert!(refusal.contains(&keep), "{refusal}");
    let kept = pair.done("set em0 --confirm");
    assert_has(&kept, "em0: gro_flush_timeout 0 -> 200000");
    assert_has(
        &kept,
        format!("kept until: nicpoll set em0 {option} -polling"),
    );
    let text = pair.done("show em0 --for 0");
    assert!(!text.contains("\n  pending"), "{text}");
    pair.done("set em0 -polling");

    // Its guard is gone: the change is overdue, and who shows it says what helps.
    pair.done("set em0 polling --fix --for 60s --look 0");
    let records = pair.journal().records().unwrap().into_iter();
    let mut attempts = records.filter_map(|(_, record)| record.unwrap().attempt);
    let guard = attempts.next().unwrap().owner;
    kill_process(Pid::from_raw(guard.pid as i32).unwrap(), Signal::KILL).unwrap();
    wait_until("the guard is gone", || !guard.is_alive().unwrap());
    let text = unwrapped(&pair.done("show em0 --for 0"));
    assert_has(
        &text,
        format!("put it back: nicpoll set em0 {option} -polling"),
    );
    pair.done("restore");
    assert!(pair.is_clean());
}

/// Lines that were broken at the page's width as one.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_would_be_put_back_includes_the_other_end() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    pair.done("set em0 polling --fix --look 0");
    let text = pair.done("set em0 -polling --dry-run");
    assert_has(&text, "em0: gro_flush_timeout 200000 -> 0");
    let peer = text
        .lines()
        .find(|line| line.contains("tx-tcp-segmentation 0 -> 1"));
    assert!(
        peer.is_some_and(|line| line.starts_with("em0 (netns ")),
        "{text}"
    );
    pair.ip("link set em0 down");
    // Instances are out of reach, so the way back is told, with the namespace.
    pair.done("set em0 -polling");
    pair.done("set em0 polling --fix --threaded --look 0");
    pair.ip("link set em0 down");
    let output = pair.run("set em0 -polling");
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_has(
        &text,
        format!("nicpoll restore em0 --netns {}", pair.netns()),
    );
    assert_has(&text, format!("ip -n {} link set em0 up", pair.netns()));
    pair.ip("link set em0 up");
    pair.done("set em0 -polling");
    assert!(pair.is_clean());
}

#[test]
fn a_period_shorter_than_a_round_is_told_with_its_cost_and_few_rounds_prove_nothing() {
    needs!(Root, PerNapi);
    let pair = Switched::new();
    let text = pair.done("set em0 polling --fix --period 10ns --dry-run");
    assert!(text.contains("about 100 % of a CPU"), "{text}");
    let text = pair.done("set em0 polling --fix --period 200us --dry-run");
    assert!(!text.contains("% of a CPU"), "{text}");
    // At 200 ms a round, a look of half a second sees three at the most.
    let text = pair.under_traffic(|| {
        std::thread::sleep(Duration::from_millis(50));
        pair.done("set em0 polling --fix --period 200ms --look 500ms")
    });
    assert_has(&text, "em0: not proven yet: too few rounds");
    pair.done("set em0 -polling");
    assert!(pair.is_clean());
}
