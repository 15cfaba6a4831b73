//! Hard interrupts by source, and how many came back to back.
//!
//! FreeBSD counts passes of an interrupt's handlers that follow each other without its thread having
//! slept, and calls it a storm when they reach `hw.intr_storm_threshold`. Linux keeps no such count.
//! What is counted here is an approximation: entries of a handler on one CPU between which no task ran,
//! idle included.

use std::fs;

use super::VECTORS;
use nicpoll_sys::bpf_maps::Source;

/// Where Linux shows each interrupt and its handlers.
const IRQ_DIRECTORY: &str = "/sys/kernel/irq";

/// What raises interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InterruptSource {
    /// One of the CPU's own vectors, by the name of its tracepoint, such as `local_timer`.
    Vector(&'static str),
    /// An interrupt line, by its number in `/proc/interrupts`.
    Irq(u32),
}

/// Interrupts of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptCounts {
    /// The source.
    pub source: InterruptSource,
    /// Entries of its handlers.
    pub entries: u64,
    /// Time in its handlers, of all CPUs together.
    pub ns: u64,
    /// The most entries back to back that one CPU saw.
    pub longest_run: u64,
    /// Entries whose run had reached the threshold; 0 also when there is none.
    pub storm_entries: u64,
}

/// Interrupts of every source that had any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts(pub Vec<InterruptCounts>);

impl InterruptSource {
    fn of(index: u32) -> Self {
        match VECTORS.get(index as usize) {
            Some(name) => InterruptSource::Vector(name),
            None => InterruptSource::Irq(index - VECTORS.len() as u32),
        }
    }

    /// The vector's name, or the names of the line's handlers as the kernel has them now; empty when
    /// it has none.
    pub fn name(&self) -> String {
        match self {
            InterruptSource::Vector(name) => String::from(*name),
            InterruptSource::Irq(number) => {
                let path = format!("{IRQ_DIRECTORY}/{number}/actions");
                String::from(fs::read_to_string(path).unwrap_or_default().trim_end())
            }
        }
    }
}

impl Interrupts {
    /// Adds what each CPU counted of the source at `index`.
    pub(super) fn add(&mut self, index: u32, by_cpu: &[Source]) {
        let entries = by_cpu.iter().map(|source| source.entries).sum();
        if entries == 0 {
            return;
        }
        self.0.push(InterruptCounts {
            source: InterruptSource::of(index),
            entries,
            ns: by_cpu.iter().map(|source| source.ns).sum(),
            longest_run: by_cpu
                .iter()
                .map(|source| source.longest_run)
                .max()
                .unwrap_or(0),
            storm_entries: by_cpu.iter().map(|source| source.storm_entries).sum(),
        });
    }
}

/// One more than the greatest number of an interrupt line that there is now.
pub(super) fn irq_numbers_end() -> u32 {
    let directory = fs::read_dir(IRQ_DIRECTORY).into_iter().flatten().flatten();
    let numbers = directory.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.max().map_or(0, |greatest| greatest + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_vectors_first_then_lines() {
        assert_eq!(InterruptSource::of(0).name(), "local_timer");
        assert_eq!(InterruptSource::of(5), InterruptSource::Irq(0));
        assert_eq!(InterruptSource::of(16), InterruptSource::Irq(11));
    }

    #[test]
    fn cpus_are_added_and_the_longest_run_is_one_cpus() {
        let of = |entries, longest_run| Source {
            entries,
            longest_run,
            ns: 10 * entries,
            storm_entries: 1,
            ..Source::default()
        };
        let mut interrupts = Interrupts::default();
        interrupts.add(7, &[of(3, 2), of(4, 4)]);
        interrupts.add(8, &[Source::default()]);
        assert_eq!(
            interrupts.0,
            [InterruptCounts {
                source: InterruptSource::Irq(2),
                entries: 7,
                ns: 70,
                longest_run: 4,
                storm_entries: 2,
            }]
        );
    }
}
