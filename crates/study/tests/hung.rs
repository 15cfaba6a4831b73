//! A workload that hangs costs its own trial, and the study goes on and ends in its time.

mod common;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::TestLab;
use nicpoll_lab::{
    Host, HostEvent, HostFailure, HostMessage, HostRequest, INTERFACE, Lab, LocalHost,
};
use nicpoll_model::{Origin, Side, Study};
use nicpoll_stats::order::Seed;
use nicpoll_study::demo::POLLING;
use nicpoll_study::{DemoOptions, Identity, Session, StudyProgress, plan};
use nicpoll_switch::Owner;
use nicpoll_testkit::needs;

/// A host whose traffic does not begin while it hangs, although it reports the start.
struct Hanging {
    host: LocalHost,
    hangs: Arc<AtomicBool>,
    said: VecDeque<HostEvent>,
}

impl Host for Hanging {
    fn send(&mut self, message: HostMessage) -> Result<(), HostFailure> {
        let is_start = matches!(message.request, HostRequest::Start(..));
        if is_start && self.hangs.load(Ordering::Relaxed) {
            self.said.push_back(HostEvent::Answered {
                id: message.id,
                answer: Ok(serde_json::Value::Null),
            });
            return Ok(());
        }
        self.host.send(message)
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Option<HostEvent>, HostFailure> {
        match self.said.pop_front() {
            Some(event) => Ok(Some(event)),
            None => self.host.next_event(timeout),
        }
    }
}

/// Makes a study of one block under udp64, whose trial under polling hangs.
fn study() -> Study {
    let test = TestLab::build();
    let hangs = Arc::new(AtomicBool::new(false));
    let host = |side| {
        let namespace = test.veth.namespace(side).try_clone().unwrap();
        let owner = Owner::this_process().unwrap();
        LocalHost::new(
            namespace,
            vec![String::from(INTERFACE)],
            &test.journal,
            owner,
        )
        .unwrap()
    };
    let sender = Hanging {
        host: host(Side::Sender),
        hangs: hangs.clone(),
        said: VecDeque::new(),
    };
    let receiver = Box::new(host(Side::Receiver));
    let mut lab = Lab::of(Box::new(sender), None, receiver, test.veth.link()).unwrap();
    let options = DemoOptions {
        quick: true,
        blocks: Some(1),
        trial: Some(Duration::from_millis(100)),
        workloads: vec![String::from("udp64")],
        ..DemoOptions::default()
    };
    let (design, plan) = plan(&options, Seed(1)).unwrap();
    let identity = Identity::new(Origin::default(), 1);
    let cancel = AtomicBool::new(false);
    let session = Session::new(design, plan, identity, None);
    let ended = session.run(&mut lab, &cancel, |progress| match progress {
        StudyProgress::Begins { place, .. } if place.setting == POLLING => {
            hangs.store(true, Ordering::Relaxed)
        }
        StudyProgress::Ends(_) => hangs.store(false, Ordering::Relaxed),
        _ => {}
    });
    assert!(test.journal_is_empty());
    ended.outcome.unwrap()
}

#[test]
fn a_trial_that_hangs_is_a_failure_of_its_setting_and_the_study_goes_on() {
    needs!(Time, Root, PerNapi);
    let study = study();
    assert_eq!(study.trials.len(), 2);
    for trial in &study.trials {
        let failure = trial.validity.failure.as_deref();
        match trial.setting == POLLING {
            true => assert!(
                failure.is_some_and(|why| why.contains("hung")),
                "{failure:?}"
            ),
            false => assert!(trial.result().is_some(), "{failure:?}"),
        }
    }
    let [failed] = &study
        .findings
        .iter()
        .filter(|found| found.failed_trials > 0)
        .collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", study.findings);
    };
    assert_eq!(failed.setting, POLLING);
    assert!(study.elapsed_seconds < study.plan.limit_seconds);
}
