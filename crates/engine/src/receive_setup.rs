//! The kernel's side of receiving: what the engine asks for, and who grants it.
//!
//! A program that polls its memory does not keep the kernel's NAPI from running for each arrival, on whatever CPU that
//! comes to. Which setting of the kernel goes best with the engine is known here; how it is made, recorded and put back
//! is not.
//!
//! What must hold: what was granted is put back when the program ends, in whatever way. What was not granted is not
//! claimed.

use std::error::Error;

use nicpoll_model::engine::KernelSideFacts;

use crate::names::Named;

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

/// What went wrong with the kernel's side.
pub type SetupError = Box<dyn Error + Send + Sync>;

/// Who can change the kernel's side.
pub trait ReceiveSetup {
    /// Changes the interface as an engine wishes.
    ///
    /// # Errors
    /// When it cannot be had; nothing is changed then.
    fn set_up(&self, wish: &ReceiveWish) -> Result<Box<dyn GrantedSetup>, SetupError>;
}

/// What was granted. It is put back when this is dropped, or when the process dies.
pub trait GrantedSetup: Send {
    /// What it is now.
    fn facts(&self) -> KernelSideFacts;

    /// Puts back what was there.
    ///
    /// # Errors
    /// When that fails; whoever watches over it tries again.
    fn put_back(self: Box<Self>) -> Result<(), SetupError>;
}

/// What an engine may ask of the program that it is part of.
pub struct Helpers<'a> {
    /// What the kernel takes of the engine's CPUs.
    pub accounts: &'a dyn crate::charge::CpuAccounts,
    /// Who changes the kernel's side.
    pub setup: Option<&'a dyn ReceiveSetup>,
}

impl Helpers<'_> {
    /// None of both.
    pub fn none() -> Self {
        Helpers {
            accounts: &crate::charge::NoAccounts,
            setup: None,
        }
    }

    /// Has the kernel's side be changed; `None` when it is to stay as it is.
    ///
    /// # Errors
    /// When it cannot be had, or CPUs are given for threads that it has not.
    pub(crate) fn set_up(
        &self,
        wish: &ReceiveWish,
    ) -> Result<Option<Box<dyn GrantedSetup>>, crate::EngineError> {
        if wish.side != KernelSide::Threaded && !wish.kernel_cpus.is_empty() {
            return Err(crate::EngineError::NoKernelThreads {
                side: wish.side.name(),
            });
        }
        if wish.side == KernelSide::AsIs {
            return Ok(None);
        }
        let refused = |source| crate::EngineError::KernelSide {
            interface: wish.interface.to_owned(),
            side: wish.side.name(),
            source,
        };
        let setup = self
            .setup
            .ok_or_else(|| refused("nobody here can change it".into()))?;
        let granted = setup.set_up(wish);
        granted.map(Some).map_err(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EngineError;

    #[test]
    fn cpus_are_for_threads_and_refused_where_the_kernel_has_none() {
        for (side, cpus, is_refused) in [
            (KernelSide::AsIs, &[][..], false),
            (KernelSide::AsIs, &[0], true),
            (KernelSide::Polling, &[0], true),
        ] {
            let outcome = Helpers::none().set_up(&ReceiveWish {
                interface: "em0",
                side,
                kernel_cpus: cpus,
                engine_cpus: &[],
            });
            let refused = matches!(outcome, Err(EngineError::NoKernelThreads { .. }));
            assert_eq!(refused, is_refused, "{side:?} {cpus:?}");
        }
    }
}
