//! A terminal for a test: a program's drawing, keys for it, and the terminal's state.

use super::prelude::*;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Action, Winsize, tcflow, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitStatus;

/// Enters the alternate screen, and leaves it (xterm's control sequences).
const ENTER_SCREEN: &str = "\x1b[?1049h";
const LEAVE_SCREEN: &str = "\x1b[?1049l";
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";

/// A program on a terminal.
pub struct Terminal {
    pub child: Child,
    master: File,
    terminal: OwnedFd,
    modes: String,
    drawn: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// Starts a program on a terminal that accepts all output.
    pub fn start(command: Command) -> Self {
        Self::of_width(120, command, |command, side| {
            command.stdin(side()).stdout(side());
        })
    }

    /// Starts a program whose standard error alone is a terminal, of this many columns.
    pub fn of_errors(columns: u16, command: Command) -> Self {
        Self::of_width(columns, command, |command, side| {
            command.stderr(side());
        })
    }

    fn of_width(
        columns: u16,
        mut command: Command,
        attach: impl FnOnce(&mut Command, &dyn Fn() -> Stdio),
    ) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let terminal = open(name.as_c_str(), flags, Mode::empty()).unwrap();
        let size = Winsize {
            ws_row: 60,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&terminal, size).unwrap();
        let modes = modes(&terminal);
        let side = || Stdio::from(terminal.try_clone().unwrap());
        attach(&mut command, &side);
        let child = command.spawn().unwrap();
        let (master, drawn) = (File::from(master), Arc::default());
        keep_reading(master.try_clone().unwrap(), Arc::clone(&drawn));
        Terminal {
            child,
            master,
            terminal,
            modes,
            drawn,
        }
    }

    pub fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        send_signal(&self.child, signal);
    }

    /// Stops the terminal from accepting output, like a hanging connection.
    pub fn hold_output(&self) {
        tcflow(&self.terminal, Action::OOff).unwrap();
    }

    /// Returns all output so far, with its control sequences.
    pub fn drawn(&self) -> String {
        String::from_utf8_lossy(&self.drawn.lock().unwrap()).into_owned()
    }

    /// Returns whether the program has the alternate screen.
    pub fn is_taken(&self) -> bool {
        self.modes != modes(&self.terminal)
    }

    /// Waits for the program's end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Returns whether the alternate screen was left and the cursor is visible.
    pub fn screen_is_left(&self) -> bool {
        let drawn = self.drawn();
        let is_later = |one: &str, other: &str| drawn.rfind(one) > drawn.rfind(other);
        drawn.contains(ENTER_SCREEN)
            && is_later(LEAVE_SCREEN, ENTER_SCREEN)
            && is_later(SHOW_CURSOR, HIDE_CURSOR)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends with the terminal.
fn keep_reading(mut master: File, drawn: Arc<Mutex<Vec<u8>>>) {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = master.read(&mut buffer) {
            drawn.lock().unwrap().extend_from_slice(&buffer[..length]);
        }
    });
}

/// Returns the terminal's modes (tcgetattr(3)).
fn modes(terminal: impl AsFd) -> String {
    format!("{:?}", tcgetattr(terminal).unwrap())
}
