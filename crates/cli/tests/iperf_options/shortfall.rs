//! A test that obtains less than was asked for says so and does not end with 0, whichever way the data
//! flow: the server dies in the middle of it, or was never there.

use crate::common::prelude::*;
use crate::common::serving::Serving;

/// When the server dies, of the four seconds that are asked for.
const LIFE: Duration = Duration::from_secs(1);

/// A client whose server is killed in the middle of the test.
fn bereaved(server_options: &[&str], client_options: &[&str]) -> Output {
    let mut server = Serving::start(server_options);
    let address = server.address;
    thread::scope(|scope| {
        let client = scope.spawn(|| crate::common::serving::client(address, client_options));
        server.await_line("connected with");
        thread::sleep(LIFE);
        server.stop();
        client.join().unwrap()
    })
}

/// Seconds and reason of a line such as "ended after 1.0 of 4.0 s: why", when it is there.
fn shortfall(told: &str) -> Option<(f64, &str)> {
    let mut lines = told.lines();
    let (words, why) = lines.find_map(|line| line.split_once(" of 4.0 s: "))?;
    Some((words.rsplit(' ').next()?.parse().ok()?, why))
}

#[test]
fn a_server_that_dies_is_told_of() {
    needs!(Time);
    let udp = ["-u", "--allow", "127.0.0.0/8"];
    for (server, client) in [
        (&[][..], &["-t", "4"][..]),
        (&[], &["-t", "4", "-R"]),
        (&[], &["-t", "4", "--full-duplex"]),
        (&udp, &["-t", "4", "-u", "-b", "1m"]),
        (&udp, &["-t", "4", "-u", "-b", "1m", "-R"]),
    ] {
        let ended = bereaved(server, client);
        let told = stderr(&ended);
        let (obtained, _) = shortfall(&told).unwrap_or_else(|| panic!("{client:?}: {told}"));
        assert!((0.0..4.0).contains(&obtained), "{client:?}: {told}");
        assert_eq!(ended.status.code(), Some(1), "{client:?}: {told}");
        // What there was is told all the same.
        let text = stdout(&ended);
        assert!(text.contains(" sec "), "{client:?}: {text}");
    }
}

#[test]
fn json_has_the_shortfall_as_an_error() {
    let udp = ["-u", "--allow", "127.0.0.0/8"];
    let options = ["-t", "4", "-u", "-b", "1m", "-R", "--json"];
    let ended = bereaved(&udp, &options);
    let document = json_of(&ended);
    let stream = &document["streams"][0];
    for error in [&document["error"], &stream["error"]] {
        assert!(shortfall(error.as_str().unwrap()).is_some(), "{error}");
    }
    assert!(stream["total"]["bytes"].as_u64().unwrap() > 0);
    assert_eq!(document["end"]["streams_failed"], 1);
    assert_code(&ended, 1);
}

#[test]
fn datagrams_to_a_closed_port_are_no_test() {
    let port = {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.local_addr().unwrap()
    };
    let ended = crate::common::serving::client(port, &["-u", "-b", "1m", "-t", "0.5"]);
    let words = "no datagram got through after 0.0 of 0.5 s: the server's port is closed";
    assert_has(stderr(&ended), words);
    assert_code(&ended, 1);
}

#[test]
fn datagrams_that_nobody_answers_are_no_test() {
    // It takes what comes and says nothing, as a link does that is down.
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = silent.local_addr().unwrap();
    let ended = crate::common::serving::client(address, &["-u", "-b", "1m", "-t", "0.3"]);
    assert_has(stderr(&ended), "what arrived is not known");
    assert_code(&ended, 1);
}

#[test]
fn a_test_that_gets_what_was_asked_for_ends_well() {
    let mut server = Serving::start(&["-u", "--allow", "127.0.0.0/8"]);
    for options in [
        &["-u", "-b", "1m", "-t", "0.5"][..],
        &["-u", "-b", "1m", "-t", "0.5", "-R"],
    ] {
        let ended = crate::common::serving::client(server.address, options);
        let told = stderr(&ended);
        assert_eq!(ended.status.code(), Some(0), "{options:?}: {told}");
        assert!(!told.contains("ended after"), "{told}");
    }
    server.stop();
}

#[test]
fn requests_that_are_not_answered_any_more_are_told_of() {
    let rr = |args: &[&str]| {
        let mut command = Command::new(NICPOLL);
        command.arg("rr").args(args);
        command
    };
    let port = free_port();
    let at = format!("127.0.0.1:{port}");
    let bind = ["-s", "-B", "127.0.0.1", "-p", &port];
    for protocol in [&["-u"][..], &[]] {
        let mut server = rr(&bind)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(&at).is_err() {
            assert!(Instant::now() < deadline, "no server listens at {at}");
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(Duration::from_millis(300));
        let ended = thread::scope(|scope| {
            let client = ["-c", "127.0.0.1", "-p", &port, "-t", "4s", "--json"];
            let mut client = rr(&[&client[..], protocol].concat());
            let client = scope.spawn(move || client.output().unwrap());
            thread::sleep(LIFE);
            server.kill().unwrap();
            server.wait().unwrap();
            client.join().unwrap()
        });
        let document = json_of(&ended);
        let error = document["error"].as_str().unwrap_or_default();
        assert!(shortfall(error).is_some(), "{protocol:?}: {error}");
        assert_code(&ended, 1);
    }
}
