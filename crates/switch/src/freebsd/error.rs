//! Why a FreeBSD host could not be changed.

use std::io;

use thiserror::Error;

use crate::journal::JournalError;

use super::output::OutputError;

/// Why a host could not be looked at, changed or put back.
#[derive(Debug, Error)]
pub enum FreebsdError {
    /// It could not be recorded, so it was not made.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The program ssh did not run.
    #[error("running ssh; is it installed?")]
    Ssh(#[source] io::Error),
    /// ssh could not reach the host or log in: its exit code 255.
    #[error(
        "ssh cannot reach {host}: {said}. It must log in without a password: ssh -o BatchMode=yes {host} true"
    )]
    NotReached {
        /// The host.
        host: String,
        /// The message of ssh.
        said: String,
    },
    /// The host, its interface or a value is not as needed.
    #[error("{0}")]
    Refused(String),
    /// A command failed on the host.
    #[error(
        "'{command}' failed on {host} (exit code {code}): {said}. Changing an interface takes root there"
    )]
    Command {
        /// The host.
        host: String,
        /// The command.
        command: String,
        /// Its exit code; -1 when a signal ended it.
        code: i32,
        /// Its message.
        said: String,
    },
    /// The output of a command could not be read.
    #[error("'{command}' on {host}")]
    Output {
        /// The host.
        host: String,
        /// The command.
        command: String,
        /// Why.
        source: OutputError,
    },
    /// The kernel has no polling.
    #[error(
        "the kernel of {host} has no kern.polling: it was built without DEVICE_POLLING. Build one with the \
         lines 'options DEVICE_POLLING' and 'options HZ=1000' in its configuration (cd /usr/src && make \
         buildkernel installkernel KERNCONF=NAME), boot it, and say this again"
    )]
    NoDevicePolling {
        /// The host.
        host: String,
    },
    /// Something failed, and what had been changed could not be put back either.
    #[error("{first}; putting back failed too: {second}. Try again: nicpoll restore {target}")]
    AndBack {
        /// The interface with its host.
        target: String,
        /// The first failure.
        first: Box<FreebsdError>,
        /// Why putting back failed.
        second: Box<FreebsdError>,
    },
}
