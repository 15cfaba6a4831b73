//! What interfaces can do and do: what `nicpoll show` prints.

mod drift;
mod evidence;
mod gather;
mod look;
mod variables;

use std::time::Duration;

use nicpoll_model::{Origin, SHOW_SCHEMA, Show};

pub use self::evidence::THREADED_BUSY_POLL;
pub(crate) use self::evidence::{of_rhythm, without_polls};
pub(crate) use self::gather::interrupts;
pub use self::look::Look;
pub use self::variables::{AskedVariables, NOT_WATCHED, UnknownVariable, asked_variables};
use crate::InspectError;

/// What to look at, and for how long.
#[derive(Clone, Debug)]
pub struct ShowOptions {
    /// Interfaces; none: all but the loopback.
    pub interfaces: Vec<String>,
    /// How long polls are watched; zero: settings only.
    pub look: Duration,
    /// Handler entries back to back that are a storm; 0: none is.
    pub storm_threshold: u64,
}

/// Looks at interfaces of the caller's namespace, whose name is `netns` when it was entered by one.
///
/// # Errors
/// When a name is no interface's, or an interface cannot be read.
pub fn show(
    options: &ShowOptions,
    origin: Origin,
    netns: Option<&str>,
) -> Result<Show, InspectError> {
    let mut looked = Look::new(&options.interfaces, options.storm_threshold)?;
    let look_seconds = looked.watch(options.look)?;
    let look_cost = looked.cost();
    let (interfaces, unseen) = looked.finish();
    Ok(Show {
        schema: String::from(SHOW_SCHEMA),
        origin,
        netns: netns.map(String::from),
        look_seconds,
        look_cost,
        storm_threshold: options.storm_threshold,
        interfaces,
        unseen,
    })
}
