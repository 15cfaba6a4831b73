//! What runs on the engine until it is ended, and what it may ask of the program that it is part of.
//!
//! A program that polls its memory does not stop the kernel's NAPI from running for each arrival. [`KernelSide`] names the
//! settings of the kernel that go with the engine; who makes, records and restores them implements [`Helpers`]. What was
//! granted is put back when the program ends, in whatever way.

use nicpoll_model::engine::{KernelSideFacts, LinkEvent};

use crate::error::{EngineError, SetupError};
use crate::names::Named;
use crate::runner::charge::CpuAccount;

/// An application that runs.
pub trait EngineApplication {
    /// What was asked for and how it is carried out.
    type Start;
    /// What happened in an interval.
    type Interval;
    /// What it came to.
    type End;

    /// What was asked for and how it is carried out.
    fn facts(&self) -> &Self::Start;

    /// Whether it has done all that it was to do.
    fn is_over(&self) -> bool {
        false
    }

    /// Looks after its interfaces: leaves one that is gone, and takes one that is back. To be called often. Says what
    /// happened.
    ///
    /// # Errors
    /// When the engine has ended by itself.
    fn attend(&mut self, _helpers: &dyn Helpers) -> Result<Vec<LinkEvent>, EngineError> {
        Ok(Vec::new())
    }

    /// What happened since the last call, or the start.
    ///
    /// # Errors
    /// When the counters cannot be had: the engine has ended by itself.
    fn interval(&mut self) -> Result<Self::Interval, EngineError>;

    /// Ends it, leaves the interfaces as they were, and says what it came to. `signal` is the one that asked for the end;
    /// `None` when none did.
    ///
    /// # Errors
    /// When the engine has ended by itself before, or something could not be put back.
    fn end(self, signal: Option<i32>) -> Result<Self::End, EngineError>;
}

/// What is asked of the kernel's side, chosen by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelSide {
    /// Nothing: it stays as it is.
    #[default]
    AsIs,
    /// A kernel thread receives, on CPUs that the engine does not use, where there are any.
    Threaded,
    /// A timer begins the kernel's rounds, and arrivals interrupt nobody, as after `nicpoll set IF polling`.
    Polling,
}

impl Named for KernelSide {
    fn all() -> impl Iterator<Item = (Self, &'static str)> {
        let names = [
            (KernelSide::AsIs, "as-is"),
            (KernelSide::Threaded, "threaded"),
            (KernelSide::Polling, "polling"),
        ];
        names.into_iter()
    }
}

/// What an engine asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveWish<'a> {
    /// The interface, of the calling thread's network namespace.
    pub interface: &'a str,
    /// What the kernel's side is to be.
    pub side: KernelSide,
    /// CPUs for the kernel's threads; none: those that the engine leaves free, or its own where it leaves none.
    pub kernel_cpus: &'a [u32],
    /// The engine's CPUs.
    pub engine_cpus: &'a [u32],
}

/// What was granted. It is put back when this is dropped, or when the process dies.
pub trait GrantedSetup: Send {
    /// What it is now.
    fn facts(&self) -> KernelSideFacts;

    /// Puts back what was there.
    ///
    /// # Errors
    /// When that fails; whoever watches over it tries again.
    fn restore(self: Box<Self>) -> Result<(), SetupError>;
}

/// What an engine may ask of the program that it is part of.
pub trait Helpers {
    /// The account of what the kernel takes of a CPU. Without one only the engine's own time is charged.
    fn account_of(&self, _cpu: u32) -> Option<Box<dyn CpuAccount>> {
        None
    }

    /// Changes the kernel's side of an interface as an engine wishes.
    ///
    /// # Errors
    /// When it cannot be had; nothing is changed then.
    fn set_up(&self, _wish: &ReceiveWish) -> Result<Box<dyn GrantedSetup>, SetupError> {
        Err("nobody here can change it".into())
    }
}

/// Nothing may be asked.
impl Helpers for () {}

/// Has the kernel's side be changed; `None` when it is to stay as it is.
///
/// # Errors
/// When it cannot be had, or CPUs are given for threads that it has not.
pub(crate) fn set_up(
    helpers: &dyn Helpers,
    wish: &ReceiveWish,
) -> Result<Option<Box<dyn GrantedSetup>>, EngineError> {
    let side = wish.side.name();
    if wish.side != KernelSide::Threaded && !wish.kernel_cpus.is_empty() {
        return Err(EngineError::Usage(format!(
            "'--kernel-side {side}' has no kernel threads that '--kernel-cpu' could be for; leave that out, or give \
             '--kernel-side threaded'"
        )));
    }
    if wish.side == KernelSide::AsIs {
        return Ok(None);
    }
    let granted = helpers.set_up(wish).map_err(|source| {
        let interface = wish.interface;
        EngineError::Setup {
            what: format!("the kernel's side of '{interface}' cannot be set to {side}"),
            source,
            remedy: "",
        }
    });
    granted.map(Some)
}

/// What the kernel's side is now.
pub(crate) fn facts_of(granted: Option<&dyn GrantedSetup>) -> KernelSideFacts {
    granted.map_or_else(KernelSideFacts::as_is, GrantedSetup::facts)
}

/// Puts back what was changed of an interface's kernel side.
///
/// # Errors
/// When that fails; whoever watches over it tries again.
pub(crate) fn restore(
    granted: Option<Box<dyn GrantedSetup>>,
    interface: &str,
    facts: &KernelSideFacts,
) -> Result<(), EngineError> {
    let outcome = granted.map_or(Ok(()), |granted| granted.restore());
    outcome.map_err(|source| EngineError::Setup {
        what: format!(
            "what was changed of the kernel's side of '{interface}' (to {}) could not be put back",
            facts.name
        ),
        source,
        remedy: "; 'nicpoll restore' tries again",
    })
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn cpus_are_for_threads_and_refused_where_the_kernel_has_none() {
        for (side, cpus, is_refused) in [
            (KernelSide::AsIs, &[][..], false),
            (KernelSide::AsIs, &[0], true),
            (KernelSide::Polling, &[0], true),
        ] {
            let wish = ReceiveWish {
                interface: "em0",
                side,
                kernel_cpus: cpus,
                engine_cpus: &[],
            };
            let outcome = set_up(&(), &wish);
            let refused = matches!(outcome, Err(EngineError::Usage(_)));
            assert_eq!(refused, is_refused, "{side:?} {cpus:?}");
        }
    }
}
