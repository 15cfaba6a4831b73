//! What a setting asks of one interface.

use serde::{Deserialize, Serialize};

/// What is to be changed on an interface; null: not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// TSO.
    pub tso: Option<bool>,
    /// GRO.
    pub gro: Option<bool>,
    /// `napi_defer_hard_irqs`.
    pub defer_hard_irqs: Option<u32>,
    /// `gro_flush_timeout`, in ns.
    pub gro_flush_timeout_ns: Option<u64>,
}

impl Request {
    /// Knobs with their values, for the record.
    pub fn list(&self) -> Vec<(String, String)> {
        let switch = |on| String::from(if on { "on" } else { "off" });
        let mut list = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            list.extend(value.map(|value| (String::from(name), value)));
        };
        add("tx-tcp*-segmentation (TSO)", self.tso.map(switch));
        add("rx-gro (GRO)", self.gro.map(switch));
        add(
            "napi_defer_hard_irqs",
            self.defer_hard_irqs.map(|n| n.to_string()),
        );
        add(
            "gro_flush_timeout",
            self.gro_flush_timeout_ns.map(|n| n.to_string()),
        );
        list
    }
}
