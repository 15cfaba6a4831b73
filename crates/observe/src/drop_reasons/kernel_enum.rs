//! The names that the running kernel gives to its drop reasons, out of its description of its types (BTF).

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::kernel_types::KernelTypes;

/// The kernel's type that numbers the reasons.
const REASONS: &str = "skb_drop_reason";
/// What the kernel's names have in common.
const PREFIX: &str = "SKB_DROP_REASON_";

/// Names of drop reasons by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonNames(BTreeMap<u32, String>);

impl ReasonNames {
    /// The names in a description of a kernel's types; `None` when it has no drop reasons.
    pub(super) fn of_types(types: &KernelTypes<'_>) -> Option<Self> {
        let names = types.values_of(REASONS)?;
        Some(ReasonNames(names.into_iter().collect()))
    }

    /// The kernel's name of a reason without `SKB_DROP_REASON_`; its number where the kernel has none for it.
    pub fn of(&self, reason: u32) -> Cow<'_, str> {
        match self.0.get(&reason) {
            Some(name) => Cow::Borrowed(name.strip_prefix(PREFIX).unwrap_or(name)),
            None => Cow::Owned(format!("reason {reason}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_types::tests::types;

    fn names_in(types: &[u8]) -> Option<ReasonNames> {
        ReasonNames::of_types(&KernelTypes::of_bytes(types)?)
    }

    #[test]
    fn reasons_have_the_kernels_names_and_unknown_ones_their_number() {
        let names = names_in(&types()).unwrap();
        assert_eq!(names.of(72), "XDP");
        assert_eq!(names.of(1), "SKB_CONSUMED");
        assert_eq!(names.of(65_537), "reason 65537");
    }

    #[test]
    fn a_kernel_without_reasons_has_no_names() {
        let mut other = types();
        let at = other.windows(8).position(|bytes| bytes == b"skb_drop");
        other[at.unwrap()] = b'S';
        assert_eq!(names_in(&other), None);
    }

    #[test]
    fn this_kernel_has_names() {
        let Ok(types) = std::fs::read(crate::bpf::KERNEL_TYPES) else {
            return;
        };
        if let Some(names) = names_in(&types) {
            assert!(names.0.values().any(|name| name.ends_with("NOT_SPECIFIED")));
        }
    }
}
