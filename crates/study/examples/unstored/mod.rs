//! Runs a study in namespaces of its own without storing it, for the examples that repeat studies.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use nicpoll_lab::{Lab, Veth};
use nicpoll_model::{Origin, Plan, Study};
use nicpoll_study::{Design, Identity, Session};
use nicpoll_switch::{Journal, Owner};

/// Runs it to its end; its time counts from here.
pub fn run(design: Design, plan: Plan, seed: u64) -> Result<Study, Box<dyn Error>> {
    let identity = Identity::new(Origin::default(), seed);
    let state = tempfile::tempdir()?;
    let journal = Journal::at(state.path().join("state"));
    let veth = Veth::build()?;
    let mut lab = Lab::local(veth.link(), &journal, Owner::this_process()?)?;
    let session = Session::new(design, plan, identity, None);
    Ok(session
        .run(&mut lab, &AtomicBool::new(false), |_| {})
        .outcome?)
}
