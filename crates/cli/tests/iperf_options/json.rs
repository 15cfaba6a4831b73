//! The JSON of `nicpoll iperf`: real output fits the schema, both ends agree, sums add up their streams, and a
//! deliberate loss is in the account.

use crate::common::prelude::*;
use crate::iperf;

fn assert_valid(value: &Value) {
    assert_described(value, "iperf");
}

/// A server that has printed its first line and listens.
struct Server {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    first: String,
}

impl Server {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        assert!(first.contains("\"start\""), "{first}");
        Server {
            child,
            lines,
            first,
        }
    }

    /// Returns its events, once it has ended by itself.
    fn events(mut self) -> Vec<Value> {
        let mut text = self.first;
        self.lines.read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success(), "{text}");
        events(&text)
    }
}

fn events(text: &str) -> Vec<Value> {
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    events.iter().for_each(assert_valid);
    events
}

fn run(output: &Output) -> Value {
    let run = json_of(output);
    assert_valid(&run);
    run
}

/// Returns the data of the events of a kind.
fn data<'a>(events: &'a [Value], event: &str, of: &str) -> Vec<&'a Value> {
    let kind = |one: &&Value| one["event"] == event && one["data"]["of"] == of;
    events.iter().filter(kind).map(|one| &one["data"]).collect()
}

fn added(records: &[&Value], field: &str) -> u64 {
    let values = records.iter().map(|record| record[field].as_u64().unwrap());
    values.sum()
}

/// Returns a client's output with `--json`, and a server's with `--json-stream`.
fn tcp_test() -> (Value, Vec<Value>) {
    let port = free_port();
    let server = ["-s", "-p", &port, "-P", "2", "-i", "0.1", "--json-stream"];
    let server = Server::start(iperf(&server));
    let client = ["-c", "127.0.0.1", "-p", &port, "-P", "2", "-t", "0.35"];
    let more = ["-b", "80m", "-i", "0.1", "-w", "128K", "--json"];
    let output = iperf(&[&client[..], &more[..]].concat()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    (run(&output), server.events())
}

fn totals(run: &Value) -> Vec<&Value> {
    let streams = run["streams"].as_array().unwrap().iter();
    streams.map(|stream| &stream["total"]).collect()
}

#[test]
fn tcp_streams_agree_at_both_ends_and_with_their_sums() {
    let (sent, received) = tcp_test();
    let totals = totals(&sent);
    assert_eq!(totals.len(), 2);
    let sum = &sent["sums"][0];
    assert_eq!(
        (sum["streams"].as_u64(), sum["side"].as_str()),
        (Some(2), Some("sender"))
    );
    assert_eq!(sum["bytes"], added(&totals, "bytes"));

    let ended = data(&received, "end", "stream");
    assert_eq!(ended.len(), 2);
    assert!(ended.iter().all(|total| total["side"] == "receiver"));
    assert_eq!(added(&ended, "bytes"), added(&totals, "bytes"));
    let sums = data(&received, "end", "sum");
    assert!(sums.iter().all(|sum| sum["side"] == "receiver"));
    assert_eq!(added(&sums, "bytes"), added(&ended, "bytes"));
    for total in ended {
        let intervals = data(&received, "interval", "stream").into_iter();
        let intervals: Vec<&Value> = intervals
            .filter(|interval| interval["id"] == total["id"])
            .collect();
        assert_eq!(added(&intervals, "bytes"), total["bytes"].as_u64().unwrap());
        let reads = total["reads_by_eighth"].as_array().unwrap().iter();
        let reads: Vec<u64> = reads.filter_map(Value::as_u64).collect();
        assert_eq!(reads.len(), 8);
        assert_eq!(reads.iter().sum::<u64>(), total["calls"].as_u64().unwrap());
    }
}

#[test]
fn a_client_tells_what_it_was_asked_what_it_was_granted_and_what_tcp_did() {
    let (sent, received) = tcp_test();
    assert_eq!(sent["schema"], "nicpoll.iperf/6");
    assert_eq!(
        (&sent["role"], &sent["settings"]["streams"]),
        (&"client".into(), &2.into())
    );
    assert!(sent["argv"].as_array().unwrap().contains(&"--json".into()));
    for stream in sent["streams"].as_array().unwrap() {
        let total = &stream["total"];
        assert_eq!(
            (&stream["side"], &total["side"]),
            (&"sender".into(), &"sender".into())
        );
        assert_eq!(stream["socket_buffer"]["asked_bytes"], 128 << 10);
        let is_positive = |value: &Value| value.as_u64().is_some_and(|value| value > 0);
        assert!(is_positive(&stream["socket_buffer"]["granted_bytes"]));
        assert!(is_positive(&stream["tcp"]["mss_bytes"]));
        assert!(is_positive(&total["congestion_window_bytes"]));
        let intervals: Vec<&Value> = stream["intervals"].as_array().unwrap().iter().collect();
        assert!(intervals.len() >= 3, "{stream:#}");
        for field in ["bytes", "calls", "retransmitted_segments"] {
            assert_eq!(
                added(&intervals, field),
                total[field].as_u64().unwrap(),
                "{field}"
            );
        }
    }
    let server = data(&received, "end", "test")[0];
    for host in [&sent["end"]["host"], &server["host"]] {
        let used = |kind: &str| host["process_cpu"][kind].as_f64().unwrap();
        assert!(used("user_seconds") + used("system_seconds") > 0.0);
        assert!(host["context_switches"].as_u64().unwrap() > 0);
        assert!(!host["cpu_tick_sampled"].as_array().unwrap().is_empty());
    }
}

#[test]
fn both_ways_of_a_test_have_sides_and_sums_of_their_own() {
    for (option, directions) in [("--full-duplex", "full_duplex"), ("-R", "reverse")] {
        let port = free_port();
        let server = ["-s", "-p", &port, "-P", "1", "--json-stream"];
        let server = Server::start(iperf(&server));
        let client = ["-c", "127.0.0.1", "-p", &port, "-t", "0.2", "-b", "40m"];
        let output = iperf(&[&client[..], &[option, "--json"]].concat())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let here = run(&output);
        let events = server.events();
        assert_eq!(here["settings"]["directions"], directions);
        let sums = here["sums"].as_array().unwrap();
        let there = data(&events, "end", "sum");
        assert_eq!(sums.len(), there.len());
        assert_eq!(sums.len(), if option == "-R" { 1 } else { 2 });
        for sum in sums {
            // One end received what the other sent.
            let is_other_side = |other: &&&Value| other["side"] != sum["side"];
            let other = there.iter().find(is_other_side).unwrap();
            assert_eq!(
                (&sum["bytes"], &sum["streams"]),
                (&other["bytes"], &1.into())
            );
        }
        let streams = here["streams"].as_array().unwrap();
        assert!(
            streams
                .iter()
                .all(|stream| stream["direction"] == directions)
        );
    }
}

#[test]
fn udp_tells_gaps_where_there_are_some() {
    let port = free_port();
    let server = format!("-s -u -p {port} -P 1 -i 0.1 --json-stream");
    let server = words(&server);
    let server = Server::start(iperf(&server));
    let client = format!("-u -c 127.0.0.1 -p {port} -l 200 -t 0.25");
    let client = words(&client);
    let more = ["-b", "2000pps", "--burst", "5", "--json"];
    let output = iperf(&[&client[..], &more[..]].concat()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let sent = run(&output);
    let received = server.events();

    let told = &sent["streams"][0]["total"];
    let heard = data(&received, "end", "stream")[0];
    let datagrams = told["datagrams"].as_u64().unwrap();
    assert_eq!(heard["expected_datagrams"], datagrams);
    assert_eq!(
        heard["datagrams"].as_u64().unwrap() + heard["lost_datagrams"].as_u64().unwrap(),
        datagrams
    );
    assert_eq!(told["server_report"]["expected_datagrams"], datagrams);
    assert_eq!(told["server_report"]["side"], "receiver");

    let gaps = &told["gaps"];
    assert_eq!(gaps["samples"], datagrams - 1);
    assert!(gaps["zero_samples"].as_u64().unwrap() >= datagrams * 4 / 5 - 5);
    let buckets: Vec<&Value> = gaps["buckets"].as_array().unwrap().iter().collect();
    assert_eq!(added(&buckets, "samples"), datagrams - 1);
    assert!(heard["jitter_seconds"].is_number());
    assert_eq!(heard["retransmitted_segments"], Value::Null);
    assert_eq!(sent["settings"]["burst_datagrams"], 5);
    assert_eq!(sent["settings"]["rate_datagrams_per_second"], 2000.0);

    // The schema requires every field.
    let mut cut = sent.clone();
    let total = cut["streams"][0]["total"].as_object_mut().unwrap();
    total.remove("gaps");
    assert!(!validator("iperf").is_valid(&cut));
}

#[test]
fn what_fails_is_in_the_json_too() {
    // Bound and not listening: nobody else can take the port meanwhile.
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = iperf(&["-c", "127.0.0.1", "-p", &port, "--json"])
        .output()
        .unwrap();
    assert_code(&output, 1);
    let refused = run(&output);
    assert_eq!(refused["error"], "connect failed: Connection refused");
    assert_eq!(refused["end"]["streams_failed"], 1);
    assert!(stderr(&output).contains("Connection refused"));

    let server = ["-s", "-u", "-B", "127.0.0.1", "-p", &port, "--json-stream"];
    let output = iperf(&server).output().unwrap();
    assert_code(&output, 1);
    let text = stdout(&output);
    let events = events(&text);
    let kinds: Vec<&str> = events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    assert_eq!(kinds, ["start", "error", "end"], "{text}");
}

fn spawn(host: &NetnsThread<()>, args: &[&str]) -> Child {
    spawn_in(host, iperf(args))
}

#[test]
fn what_a_rule_of_nftables_drops_is_in_the_receiver_s_account() {
    needs!(Root, Nft);
    let veth = Veth::build().unwrap();
    let rules = "add table inet t; \
                 add chain inet t c { type filter hook input priority 0; }; \
                 add rule inet t c udp dport 5001 numgen inc mod 7 == 3 counter drop";
    assert_code(
        &run_in(veth.inside(Side::Receiver), kept("nft", [rules])),
        0,
    );

    // Single datagrams: the rule would drop a batch whole or not at all.
    let server = ["-s", "-u", "-P", "1", "--no-batch", "--json"];
    let serving = spawn(veth.inside(Side::Receiver), &server);
    wait_for_socket(veth.inside(Side::Receiver));
    let client = words("-u -c 198.18.0.2 -n 40000 -l 200 -b 2000pps");
    let sending = spawn(
        veth.inside(Side::Sender),
        &[&client[..], &["--no-batch", "--json"]].concat(),
    );
    let sent = run(&sending.wait_with_output().unwrap());
    let received = run(&serving.wait_with_output().unwrap());

    let total = &received["streams"][0]["total"];
    let datagrams = sent["streams"][0]["total"]["datagrams"].as_u64().unwrap();
    assert_eq!(datagrams, 200);
    let lost = total["lost_datagrams"].as_u64().unwrap();
    assert_eq!(total["datagrams"].as_u64().unwrap() + lost, datagrams);
    let dropped = &received["end"]["host"]["dropped_packets"];
    // The rule counts end markers as well.
    let by_rule = dropped["nftables"].as_u64().unwrap();
    assert!((1..=by_rule).contains(&lost), "{lost} lost, {dropped:#}");
    assert_eq!(dropped["socket_buffer"], 0);
    let interfaces = received["end"]["host"]["interfaces"].as_array().unwrap();
    let arrived: Vec<&Value> = interfaces.iter().collect();
    assert!(added(&arrived, "rx_packets") >= datagrams);
}

/// Waits until a UDP socket is bound to iperf's port: the server prints nothing before its end.
fn wait_for_socket(host: &NetnsThread<()>) {
    let deadline = Instant::now() + Duration::from_secs(10);
    let is_bound = || {
        let table = host.run(|_| std::fs::read_to_string("/proc/thread-self/net/udp"));
        table.unwrap().unwrap().contains(":1389 ")
    };
    while !is_bound() {
        assert!(Instant::now() < deadline, "the server does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
}
