//! Only JSON crosses to a host: a trial runs on hosts behind a wire of JSON, and again from the recorded lines,
//! without any host.

mod common;

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use common::TestLab;
use nicpoll_lab::{
    Host, HostEvent, HostFailure, HostMessage, HostRequest, INTERFACE, Lab, LocalHost,
};
use nicpoll_model::{Side, Trial};
use nicpoll_stats::order::Seed;
use nicpoll_study::{DemoOptions, TrialPlace, Trials, plan};
use nicpoll_switch::Owner;
use nicpoll_sys::netns::NetNamespace;
use nicpoll_testkit::needs;

/// Longer than the warm-up of a trial with a period of 1 ms, which is 100 ms.
const LATE: Duration = Duration::from_millis(150);

/// The recorded lines.
type Lines = Arc<Mutex<VecDeque<Line>>>;

#[derive(Clone)]
enum Line {
    Message(String),
    Event(String),
}

/// A host at the other end of a wire of JSON, which is recorded.
struct Wired {
    host: LocalHost,
    lines: Lines,
    /// Delay before it prepares an end of a workload.
    is_late_by: Duration,
}

impl Host for Wired {
    fn send(&mut self, message: HostMessage) -> Result<(), HostFailure> {
        let json = serde_json::to_string(&message).unwrap();
        let there: HostMessage = serde_json::from_str(&json).unwrap();
        assert_eq!(there, message);
        self.lines.lock().unwrap().push_back(Line::Message(json));
        if matches!(there.request, HostRequest::Prepare { .. }) {
            thread::sleep(self.is_late_by);
        }
        self.host.send(there)
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Option<HostEvent>, HostFailure> {
        let Some(event) = self.host.next_event(timeout)? else {
            return Ok(None);
        };
        let json = serde_json::to_string(&event).unwrap();
        let here: HostEvent = serde_json::from_str(&json).unwrap();
        assert_eq!(here, event);
        self.lines.lock().unwrap().push_back(Line::Event(json));
        Ok(Some(here))
    }
}

/// Replays a host's recorded lines.
struct Written(VecDeque<Line>);

impl Host for Written {
    fn send(&mut self, message: HostMessage) -> Result<(), HostFailure> {
        let Some(Line::Message(json)) = self.0.pop_front() else {
            panic!("nothing was asked then: {message:?}");
        };
        assert_eq!(message, serde_json::from_str(&json).unwrap());
        Ok(())
    }

    fn next_event(&mut self, _: Duration) -> Result<Option<HostEvent>, HostFailure> {
        match self.0.front() {
            Some(Line::Event(json)) => {
                let event = serde_json::from_str(json).unwrap();
                self.0.pop_front();
                Ok(Some(event))
            }
            _ => Ok(None),
        }
    }
}

/// Makes a host of a namespace.
fn local(test: &TestLab, namespace: NetNamespace) -> LocalHost {
    let owner = Owner::this_process().unwrap();
    LocalHost::new(
        namespace,
        vec![String::from(INTERFACE)],
        &test.journal,
        owner,
    )
    .unwrap()
}

/// Runs one trial, as a study does.
fn trial(lab: &mut Lab, workload: &str, setting: &str) -> Trial {
    let options = DemoOptions {
        trial: Some(Duration::from_millis(200)),
        period: Some(Duration::from_millis(1)),
        ..DemoOptions::default()
    };
    let (design, plan) = plan(&options, Seed(1)).unwrap();
    let cancel = AtomicBool::new(false);
    let mut trials = Trials::new(lab, &design, &plan, &cancel).unwrap();
    let mut trial = trials
        .run(TrialPlace {
            sequence: 1,
            block: 1,
            workload: String::from(workload),
            setting: String::from(setting),
        })
        .unwrap();
    // The runner's own clock.
    trial.warmup.seconds = 0.0;
    trial
}

#[test]
fn a_trial_is_the_same_from_what_crossed_as_json() {
    needs!(Root, PerNapi);
    let test = TestLab::build();
    let sides = [Side::Sender, Side::Receiver];
    for workload in ["udp64", "rr", "tcp"] {
        let lines = [Lines::default(), Lines::default()];
        let [sender, receiver] = [0, 1].map(|index| -> Box<dyn Host> {
            let namespace = test.veth.namespace(sides[index]).try_clone().unwrap();
            Box::new(Wired {
                host: local(&test, namespace),
                lines: lines[index].clone(),
                is_late_by: Duration::ZERO,
            })
        });
        let mut lab = Lab::of(sender, None, receiver, test.veth.link()).unwrap();
        let measured = trial(&mut lab, workload, "interrupt");
        drop(lab);
        let figures = measured.figures.as_ref().unwrap();
        assert!(figures.receiver.bytes > 0);
        assert_eq!(
            figures.polls.as_ref().unwrap().netns_inode,
            test.inode(sides[1])
        );

        let [sender, receiver] = lines
            .map(|lines| -> Box<dyn Host> { Box::new(Written(lines.lock().unwrap().clone())) });
        let mut lab = Lab::of(sender, None, receiver, test.veth.link()).unwrap();
        assert_eq!(
            trial(&mut lab, workload, "interrupt"),
            measured,
            "{workload}"
        );
    }
    assert!(test.journal_is_empty());
}

/// The time for calibration begins when both ends are prepared: busy hosts prepare late.
#[test]
fn a_timer_is_set_right_through_json_too_however_late_its_hosts_prepare() {
    needs!(Root, PerNapi);
    let test = TestLab::build();
    let [sender, receiver] = [Side::Sender, Side::Receiver].map(|side| -> Box<dyn Host> {
        let namespace = test.veth.namespace(side).try_clone().unwrap();
        Box::new(Wired {
            host: local(&test, namespace),
            lines: Lines::default(),
            is_late_by: LATE,
        })
    });
    let mut lab = Lab::of(sender, None, receiver, test.veth.link()).unwrap();
    let before = lab.settings().unwrap();
    let trial = trial(&mut lab, "udp64", "polling");
    let calibration = trial.figures.unwrap().calibration.unwrap();
    assert_eq!(calibration.period_ns, 1_000_000);
    assert!(!calibration.steps_ns.is_empty());
    assert!(calibration.gro_flush_timeout_ns <= 1_000_000);
    assert_eq!(lab.settings().unwrap(), before);
}
