//! Interrupts by source, from `/proc/interrupts`.

use crate::proc_files::ProcError;

const FILE: &str = "/proc/interrupts";
/// More columns than any machine has CPUs.
const CPUS_MAX: usize = 8_192;

/// One source of interrupts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptLine {
    /// Its number, or its name when it has none (`LOC`).
    pub irq: String,
    /// Interrupts since boot: the number of each CPU that is online, and how many there.
    pub by_cpu: Vec<(u32, u64)>,
    /// Controller, trigger and the names of whom it is for, as the kernel writes them.
    pub description: String,
}

impl InterruptLine {
    /// Interrupts since boot on all CPUs.
    pub fn total(&self) -> u64 {
        self.by_cpu
            .iter()
            .fold(0, |sum: u64, (_, count)| sum.saturating_add(*count))
    }

    /// Whether this is the line of a device: by its place on the bus (`0000:00:03.0`), which kernels write since 6.2,
    /// or by the interface's name, which many drivers use (`eth0-TxRx-0`).
    pub fn is_of(&self, interface: &str, bus_address: Option<&str>) -> bool {
        let mut words = self.description.split_ascii_whitespace();
        let by_bus = |word: &str, address: &str| {
            let end = word.len().checked_sub(address.len());
            end.is_some_and(|end| {
                word.ends_with(address) && (end == 0 || word[..end].ends_with('-'))
            })
        };
        let by_name = |word: &str| {
            let rest = word.strip_prefix(interface);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '@', ':', ',']))
        };
        words.any(|word| bus_address.is_some_and(|address| by_bus(word, address)) || by_name(word))
    }
}

/// Every line of `/proc/interrupts` that counts by CPU.
///
/// # Errors
/// When the first line does not name CPUs, or a line has a count that is none.
pub fn parse_interrupts(text: &str) -> Result<Vec<InterruptLine>, ProcError> {
    let mut lines = text.lines().enumerate();
    let cpus = lines.next().and_then(|(_, line)| parse_cpus(line));
    let cpus = cpus.ok_or(ProcError {
        file: FILE,
        line: 1,
        expected: "the names of CPUs were expected, such as CPU0",
    })?;
    let mut sources = Vec::new();
    for (index, line) in lines {
        let error = |expected| ProcError {
            file: FILE,
            line: index + 1,
            expected,
        };
        let (irq, rest) = line
            .split_once(':')
            .ok_or_else(|| error("a source and ':' were expected"))?;
        let mut rest = rest.trim_start();
        let mut by_cpu = Vec::new();
        for &cpu in &cpus {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            match word.parse() {
                Ok(count) => by_cpu.push((cpu, count)),
                // ERR and MIS have one count for the whole machine.
                Err(_) if word.is_empty() => break,
                Err(_) => return Err(error("a count for each CPU was expected")),
            }
            rest = after.trim_start();
        }
        if by_cpu.len() == cpus.len() {
            sources.push(InterruptLine {
                irq: String::from(irq.trim()),
                by_cpu,
                description: String::from(rest.trim_end()),
            });
        }
    }
    Ok(sources)
}

fn parse_cpus(line: &str) -> Option<Vec<u32>> {
    let cpus: Option<Vec<u32>> = line
        .split_ascii_whitespace()
        .take(CPUS_MAX)
        .map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect();
    cpus.filter(|cpus| !cpus.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "           CPU0       CPU2       \n \
        38:          5       9219  PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n \
        41:       2458          0  IR-PCI-MSI 524289-edge      eth0-TxRx-0\n\
        LOC:    6459772    2276106   Local timer interrupts\n\
        ERR:          0\n";

    #[test]
    fn counts_are_read_by_cpu_and_lines_of_the_machine_left_out() {
        let lines = parse_interrupts(TEXT).unwrap();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0].irq, "38");
        assert_eq!(lines[0].by_cpu, [(0, 5), (2, 9219)]);
        assert_eq!(lines[0].total(), 9224);
        assert_eq!(lines[2].irq, "LOC");
        assert_eq!(lines[2].description, "Local timer interrupts");
    }

    #[test]
    fn a_line_belongs_to_a_device_by_its_address_or_its_name() {
        let lines = parse_interrupts(TEXT).unwrap();
        assert!(lines[0].is_of("eth0", Some("0000:00:03.0")));
        assert!(!lines[0].is_of("eth0", Some("00:03.0")));
        assert!(!lines[0].is_of("eth0", None));
        assert!(lines[1].is_of("eth0", Some("0000:00:09.0")));
        assert!(!lines[1].is_of("eth", None));
        assert!(!lines[1].is_of("eth00", None));
    }

    #[test]
    fn a_torn_file_is_named() {
        assert_eq!(parse_interrupts("").unwrap_err().line, 1);
        assert_eq!(parse_interrupts("CPU0\n1 2\n").unwrap_err().line, 2);
        assert_eq!(parse_interrupts("CPU0 CPU1\n1: 2 x\n").unwrap_err().line, 2);
    }

    #[test]
    fn this_machine_is_read() {
        let text = std::fs::read_to_string(FILE).unwrap();
        assert!(!parse_interrupts(&text).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(CPU[0-9]{1,3} ){0,3}\n(\\PC{0,40}\n){0,4}") {
            if let Ok(lines) = parse_interrupts(&text) {
                for line in lines {
                    let _ = line.is_of("e", Some("é"));
                }
            }
        }
    }
}
