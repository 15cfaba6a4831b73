//! The table of needs: each has a word for `NICPOLL_REQUIRE`, a probe, and a way to get it.

use std::fs;
use std::process::Command;

use crate::{chromium, postgres, programs};

/// The variable with the needs that must be met, separated by commas.
pub(crate) const REQUIRE: &str = "NICPOLL_REQUIRE";

/// Something that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Capabilities for namespaces, settings and BPF, in the initial user namespace.
    Root,
    /// Settings of a single NAPI instance.
    PerNapi,
    /// A socket's receive buffer larger than most machines allow everyone.
    ReceiveBuffer,
    /// iperf 2.1.
    Iperf,
    /// iperf3.
    Iperf3,
    /// nft(8), and a kernel that takes its rules.
    Nft,
    /// iptables(8), both of x_tables and of nf_tables, and a kernel that takes its rules.
    Iptables,
    /// tc(8), and a kernel that takes its shapers.
    Tc,
    /// ip(8).
    Ip,
    /// ethtool(8).
    Ethtool,
    /// ministat(1).
    Ministat,
    /// sshd(8), ssh(1) and ssh-keygen(1).
    Sshd,
    /// QEMU, with kernels, a static busybox and udev for guests.
    Qemu,
    /// Kernels of other distributions for guests.
    Kernels,
    /// A PostgreSQL server that a test can start.
    Postgres,
    /// ansible-playbook(1) of ansible-core.
    Ansible,
    /// A Prometheus server with promtool(1).
    Prometheus,
    /// slurmctld, slurmd and sbatch of Slurm.
    Slurm,
    /// Chromium, to look at a page as a reader does.
    Chromium,
    /// axe-core, which finds what keeps readers with disabilities from a page.
    Axe,
    /// systemd-analyze(1), and udevadm(8).
    Systemd,
    /// Namespaces that a user without rights may make, with interfaces of his own in them.
    UserNamespace,
    /// A line of the CPUs' clocks in /proc/interrupts.
    ClockInterrupts,
    /// A build with the points at which tests kill the program.
    DebugAssertions,
    /// A hypervisor that leaves the machine alone for a moment. CI cannot require it.
    QuietMachine,
    /// Several seconds: a guest that boots, a whole study, a fit, what must be waited for. Only who asks for it has it.
    Time,
}

/// How a need is looked for.
enum Probe {
    /// A program.
    Program(&'static str),
    /// Says why it is not there; null when it is.
    Look(fn() -> Option<String>),
    /// Only the test can try.
    InTest,
}

use Probe::{InTest, Look, Program};

/// A need, its word, how it is looked for, and the remedy.
type NeedRow = (Need, &'static str, Probe, &'static str);

const INSTALL: &str = "as root on Debian, `cargo xtask test` installs it";
const INSTALL_ALL: &str = "as root on Debian, `cargo xtask test --all` installs it";
const BUFFER: &str = "run the tests as root, or set net.core.rmem_max to 16 MiB";
const NAMESPACE: &str = "run the tests as root, with sysctl kernel.unprivileged_userns_clone=1 and \
                         kernel.apparmor_restrict_unprivileged_userns=0";
const AXE: &str = "`cargo xtask test --all` installs it where there is npm";
const SYSTEMD: &str = "install systemd and udev; neither need run";
const DEBUG: &str = "run the tests without --release";

#[rustfmt::skip]
const TABLE: [NeedRow; 26] = [
    (Need::Root, "root", Look(privileges), "run the tests as root"),
    (Need::PerNapi, "per-napi", Look(per_napi), "use a newer kernel"),
    (Need::ReceiveBuffer, "receive-buffer", Look(receive_buffer), BUFFER),
    (Need::Iperf, "iperf", Look(programs::missing_iperf), INSTALL),
    (Need::Iperf3, "iperf3", Program("iperf3"), INSTALL),
    (Need::Nft, "nft", Program("nft"), INSTALL),
    (Need::Iptables, "iptables", Program("iptables-legacy-save"), INSTALL),
    (Need::Tc, "tc", Program("tc"), INSTALL),
    (Need::Ip, "ip", Program("ip"), INSTALL),
    (Need::Ethtool, "ethtool", Program("ethtool"), INSTALL),
    (Need::Ministat, "ministat", Program("ministat"), INSTALL),
    (Need::Sshd, "sshd", Look(programs::missing_sshd), INSTALL),
    (Need::Qemu, "qemu", Program("qemu-system-x86_64"), INSTALL),
    (Need::Kernels, "kernels", InTest, "`cargo xtask guests` gets them"),
    (Need::Postgres, "postgres", Look(postgres::missing), INSTALL),
    (Need::Ansible, "ansible", Program("ansible-playbook"), INSTALL_ALL),
    (Need::Prometheus, "prometheus", Program("prometheus"), INSTALL_ALL),
    (Need::Slurm, "slurm", Look(programs::missing_slurm), INSTALL_ALL),
    (Need::Chromium, "chromium", Program(chromium::PROGRAM), INSTALL_ALL),
    (Need::Axe, "axe", Look(chromium::missing_axe), AXE),
    (Need::Systemd, "systemd", Look(programs::missing_systemd), SYSTEMD),
    (Need::UserNamespace, "user-namespace", Look(user_namespace), NAMESPACE),
    (Need::ClockInterrupts, "clock", InTest, "use x86-64"),
    (Need::DebugAssertions, "debug", Look(debug_assertions), DEBUG),
    (Need::QuietMachine, "quiet", InTest, "try again"),
    (Need::Time, "time", Look(time), "`cargo xtask test --all` runs it"),
];

/// What an unmet need comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unmet {
    /// The test is skipped, for this reason.
    Skip(String),
    /// The test fails.
    Fail(String),
}

impl Need {
    /// Why the machine does not meet it; null when it does.
    pub(crate) fn missing(self) -> Option<String> {
        match self.row().2 {
            Program(name) => programs::missing(name),
            Look(look) => look(),
            InTest => None,
        }
    }

    /// What follows when it is not met, and these needs are required.
    pub(crate) fn unmet(self, required: &str, reason: &str) -> Unmet {
        let (_, own, _, remedy) = self.row();
        let words = required.split(',').map(str::trim);
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let known = TABLE.map(|(_, word, ..)| word);
        if let Some(word) = words.iter().find(|word| !known.contains(word)) {
            let known = known.join(", ");
            return Unmet::Fail(format!(
                "NICPOLL_REQUIRE: no need is called '{word}'; {known}"
            ));
        }
        let unmet = format!("{reason} ({own}: {remedy})");
        if words.contains(own) {
            return Unmet::Fail(format!("required, and not met: {unmet}"));
        }
        Unmet::Skip(unmet)
    }

    fn row(self) -> &'static NeedRow {
        let mut rows = TABLE.iter();
        rows.find(|(need, ..)| *need == self)
            .expect("every need has its row")
    }
}

fn privileges() -> Option<String> {
    let missing = nicpoll_sys::privilege::missing_for_lab().expect("capabilities can be read");
    (!missing.is_empty()).then(|| format!("missing {}", missing.join(", ")))
}

fn per_napi() -> Option<String> {
    let unsupported = nicpoll_switch::per_napi_settings().err()?;
    Some(unsupported.to_string())
}

fn user_namespace() -> Option<String> {
    let words = "setpriv --reuid 65534 --regid 65534 --clear-groups unshare -Urn true";
    let mut words = words.split(' ');
    let outcome = Command::new(words.next()?).args(words).output();
    let is_made = outcome.is_ok_and(|output| output.status.success());
    (!is_made).then(|| String::from("a user without rights cannot make a user namespace"))
}

/// The largest that a test asks for.
const RECEIVE_BUFFER_BYTES: u64 = 16 << 20;

fn receive_buffer() -> Option<String> {
    privileges()?;
    let text = fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap_or_default();
    let allowed = text.trim().parse().unwrap_or(0);
    (allowed < RECEIVE_BUFFER_BYTES).then(|| format!("a socket may receive {allowed} bytes ahead"))
}

/// Time is there when somebody asks for it.
fn time() -> Option<String> {
    let required = std::env::var(REQUIRE).unwrap_or_default();
    let mut words = required.split(',').map(str::trim);
    (!words.any(|word| word == "time")).then(|| String::from("it takes several seconds"))
}

fn debug_assertions() -> Option<String> {
    (!cfg!(debug_assertions)).then(|| String::from("this build has no points to be killed at"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_fails_and_the_rest_is_skipped() {
        let unmet = |required| Need::Iperf.unmet(required, "not installed");
        let reason = format!("not installed (iperf: {INSTALL})");
        for required in ["iperf", "root,iperf", " qemu , iperf ,"] {
            let failure = format!("required, and not met: {reason}");
            assert_eq!(unmet(required), Unmet::Fail(failure), "{required}");
        }
        for required in ["", "root", "root,qemu,"] {
            assert_eq!(unmet(required), Unmet::Skip(reason.clone()), "{required}");
        }
    }

    #[test]
    fn a_word_that_is_no_need_is_refused() {
        let Unmet::Fail(failure) = Need::Root.unmet("rooot", "no") else {
            panic!("a need that nobody knows would never be met");
        };
        assert!(failure.contains("'rooot'") && failure.contains("receive-buffer"));
    }

    #[test]
    fn each_need_has_a_word_of_its_own() {
        for (index, (need, word, _, remedy)) in TABLE.iter().enumerate() {
            assert_eq!(need.row().1, *word);
            assert!(TABLE[..index].iter().all(|(_, other, ..)| other != word));
            assert!(!remedy.is_empty());
        }
    }
}
