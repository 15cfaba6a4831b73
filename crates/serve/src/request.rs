//! What a browser asks for. Pure: bytes in, a page or a refusal out.
//!
//! Where there is a token, it comes in the address that a user opens first, then in a cookie, or from a program in
//! `Authorization: Bearer`.
//!
//! Accepts only requests that name this server by an address. Another site can make its own name lead here, but not an
//! address.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Heads of requests that are longer are refused; a browser's has less than one kB.
pub const HEAD_MAX_BYTES: usize = 8192;
/// The cookie that holds the token.
pub(crate) const COOKIE: &str = "nicpoll-token";
/// Type of a page that a browser shows.
pub(crate) const HTML: &str = "text/html; charset=utf-8";
/// Lines of a head at most.
const HEADERS_MAX: usize = 64;

/// A page that there is, by its path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServedPage {
    /// `/`: all studies.
    Studies,
    /// `/study/7`: the report of one.
    Study(i64),
    /// `/compare/7`: what a study can be compared with.
    Choice(i64),
    /// `/compare/7/8` and `/compare/7.1/7.2`: two studies, or two settings of one by their numbers from 1. The first
    /// is the reference.
    Compared([NamedStudy; 2]),
    /// `/metrics`: what a watch counts, for Prometheus.
    Metrics,
}

/// A study, or a setting of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedStudy {
    /// The study's number.
    pub id: i64,
    /// The setting's number in the study, from 1; `None` for all.
    pub setting: Option<usize>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// Which page.
    pub page: ServedPage,
    /// Whether its head alone is wanted.
    pub is_head: bool,
    /// Whether the token is in its address: a cookie is given for it.
    pub enters: bool,
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestRefusal {
    /// It is no request of HTTP.
    #[error("this is no request that a browser makes")]
    Malformed,
    /// Its head is too long.
    #[error("the head of the request is longer than 8 kB")]
    TooLong,
    /// It came by a name that is not this server's.
    #[error("ask for the address that nicpoll printed: pages are not given out under another name")]
    ForeignHost,
    /// It wants to do something other than read.
    #[error("these pages can be read and not changed")]
    Method,
    /// It does not have the token.
    #[error(
        "these pages are for those who know the token: open the whole address that nicpoll printed"
    )]
    Token,
    /// There is no such page.
    #[error("there is no such page; the first one is at /")]
    Unknown,
}

impl RequestRefusal {
    /// Its status in HTTP, with the words that belong to it (RFC 9110).
    pub fn status(self) -> &'static str {
        match self {
            RequestRefusal::Malformed => "400 Bad Request",
            RequestRefusal::TooLong => "431 Request Header Fields Too Large",
            RequestRefusal::ForeignHost => "421 Misdirected Request",
            RequestRefusal::Token => "401 Unauthorized",
            RequestRefusal::Method => "405 Method Not Allowed",
            RequestRefusal::Unknown => "404 Not Found",
        }
    }
}

impl ServedPage {
    /// Its type in HTTP.
    pub(crate) fn content_type(&self) -> &'static str {
        match self {
            ServedPage::Metrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            _ => HTML,
        }
    }

    /// Its path.
    pub(crate) fn path(&self) -> String {
        let named = |NamedStudy { id, setting }: &NamedStudy| match setting {
            Some(setting) => format!("{id}.{setting}"),
            None => id.to_string(),
        };
        match self {
            ServedPage::Studies => String::from("/"),
            ServedPage::Study(id) => format!("/study/{id}"),
            ServedPage::Choice(id) => format!("/compare/{id}"),
            ServedPage::Compared([one, other]) => {
                format!("/compare/{}/{}", named(one), named(other))
            }
            ServedPage::Metrics => String::from("/metrics"),
        }
    }
}

/// Reads the head of a request that came to the address `own`, for which `token` has to be known; `None` while its end
/// has not come.
///
/// # Errors
/// [`RequestRefusal`] when it will not be answered, whatever else comes.
pub fn read_request(
    bytes: &[u8],
    own: SocketAddr,
    token: Option<&str>,
) -> Result<Option<PageRequest>, RequestRefusal> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_MAX_BYTES => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Err(RequestRefusal::TooLong);
        }
        Err(_) => return Err(RequestRefusal::Malformed),
    }
    let mut hosts = request
        .headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("host"));
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(RequestRefusal::Malformed);
    };
    let host = std::str::from_utf8(host.value).map_err(|_| RequestRefusal::Malformed)?;
    if !is_own(host, own) {
        return Err(RequestRefusal::ForeignHost);
    }
    let is_head = match request.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Err(RequestRefusal::Method),
    };
    let path = request.path.unwrap_or_default();
    let enters = token.is_some_and(|token| is_in_address(path, token));
    let knows = |token| request.headers.iter().any(|it| is_in_header(it, token));
    if !enters && !token.is_none_or(knows) {
        return Err(RequestRefusal::Token);
    }
    let page = page(path).ok_or(RequestRefusal::Unknown)?;
    Ok(Some(PageRequest {
        page,
        is_head,
        enters,
    }))
}

fn is_in_address(path: &str, token: &str) -> bool {
    let asked = path.split_once('?').map_or("", |(_, asked)| asked);
    let mut parts = asked.split('&');
    parts.any(|part| {
        part.strip_prefix("token=")
            .is_some_and(|it| is_same(it, token))
    })
}

fn is_in_header(header: &httparse::Header<'_>, token: &str) -> bool {
    let value = std::str::from_utf8(header.value).unwrap_or_default();
    if header.name.eq_ignore_ascii_case("authorization") {
        let given = value.strip_prefix("Bearer ");
        return given.is_some_and(|given| is_same(given.trim(), token));
    }
    let mut cookies = value.split(';').filter_map(|it| it.trim().split_once('='));
    header.name.eq_ignore_ascii_case("cookie")
        && cookies.any(|(name, value)| name == COOKIE && is_same(value, token))
}

/// Compares in a time that says nothing of where they differ.
fn is_same(given: &str, token: &str) -> bool {
    let pairs = given.bytes().zip(token.bytes());
    given.len() == token.len()
        && pairs.fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

/// Whether a `Host` names the address that was connected to; `localhost` does for one of loopback.
fn is_own(host: &str, own: SocketAddr) -> bool {
    const HTTP: &str = "80";
    let (name, port) = match host.rsplit_once(':') {
        // The colons of an IPv6 address are in brackets.
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host, HTTP),
    };
    let address = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let address: Option<IpAddr> = address.unwrap_or(name).parse().ok();
    let ip = own.ip().to_canonical();
    let is_named = match address {
        Some(address) => address.to_canonical() == ip,
        None => ip.is_loopback() && name.eq_ignore_ascii_case("localhost"),
    };
    is_named && port == own.port().to_string()
}

fn page(path: &str) -> Option<ServedPage> {
    let path = path.split(['?', '#']).next()?;
    let mut parts = path.strip_prefix('/')?.split('/');
    let parts = [parts.next(), parts.next(), parts.next(), parts.next()];
    let number = |part: &str| part.parse::<i64>().ok().filter(|number| *number > 0);
    match parts {
        [Some(""), None, ..] => Some(ServedPage::Studies),
        [Some("metrics"), None, ..] => Some(ServedPage::Metrics),
        [Some("study"), Some(id), None, _] => Some(ServedPage::Study(number(id)?)),
        [Some("compare"), Some(id), None, _] => Some(ServedPage::Choice(number(id)?)),
        [Some("compare"), Some(one), Some(other), None] => {
            Some(ServedPage::Compared([named(one)?, named(other)?]))
        }
        _ => None,
    }
}

fn named(part: &str) -> Option<NamedStudy> {
    let (id, setting) = match part.split_once('.') {
        Some((id, setting)) => (id, Some(setting.parse().ok().filter(|at| *at > 0)?)),
        None => (part, None),
    };
    let id = id.parse().ok().filter(|id| *id > 0)?;
    Some(NamedStudy { id, setting })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 8077))
    }

    fn ask(text: &str) -> Result<Option<PageRequest>, RequestRefusal> {
        read_request(text.as_bytes(), own(), None)
    }

    fn get(path: &str) -> Result<Option<PageRequest>, RequestRefusal> {
        ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:8077\r\n\r\n"
        ))
    }

    #[test]
    fn paths_are_pages() {
        let page = |path: &str| get(path).unwrap().unwrap().page;
        assert_eq!(page("/"), ServedPage::Studies);
        assert_eq!(page("/study/7"), ServedPage::Study(7));
        assert_eq!(page("/metrics"), ServedPage::Metrics);
        assert_eq!(page("/compare/7?x=1"), ServedPage::Choice(7));
        let named = |id, setting| NamedStudy { id, setting };
        let two = ServedPage::Compared([named(7, Some(1)), named(8, None)]);
        assert_eq!(page("/compare/7.1/8"), two);
        for path in [
            "/study",
            "/metrics/1",
            "/study/x",
            "/study/-1",
            "/study/1/2",
            "/compare/1/2/3",
            "/../etc",
            "/compare/1.0/1",
        ] {
            assert_eq!(get(path), Err(RequestRefusal::Unknown), "{path}");
        }
    }

    #[test]
    fn another_name_is_refused_wherever_it_leads() {
        let from = |host: &str| ask(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        for host in [
            "127.0.0.1:8077",
            "localhost:8077",
            "LocalHost:8077",
            "[::ffff:127.0.0.1]:8077",
        ] {
            assert!(from(host).unwrap().is_some(), "{host}");
        }
        for host in [
            "evil.example:8077",
            "localhost.evil.example:8077",
            "127.0.0.1",
            "127.0.0.1:80",
            "192.0.2.1:8077",
            "[::1]:8077",
            "127.0.0.1:+8077",
            "",
        ] {
            assert_eq!(from(host), Err(RequestRefusal::ForeignHost), "{host}");
        }
        let outside = SocketAddr::from(([192, 0, 2, 1], 8077));
        let head = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert!(read_request(head("192.0.2.1:8077").as_bytes(), outside, None).is_ok());
        let localhost = read_request(head("localhost:8077").as_bytes(), outside, None);
        assert_eq!(localhost, Err(RequestRefusal::ForeignHost));
    }

    #[test]
    fn a_token_opens_from_the_address_a_cookie_or_a_header_and_from_nowhere_else() {
        let from = |path: &str, header: &str| {
            let text = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:8077\r\n{header}\r\n");
            read_request(text.as_bytes(), own(), Some("se-cret")).map(|asked| asked.unwrap().enters)
        };
        assert_eq!(from("/study/7?a=b&token=se-cret", ""), Ok(true));
        assert_eq!(
            from("/", "Cookie: a=b; nicpoll-token=se-cret\r\n"),
            Ok(false)
        );
        assert_eq!(from("/", "authorization: Bearer se-cret\r\n"), Ok(false));
        for (path, header) in [
            ("/", ""),
            ("/?token=", ""),
            ("/?token=se-cre", ""),
            ("/?token=se-crets", ""),
            ("/token=se-cret", ""),
            ("/no-such-page", ""),
            ("/", "Cookie: nicpoll-token=\r\n"),
            ("/", "Cookie: other=se-cret\r\n"),
            ("/", "Authorization: Basic se-cret\r\n"),
        ] {
            assert_eq!(
                from(path, header),
                Err(RequestRefusal::Token),
                "{path} {header}"
            );
        }
        let page = ServedPage::Compared([
            NamedStudy {
                id: 7,
                setting: Some(2),
            },
            NamedStudy {
                id: 8,
                setting: None,
            },
        ]);
        assert_eq!(get(&page.path()).unwrap().unwrap().page, page);
    }

    #[test]
    fn what_is_no_plain_request_is_refused() {
        assert_eq!(
            ask("GET / HTTP/1.1\r\n\r\n"),
            Err(RequestRefusal::Malformed)
        );
        let two = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8077\r\nHost: evil.example\r\n\r\n";
        assert_eq!(ask(two), Err(RequestRefusal::Malformed));
        let post = "POST / HTTP/1.1\r\nHost: 127.0.0.1:8077\r\n\r\n";
        assert_eq!(ask(post), Err(RequestRefusal::Method));
        assert_eq!(ask("GET / HTTP/1.1\r\nHost: 127"), Ok(None));
        assert_eq!(ask("\u{16}\u{3}\u{1}"), Err(RequestRefusal::Malformed));
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(HEAD_MAX_BYTES));
        assert_eq!(ask(&long), Err(RequestRefusal::TooLong));
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "A: b\r\n".repeat(HEADERS_MAX + 1)
        );
        assert_eq!(ask(&many), Err(RequestRefusal::TooLong));
    }
}
