//! Studies between hosts that are reached by ssh, and what becomes of them when something breaks.

mod broken;
#[path = "../common/mod.rs"]
mod common;
mod fleet;
mod place;
mod refused;
mod site;

use std::io::ErrorKind;

use crate::common::prelude::*;
use crate::place::{PAIR, SshHost, SshHosts};
use crate::site::{ROUTED, Site, two_periods};

/// Whether a host's packets get to an address where nobody listens.
fn reaches(hosts: &SshHosts, name: &str, address: &str) -> bool {
    let address: SocketAddr = address.parse().unwrap();
    let connect = move |_: &mut ()| TcpStream::connect_timeout(&address, PATIENCE);
    let outcome = hosts.host(name).inside.run(connect).unwrap();
    outcome.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[test]
fn a_command_at_a_host_sees_the_host_and_nothing_is_left() {
    needs!(Root, Sshd);
    let mut hosts = SshHosts::pair();
    let seen = hosts.ssh(
        "box1",
        "ls /sys/class/net; ls /root; echo $USER; touch /run/here",
    );
    assert_eq!(seen, "eth0\neth1\nlo\nroot\n");
    assert!(reaches(&hosts, "box1", "198.18.0.2:9"));
    assert!(reaches(&hosts, "box2", "[2001:2::1]:9"));
    assert_eq!(hosts.ssh("box2", "ls /run"), "sshd\n");
    let new: Vec<PathBuf> = hosts.host("box1").files().into_iter().collect();
    assert!(new.contains(&PathBuf::from("/run/here")));
    let before = hosts.host("box2").settings();
    hosts.ssh(
        "box2",
        "ip link set eth1 mtu 1400; sleep 300 > /dev/null 2>&1 &",
    );
    assert_ne!(hosts.host("box2").settings(), before);
    hosts.restart_sshd("box2", "ForceCommand echo forced");
    assert_eq!(hosts.ssh("box2", "echo mine"), "forced\n");
    assert_eq!(hosts.host("box2").kill(|command| command == "sleep 300"), 1);
    hosts.ssh("box1", "setsid sleep 300 > /dev/null 2>&1 &");
    let folder = hosts.temporary();
    let processes = hosts.all().iter().flat_map(SshHost::processes);
    let pids: Vec<u32> = processes.map(|(pid, _)| pid).collect();
    assert!(pids.len() >= 3);
    drop(hosts);
    assert!(!folder.exists());
    for pid in pids {
        // One that nobody has waited for yet has no namespaces.
        assert!(fs::read_link(format!("/proc/{pid}/ns/mnt")).is_err());
    }
}

#[test]
fn a_router_forwards_and_a_link_comes_back() {
    needs!(Root, Sshd);
    let hosts = SshHosts::routed();
    assert!(reaches(&hosts, "box1", "198.18.2.2:9"));
    assert!(reaches(&hosts, "box3", "[2001:2:1::1]:9"));
    assert!(!reaches(&hosts, "box1", "192.0.2.7:22"));
    hosts.set_link("box3", false);
    hosts.set_link("box3", true);
    assert_eq!(
        hosts.ssh("box3", "cat /proc/sys/net/ipv4/ip_forward"),
        "0\n"
    );
    hosts.forge_known_key("box3");
    let mut command = kept("ssh", ["-o", "BatchMode=yes", "box3", "true"]);
    hosts.equip(&mut command);
    let output = run_in(&hosts.controller, command);
    assert_has(stderr(&output), "REMOTE HOST IDENTIFICATION HAS CHANGED");
}

#[test]
fn a_study_runs_between_two_hosts_and_leaves_nothing_there() {
    needs!(Root, PerNapi, Sshd);
    let site = Site::of(SshHosts::pair());
    let file = site.written(&format!("{}{PAIR}", two_periods("100ms", 2)));
    let ran = site.run(&["study", "run", &file, "--json"]);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", said(&ran));
    let study = json_of(&ran);
    let trials = study["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2 * 2);
    for trial in trials {
        assert_eq!(trial["external"], Value::Null, "{trial}");
        assert!(
            trial["figures"]["delivered_packets"].as_u64() > Some(0),
            "{trial}"
        );
    }
    site.assert_untouched();
    let again = site.run(&["study", "show", "last", "--json"]);
    assert_eq!(again.stdout, ran.stdout);
}

#[test]
fn what_a_switch_between_the_hosts_loses_is_a_line_of_the_ledger() {
    needs!(Root, PerNapi, Sshd, Nft);
    let site = Site::of(SshHosts::switched());
    let file = site.written(&format!("{}{PAIR}", two_periods("100ms", 2)));
    let ran = site.run(&["study", "run", &file, "--json"]);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", said(&ran));
    for trial in json_of(&ran)["trials"].as_array().unwrap() {
        let ledger = &trial["figures"]["ledger"];
        let mut lines = ledger["lines"].as_array().unwrap().iter();
        let wire = lines.find(|line| line["place"] == "wire").unwrap();
        let offered = ledger["offered_packets"].as_u64().unwrap();
        assert!(wire["packets"].as_u64() > Some(offered / 20), "{ledger}");
        // A neighbour's frame may hide a loss.
        let residual = ledger["residual_packets"].as_i64().unwrap();
        assert!(residual.abs() <= 5, "{ledger}");
    }
    site.assert_untouched();
}

#[test]
fn several_senders_send_to_one_receiver_and_one_to_several() {
    needs!(Root, PerNapi, Sshd, Nft);
    let site = Site::of(SshHosts::switched());
    let host = |name: &str, number: u8| {
        format!("[hosts.{name}]\nssh = \"root@box{number}\"\ninterface = \"eth1\"\n")
    };
    for names in [
        ["sender", "sender2", "receiver"],
        ["receiver2", "sender", "receiver"],
    ] {
        // What goes to box2 loses each tenth.
        let numbers = if names[1] == "sender2" {
            [1, 2, 3]
        } else {
            [3, 1, 2]
        };
        let hosts: String = names
            .iter()
            .zip(numbers)
            .map(|(name, number)| host(name, number))
            .collect();
        let file = site.written(&format!("{}{hosts}", two_periods("200ms", 2)));
        let ran = site.run(&["study", "run", &file, "--json"]);
        assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", said(&ran));
        let study = json_of(&ran);
        for trial in study["trials"].as_array().unwrap() {
            let figures = &trial["figures"];
            let ledger = &figures["ledger"];
            // Two senders of 2000 a second, or one to each of two receivers.
            assert!(ledger["offered_packets"].as_u64() > Some(500), "{ledger}");
            assert!(
                ledger["residual_packets"].as_i64().unwrap().abs() <= 5,
                "{ledger}"
            );
            let mut known: Vec<_> = figures["hosts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| &it["host"])
                .collect();
            known.sort_by_key(|name| name.to_string());
            assert_eq!(known.len(), 3, "{known:?}");
        }
        let changed = study["setting_changes"].as_array().unwrap().iter();
        let changed: BTreeSet<_> = changed.map(|one| one["host"].as_str().unwrap()).collect();
        assert!(
            names.iter().all(|name| changed.contains(name)),
            "{changed:?}"
        );
        site.assert_untouched();
    }
    let lone = site.written(&format!(
        "{}{}{}",
        two_periods("100ms", 2),
        PAIR,
        host("sender3", 3)
    ));
    let refused = site.run(&["study", "run", &lone]);
    assert_code(&refused, 2);
    assert_has_all(stderr(&refused), "[hosts.sender3] | [hosts.sender2]");
}

#[test]
fn a_sender_without_nicpoll_sends_by_its_own_iperf() {
    needs!(Root, PerNapi, Sshd, Iperf);
    let site = Site::of(SshHosts::pair());
    let without = "interface = \"eth1\"\nwithout_nicpoll = \"198.18.0.1/24\"";
    let hosts = PAIR.replacen("interface = \"eth1\"", without, 1);
    let tcp = "[[workload]]\nname = \"tcp\"\ntraffic = { kind = \"tcp\" }\n";
    let file = site.written(&format!("{}{tcp}{hosts}", two_periods("1s", 2)));
    let before = site.hosts.host("box1").files();
    let ran = site.run(&["study", "run", &file, "--json"]);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", said(&ran));
    let study = json_of(&ran);
    for trial in study["trials"].as_array().unwrap() {
        let figures = &trial["figures"];
        assert!(
            figures["delivered_bits_per_second"].as_f64() > Some(0.0),
            "{trial}"
        );
        if trial["workload"] == "udp200" {
            let [offered, delivered] = ["offered_packets", "delivered_packets"]
                .map(|name| figures[name].as_i64().unwrap());
            assert!(delivered > 1000, "{trial}");
            // iperf counts its last datagrams in its own way.
            assert!((offered - delivered).abs() < 20, "{trial}");
        }
        let hosts = figures["hosts"].as_array().unwrap();
        let known: Vec<_> = hosts.iter().map(|host| &host["host"]).collect();
        assert_eq!(known, ["receiver"]);
    }
    let system = study["lab"]["hosts"][0]["machine"]["kernel"]
        .as_str()
        .unwrap();
    assert_has(system, "Linux");
    assert_has(study["warnings"].to_string(), "the sender has no nicpoll");
    assert_eq!(site.hosts.host("box1").files(), before);
    site.assert_untouched();
    let text = fs::read_to_string(&file).unwrap();
    let wrong = site.written(&text.replace(
        "name = \"tcp\"\ntraffic = { kind = \"tcp\" }",
        "name = \"rr\"\ntraffic = { kind = \"rr\" }",
    ));
    let refused = site.run(&["study", "run", &wrong]);
    assert_has_all(
        stderr(&refused),
        "has no nicpoll and cannot send rr | --workload udp200",
    );
    let chosen = site.run(&["study", "run", &wrong, "--workload", "udp200", "--dry-run"]);
    assert_code(&chosen, 0);
}

#[test]
fn the_hosts_of_a_ready_study_are_named_by_a_file_of_their_own() {
    needs!(Root, PerNapi, Sshd);
    let site = Site::installed();
    let hosts = site.home.path().join("hosts.toml");
    fs::write(&hosts, PAIR).unwrap();
    let hosts = hosts.display().to_string();
    let planned = site.run(&["study", "run", "period", "--hosts", &hosts, "--dry-run"]);
    assert_code(&planned, 0);
    assert_has_all(stdout(&planned), "root@box1 | root@box2");
    let file = site.written(&two_periods("100ms", 2));
    let ran = site.run(&["study", "run", &file, "--hosts", &hosts, "--json"]);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", said(&ran));
    assert_eq!(json_of(&ran)["trials"].as_array().unwrap().len(), 2 * 2);
    site.assert_untouched();
}

#[test]
fn a_change_at_another_host_is_confirmed_and_undone_there() {
    needs!(Root, PerNapi, Sshd);
    let site = Site::installed();
    let settings = || site.hosts.host("box2").settings();
    let before = settings();
    let at = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        let ran = site.run(&words);
        assert_code(&ran, 0);
        ran
    };
    let set = at("set eth1 --knob gro=on --for 60s --look 0 --host root@box2");
    assert_ne!(settings(), before);
    let confirm = "set eth1 --host root@box2 --confirm";
    assert_has(stderr(&set), confirm);
    at(confirm);
    at("show eth1 --host root@box2");
    at("restore eth1 --host root@box2");
    assert_eq!(settings(), before);
    site.assert_untouched();
}

#[test]
fn a_router_between_two_hosts_is_studied() {
    needs!(Root, PerNapi, Sshd);
    let site = Site::of(SshHosts::routed());
    let text = two_periods("100ms", 2).replace("\nreceiver = ", "\nrouter = ") + ROUTED;
    let ran = site.run(&["study", "run", &site.written(&text), "--json"]);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", said(&ran));
    let study = json_of(&ran);
    for trial in study["trials"].as_array().unwrap() {
        assert!(
            trial["figures"]["delivered_packets"].as_u64() > Some(0),
            "{trial}"
        );
    }
    let changed = study["setting_changes"].as_array().unwrap().iter();
    assert!(changed.filter(|one| one["host"] == "router").count() >= 2);
    site.assert_untouched();
}
