//! A study over existing interfaces: it changes them only for its trials, and is refused if it could not work or
//! would cut its user off.

use crate::common::prelude::*;

/// Returns two settings over the test's pair.
fn file(pair: &Switched) -> String {
    format!(
        r#"question = "Does this link carry less when it polls?"
blocks = 2
trial = "100ms"
[topology]
kind = "existing"
sender = {{ interface = "em0", netns = "{}" }}
receiver = {{ interface = "em0", netns = "{}" }}
[[setting]]
name = "as-it-is"
[[setting]]
name = "polling"
sender = {{ tso = "off" }}
receiver = {{ gro = "on", napi_defer_hard_irqs = 1000, gro_flush_timeout = "1ms" }}
xdp = {{ receiver = {{ mode = "native" }} }}
[[workload]]
name = "udp"
traffic = {{ kind = "udp", payload_bytes = 200, packets_per_second = 2000 }}
"#,
        pair.far_netns(),
        pair.netns()
    )
}

/// Returns the command line that runs a study file.
fn line(pair: &Switched, text: &str) -> String {
    let path = pair.home.path().join("study.toml");
    fs::write(&path, text).unwrap();
    format!("study run {} --json", path.display())
}

fn xdp(pair: &Switched) -> bool {
    let shown = Command::new("ip")
        .args(["-n", &pair.netns(), "link", "show", "em0"])
        .output();
    String::from_utf8(shown.unwrap().stdout)
        .unwrap()
        .contains("xdp")
}

#[test]
fn the_interfaces_are_measured_and_left_as_they_were() {
    needs!(Root, PerNapi, Ip);
    let pair = Switched::new();
    let before = pair.dump();
    let ran = pair.run(&line(&pair, &file(&pair)));
    assert!(
        [Some(0), Some(4)].contains(&ran.status.code()),
        "{}",
        said(&ran)
    );
    let study = json_of(&ran);
    let trials = study["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2 * 2);
    assert!(
        trials
            .iter()
            .all(|trial| trial["figures"]["delivered_packets"].as_u64() > Some(0))
    );
    assert_eq!(study["lab"]["driver"], "veth");
    let addresses = study["lab"]["addresses"].to_string();
    assert!(addresses.contains("198.18.0.2/24"), "{addresses}");
    let warnings = study["warnings"].to_string();
    assert_has(&warnings, "were there before the study");
    // A veth without GRO has no NAPI; other drivers' NAPI is unknown before.
    let own = |setting: &str| {
        trials
            .iter()
            .find(|trial| trial["setting"] == setting)
            .unwrap()
    };
    assert_eq!(own("as-it-is")["unproven"], Value::Null);
    assert!(own("polling")["figures"]["rounds_per_second"].as_f64() > Some(100.0));
    assert_eq!(pair.dump(), before);
    assert!(!xdp(&pair) && pair.is_clean());
}

#[test]
fn after_a_kill_the_guard_puts_the_interfaces_back_and_the_kernel_takes_the_program_off() {
    needs!(Time, Root, PerNapi, Ip);
    let pair = Switched::new();
    let before = pair.dump();
    let text = file(&pair).replacen("100ms", "1s", 1);
    let mut child = pair.start(&line(&pair, &text));
    wait_until("a setting and its program are in force", || {
        pair.dump() != before && xdp(&pair)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("all is put back", || pair.dump() == before && !xdp(&pair));
    wait_until("the records are gone", || pair.is_clean());
}

#[test]
fn what_could_not_work_or_would_cut_its_user_off_is_refused_with_its_line() {
    needs!(Root, PerNapi, Ip);
    let pair = Switched::new();
    let text = file(&pair);
    let told = |output: &Output| {
        assert_eq!(output.status.code(), Some(2), "{}", said(output));
        assert!(output.stdout.is_empty());
        let told = said(output);
        assert!(told.contains("study.toml, line 4: "), "{told}");
        told
    };
    let same = text.replacen(&pair.far_netns(), &pair.netns(), 1);
    for (text, words) in [
        (text.replacen("\"em0\"", "\"em7\"", 1), "em7"),
        (text.replacen(&pair.netns(), "no-such", 1), "no-such"),
        (same, "are in one network namespace"),
    ] {
        let told = told(&pair.run(&line(&pair, &text)));
        assert!(told.contains(words), "{told}");
    }
    let mut by_ssh = pair.command(&line(&pair, &text));
    by_ssh.env("SSH_CONNECTION", "198.18.0.1 4000 198.18.0.2 22");
    let refused = told(&by_ssh.output().unwrap());
    assert_has(&refused, "em0 carries your ssh connection");
    let allowed = text.replacen("[topology]", "[topology]\neven_with_ssh = true", 1);
    let mut by_ssh = pair.command(&format!("{} --dry-run", line(&pair, &allowed)));
    by_ssh.env("SSH_CONNECTION", "198.18.0.1 4000 198.18.0.2 22");
    let planned = by_ssh.output().unwrap();
    assert_code(&planned, 0);
    pair.ip(&format!("-n {} address flush dev em0", pair.far_netns()));
    let refused = told(&pair.run(&line(&pair, &text)));
    assert!(refused.contains("no address leads"), "{refused}");
    pair.ip(&format!("-n {} link set em0 down", pair.netns()));
    let refused = told(&pair.run(&line(&pair, &text)));
    assert!(refused.contains("is down; bring it up"), "{refused}");
    assert!(
        !pair.home.path().join("nicpoll").exists(),
        "nothing is stored"
    );
}
