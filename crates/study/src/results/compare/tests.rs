use std::fs;

use nicpoll_model::{ComparedMethod, Measure, Side, Trial, Verdict};
use nicpoll_store::StoreError;
use nicpoll_testkit::assert_has;

use super::*;
use crate::results::read::OpenResult;

fn no_store() -> Result<nicpoll_store::OpenStore, StoreError> {
    panic!("a file needs no store")
}

fn read(name: &str, column: Option<usize>) -> Result<ResultSource, ResultError> {
    OpenResult::named(name, no_store)?.read(column)
}

fn origin() -> Origin {
    Origin {
        nicpoll_version: String::from("0"),
        argv: vec![],
        started_at: String::new(),
    }
}

/// Compares two texts as files, the first being the reference.
fn compared(texts: [&str; 2], less_is_better: bool) -> Result<Compared, ResultError> {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        super::tests::read(path.to_str().unwrap(), None)
    };
    let (reference, judged) = (read("a", texts[0])?, read("b", texts[1])?);
    let options = CompareOptions {
        less_is_better,
        anyway: false,
    };
    compare_results(&reference, &judged, options, &origin())
}

fn lines(values: impl Iterator<Item = f64>) -> String {
    values.map(|value| format!("{value}\n")).collect()
}

/// In no order that neighbours share.
const SCATTER: [f64; 8] = [1.03, 0.95, 1.01, 1.06, 0.98, 0.96, 1.05, 1.0];

#[test]
fn unpaired_files_are_judged_by_ranks_and_by_which_way_is_better() {
    let one = lines(SCATTER.iter().map(|it| 100.0 * it));
    let other = lines(SCATTER.iter().map(|it| 80.0 * it));
    for (less_is_better, word) in [
        (false, Verdict::WorseAndItMatters),
        (true, Verdict::BetterAndItMatters),
    ] {
        let compared = compared([&one, &other], less_is_better).unwrap();
        let [sets] = &compared.comparisons[..] else {
            panic!("{compared:?}")
        };
        assert_eq!(
            (sets.method, sets.verdict),
            (ComparedMethod::MannWhitney, word)
        );
        assert!((sets.ratio.unwrap() - 0.8).abs() < 0.02);
        assert!(sets.welch.high.unwrap() < 0.9 && sets.mann_whitney_p.unwrap() < 0.001);
        assert_eq!(sets.judged.read_as, "a column of numbers");
        assert_eq!(sets.measure, None);
    }
}

#[test]
fn an_outlier_and_a_step_are_named_and_the_word_is_the_intervals() {
    let one = lines(SCATTER.iter().map(|it| 100.0 * it));
    let spiked = lines(SCATTER.iter().map(|it| 80.0 * it).chain([8.0]));
    let found = compared([&one, &spiked], false).unwrap();
    assert_eq!(found.comparisons[0].judged.outliers, [9]);
    assert_eq!(found.comparisons[0].judged.values.len(), 9);
    let twice = || SCATTER.iter().chain(&SCATTER);
    let warm = lines(
        twice()
            .enumerate()
            .map(|(i, it)| it * if i < 6 { 40.0 } else { 80.0 }),
    );
    let found = compared([&one, &warm], false).unwrap();
    let sets = &found.comparisons[0];
    assert!(
        sets.judged.order.is_uneven && sets.judged.order.step_at == Some(7),
        "{sets:?}"
    );
    assert_eq!(sets.verdict, Verdict::WorseAndItMatters);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let fails = |texts| compared(texts, false).unwrap_err().to_string();
    let iperf = "[SUM]  0.0-10.0 sec  1.09 GBytes   936 Mbits/sec\n";
    assert!(fails([iperf, "1\n2\n"]).ends_with("only figures of one kind can be compared"));
    assert!(fails(["-1\n2\n3\n", "1\n2\n3\n"]).contains("values below 0"));
    let torn = fails(["1\ntwo\n", "1\n"]);
    assert!(torn.contains("a, line 2: 'two' is not a number"), "{torn}");
    let missing = read("nowhere.json", None).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("there is no file 'nowhere.json'")
    );
    // A decimal comma is not read as two columns.
    let comma = fails(["99\n100,5\n", "1\n"]);
    assert!(
        comma.contains("a, line 2: '100,5' is one number with a decimal comma"),
        "{comma}"
    );
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table.csv");
    fs::write(&table, "100,5\n101,6\n").unwrap();
    let table = |column| read(table.to_str().unwrap(), column);
    assert_eq!(table(Some(2)).unwrap().numbers().unwrap(), [5.0, 6.0]);
    assert!(table(None).is_err());
    let folder = read(folder.path().to_str().unwrap(), None);
    assert_has(folder.unwrap_err(), "it is a directory");
}

#[test]
fn a_name_that_a_study_does_not_have_is_told_with_those_that_it_has() {
    let named = |name: &str| {
        let ResultSource::Study(source) = stored(7, name, |_, _| 1.0) else {
            panic!("a study")
        };
        source.into_named().map(Box::new).map(ResultSource::Study)
    };
    for (name, words) in [
        (
            "7:poling",
            "study 7 has no setting 'poling'; it has default, interrupt, polling; did you mean 'polling'?",
        ),
        (
            "7:polling:udp46",
            "7:polling:udp46: study 7 has no workload 'udp46'; it has tcp, udp1470, udp64, rr; did you mean 'udp64'?",
        ),
        ("7:polling:udp64:rr", "no workload 'udp64:rr'"),
    ] {
        let error = named(name).unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
    let same = |one: &str, other: &str| {
        let (one, other) = (named(one).unwrap(), named(other).unwrap());
        let compared = compare_results(&one, &other, CompareOptions::default(), &origin());
        compared.unwrap_err().to_string()
    };
    let both = same("7", "7");
    assert!(
        both.contains("both results are study 7: name another study, or two settings of this one"),
        "{both}"
    );
    assert_has(&both, "'nicpoll study compare 7:interrupt 7:polling'");
    assert!(same("7:polling", "7").contains("name one as in 7:SETTING"));
    assert!(same("7:polling", "7:polling").contains("is both results"));
}

#[test]
fn a_single_run_is_its_intervals() {
    let run = "[  3]  0.0- 1.0 sec  1 MBytes  10.0 Mbits/sec\n\
               [  3]  1.0- 2.0 sec  1 MBytes  11.0 Mbits/sec\n\
               [  3]  2.0- 3.0 sec  1 MBytes  12.0 Mbits/sec\n\
               [  3]  0.0- 3.0 sec  1 MBytes  11.0 Mbits/sec\n";
    let found = compared([run, run], false).unwrap();
    let side = &found.comparisons[0].judged;
    assert!(side.are_intervals && side.values == [10e6, 11e6, 12e6]);
    assert_eq!(found.comparisons[0].method, ComparedMethod::Welch);
}

/// Makes a stored study of two workloads under three settings, with rates of `rate` times a scatter.
fn stored(id: i64, name: &str, rate: impl Fn(&str, &str) -> f64) -> ResultSource {
    let text = include_str!("../../../../report/tests/golden/demo.json");
    let mut study: Study = serde_json::from_str(text).unwrap();
    let is_good = |trial: &&Trial| trial.result().is_some();
    let one = study.trials.iter().find(is_good).unwrap().clone();
    study.trials.clear();
    let cells = ["udp1470", "udp64"].into_iter().flat_map(|workload| {
        ["default", "interrupt", "polling"].map(|setting| (workload, setting))
    });
    for (workload, setting) in cells {
        for (block, scatter) in (1..).zip(SCATTER.iter().chain(&SCATTER)) {
            let mut trial = one.clone();
            (trial.block, trial.workload, trial.setting) = (block, workload.into(), setting.into());
            let figures = trial.figures.as_mut().unwrap();
            figures.delivered_bits_per_second = 1e8 * scatter * rate(workload, setting);
            study.trials.push(trial);
        }
    }
    let name = name.parse().unwrap();
    ResultSource::Study(Box::new(StudySource::of_study(id, name, study)))
}

#[test]
fn an_import_and_a_measured_study_are_compared_where_their_traffic_is_of_one_kind() {
    let line = |(port, scatter): (u32, &f64)| {
        let mbits = (50.0 * scatter).round();
        format!(
            "# iperf -c 10.0.0.2 -u -l 64 -b 100M\nClient connecting to 10.0.0.2, UDP port 5001\n\
             Sending 64 byte datagrams\n\
             [  3] local 10.0.0.1 port {port} connected with 10.0.0.2 port 5001\n\
             [  3]  0.0-10.0 sec  {:.3} MBytes  {mbits:.1} Mbits/sec\n\
             [  3] Server Report:\n\
             [  3]  0.0-10.0 sec  {:.3} MBytes  {mbits:.1} Mbits/sec  0.010 ms  0/ {port} (0%)\n",
            mbits * 10.0 / 8.0 * 1e6 / 1_048_576.0,
            mbits * 10.0 / 8.0 * 1e6 / 1_048_576.0,
        )
    };
    let text: String = (4001..).zip(&SCATTER).map(line).collect();
    let mapping = ["setting=polling".parse().unwrap()];
    let files = [(String::from("page.txt"), text)];
    let imported = nicpoll_import::read_transcripts(&files, &mapping, &origin()).unwrap();
    assert_eq!(
        imported.trials.len(),
        SCATTER.len(),
        "{:?}",
        imported.trials
    );
    let imported = ResultSource::Study(Box::new(StudySource::of_import(
        3,
        "3".parse().unwrap(),
        &imported,
    )));
    let measured = stored(7, "7", |_, _| 1.0);
    for (one, other, ratio) in [(&measured, &imported, 0.5), (&imported, &measured, 2.0)] {
        let found = compare_results(one, other, CompareOptions::default(), &origin()).unwrap();
        let [sets] = &found.comparisons[..] else {
            panic!("{:?}", found.comparisons)
        };
        assert_eq!(sets.workload.as_deref(), Some("iperf-udp-64"));
        assert_eq!(sets.quantity, "bits_per_second");
        assert_eq!(sets.measure, Some(Measure::Rate));
        assert!((sets.ratio.unwrap() / ratio - 1.0).abs() < 0.1, "{sets:?}");
        // Workloads of the study alone keep their names.
        let mut alone = found.alone.iter();
        assert!(alone.any(|it| it.workload == "udp1470" && it.setting == "polling"));
    }
}

/// Removes the trials of a workload under a setting.
fn without(source: ResultSource, workload: &str, setting: &str) -> ResultSource {
    let ResultSource::Study(source) = source else {
        panic!("a study")
    };
    let mut study = *source.study.unwrap();
    let is_left_out =
        |it: &Trial| (it.workload.as_str(), it.setting.as_str()) == (workload, setting);
    study.trials.retain(|it| !is_left_out(it));
    let source = StudySource::of_study(source.id, source.name, study);
    ResultSource::Study(Box::new(source))
}

#[test]
fn two_studies_are_compared_setting_by_setting_and_what_only_one_has_is_said() {
    let slower = |workload: &str, setting: &str| match (workload, setting) {
        ("udp64", "polling") => 0.5,
        _ => 1.0,
    };
    let before = without(stored(7, "7", |_, _| 1.0), "udp1470", "default");
    let after = without(stored(8, "8", slower), "udp1470", "polling");
    let found = compare_results(&before, &after, CompareOptions::default(), &origin()).unwrap();
    // Two workloads under three settings, less one missing in each study.
    assert_eq!(found.comparisons.len(), 2 * 3 - 2);
    let alone: Vec<_> = found
        .alone
        .iter()
        .map(|it| (&*it.result, &*it.workload, &*it.setting))
        .collect();
    assert_eq!(
        alone,
        [("8", "udp1470", "default"), ("7", "udp1470", "polling")]
    );
    for sets in &found.comparisons {
        assert_eq!(sets.method, ComparedMethod::MannWhitney, "{sets:?}");
        assert!((sets.confidence_ratio - (1.0 - 0.05 / 4.0)).abs() < 1e-12);
        let is_slower =
            sets.workload.as_deref() == Some("udp64") && sets.judged.name == "8:polling";
        let is_worse = matches!(sets.verdict, Verdict::Worse | Verdict::WorseAndItMatters);
        assert_eq!(is_worse, is_slower, "{sets:?}");
    }
    let limit: crate::FailOn = "worse:5%".parse().unwrap();
    let shut = vec![String::from("udp64: rate of 8:polling")];
    assert_eq!(limit.of_results(&found), crate::Gate::Shut(shut));
    let same = compare_results(
        &before,
        &stored(9, "9", |_, _| 1.0),
        CompareOptions::default(),
        &origin(),
    );
    assert_eq!(limit.of_results(&same.unwrap()), crate::Gate::Open);
    // Workloads that a name excludes are not missed, and named settings are compared whatever their names.
    let named = compare_results(
        &stored(7, "7:interrupt:udp64", |_, _| 1.0),
        &stored(8, "8:polling", |_, _| 1.3),
        CompareOptions::default(),
        &origin(),
    );
    let named = named.unwrap();
    assert_eq!((named.comparisons.len(), named.alone.len()), (1, 0));
    let ratio = named.comparisons[0].ratio.unwrap();
    assert!((ratio - 1.3).abs() < 1e-9, "{ratio}");
}

#[test]
fn too_few_values_are_told_with_their_number_and_what_happened_to_the_trials() {
    let ResultSource::Study(source) = stored(8, "8:polling:udp64", |_, _| 1.0) else {
        panic!("a study")
    };
    let mut study = *source.study.unwrap();
    for trial in study.trials.iter_mut().filter(|it| it.block > 1) {
        trial.validity.failure = Some(String::from("iperf33: not found"));
        trial.figures = None;
    }
    let failed = StudySource::of_study(source.id, source.name, study);
    let failed = ResultSource::Study(Box::new(failed));
    let good = stored(7, "7:polling:udp64", |_, _| 1.0);
    let found = compare_results(&good, &failed, CompareOptions::default(), &origin()).unwrap();
    let [sets] = &found.comparisons[..] else {
        panic!("{found:?}")
    };
    assert_eq!(
        sets.no_verdict.as_deref().unwrap(),
        "7:polling has 16 values, 8:polling has 1 value (15 of 16 trials failed: iperf33: not found), and it takes 3 of \
         each"
    );
    assert_eq!(sets.verdict, Verdict::Inconclusive);
    let other = stored(9, "9:polling:udp64", |_, _| 1.0);
    let found = compare_results(&good, &other, CompareOptions::default(), &origin()).unwrap();
    assert_eq!(found.comparisons[0].no_verdict, None);
}

#[test]
fn a_share_is_compared_in_points_in_one_study_and_between_two() {
    // 0.2 points more lost under polling, of a share that has no ratio: none is lost in some trials.
    let lossy = |id: i64, name: &str| {
        let ResultSource::Study(mut source) = stored(id, name, |_, _| 1.0) else {
            panic!("a study")
        };
        let study = source.study.as_mut().unwrap();
        for planned in &mut study.plan.drop_order {
            planned.metrics = vec![Metric::LossRatio];
        }
        for trial in &mut study.trials {
            let lost = u64::from(trial.block % 3) + 200 * u64::from(trial.setting == "polling");
            let figures = trial.figures.as_mut().unwrap();
            figures.loss_ratio = Some(lost as f64 / 1e3);
        }
        ResultSource::Study(source)
    };
    let same = compare_results(
        &lossy(7, "7:interrupt:udp64"),
        &lossy(7, "7:polling:udp64"),
        CompareOptions::default(),
        &origin(),
    );
    let other = compare_results(
        &lossy(7, "7:interrupt:udp64"),
        &lossy(8, "8:polling:udp64"),
        CompareOptions::default(),
        &origin(),
    );
    for (found, is_paired) in [(same.unwrap(), true), (other.unwrap(), false)] {
        let [sets] = &found.comparisons[..] else {
            panic!("{found:?}")
        };
        assert_eq!(sets.method.is_paired(), is_paired);
        assert_eq!(
            (sets.measure, sets.kind),
            (Some(Measure::Loss), MetricKind::Points)
        );
        let difference = sets.share_difference.unwrap();
        assert!((difference - 0.2).abs() < 1e-3, "{sets:?}");
        assert!(sets.interval.low.unwrap() > 0.19 && sets.interval.high.unwrap() < 0.21);
        assert_eq!(
            (sets.ratio, sets.verdict),
            (None, Verdict::WorseAndItMatters)
        );
    }
}

#[test]
fn a_name_that_means_two_things_is_refused_and_other_differences_come_first() {
    let changed = |id: i64, name: &str, change: fn(&mut Study)| {
        let mut source = stored(id, name, |_, _| 1.0);
        let ResultSource::Study(own) = &mut source else {
            panic!("a study")
        };
        change(own.study.as_mut().unwrap());
        source
    };
    let slower = |study: &mut Study| {
        let polling = study.settings.iter_mut().find(|it| it.setting == "polling");
        let [name, value] = ["gro_flush_timeout", "1ms"].map(String::from);
        polling.unwrap().writes.push((Side::Receiver, name, value));
        study.host.kernel = String::from("6.1.0");
    };
    let before = changed(1, "1", |_| ());
    let compared = |name: &str, anyway| {
        let options = CompareOptions {
            anyway,
            ..CompareOptions::default()
        };
        compare_results(&before, &changed(5, name, slower), options, &origin())
    };
    let refused = compared("5", false).unwrap_err().to_string();
    assert!(
        refused.starts_with("the setting polling is without that in 1 and"),
        "{refused}"
    );
    assert_has(&refused, "gro_flush_timeout = 1ms' in 5");
    let found = compared("5", true).unwrap().differences;
    assert!(found[0].starts_with("the setting polling is "), "{found:?}");
    assert!(found[1].ends_with("and 6.1.0 in 5"), "{found:?}");
    // Settings that are not compared may differ.
    assert_eq!(
        compared("5:interrupt", false).unwrap().differences,
        found[1..]
    );
}
