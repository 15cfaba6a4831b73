//! Rows of knobs that the kernel has by name and the table has not: sysctls, and offload features.
//!
//! What must hold: a name that could lead anywhere but below `/proc/sys` is refused. A row is made once for a name and
//! stays for as long as the program runs, so there are never more of them than [`ROWS_MAX`].

use std::sync::{Mutex, PoisonError};

use super::place::Place;
use super::row::{Disturbance, KnobRow, Phase};
use super::table::{ROW, TABLE, named};
use super::value::Unit;
use crate::request::RequestError;

/// Names that a program may ask for in its life.
const ROWS_MAX: usize = 1024;
/// Letters of a name: no sysctl or feature of the kernel's has as many.
const NAME_MAX: usize = 128;

static ROWS: Mutex<Vec<&'static KnobRow>> = Mutex::new(Vec::new());

/// What a name is of that the table has no row for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value below `/proc/sys`.
    Sysctl,
    /// An offload feature, by the name that `ethtool -k` shows.
    Feature,
}

impl Kind {
    /// The key in a request below which such names stand.
    pub const fn key(self) -> &'static str {
        match self {
            Kind::Sysctl => "sysctl",
            Kind::Feature => "feature",
        }
    }

    /// The kind of a key in a request.
    pub fn of_key(key: &str) -> Option<Kind> {
        let kinds = [Kind::Sysctl, Kind::Feature];
        kinds.into_iter().find(|kind| kind.key() == key)
    }

    fn accepts(self, name: &str) -> bool {
        let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        match self {
            Kind::Feature => name.chars().all(is_letter) && is_part(name),
            Kind::Sysctl => {
                // As sysctl(8): with a slash in it, dots are letters of an interface's name.
                let between = if name.contains('/') { '/' } else { '.' };
                name.split(between).count() > 1
                    && name.split(between).all(is_part)
                    && name.chars().all(|c| is_letter(c) || "./@:".contains(c))
            }
        }
    }

    fn row(self, name: &'static str) -> KnobRow {
        match self {
            Kind::Sysctl => KnobRow {
                name,
                unit: Unit::Text,
                place: Place::Sysctl(name),
                phase: Phase::Host,
                help: "a sysctl",
                ..ROW
            },
            Kind::Feature => KnobRow {
                name,
                unit: Unit::Switch,
                max: 1,
                place: Place::Feature(name),
                phase: Phase::Feature,
                disturbs: Disturbance::ResetsQueues,
                help: "an offload feature",
                ..ROW
            },
        }
    }
}

/// The row of a name.
///
/// # Errors
/// When the kernel can have nothing of that name, or the table has its own name for it.
pub fn row_of(kind: Kind, name: &str) -> Result<&'static KnobRow, RequestError> {
    let refused = |why: String| RequestError::Named {
        kind: kind.key(),
        name: String::from(name),
        why,
    };
    if name.len() > NAME_MAX || !kind.accepts(name) {
        let example = match kind {
            Kind::Sysctl => "a sysctl is named as sysctl(8) does, such as net.ipv4.tcp_ecn",
            Kind::Feature => "a feature is named as ethtool -k does, such as rx-checksum",
        };
        return Err(refused(String::from(example)));
    }
    if kind == Kind::Feature {
        let own = TABLE.iter().find(|row| row.stands_for(name));
        if let Some(row) = own.copied().or_else(|| named(name)) {
            return Err(refused(format!("set it by its own name, {}", row.name)));
        }
    }
    let mut rows = ROWS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(row) = rows.iter().find(|row| row.name == name) {
        return Ok(row);
    }
    if rows.len() >= ROWS_MAX {
        return Err(refused(format!(
            "this program has been asked for {ROWS_MAX} others, and takes no more"
        )));
    }
    let name: &'static str = Box::leak(Box::from(name));
    let row: &'static KnobRow = Box::leak(Box::new(kind.row(name)));
    rows.push(row);
    Ok(row)
}

/// Every row that was asked for so far.
pub(crate) fn rows() -> Vec<&'static KnobRow> {
    ROWS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_row_and_a_name_that_leads_elsewhere_has_none() {
        let row = row_of(Kind::Sysctl, "net.ipv4.tcp_ecn").unwrap();
        assert_eq!(row_of(Kind::Sysctl, "net.ipv4.tcp_ecn").unwrap(), row);
        assert!(row_of(Kind::Sysctl, "net/ipv4/conf/eth0.7/rp_filter").is_ok());
        for wrong in [
            "",
            "net",
            "net..core",
            "net.core.",
            "../etc/passwd",
            "net/../../etc/passwd",
            "net/./x",
            "/etc/passwd",
            "net.core.x y",
            "net.core.\u{e9}",
        ] {
            assert!(row_of(Kind::Sysctl, wrong).is_err(), "{wrong}");
        }
        assert!(row_of(Kind::Sysctl, &"a.".repeat(100)).is_err());
    }

    #[test]
    fn what_the_table_has_goes_by_the_tables_name() {
        for (name, own) in [
            ("rx-gro", "gro"),
            ("tx-tcp6-segmentation", "tso"),
            ("gro", "gro"),
        ] {
            let error = row_of(Kind::Feature, name).unwrap_err().to_string();
            assert!(
                error.ends_with(&format!("by its own name, {own}")),
                "{error}"
            );
        }
        assert!(row_of(Kind::Feature, "rx-udp-gro-forwarding").is_ok());
        assert!(row_of(Kind::Feature, "rx/../x").is_err());
    }
}
