//! Traffic of frames, under the demo's settings: what is searched without a file.

use std::num::NonZeroU64;

use nicpoll_lab::{RECEIVE_BUFFER_BYTES, Refused, TrafficOptions, WorkloadRequest};
use nicpoll_model::line::{LinePacket, imix_frames, payload_of_frame};
use nicpoll_traffic::scheduled::MixWorkload;

use crate::design::demo;
use crate::design::file::StudyFile;
use crate::design::{NamedWorkload, drop_order};

/// Makes a study of these frames, each a workload over IPv4, between the demo's hosts.
///
/// # Errors
/// For frames that are too short or too long.
pub fn frames_study(frames: &[LinePacket]) -> Result<StudyFile, Refused> {
    let workloads: Vec<NamedWorkload> = frames.iter().map(workload).collect::<Result<_, _>>()?;
    let mut file = demo::file();
    let names = workloads.iter().map(|workload| workload.name.as_str());
    file.design.drop_order = drop_order(&file.design.contrasts, names);
    file.design.workloads = workloads;
    Ok(file)
}

fn workload(packet: &LinePacket) -> Result<NamedWorkload, Refused> {
    let (name, frames) = match packet {
        LinePacket::Frame { bytes } => (bytes.to_string(), vec![*bytes]),
        _ => (String::from("imix"), imix_frames()),
    };
    let most = 1518;
    let payload = |bytes: &u32| payload_of_frame(*bytes).filter(|_| *bytes <= most);
    let payload_bytes: Option<Vec<u16>> = frames.iter().map(payload).collect();
    let payload_bytes = payload_bytes.ok_or_else(|| {
        Refused(format!(
            "frames of {name} bytes cannot be sent here; give 64 to {most}"
        ))
    })?;
    let description = match frames[..] {
        [bytes] => format!("UDP in frames of {bytes} bytes"),
        _ => String::from("UDP in seven frames of 64 bytes, four of 594 and one of 1518"),
    };
    Ok(NamedWorkload {
        name: match packet {
            LinePacket::Imix => name,
            _ => format!("frame{name}"),
        },
        description,
        request: WorkloadRequest::Mix(MixWorkload {
            payload_bytes,
            packets_per_second: NonZeroU64::MIN,
            receive_buffer_bytes: Some(RECEIVE_BUFFER_BYTES),
        }),
        options: TrafficOptions::default(),
        load: None,
        commands: Default::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_carries_what_fits_and_others_are_refused() {
        let frame = |bytes| LinePacket::Frame { bytes };
        let file = frames_study(&[frame(64), LinePacket::Imix]).unwrap();
        let [minimum, mix] = &file.design.workloads[..] else {
            panic!("two workloads")
        };
        assert_eq!(
            (minimum.name.as_str(), mix.name.as_str()),
            ("frame64", "imix")
        );
        assert_eq!(minimum.request.workload().datagram_bytes(), Some(18));
        assert_eq!(mix.request.workload().datagram_bytes(), None);
        for bytes in [63, 1519, 100_000] {
            let refused = frames_study(&[frame(bytes)]).unwrap_err().to_string();
            assert!(refused.contains("64 to 1518"), "{refused}");
        }
    }
}
