//! User's programs as traffic: in their namespaces, limited, and read by a named parser.

mod common;

use common::TestLab;
use nicpoll_lab::{Running, WorkloadRequest, own_process};
use nicpoll_model::WorkUnit;
use nicpoll_observe::{ExactCpu, ExactCpuOptions};
use nicpoll_study::StudyFile;
use nicpoll_sys::program::spawn_contained;
use nicpoll_testkit::needs;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use nicpoll_traffic::workload::Books;

/// Returns a study with this only workload, under two values of `{word}`.
fn file(traffic: &str) -> String {
    format!(
        "question = \"Which word?\"\n\
         [[setting]]\nname = \"one\"\nvariant = {{ word = \"80.5\" }}\n\
         [[setting]]\nname = \"two\"\nvariant = {{ word = \"7\" }}\n\
         [[workload]]\nname = \"own\"\ntraffic = {traffic}\n"
    )
}

fn request(traffic: &str, setting: &str) -> WorkloadRequest {
    let file = StudyFile::parse(&file(traffic)).unwrap();
    let setting = file.design.setting(setting).unwrap();
    file.design.workloads[0].under(setting).request
}

fn run(test: &mut TestLab, request: &WorkloadRequest) -> Result<Books, String> {
    let time = Duration::from_millis(100);
    let cancel = AtomicBool::new(false);
    let outcome = Running::start(&mut test.lab, request, time).and_then(|mut running| {
        running.wait_for_sender(&mut test.lab, &cancel)?;
        running.drain(&mut test.lab, Duration::ZERO)
    });
    test.lab.restore().unwrap();
    outcome.map_err(|error| error.to_string())
}

/// Its output names the interface that only a host of the lab has.
const SHELL: &str = r#"{ kind = "command", parser = "regex", unit = "Mbit/s", pattern = "rate ([0-9.]+)", sender = ["sh", "-c", "grep -q em0 /proc/self/net/dev && grep -q '^Cpus_allowed_list:.0$' /proc/self/status && echo rate {word} of {receiver}"] }"#;

#[test]
fn a_command_runs_in_its_namespace_with_its_settings_words_and_its_output_is_read() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    for (setting, rate) in [("one", 80.5e6), ("two", 7e6)] {
        let books = run(&mut test, &request(SHELL, setting)).unwrap();
        assert_eq!(books.receiver.bits_per_second.round(), rate);
        assert!(books.undrained.unwrap().contains("cannot be counted"));
    }
}

/// Output of netperf's and sockperf's request/response tests.
const RESPONDERS: [(&str, &str, f64, Option<u64>); 2] = [
    (
        "netperf",
        "MIGRATED TCP REQUEST/RESPONSE TEST\\nbytes  bytes   bytes    secs.    per sec\\n16384  87380  1  1  10.00  29150.15\\n16384  87380\\n",
        29_150.15,
        None,
    ),
    (
        "sockperf",
        "sockperf: [Valid Duration] RunTime=0.500 sec; SentMessages=5001; ReceivedMessages=5000\\nsockperf: Summary: Latency is 12.500 usec\\nsockperf: ---> percentile 99.000 =   40.000\\n",
        10_000.0,
        Some(80_000),
    ),
];

#[test]
fn transactions_and_round_trips_of_other_tools_are_read() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    for (parser, output, rate, p99_ns) in RESPONDERS {
        let traffic = format!(
            r#"{{ kind = "command", parser = "{parser}", unit = "transactions/s", payload_bytes = 100, sender = ["printf", "{output}"] }}"#
        );
        let request = request(&traffic, "one");
        assert_eq!(request.workload().unit(), WorkUnit::Transactions);
        let books = run(&mut test, &request).unwrap();
        let trips = books.round_trip.unwrap();
        assert_eq!(
            (trips.transactions_per_second, trips.quantiles.p99_ns),
            (rate, p99_ns)
        );
        assert_eq!(
            books.receiver.bits_per_second.round(),
            (rate * 800.0).round()
        );
        // It cannot be taken for a rate of bits.
        let plain = traffic.replace("unit = \"transactions/s\", payload_bytes = 100, ", "");
        let error = run(&mut test, &self::request(&plain, "one")).unwrap_err();
        assert!(error.contains("give unit = \"transactions/s\""), "{error}");
    }
}

#[test]
fn what_a_command_did_not_do_is_said_with_what_it_said() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    let script = |script: &str| {
        let words = "grep -q em0 /proc/self/net/dev && grep -q '^Cpus_allowed_list:.0$' /proc/self/status && echo rate {word} of {receiver}";
        assert!(SHELL.contains(words));
        SHELL.replace(words, script)
    };
    let begin = Instant::now();
    for (traffic, wanted) in [
        (
            script("echo nothing"),
            "the pattern 'rate ([0-9.]+)' is nowhere in it",
        ),
        (script("echo nothing"), "begins with: nothing"),
        (
            script("echo why >&2; exit 3"),
            "exit status: 3, and said: why",
        ),
        (
            SHELL.replace("\"sh\"", "\"no-such-program\""),
            "'no-such-program' cannot be run",
        ),
        (script("yes | head -c 9000000; sleep 9"), "had not ended"),
        (script("yes | head -c 9000000"), "wrote more than 8 MiB"),
        (
            SHELL.replace("kind =", "user = \"no-such-user\", kind ="),
            "there is no user 'no-such-user'",
        ),
        (
            script("id -u; exit 3").replace("kind =", "user = \"nobody\", kind ="),
            "and said: 65534",
        ),
    ] {
        let error = run(&mut test, &request(&traffic, "one")).unwrap_err();
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    assert!(
        begin.elapsed() < Duration::from_secs(9),
        "none was waited for"
    );
}

#[test]
fn a_command_that_cannot_be_read_is_refused_with_its_line() {
    let refused = |traffic: &str| StudyFile::parse(&file(traffic)).unwrap_err();
    for (traffic, wanted) in [
        (
            String::from("{ kind = \"command\", parser = \"iperf9\", sender = [\"x\"] }"),
            "there are iperf3, iperf2, netblast, netreceive, netperf, sockperf and regex",
        ),
        (SHELL.replace("rate ([0-9.]+)", "rate"), "0 groups"),
        (SHELL.replace("rate ([0-9.]+)", "rate (["), "pattern:"),
        (SHELL.replace("unit = \"Mbit/s\", ", ""), "and a unit"),
        (SHELL.replace("Mbit/s", "packets/s"), "payload_bytes = 64"),
        (
            SHELL.replace("{word}", "{wrd}"),
            "nothing stands for {wrd} under the setting one",
        ),
        (
            SHELL.replace("sender =", "output = \"receiver\", sender ="),
            "needs a receiver",
        ),
        (
            String::from(
                "{ kind = \"command\", parser = \"netperf\", unit = \"transactions/s\", sender = [\"x\"] }",
            ),
            "reads requests a second here",
        ),
        (
            String::from(
                "{ kind = \"command\", parser = \"iperf3\", unit = \"transactions/s\", sender = [\"x\"] }",
            ),
            "netperf and sockperf take unit",
        ),
        (
            String::from("{ kind = \"command\", parser = \"netblast\", sender = [\"x\"] }"),
            "payload_bytes = 64",
        ),
    ] {
        let error = refused(&traffic);
        assert!(error.message.contains(wanted), "{wanted}: {error}");
        assert_eq!(error.line, 10, "{error}");
    }
}

#[test]
fn iperf3_is_read_from_its_client() {
    needs!(Root, PerNapi, Iperf3);
    let mut test = TestLab::build();
    let traffic = r#"{ kind = "command", parser = "iperf3", sender = ["iperf3", "-c", "{receiver}", "-p", "{port}", "-t", "{seconds}", "-J"], receiver = ["iperf3", "-s", "-1", "-p", "{port}"] }"#;
    let books = run(&mut test, &request(traffic, "one")).unwrap();
    assert!(books.delivered_bytes > 0 && books.receiver.bits_per_second > 0.0);
}

#[test]
fn what_a_program_starts_is_the_studys_own_in_the_account_of_cpu_time() {
    needs!(Root, PerNapi);
    let _alone = TestLab::alone();
    let mut exact = ExactCpu::load(&ExactCpuOptions {
        has_threads: true,
        ..ExactCpuOptions::default()
    })
    .unwrap();
    exact.attach().unwrap();
    // A program that starts another, and one whose parent is gone.
    let mut contained = Command::new("sh");
    contained.args(["-c", "(timeout 0.1 yes &) > /dev/null; timeout 0.2 sleep 9"]);
    let mut keeper = spawn_contained(contained.stdout(Stdio::null()), None).unwrap();
    let mut other = Command::new("timeout");
    let other = other.args(["0.1", "tail", "-f", "/dev/null"]).status();
    assert!(!other.unwrap().success());
    assert!(!keeper.wait().unwrap().success());
    let own = own_process(&exact).unwrap();
    let threads = exact.threads().unwrap();
    let starters = |name: &str| -> Vec<Option<u32>> {
        let named = threads.iter().filter(|thread| thread.name == name);
        named.map(|thread| thread.starter_pid).collect()
    };
    for name in ["yes", "sleep"] {
        assert!(starters(name).contains(&Some(own)), "{name}: {threads:?}");
    }
    let tail = starters("tail");
    assert!(
        !tail.is_empty() && !tail.contains(&Some(own)),
        "{threads:?}"
    );
}
