//! A live comparison from its request to its document: plan, guard, run, restore, answer.
//!
//! A guard owns every change before the first is made. However a run ends, everything is restored, and the document
//! lists what was restored.

use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use nicpoll_inspect::host_facts;
use nicpoll_lab::{LabError, this_runner};
use nicpoll_model::ab::{
    AB_SCHEMA, AbAnswer, AbBracket, AbEnd, AbEndCause, AbSetting, AbValue, AbWindow, LiveAb,
};
use nicpoll_model::units::show_time;
use nicpoll_model::{Origin, SwitchRestored, SwitchWrite, Unseen};
use nicpoll_store::{Ended, Store, StoreError};
use nicpoll_switch::knob::table::GRO_FLUSH_TIMEOUT;
use nicpoll_switch::{
    Guard, Journal, Needs, Order, POLLING_PERIOD_NS, Resolved, Switch, SwitchError, Target, Turns,
    Write, client_address, label, recover, require_privileges,
};
use nicpoll_sys::netns::{NAMED_DIRECTORY, NetNamespace, NetnsThread};
use thiserror::Error;

use crate::meter::{Meter, unseen};
use crate::plan::AbRequest;
use crate::run::{AS_IT_IS, AbProgress, PairRecording, Run, THE_SAME, look};

/// Why a comparison cannot begin.
#[derive(Debug, Error)]
pub enum AbError {
    /// Its interface cannot be taken.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// It cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A planned comparison. Nothing is changed yet.
pub struct Prepared {
    request: AbRequest,
    switch: Switch,
    netns_inode: u64,
    orders: Vec<Order>,
    turns: Turns,
    notes: Vec<String>,
}

/// Plans a comparison: finds the interfaces and the writes. Nothing is changed.
///
/// # Errors
/// A missing privilege, an unknown interface, a setting that cannot alternate.
pub fn prepare(request: AbRequest, journal: Journal) -> Result<Prepared, LabError> {
    require_privileges()?;
    let mut switch = Switch::new(journal);
    let netns_inode = switch.enter(request.netns.as_deref())?;
    let names = [request.name.clone()];
    let Resolved { orders, notes } =
        switch.resolve(&names, &request.values, netns_inode, Needs::Fix)?;
    let turns = switch.turns(&orders, request.rules())?;
    Ok(Prepared {
        request,
        switch,
        netns_inode,
        orders,
        turns,
        notes: notes.iter().map(ToString::to_string).collect(),
    })
}

impl Prepared {
    /// Notes on how the interfaces were found.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The namespace of the interfaces.
    pub fn netns_inode(&self) -> u64 {
        self.netns_inode
    }

    /// Returns the document before the run: the settings and the plan.
    pub fn document(&self, origin: Origin) -> Result<LiveAb, LabError> {
        let plan = self.request.plan;
        let (judged, command) = match plan.is_null {
            true => (String::from(THE_SAME), String::new()),
            false => (self.request.words.clone(), self.command()),
        };
        Ok(LiveAb {
            schema: String::from(AB_SCHEMA),
            origin,
            interface: self.request.name.to_string(),
            members: self.members(),
            host: host_facts()?,
            reference: self.setting(String::from(AS_IT_IS), String::new(), |write| {
                &write.change.before
            }),
            judged: self.setting(judged, command, |write| &write.change.written),
            prerequisites_cost: None,
            prerequisites: self.prerequisites(),
            not_alternated: Vec::new(),
            unseen: self.counted_joined(),
            plan,
            pairs: Vec::new(),
            end: AbEnd {
                cause: AbEndCause::Planned,
                text: None,
            },
            restored: Vec::new(),
            answer: AbAnswer::default(),
        })
    }

    /// Runs the comparison and stores it. `guard` starts the process that restores everything if this one is killed.
    ///
    /// # Errors
    /// When it cannot begin.
    pub fn run(
        self,
        origin: Origin,
        guard: Command,
        store: Option<Store>,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(AbProgress<'_>),
    ) -> Result<Ended<LiveAb, LabError>, AbError> {
        recover(self.switch.journal()).map_err(LabError::from)?;
        let guard = Guard::start(guard, self.switch.journal(), None).map_err(LabError::from)?;
        let runner = this_runner().map_err(LabError::from)?;
        let mut recording = PairRecording::begin(store, &self.document(origin.clone())?, &runner)?;
        let outcome = self.compare(origin, &guard, &mut recording, cancel, progress);
        Ok(recording.ended(outcome))
    }

    /// Runs the comparison; everything is restored before it returns.
    fn compare(
        mut self,
        origin: Origin,
        guard: &Guard,
        recording: &mut PairRecording,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(AbProgress<'_>),
    ) -> Result<LiveAb, LabError> {
        let client = self.client()?;
        let members: Vec<Target> = self.orders.iter().map(|it| it.target.clone()).collect();
        let indices: Vec<u32> = members.iter().map(|it| it.interface.ifindex).collect();
        let meter = NetnsThread::enter(self.namespace()?, move || Meter::begin(&indices))?;
        let plan = self.request.plan;
        // A run that ends early has no result.
        let mut without = Vec::new();
        if !self.turns.once.is_empty() {
            without.extend(look(&meter, &members, &plan, cancel)?);
        }
        let rules = self.request.rules();
        let alternation = self.switch.alternate(&self.orders, rules, guard.owner())?;
        self.turns = alternation.turns().clone();
        let mut document = self.document(origin)?;
        let mut run = Run {
            members: members.clone(),
            request: &self.request,
            switch: &mut self.switch,
            alternation,
            guard: guard.owner(),
            client,
            cancel,
            meter: &meter,
            with: Vec::new(),
            recording,
            left_out: Duration::from_secs_f64(plan.left_out_seconds),
            health: Vec::new(),
            limits: None,
            begin: Instant::now(),
        };
        let outcome = run.measure(&mut document, progress);
        let (with, targets) = (std::mem::take(&mut run.with), run.alternation.targets());
        let restored = run.alternation.restore(&mut self.switch);
        document.end = outcome.map_err(|error| match restored {
            Ok(()) => error,
            Err(ref second) => LabError::Unexpected(format!(
                "{error}; putting back failed too: {second}. Try again: nicpoll restore"
            )),
        })?;
        document.restored = self.restored(&targets, restored.as_ref().err());
        if !without.is_empty() && document.end.cause == AbEndCause::Planned {
            without.extend(look(&meter, &members, &plan, cancel)?);
            let both = <[AbWindow; 2]>::try_from(without)
                .ok()
                .zip(with.try_into().ok());
            document.prerequisites_cost = both.map(|(without, with)| AbBracket { without, with });
        }
        document.answer =
            nicpoll_stats::ab::answer(&document.pairs, &document.plan, Some(document.end.cause));
        Ok(document)
    }

    /// Returns the state of the changed interfaces after restoring.
    fn restored(
        &mut self,
        targets: &[Target],
        failed: Option<&SwitchError>,
    ) -> Vec<SwitchRestored> {
        let machine = self.switch.machine();
        let one = |target: &Target| {
            let Target {
                netns_inode,
                interface,
            } = target.clone();
            let name = label(&interface.name, netns_inode, self.netns_inode);
            let asked = machine.run(netns_inode, move |control| control.link_health(&interface));
            let is_there = matches!(asked, Ok(Ok(Some(_))));
            let gone = "it is no more, and its settings went with it";
            let gone = (!is_there).then(|| String::from(gone));
            SwitchRestored {
                interface: name,
                is_as_before: is_there && failed.is_none(),
                notes: gone
                    .into_iter()
                    .chain(failed.map(ToString::to_string))
                    .collect(),
            }
        };
        targets.iter().map(one).collect()
    }

    /// Returns the user's host if the ssh connection comes through one of the interfaces. Then longer periods than
    /// the default are refused, to keep the session usable.
    fn client(&mut self) -> Result<Option<IpAddr>, LabError> {
        if !self
            .switch
            .carries_own_ssh(self.netns_inode, &self.orders)?
        {
            return Ok(None);
        }
        let period_ns = self.request.values.number(&GRO_FLUSH_TIMEOUT);
        if period_ns.is_some_and(|period_ns| period_ns > POLLING_PERIOD_NS) {
            return Err(LabError::Unexpected(format!(
                "{} carries your ssh connection: a period above {} is not tried on it; name a shorter one, or run \
                 this from the console",
                self.request.name,
                show_time(POLLING_PERIOD_NS)
            )));
        }
        Ok(client_address())
    }

    fn namespace(&self) -> Result<NetNamespace, LabError> {
        let namespace = match &self.request.netns {
            None => NetNamespace::current(),
            Some(name) => NetNamespace::open(&Path::new(NAMED_DIRECTORY).join(name)),
        };
        Ok(namespace?)
    }

    fn members(&self) -> Vec<String> {
        let mut members: Vec<String> = Vec::new();
        for order in &self.orders {
            let name = &order.target.interface.name;
            if !members.contains(name) {
                members.push(name.clone());
            }
        }
        members
    }

    /// Returns the writes that both settings need. The other end of a veth may have the same name.
    fn prerequisites(&self) -> Vec<SwitchWrite> {
        let named = |write: &Write| SwitchWrite {
            interface: write.target.label(self.netns_inode),
            ..SwitchWrite::from(write)
        };
        self.turns.once.iter().map(named).collect()
    }

    fn setting(
        &self,
        name: String,
        command: String,
        value: fn(&Write) -> &nicpoll_switch::Value,
    ) -> AbSetting {
        let values = self.turns.each.iter().map(|write| AbValue {
            interface: write.target.label(self.netns_inode),
            napi_id: write.change.knob.napi_id(),
            name: write.change.knob.name().into_owned(),
            value: value(write).into(),
        });
        AbSetting {
            name,
            command,
            values: values.collect(),
        }
    }

    /// Returns members whose counters do not count packets as on the wire.
    fn counted_joined(&self) -> Vec<Unseen> {
        let targets = self.orders.iter().map(|order| &order.target.interface);
        let joined = targets.filter(|interface| interface.driver == "veth");
        joined
            .map(|interface| {
                let name = &interface.name;
                unseen(
                    format!("segments of packets that {name} sends joined (TSO)"),
                    "a veth counts such a packet once",
                )
            })
            .collect()
    }

    /// Returns the command that sets the judged setting.
    fn command(&self) -> String {
        let AbRequest {
            name, words, netns, ..
        } = &self.request;
        let fix = if self.turns.once.is_empty() {
            ""
        } else {
            " --fix"
        };
        let netns = netns
            .as_ref()
            .map_or_else(String::new, |netns| format!(" --netns {netns}"));
        format!("nicpoll set {name} {words}{fix}{netns}")
    }
}
