//! A confined process has no rights, and only its answer or a plain error comes back.

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{TcpStream, UdpSocket};
use std::process::Command;

use nicpoll_sys::program::confined::{Confined, ConfinedError, MEMORY_MAX_BYTES};

fn answer<T>(
    open: impl FnOnce() -> T,
    work: impl FnOnce(T) -> Vec<u8>,
) -> Result<Vec<u8>, ConfinedError> {
    Confined::start(Some(20), open, work).unwrap().answer()
}

fn said(work: impl FnOnce() -> String) -> String {
    String::from_utf8(answer(|| (), |()| work().into_bytes()).unwrap()).unwrap()
}

fn main() {
    has_no_rights();
    reads_what_was_opened_before();
    ends_alone();
    println!("test confined ... ok");
}

fn has_no_rights() {
    let status = said(|| fs::read_to_string("/proc/self/status").unwrap());
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().to_owned()
    };
    for set in ["CapPrm:", "CapEff:", "CapInh:", "CapAmb:"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("Seccomp:"), "2", "a filter");
    let ids = field("Uid:");
    assert!(ids.split_whitespace().all(|id| id != "0"), "{ids}");
    assert!(field("Groups:").split_whitespace().all(|id| id != "0"));

    let tries = said(|| {
        let word = |what: &str, tried: io::Result<()>| match tried {
            Ok(()) => format!("{what} succeeded\n"),
            Err(error) => format!("{what} {:?}\n", error.kind()),
        };
        let folder = std::env::temp_dir().join("nicpoll-confined-test");
        [
            word("shadow", File::open("/etc/shadow").map(drop)),
            word("passwd", File::open("/etc/passwd").map(drop)),
            word("write", fs::write(folder, b"x")),
            word("udp", UdpSocket::bind("127.0.0.1:0").map(drop)),
            word("tcp", TcpStream::connect("127.0.0.1:9").map(drop)),
            word("program", Command::new("/bin/true").status().map(drop)),
            word("process", fs::read("/proc/1/environ").map(drop)),
        ]
        .concat()
    });
    assert_eq!(tries.matches("PermissionDenied").count(), 7, "{tries}");
    let again = said(|| match Confined::start(None, || (), |()| Vec::new()) {
        Ok(_) => String::from("made"),
        Err(error) => format!("{:?}", error.kind()),
    });
    assert_eq!(again, "PermissionDenied", "a process");
}

fn reads_what_was_opened_before() {
    let open = || File::open("/etc/passwd").unwrap();
    let read = |mut file: File| {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    };
    assert_eq!(
        answer(open, read).unwrap(),
        fs::read("/etc/passwd").unwrap()
    );
    let long = answer(|| (), |()| vec![7; 40 << 20]).unwrap();
    assert!(long.len() == 40 << 20 && long.iter().all(|byte| *byte == 7));
}

fn ends_alone() {
    let panic = answer(|| (), |()| panic!("line {} \u{202e}", 7)).unwrap_err();
    assert!(matches!(&panic, ConfinedError::Panicked(words) if words == "line 7 \u{202e}"));
    let huge = answer(|| (), |()| vec![1; MEMORY_MAX_BYTES as usize + 1]).unwrap_err();
    assert!(matches!(huge, ConfinedError::Ended { signal: 6 }), "{huge}");
    assert!(
        huge.to_string().ends_with("it may use 2048 MiB of memory"),
        "{huge}"
    );
    let busy = Confined::start(
        Some(1),
        || (),
        |()| loop {
            std::hint::spin_loop();
        },
    );
    let busy = busy.unwrap().answer().unwrap_err();
    assert!(
        matches!(busy, ConfinedError::Ended { signal: 9 | 24 }),
        "{busy}"
    );
    // Dropping the value ends the process.
    let sleeping = Confined::start(
        None,
        || (),
        |()| {
            std::thread::sleep(std::time::Duration::from_secs(60));
            Vec::new()
        },
    );
    drop(sleeping.unwrap());
}
