//! What a host is and does now, and whether an interface of it can poll.

use super::error::FreebsdError;
use super::output::{
    Capabilities, OutputError, Polling, parse_hz, parse_interface, parse_polling, parse_uname,
};
use super::ssh::Ssh;
use super::target::FreebsdTarget;

/// Ticks a second that polling(4) recommends at least.
pub const HZ_ADVISED: u32 = 1000;

/// The drivers that polling(4) lists; `em` and `igb` in older releases only.
const DRIVERS: [&str; 19] = [
    "bge", "dc", "em", "fwe", "fwip", "fxp", "igb", "ixgb", "nfe", "nge", "re", "rl", "sf", "sis",
    "ste", "stge", "vge", "vr", "xl",
];
/// What sysctl(8) says of a name that the kernel does not have: of today, and of FreeBSD 6 to 9.
const NO_SUCH_NAME: [&str; 2] = ["unknown oid", "is invalid"];

/// A FreeBSD host, asked and found to be one.
#[derive(Clone, Debug)]
pub struct FreebsdHost {
    ssh: Ssh,
}

/// What was found on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Ticks a second.
    pub hz: u32,
    /// kern.polling.
    pub polling: Polling,
    /// The interface.
    pub interface: Capabilities,
}

impl FreebsdHost {
    /// Asks the host what it is.
    ///
    /// # Errors
    /// When it cannot be reached, or is no FreeBSD.
    pub fn reach(ssh: Ssh) -> Result<FreebsdHost, FreebsdError> {
        let command = "uname -s";
        let text = ssh.run(command)?;
        let system = parse_uname(&text).map_err(unread(&ssh, command))?;
        if system == "FreeBSD" {
            return Ok(FreebsdHost { ssh });
        }
        Err(FreebsdError::OtherSystem {
            host: String::from(ssh.host()),
            system: String::from(system),
        })
    }

    /// How commands reach it.
    pub(crate) fn ssh(&self) -> &Ssh {
        &self.ssh
    }

    /// Looks at the kernel, the clock and an interface.
    ///
    /// # Errors
    /// [`FreebsdError::NoDevicePolling`] when the kernel was built without it.
    pub fn survey(&self, interface: &str) -> Result<Survey, FreebsdError> {
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

    fn polling(&self) -> Result<Polling, FreebsdError> {
        match self.read("sysctl kern.polling", parse_polling) {
            Err(FreebsdError::Command { host, said, .. })
                if NO_SUCH_NAME.iter().any(|words| said.contains(words)) =>
            {
                Err(FreebsdError::NoDevicePolling { host })
            }
            polling => polling,
        }
    }

    fn read<T>(
        &self,
        command: &str,
        parse: impl Fn(&str) -> Result<T, OutputError>,
    ) -> Result<T, FreebsdError> {
        let text = self.ssh.run(command)?;
        parse(&text).map_err(unread(&self.ssh, command))
    }
}

fn unread(ssh: &Ssh, command: &str) -> impl FnOnce(OutputError) -> FreebsdError {
    move |source| FreebsdError::Output {
        host: String::from(ssh.host()),
        command: String::from(command),
        source,
    }
}

impl Survey {
    /// Whether the interface can poll.
    ///
    /// # Errors
    /// [`FreebsdError::NoCapability`] with what is known of the driver.
    pub fn check(&self, target: &FreebsdTarget) -> Result<(), FreebsdError> {
        if self.interface.can_poll {
            return Ok(());
        }
        let driver = target.driver();
        let why = if DRIVERS.contains(&driver) {
            format!("polling(4) has listed {driver}, so it could in other releases of FreeBSD")
        } else {
            format!("polling(4) lists {}; not {driver}", DRIVERS.join(", "))
        };
        Err(FreebsdError::NoCapability {
            target: target.to_string(),
            why,
        })
    }
}
