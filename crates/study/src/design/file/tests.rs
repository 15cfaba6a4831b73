use std::time::Duration;

use super::*;
use crate::design::Evidence;

/// A study of two settings under one workload.
pub(crate) const TWO: &str = r#"
question = "Does a longer period pay?"
[[setting]]
name = "short"
receiver = { gro = "on", napi_defer_hard_irqs = 100, gro_flush_timeout = "50us" }
[[setting]]
name = "long"
receiver = { gro = "on", napi_defer_hard_irqs = 100, gro_flush_timeout = "1ms" }
[[workload]]
name = "udp"
traffic = { kind = "udp", payload_bytes = 200, packets_per_second = 20000 }
"#;

/// Makes each change in a file, which must then be refused. Each has the line, words of the refusal, the replaced text
/// and the new one, where `\n` ends a line.
pub(crate) fn assert_refused(file: &str, changes: &str) {
    for change in changes.lines().filter(|line| !line.trim().is_empty()) {
        let [line, words, find, replace] = change.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("{change}");
        };
        assert!(file.contains(find), "{find}");
        let changed = file.replacen(find, &replace.replace("\\n", "\n"), 1);
        let error = StudyFile::parse(&changed).unwrap_err();
        assert!(error.message.contains(words), "{replace}: {error}");
        assert_eq!(error.line.to_string(), line, "{replace}: {error}");
    }
}

#[test]
fn a_file_is_a_design_and_its_lengths() {
    let file = StudyFile::parse(TWO).unwrap();
    let [short, long] = &file.design.settings[..] else {
        panic!("{:?}", file.design.settings);
    };
    assert_eq!(short.evidence, Evidence::Rounds { period_ns: 50_000 });
    assert_eq!(long.period_ns(), Some(1_000_000));
    assert_eq!(short.noun, "short");
    assert!(!short.setting.hosts.contains_key("sender"));
    // Every setting against the first one.
    let [versus] = &file.design.contrasts[..] else {
        panic!("{:?}", file.design.contrasts);
    };
    assert_eq!((&*versus.setting, &*versus.reference), ("long", "short"));
    assert_eq!(file.lengths, Lengths::default());
    let plan = plan_of(&file.design, &file.lengths, Seed(1)).unwrap();
    assert_eq!(plan.period_ns, Some(1_000_000));
    assert_eq!(plan.order.len(), 16 * 2);
    assert!(plan.limit_seconds > 10.0);
}

#[test]
fn lengths_and_comparisons_may_be_given() {
    let text = format!(
        "blocks = 20\ntrial = \"500ms\"\ntime = \"60s\"\nseed = 7\n{TWO}\n\
         [[compare]]\nsetting = \"short\"\nreference = \"long\"\n"
    );
    let file = StudyFile::parse(&text).unwrap();
    assert_eq!(file.lengths.blocks, 20);
    assert_eq!(file.lengths.trial, Duration::from_millis(500));
    assert_eq!(file.lengths.limit, Some(Duration::from_secs(60)));
    assert_eq!(file.seed, Some(7));
    assert_eq!(file.design.contrasts[0].setting, "short");
}

#[test]
fn a_comparison_may_be_of_all_pairs_or_of_every_setting_with_one() {
    let third = "[[setting]]\nname = \"third\"\nreceiver = { gro = \"off\" }\n[[workload]]";
    let three = TWO.replace("[[workload]]", third);
    let with = |compare: &str| format!("{three}\n[[compare]]\n{compare}");
    let said = |compare: &str| -> Vec<String> {
        let pairs = pairs(&with(compare)).into_iter();
        pairs.map(|(one, other)| format!("{one}/{other}")).collect()
    };
    assert_eq!(said("reference = \"long\""), ["short/long", "third/long"]);
    assert_eq!(
        said("reference = \"*\""),
        ["long/short", "third/short", "third/long"]
    );
    let fails = |compare: &str| StudyFile::parse(&with(compare)).unwrap_err().message;
    assert!(fails("reference = \"lnog\"").contains("short, long, third"));
    let twice = "reference = \"long\"\n[[compare]]\nsetting = \"third\"\nreference = \"long\"";
    assert!(fails(twice).contains("stands once"));
}

#[test]
fn a_mistake_is_named_with_its_line_and_what_would_be_right() {
    let cases = r#"
    2 | there is no key qestion here; there are question, blocks | question | qestion
    2 | did you mean 'question'? | question | qestion
    5 | there is no knob 'groo' | gro = "on", napi | groo = "on", napi
    5 | did you mean 'gro'? | gro = "on", napi | groo = "on", napi
    5 | '-5us' is not a time: a number above 0 and its unit | "50us" | "-5us"
    5 | '-5' is not a time | "50us" | -5
    5 | gro_flush_timeout: 1000001s is out of range; a time is at most 11 days | "50us" | "1000001s"
    5 | ask for a period of 5ms or less | "50us" | "10s"
    5 | 5000000000 is out of range; give 0 to 2147483647 | = 100 | = 5000000000
    5 | a value is on, off, a number | = 100 | = [[1]]
    5 | unit | "50us" | 50
    5 | add gro = "on" | gro = "on", napi | napi
    7 | another | name = "long" | name = "short"
    7 | a name has | name = "long" | name = "a b"
    11 | kind = "sctp" is not known; there are tcp, udp | kind = "udp" | kind = "sctp"
    11 | did you mean 'udp'? | kind = "udp" | kind = "upd"
    11 | the key kind is missing here | kind = "udp", |
    9 | the key traffic is missing here | traffic = { | description = "x"\n#
    11 | payload_bytes = 2 is out of range; give 20 to 65,507 bytes | payload_bytes = 200 | payload_bytes = 2
    11 | payload_bytes = 70000 cannot be: give 20 to 65,507 bytes | payload_bytes = 200 | payload_bytes = 70000
    11 | payload_bytes = -1 cannot be: give 20 to 65,507 bytes | payload_bytes = 200 | payload_bytes = -1
    11 | packets_per_second = 0 cannot be: give 1 to 100,000,000 a second | = 20000 | = 0
    11 | packets_per_second = "20k" cannot be: give 1 to 100,000,000 a second | = 20000 | = "20k"
    11 | packets_per_second = 2e4 cannot be | = 20000 | = 2e4
    11 | packets_per_second = 200000000 is out of range | = 20000 | = 200000000
    13 | packets_per_second = 0 cannot be | traffic = { kind = "udp", payload_bytes = 200, packets_per_second = 20000 } | [workload.traffic]\nkind = "udp"\npackets_per_second = 0
    11 | receive_buffer_bytes = 0 is out of range; give 1 to 1,073,741,823 bytes | = 20000 | = 20000, receive_buffer_bytes = 0
    11 | clients = 0 cannot be: give 1 to 256 clients | kind = "udp", payload_bytes = 200, packets_per_second = 20000 | kind = "rr", clients = 0
    11 | there is no key payload here; there are payload_bytes, | payload_bytes = 200 | payload = 200
    12 | both_ways = "yes" cannot be: give true or false | 20000 } | 20000 }\nboth_ways = "yes"
    12 | the sweep has the rates of this workload: leave out | 20000 } | 20000 }\nsweep = [1000, 2000]
    4 | links = 300 cannot be: give 1 to 8 links | [[setting]] | [topology]\nlinks = 300\n[[setting]]
    4 | kind = "ruter" is not known; there are pair, router, existing, hosts; did you mean 'router'? | [[setting]] | [topology]\nkind = "ruter"\n[[setting]]
    3 | common = "vteh" is not known; there is veth; did you mean 'veth'? | [[setting]] | common = "vteh"\n[[setting]]
    4 | there is no key sendr here | [[setting]] | [common]\nsendr = {}\n[[setting]]
    2 | blocks = -3 cannot be: give 1 to 1,000 blocks | question = | blocks = -3\nquestion =
    3 | 0 blocks are out of range; ask for 1 to 1000 | [[setting]] | blocks = 0\n[[setting]]
    2 | trials of 1ms cannot be; ask for 100ms to 600s | question = | trial = "1ms"\nquestion =
    2 | a drain of 5s cannot be; ask for 2ms to 2s | question = | drain = "5s"\nquestion =
    2 | a warm-up of 700s cannot be | question = | warmup = "700s"\nquestion =
    2 | a time of 0ns is too short: an interval takes 7 blocks here | question = | time = "0s"\nquestion =
    2 | and they take 16s with what comes | question = | time = "2s"\nquestion =
    2 | 0 blocks are out of range | question = | full = { blocks = 0 }\nquestion =
    2 | a time of 2s is too short | question = | full = { time = "2s" }\nquestion =
    2 | blocks or stop | question = | blocks = 5\nstop = { width = "5%", at_most = "10m" }\nquestion =
    2 | trial: a unit is needed | question = | trial = "1"\nquestion =
    2 |  | question = " | question =
    "#;
    assert_refused(TWO, cases);
    let compare = format!("{TWO}[[compare]]\nsetting = \"lomg\"\nreference = \"short\"\n");
    let error = StudyFile::parse(&compare).unwrap_err();
    assert_eq!(error.line, 13);
    assert!(error.message.contains("did you mean 'long'?"), "{error}");
    let one = TWO.split("[[setting]]\nname = \"long\"").next().unwrap();
    let one = format!("{one}[[workload]]\nname = \"tcp\"\ntraffic = {{ kind = \"tcp\" }}\n");
    let error = StudyFile::parse(&one).unwrap_err();
    assert!(error.message.contains("2 to 16"), "{error}");
}

/// Commands around the traffic of a setting, of both and of a workload.
const COMMANDS: &str = r#"
question = "Does fq cost anything?"
[common]
before = [{ host = "receiver", command = ["first"] }]
after = [{ host = "receiver", command = ["last"] }]
[[setting]]
name = "fifo"
variant = { disc = "pfifo" }
[[setting]]
name = "fq"
variant = { disc = "fq" }
before = [{ host = "sender", command = ["tc", "qdisc", "replace", "dev", "{interface}", "root", "{disc}"] }]
after = [{ host = "sender", command = ["tc", "qdisc", "del", "dev", "{interface}", "root"] }]
[[workload]]
name = "udp"
traffic = { kind = "udp", payload_bytes = 200, packets_per_second = 20000 }
before = [{ host = "sender", command = ["echo", "{disc}"] }]
"#;

#[test]
fn commands_stand_around_traffic() {
    let design = StudyFile::parse(COMMANDS).unwrap().design;
    let said = |setting: &str| -> Vec<String> {
        let setting = design.setting(setting).unwrap();
        let own = design.workloads[0].under(setting).commands;
        let all = setting.commands.around(&own);
        all.words()
            .map(|(host, when, words)| format!("{when} {host}: {words}"))
            .collect()
    };
    assert_eq!(
        said("fq"),
        [
            "before receiver: first",
            "before sender: tc qdisc replace dev {interface} root fq",
            "before sender: echo fq",
            "after sender: tc qdisc del dev {interface} root",
            "after receiver: last",
        ]
    );
    assert_eq!(said("fifo").len(), 3);
    let facts = design.settings[1].facts();
    assert!(!facts.is_same_as(&design.settings[0].facts()));
    let why = (
        nicpoll_model::Side::Receiver,
        String::from("the command before traffic"),
        String::from("first"),
    );
    assert!(facts.writes.contains(&why), "{:?}", facts.writes);
    let cases = r#"
    12 | did you mean 'sender'? | { host = "sender", command = ["tc", "qdisc", "replace" | { host = "sendr", command = ["tc", "qdisc", "replace"
    4 | sender, receiver | "receiver", command = ["first"] | "router", command = ["first"]
    4 | needs a program | ["first"] | []
    4 | nothing stands for {disc} | ["first"] | ["{disc}"]
    13 | nothing stands for {receiver} | "del" | "{receiver}"
    "#;
    assert_refused(COMMANDS, cases);
}

#[test]
fn whatever_is_cut_off_or_wrong_is_read_or_refused_with_a_line_of_the_text() {
    let lines = TWO.lines().count();
    for at in (0..TWO.len()).step_by(3) {
        let flipped: String = TWO
            .char_indices()
            .map(|(place, c)| if place == at { '=' } else { c })
            .collect();
        for text in [&TWO[..at], &TWO[at..], &flipped] {
            if let Err(error) = StudyFile::parse(text) {
                assert!((1..=lines + 1).contains(&error.line), "{error}: {text}");
            }
        }
    }
}

const CROSSED: &str = r#"
question = "Does the effect of the period depend on TSO?"
[common]
receiver = { gro = "on", napi_defer_hard_irqs = 100 }
[[factor]]
name = "period"
levels = [
  { name = "50us", receiver = { gro_flush_timeout = "50us" } },
  { name = "1ms", receiver = { gro_flush_timeout = "1ms" } },
  { name = "2ms", noun = "two ms", receiver = { gro_flush_timeout = "2ms" } },
]
[[factor]]
name = "tso"
levels = [
  { name = "off", sender = { tso = "off" } },
  { name = "on", sender = { tso = "on" }, cpus = { sender = 1, receiver = 0 } },
]
[[workload]]
name = "rr"
traffic = { kind = "rr" }
"#;

fn pairs(text: &str) -> Vec<(String, String)> {
    let design = StudyFile::parse(text).unwrap().design;
    let pairs = design.contrasts.into_iter();
    pairs.map(|one| (one.setting, one.reference)).collect()
}

#[test]
fn factors_are_crossed_and_levels_compared_within_each_combination_of_the_others() {
    let file = StudyFile::parse(CROSSED).unwrap();
    let settings = &file.design.settings;
    let names: Vec<&str> = settings.iter().map(NamedSetting::name).collect();
    assert_eq!(
        names,
        [
            "50us+off", "50us+on", "1ms+off", "1ms+on", "2ms+off", "2ms+on"
        ]
    );
    assert_eq!(settings[5].period_ns(), Some(2_000_000));
    assert_eq!(settings[5].noun, "two ms with on");
    assert_eq!(settings[5].levels[1].factor, "tso");
    assert_eq!(settings[5].cpus.sender, Some(1));
    assert_eq!(settings[4].cpus.sender, None);
    let own = |one: &str, other: &str| (String::from(one), String::from(other));
    assert_eq!(
        pairs(CROSSED),
        [
            own("1ms+off", "50us+off"),
            own("1ms+on", "50us+on"),
            own("2ms+off", "50us+off"),
            own("2ms+on", "50us+on"),
            own("50us+on", "50us+off"),
            own("1ms+on", "1ms+off"),
            own("2ms+on", "2ms+off"),
        ]
    );
    let plan = file.plan(Seed(1)).unwrap().plan;
    let effects = plan.main_effects.iter();
    let effects: Vec<_> = effects
        .map(|it| (&*it.factor, &*it.level, &*it.reference, it.settings.len()))
        .collect();
    assert_eq!(
        effects,
        [
            ("period", "1ms", "50us", 2),
            ("period", "2ms", "50us", 2),
            ("tso", "on", "off", 3)
        ]
    );
    // Seven within a combination, and these three over all of them.
    assert_eq!(plan.family_comparisons, 10);
    assert_eq!(plan.factors[0].levels, ["50us", "1ms", "2ms"]);
    // A file can name its comparisons; settings without one are not run.
    let some = format!(
        "{CROSSED}[[compare]]\nfactor = \"period\"\nlevel = \"2ms\"\nreference = \"1ms\"\n"
    );
    assert_eq!(
        pairs(&some),
        [own("2ms+off", "1ms+off"), own("2ms+on", "1ms+on")]
    );
    assert_eq!(StudyFile::parse(&some).unwrap().design.settings.len(), 4);
}

#[test]
fn a_mistake_in_a_factor_is_named_with_its_line() {
    let cases = r#"
    13 | another | name = "tso" | name = "period"
    9 | another | name = "1ms" | name = "50us"
    15 | two factors set gro_flush_timeout of the receiver | sender = { tso = "off" } | receiver = { gro_flush_timeout = "1us" }
    13 | 1 level(s) | { name = "off", sender = { tso = "off" } }, | 
    15 | polling, interrupt, busy-poll, adaptive | sender = { tso = "off" } | engine = "freebsd-polling"
    8 | add gro = "on" | receiver = { gro = "on", | receiver = {
    16 | there is no key sendr here; there are sender, receiver; did you mean 'sender'? | { sender = 1, | { sendr = 1,
    19 | not both | [[workload]] | [[setting]]\nname = "one"\n[[workload]]
    20 | needs a factor and a level | [[workload]] | [[compare]]\nsetting = "50us+on"\nreference = "50us+off"\n[[workload]]
    20 | there is no level of; the file has off, on | [[workload]] | [[compare]]\nfactor = "tso"\nlevel = "of"\nreference = "on"\n[[workload]]
    "#;
    assert_refused(CROSSED, cases);
    let many: String = (0..9)
        .map(|n| format!("{{ name = \"{n}\", sender = {{ tso = \"on\" }} }},"))
        .collect();
    let many = CROSSED.replace("{ name = \"off\", sender = { tso = \"off\" } },", &many);
    let error = StudyFile::parse(&many).unwrap_err();
    assert!(error.message.contains("at most 16"), "{error}");
}

#[test]
fn cores_that_the_machine_does_not_have_are_named_with_their_line() {
    let file = StudyFile::parse(CROSSED).unwrap();
    let refused = |file: &StudyFile, cpus: &[u32]| {
        let here = Here {
            cpus: cpus.to_vec(),
            ..Here::default()
        };
        file.check(CROSSED, &here).err()
    };
    assert_eq!(refused(&file, &[0, 1]), None);
    let error = refused(&file, &[0, 2, 3]).unwrap();
    assert_eq!(error.line, 16);
    assert!(error.message.contains("may use 0, 2, 3"), "{error}");
    let text = CROSSED.replace("sender = 1, receiver = 0", "sender = 1");
    let error = refused(&StudyFile::parse(&text).unwrap(), &[0, 1]).unwrap();
    assert!(error.message.contains("share cpu 1"), "{error}");
}

#[test]
fn a_full_length_stands_beside_the_reduced_one() {
    let text = format!("trial = \"1s\"\nfull = {{ trial = \"60s\" }}\n{TWO}");
    let file = StudyFile::parse(&text).unwrap();
    assert_eq!(file.lengths.trial.as_secs(), 1);
    let full = file.clone().at_full_length().unwrap();
    assert_eq!(full.lengths.trial.as_secs(), 60);
    assert_eq!(full.lengths.blocks, file.lengths.blocks);
    let one = StudyFile::parse(TWO).unwrap().at_full_length();
    assert!(one.unwrap_err().to_string().contains("full = {"));
    let wrong = format!("full = {{ trial = \"60\" }}\n{TWO}");
    assert_eq!(StudyFile::parse(&wrong).unwrap_err().line, 1);
}

#[test]
fn a_stop_rule_fills_its_time_and_is_refused_where_no_interval_can_come_of_it() {
    let with = |stop: &str| format!("stop = {stop}\n{TWO}");
    let read = |stop: &str| StudyFile::parse(&with(stop));
    let plan = |stop: &str| read(stop).unwrap().plan(Seed(1)).map(|plan| plan.plan);
    let long = plan("{ width = \"5%\", at_most = \"10m\" }").unwrap();
    assert_eq!(long.stop_width_ratio, Some(0.05));
    assert_eq!(long.limit_seconds, 600.0);
    assert!(long.blocks > 100, "{}", long.blocks);
    assert_eq!(long.order.len(), 2 * long.blocks as usize);
    for (stop, wanted) in [
        ("{ width = \"5\", at_most = \"10m\" }", "such as \"5%\""),
        ("{ width = \"0%\", at_most = \"10m\" }", "from 0.1% to 100%"),
        (
            "{ width = \"5%\", at_most = \"14s\" }",
            "takes 7 blocks here",
        ),
        ("{ width = \"5%\", at_most = \"10\" }", "at_most: a unit"),
        ("{ width = \"5%\" }", "at_most"),
        ("{ p = 0.05, at_most = \"10m\" }", "no key p here"),
    ] {
        let error = read(stop).unwrap_err();
        assert!(error.message.contains(wanted), "{stop}: {error}");
        assert_eq!(error.line, 1, "{stop}");
    }
    let both = format!(
        "time = \"60s\"\n{}",
        with("{ width = \"5%\", at_most = \"10m\" }")
    );
    let error = StudyFile::parse(&both).unwrap_err();
    assert!(error.message.contains("time or stop"), "{error}");
}

#[test]
fn a_router_has_settings_of_its_own_and_is_what_is_studied() {
    let routed = TWO.replace("receiver =", "router =").replacen(
        "[[setting]]",
        "[topology]\nkind = \"router\"\nrate = \"100Mbit/s\"\n[[setting]]",
        1,
    );
    let design = StudyFile::parse(&routed).unwrap().design;
    assert!(design.topology.is_routed() && design.topology.rate.is_some());
    assert_eq!(design.settings[1].period_ns(), Some(1_000_000));
    let facts = design.settings[1].facts();
    assert!(facts.writes.is_empty());
    assert_eq!(facts.router_writes[0].0, "gro");
    // Without a router there is nothing to set.
    let none = StudyFile::parse(&TWO.replace("receiver =", "router =")).unwrap_err();
    assert_eq!(none.line, 5);
    assert!(none.message.contains("kind = \"router\""), "{none}");
    let links = routed.replacen("[topology]", "[topology]\nlinks = 2", 1);
    let error = StudyFile::parse(&links).unwrap_err();
    assert_eq!(error.line, 3);
    assert!(error.message.contains("either side"), "{error}");
}

#[test]
fn traffic_may_go_both_ways_over_ipv6_and_beside_other_traffic() {
    let with = |keys: &str| {
        let text = format!("{TWO}{keys}\n");
        StudyFile::parse(&text).map(|file| file.design.workloads[0].clone())
    };
    let beside = "ip = \"v6\"\nboth_ways = true\n\
                  beside = [{ traffic = { kind = \"netrate\", payload_bytes = 64 }, from = \"receiver\" }]";
    let workload = with(beside).unwrap();
    assert!(workload.options.both_ways);
    let words = ", over IPv6, and the same the other way; in the background netblast to netreceive, 64 bytes of payload, \
                 as fast as it goes from the receiver";
    let description = &workload.description;
    assert!(description.ends_with(words), "{description}");
    let short = with("beside = [{ traffic = { kind = \"netrate\", payload_bytes = 3 } }]");
    assert!(short.unwrap_err().to_string().contains("20 to 65,507"));
    let most = TWO.replace("payload_bytes = 200", "payload_bytes = 65500") + "ip = \"v6\"\n";
    let error = StudyFile::parse(&most).unwrap_err();
    assert_eq!(error.line, 11);
    assert!(error.message.contains("at most 65,487 bytes"), "{error}");
}

#[test]
fn what_a_veth_needs_has_a_short_form_and_is_missed_before_it_runs() {
    let settings = |text: &str| StudyFile::parse(text).unwrap().design.settings;
    let warnings = |text: &str| {
        let plan = StudyFile::parse(text).unwrap().plan(Seed(1)).unwrap();
        let warnings = plan.warnings.into_iter();
        warnings.map(|one| one.text).collect::<Vec<_>>()
    };
    let with = |common: &str| TWO.replacen("[[setting]]", &format!("{common}\n[[setting]]"), 1);
    let short = with("common = \"veth\"");
    let long = with("[common]\nsender = { tso = \"off\" }\nreceiver = { gro = \"on\" }");
    assert_eq!(settings(&short), settings(&long));
    let router = |text: String| {
        let text = text.replace("receiver = { gro = \"on\", napi", "router = { napi");
        text + "[topology]\nkind = \"router\"\n"
    };
    let of_router = settings(&router(short.clone()));
    let long_router = "[common]\nsender = { tso = \"off\" }\nreceiver = { tso = \"off\" }\n\
                       router = { gro = \"on\", tso = \"off\" }";
    assert_eq!(of_router, settings(&router(with(long_router))));
    // Without it no poll would be seen.
    let [told] = &warnings(TWO)[..] else {
        panic!("{:?}", warnings(TWO));
    };
    assert!(
        told.starts_with("there will be no poll under short, long: "),
        "{told}"
    );
    assert!(
        told.contains("common = \"veth\", or sender = { tso = \"off\" }"),
        "{told}"
    );
    assert!(warnings(&short).is_empty() && warnings(&router(short.clone())).is_empty());
    let one = TWO.replacen("receiver =", "sender = { tso = \"off\" }\nreceiver =", 1);
    assert!(warnings(&one)[0].contains("no poll under long: "));
    // Settings that need none of it give no warning.
    let native = with("[common]\nxdp = { receiver = { mode = \"native\" } }");
    assert!(warnings(&native).is_empty());
    let idle = TWO
        .replace("napi_defer_hard_irqs = 100, ", "")
        .replace("gro = \"on\", ", "");
    let idle = idle.replace("gro_flush_timeout = \"50us\"", "gro = \"off\"");
    let idle = idle.replace("gro_flush_timeout = \"1ms\"", "tso = \"off\"");
    assert!(warnings(&idle).is_empty());
}

#[test]
fn a_program_and_a_sysctls_value_are_tried_before_anything_is_built() {
    let command = |program: &str| {
        let traffic = "kind = \"udp\", payload_bytes = 200, packets_per_second = 20000";
        let words = format!("kind = \"command\", parser = \"iperf3\", sender = [\"{program}\"]");
        TWO.replace(traffic, &words)
    };
    let checked = |text: &str| {
        let file = StudyFile::parse(text).unwrap();
        file.check(text, &file.look().unwrap())
    };
    for program in ["true", "/proc/self/exe"] {
        assert_eq!(checked(&command(program)), Ok(()), "{program}");
    }
    for program in ["iperf33", "/nowhere/iperf3", "/etc/passwd"] {
        let error = checked(&command(program)).unwrap_err();
        assert_eq!(error.line, 11);
        let words = format!("there is no program '{program}' on this machine");
        assert!(error.message.contains(&words), "{error}");
        assert!(error.message.contains("install it"), "{error}");
    }
    let around = |program: &str| {
        let before =
            format!("[[workload]]\nbefore = [{{ host = \"sender\", command = [\"{program}\"] }}]");
        command("true").replacen("[[workload]]", &before, 1)
    };
    assert_eq!(checked(&around("true")), Ok(()));
    assert!(
        checked(&around("tcc"))
            .unwrap_err()
            .message
            .contains("no program 'tcc'")
    );
    // Each setting has its own.
    let of_each = command("{tool}");
    let given = |tool: &str| format!("\nvariant = {{ tool = \"{tool}\" }}");
    let of_each = of_each.replace(
        "name = \"short\"",
        &format!("name = \"short\"{}", given("true")),
    );
    let of_each = of_each.replace(
        "name = \"long\"",
        &format!("name = \"long\"{}", given("iperf33")),
    );
    assert!(checked(&of_each).unwrap_err().message.contains("'iperf33'"));
    nicpoll_testkit::needs!(Root);
    let sysctl = |value: &str| {
        let sysctl = format!("sysctl = {{ \"net.ipv4.tcp_rmem\" = {value} }}, gro = \"on\"");
        TWO.replacen("gro = \"on\"", &sysctl, 1)
    };
    assert_eq!(checked(&sysctl("\"4096 131072 6291456\"")), Ok(()));
    let error = checked(&sysctl("-5")).unwrap_err();
    assert_eq!(error.line, 5);
    let words = "this kernel does not take net.ipv4.tcp_rmem = \"-5\": Invalid argument";
    assert!(error.message.contains(words), "{error}");
}
