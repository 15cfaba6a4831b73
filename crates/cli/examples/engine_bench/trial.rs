//! One trial: a receiver, its feeder, and the CPU time of both.
//!
//! Fed frames are counted at the sender's interface, not believed. A receiver's CPU time is that of its own threads
//! between two moments at which it is being fed.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{Read, Write};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use nicpoll_model::traffic::Latency;
use nicpoll_observe::{CpuSample, HostCounters};
use nicpoll_sys::netns::NetnsThread;
use rustix::process::{Pid, Signal, kill_process};

use crate::course::Course;
use crate::kernel::Kernel;
use crate::peers::spawn;
use crate::said::{Listener, Said};

/// Time in which a program must be ready.
const READY_MAX: Duration = Duration::from_secs(10);
/// Unmeasured time after the feeder begins, and before it ends.
const SETTLE: Duration = Duration::from_millis(300);
/// Length of the measured window.
pub const WINDOW: Duration = Duration::from_millis(1000);
/// The core of the sender and that of the receiver.
pub const CPUS: [u32; 2] = [0, 1];

/// How a program is ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By SIGTERM.
    Signal,
    /// By a line on its standard input.
    Enter,
}

/// The source of the delivered count.
#[derive(Clone, Copy)]
pub enum Delivered {
    /// The program's output: the number after the last occurrence of these words.
    Printed(&'static str),
    /// The program's `--json-stream` within the window: packets that it takes after the feeding do not count.
    Streamed,
    /// The kernel's count of datagrams read by sockets of the receiver's namespace.
    Sockets,
    /// Frames received by the interface behind a router.
    Behind,
}

/// A program that receives.
#[derive(Clone, Copy)]
pub struct Receiver {
    /// Its command.
    pub command: &'static str,
    /// Its output when it is ready; `None`: it is ready after a while.
    pub ready: Option<&'static str>,
    /// How it is ended.
    pub end: End,
    /// The source of the delivered count.
    pub delivered: Delivered,
}

/// Results of a trial, by default per second of its window.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Frames received by the receiver's interface or lost on the way there.
    pub fed: f64,
    /// Packets delivered to the program, or behind a router.
    pub delivered: f64,
    /// CPU time of the contender's threads, in seconds.
    pub cpu: f64,
    /// Busy share of each core, the sender's first, by the kernel's clock tick.
    pub busy: [f64; 2],
    /// Share of the receiver's core that a spinner got; `None` without one.
    pub spinner: Option<f64>,
    /// Delays up to the program, or what gaps between packets are off by, if it reports them.
    pub delay: Option<Latency>,
}

/// The trial to run.
pub struct Trial<'a> {
    /// How the kernel receives.
    pub kernel: Kernel,
    /// Who receives.
    pub receiver: &'a Receiver,
    /// The feeder, until it is ended; `None` leaves the link idle.
    pub feeder: Option<&'a str>,
    /// Whether the feeder is the contender, whose CPU time counts.
    pub is_sender: bool,
    /// Whether an ordinary program computes on the receiver's core.
    pub has_spinner: bool,
}

/// No reported interval lies within the window: the host sometimes stops a virtual machine for up to a second.
#[derive(Debug)]
struct StoodStill;

impl fmt::Display for StoodStill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the receiver told of no interval within the window: the machine stood still, or the receiver did")
    }
}

impl Error for StoodStill {}

impl Trial<'_> {
    /// Runs it, and once more if the machine stood still meanwhile.
    pub fn run(&self, course: &Course) -> Result<Outcome> {
        let outcome = self.run_once(course);
        match &outcome {
            Err(error) if error.is::<StoodStill>() => {
                eprintln!("{error}: one more try");
                self.run_once(course)
            }
            _ => outcome,
        }
    }

    fn run_once(&self, course: &Course) -> Result<Outcome> {
        self.kernel.put(course)?;
        let outcome = self.with_kernel(course);
        self.kernel.take_away(course)?;
        outcome
    }

    fn with_kernel(&self, course: &Course) -> Result<Outcome> {
        let receiver = Program::start(course, self.receiver)?;
        self.kernel.follow(course)?;
        let measured = self.measure(course, &receiver);
        let said = receiver.end(self.receiver.end)?;
        let Measured {
            mut outcome,
            frames,
            window,
        } = measured?;
        match self.receiver.delivered {
            Delivered::Printed(words) => {
                let total = said.last_number(words);
                let total = total.with_context(|| format!("no '{words}' in:\n{}", said.text()))?;
                // Programs count from start to end: they received this share of all fed frames.
                outcome.delivered = match frames > 0.0 {
                    true => outcome.fed * total / frames,
                    false => 0.0,
                };
            }
            Delivered::Streamed => {
                outcome.delivered = said.received_per_second(window).ok_or(StoodStill)?;
            }
            Delivered::Sockets | Delivered::Behind => {}
        }
        outcome.delay = said.delay();
        Ok(outcome)
    }

    fn measure(&self, course: &Course, receiver: &Program) -> Result<Measured> {
        let all_before = frames(course)?;
        let feeder = self
            .feeder
            .map(|words| spawn(course.sender(), CPUS[0], words));
        let feeder = feeder.transpose()?;
        if feeder.is_some() {
            let fed = wait_until(|| Ok(frames(course)? > all_before + 1.0));
            fed.with_context(|| format!("'{}'", self.feeder.unwrap_or_default()))?;
        }
        let spinner = self.has_spinner.then(|| {
            let words = format!("bench helper spin {}", (SETTLE + WINDOW).as_millis());
            spawn(course.contender(), CPUS[1], &words)
        });
        let spinner = spinner.transpose()?;
        thread::sleep(SETTLE);
        let counted = self.receiver.delivered;
        let sender = feeder.as_ref().filter(|_| self.is_sender);
        let contender = sender.unwrap_or(&receiver.child).id();
        let before = Reading::take(course, contender, counted)?;
        thread::sleep(WINDOW);
        let after = Reading::take(course, contender, counted)?;
        let spinner = spinner.map(said_by).transpose()?;
        let mut outcome = after.since(&before);
        outcome.spinner = spinner.and_then(|share| share.trim().parse().ok());
        if let Some(feeder) = feeder {
            terminate(&feeder)?;
            said_by(feeder)?;
        }
        // The receiver takes waiting packets before it is ended.
        thread::sleep(SETTLE);
        Ok(Measured {
            outcome,
            frames: frames(course)? - all_before,
            window: (before.at, after.at),
        })
    }
}

/// Figures before the receiver's own.
struct Measured {
    outcome: Outcome,
    /// Frames of the whole feeding.
    frames: f64,
    window: (Instant, Instant),
}

/// Counters read at both ends of the window.
struct Reading {
    at: Instant,
    frames: f64,
    delivered: f64,
    cpu: f64,
    busy: CpuSample,
}

impl Reading {
    fn take(course: &Course, contender: u32, counted: Delivered) -> Result<Self> {
        Ok(Reading {
            at: Instant::now(),
            frames: frames(course)?,
            delivered: delivered(course, counted)?,
            cpu: cpu_seconds(contender)?,
            busy: CpuSample::now()?,
        })
    }

    fn since(&self, before: &Reading) -> Outcome {
        let seconds = (self.at - before.at).as_secs_f64();
        let states = self.busy.since(&before.busy, &CPUS).states;
        let busy = |cpu: u32| {
            let own = states.iter().find(|states| states.core == cpu);
            own.map_or(0.0, nicpoll_model::CpuStates::busy)
        };
        Outcome {
            fed: (self.frames - before.frames) / seconds,
            delivered: (self.delivered - before.delivered) / seconds,
            cpu: (self.cpu - before.cpu) / seconds,
            busy: CPUS.map(busy),
            spinner: None,
            delay: None,
        }
    }
}

/// A program that runs until it is ended.
struct Program {
    child: Child,
    said: Listener,
}

impl Program {
    fn start(course: &Course, receiver: &Receiver) -> Result<Self> {
        let mut child = spawn(course.contender(), CPUS[1], receiver.command)?;
        let output = child.stdout.take().context("no output")?;
        let said = Listener::start(output, receiver.ready)?;
        if receiver.ready.is_none() {
            thread::sleep(2 * SETTLE);
        } else if !said.is_ready() {
            let _ = child.wait();
            return Err(anyhow!(
                "'{}' ended at once: {}",
                receiver.command,
                said.end()?.text()
            ));
        }
        Ok(Program { child, said })
    }

    /// Ends it, and returns what it printed.
    fn end(mut self, how: End) -> Result<Said> {
        match how {
            End::Signal => terminate(&self.child)?,
            End::Enter => {
                if let Some(input) = &mut self.child.stdin {
                    let _ = input.write_all(b"\n");
                }
            }
        }
        drop(self.child.stdin.take());
        let said = self.said.end()?;
        self.child.wait()?;
        Ok(said)
    }
}

/// Returns the CPU time of a process's threads.
fn cpu_seconds(pid: u32) -> Result<f64> {
    let mut used = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread that has just ended has none.
        let times = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        let ns = times.split(' ').next().and_then(|ns| ns.parse().ok());
        used += ns.unwrap_or(0.0) / 1e9;
    }
    Ok(used)
}

fn terminate(child: &Child) -> Result<()> {
    let pid = Pid::from_raw(child.id() as i32).context("no process")?;
    // It may have ended by itself.
    let _ = kill_process(pid, Signal::TERM);
    Ok(())
}

/// Returns a program's output up to its end.
fn said_by(mut child: Child) -> Result<String> {
    drop(child.stdin.take());
    let mut said = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut said)?;
    }
    child.wait()?;
    Ok(said)
}

fn wait_until(mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !is_so()? {
        if begun.elapsed() > READY_MAX {
            return Err(anyhow!("nothing was fed within {READY_MAX:?}"));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Returns the frames received by the contender's interface, and those lost on the way there.
fn frames(course: &Course) -> Result<f64> {
    let (came, _) = came_and_dropped(course.contender())?;
    let (_, dropped) = came_and_dropped(course.sender())?;
    Ok((came + dropped) as f64)
}

/// Returns the frames received by a host, and those that it could not send.
fn came_and_dropped(host: &NetnsThread<()>) -> Result<(u64, u64)> {
    let snapshot = host.run(|()| HostCounters::of_caller().snapshot())?;
    let interfaces = snapshot.interfaces.context("listing interfaces")?;
    // The loopback is idle, and no frame comes back to a router.
    let links = || interfaces.values().map(|one| &one.link);
    let came = links().map(|link| link.rx_packets).sum();
    let dropped = links().map(|link| link.tx_dropped).sum();
    Ok((came, dropped))
}

/// Returns the count delivered so far, if the program does not report it at its end.
fn delivered(course: &Course, counted: Delivered) -> Result<f64> {
    match counted {
        Delivered::Printed(_) | Delivered::Streamed => Ok(0.0),
        Delivered::Sockets => read_by_sockets(course),
        Delivered::Behind => Ok(came_and_dropped(course.receiver())?.0 as f64),
    }
}

/// Returns the datagrams read by sockets of the receiver's namespace.
fn read_by_sockets(course: &Course) -> Result<f64> {
    let snmp = course
        .contender()
        .run(|()| fs::read_to_string("/proc/thread-self/net/snmp"))??;
    let mut lines = snmp.lines().filter(|line| line.starts_with("Udp: "));
    let names = lines.next().context("no names")?;
    let values = lines.next().context("no values")?;
    let mut pairs = names.split(' ').zip(values.split(' '));
    let read = pairs.find(|(name, _)| *name == "InDatagrams");
    Ok(read.context("no InDatagrams")?.1.parse()?)
}
