//! Which programs have to do with the traffic of a network namespace.
//!
//! On a machine at work all traffic belongs to programs that nicpoll did not start. A thread counts as the
//! traffic's when its process has a socket of the namespace, or when it is one of the kernel's that receive
//! packets. All others are foreign, and so is nicpoll itself: a compiler or a backup beside the traffic must not
//! blur what the traffic costs.
//!
//! What must hold: a program that comes and goes between two looks is foreign, since nobody has seen its sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use nicpoll_observe::{TaskTimes, ThreadTimes};

use crate::foreign::KERNEL_RECEIVERS;

/// Tables of sockets, with the column of each in which the inode number stands.
const TABLES: [(&str, usize); 7] = [
    ("tcp", 9),
    ("tcp6", 9),
    ("udp", 9),
    ("udp6", 9),
    ("raw", 9),
    ("raw6", 9),
    ("packet", 8),
];

/// Processes with a socket of the calling thread's namespace, by number.
pub fn with_sockets() -> BTreeSet<u32> {
    let mut sockets = BTreeSet::new();
    for (table, column) in TABLES {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
        sockets.extend(inodes(&text.unwrap_or_default(), column));
    }
    let mut found = BTreeSet::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if has_one_of(&process.path().join("fd"), &sockets) {
            found.insert(pid);
        }
    }
    found
}

fn inodes(table: &str, column: usize) -> impl Iterator<Item = u64> {
    let lines = table.lines().skip(1);
    lines.filter_map(move |line| line.split_ascii_whitespace().nth(column)?.parse().ok())
}

fn has_one_of(descriptors: &Path, sockets: &BTreeSet<u64>) -> bool {
    let mut all = fs::read_dir(descriptors).into_iter().flatten().flatten();
    all.any(|descriptor| {
        let link = fs::read_link(descriptor.path()).unwrap_or_default();
        let inode = link.to_str().and_then(|link| {
            let number = link.strip_prefix("socket:[")?.strip_suffix(']')?;
            number.parse().ok()
        });
        inode.is_some_and(|inode| sockets.contains(&inode))
    })
}

/// Whether a thread is one of the kernel's that receive packets.
pub fn is_receiver(thread: &ThreadTimes) -> bool {
    let mut names = KERNEL_RECEIVERS.iter();
    names.any(|name| thread.name.starts_with(name))
}

/// What foreign threads used between two lists of all. `own` is this process, `of_traffic` are those with
/// sockets; without it only `own` is foreign.
pub fn foreign_time(
    before: &[ThreadTimes],
    after: &[ThreadTimes],
    own: u32,
    of_traffic: Option<&BTreeSet<u32>>,
) -> TaskTimes {
    let before: BTreeMap<u32, TaskTimes> = before
        .iter()
        .map(|thread| (thread.tid, thread.times))
        .collect();
    let is_foreign = |thread: &&ThreadTimes| {
        let is_of_traffic = of_traffic.is_none_or(|pids| pids.contains(&thread.pid));
        thread.pid == own || !is_receiver(thread) && !is_of_traffic
    };
    let used = |thread: &ThreadTimes| {
        let then = before.get(&thread.tid).copied().unwrap_or_default();
        let now = thread.times;
        TaskTimes {
            user_ns: now.user_ns.saturating_sub(then.user_ns),
            nice_ns: now.nice_ns.saturating_sub(then.nice_ns),
            system_ns: now.system_ns.saturating_sub(then.system_ns),
        }
    };
    let foreign = after.iter().filter(is_foreign).map(used);
    foreign.fold(TaskTimes::default(), TaskTimes::plus)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    fn thread(tid: u32, pid: u32, name: &str, system_ns: u64) -> ThreadTimes {
        ThreadTimes {
            tid,
            pid,
            name: String::from(name),
            times: TaskTimes {
                system_ns,
                ..TaskTimes::default()
            },
            slices: 1,
        }
    }

    #[test]
    fn a_process_with_a_socket_is_found() {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        assert!(with_sockets().contains(&std::process::id()));
        drop(socket);
    }

    #[test]
    fn threads_without_sockets_and_this_program_are_foreign() {
        let threads = |ns: u64| {
            [
                thread(1, 1, "nicpoll", ns),
                thread(2, 2, "server", 10 * ns),
                thread(3, 3, "cc1", 100 * ns),
                thread(4, 4, "ksoftirqd/0", 1_000 * ns),
                thread(5, 5, "kworker/0:1", 10_000 * ns),
            ]
        };
        let foreign = |of_traffic: Option<&BTreeSet<u32>>| {
            foreign_time(&threads(1), &threads(3), 1, of_traffic).system_ns
        };
        assert_eq!(foreign(Some(&BTreeSet::from([1, 2]))), 2 * 10_101);
        assert_eq!(foreign(None), 2);
    }

    #[test]
    fn the_inode_is_the_tenth_column_of_tcp() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000   105        0 23456 1 0 100\n";
        assert_eq!(inodes(table, 9).collect::<Vec<_>>(), [23_456]);
    }
}
