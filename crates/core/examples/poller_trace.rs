//! Drives a poller by text: reads events from standard input, and prints for each a line with the device calls, the
//! result, and every knob and counter.
//!
//! ```console
//! $ printf 'register em0\ntick 1000\npoll\npollmore\n' | cargo run -q -p nicpoll-core --example poller_trace
//! ```
//!
//! The argument is the number of ticks a second (default 1000). Events:
//!
//! | event | what happens |
//! |---|---|
//! | `advance US` | time passes |
//! | `tick US` | time passes, then the clock ticks (`hardclock_device_poll`) |
//! | `poll` | `netisr_poll` |
//! | `pollmore` | `netisr_pollmore` |
//! | `idle` | one pass of the idle thread |
//! | `set KNOB VALUE` | a knob is written |
//! | `register NAME`, `deregister NAME` | a device comes or goes |
//! | `controller NAME` | `freebsd` or `share` |
//! | `shutdown` | ticks are ignored from now on |
//!
//! Empty lines and lines that begin with `#` are ignored.

use std::fmt::Write as _;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use nicpoll_core::{Command, Controller, DeviceId, Errno, Knob, Poller, Time};

fn main() -> ExitCode {
    let hz = match std::env::args().nth(1).map(|hz| hz.parse()) {
        None => 1000,
        Some(Ok(hz)) => hz,
        Some(Err(_)) => return fail("the argument is the number of ticks a second, such as 1000"),
    };
    let Ok(poller) = Poller::new(hz) else {
        return fail("1 to 1000000 ticks a second are possible");
    };
    let mut trace = Trace {
        poller,
        now_us: 0,
        names: Vec::new(),
    };
    let mut out = io::stdout().lock();
    for (number, line) in io::stdin().lock().lines().enumerate() {
        let Ok(line) = line else {
            return fail("the events are not UTF-8 text");
        };
        let event = line.trim();
        if event.is_empty() || event.starts_with('#') {
            continue;
        }
        match trace.event(event) {
            Ok(said) if writeln!(out, "{said}").is_ok() => {}
            Ok(_) => return ExitCode::FAILURE,
            Err(reason) => return fail(&format!("line {}: '{event}': {reason}", number + 1)),
        }
    }
    ExitCode::SUCCESS
}

fn fail(reason: &str) -> ExitCode {
    eprintln!("poller_trace: {reason}");
    ExitCode::from(2)
}

struct Trace {
    poller: Poller,
    now_us: u64,
    /// Device names; a device's identifier is its index.
    names: Vec<String>,
}

impl Trace {
    /// Runs `event`; returns its line of output.
    fn event(&mut self, event: &str) -> Result<String, String> {
        let words: Vec<&str> = event.split_whitespace().collect();
        let mut calls = String::new();
        let names = self.names.clone();
        let mut devices = |id: DeviceId, command, count| {
            let command = match command {
                Command::PollOnly => "POLL_ONLY",
                Command::PollAndCheckStatus => "POLL_AND_CHECK_STATUS",
            };
            let _ = write!(calls, " {}:{command}:{count}", names[id.0 as usize]);
            count
        };
        let result = match words[..] {
            ["advance", us] => {
                self.advance(us)?;
                String::from("ok")
            }
            ["tick", us] => {
                self.advance(us)?;
                wake(self.poller.hardclock(Time::from_us(self.now_us)))
            }
            ["poll"] => {
                let now = Time::from_us(self.now_us);
                self.poller.netisr_poll(now, &mut devices);
                String::from("ok")
            }
            ["pollmore"] => wake(self.poller.netisr_pollmore(Time::from_us(self.now_us))),
            ["idle"] => {
                let is_polling = self.poller.idle_poll(&mut devices);
                String::from(if is_polling { "yield" } else { "sleep" })
            }
            ["set", knob, value] => self.set(knob, value)?,
            ["register", name] => {
                let id = self.id(name);
                match self.poller.register(id) {
                    Ok(registered) if registered.wakes_idle_thread => String::from("wake-idle"),
                    outcome => said(outcome.map(drop)),
                }
            }
            ["deregister", name] => {
                let id = self.id(name);
                said(self.poller.deregister(id))
            }
            ["controller", name] => {
                let controller = Controller::from_name(name).ok_or("no such controller")?;
                self.poller.set_controller(controller);
                String::from("ok")
            }
            ["shutdown"] => {
                self.poller.shutdown();
                String::from("ok")
            }
            _ => return Err(String::from("no such event")),
        };
        let calls = if calls.is_empty() { " -" } else { &calls };
        Ok(format!(
            "{event} | calls:{calls} | result: {result} | {}",
            self.state()
        ))
    }

    fn advance(&mut self, us: &str) -> Result<(), String> {
        let us: u64 = us.parse().map_err(|_| "microseconds were expected")?;
        let now_us = self.now_us.checked_add(us);
        self.now_us = now_us
            .filter(|now_us| *now_us < u64::MAX / 1000)
            .ok_or("the time is out of range")?;
        Ok(())
    }

    fn set(&mut self, name: &str, value: &str) -> Result<String, String> {
        // A negative number is a large one for the original's handlers.
        let value: i64 = value.parse().map_err(|_| "a number was expected")?;
        if !(i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&value) {
            return Err(String::from("a knob has 32 bits"));
        }
        Ok(match Knob::from_name(name) {
            Some(knob) => said(self.poller.write(knob, value as u32)),
            None => said(Err(Errno::Enoent)),
        })
    }

    fn id(&mut self, name: &str) -> DeviceId {
        let known = self.names.iter().position(|known| known == name);
        let place = known.unwrap_or_else(|| {
            self.names.push(String::from(name));
            self.names.len() - 1
        });
        DeviceId(place as u32)
    }

    fn state(&self) -> String {
        let mut text = format!("t_us={} hz={}", self.now_us, self.poller.hz());
        for knob in Knob::ALL {
            let _ = write!(text, " {}={}", knob.name(), self.poller.read(*knob));
        }
        let state = self.poller.state();
        let _ = write!(
            text,
            " reg_frac_count={} poll_scheduled={} pollmore_scheduled={} shutting_down={} controller={}",
            state.reg_frac_count,
            u32::from(state.poll_scheduled),
            u32::from(state.pollmore_scheduled),
            u32::from(state.shutting_down),
            self.poller.controller().name(),
        );
        text
    }
}

fn wake(wakes: bool) -> String {
    String::from(if wakes { "wake" } else { "ok" })
}

fn said(outcome: Result<(), Errno>) -> String {
    outcome.map_or_else(|errno| errno.to_string(), |()| String::from("ok"))
}
