//! Helpers of the test programs: running nicpoll and checking its output, and the namespaces, servers and terminals
//! for it. Start with `run`.
// Each test program uses a part of it.
#![allow(dead_code)]

pub mod run;
pub mod running;
pub mod schema;
pub mod serving;
pub mod stage;
pub mod story;
pub mod switched;
pub mod terminal;

/// Names that nearly every test uses.
#[allow(unused_imports)]
pub mod prelude {
    pub use std::collections::{BTreeMap, BTreeSet};
    pub use std::fs;
    pub use std::io::{BufRead, BufReader, Read, Write};
    pub use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
    pub use std::path::{Path, PathBuf};
    pub use std::process::{Child, ChildStdout, Command, Output, Stdio};
    pub use std::sync::atomic::{AtomicBool, Ordering};
    pub use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
    pub use std::thread;
    pub use std::time::{Duration, Instant};

    pub use nicpoll_lab::Veth;
    pub use nicpoll_model::Side;
    pub use nicpoll_observe::{HostCounters, HostSnapshot};
    pub use nicpoll_sys::netns::NetnsThread;
    pub use nicpoll_testkit::{
        Need, assert_has, free_port, free_ports, needs, shell, skip, test_name, without_bpf,
    };
    pub use rustix::process::{Pid, Signal, kill_process};
    pub use serde_json::{Value, json};
    pub use tempfile::TempDir;

    pub use super::run::*;
    pub use super::running::Running;
    pub use super::schema::{assert_described, validator};
    pub use super::stage::{Stage, host_state, in_use, namespaces_of};
    pub use super::story::{Scene, play};
    pub use super::switched::{Dump, Switched};
}
