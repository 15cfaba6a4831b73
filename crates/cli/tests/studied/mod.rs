//! A lab of a test's own, under the settings of the demo.
// Each test program uses a part of it.
#![allow(dead_code)]

use std::sync::Arc;
use std::time::Duration;

use nicpoll_lab::{Lab, Veth};
use nicpoll_model::Side;
use nicpoll_study::{apply, demo};
use nicpoll_switch::{Journal, Owner};
use nicpoll_sys::netns::NetnsThread;

/// Two hosts and their link.
pub struct Studied {
    // Dropped first: it puts back what it changed on the link.
    pub lab: Lab,
    veth: Arc<Veth>,
}

impl Studied {
    pub fn new(journal: &Journal) -> Self {
        let veth = Arc::new(Veth::build().unwrap());
        let lab = Lab::local(veth.link(), journal, Owner::this_process().unwrap()).unwrap();
        Studied { lab, veth }
    }

    /// Puts a setting in force; polling with a timeout.
    pub fn put(&mut self, setting: &str, timeout_ns: u64) {
        put(&mut self.lab, setting, timeout_ns);
    }

    /// The sender's namespace.
    pub fn sender(&self) -> &NetnsThread<()> {
        self.veth.inside(Side::Sender)
    }

    /// The receiver's namespace.
    pub fn receiver(&self) -> &NetnsThread<()> {
        self.veth.inside(Side::Receiver)
    }
}

/// Puts a setting of the demo in force.
pub fn put(lab: &mut Lab, setting: &str, timeout_ns: u64) {
    let settings = demo::settings(Duration::from_nanos(timeout_ns));
    let setting = settings.iter().find(|known| known.name() == setting);
    apply(lab, setting.unwrap(), None).unwrap();
}
