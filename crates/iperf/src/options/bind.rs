//! Addresses with a device or a port behind them.

use super::Bind;

/// The longest device name of Linux.
const DEVICE_BYTES_MAX: usize = 15;
/// The longest name of DNS, and longer than any address.
const HOST_BYTES_MAX: usize = 253;

/// `host` or `host%device`.
pub fn host(text: &str) -> Option<(String, Option<String>)> {
    let (host, device) = match text.split_once('%') {
        Some((host, device)) => (host, Some(checked_device(device)?)),
        None => (text, None),
    };
    Some((checked_host(host)?, device))
}

/// `address`, `address:port` or `address%device`, or with both in the order port, device. An IPv6
/// address needs brackets for a port to follow.
pub fn bind(text: &str) -> Option<Bind> {
    let (address, port, device) = if let Some(inner) = text.strip_prefix('[') {
        let (inner, behind) = inner.split_once(']')?;
        let (inner, inner_device) = split(inner, '%');
        let (port, device) = split(behind, '%');
        let port = match port {
            "" => None,
            port => Some(port.strip_prefix(':')?),
        };
        (inner, port, device.or(inner_device))
    } else {
        let (address, device) = split(text, '%');
        match address.split_once(':') {
            Some((address, port)) if !port.contains(':') => (address, Some(port), device),
            _ => (address, None, device),
        }
    };
    let port = match port {
        Some(port) => Some(port.parse().ok().filter(|port| *port != 0)?),
        None => None,
    };
    let device = match device {
        Some(device) => Some(checked_device(device)?),
        None => None,
    };
    Some(Bind {
        address: checked_host(address)?,
        device,
        port,
    })
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, behind)) => (before, Some(behind)),
        None => (text, None),
    }
}

fn checked_host(host: &str) -> Option<String> {
    let sane = (1..=HOST_BYTES_MAX).contains(&host.len())
        && !host.chars().any(|c| c.is_whitespace() || c.is_control());
    sane.then(|| host.to_owned())
}

fn checked_device(device: &str) -> Option<String> {
    let sane = (1..=DEVICE_BYTES_MAX).contains(&device.len())
        && !device
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || c == '/');
    sane.then(|| device.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_address_may_have_a_port_and_a_device() {
        for (text, address, port, device) in [
            ("10.0.0.1", "10.0.0.1", None, None),
            ("10.0.0.1:6000", "10.0.0.1", Some(6000), None),
            ("10.0.0.1%eth0", "10.0.0.1", None, Some("eth0")),
            ("10.0.0.1:6000%eth0", "10.0.0.1", Some(6000), Some("eth0")),
            ("name:6000", "name", Some(6000), None),
            ("::1", "::1", None, None),
            ("fe80::1%eth0", "fe80::1", None, Some("eth0")),
            ("[::1]", "::1", None, None),
            ("[::1]:6000", "::1", Some(6000), None),
            ("[fe80::1%eth0]:6000", "fe80::1", Some(6000), Some("eth0")),
            ("[fe80::1]:6000%eth0", "fe80::1", Some(6000), Some("eth0")),
        ] {
            let expected = Bind {
                address: address.to_owned(),
                device: device.map(str::to_owned),
                port,
            };
            assert_eq!(bind(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_local_address_is_refused() {
        for text in [
            "",
            ":6000",
            "%eth0",
            "10.0.0.1%",
            "10.0.0.1:0",
            "10.0.0.1:65536",
            "10.0.0.1:x",
            "10.0.0.1%a-name-too-long-for-linux",
            "10.0.0.1%a/b",
            "[::1",
            "[]:6000",
            "[::1]6000",
            "a b",
        ] {
            assert_eq!(bind(text), None, "{text}");
        }
        assert_eq!(bind(&"a".repeat(254)), None);
    }

    #[test]
    fn a_host_may_have_a_device() {
        let device = Some("eth0".to_owned());
        assert_eq!(host("::1"), Some(("::1".to_owned(), None)));
        assert_eq!(host("fe80::1%eth0"), Some(("fe80::1".to_owned(), device)));
        for text in ["", "%eth0", "host%", "a\nb"] {
            assert_eq!(host(text), None, "{text}");
        }
    }
}
