//! The table of needs: each has a word for `NICPOLL_REQUIRE`, a probe, and a way to get it.

use std::fs;

use crate::programs;

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
    /// nft(8), and a kernel that takes its rules.
    Nft,
    /// tc(8), and a kernel that takes its shapers.
    Tc,
    /// ip(8).
    Ip,
    /// QEMU, with a kernel, a static busybox and udev for the guest.
    Qemu,
    /// systemd-analyze(1).
    Systemd,
    /// A kernel that makes VLANs and bonds.
    Stacked,
    /// A line of the CPUs' clocks in /proc/interrupts.
    ClockInterrupts,
    /// A build with the points at which tests kill the program.
    DebugAssertions,
    /// A hypervisor that leaves the machine alone for a moment. CI cannot require it.
    QuietMachine,
}

struct Row {
    need: Need,
    word: &'static str,
    /// An error says why it is not there. Ok where only the test can try.
    probe: fn() -> Result<(), String>,
    remedy: &'static str,
}

const fn row(
    need: Need,
    word: &'static str,
    probe: fn() -> Result<(), String>,
    remedy: &'static str,
) -> Row {
    Row {
        need,
        word,
        probe,
        remedy,
    }
}

const INSTALL: &str = "as root on Debian, `cargo xtask test` installs it";

const TABLE: [Row; 13] = [
    row(Need::Root, "root", privileges, "run the tests as root"),
    row(Need::PerNapi, "per-napi", per_napi, "use a newer kernel"),
    row(
        Need::ReceiveBuffer,
        "receive-buffer",
        receive_buffer,
        "run the tests as root, or set net.core.rmem_max to 16 MiB",
    ),
    row(Need::Iperf, "iperf", programs::iperf, INSTALL),
    row(Need::Nft, "nft", || programs::find("nft"), INSTALL),
    row(Need::Tc, "tc", || programs::find("tc"), INSTALL),
    row(Need::Ip, "ip", || programs::find("ip"), INSTALL),
    row(
        Need::Qemu,
        "qemu",
        || programs::find("qemu-system-x86_64"),
        INSTALL,
    ),
    row(
        Need::Systemd,
        "systemd",
        || programs::find("systemd-analyze"),
        "install systemd; it need not run",
    ),
    row(Need::Stacked, "stacked", in_test, "use another kernel"),
    row(Need::ClockInterrupts, "clock", in_test, "use x86-64"),
    row(
        Need::DebugAssertions,
        "debug",
        debug_assertions,
        "run the tests without --release",
    ),
    row(Need::QuietMachine, "quiet", in_test, "try again"),
];

impl Need {
    /// An error says why the machine does not meet it.
    pub(crate) fn probe(self) -> Result<(), String> {
        (self.row().probe)()
    }

    /// What an unmet need comes to: the reason to skip a test, or why it fails since the need is
    /// required.
    pub(crate) fn unmet(self, required: &str, reason: &str) -> Result<String, String> {
        let row = self.row();
        let mut words = required.split(',').map(str::trim);
        let mut is_required = false;
        for word in words.by_ref().filter(|word| !word.is_empty()) {
            if !TABLE.iter().any(|row| row.word == word) {
                let known: Vec<_> = TABLE.iter().map(|row| row.word).collect();
                let known = known.join(", ");
                return Err(format!(
                    "NICPOLL_REQUIRE: no need is called '{word}'; {known}"
                ));
            }
            is_required |= word == row.word;
        }
        let unmet = format!("{} ({}: {})", reason, row.word, row.remedy);
        if is_required {
            return Err(format!("required, and not met: {unmet}"));
        }
        Ok(unmet)
    }

    fn row(self) -> &'static Row {
        let mut rows = TABLE.iter();
        rows.find(|row| row.need == self)
            .expect("every need has its row")
    }
}

fn in_test() -> Result<(), String> {
    Ok(())
}

fn privileges() -> Result<(), String> {
    let missing = nicpoll_sys::privilege::missing_for_lab().map_err(|error| error.to_string())?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("missing {}", missing.join(", ")))
}

fn per_napi() -> Result<(), String> {
    nicpoll_switch::per_napi_settings().map_err(|error| error.to_string())
}

/// The largest that a test asks for.
const RECEIVE_BUFFER_BYTES: u64 = 16 << 20;

fn receive_buffer() -> Result<(), String> {
    let text = fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap_or_default();
    let allowed = text.trim().parse().unwrap_or(0);
    if allowed >= RECEIVE_BUFFER_BYTES || privileges().is_ok() {
        return Ok(());
    }
    Err(format!("a socket may receive {allowed} bytes ahead"))
}

fn debug_assertions() -> Result<(), String> {
    if cfg!(debug_assertions) {
        return Ok(());
    }
    Err(String::from("this build has no points to be killed at"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_fails_and_the_rest_is_skipped() {
        let unmet = |required| Need::Iperf.unmet(required, "not installed");
        for required in ["iperf", "root,iperf", " qemu , iperf ,"] {
            let failure = unmet(required).unwrap_err();
            assert!(failure.contains("not installed (iperf: "), "{failure}");
        }
        for required in ["", "root", "root,qemu,"] {
            let reason = unmet(required).unwrap();
            assert_eq!(reason, format!("not installed (iperf: {INSTALL})"));
        }
    }

    #[test]
    fn a_word_that_is_no_need_requires_nothing_silently_never() {
        let failure = Need::Root.unmet("rooot", "no").unwrap_err();
        assert!(failure.contains("'rooot'") && failure.contains("receive-buffer"));
    }

    #[test]
    fn each_need_has_a_word_of_its_own() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.need.row().word, row.word);
            assert!(TABLE[..index].iter().all(|other| other.word != row.word));
            assert!(!row.remedy.is_empty());
        }
    }
}
