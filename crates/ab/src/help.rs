//! The help text of `nicpoll ab`.

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
when the link goes down, or when the interface restarts its queues.";

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
