//! Whose numbers in packets an engine can check, by name.

use nicpoll_engine::{MarkIds, PacketCheck, UnknownName};
use nicpoll_iperf::udp::ClientIds;
use nicpoll_traffic::netrate::NetrateIds;

const CHECKS: [PacketCheck; 3] = [
    PacketCheck {
        name: "netrate",
        ids: || Box::new(NetrateIds::default()),
    },
    PacketCheck {
        name: "iperf",
        ids: || Box::new(ClientIds::default()),
    },
    PacketCheck {
        name: "mark",
        ids: || Box::new(MarkIds),
    },
];

/// The check of a name.
///
/// # Errors
/// When there is none.
pub fn check_of(name: &str) -> Result<PacketCheck, UnknownName> {
    let mut checks = CHECKS.into_iter();
    let check = checks.find(|check| check.name == name);
    check.ok_or_else(|| UnknownName::among(CHECKS.iter().map(|check| check.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_reads_its_own_numbers() {
        let mut netrate = (check_of("netrate").unwrap().ids)();
        let first = netrate.id(&7u32.to_be_bytes()).unwrap();
        assert_eq!(netrate.id(&8u32.to_be_bytes()), Some(first + 1));
        // A number alone is neither iperf's nor nicpoll's own.
        for name in ["iperf", "mark"] {
            assert_eq!((check_of(name).unwrap().ids)().id(&[0; 4]), None);
        }
        let refusal = check_of("ping").unwrap_err().to_string();
        assert!(refusal.contains("netrate, iperf, mark"), "{refusal}");
    }
}
