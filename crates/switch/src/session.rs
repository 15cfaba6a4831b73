//! Whether the caller came over ssh, and by which of this machine's addresses: a change of the interface
//! that has it can cut the caller off.

use std::fs;
use std::net::IpAddr;

/// Set by sshd: the client's address and port, then this machine's.
const VARIABLE: &str = "SSH_CONNECTION";
/// More ancestors than a shell under sudo under ssh has.
const ANCESTORS_MAX: u32 = 32;

/// Where the client's address stands among the words of the variable.
const CLIENT: usize = 0;
/// Where this machine's does.
const SERVER: usize = 2;

/// This machine's address in the ssh connection that the caller came by.
pub fn own_address() -> Option<IpAddr> {
    address(&connection()?, SERVER)
}

/// The address of the host that the caller came from by ssh.
pub fn client_address() -> Option<IpAddr> {
    address(&connection()?, CLIENT)
}

fn connection() -> Option<String> {
    if let Ok(connection) = std::env::var(VARIABLE) {
        return Some(connection);
    }
    // sudo takes the variable away; the shell above it still has it.
    let mut pid = rustix::process::getppid()?.as_raw_nonzero().get() as u32;
    for _ in 0..ANCESTORS_MAX {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        if let Some(connection) = variable(&environment) {
            return Some(connection);
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        pid = parent(&stat).filter(|&parent| parent > 1)?;
    }
    None
}

fn variable(environment: &[u8]) -> Option<String> {
    environment
        .split(|&byte| byte == 0)
        .filter_map(|entry| std::str::from_utf8(entry).ok())
        .find_map(|entry| entry.strip_prefix(VARIABLE)?.strip_prefix('='))
        .map(String::from)
}

fn address(connection: &str, word: usize) -> Option<IpAddr> {
    let address = connection.split_whitespace().nth(word)?;
    // A link-local address comes with its interface after a percent sign.
    let address = address.split('%').next()?;
    let address: IpAddr = address.parse().ok()?;
    Some(address.to_canonical())
}

/// Field 4 of `/proc/PID/stat`; the command's name before it may hold anything.
fn parent(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_word_is_this_machine() {
        let of = |text, word| address(text, word).map(|address| address.to_string());
        let connection = "203.0.113.9 50000 198.51.100.7 22";
        assert_eq!(of(connection, SERVER).as_deref(), Some("198.51.100.7"));
        assert_eq!(of(connection, CLIENT).as_deref(), Some("203.0.113.9"));
        let address = |text| of(text, SERVER);
        assert_eq!(
            address("fe80::1%eth0 50000 fe80::2%eth0 22").as_deref(),
            Some("fe80::2")
        );
        assert_eq!(
            address("::ffff:203.0.113.9 1 ::ffff:198.51.100.7 22").as_deref(),
            Some("198.51.100.7")
        );
        for wrong in ["", "203.0.113.9 50000", "a b c d"] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_hostile_command_name_does_not_shift_the_parent() {
        assert_eq!(parent("7 (a) S 1 2) R 41 1 1 0"), Some(41));
        assert_eq!(parent("7 (a"), None);
    }

    #[test]
    fn the_variable_is_found_by_its_whole_name() {
        let environment = b"A=1\0XSSH_CONNECTION=no\0SSH_CONNECTION=1.2.3.4 5 6.7.8.9 22\0";
        assert_eq!(
            variable(environment).as_deref(),
            Some("1.2.3.4 5 6.7.8.9 22")
        );
        assert_eq!(variable(b"SSH_CONNECTIONS=1\0"), None);
    }
}
