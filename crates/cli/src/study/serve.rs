//! `nicpoll serve`: the studies of a store in a browser.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, anyhow};
use clap::Args;
use nicpoll_serve::StoreServer;
use nicpoll_sys::tell;
use nicpoll_traffic::signals::Stop;

use crate::failure::{Failure, over};
use crate::options::StoreFile;
use crate::output;

/// Where a browser finds the pages unless told otherwise.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8077);

/// Options of `nicpoll serve`.
#[derive(Args, Debug)]
#[command(after_help = include_str!("../help/serve-examples.txt"))]
pub struct ServeArgs {
    /// Address and port of the pages. Other machines can read them where this is not a loopback address
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = LISTEN)]
    listen: SocketAddr,
    /// Where the studies are.
    #[command(flatten)]
    file: StoreFile,
}

/// Serves until a signal comes and returns the exit code.
pub fn serve(args: &ServeArgs) -> Result<u8, Failure> {
    let stop = Stop::on_signals().context("catching signals")?;
    let server = StoreServer::bind(args.listen, args.file.place()?).map_err(|error| {
        let listen = args.listen;
        anyhow!("listening on {listen}: {error}; --listen names another address and port")
    })?;
    let address = server.address().context("asking for the address")?;
    if !address.ip().is_loopback() {
        tell!("nicpoll serve: whoever reaches {address} can read these studies");
    }
    output::print(&format!("http://{address}/\n"))?;
    server.run(stop.asked()).context("answering browsers")?;
    Ok(over(&stop))
}
