//! The screen of `nicpoll watch` on a test's terminal: its keys, and the restoring of the terminal and every
//! interface, however it ends.

use crate::common::prelude::*;
use crate::common::stage::put;
use crate::common::terminal::Terminal;

/// Longer than the gap between signals of one request.
const LATER: Duration = Duration::from_millis(800);

/// Makes a pair whose near end can be polled.
fn pair() -> Switched {
    let pair = Switched::new();
    put(&mut pair.lab.borrow_mut(), "interrupt", 0);
    pair
}

/// Starts a watch and waits for its first sample.
fn watching(pair: &Switched) -> Terminal {
    let terminal = Terminal::start(pair.command("watch --interval 0.1"));
    wait_until("it has the terminal", || terminal.is_taken());
    wait_until("it has drawn a sample", || {
        terminal.drawn().contains("softirq")
    });
    terminal
}

fn polls(pair: &Switched) -> bool {
    pair.near(|control, target| {
        let napis = control.napis(target.interface.ifindex).unwrap();
        !napis.is_empty()
            && napis
                .iter()
                .all(|napi| napi.gro_flush_timeout_ns != Some(0))
    })
}

/// Starts a watch and switches polling on by its key.
fn polling(pair: &Switched) -> Terminal {
    let mut terminal = watching(pair);
    terminal.press("p");
    wait_until("it polls", || polls(pair));
    // The change is complete once its message is shown.
    wait_until("it says so", || terminal.drawn().contains("again"));
    terminal
}

#[test]
fn a_key_switches_polling_on_and_off_and_the_end_undoes_it() {
    needs!(Root, PerNapi);
    let pair = pair();
    let before = pair.dump();
    let mut terminal = polling(&pair);
    terminal.press("p");
    wait_until("it no longer polls", || pair.is_clean());
    assert_eq!(pair.dump(), before);
    terminal.press("p");
    wait_until("it polls again", || polls(&pair));
    terminal.press("q");
    assert_eq!(terminal.wait().code(), Some(0));
    assert_eq!(pair.dump(), before);
    assert!(pair.is_clean() && !terminal.is_taken());
    wait_until("the screen is left", || terminal.screen_is_left());
}

#[test]
fn the_first_key_puts_back_what_a_killed_guard_left() {
    needs!(Root, PerNapi);
    let pair = pair();
    let before = pair.dump();
    pair.done("set em0 polling --for 60s --look 0");
    let guard = pair.guard_in_force();
    let pid = Pid::from_raw(guard.pid as i32).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    wait_until("the guard is gone", || !guard.is_alive().unwrap());
    let mut terminal = watching(&pair);
    assert_ne!(pair.dump(), before, "watching alone puts nothing back");
    terminal.press("p");
    // Its own polling comes later.
    wait_until("it polls for the watch", || {
        terminal.drawn().contains("again")
    });
    terminal.press("q");
    assert_eq!(terminal.wait().code(), Some(0));
    pair.assert_restored(&before);
}

#[test]
fn what_cannot_poll_is_refused_on_the_screen() {
    needs!(Time, Root, PerNapi);
    let pair = Switched::new();
    let before = pair.dump();
    let mut terminal = watching(&pair);
    terminal.press("p");
    wait_until("it says why not", || terminal.drawn().contains("GRO"));
    terminal.press("q");
    assert_eq!(terminal.wait().code(), Some(0));
    assert_eq!(pair.dump(), before);
}

#[test]
fn signals_put_the_terminal_and_the_interface_back() {
    needs!(Time, Root, PerNapi);
    let pair = pair();
    let before = pair.dump();
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut terminal = polling(&pair);
        terminal.signal(signal);
        assert_eq!(terminal.wait().code(), Some(code));
        assert_eq!(pair.dump(), before, "after {signal:?}");
        assert!(pair.is_clean() && !terminal.is_taken());
        wait_until("the screen is left", || terminal.screen_is_left());
    }
    // In raw mode the terminal makes no signal of the key.
    let mut terminal = polling(&pair);
    terminal.press("\x03");
    assert_eq!(terminal.wait().code(), Some(130));
    assert_eq!(pair.dump(), before);
    assert!(pair.is_clean() && !terminal.is_taken());
}

#[test]
fn after_a_kill_the_guard_puts_the_interface_back() {
    needs!(Root, PerNapi);
    let pair = pair();
    let before = pair.dump();
    let mut terminal = polling(&pair);
    terminal.signal(Signal::KILL);
    assert_eq!(terminal.wait().code(), None);
    wait_until("it is undone", || pair.is_clean());
    assert_eq!(pair.dump(), before);
}

#[test]
fn a_second_signal_ends_a_watch_that_hangs_and_gives_the_terminal_back() {
    needs!(Root, PerNapi);
    let pair = pair();
    let before = pair.dump();
    let mut terminal = polling(&pair);
    terminal.hold_output();
    // Time for it to draw, and to hang.
    std::thread::sleep(LATER);
    terminal.signal(Signal::TERM);
    std::thread::sleep(LATER);
    assert!(terminal.is_taken(), "the first signal waits for the screen");
    terminal.signal(Signal::INT);
    assert_eq!(terminal.wait().code(), Some(130));
    assert!(!terminal.is_taken());
    wait_until("the guard has undone it", || pair.is_clean());
    assert_eq!(pair.dump(), before);
}
