//! `nicpoll watch --prometheus`: what a Prometheus server has of it after scraping, against the kernel's own counters.

use nicpoll_observe::PollCounter;
use nicpoll_switch::Control;

use super::{PACKETS, lab, send};
use crate::common::prelude::*;
use crate::common::stage::Studied;

const METRICS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);
const API: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);

/// Asks over HTTP/1.0, which has no chunks, and returns the whole answer; nothing if nobody listens.
fn ask(address: SocketAddr, path: &str, more: &str) -> String {
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n{more}\r\n");
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect(address) {
        stream.write_all(request.as_bytes()).unwrap();
        stream.read_to_string(&mut answer).unwrap();
    }
    answer
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// A watch in the receiver's namespace, and a server there that scrapes it. Both end with it.
struct Scraped<'a> {
    lab: &'a Studied,
    children: [Child; 2],
}

impl<'a> Scraped<'a> {
    fn begin(stage: &Stage, lab: &'a Studied) -> Self {
        shell(lab.receiver(), "ip link set lo up");
        let config = stage.home.path().join("prometheus.yml");
        let text = format!(
            "global: {{ scrape_interval: 200ms, scrape_timeout: 200ms }}\n\
             scrape_configs: [{{ job_name: nicpoll, static_configs: [{{ targets: ['{METRICS}'] }}] }}]\n"
        );
        fs::write(&config, text).unwrap();
        let option = |name: &str, value: String| format!("--{name}={value}");
        let options = [
            option("config.file", config.display().to_string()),
            option("web.listen-address", API.to_string()),
            option("scrape.discovery-reload-interval", String::from("100ms")),
            option(
                "storage.tsdb.path",
                stage.home.path().join("tsdb").display().to_string(),
            ),
        ];
        let mut server = kept("prometheus", options);
        // A pipe that nobody reads would stop it.
        server.stdout(Stdio::null()).stderr(Stdio::null());
        let line = format!("watch em0 --interval 0.1 --prometheus {METRICS}");
        let commands = [stage.nicpoll(&words(&line)), server];
        let scraped = Scraped {
            lab,
            children: commands.map(|command| spawn_in(lab.receiver(), command)),
        };
        wait_until("the server has scraped", || {
            scraped.value("up") == Some(1.0)
        });
        scraped
    }

    fn ask(&self, address: SocketAddr, path: String) -> String {
        self.lab
            .receiver()
            .run(move |_| ask(address, &path, ""))
            .unwrap()
    }

    fn api(&self, path: String) -> Value {
        let answer = self.ask(API, format!("/api/v1/{path}"));
        serde_json::from_str(body(&answer)).unwrap_or_default()
    }

    /// The server's value of an expression that has one.
    fn value(&self, expression: &str) -> Option<f64> {
        let encoded = expression.bytes().map(|byte| format!("%{byte:02X}"));
        let answer = self.api(format!("query?query={}", encoded.collect::<String>()));
        let [one] = &answer["data"]["result"].as_array()?[..] else {
            return None;
        };
        one["value"][1].as_str()?.parse().ok()
    }

    /// Waits until the server has what the kernel counts.
    fn is_soon(&self, expression: &str, counted: impl Fn() -> u64) {
        wait_until(&format!("{expression} is what is counted"), || {
            self.value(expression) == Some(counted() as f64)
        });
    }

    /// Waits for a page that was read after this moment.
    fn is_renewed(&self) {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        wait_until("a later page is scraped", || {
            self.value("timestamp(up)") > Some(now + 1.0)
        });
    }
}

impl Drop for Scraped<'_> {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn received_frames(lab: &Studied) -> u64 {
    let interfaces = counters(lab.receiver()).interfaces.unwrap();
    let em0 = interfaces.values().find(|one| one.name == "em0").unwrap();
    em0.link.rx_packets
}

/// The kernel's soft interrupts for received packets.
fn received_softirqs() -> u64 {
    let text = fs::read_to_string("/proc/softirqs").unwrap();
    let line = text.lines().find(|line| line.contains("NET_RX:")).unwrap();
    let counts = line.split_whitespace().skip(1);
    counts.map(|count| count.parse::<u64>().unwrap()).sum()
}

/// Counts the polls of the receiver's interface by another program than the watch's.
fn counter_of_polls(lab: &Studied) -> PollCounter {
    let counting = lab.receiver().run(|_| {
        let mut control = Control::new();
        let link = control.links().unwrap();
        let link = link.iter().find(|link| link.interface.name == "em0");
        let napi = control.napis(link.unwrap().interface.ifindex).unwrap()[0].id;
        let netns = fs::metadata("/proc/thread-self/ns/net").unwrap();
        let mut counter = PollCounter::load().unwrap();
        counter
            .watch(std::os::linux::fs::MetadataExt::st_ino(&netns), Some(napi))
            .unwrap();
        counter
    });
    counting.unwrap()
}

/// Checks the CPU time that the server has, of a watch that began so long ago.
fn assert_cpu_time(scraped: &Scraped, elapsed_seconds: f64) {
    // All states of a CPU are its time, of which the first interval is not scraped yet, and the last may not be.
    let first =
        scraped.value("min(min_over_time(sum by (cpu) (nicpoll_cpu_seconds_total)[1m:100ms]))");
    let last = scraped
        .value("max(sum by (cpu) (nicpoll_cpu_seconds_total))")
        .unwrap();
    assert!(
        last > first.unwrap() && last < elapsed_seconds,
        "{first:?} {last}"
    );
    assert_eq!(
        scraped.value("sum(resets(nicpoll_cpu_seconds_total[1m]))"),
        Some(0.0)
    );
    // The type and unit come from the text: it was read as OpenMetrics.
    let told = &scraped.api(String::from("metadata?metric=nicpoll_cpu_seconds"))["data"]["nicpoll_cpu_seconds"]
        [0];
    assert_eq!(
        (&told["type"], &told["unit"]),
        (&json!("counter"), &json!("seconds"))
    );
}

#[test]
fn a_server_that_scrapes_has_what_the_kernel_counts() {
    needs!(Time, Root, PerNapi, Ip, Prometheus);
    let stage = Stage::new();
    let lab = lab(&stage);
    let begun = Instant::now();
    let no_ports = |lab: &Studied| counters(lab.receiver()).protocols["Udp.NoPorts"];
    let no_ports_before = no_ports(&lab);
    let mut scraped = Scraped::begin(&stage, &lab);
    let em0 = |name: &str| format!("sum({name}{{interface=\"em0\"}})");
    let (polls, packets) = (
        em0("nicpoll_polls_total"),
        em0("nicpoll_packets_per_poll_sum"),
    );
    let received = "nicpoll_packets_total{interface=\"em0\",direction=\"rx\"}";
    // The first round of a NAPI instance only makes it known.
    send(&lab);
    scraped.is_soon(received, || received_frames(&lab));
    let counter = counter_of_polls(&lab);
    let kernel = || [counter.read().unwrap().polls(), received_frames(&lab)];
    // Neighbours ask for each other's addresses now and then: what both have must be of one quiet moment.
    let (before, then) = loop {
        let before = kernel();
        scraped.is_renewed();
        let then = [&*polls, &*packets].map(|name| scraped.value(name).unwrap() as u64);
        if kernel() == before {
            break (before, then);
        }
    };
    let softirqs = received_softirqs();

    send(&lab);
    assert!(kernel()[0] > before[0] && kernel()[1] - before[1] >= PACKETS);
    scraped.is_soon(received, || received_frames(&lab));
    let counted = |of: usize| then[of] + kernel()[of] - before[of];
    scraped.is_soon(&packets, || counted(1));
    scraped.is_soon(&polls, || counted(0));
    scraped.is_soon(&em0("nicpoll_packets_per_poll_count"), || counted(0));
    let dropped = || no_ports(&lab) - no_ports_before;
    assert!(dropped() >= 2 * PACKETS);
    scraped.is_soon(
        "nicpoll_dropped_packets_total{place=\"no_socket\"}",
        dropped,
    );
    let softirq = scraped
        .value("nicpoll_interrupts_total{irq=\"NET_RX\"}")
        .unwrap();
    assert!((softirqs as f64..=received_softirqs() as f64).contains(&softirq));
    assert_eq!(scraped.value("count(nicpoll_discipline)"), Some(1.0));

    assert_cpu_time(&scraped, begun.elapsed().as_secs_f64());

    let page = scraped.ask(METRICS, String::from("/metrics"));
    assert_only_names_differ(body(&page));
    send_signal(&scraped.children[0], Signal::TERM);
    assert_eq!(scraped.children[0].wait().unwrap().code(), Some(143));
    let printed = &mut String::new();
    scraped.children[0]
        .stdout
        .take()
        .unwrap()
        .read_to_string(printed)
        .unwrap();
    assert_eq!(printed, "", "a service prints nothing");
}

/// promtool reads the older text format, in which HELP has a counter's whole name.
fn assert_only_names_differ(page: &str) {
    let mut promtool = kept("promtool", ["check", "metrics"]);
    let mut promtool = promtool.stdin(Stdio::piped()).spawn().unwrap();
    promtool
        .stdin
        .take()
        .unwrap()
        .write_all(page.as_bytes())
        .unwrap();
    let checked = promtool.wait_with_output().unwrap();
    for line in said(&checked).lines() {
        assert!(line.ends_with("_total no help text"), "{line}");
    }
}

/// Starts a watch, and returns it with its address.
fn begin(mut command: Command) -> (Child, SocketAddr) {
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .trim()
        .strip_prefix("nicpoll watch: metrics at http://");
    let address = address.and_then(|it| it.strip_suffix("/metrics"));
    (
        child,
        address.unwrap_or_else(|| panic!("{line}")).parse().unwrap(),
    )
}

#[test]
fn what_is_not_counted_is_absent_and_a_stranger_needs_the_token() {
    let stage = Stage::new();
    let program = copy_for_anybody(stage.home.path());
    let token = stage.home.path().join("token");
    fs::write(&token, "0123456789abcdef\n").unwrap();
    let mut command = as_nobody(&program);
    command.args(words(
        "watch lo --interval 0.1 --prometheus 127.0.0.1:0 --token-file",
    ));
    command.arg(&token).stderr(Stdio::piped());
    let (child, address) = begin(command);
    assert!(ask(address, "/metrics", "").starts_with("HTTP/1.1 401"));
    let knows = "Authorization: Bearer 0123456789abcdef\r\n";
    let mut page = String::new();
    wait_until("the first interval is over", || {
        page = ask(address, "/metrics", knows);
        page.starts_with("HTTP/1.1 200")
    });
    assert_has(
        &page,
        "nicpoll_bytes_total{interface=\"lo\",direction=\"rx\"} ",
    );
    assert!(page.ends_with("\n# EOF\n"), "{page}");
    if nicpoll_testkit::has(test_name!(), &[Need::Root]) {
        for absent in [
            "nicpoll_polls_total{",
            "nicpoll_packets_per_poll_",
            "nicpoll_cpu_seconds_total{",
        ] {
            assert!(!page.contains(absent), "{page}");
        }
    }
    assert!(ask(address, "/study/1", knows).starts_with("HTTP/1.1 404"));
    kill(child);
}

#[test]
fn an_address_that_cannot_be_served_is_refused() {
    let stage = Stage::new();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let taken = format!(
        "1 | watch lo --prometheus {} | --prometheus names another",
        taken.local_addr().unwrap()
    );
    let cases = "2 | watch lo --prometheus 0.0.0.0:9464 | --token-file
        2 | watch lo --prometheus 9464 | an address with a port
        2 | watch lo --token-file f | --prometheus";
    assert_refused(&format!("{cases}\n{taken}"), |line| stage.run(&words(line)));
}
