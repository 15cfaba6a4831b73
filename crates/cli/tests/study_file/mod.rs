//! Parts of the study files that tests write.

/// A setting of two hosts of a study's own, under which the receiver polls once a period.
pub fn polling(name: &str, period: &str) -> String {
    format!(
        r#"
[[setting]]
name = "{name}"
sender = {{ tso = "off" }}
receiver = {{ gro = "on", napi_defer_hard_irqs = 1000, gro_flush_timeout = "{period}" }}
"#
    )
}

/// Datagrams with 200 bytes of payload at that rate.
pub fn udp200(packets_per_second: u32) -> String {
    format!(
        r#"
[[workload]]
name = "udp200"
traffic = {{ kind = "udp", payload_bytes = 200, packets_per_second = {packets_per_second} }}
"#
    )
}
