//! The variables of kern.polling that can be set on a FreeBSD host, as options.

use clap::Args;
use nicpoll_core::Knob;

use crate::failure::Failure;

/// Options that become `sysctl kern.polling.NAME=N` there.
#[derive(Args, Debug)]
#[command(next_help_heading = "FreeBSD hosts (HOST:IF)")]
pub struct KernPolling {
    /// Percent of the processor that are left to programs (kern.polling.user_frac), 0 to 99
    #[arg(long, value_name = "N")]
    pub user_frac: Option<u32>,
    /// The most packets of a tick (kern.polling.burst_max), 10 to 20000
    #[arg(long, value_name = "N")]
    pub burst_max: Option<u32>,
    /// The most packets of one call (kern.polling.each_burst), 1 to burst_max
    #[arg(long, value_name = "N")]
    pub each_burst: Option<u32>,
    /// Whether to poll when the processor is idle, too (kern.polling.idle_poll), 0 or 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1))]
    pub idle_poll: Option<u32>,
    /// Every how many ticks the card's status is looked at (kern.polling.reg_frac), 1 to hz
    #[arg(long, value_name = "N")]
    pub reg_frac: Option<u32>,
}

impl KernPolling {
    /// Those that are given.
    pub fn asked(&self) -> Vec<(Knob, u32)> {
        [
            (Knob::BurstMax, self.burst_max),
            (Knob::EachBurst, self.each_burst),
            (Knob::IdlePoll, self.idle_poll),
            (Knob::UserFrac, self.user_frac),
            (Knob::RegFrac, self.reg_frac),
        ]
        .into_iter()
        .filter_map(|(knob, value)| Some((knob, value?)))
        .collect()
    }

    /// Refuses them for interfaces of this machine, with what to use instead.
    pub fn refuse_on_linux(&self) -> Result<(), Failure> {
        let Some((knob, _)) = self.asked().first().copied() else {
            return Ok(());
        };
        let instead = match knob {
            Knob::UserFrac => "use --threaded --cpu-share PERCENT, which is 100 - user_frac",
            Knob::BurstMax => {
                "here the card's ring limits a round (ethtool -G), and net.core.netdev_budget"
            }
            Knob::IdlePoll => "use --busy-poll",
            Knob::EachBurst => "here a poll takes 64 packets at the most, which nobody can change",
            _ => "here drivers look at the card's status elsewhere",
        };
        let option = knob.name().replace('_', "-");
        Err(Failure::Usage(format!(
            "--{option} sets kern.polling.{} of a FreeBSD host (HOST:em0); {instead}",
            knob.name()
        )))
    }
}
