//! A study from its beginning, or from where it was ended, to its end.
//!
//! What must hold: whatever ends a study, the store says what it came to; what cannot be stored ends the
//! study, and is said.

use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use nicpoll_model::{Plan, Study, StudyKind};
use nicpoll_store::{Place, Recording, Store, StoreError, Stored, Which};
use nicpoll_switch::Journal;

use crate::design::Design;
use crate::error::StudyError;
use crate::existing::Existing;
use crate::keep::{design_of, interrupted, still_runs, this_runner};
use crate::lab::Lab;
use crate::link::LocalLink;
use crate::study::{Identity, Progress, SoFar, run_study};
use crate::sweep::{resolved, searches};
use crate::topology::Topology;
use crate::veth::Veth;

/// A study that is about to begin or to go on.
pub struct Sitting {
    design: Design,
    begin: Instant,
    from: From,
}

/// Where it starts.
enum From {
    Nothing {
        plan: Box<Plan>,
        identity: Identity,
        store: Option<(Store, StudyKind)>,
    },
    Before {
        so_far: Box<SoFar>,
        recording: Recording,
    },
}

impl From {
    /// What of it is stored already.
    fn recording(self) -> Option<Recording> {
        match self {
            From::Nothing { .. } => None,
            From::Before { recording, .. } => Some(recording),
        }
    }
}

/// How a study ended.
pub struct Ended<D = Study> {
    /// What it came to.
    pub outcome: Result<D, StudyError>,
    /// Where it is stored, unless it was not to be.
    pub place: Option<StoredPlace>,
    /// Why its end could not be stored, although it came to one.
    pub unstored: Option<StoreError>,
}

/// Where a study is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPlace {
    /// The file, or the server.
    pub place: Place,
    /// Its number there.
    pub id: i64,
    /// Trials that are stored.
    pub trials: u32,
}

impl Sitting {
    /// A study that begins, and where it is to be stored, as which kind.
    pub fn new(
        design: Design,
        plan: Plan,
        identity: Identity,
        store: Option<(Store, StudyKind)>,
    ) -> Self {
        Sitting {
            design,
            begin: identity.begin,
            from: From::Nothing {
                plan: Box::new(plan),
                identity,
                store,
            },
        }
    }

    /// A study that goes on where it was ended. `identity` is of this sitting: its seed and command line are
    /// left alone.
    ///
    /// # Errors
    /// When there is none that could go on, or another version began it.
    pub fn resumed(store: Store, which: Which, identity: &Identity) -> Result<Self, StudyError> {
        let (mut recording, kept) = store.resume::<Study>(which, &this_runner()?, still_runs)?;
        let found = design_of(&kept).and_then(|design| {
            let (then, now) = (
                &kept.document.nicpoll_version,
                &identity.origin.nicpoll_version,
            );
            if then == now {
                return Ok(design);
            }
            let what = format!("it was begun by nicpoll {then}, and this is {now}");
            Err(StudyError::Elsewhere(what))
        });
        let design = found.inspect_err(|error| {
            let _ = recording.end_early(&error.to_string());
        })?;
        let mut head = kept.document;
        let trials = std::mem::take(&mut head.trials);
        head.warnings.extend(interrupted(
            &trials,
            design.settings.len(),
            &identity.origin.started_at,
        ));
        let so_far = SoFar {
            head,
            trials,
            taken: kept.taken,
        };
        Ok(Sitting {
            design,
            begin: identity.begin,
            from: From::Before {
                so_far: Box::new(so_far),
                recording,
            },
        })
    }

    /// What was planned.
    pub fn plan(&self) -> &Plan {
        match &self.from {
            From::Nothing { plan, .. } => plan,
            From::Before { so_far, .. } => &so_far.head.plan,
        }
    }

    /// Runs it to its end in namespaces of this machine; those that it makes are kept with names if `is_kept`. `guard` calls
    /// [`nicpoll_switch::watch_over`].
    ///
    /// # Errors
    /// When the lab cannot be built.
    pub fn run_here(
        self,
        is_kept: bool,
        guard: Command,
        cancel: &AtomicBool,
        progress: impl FnMut(Progress<'_>),
    ) -> Result<Ended, StudyError> {
        let link = link_of(&self.design.topology)?;
        let (_guard, mut lab) = Lab::guarded(link.clone(), &Journal::of_this_machine(), guard)?;
        if is_kept {
            lab.kept_as = link.keep()?;
        }
        Ok(self.run(&mut lab, cancel, progress))
    }

    /// Runs it to its end on a lab. Settings are put back before it returns.
    pub fn run(
        self,
        lab: &mut Lab,
        cancel: &AtomicBool,
        mut progress: impl FnMut(Progress<'_>),
    ) -> Ended {
        let Sitting {
            mut design,
            begin,
            from,
        } = self;
        if searches(&design) > 0 {
            progress(Progress::SeekingKnee);
            design = match resolved(lab, design, cancel) {
                Ok(design) => design,
                Err(error) => return Ended::of(Err(error), from.recording()),
            };
        }
        let (opened, mut recording) = open(lab, &design, from);
        let outcome = opened.and_then(|so_far| {
            run_study(
                lab,
                &design,
                so_far,
                begin,
                &mut recording,
                cancel,
                progress,
            )
        });
        Ended::of(outcome, recording)
    }
}

/// Makes the link of a topology, or takes the one that there is.
fn link_of(topology: &Topology) -> Result<Arc<dyn LocalLink>, StudyError> {
    Ok(match topology.existing() {
        Some(interfaces) => Arc::new(Existing::open(&interfaces)?),
        None => Arc::new(Veth::of(topology)?),
    })
}

/// Learns what the lab is, and has the study in its store.
fn open(
    lab: &mut Lab,
    design: &Design,
    from: From,
) -> (Result<SoFar, StudyError>, Option<Recording>) {
    match from {
        From::Nothing {
            plan,
            identity,
            store,
        } => {
            let opened = SoFar::nothing(lab, design, *plan, identity);
            let stored = opened.and_then(|so_far| {
                let recording = store.map(|store| begin(store, design, &so_far.head));
                Ok((so_far, recording.transpose()?))
            });
            match stored {
                Ok((so_far, recording)) => (Ok(so_far), recording),
                Err(error) => (Err(error), None),
            }
        }
        From::Before {
            mut so_far,
            recording,
        } => {
            let fits = so_far.look_at(lab);
            (fits.map(|()| *so_far), Some(recording))
        }
    }
}

fn begin(
    (store, kind): (Store, StudyKind),
    design: &Design,
    head: &Study,
) -> Result<Recording, StudyError> {
    let planned = head.plan.order.len() as u32;
    let design = serde_json::to_string(design).map_err(io::Error::from)?;
    Ok(store.begin(kind, head, planned, &design, &this_runner()?)?)
}

impl<D: Stored> Ended<D> {
    /// Has the end in the store, too.
    pub(crate) fn of(mut outcome: Result<D, StudyError>, recording: Option<Recording>) -> Self {
        let Some(mut recording) = recording else {
            return Ended {
                outcome,
                place: None,
                unstored: None,
            };
        };
        let stored = match &mut outcome {
            Ok(study) => {
                // Each has a row of its own.
                let trials = std::mem::take(study.trials());
                let stored = recording.finish(study);
                *study.trials() = trials;
                stored
            }
            Err(error) => recording.end_early(&error.to_string()),
        };
        Ended {
            place: Some(StoredPlace {
                place: recording.place().clone(),
                id: recording.id(),
                trials: recording.stored(),
            }),
            // Of a study that failed, its own error is what to tell.
            unstored: stored.err().filter(|_| outcome.is_ok()),
            outcome,
        }
    }
}

impl StoredPlace {
    /// Where it is, and what to do with it.
    pub fn sentence(&self, is_finished: bool) -> String {
        let StoredPlace { place, id, trials } = self;
        if is_finished {
            return format!(
                "Stored as study {id} in {place}; 'nicpoll study show {id}' shows it again."
            );
        }
        let what = match trials {
            1 => String::from("1 trial is"),
            trials => format!("{trials} trials are"),
        };
        format!(
            "{what} stored as study {id} in {place}; 'nicpoll study run --resume {id}' goes on."
        )
    }
}
