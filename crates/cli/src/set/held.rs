//! Polling that is on only while this program runs, as a key of `nicpoll watch` switches it.
//!
//! What must hold: everything is recorded as a change that waits to be confirmed by nobody, so that the next
//! `nicpoll set` or `nicpoll restore` puts it back when this program was killed.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use nicpoll_napi::standing::{self, Preview};
use nicpoll_napi::{Abilities, DEFER_HARD_IRQS_MAX, Journal, Machine, Owner, Part, Request, Terms};

use super::args::PERIOD_NS;
use super::targets::{self, Name, Resolved};
use super::{Place, carries_own_ssh, check_privileges, failure};
use crate::failure::Failure;

/// Interfaces of one namespace that this program has switched to polling.
pub struct Held {
    journal: Journal,
    machine: Machine,
    netns_inode: u64,
    owner: Owner,
    held: Vec<(String, Vec<PathBuf>)>,
}

impl Held {
    /// Nothing is switched yet, in the namespace of the calling thread.
    pub fn of_caller() -> Result<Self, Failure> {
        check_privileges()?;
        Self::recording_in(Journal::of_this_machine())
    }

    fn recording_in(journal: Journal) -> Result<Self, Failure> {
        nicpoll_napi::recover(&journal).map_err(anyhow::Error::from)?;
        let mut machine = Machine::new();
        Ok(Held {
            journal,
            netns_inode: targets::enter(&mut machine, None)?,
            machine,
            owner: Owner::this_process().context("looking at this process")?,
            held: Vec::new(),
        })
    }

    /// Switches polling on, or off again. Returns whether it is on now.
    pub fn toggle(&mut self, interface: &str) -> Result<bool, Failure> {
        match self.held.iter().position(|(name, _)| name == interface) {
            Some(at) => {
                self.undo(at)?;
                Ok(false)
            }
            None => {
                self.hold(interface)?;
                Ok(true)
            }
        }
    }

    /// Puts everything back and returns the names of the interfaces.
    pub fn undo_all(&mut self) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        while let Some(last) = self.held.len().checked_sub(1) {
            names.push(self.held[last].0.clone());
            self.undo(last)?;
        }
        Ok(names)
    }

    fn undo(&mut self, at: usize) -> Result<(), Failure> {
        for path in &self.held[at].1 {
            standing::undo_unconfirmed(&self.journal, &mut self.machine, path, self.owner)
                .map_err(anyhow::Error::from)?;
        }
        self.held.remove(at);
        Ok(())
    }

    fn hold(&mut self, interface: &str) -> Result<(), Failure> {
        let place = Place {
            journal: self.journal.clone(),
            netns_inode: self.netns_inode,
            links: targets::links(&self.machine, self.netns_inode)?,
        };
        let name = Name {
            interface: String::from(interface),
            part: Part::Whole,
        };
        let Resolved { orders, .. } = targets::resolve(&[name], &place.links, self.netns_inode)?;
        let request = Request {
            defer_hard_irqs: Some(DEFER_HARD_IRQS_MAX),
            gro_flush_timeout_ns: Some(PERIOD_NS),
            ..Request::default()
        };
        let abilities = Abilities::probe();
        let machine = &mut self.machine;
        let facts = standing::survey(machine, &orders, &request, &abilities).map_err(failure)?;
        let preview = standing::preview(&orders, &facts, &request, false).map_err(failure)?;
        if preview == Preview::default() {
            return Err(anyhow!(
                "{interface} polls already; 'nicpoll set {interface} -polling' puts it back"
            )
            .into());
        }
        if carries_own_ssh(machine, &place, &orders)? {
            return Err(anyhow!(
                "{interface} carries your ssh connection; 'nicpoll set {interface} polling' switches it, \
                 and back unless you confirm it"
            )
            .into());
        }
        let before = self.attempts()?;
        let terms = Terms {
            owner: self.owner,
            // As long as this program runs.
            until_boottime_ns: Some(u64::MAX),
        };
        standing::set(
            &self.journal,
            &mut self.machine,
            &orders,
            &request,
            false,
            terms,
        )
        .map_err(failure)?;
        let mut records = self.attempts()?;
        records.retain(|path| !before.contains(path));
        self.held.push((String::from(interface), records));
        Ok(())
    }

    fn attempts(&self) -> Result<Vec<PathBuf>, Failure> {
        let attempts = standing::attempts_of(&self.journal, self.owner);
        Ok(attempts.map_err(anyhow::Error::from)?)
    }
}

#[cfg(test)]
mod tests {
    use nicpoll_lab::{INTERFACE, Lab};
    use nicpoll_napi::{Control, Kernel, Knob, Target, Value};
    use nicpoll_sys::netns;

    use super::*;
    use crate::namespace;

    /// Both namespaces have names while this lives: the other end of a pair is looked for by them.
    struct Named(Vec<PathBuf>);

    impl Named {
        fn new(lab: &Lab) -> Self {
            let keep = |host: &nicpoll_lab::Host| {
                let name = format!("nicpoll-held-{}", host.netns().inode());
                host.netns().keep_as(&name).unwrap()
            };
            Named(lab.hosts().map(keep).to_vec())
        }
    }

    impl Drop for Named {
        fn drop(&mut self) {
            for name in &self.0 {
                let _ = netns::forget(name);
            }
        }
    }

    /// GRO at one end, and no TSO at the other: what polling needs of a pair.
    fn ready(lab: &Lab) {
        let [sender, receiver] = lab.hosts();
        let features = sender.run(|resident| {
            let ifindex = resident.control.interface(INTERFACE).unwrap().ifindex;
            resident.control.features(ifindex).unwrap().active
        });
        let is_tso = |name: &str| name.starts_with("tx-tcp") && name.ends_with("-segmentation");
        for (name, is_on) in features.unwrap() {
            if is_on && is_tso(&name) {
                write(sender, &name, 0);
            }
        }
        write(receiver, "rx-gro", 1);
    }

    fn write(host: &nicpoll_lab::Host, name: &str, value: u64) {
        let knob = Knob::Feature(String::from(name));
        let netns_inode = host.netns().inode();
        host.run(move |resident| {
            let target = Target {
                netns_inode,
                interface: resident.control.interface(INTERFACE).unwrap(),
            };
            let value = Value::Number(value);
            resident.control.write(&target, &knob, &value).unwrap();
        })
        .unwrap();
    }

    fn timeouts(control: &mut Control) -> Vec<Option<u64>> {
        let ifindex = control.interface(INTERFACE).unwrap().ifindex;
        let napis = control.napis(ifindex).unwrap();
        napis.iter().map(|napi| napi.gro_flush_timeout_ns).collect()
    }

    #[test]
    fn polling_is_on_while_it_is_held_and_off_as_it_was() {
        let test = "polling_is_on_while_it_is_held_and_off_as_it_was";
        let missing = nicpoll_sys::privilege::missing_for_lab().unwrap();
        if !missing.is_empty() {
            println!("skipped {test}: missing {}", missing.join(", "));
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let lab = Lab::build(Journal::at(home.path().join("lab"))).unwrap();
        let named = Named::new(&lab);
        let journal = Journal::at(home.path().join("state"));
        // As a watch of another namespace enters it.
        let receiver = named.0[1].to_string_lossy().into_owned();
        let inside = |work: &(dyn Fn(Held, Control) + Sync)| {
            let entered = namespace::inside(&receiver, || {
                work(Held::recording_in(journal.clone())?, Control::new());
                Ok(())
            });
            entered.unwrap();
        };
        inside(&|mut held, _| {
            let refused = held.toggle(INTERFACE).unwrap_err().to_string();
            assert!(refused.contains("GRO is off"), "{refused}");
        });
        ready(&lab);
        inside(&|mut held, mut control| {
            let mut timeouts = || timeouts(&mut control);
            assert_eq!(timeouts(), [Some(0)]);
            assert!(held.toggle(INTERFACE).unwrap());
            assert_eq!(timeouts(), [Some(PERIOD_NS)]);
            assert!(!held.toggle(INTERFACE).unwrap());
            assert_eq!(timeouts(), [Some(0)]);
            assert!(held.toggle(INTERFACE).unwrap());
            assert_eq!(held.undo_all().unwrap(), [INTERFACE]);
            assert_eq!(timeouts(), [Some(0)]);
        });
        assert!(journal.paths().unwrap().is_empty());
    }
}
