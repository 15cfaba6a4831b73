//! Commands for traffic over the kernel's sockets (iperf 2, FreeBSD's netrate tools, request/response), and
//! `linerate`.

pub mod iperf;
pub mod linerate;
pub mod netrate;
pub mod rr;

use nicpoll_observe::HostAccount;
use nicpoll_traffic::CloseAccount;

/// Opens the account of this host; `None` if it cannot be read.
fn open_account() -> Option<CloseAccount> {
    let account = HostAccount::begin().ok()?;
    Some(Box::new(|| account.end().ok()))
}
