//! The place of `nicpoll set`'s tests: a veth pair between two named namespaces, and all its readable values.

use super::prelude::*;
use nicpoll_lab::{INTERFACE, Lab};
use nicpoll_switch::knob::table;
use nicpoll_switch::{Control, Journal, Kernel, Owner, ScopedKnob, Target, Value};
use nicpoll_sys::netns;
use std::cell::RefCell;

/// All readable values of both ends.
pub type Dump = BTreeMap<String, String>;

/// A pair whose far end sends; all commands go to the near end.
pub struct Switched {
    pub lab: RefCell<Lab>,
    pub veth: Arc<Veth>,
    pub home: tempfile::TempDir,
    names: Vec<PathBuf>,
    /// The guard of a change, once a story has asked for it.
    guard: Option<Owner>,
    _alone: MutexGuard<'static, ()>,
}

impl Switched {
    pub fn new() -> Self {
        let alone = alone();
        let home = tempfile::tempdir().unwrap();
        let veth = Arc::new(Veth::build().unwrap());
        let lab = Lab::local(
            veth.link(),
            &Journal::at(home.path().join("lab")),
            Owner::this_process().unwrap(),
        )
        .unwrap();
        let names = [Side::Sender, Side::Receiver].map(|side| {
            let namespace = veth.namespace(side);
            let name = format!("nicpoll-test-{}", namespace.inode());
            namespace.keep_as(&name).unwrap()
        });
        Switched {
            lab: RefCell::new(lab),
            veth,
            home,
            names: names.to_vec(),
            guard: None,
            _alone: alone,
        }
    }

    /// Returns the name of the near end's namespace.
    pub fn netns(&self) -> String {
        self.name(1)
    }

    /// Returns the name of the far end's namespace.
    pub fn far_netns(&self) -> String {
        self.name(0)
    }

    fn name(&self, end: usize) -> String {
        let name = self.names[end].file_name().unwrap();
        name.to_string_lossy().into_owned()
    }

    pub fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    pub fn journal(&self) -> Journal {
        Journal::at(self.state())
    }

    /// Makes the command of a line, with the namespace added.
    pub fn command(&self, line: &str) -> Command {
        let mut command = nicpoll(line.split(' '));
        if line != "restore" && !line.starts_with("study") {
            command.args(["--netns", &self.netns()]);
        }
        command.env("NICPOLL_STATE_DIR", self.state());
        command.env("XDG_DATA_HOME", self.home.path());
        command.env_remove("SSH_CONNECTION");
        command
    }

    /// Makes the command of a program inside the near end's namespace, as a unit runs it at boot.
    pub fn inside(&self, program: &Path, line: &str) -> Command {
        let netns = self.netns();
        let mut command = kept("ip", ["netns", "exec", &netns]);
        command.arg(program).args(line.split(' '));
        command.env("NICPOLL_STATE_DIR", self.state());
        command
    }

    pub fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs a command that must succeed, and returns both outputs.
    pub fn done(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", said(&output));
        said(&output)
    }

    /// Runs a command that must be refused, and returns the reason.
    pub fn refused(&self, line: &str, code: i32) -> String {
        let output = self.run(line);
        let is_code = output.status.code() == Some(code);
        assert!(is_code, "{line}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{line}: {}", said(&output));
        said(&output)
    }

    pub fn start(&self, line: &str) -> Child {
        self.command(line).spawn().unwrap()
    }

    /// Reads all values of both ends, without ids and counters.
    pub fn dump(&self) -> Dump {
        let mut dump = self.lab.borrow_mut().settings().unwrap();
        for value in dump.values_mut() {
            // Ids come and go with the instances.
            *value = without(value, "id: ");
            *value = without(value, "thread_pid: ");
        }
        let sysctls = fs::read_dir("/proc/sys/net/core").unwrap().flatten();
        for path in sysctls.map(|file| file.path()) {
            if let Ok(value) = fs::read_to_string(&path) {
                dump.insert(path.display().to_string(), value);
            }
        }
        let is_history = |name: &str| {
            ["carrier_changes", "_count", "name_assign_type"]
                .iter()
                .any(|end| name.ends_with(end))
        };
        dump.retain(|name, _| !is_history(name));
        dump
    }

    /// Works inside the near end's namespace, in a thread that sees it under `/sys`.
    pub fn near<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Control, &Target) -> T + Send + 'static,
    ) -> T {
        let inode = self.veth.namespace(Side::Receiver).inode();
        self.veth
            .inside(Side::Receiver)
            .run(move |()| {
                let mut control = Control::new();
                let interface = control.interface(INTERFACE).unwrap();
                let target = Target {
                    netns_inode: inode,
                    interface,
                };
                job(&mut control, &target)
            })
            .unwrap()
    }

    /// Makes an administrator's settings: GRO on, a driver's deferral, and one instance with other values.
    pub fn set_up_by_hand(&self) {
        self.near(|control, target| {
            let mut write = |knob: ScopedKnob, value: u64| {
                control.write(target, &knob, &Value::Number(value)).unwrap();
            };
            write(ScopedKnob::of_feature("rx-gro").unwrap(), 1);
            write(ScopedKnob::of_interface(&table::DEFER_HARD_IRQS), 1);
            write(ScopedKnob::of_interface(&table::GRO_FLUSH_TIMEOUT), 20_000);
            let id = control.napis(target.interface.ifindex).unwrap()[0].id;
            for (knob, value) in [
                (ScopedKnob::of_napi(&table::DEFER_HARD_IRQS, id), 7),
                (
                    ScopedKnob::of_napi(&table::GRO_FLUSH_TIMEOUT, id),
                    3_000_000,
                ),
                (
                    ScopedKnob::of_napi(&table::IRQ_SUSPEND_TIMEOUT, id),
                    11_000_000,
                ),
            ] {
                control.write(target, &knob, &Value::Number(value)).unwrap();
            }
        });
    }

    /// Changes the interface's timeout, as another program would.
    pub fn write_timeout(&self, ns: u64) {
        self.near(move |control, target| {
            let knob = ScopedKnob::of_interface(&table::GRO_FLUSH_TIMEOUT);
            control.write(target, &knob, &Value::Number(ns)).unwrap();
        });
    }

    /// Returns the guard of the change in force.
    pub fn guard_in_force(&self) -> Owner {
        let records = self.journal().records().unwrap().into_iter();
        let mut attempts = records.filter_map(|(_, record)| record.unwrap().attempt);
        attempts.next().unwrap().owner
    }

    /// Fails with the differing values unless everything is as it was and no record is left.
    #[track_caller]
    pub fn assert_restored(&self, before: &Dump) {
        assert_same(&self.dump(), before, "everything was put back");
        assert!(self.is_clean());
    }

    /// Runs ip(8) inside the near end's namespace, once for each line between `; `.
    pub fn ip(&self, lines: &str) {
        lines.split("; ").for_each(|line| self.ip_once(line));
    }

    fn ip_once(&self, line: &str) {
        let line = format!("-n {} {line}", self.netns());
        let output = kept("ip", words(&line)).output();
        let output = output.expect("ip(8) is needed by this test");
        assert!(output.status.success(), "ip {line}: {}", said(&output));
    }

    /// Runs `work` while datagrams come from the far end.
    pub fn under_traffic<T>(&self, work: impl FnOnce() -> T) -> T {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        let sending = self
            .veth
            .inside(Side::Sender)
            .spawn_pinned(0, "test", move || {
                let socket = UdpSocket::bind("198.18.0.1:0").unwrap();
                while !asked.load(Ordering::Relaxed) {
                    // Fails now and then, because nobody listens.
                    let _ = socket.send_to(b"one of many", "198.18.0.2:9");
                    thread::sleep(Duration::from_micros(200));
                }
            });
        let result = work();
        stop.store(true, Ordering::Relaxed);
        sending.unwrap().join().unwrap().unwrap();
        result
    }

    pub fn is_clean(&self) -> bool {
        !self.state().exists()
    }
}

/// `NETNS` is the near end's namespace, `FAR-NETNS` the other, `NAPI-ID` the id of its first instance. `traffic LINE` runs a
/// line while datagrams come, `ssh ADDRESS LINE` for a caller who came by ssh to that address. Its own steps:
/// - `ip LINE; LINE`: by ip(8) at the near end
/// - `by-hand`: an administrator's own settings
/// - `timeout NS`: somebody else writes the interface's timeout
/// - `value NAME = TEXT`: what can be read at the near end has this text
/// - `guard`, `guard-ends`, `guard-gets SIGNAL`, `own-session`: the guard of the change in force
/// - `records N`: so many interfaces are recorded
impl Scene for Switched {
    type State = Dump;

    fn begin() -> Self {
        Switched::new()
    }

    fn run(&self, line: &str) -> Output {
        if let Some(line) = line.strip_prefix("traffic ") {
            return self.under_traffic(|| {
                thread::sleep(Duration::from_millis(50));
                Switched::run(self, line)
            });
        }
        match line
            .strip_prefix("ssh ")
            .and_then(|ssh| ssh.split_once(' '))
        {
            Some((server, line)) => {
                let mut command = self.command(line);
                command.env("SSH_CONNECTION", format!("198.18.0.1 50000 {server} 22"));
                command.output().unwrap()
            }
            None => Switched::run(self, line),
        }
    }

    fn state(&self) -> Dump {
        self.dump()
    }

    fn assert_same(&self, before: &Dump, at: &str) {
        assert_same(&self.dump(), before, at);
    }

    fn has_no_record(&self) -> bool {
        self.is_clean()
    }

    fn filled(&self, line: &str) -> String {
        let line = line.replace("FAR-NETNS", &self.far_netns());
        let mut line = line.replace("NETNS", &self.netns());
        if line.contains("NAPI-ID") {
            let list = |control: &mut Control, target: &Target| {
                control.napis(target.interface.ifindex).unwrap()[0].id
            };
            line = line.replace("NAPI-ID", &self.near(list).to_string());
        }
        line
    }

    fn step(&mut self, verb: &str, rest: &str) {
        let own_guard = |pair: &Self| pair.guard.expect("the story has asked for its guard");
        match verb {
            "ip" => self.ip(rest),
            "by-hand" => self.set_up_by_hand(),
            "timeout" => self.write_timeout(rest.parse().unwrap()),
            "value" => {
                let (name, text) = rest.split_once(" = ").unwrap();
                let dump = self.dump();
                let value = &dump[&format!("receiver: {name}")];
                assert!(value.contains(text), "{rest}: {value}");
            }
            "records" => assert_eq!(self.journal().paths().unwrap().len().to_string(), rest),
            "guard" => self.guard = Some(self.guard_in_force()),
            "guard-ends" => {
                let guard = own_guard(self);
                wait_until("the guard has ended", || !guard.is_alive().unwrap());
            }
            // It has a session of its own, so no terminal ends it.
            "own-session" => {
                let pid = own_guard(self).pid;
                let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
                let (_, fields) = stat.rsplit_once(')').unwrap();
                let session = fields.split_ascii_whitespace().nth(3).unwrap();
                assert_eq!(session, pid.to_string());
            }
            "guard-gets" => {
                let pid = Pid::from_raw(own_guard(self).pid as i32).unwrap();
                let signal = match rest {
                    "TERM" => Signal::TERM,
                    _ => Signal::KILL,
                };
                kill_process(pid, signal).unwrap();
            }
            _ => panic!("no such step: {verb} {rest}"),
        }
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = netns::forget(name);
        }
    }
}

/// Removes the word after `name` from `text`.
fn without(text: &str, name: &str) -> String {
    let Some((before, after)) = text.split_once(name) else {
        return String::from(text);
    };
    let rest = after.find([',', '}']).map_or("", |end| &after[end..]);
    format!("{before}{rest}")
}

/// Fails with the differing values.
#[track_caller]
pub fn assert_same(now: &Dump, before: &Dump, after_what: &str) {
    let names = now.keys().chain(before.keys());
    let differing: Vec<String> = names
        .filter(|name| now.get(*name) != before.get(*name))
        .map(|name| format!("{name}: {:?} -> {:?}", before.get(name), now.get(name)))
        .collect();
    assert_eq!(differing, Vec::<String>::new(), "after {after_what}");
}
