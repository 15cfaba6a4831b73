//! The text output of `blast`, line by line.

use nicpoll_model::engine::{
    BLAST_SCHEMA, BlastCounts, BlastEnd, BlastFrames, BlastInterval, BlastLink, BlastStart,
};
use nicpoll_model::numbers::{counted, per_second};

use super::stream::{IntervalColumn, PageTexts, heads, line, lines};
use crate::fields::{filled, stated};

/// Texts of its parts.
pub const BLAST_TEXTS: PageTexts<BlastStart, BlastInterval, BlastEnd> = PageTexts {
    schema: BLAST_SCHEMA,
    start: render_blast_start,
    interval: |it| line(&COLUMNS, &it.counts, [it.start_seconds, it.end_seconds]),
    end: render_blast_end,
};

/// Renders what is sent and how, and the columns' names.
fn render_blast_start(start: &BlastStart) -> String {
    let mut text: String = start.links.iter().map(link_lines).collect();
    let mut links = start.links.iter();
    let is_replay = links.any(|link| matches!(link.frames, BlastFrames::Replay { .. }));
    text += &filled(
        match start.rate_frames_per_second {
            Some(_) if start.burst_frames > 1 => {
                "{rate_frames_per_second} frames/s in bursts of {burst_frames:raw}"
            }
            Some(_) => "{rate_frames_per_second} frames/s",
            None if is_replay => "as they were recorded",
            None => "as fast as they go",
        },
        start,
    );
    text += match start.links.len() {
        0 | 1 => "\n",
        _ => ", each link\n",
    };
    text + &heads(&COLUMNS)
}

fn link_lines(link: &BlastLink) -> String {
    let mut text = match &link.frames {
        BlastFrames::Datagrams {
            flows, frame_bytes, ..
        } => {
            let flows = counted(u32::from(*flows), "flow");
            let turns = if frame_bytes.len() > 1 {
                " in turn"
            } else {
                ""
            };
            let udp = "{interface}: UDP from {datagrams/source} to {datagrams/destination} at \
                       {datagrams/destination_mac}";
            let frames = "frames of {datagrams/frame_bytes:raw} bytes with FCS";
            let [udp, frames] = [udp, frames].map(|template| filled(template, link));
            format!("{udp}, {flows}, {frames}{turns}\n")
        }
        BlastFrames::Replay { .. } => {
            let left_out = ", without {replay/cut_off_frames:+} that the recording cut off";
            let left_out = stated(link, &[left_out]).concat();
            filled("{interface}: the frames of {replay/file}", link) + &left_out + "\n"
        }
    };
    let joined = match link.is_cut_by_kernel {
        true => " in long datagrams, which the kernel cuts up",
        false => "",
    };
    let singly = match link.is_singly {
        true => "each frame is a packet of its own for the receiver",
        false => "the receiver may see several frames as one packet",
    };
    let path = words(&link.path);
    text += &format!("sent by {path}{joined}, on CPU {}; {singly}\n", link.cpu);
    text.extend(stated(link, &["not in long datagrams: {not_joined}\n"]));
    for refused in &link.refused_paths {
        text += &format!("not by {}: {}\n", words(&refused.path), refused.why);
    }
    text
}

fn words(path: &str) -> &str {
    match path {
        "live" => "live frames (made in the kernel)",
        "af-xdp" => "AF_XDP",
        "af-packet" => "AF_PACKET",
        other => other,
    }
}

const COLUMNS: [IntervalColumn<BlastCounts>; 3] = [
    ("frames/s", 12, |it, seconds| {
        per_second(it.built_frames as f64, seconds)
    }),
    ("Mbit/s", 10, |it, seconds| {
        per_second(it.built_bytes as f64 * 8.0 / 1e6, seconds)
    }),
    ("CPU %", 6, |it, seconds| {
        per_second(it.cpu_ns as f64 / 1e7, seconds)
    }),
];

/// Renders the final account.
fn render_blast_end(end: &BlastEnd) -> String {
    let all = line(&COLUMNS, &end.totals, [0.0, end.duration_seconds]);
    let mut text = format!("\nall of it\n{all}");
    for link in &end.links {
        text += &format!("\n{}, by {}\n", link.interface, words(&link.path));
        text += &lines("blast account", &link.account);
        text += &lines("blast link", link);
    }
    text
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
        let joined = link_lines(&link(true, None));
        assert!(
            joined.contains("sent by AF_PACKET in long datagrams"),
            "{joined}"
        );
        let apart = link_lines(&link(false, Some("this is Linux 6.1")));
        assert!(apart.contains("sent by AF_PACKET, on CPU 1"), "{apart}");
        assert!(
            apart.ends_with("not in long datagrams: this is Linux 6.1\n"),
            "{apart}"
        );
    }
}
