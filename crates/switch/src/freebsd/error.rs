//! Why a FreeBSD host could not be changed.

use std::io;

use thiserror::Error;

use crate::journal::JournalError;

use super::output::OutputError;
use super::rc_conf::RcConfError;

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
        /// What ssh said.
        said: String,
    },
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
        /// What it said.
        said: String,
    },
    /// More came than any of the commands prints.
    #[error(
        "'{command}' on {host} printed more than {limit} bytes; see what it prints: ssh {host} {command}"
    )]
    TooLong {
        /// The host.
        host: String,
        /// The command.
        command: String,
        /// The limit.
        limit: u64,
    },
    /// What a command printed could not be read.
    #[error("'{command}' on {host}")]
    Output {
        /// The host.
        host: String,
        /// The command.
        command: String,
        /// Why.
        source: OutputError,
    },
    /// The host is something else.
    #[error("{host} runs {system}, not FreeBSD{}", linux_advice(system))]
    OtherSystem {
        /// The host.
        host: String,
        /// What `uname -s` says.
        system: String,
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
    /// The driver cannot poll.
    #[error("{target} cannot poll: 'ifconfig -m' shows no POLLING among its capabilities. {why}")]
    NoCapability {
        /// The interface with its host.
        target: String,
        /// What is known of the driver.
        why: String,
    },
    /// A value is out of its range.
    #[error("kern.polling.{knob}={value} is out of range on {host}: {range}")]
    Range {
        /// The host.
        host: String,
        /// The variable.
        knob: &'static str,
        /// What was asked for.
        value: u32,
        /// What is allowed.
        range: String,
    },
    /// A command succeeded, and the value is another one.
    #[error("{host}: {what} is {is} after it was set to {asked}; something else changes it too")]
    NotTaken {
        /// The host.
        host: String,
        /// The value's name.
        what: String,
        /// What was asked for.
        asked: String,
        /// What the host shows.
        is: String,
    },
    /// The file cannot be changed by rule.
    #[error("/etc/rc.conf of {host}: {reason}")]
    RcConf {
        /// The host.
        host: String,
        /// Why not.
        reason: RcConfError,
    },
    /// Something failed, and what had been changed could not be put back either.
    #[error("{first}; putting back failed too: {second}. Try again: nicpoll restore {target}")]
    AndBack {
        /// The interface with its host.
        target: String,
        /// What failed.
        first: Box<FreebsdError>,
        /// Why putting back failed.
        second: Box<FreebsdError>,
    },
}

fn linux_advice(system: &str) -> &'static str {
    if system == "Linux" {
        "; run nicpoll on that host instead: nicpoll set IF polling"
    } else {
        ""
    }
}
