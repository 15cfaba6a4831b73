//! The version to speak as.

use super::*;

#[test]
fn versions_that_speak_alike_are_one_dialect() {
    for (version, dialect) in [
        ("2.0.2", Dialect::V2_0_2),
        ("2.0.5", Dialect::V2_0_2),
        ("2.0.8", Dialect::V2_0_8),
        ("2.0.9", Dialect::V2_0_8),
        ("2.0.10", Dialect::V2_0_10),
        ("2.0.12", Dialect::V2_0_10),
        ("2.0.13", Dialect::V2_0_13),
    ] {
        let client = client(&format!("-u --dialect {version}"));
        assert_eq!(client.common.stream.dialect, dialect, "{version}");
        assert!(client.common.warnings.is_empty());
    }
    assert_eq!(stream("-u").dialect, Dialect::V2_1);
}

#[test]
fn other_versions_are_refused_and_tcp_needs_none() {
    for version in ["2.0.1", "2.0.14", "2.1.8", "2.0", "2.0.5.1", "2.0.x"] {
        let said = refused(&format!("-c host -u --dialect {version}"));
        assert!(said.contains("2.0.2 to 2.0.13"), "{said}");
    }
    assert_eq!(
        client("--dialect 2.0.5").common.warnings,
        ["WARNING: option --dialect is not valid without -u, ignored"]
    );
    assert_eq!(
        server("-u --dialect 2.0.5").common.warnings,
        ["WARNING: option --dialect is not valid for server mode"]
    );
}
