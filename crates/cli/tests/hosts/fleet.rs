//! A fleet under Ansible, by the collection in packaging/ansible: eight hosts of which half are switched, one refuses and
//! one cannot be reached; a change on trial is undone at a host that is lost; studies of several hosts are in one store.

use crate::common::prelude::*;
use crate::place::SshHosts;
#[cfg(feature = "postgres")]
use crate::site::two_periods;

const INVENTORY: &str = "\
[polled]
box1
box2
box3
box4 trial=10m keep=true
box5 fix=false
box6
[lost]
box7
[others]
box8
[all:vars]
ansible_python_interpreter=/usr/bin/python3
";

const RESTORED: &str = "
- hosts: box1:box2:box3:box4:box8
  gather_facts: false
  tasks:
    - nicpoll.polling.set: {interface: eth1, state: restored}
";

const AB: &str = "
- hosts: box2
  gather_facts: false
  tasks:
    - nicpoll.polling.ab: {interface: eth1, period: 1ms, block: 400ms, for: 24s, loss_limit: 100000}
      register: judged
      failed_when: judged.failed or judged.study is none
    - copy: {content: \"{{ judged | to_json }}\", dest: \"{{ playbook_dir }}/judged.json\"}
      delegate_to: localhost
";

#[cfg(feature = "postgres")]
const STUDY: &str = "
- hosts: box1:box2
  gather_facts: false
  tasks:
    - nicpoll.polling.study: {content: \"{{ lookup('file', 'study.toml') }}\", store: \"{{ store }}\"}
      register: ran
      failed_when: ran.failed or ran.study is none or ran.comparisons == []
";

/// A control node with an inventory.
struct Fleet {
    hosts: SshHosts,
    folder: TempDir,
}

impl Fleet {
    fn written(&self, name: &str, text: &str) -> String {
        let file = self.folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.display().to_string()
    }

    /// Runs a playbook, and returns each host's line of the recap: `ok=3 changed=1 unreachable=0 failed=0`.
    fn play(&self, playbook: &str, options: &[&str]) -> (BTreeMap<String, String>, String) {
        let folder = self.folder.path();
        let inventory = folder.join("inventory").display().to_string();
        let mut command = kept("ansible-playbook", ["-i", &inventory, "-f", "8"]);
        command.args(options).arg(playbook).current_dir(folder);
        self.hosts.equip(&mut command);
        let collections = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/ansible");
        command.env("ANSIBLE_COLLECTIONS_PATH", collections);
        command.env("ANSIBLE_HOME", folder).env("LC_ALL", "C.UTF-8");
        command.env("ANSIBLE_PIPELINING", "1");
        command.env("ANSIBLE_SSH_CONTROL_PATH_DIR", folder.join("cp"));
        let played = run_in(&self.hosts.controller, command);
        let text = said(&played);
        let recap = text.split_once("PLAY RECAP").map_or("", |(_, recap)| recap);
        let lines = recap.lines().filter_map(|line| line.split_once(" : "));
        let words = |line: &str| {
            line.split_whitespace()
                .take(4)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let lines = lines.map(|(host, line)| (String::from(host.trim()), words(line)));
        (lines.collect(), text)
    }

    fn settings(&self) -> Vec<BTreeMap<String, String>> {
        let hosts = self.hosts.all().iter();
        hosts.map(|host| host.settings()).collect()
    }
}

fn fleet(hosts: SshHosts) -> Fleet {
    hosts.install(Path::new(NICPOLL));
    let folder = tempfile::tempdir().unwrap();
    let fleet = Fleet { hosts, folder };
    fleet.written("inventory", INVENTORY);
    fleet
}

#[test]
fn half_of_a_fleet_is_switched_and_whoever_refuses_or_is_away_is_named() {
    needs!(Time, Root, PerNapi, Sshd, Ansible);
    let mut fleet = fleet(SshHosts::alone(8));
    let before = fleet.settings();
    fleet.hosts.kill_sshd("box6");
    let playbook = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts/fleet.yml");
    let (recap, text) = fleet.play(playbook, &[]);
    // It is lost with its change on trial.
    fleet.hosts.kill_sshd("box7");
    for (host, line) in [
        ("box1", "ok=3 changed=2 unreachable=0 failed=0"),
        ("box2", "ok=3 changed=2 unreachable=0 failed=0"),
        ("box3", "ok=3 changed=2 unreachable=0 failed=0"),
        ("box4", "ok=4 changed=3 unreachable=0 failed=0"),
        ("box5", "ok=0 changed=0 unreachable=0 failed=1"),
        ("box6", "ok=0 changed=0 unreachable=1 failed=0"),
        ("box7", "ok=1 changed=1 unreachable=0 failed=0"),
    ] {
        assert_eq!(recap.get(host).map(String::as_str), Some(line), "{text}");
    }
    assert_has_all(
        &text,
        "GRO is off | UNREACHABLE! | \"eth1: gro_flush_timeout\": 200000",
    );
    wait_until("the change at box7 is undone", || {
        fleet.hosts.host("box7").settings() == before[6]
    });
    for (at, now) in fleet.settings().iter().enumerate() {
        let is_polled = now["eth1: gro_flush_timeout"].trim() == "200000";
        assert_eq!(is_polled, at < 4, "box{}", at + 1);
        assert!(is_polled || *now == before[at], "box{}", at + 1);
    }
    let playbook = fleet.written("restored.yml", RESTORED);
    let (recap, text) = fleet.play(&playbook, &[]);
    let wanted = ["box1", "box2", "box3", "box4", "box8"].map(|host| {
        let changed = u8::from(host != "box8");
        let line = format!("ok=1 changed={changed} unreachable=0 failed=0");
        (String::from(host), line)
    });
    assert_eq!(recap, BTreeMap::from(wanted), "{text}");
    assert_eq!(fleet.settings(), before);
}

#[test]
fn the_answer_of_a_comparison_under_live_traffic_is_the_task_s() {
    needs!(Time, Root, PerNapi, Sshd, Ansible, Iperf);
    let fleet = fleet(SshHosts::pair());
    let before = fleet.settings();
    let start = |host: &str, words: &str| {
        let inside = &fleet.hosts.host(host).inside;
        spawn_in(inside, kept("iperf", words.split(' ')))
    };
    let server = start("box2", "-s -u -t 100");
    let client = start("box1", "-c 198.18.0.2 -u -b 40m -l 512 -t 90");
    let playbook = fleet.written("ab.yml", AB);
    let (recap, text) = fleet.play(&playbook, &[]);
    for mut traffic in [client, server] {
        traffic.kill().unwrap();
        traffic.wait().unwrap();
    }
    let line = recap.get("box2").map(String::as_str);
    assert_eq!(
        line,
        Some("ok=2 changed=2 unreachable=0 failed=0"),
        "{text}"
    );
    let judged = fs::read_to_string(fleet.folder.path().join("judged.json")).unwrap();
    let judged: Value = serde_json::from_str(&judged).unwrap();
    // Either there is a verdict or the reason why there is none.
    let reasons = judged["no_verdict"].as_array().unwrap();
    assert_eq!(judged["verdict"].is_null(), !reasons.is_empty(), "{judged}");
    assert_eq!(judged["verdict"], judged["document"]["answer"]["verdict"]);
    println!("{} {reasons:?}", judged["verdict"]);
    assert_eq!(fleet.settings(), before);
}

#[cfg(feature = "postgres")]
#[test]
fn the_studies_of_a_fleet_are_in_one_store_and_compared_by_host() {
    needs!(Time, Root, PerNapi, Sshd, Ansible, Postgres);
    let fleet = fleet(SshHosts::alone(2));
    fleet.written("study.toml", &two_periods("100ms", 2));
    let server = nicpoll_testkit::PostgresServer::start();
    // The hosts reach the server by the connection that Ansible has to them.
    let url = server.url();
    let socket = url.split_once("host=").unwrap().1;
    let forward = format!("--ssh-extra-args=-R 5432:{socket}/.s.PGSQL.5432");
    let store = "store=postgres://nicpoll@127.0.0.1:5432/postgres";
    let playbook = fleet.written("study.yml", STUDY);
    let (recap, text) = fleet.play(&playbook, &[&forward, "-e", store]);
    let line = String::from("ok=1 changed=1 unreachable=0 failed=0");
    let both = ["box1", "box2"].map(|host| (String::from(host), line.clone()));
    assert_eq!(recap, BTreeMap::from(both), "{text}");
    let page = fleet.folder.path().join("fleet.html");
    let mut command = nicpoll(["study", "compare", "--by", "host", "2", "1", "--json"]);
    command.args(["--store", &url]).arg("--report").arg(&page);
    let compared = command.output().unwrap();
    // Two blocks decide nothing.
    assert_code(&compared, 4);
    let document = json_of(&compared);
    assert_described(&document, "study-hosts");
    let hosts = document["hosts"].as_array().unwrap().iter();
    let hosts: Vec<&str> = hosts.map(|host| host["host"].as_str().unwrap()).collect();
    assert!(
        matches!(hosts[..], [one, other] if one.starts_with("box1-") && other.starts_with("box2-")),
        "{hosts:?}"
    );
    for one in document["comparisons"].as_array().unwrap() {
        let results = one["of_hosts"].as_array().unwrap();
        assert!(
            results.len() == 2 && results.iter().all(|it| it["ratio"].is_number()),
            "{one}"
        );
    }
    let page = fs::read_to_string(page).unwrap();
    assert_has_all(page, &hosts.join(" | "));
}
