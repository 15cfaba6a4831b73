//! Our servers on loopback, as separate programs.

use super::prelude::*;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

/// Runs our client to its end.
pub fn client(server: SocketAddr, more: &[&str]) -> Output {
    let line = format!("iperf -c 127.0.0.1 -p {}", server.port());
    nicpoll(words(&line)).args(more).output().unwrap()
}

/// Returns a line of a program's status, in KiB.
pub fn status(child: &Child, name: &str) -> u64 {
    let path = format!("/proc/{}/status", child.id());
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Limits a resource of a program, until [`unlimit`].
pub fn limit(child: &Child, resource: Resource, current: u64) {
    let limit = Rlimit {
        current: Some(current),
        ..getrlimit(resource)
    };
    prlimit(Some(Pid::from_child(child)), resource, limit).unwrap();
}

/// Raises a program's limit to the test's own.
pub fn unlimit(child: &Child, resource: Resource) {
    prlimit(Some(Pid::from_child(child)), resource, getrlimit(resource)).unwrap();
}

/// Returns whether a server closes a silent connection before its timeout.
pub fn is_closed(stream: &TcpStream) -> bool {
    let mut stream = stream;
    stream
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    match stream.read(&mut [0; 8]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

/// A server that listens, until it is dropped.
pub struct Serving {
    child: Child,
    printed: mpsc::Receiver<String>,
    pub address: SocketAddr,
}

impl Serving {
    pub fn start(options: &[&str]) -> Self {
        let port = nicpoll_testkit::free_ports(1);
        let line = format!("iperf -s -B 127.0.0.1 -p {port}");
        let mut child = nicpoll(words(&line)).args(options).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        read_until_it_listens(&mut lines);
        // All output is read: the server must never block while printing.
        let (told, printed) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let _ = told.send(line);
            }
        });
        Serving {
            child,
            printed,
            address: (Ipv4Addr::LOCALHOST, port).into(),
        }
    }

    /// Waits until the server has printed a line with this.
    pub fn await_line(&self, part: &str) {
        while !self.printed.recv().unwrap().contains(part) {}
    }

    /// Returns a line of the server's status, in KiB.
    pub fn status(&self, name: &str) -> u64 {
        status(&self.child, name)
    }

    /// Limits a resource of the server, until [`unlimit`](Self::unlimit).
    pub fn limit(&self, resource: Resource, current: u64) {
        limit(&self.child, resource, current);
    }

    /// Raises the server's limit to the test's own.
    pub fn unlimit(&self, resource: Resource) {
        unlimit(&self.child, resource);
    }

    /// Returns whether the server ends by itself within this time.
    pub fn has_ended_within(&mut self, time: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < time {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Ends the server; returns its standard error.
    pub fn stop(&mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::KILL).unwrap();
        let mut text = String::new();
        let mut told = self.child.stderr.take().unwrap();
        told.read_to_string(&mut text).unwrap();
        self.child.wait().unwrap();
        text
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
