//! Traffic over the kernel's sockets: iperf 2, FreeBSD's netrate tools, request/response; and what a line carries.

pub mod iperf;
pub mod linerate;
pub mod netrate;
pub mod rr;
