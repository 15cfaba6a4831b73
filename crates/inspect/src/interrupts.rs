//! Interrupts of the machine, and interrupt storms: handlers of a line of /proc/interrupts entered back to back.
//!
//! In FreeBSD a storm is an interrupt whose handlers ran `hw.intr_storm_threshold` times without its thread sleeping.
//! Linux has no such count. The approximation here counts entries of a handler on one CPU with no task in between.

use std::fs;
use std::path::Path;

use nicpoll_observe::{
    BpfError, ExactCpu, ExactCpuOptions, InterruptLine, InterruptSource, Interrupts,
    parse_interrupts,
};

/// FreeBSD's last nonzero default of `hw.intr_storm_threshold`.
pub const STORM_THRESHOLD: u64 = 1000;
/// Lines of /proc/interrupts that count the CPU's own vectors, with these vectors.
const VECTORS: [(&str, &[&str]); 4] = [
    ("LOC", &["local_timer"]),
    ("RES", &["reschedule"]),
    ("CAL", &["call_function", "call_function_single"]),
    ("IWI", &["irq_work"]),
];

/// Reads every interrupt source of the machine; `None` if they cannot be read.
pub fn interrupts() -> Option<Vec<InterruptLine>> {
    let text = fs::read_to_string("/proc/interrupts").ok()?;
    parse_interrupts(&text).ok()
}

/// Returns the interrupts of an interface's card, which its NAPI instances need not name; none of a virtual device, or
/// under a `/sys` of another namespace.
pub fn device_irqs(interface: &str, ifindex: u32) -> Vec<u32> {
    irqs_below(&Path::new("/sys/class/net").join(interface), ifindex)
}

fn irqs_below(interface: &Path, ifindex: u32) -> Vec<u32> {
    let number = |path: &Path| fs::read_to_string(path).ok()?.trim().parse().ok();
    if number(&interface.join("ifindex")) != Some(ifindex) {
        return Vec::new();
    }
    let Ok(mut card) = interface.join("device").canonicalize() else {
        return Vec::new();
    };
    // A virtio device is below the card that interrupts for it.
    let name = card.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("virtio") {
        card.pop();
    }
    let vectors = fs::read_dir(card.join("msi_irqs")).into_iter().flatten();
    let vectors = vectors.filter_map(|file| file.ok()?.file_name().to_str()?.parse().ok());
    let vectors: Vec<u32> = vectors.collect();
    match vectors.is_empty() {
        true => number(&card.join("irq"))
            .filter(|irq| *irq > 0)
            .into_iter()
            .collect(),
        false => vectors,
    }
}

/// The description of lines of soft interrupts.
const SOFTIRQ: &str = "softirq";

/// Reads every kind of soft interrupt, a line each; empty if they cannot be read.
pub fn softirqs() -> Vec<InterruptLine> {
    let text = fs::read_to_string("/proc/softirqs").unwrap_or_default();
    let mut lines = parse_interrupts(&text).unwrap_or_default();
    for line in &mut lines {
        line.description = String::from(SOFTIRQ);
    }
    lines
}

/// Returns the description of a line with single spaces.
pub fn description(line: &InterruptLine) -> String {
    let words = line.description.split_ascii_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

/// Starts counting back-to-back entries and exact CPU time.
pub fn look_for_storms(storm_threshold: u64) -> Result<ExactCpu, BpfError> {
    exact_cpu(&ExactCpuOptions {
        storm_threshold,
        ..ExactCpuOptions::default()
    })
}

/// Starts counting exact CPU time.
pub fn exact_cpu(options: &ExactCpuOptions) -> Result<ExactCpu, BpfError> {
    let mut exact = ExactCpu::load(options)?;
    exact.attach()?;
    Ok(exact)
}

/// Whether a line's handlers were entered in a storm between two readings; `None` for lines without events.
pub fn is_storm(
    irq: &str,
    then: Option<&Interrupts>,
    now: Option<&Interrupts>,
    unseen: &[&str],
) -> Option<bool> {
    let vectors = VECTORS.iter().find(|(line, _)| *line == irq);
    let number = irq.parse().ok();
    let is_unseen =
        vectors.is_some_and(|(_, names)| names.iter().any(|name| unseen.contains(name)));
    if is_unseen || (vectors.is_none() && number.is_none()) {
        return None;
    }
    let is_of = |source: InterruptSource| match source {
        InterruptSource::Irq(found) => Some(found) == number,
        InterruptSource::Vector(name) => vectors.is_some_and(|(_, names)| names.contains(&name)),
    };
    let entries = |interrupts: &Interrupts| -> u64 {
        let counts = interrupts.0.iter().filter(|counts| is_of(counts.source));
        counts.map(|counts| counts.storm_entries).sum()
    };
    Some(entries(now?) > entries(then?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpoll_observe::InterruptCounts;

    #[test]
    fn a_cards_interrupts_are_its_vectors_and_a_virtio_interface_has_those_of_its_card() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for (card, device, irqs) in [
            ("card", "card", vec![24, 25]),
            ("pci", "pci/virtio0", vec![26]),
            ("old", "old", vec![]),
        ] {
            let interface = at(&format!("{card}-net"));
            fs::create_dir_all(at(device)).unwrap();
            fs::create_dir_all(&interface).unwrap();
            fs::create_dir_all(at(&format!("{card}/msi_irqs"))).unwrap();
            for irq in &irqs {
                fs::write(at(&format!("{card}/msi_irqs/{irq}")), "").unwrap();
            }
            fs::write(at(&format!("{card}/irq")), "11\n").unwrap();
            fs::write(interface.join("ifindex"), "2\n").unwrap();
            std::os::unix::fs::symlink(at(device), interface.join("device")).unwrap();
            let wanted = if irqs.is_empty() { vec![11] } else { irqs };
            let mut found = irqs_below(&interface, 2);
            found.sort_unstable();
            assert_eq!(found, wanted);
            assert!(irqs_below(&interface, 3).is_empty());
        }
    }

    #[test]
    fn soft_interrupts_are_told_by_their_kinds() {
        let kinds = softirqs();
        let receiving = kinds.iter().find(|line| line.irq == "NET_RX").unwrap();
        assert_eq!(receiving.description, SOFTIRQ);
        assert!(kinds.iter().any(|line| line.total() > 0));
        assert_eq!(
            is_storm(
                "NET_RX",
                Some(&Interrupts::default()),
                Some(&Interrupts::default()),
                &[]
            ),
            None
        );
    }

    #[test]
    fn a_storm_is_of_its_own_line_and_interval() {
        let counted = |source, storm_entries| {
            Interrupts(vec![InterruptCounts {
                source,
                entries: 9,
                ns: 9,
                storm_entries,
            }])
        };
        let irq = |entries| counted(InterruptSource::Irq(7), entries);
        let storm = |line| is_storm(line, Some(&irq(1)), Some(&irq(2)), &[]);
        assert_eq!(storm("7"), Some(true));
        assert_eq!(storm("8"), Some(false));
        assert_eq!(storm("LOC"), Some(false));
        assert_eq!(storm("NMI"), None);
        assert_eq!(
            is_storm("7", Some(&irq(2)), Some(&irq(2)), &[]),
            Some(false)
        );
        assert_eq!(is_storm("7", None, Some(&irq(2)), &[]), None);
        let timer = |entries| counted(InterruptSource::Vector("local_timer"), entries);
        let of_timer = |unseen| is_storm("LOC", Some(&timer(0)), Some(&timer(3)), unseen);
        assert_eq!(of_timer(&["irq_work"]), Some(true));
        assert_eq!(of_timer(&["local_timer"]), None);
    }
}
