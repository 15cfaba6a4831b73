//! `nicpoll doctor` on any machine.

use crate::common::prelude::*;

#[test]
fn each_check_has_a_finding_and_each_bad_one_a_remedy() {
    let stage = Stage::new();
    let before = host_state();
    let output = stage.run(&["doctor", "--json"]);
    let code = output.status.code();
    let doctor = json_of(&output);
    assert_eq!(doctor["schema"], "nicpoll.doctor/1");
    assert_described(&doctor, "doctor");
    let checks = doctor["checks"].as_array().unwrap();
    let mut bad = 0;
    for check in checks {
        assert_ne!(check["finding"], "", "{check}");
        let is_bad = check["status"] == "missing" || check["status"] == "confounds";
        assert!(!is_bad || check["remedy"].is_string(), "{check}");
        bad += i32::from(is_bad);
    }
    assert_eq!(code, Some(if bad == 0 { 0 } else { 4 }));
    for group in ["privilege", "kernel", "measurement"] {
        assert!(
            checks.iter().any(|check| check["group"] == group),
            "{group}"
        );
    }
    let settings = |state: &std::collections::BTreeMap<String, String>| -> Vec<String> {
        let lasting = words("threaded napi_defer_hard_irqs gro_flush_timeout flags mtu");
        let kept = state
            .iter()
            .filter(|(path, _)| lasting.iter().any(|end| path.ends_with(end)));
        kept.map(|(path, value)| format!("{path}={value}"))
            .collect()
    };
    assert_eq!(settings(&before), settings(&host_state()));
}

#[test]
fn text_has_one_line_a_feature() {
    let stage = Stage::new();
    let output = stage.run(&["doctor"]);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    let text = stdout(&output);
    for name in [
        "CAP_NET_ADMIN",
        "NAPI instances",
        "per-NAPI settings",
        "clock source",
        "other load",
        "interrupt storms",
        "PID namespaces",
        "files for the boot",
    ] {
        let lines = text
            .lines()
            .filter(|line| line.contains(&format!(" {name} ")));
        assert_eq!(lines.count(), 1, "{name}:\n{text}");
    }
    assert!(!text.contains('\x1b'));
}
