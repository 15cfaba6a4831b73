//! A command in a namespace that runs until it is ended, and its events.

use super::prelude::*;
use std::io::Lines;

/// Starts the program in a namespace.
pub fn nicpoll(host: &NetnsThread<()>, args: &[&str]) -> Child {
    nicpoll_with(host, args, &[])
}

/// Starts it with environment variables.
pub fn nicpoll_with(host: &NetnsThread<()>, args: &[&str], variables: &[(&str, &Path)]) -> Child {
    let mut command = super::run::nicpoll(args);
    command.envs(variables.iter().copied());
    spawn_in(host, command)
}

/// Runs it to its end.
pub fn ended(host: &NetnsThread<()>, args: &[&str]) -> Output {
    nicpoll(host, args).wait_with_output().unwrap()
}

/// A thread in a namespace, for `ip link set IF netns` and nsenter(1).
pub fn thread_of(host: &NetnsThread<()>) -> i32 {
    let own = |(): &mut ()| rustix::thread::gettid().as_raw_nonzero().get();
    host.run(own).unwrap()
}

/// Returns the data of a line, which must be this event's.
pub fn event(line: &str, name: &str) -> Value {
    let event: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    assert_eq!(event["event"], name);
    event["data"].clone()
}

/// A command that prints a line for each event.
pub struct Running {
    pub child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// Count of the intervals so far that were waited for.
    counted: u64,
}

impl Running {
    /// Starts it in a namespace, and returns its start event.
    pub fn start(host: &NetnsThread<()>, args: &[&str]) -> (Self, Value) {
        let stream = ["--json-stream", "--interval", "100ms"];
        Self::of(nicpoll(host, &[args, &stream].concat()))
    }

    /// Wraps a started program, and returns its start event.
    pub fn of(mut child: Child) -> (Self, Value) {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut running = Running {
            child,
            lines,
            counted: 0,
        };
        let start = running.next("start");
        (running, start)
    }

    fn next(&mut self, name: &str) -> Value {
        let Some(line) = self.lines.next() else {
            let mut said = String::new();
            let _ = self.child.stderr.take().unwrap().read_to_string(&mut said);
            panic!("it ended with {:?}: {said}", self.child.wait());
        };
        event(&line.unwrap(), name)
    }

    /// Waits for a link event, and returns it. The `received_packets` of intervals meanwhile are kept.
    pub fn await_link(&mut self) -> Value {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < PATIENCE, "no interface went or came");
            let line = self.lines.next().expect("it goes on").unwrap();
            let value: Value = serde_json::from_str(&line).unwrap();
            if value["event"] == "link" {
                return value["data"].clone();
            }
            self.counted += value["data"]["received_packets"].as_u64().unwrap_or(0);
        }
    }

    /// Waits until a counter of the intervals has grown by this much.
    pub fn await_counted(&mut self, counter: &str, growth: u64) {
        let (began, aim) = (Instant::now(), self.counted + growth);
        while self.counted < aim {
            let interval = self.next("interval");
            self.counted += interval[counter].as_u64().unwrap();
            let counted = self.counted;
            assert!(
                began.elapsed() < PATIENCE,
                "{counter}: {counted} of {aim}, last {interval}"
            );
        }
    }

    /// Waits for the next interval.
    pub fn await_interval(&mut self) -> Value {
        self.next("interval")
    }

    /// Waits for this many more intervals.
    pub fn await_intervals(&mut self, intervals: u32) {
        for _ in 0..intervals {
            self.next("interval");
        }
    }

    /// Ends it like [`Running::interrupt`], and checks that its account closes.
    pub fn end_closed(self) -> Value {
        let end = self.interrupt();
        assert_eq!(end["account"]["residual_packets"], 0, "{end}");
        end
    }

    /// Ends it by a signal, and returns its end event.
    pub fn interrupt(mut self) -> Value {
        send_signal(&self.child, Signal::INT);
        let last = self.lines.map(Result::unwrap).last().unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(130));
        event(&last, "end")
    }
}
