//! A FreeBSD host: runs commands through the system's ssh(1), reads the host's state, and checks whether an interface
//! can poll.
//!
//! ssh never asks for a password, gives up on an unreachable host, and its output is read up to a limit.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;

use super::output::{Capabilities, Polling, parse_hz, parse_interface, parse_polling, parse_uname};
use super::target::FreebsdTarget;
use crate::error::SwitchError;
use crate::knob::ValueError;

/// The least clock rate that polling(4) recommends, in ticks per second.
pub const HZ_ADVISED: u32 = 1000;

/// The drivers that polling(4) lists; `em` and `igb` in older releases only.
const DRIVERS: [&str; 19] = [
    "bge", "dc", "em", "fwe", "fwip", "fxp", "igb", "ixgb", "nfe", "nge", "re", "rl", "sf", "sis",
    "ste", "stge", "vge", "vr", "xl",
];
/// sysctl(8)'s messages about an unknown name: the present one, and the one of FreeBSD 6 to 9.
const NO_SUCH_NAME: [&str; 2] = ["unknown oid", "is invalid"];

/// More bytes than any of the commands prints or /etc/rc.conf holds.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// ssh's own exit code if it cannot reach the host or log in.
const EXIT_NOT_REACHED: i32 = 255;
const SSH_OPTIONS: [&str; 4] = [
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
];

/// Returns the command that logs in at a host by the system's ssh(1), without asking for a password. The command to run
/// there is its next argument.
pub fn ssh_command(host: &str) -> Command {
    let mut ssh = Command::new("ssh");
    ssh.args(SSH_OPTIONS.iter().flat_map(|option| ["-o", option]));
    ssh.args(["-T", "--", host]);
    ssh
}

/// A host that reports FreeBSD as its system.
#[derive(Clone, Debug)]
pub struct FreebsdHost {
    /// Its name for ssh.
    pub(crate) name: String,
}

/// The state of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Clock rate, in ticks per second.
    pub hz: u32,
    /// kern.polling.
    pub polling: Polling,
    /// The interface's polling.
    pub interface: Capabilities,
}

impl FreebsdHost {
    /// Connects to the host of a target and checks its system.
    ///
    /// # Errors
    /// When the host cannot be reached or does not run FreeBSD.
    pub fn reach(target: &FreebsdTarget) -> Result<FreebsdHost, SwitchError> {
        let host = FreebsdHost {
            name: String::from(target.host()),
        };
        let system = host.read("uname -s", |text| parse_uname(text).map(String::from))?;
        let advice = match system.as_str() {
            "FreeBSD" => return Ok(host),
            "Linux" => "; run nicpoll on that host instead: nicpoll set IF polling",
            _ => "",
        };
        Err(SwitchError::Failed(format!(
            "{} runs {system}, not FreeBSD{advice}",
            host.name
        )))
    }

    /// Reads kern.polling, the clock rate and an interface's capabilities.
    ///
    /// # Errors
    /// [`SwitchError::Missing`] if the kernel was built without polling.
    pub fn survey(&self, interface: &str) -> Result<Survey, SwitchError> {
        let polling = self.polling()?;
        let hz = self.read("sysctl kern.clockrate", parse_hz)?;
        let command = format!("ifconfig -m {interface}");
        let interface = self.read(&command, |text| parse_interface(text, interface))?;
        Ok(Survey {
            hz,
            polling,
            interface,
        })
    }

    fn polling(&self) -> Result<Polling, SwitchError> {
        let polling = self.read("sysctl kern.polling", parse_polling);
        polling.map_err(|error| {
            let said = error.to_string();
            if !NO_SUCH_NAME.iter().any(|words| said.contains(words)) {
                return error;
            }
            SwitchError::Missing(format!(
                "the kernel of {} has no kern.polling: it was built without DEVICE_POLLING. Build one with the \
                 lines 'options DEVICE_POLLING' and 'options HZ=1000' in its configuration (cd /usr/src && make \
                 buildkernel installkernel KERNCONF=NAME), boot it, and repeat the command",
                self.name
            ))
        })
    }

    fn read<T>(
        &self,
        command: &str,
        parse: impl Fn(&str) -> Result<T, ValueError>,
    ) -> Result<T, SwitchError> {
        let read = parse(&self.run(command, "")?);
        read.map_err(|error| SwitchError::Failed(format!("'{command}' on {}: {error}", self.name)))
    }

    /// Runs a command with `input` on its stdin, and returns its output.
    pub(crate) fn run(&self, command: &str, input: &str) -> Result<String, SwitchError> {
        let host = &self.name;
        let mut ssh = ssh_command(host);
        ssh.arg(command);
        ssh.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut run = || {
            let mut child = ssh.spawn()?;
            let (output, said) = exchange(&mut child, input)?;
            Ok((output, said, child.wait()?.code()))
        };
        let (output, said, code) =
            run().map_err(SwitchError::of_io("running ssh; is it installed?"))?;
        let said = String::from_utf8_lossy(&said).trim().replace('\n', "; ");
        let why = match code {
            // First: a command whose output is cut off fails, too.
            _ if output.len() as u64 > OUTPUT_BYTES_MAX => format!(
                "'{command}' on {host} printed more than {OUTPUT_BYTES_MAX} bytes; see what it prints: ssh {host} {command}"
            ),
            Some(0) => return Ok(String::from_utf8_lossy(&output).into_owned()),
            Some(EXIT_NOT_REACHED) => format!(
                "ssh cannot reach {host}: {said}. It must log in without a password: ssh -o BatchMode=yes {host} true"
            ),
            code => format!(
                "'{command}' failed on {host} (exit code {}): {said}. Changing an interface takes root there",
                code.unwrap_or(-1)
            ),
        };
        Err(SwitchError::Failed(why))
    }
}

impl Survey {
    /// Checks that the interface can poll.
    ///
    /// # Errors
    /// When it cannot; the message says what polling(4) lists.
    pub fn check(&self, target: &FreebsdTarget) -> Result<(), SwitchError> {
        if self.interface.can_poll {
            return Ok(());
        }
        let driver = target.driver();
        let why = if DRIVERS.contains(&driver) {
            format!("polling(4) has listed {driver}, so it could in other releases of FreeBSD")
        } else {
            format!("polling(4) lists {}; not {driver}", DRIVERS.join(", "))
        };
        Err(SwitchError::Failed(format!(
            "{target} cannot poll: 'ifconfig -m' shows no POLLING among its capabilities. {why}"
        )))
    }
}

/// Writes the input and reads both outputs up to the limit at the same time: no pipe fills up.
fn exchange(child: &mut Child, input: &str) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let stdin = child.stdin.take();
    let stderr = child.stderr.take();
    let stdout = child.stdout.take();
    thread::scope(|scope| {
        let said = scope.spawn(move || bounded(stderr));
        let writer = scope.spawn(move || match stdin {
            // The exit code judges a command that does not read all of its input.
            Some(mut stdin) => stdin
                .write_all(input.as_bytes())
                .or_else(ignore_broken_pipe),
            None => Ok(()),
        });
        let output = bounded(stdout)?;
        let panicked = |_| io::Error::other("a thread that talks to ssh panicked");
        writer.join().map_err(panicked)??;
        Ok((output, said.join().map_err(panicked)??))
    })
}

/// Reads at most one byte past the limit; closing the pipe drops the rest.
fn bounded(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn ignore_broken_pipe(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    }
}
