//! What a blast sent, as text, line by line as it runs.

use std::fmt::Write;

use nicpoll_model::engine::{
    BLAST_SCHEMA, BlastAccount, BlastCounts, BlastEnd, BlastFrames, BlastInterval, BlastLink,
    BlastStart,
};
use nicpoll_model::numbers::{MISSING, count, counted, figure, per_second};

use super::stream::{PageTexts, list};

/// How its parts read.
pub const BLAST_TEXTS: PageTexts<BlastStart, BlastInterval, BlastEnd> = PageTexts {
    schema: BLAST_SCHEMA,
    start: render_blast_start,
    interval: render_blast_interval,
    end: render_blast_end,
};

/// What is sent and how, and the names of the columns.
fn render_blast_start(start: &BlastStart) -> String {
    let mut text = String::new();
    for link in &start.links {
        link_lines(link, &mut text);
    }
    let is_replay = start
        .links
        .iter()
        .any(|link| matches!(link.frames, BlastFrames::Replay { .. }));
    let pace = match start.rate_frames_per_second {
        Some(rate) if start.burst_frames > 1 => {
            format!(
                "{} frames/s in bursts of {}",
                figure(rate),
                start.burst_frames
            )
        }
        Some(rate) => format!("{} frames/s", figure(rate)),
        None if is_replay => String::from("as they were recorded"),
        None => String::from("as fast as they go"),
    };
    let each = if start.links.len() > 1 {
        ", each link"
    } else {
        ""
    };
    let _ = writeln!(
        text,
        "{pace}{each}\n\n{:>8} {:>12} {:>10} {:>6}",
        "seconds", "frames/s", "Mbit/s", "CPU %"
    );
    text
}

fn link_lines(link: &BlastLink, text: &mut String) {
    let _ = match &link.frames {
        BlastFrames::Datagrams {
            source,
            destination,
            destination_mac,
            flows,
            frame_bytes,
            ..
        } => writeln!(
            text,
            "{}: UDP from {source} to {destination} at {destination_mac}, {}, {}",
            link.interface,
            counted(u32::from(*flows), "flow"),
            lengths(frame_bytes)
        ),
        BlastFrames::Replay {
            file,
            cut_off_frames,
        } => {
            let left_out = match cut_off_frames {
                0 => String::new(),
                frames => format!(", without {} that the recording cut off", count(frames)),
            };
            writeln!(text, "{}: the frames of {file}{left_out}", link.interface)
        }
    };
    let _ = writeln!(
        text,
        "sent by {}{}, on CPU {}; {}",
        words(&link.path),
        match link.is_cut_by_kernel {
            true => " in long datagrams, which the kernel cuts up",
            false => "",
        },
        link.cpu,
        match link.is_singly {
            true => "each frame is a packet of its own for the receiver",
            false => "the receiver may see several frames as one packet",
        }
    );
    if let Some(why) = &link.not_joined {
        let _ = writeln!(text, "not in long datagrams: {why}");
    }
    for refused in &link.refused_paths {
        let _ = writeln!(text, "not by {}: {}", words(&refused.path), refused.why);
    }
}

fn words(path: &str) -> &str {
    match path {
        "live" => "live frames (made in the kernel)",
        "af-xdp" => "AF_XDP",
        "af-packet" => "AF_PACKET",
        other => other,
    }
}

fn lengths(frame_bytes: &[u32]) -> String {
    let turns = if frame_bytes.len() > 1 {
        " in turn"
    } else {
        ""
    };
    format!("frames of {} bytes with FCS{turns}", list(frame_bytes))
}

/// An interval as one line.
fn render_blast_interval(interval: &BlastInterval) -> String {
    let seconds = interval.end_seconds - interval.start_seconds;
    line(interval.end_seconds, seconds, &interval.counts)
}

fn line(end_seconds: f64, seconds: f64, counts: &BlastCounts) -> String {
    format!(
        "{end_seconds:>8.1} {:>12} {:>10} {:>6}\n",
        per_second(counts.built_frames as f64, seconds),
        per_second(counts.built_bytes as f64 * 8.0 / 1e6, seconds),
        per_second(counts.cpu_ns as f64 / 1e7, seconds),
    )
}

/// What it came to.
fn render_blast_end(end: &BlastEnd) -> String {
    let mut text = String::from("\nall of it\n");
    text.push_str(&line(
        end.duration_seconds,
        end.duration_seconds,
        &end.totals,
    ));
    for link in &end.links {
        let _ = writeln!(text, "\n{}, by {}", link.interface, words(&link.path));
        account_lines(&link.account, &mut text);
        if link.link_loss_events > 0 {
            let times = counted(link.link_loss_events as u32, "time");
            let _ = writeln!(text, "The interface was found down {times}.");
        }
        if let Some(failure) = &link.failure {
            let _ = writeln!(text, "It ended early: {failure}.");
        }
    }
    text
}

fn account_lines(account: &BlastAccount, text: &mut String) {
    let unfinished = Some(account.unfinished_frames).filter(|frames| *frames > 0);
    let unfinished =
        unfinished.map(|frames| (Some(count(frames)), "written and not taken until the end"));
    let lines = [
        (Some(count(account.built_frames)), "frames written"),
        (Some(count(account.handed_frames)), "taken by the kernel"),
        (
            account.refused_frames.map(count),
            "of these dropped by the interface: its queue was full",
        ),
        (
            account.completed_frames.map(count),
            "of these sent by the interface",
        ),
        (
            account.residual_frames.map(count),
            "of these unaccounted for",
        ),
    ];
    for (frames, what) in lines.into_iter().chain(unfinished) {
        let frames = frames.unwrap_or_else(|| String::from(MISSING));
        let _ = writeln!(text, "{frames:>14} {what}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_frames_are_not_joined_is_told_where_they_are_not() {
        let link = |is_cut_by_kernel, not_joined: Option<&str>| BlastLink {
            interface: String::from("em0"),
            path: String::from("af-packet"),
            refused_paths: Vec::new(),
            cpu: 1,
            is_singly: true,
            is_cut_by_kernel,
            not_joined: not_joined.map(String::from),
            frames: BlastFrames::Replay {
                file: String::from("a.pcap"),
                cut_off_frames: 0,
            },
        };
        let lines = |link: BlastLink| {
            let mut text = String::new();
            link_lines(&link, &mut text);
            text
        };
        let joined = lines(link(true, None));
        assert!(
            joined.contains("sent by AF_PACKET in long datagrams"),
            "{joined}"
        );
        let apart = lines(link(false, Some("this is Linux 6.1")));
        assert!(apart.contains("sent by AF_PACKET, on CPU 1"), "{apart}");
        assert!(
            apart.ends_with("not in long datagrams: this is Linux 6.1\n"),
            "{apart}"
        );
    }
}
