//! Sweeps in a file and as an option.

use super::*;
use crate::design::file::StudyFile;
use crate::design::file::tests::assert_refused;

const FILE: &str = r#"
question = "How much is held?"
blocks = 3
trial = "100ms"

[[setting]]
name = "off"

[[setting]]
name = "on"
receiver = { gro = "on" }

[[workload]]
name = "udp"
traffic = { kind = "udp", payload_bytes = 64 }
sweep = [40000, 20000]

[[workload]]
name = "tcp"
traffic = { kind = "tcp" }
"#;

#[test]
fn each_rate_is_a_workload_with_its_own_comparison() {
    let design = StudyFile::parse(FILE).unwrap().design;
    let names: Vec<&str> = design
        .workloads
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["udp@20000", "udp@40000", "tcp"]);
    let asked = design.workloads[1].request.asked_per_second();
    assert_eq!(asked, Some(40_000));
    let load = design.workloads[1].facts(1).load.unwrap();
    assert_eq!((&*load.sweep, load.asked_per_second), ("udp", Some(40_000)));
    assert_eq!(design.workloads[2].load, None);
    let order: Vec<&str> = design
        .drop_order
        .iter()
        .map(|one| one.workload.as_str())
        .collect();
    assert_eq!(order, ["tcp", "udp@20000", "udp@40000"]);
}

#[test]
fn a_workload_that_is_swept_is_asked_for_by_one_name() {
    let file = StudyFile::parse(FILE).unwrap();
    let one = |name: &str| file.clone().with_workloads(&[String::from(name)]);
    let names = |file: StudyFile| -> Vec<(String, String)> {
        let workloads = file.design.workloads.into_iter().map(|one| one.name);
        let compared = file.design.drop_order.into_iter().map(|one| one.workload);
        workloads.zip(compared).collect()
    };
    let both = ["udp@20000", "udp@40000"].map(|name| (String::from(name), String::from(name)));
    assert_eq!(names(one("udp").unwrap()), both);
    assert_eq!(names(one("tcp").unwrap()), [("tcp".into(), "tcp".into())]);
    let refused = one("udpp").unwrap_err().to_string();
    assert_eq!(
        refused,
        "there is no workload 'udpp'; known are udp, tcp; did you mean 'udp'?"
    );
}

#[test]
fn rates_of_several_streams_are_told_together() {
    let text = FILE.replace(
        "[[setting]]\nname = \"off\"",
        "[topology]\nlinks = 2\n[[setting]]\nname = \"off\"",
    );
    let text = text.replace("sweep =", "both_ways = true\nsweep =");
    let design = StudyFile::parse(&text).unwrap().design;
    let load = design.workloads[0].load.clone().unwrap();
    assert_eq!(load.asked_per_second, Some(80_000));
    assert_eq!(design.workloads[0].request.asked_per_second(), Some(20_000));
}

#[test]
fn shares_have_no_rate_until_the_knee_is_known() {
    let file = StudyFile::parse(&FILE.replace("[40000, 20000]", "[\"150%\", \"50%\"]")).unwrap();
    let load = file.design.workloads[1].load.clone().unwrap();
    assert_eq!((load.asked_per_second, load.knee_ratio), (None, Some(1.5)));
    assert_eq!(file.design.workloads[1].name, "udp@150%");
    assert_eq!(searches(&file.design), 1);
}

#[test]
fn what_cannot_be_swept_is_refused_with_its_line() {
    for (rates, words) in [
        ("[20000]", "2 to 12"),
        ("[1, 1]", "the rate 1 stands twice"),
        ("[20000, \"50%\"]", "not both"),
        ("[0, 5]", "'0' is no rate"),
        ("[\"fast\", 5]", "'fast' is no rate"),
        ("[1.5, 5]", "a rate a second, such as 20000"),
    ] {
        assert_refused(FILE, &format!("16 | {words} | [40000, 20000] | {rates}"));
    }
    let closed = format!("{FILE}sweep = [1, 2]\n");
    let error = StudyFile::parse(&closed).unwrap_err();
    assert_eq!(error.line, 21, "{error}");
    assert!(
        error.to_string().contains("tcp cannot be sent at a rate"),
        "{error}"
    );
}

#[test]
fn the_option_sweeps_what_has_a_rate_and_nothing_twice() {
    let rates: SweepRates = "rate=50%,100%".parse().unwrap();
    let file = StudyFile::parse(FILE).unwrap();
    let error = file.swept_over(&rates).unwrap_err().to_string();
    assert!(error.contains("leave out --sweep"), "{error}");
    let without = FILE.replace("sweep = [40000, 20000]\n", "");
    let file = StudyFile::parse(&without).unwrap().swept_over(&rates);
    let names: Vec<String> = file
        .unwrap()
        .design
        .workloads
        .into_iter()
        .map(|one| one.name)
        .collect();
    assert_eq!(names, ["udp@50%", "udp@100%", "tcp"]);
    let closed = without.replace("kind = \"udp\", payload_bytes = 64", "kind = \"tcp\"");
    let error = StudyFile::parse(&closed)
        .unwrap()
        .swept_over(&rates)
        .unwrap_err();
    assert!(error.to_string().starts_with("no workload"), "{error}");
    assert!("50%,100%".parse::<SweepRates>().is_err());
}
