//! BPF programs: loads and attaches them, reads their run times and histograms, and parses the kernel's types.
//!
//! A program that the kernel refuses is a [`BpfError`], which says what it counts and what it needs. The kernel
//! describes some 150,000 types (BTF). Building all of them takes tens of milliseconds, so only their names are built.
//! A truncated description counts as absent.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::{fs, io};

use aya::maps::{Map, MapError};
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::programs::{BtfTracePoint, ProgramError, Xdp};
use aya::{Btf, BtfError, Ebpf, EbpfError, EbpfLoader, Endianness};
pub(crate) use nicpoll_sys::bpf_maps::KERNEL_TYPES;
use nicpoll_sys::bpf_maps::{GAP_BUCKETS, GAP_FIRST_OCTAVE, GAP_PARTS};
use nicpoll_sys::xdp::{AttachMode, XdpLink};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why something cannot be counted by BPF.
#[derive(Debug, Error)]
pub enum BpfError {
    /// The kernel has no description of its types.
    #[error(
        "the kernel has no {KERNEL_TYPES}, without which BPF cannot count {what}; a kernel built with \
         CONFIG_DEBUG_INFO_BTF has it"
    )]
    NoBtf {
        /// The events to be counted.
        what: &'static str,
        /// The error of reading the description.
        source: io::Error,
    },
    /// The kernel lets no program read its memory.
    #[error(
        "the kernel is locked down (lockdown=confidentiality): BPF may not read what it takes to count {what}"
    )]
    LockedDown {
        /// The events to be counted.
        what: &'static str,
    },
    /// The kernel refused the program.
    #[error(
        "the kernel refused the program that counts {what} ({why}); CAP_BPF and CAP_PERFMON are needed"
    )]
    Refused {
        /// The events to be counted.
        what: &'static str,
        /// The kernel's reason.
        why: String,
    },
}

impl BpfError {
    pub(crate) fn refused(what: &'static str, error: &dyn std::error::Error) -> Self {
        let mut why = String::new();
        for cause in std::iter::successors(Some(error), |error| error.source()) {
            let cause = without_log(&cause.to_string());
            // Some errors include their cause in their own text.
            if !why.contains(&cause) {
                let between = if why.is_empty() { "" } else { ": " };
                why.push_str(between);
                why.push_str(&cause);
            }
        }
        // The verdict names such a helper only where there is none.
        match why.contains("bpf_probe_read") {
            true => BpfError::LockedDown { what },
            false => BpfError::Refused { what, why },
        }
    }
}

/// Converts errors of the kernel or of aya into a [`BpfError`].
pub(crate) trait OrRefused<T> {
    /// Returns the value, or the error that the kernel refused the program that counts `what`.
    fn or_refused(self, what: &'static str) -> Result<T, BpfError>;
}

impl<T, E: std::error::Error> OrRefused<T> for Result<T, E> {
    fn or_refused(self, what: &'static str) -> Result<T, BpfError> {
        self.map_err(|error| BpfError::refused(what, &error))
    }
}

/// Keeps the verifier's verdict, without the steps that led to it.
fn without_log(text: &str) -> String {
    let Some((before, log)) = text.split_once("Verifier output:") else {
        return String::from(text);
    };
    let end = log.find("\nverification time").unwrap_or(log.len());
    let lines = log[..end].trim().lines();
    // Linux 7 draws the place, and ends with advice.
    let drawn = lines
        .clone()
        .find_map(|line| Some(line.split_once("^-- error: ")?.1));
    let verdict = drawn.or(lines.last()).unwrap_or_default();
    format!("{before}{verdict}")
}

/// Reads the kernel's description of its types.
pub(crate) fn kernel_types(what: &'static str) -> Result<Vec<u8>, BpfError> {
    fs::read(KERNEL_TYPES).map_err(|source| BpfError::NoBtf { what, source })
}

/// Returns the names of the kernel's tracepoints, for programs that attach to them.
pub(crate) fn tracepoints(what: &'static str) -> Result<Btf, BpfError> {
    names_of(&kernel_types(what)?, what)
}

/// Returns these names from a description that was read already.
pub(crate) fn names_of(types: &[u8], what: &'static str) -> Result<Btf, BpfError> {
    let types = KernelTypes::of_bytes(types).ok_or(BtfError::InvalidHeader);
    let names = types.and_then(|types| types.names());
    names.or_refused(what)
}

/// Mean run time of a program, by the kernel's BPF statistics.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunTime {
    /// Runs of the program, on the whole machine.
    pub runs: u64,
    /// Nanoseconds per run, including the kernel's own measuring.
    pub ns_per_run: f64,
}

/// Number of runs that the kernel timed, and their total time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimedRuns {
    runs: u64,
    ns: u64,
}

impl TimedRuns {
    /// Adds the runs of another program.
    pub fn plus(self, other: TimedRuns) -> TimedRuns {
        TimedRuns {
            runs: self.runs + other.runs,
            ns: self.ns + other.ns,
        }
    }

    /// Returns the mean of the runs since `earlier`; `None` without runs.
    pub fn since(self, earlier: TimedRuns) -> Option<RunTime> {
        let (runs, ns) = (self.runs - earlier.runs, self.ns - earlier.ns);
        (runs > 0).then(|| RunTime {
            runs,
            ns_per_run: ns as f64 / runs as f64,
        })
    }
}

/// The programs of one object file, each for a tracepoint.
pub struct Programs {
    ebpf: Ebpf,
    /// What they count, as named in errors.
    what: &'static str,
    /// Programs that are attached together, in order.
    loaded: Vec<String>,
    links: Vec<BtfTracePointLinkId>,
}

impl Programs {
    /// Loads an object file. Its programs are loaded one by one.
    pub(crate) fn of(
        what: &'static str,
        loader: &mut EbpfLoader<'_>,
        object: &[u8],
    ) -> Result<Self, BpfError> {
        Ok(Programs {
            ebpf: loader.load(object).or_refused(what)?,
            what,
            loaded: Vec::new(),
            links: Vec::new(),
        })
    }

    /// Takes a map from the object.
    pub(crate) fn map<M>(&mut self, name: &str) -> Result<M, BpfError>
    where
        M: TryFrom<Map, Error = MapError>,
    {
        let what = self.what;
        let map = self.ebpf.take_map(name).ok_or_else(|| BpfError::Refused {
            what,
            why: format!("it has no map {name}"),
        })?;
        map.try_into().or_refused(what)
    }

    /// Loads programs with their tracepoints, which every kernel has.
    pub(crate) fn require(&mut self, btf: &Btf, programs: &[(&str, &str)]) -> Result<(), BpfError> {
        programs.iter().try_for_each(|(name, tracepoint)| {
            self.load_apart(btf, name, tracepoint)?;
            self.loaded.push(String::from(*name));
            Ok(())
        })
    }

    /// Loads a program unless this kernel lacks its tracepoint. Returns whether it was loaded.
    pub(crate) fn load(
        &mut self,
        btf: &Btf,
        name: &str,
        tracepoint: &str,
    ) -> Result<bool, BpfError> {
        match self.program_mut(name)?.load(tracepoint, btf) {
            Err(ProgramError::Btf(BtfError::UnknownBtfTypeName { .. })) => Ok(false),
            loaded => {
                loaded.or_refused(self.what)?;
                self.loaded.push(String::from(name));
                Ok(true)
            }
        }
    }

    /// Loads a program that is not attached with the others.
    pub(crate) fn load_apart(
        &mut self,
        btf: &Btf,
        name: &str,
        tracepoint: &str,
    ) -> Result<(), BpfError> {
        let loaded = self.program_mut(name)?.load(tracepoint, btf);
        loaded.or_refused(self.what)
    }

    pub(crate) fn is_attached(&self) -> bool {
        !self.links.is_empty()
    }

    /// Attaches the loaded programs in order, unless they are attached already.
    pub fn attach(&mut self) -> Result<(), BpfError> {
        for index in self.links.len()..self.loaded.len() {
            let name = self.loaded[index].clone();
            let link = self.program_mut(&name)?.attach().or_refused(self.what)?;
            self.links.push(link);
        }
        Ok(())
    }

    /// Detaches the programs in reverse order.
    pub fn detach(&mut self) -> Result<(), BpfError> {
        while let Some(link) = self.links.pop() {
            let name = self.loaded[self.links.len()].clone();
            let detached = self.program_mut(&name)?.detach(link);
            detached.or_refused(self.what)?;
        }
        Ok(())
    }

    /// Returns the timed runs of each program so far, by name.
    pub fn timed_runs_by_program(&self) -> Result<Vec<(String, TimedRuns)>, BpfError> {
        let runs = |name: &String| Ok((name.clone(), self.timed_runs_of(name)?));
        self.loaded.iter().map(runs).collect()
    }

    /// Returns the timed runs of all programs so far ([`start_timing`]).
    pub fn timed_runs(&self) -> Result<TimedRuns, BpfError> {
        let programs = self.timed_runs_by_program()?;
        let runs = programs.iter().map(|(_, runs)| *runs);
        Ok(runs.fold(TimedRuns::default(), TimedRuns::plus))
    }

    pub(crate) fn timed_runs_of(&self, name: &str) -> Result<TimedRuns, BpfError> {
        let info = self.program(name)?.info().or_refused(self.what)?;
        Ok(TimedRuns {
            runs: info.run_count(),
            ns: info.run_time().as_nanos() as u64,
        })
    }

    pub(crate) fn program(&self, name: &str) -> Result<&BtfTracePoint, BpfError> {
        let program = self.ebpf.program(name).ok_or(EbpfError::NoBTF);
        let program = program.or_refused(self.what)?;
        program.try_into().or_refused(self.what)
    }

    pub(crate) fn program_mut(&mut self, name: &str) -> Result<&mut BtfTracePoint, BpfError> {
        let program = self.ebpf.program_mut(name).ok_or(EbpfError::NoBTF);
        let program = program.or_refused(self.what)?;
        program.try_into().or_refused(self.what)
    }
}

/// Makes the kernel time every run of every BPF program until the result is dropped. Timing has a cost itself, so
/// nothing else should be measured meanwhile.
pub fn start_timing() -> Result<OwnedFd, BpfError> {
    aya::sys::enable_stats(aya::sys::Stats::RunTime).or_refused("run times")
}

/// include/uapi/linux/btf.h: first bytes of a description.
const MAGIC: u16 = 0xEB9F;
/// Bytes of a type without the part specific to its kind.
const TYPE_BYTES: usize = 12;
/// The kind of a name whose type is elsewhere.
const KIND_FWD: u32 = 7;
/// The kind of an enum with 32-bit values.
const KIND_ENUM: u32 = 6;
/// Bytes of one value of such an enum.
const VALUE_BYTES: usize = 8;
/// Bytes of the header, which has offsets and lengths of types and strings.
const HEADER_BYTES: usize = 24;
const VERSION: u8 = 1;

/// A description of types, not parsed yet.
pub struct KernelTypes<'a> {
    described: &'a [u8],
    strings: &'a [u8],
}

/// A type of the description.
struct Type<'a> {
    /// Offset of its name in the strings.
    name: usize,
    kind: u32,
    bytes: &'a [u8],
}

impl<'a> KernelTypes<'a> {
    /// Wraps the bytes of `/sys/kernel/btf/vmlinux`; `None` if they are not a description.
    pub fn of_bytes(bytes: &'a [u8]) -> Option<Self> {
        let magic = bytes.get(..2)?.try_into().ok()?;
        if u16::from_ne_bytes(magic) != MAGIC {
            return None;
        }
        let header = word(bytes, 4)?;
        let section = |at: usize| {
            let begin = header.checked_add(word(bytes, at)?)?;
            bytes.get(begin..begin.checked_add(word(bytes, at + 4)?)?)
        };
        Some(KernelTypes {
            described: section(8)?,
            strings: section(16)?,
        })
    }

    /// Returns every name with its number, for looking up tracepoints. Compound types are reduced to their names.
    ///
    /// # Errors
    /// When the description is invalid.
    pub fn names(&self) -> Result<Btf, BtfError> {
        Btf::parse(&self.bytes_of_names(), Endianness::default())
    }

    fn bytes_of_names(&self) -> Vec<u8> {
        let mut types = Vec::with_capacity(self.described.len() / 2);
        self.each(|found| {
            if bytes_of_kind(found.kind, 0) == bytes_of_kind(found.kind, 1) {
                types.extend(found.bytes);
            } else {
                types.extend(&found.bytes[..4]);
                types.extend((KIND_FWD << 24).to_ne_bytes());
                types.extend([0; 4]);
            }
            None::<()>
        });
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([VERSION, 0]);
        let lengths = [
            HEADER_BYTES,
            0,
            types.len(),
            types.len(),
            self.strings.len(),
        ];
        for length in lengths {
            bytes.extend((length as u32).to_ne_bytes());
        }
        bytes.extend(types);
        bytes.extend(self.strings);
        bytes
    }

    /// Returns the values of an enum, by number; `None` if there is no such enum.
    pub fn values_of(&self, wanted: &str) -> Option<Vec<(u32, String)>> {
        let values = self.each(|found| {
            let is_it = found.kind == KIND_ENUM && self.string(found.name)? == wanted.as_bytes();
            is_it.then(|| &found.bytes[TYPE_BYTES..])
        })?;
        let value = |bytes: &[u8]| {
            let name = String::from_utf8_lossy(self.string(word(bytes, 0)?)?);
            Some((word(bytes, 4)? as u32, name.into_owned()))
        };
        values.chunks_exact(VALUE_BYTES).map(value).collect()
    }

    /// Passes the types to `show` in order until it returns an answer, and returns that.
    fn each<T>(&self, mut show: impl FnMut(Type<'a>) -> Option<T>) -> Option<T> {
        let mut at = 0;
        while at < self.described.len() {
            let (name, info) = (
                word(self.described, at)?,
                word(self.described, at + 4)? as u32,
            );
            let (kind, length) = ((info >> 24) & 31, (info & 0xFFFF) as usize);
            let end = at + TYPE_BYTES + bytes_of_kind(kind, length)?;
            let found = Type {
                name,
                kind,
                bytes: self.described.get(at..end)?,
            };
            if let Some(answer) = show(found) {
                return Some(answer);
            }
            at = end;
        }
        None
    }

    fn string(&self, at: usize) -> Option<&'a [u8]> {
        let rest = self.strings.get(at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some(&rest[..end])
    }
}

/// Bytes after a type's first 12. `None` for a kind newer than this program: then the position of the next type is
/// unknown.
fn bytes_of_kind(kind: u32, length: usize) -> Option<usize> {
    match kind {
        // PTR, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FLOAT, TYPE_TAG
        2 | 7..=12 | 16 | 18 => Some(0),
        // INT, VAR, DECL_TAG
        1 | 14 | 17 => Some(4),
        // ARRAY
        3 => Some(12),
        // STRUCT, UNION, DATASEC, ENUM64
        4 | 5 | 15 | 19 => Some(12 * length),
        // ENUM, FUNC_PROTO
        KIND_ENUM | 13 => Some(8 * length),
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(u32::from_ne_bytes(word) as usize)
}

/// Lower end of a bucket.
pub(crate) fn bucket_lower_ns(index: usize) -> u64 {
    let (octave, part) = (index / GAP_PARTS, (index % GAP_PARTS) as u64);
    let base = 1u64 << (GAP_FIRST_OCTAVE as usize + octave);
    base + part * (base / GAP_PARTS as u64)
}

/// Width of the bucket with this lower end.
pub(crate) fn bucket_width_ns(lower_ns: u64) -> u64 {
    let octave = 1u64 << lower_ns.max(1 << GAP_FIRST_OCTAVE).ilog2();
    octave / GAP_PARTS as u64
}

/// Times of one kind, counted in buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            buckets: vec![0; GAP_BUCKETS],
        }
    }
}

impl Histogram {
    /// Adds the counts of another histogram, bucket by bucket.
    pub(crate) fn add(&mut self, buckets: &[u64]) {
        for (sum, count) in self.buckets.iter_mut().zip(buckets) {
            *sum += count;
        }
    }

    /// Counts one time.
    pub(crate) fn count_one(&mut self, ns: u64) {
        let above = (1..GAP_BUCKETS).find(|&index| ns < bucket_lower_ns(index));
        self.buckets[above.unwrap_or(GAP_BUCKETS) - 1] += 1;
    }

    /// Returns the counts since `earlier`, an earlier reading.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let both = self.buckets.iter().zip(&earlier.buckets);
        Histogram {
            buckets: both.map(|(now, then)| now.saturating_sub(*then)).collect(),
        }
    }

    /// Returns the number of times counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the quantile of the times in ns; within a bucket they count as evenly spread. `None` without times.
    /// Times above 17 s count as 17 s, those below 0.3 us as 0.3 us.
    pub fn quantile_ns(&self, share: f64) -> Option<f64> {
        let wanted = share * self.count() as f64;
        let mut below = 0.0;
        for (index, &count) in self.buckets.iter().enumerate() {
            let within = count as f64;
            if count > 0 && below + within >= wanted {
                let lower = bucket_lower_ns(index);
                let part = ((wanted - below) / within).clamp(0.0, 1.0);
                return Some(lower as f64 + part * bucket_width_ns(lower) as f64);
            }
            below += within;
        }
        None
    }
}

/// What the program counts, as named in errors.
const XDP: &str = "nothing, and is to run as XDP";

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum XdpMode {
    /// In the driver, before a packet has a socket buffer (native XDP).
    #[default]
    Native,
    /// In the kernel's stack, with any driver (generic XDP).
    Generic,
}

/// An XDP program on an interface, detached on drop.
pub struct AttachedXdp {
    // Declared first: the program is detached before it is unloaded.
    _link: XdpLink,
    _ebpf: Ebpf,
}

impl AttachedXdp {
    /// Attaches a program that passes every frame, to an interface of the caller's namespace.
    ///
    /// # Errors
    /// When the driver has no native XDP, or the interface has a program already.
    pub fn pass(ifindex: u32, mode: XdpMode) -> Result<Self, BpfError> {
        let loaded = Ebpf::load(aya::include_bytes_aligned!("../bpf/xdp_pass.bpf.o"));
        AttachedXdp::attach(loaded, "pass", ifindex, mode)
    }

    /// Attaches the program `name` of an object file.
    ///
    /// # Errors
    /// As [`AttachedXdp::pass`]; also when the file cannot be loaded or has no such program.
    pub fn of_file(file: &Path, name: &str, ifindex: u32, mode: XdpMode) -> Result<Self, BpfError> {
        AttachedXdp::attach(Ebpf::load_file(file), name, ifindex, mode)
    }

    fn attach(
        loaded: Result<Ebpf, EbpfError>,
        name: &str,
        ifindex: u32,
        mode: XdpMode,
    ) -> Result<Self, BpfError> {
        let mut ebpf = loaded.or_refused(XDP)?;
        let program = ebpf.program_mut(name).ok_or_else(|| BpfError::Refused {
            what: XDP,
            why: format!("the file has no program {name}"),
        })?;
        let program: &mut Xdp = program.try_into().or_refused(XDP)?;
        program.load().or_refused(XDP)?;
        let mode = match mode {
            XdpMode::Native => AttachMode::Driver,
            XdpMode::Generic => AttachMode::Generic,
        };
        // Not with aya, whose fallback replaces an attached program and leaves its own behind.
        let program = program.fd().or_refused(XDP)?;
        let link = XdpLink::attach(program.as_fd(), ifindex, mode);
        Ok(AttachedXdp {
            _link: link.or_refused(XDP)?,
            _ebpf: ebpf,
        })
    }
}

#[cfg(test)]
mod bpf_tests {
    use super::*;

    #[test]
    fn a_kernel_without_helpers_that_read_is_locked_down() {
        let log = "unknown func bpf_probe_read#4\nverification time 8 usec\n";
        let error = io::Error::other(format!("EINVAL. Verifier output: {log}"));
        let refused = BpfError::refused("polls", &error);
        assert!(matches!(refused, BpfError::LockedDown { what: "polls" }));
    }

    #[test]
    fn a_refusal_is_one_line() {
        let log = "load returned EACCES. Verifier output: 0: R1=ctx()\n1: (79) r2\nR4 unbounded access\n\
                   verification time 8 usec\nstack depth 24\n";
        assert_eq!(
            without_log(log),
            "load returned EACCES. R4 unbounded access"
        );
        assert_eq!(
            without_log("load returned EPERM. Verifier output: "),
            "load returned EPERM. "
        );
        assert_eq!(without_log("EPERM"), "EPERM");
        let drawn = "EINVAL. Verifier output: At:\n | ^-- error: no helper bpf_probe_read#4\n\nSuggestion:\n";
        assert_eq!(without_log(drawn), "EINVAL. no helper bpf_probe_read#4");
    }
}

#[cfg(test)]
pub(crate) mod kernel_types_tests {
    use proptest::prelude::*;

    use super::*;

    const STRINGS: &[u8] = b"\0int\0skb_drop_reason\0SKB_CONSUMED\0SKB_DROP_REASON_XDP\0";

    /// Describes two types: an int, and an enum of drop reasons.
    pub fn types() -> Vec<u8> {
        let mut described: Vec<u32> = vec![1, 1 << 24, 4, 0x2000_0000];
        described.extend([5, (KIND_ENUM << 24) | 2, 4, 21, 1, 34, 72]);
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        let length = described.len() as u32 * 4;
        for word in [24, 0, length, length, STRINGS.len() as u32] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(described.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(STRINGS);
        bytes
    }

    #[test]
    fn an_enum_has_its_values_and_what_is_no_enum_has_none() {
        let bytes = types();
        let types = KernelTypes::of_bytes(&bytes).unwrap();
        let values = types.values_of("skb_drop_reason").unwrap();
        assert_eq!(values[1], (72, String::from("SKB_DROP_REASON_XDP")));
        assert_eq!(types.values_of("int"), None);
        assert_eq!(types.values_of("drop_reason"), None);
    }

    /// The kernel is queried by number, so the numbers must not change.
    #[test]
    fn every_name_of_this_kernel_has_the_number_that_it_had() {
        let Ok(bytes) = std::fs::read(KERNEL_TYPES) else {
            return;
        };
        let names_in = |bytes: &[u8]| {
            let types = KernelTypes::of_bytes(bytes).unwrap();
            let mut names = Vec::new();
            types.each(|found| {
                names.push(types.string(found.name).map(<[u8]>::to_vec));
                None::<()>
            });
            names
        };
        let names = KernelTypes::of_bytes(&bytes).unwrap().bytes_of_names();
        assert!(names.len() < bytes.len());
        assert!(names_in(&names) == names_in(&bytes));
    }

    proptest! {
        #[test]
        fn nothing_in_a_description_ends_the_program(
            at in 0..115_usize, byte: u8, length in 0..115_usize
        ) {
            let mut bytes = types();
            let places = bytes.len();
            bytes[at % places] = byte;
            bytes.truncate(length);
            if let Some(types) = KernelTypes::of_bytes(&bytes) {
                let _ = types.values_of("skb_drop_reason");
                let _ = types.names();
            }
        }
    }
}

#[cfg(test)]
mod octaves_tests {
    use super::*;

    #[test]
    fn buckets_lie_end_to_end() {
        for index in 0..GAP_BUCKETS - 1 {
            let lower = bucket_lower_ns(index);
            assert_eq!(lower + bucket_width_ns(lower), bucket_lower_ns(index + 1));
        }
    }

    #[test]
    fn a_time_is_counted_in_the_bucket_that_holds_it() {
        for ns in [0, 271, 272, 1_000, 9_999, u64::MAX] {
            let mut one = Histogram::default();
            one.count_one(ns);
            let [lowest, highest] = [0.0, 1.0].map(|share| one.quantile_ns(share).unwrap());
            assert!(highest - lowest <= f64::max(lowest / 15.0, 16.0));
            let is_held = lowest <= ns as f64 && (ns as f64) < highest;
            assert!(
                is_held || ns == 0 || ns == u64::MAX,
                "{ns}: {lowest} to {highest}"
            );
        }
    }

    #[test]
    fn quantiles_are_those_of_what_was_counted_since() {
        let mut earlier = Histogram::default();
        assert_eq!(earlier.quantile_ns(0.5), None);
        let mut buckets = [0; GAP_BUCKETS];
        // 2^10 ns plus one sixteenth.
        buckets[2 * GAP_PARTS + 1] = 100;
        earlier.add(&buckets);
        // 2^20 ns.
        buckets[12 * GAP_PARTS] = 1;
        let mut later = earlier.clone();
        later.add(&buckets);
        let since = later.since(&earlier);
        assert_eq!(since.count(), 101);
        let median = since.quantile_ns(0.5).unwrap();
        assert!((1_088.0..1_152.0).contains(&median), "{median}");
        assert!(since.quantile_ns(0.98).unwrap() < 1_152.0);
        assert!(since.quantile_ns(1.0).unwrap() > 1_048_576.0);
    }
}
