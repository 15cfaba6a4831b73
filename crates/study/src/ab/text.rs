//! What `nicpoll ab` is, for its help, and what its documents say in words.

use std::fmt;

use nicpoll_model::SwitchRestored;
use nicpoll_model::ab::AbTimeNeeded;
use nicpoll_switch::{SwitchError, Target, label};

use super::{AS_IT_IS, AbProgress};
use crate::error::StudyError;

/// What the command is.
pub const ABOUT: &str = "\
Compare two settings of an interface with the traffic that it has now

The interface takes turns between the setting that it has and another one (polling, unless you name
something else), in short blocks in random order. What the traffic of the moment costs under each is
counted: CPU time, interrupts, polls, drops. Nothing is sent. In the end it recommends one
'nicpoll set' command, or to keep what you have. Needs root.

What both settings need and do not find (GRO on a veth, TSO off at its other end) is changed once,
before the first block, and is in force under both. Only values whose change loses no packet take
turns; --disruptive allows others.

A second process puts everything back should this one be killed. The run is given up, and everything
put back, when the other setting loses more than twice what is usual, by more than chance explains,
when the link goes down, or when the interface begins its queues anew.";

/// Examples and exit codes.
pub const EXAMPLES: &str = "\
Examples:
  nicpoll ab eth0                           polling with 200us, for 10 minutes
  nicpoll ab eth0 --for 30m polling --period 50us
  nicpoll ab eth0 --moderation rx-usecs=100,adaptive=off
  nicpoll ab eth0 --dry-run                 print the plan and each write, and write nothing
  nicpoll ab eth0 --for 3d --duty 5m/1h     the first 5 minutes of each hour for three days
  nicpoll ab em0 --netns lab --seed 7 --json

Exit codes: 0 done, with a verdict; 1 failed, or given up and everything put back; 2 usage;
4 no verdict: too few blocks, no traffic, CPU time that cannot be counted or is below what counting
costs, or blocks that work on what the one before left (carry-over); 5 a privilege or kernel feature
is missing; 130 and 143 stopped by a signal. More in docs/ab.md.";

/// What became of the interfaces that were changed. `is_there` asks whether one still is.
pub fn restored(
    targets: &[Target],
    netns_inode: u64,
    failed: Option<&SwitchError>,
    mut is_there: impl FnMut(&Target) -> bool,
) -> Vec<SwitchRestored> {
    let one = |target: &Target| {
        let is_there = is_there(target);
        let gone = "it is no more, and its settings went with it";
        let gone = (!is_there).then(|| String::from(gone));
        SwitchRestored {
            interface: label(&target.interface.name, target.netns_inode, netns_inode),
            is_as_before: is_there && failed.is_none(),
            notes: gone
                .into_iter()
                .chain(failed.map(ToString::to_string))
                .collect(),
        }
    };
    targets.iter().map(one).collect()
}

impl fmt::Display for AbProgress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AbProgress::Begins => f.write_str("counting what is lost as it is"),
            AbProgress::FirstChanges => {
                f.write_str("changing to and fro, to see how long the traffic takes to settle")
            }
            AbProgress::Block {
                pairs,
                is_judged,
                left,
            } => {
                let setting = if *is_judged {
                    "the other setting"
                } else {
                    AS_IT_IS
                };
                let left = left.as_secs();
                write!(
                    f,
                    "{left} s left, {pairs} pairs of blocks done; now: {setting}"
                )
            }
            AbProgress::Pause(left) => {
                let minutes = left.as_secs().div_ceil(60);
                write!(f, "a pause of {minutes} min; now: {AS_IT_IS}")
            }
            AbProgress::FirstMinute(answer) => {
                let needed = answer.cpu.and_then(|cpu| cpu.time_needed);
                match needed {
                    Some(AbTimeNeeded {
                        aim_cores, seconds, ..
                    }) => write!(
                        f,
                        "after the first minute: {seconds:.0} s in all are needed to know the difference to \
                         {aim_cores:.3} cores"
                    ),
                    None => f.write_str(
                        "after the first minute: it cannot be told yet how long it takes",
                    ),
                }
            }
        }
    }
}

impl StudyError {
    /// The error with what caused it.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_says_what_may_keep_a_verdict_back() {
        let help = EXAMPLES.replace('\n', " ");
        for reason in [
            "too few blocks",
            "no traffic",
            "cannot be counted",
            "below what counting costs",
            "carry-over",
        ] {
            assert!(help.contains(reason), "{reason}");
        }
    }
}
