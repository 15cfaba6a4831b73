//! The studies of a store in a browser, and the metrics of a watch for Prometheus: a small HTTP server on loopback, or
//! elsewhere for those who know a token.
//!
//! Two parts, which are two processes where that matters:
//!
//! - [`PageServer`] meets strangers. It has a socket that listens and one to the other part, opens nothing, and holds of
//!   each of [`CONNECTIONS_MAX`] connections a few kB: pages are files that those who asked for them share.
//! - [`make_pages`] is told by it which page is wanted, one at a time, and has somebody make it. It meets no stranger.
//!
//! A client gets these pages and nothing else of this machine. A request must name the address that it connected
//! to, so a page of another site that points its own name at this machine (DNS rebinding) is refused. Size, time and
//! number of requests and answers are bounded; each connection carries one.

mod connection;
mod pages;
mod request;
mod server;
mod wanted;

pub use pages::{Answer, answer_to, failed};
pub use request::{PageRequest, RequestRefusal, ServedPage, read_request};
pub use server::{CONNECTIONS_MAX, PageServer};
pub use wanted::{PagesEnd, make_pages, pages_socket};
