//! `nicpoll watch --prometheus`: the metrics of the last interval at `/metrics`.
//!
//! A process without rights answers requests. This one writes a page for each interval, however many ask for it.

use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::Context;
use clap::Args;
use nicpoll_model::WatchSample;
use nicpoll_report::render_watch_metrics;
use nicpoll_serve::{ServedPage, failed};
use nicpoll_sys::tell;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::failure::Failure;
use crate::options::{parse_address, token_of};
use crate::reading::Answering;

/// Where metrics are served.
#[derive(Args, Clone, Debug)]
pub struct MetricsArgs {
    /// Serve metrics for Prometheus at http://ADDRESS:PORT/metrics; text is printed with --plain alone
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_address)]
    pub prometheus: Option<SocketAddr>,
    /// File with the token that Prometheus sends (authorization), needed at other addresses than loopback: at least 16
    /// letters, digits, '-' or '_'
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    pub token_file: Option<PathBuf>,
}

impl MetricsArgs {
    /// Starts the process that answers, if one is asked for. This process may have one thread.
    pub fn start(&self) -> Result<Option<Answering>, Failure> {
        let Some(listen) = self.prometheus else {
            return Ok(None);
        };
        let token = self.token_file.as_deref().map(token_of).transpose()?;
        if token.is_none() && !listen.ip().is_loopback() {
            return Err(Failure::Usage(format!(
                "others reach {listen}: --token-file FILE names the token that they have to know; at 127.0.0.1 none is \
                 needed"
            )));
        }
        Answering::start(listen, token, "--prometheus").map(Some)
    }
}

/// Metrics that are served until this is dropped.
pub struct Metrics {
    page: Arc<Mutex<Option<File>>>,
    is_over: Arc<AtomicBool>,
    serving: Option<JoinHandle<Result<(), Failure>>>,
}

impl Metrics {
    /// Serves what will be [`told`](Self::tell).
    pub fn serve(answering: Answering) -> Result<Self, Failure> {
        let (page, is_over) = (Arc::default(), Arc::default());
        tell!(
            "nicpoll watch: metrics at http://{}/metrics",
            answering.address
        );
        let (pages, looking) = (Arc::clone(&page), Arc::clone(&is_over));
        let serving = thread::Builder::new()
            .name(String::from("nicpoll-metrics"))
            .spawn(move || answering.run(&looking, |wanted| page_of(wanted, &pages)))
            .context("making a thread")?;
        Ok(Metrics {
            page,
            is_over,
            serving: Some(serving),
        })
    }

    /// Serves this sample from now on.
    ///
    /// # Errors
    /// When nobody answers any more.
    pub fn tell(&mut self, sample: &WatchSample) -> Result<(), Failure> {
        let page = file_of(&render_watch_metrics(sample)).context("writing the page of metrics")?;
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = Some(page);
        match self.serving.take_if(|serving| serving.is_finished()) {
            Some(serving) => serving.join().unwrap_or(Ok(())),
            None => Ok(()),
        }
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.serving.take().map(JoinHandle::join);
    }
}

/// Returns the page, or fails before the end of the first interval.
fn page_of(wanted: &ServedPage, page: &Mutex<Option<File>>) -> io::Result<(String, bool, File)> {
    if *wanted != ServedPage::Metrics {
        let answer = failed("404 Not Found", "the metrics are at /metrics");
        let mut words = String::new();
        answer.put(|piece| {
            words.push_str(piece);
            Ok(())
        })?;
        return Ok((String::from(answer.status), false, file_of(&words)?));
    }
    let page = page.lock().unwrap_or_else(PoisonError::into_inner);
    let page = page.as_ref().ok_or(io::ErrorKind::NotFound)?;
    Ok((String::from("200 OK"), false, page.try_clone()?))
}

fn file_of(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create("nicpoll-page", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    Ok(file)
}
