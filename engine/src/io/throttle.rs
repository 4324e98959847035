//! Throttle times in answers: the broker asks us to be silent for a while (KIP-219).

use std::time::Duration;

use bytes::Bytes;
use twinlog_protocol::{cursor::Cursor, header::decode_response_header, versions::Api};

/// Brokers throttle by windows of some seconds; a longer time is a mistake or a lie, and would be silence without
/// an end.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How long to be silent; nothing for no time at all.
pub(super) fn pause(throttle_time_ms: i32) -> Option<Duration> {
    let pause = Duration::from_millis(u64::try_from(throttle_time_ms).ok()?).min(PAUSE_MAX);
    (!pause.is_zero()).then_some(pause)
}

/// The throttle time of an answer: its first field in every version that we speak. ApiVersions and Produce have it
/// elsewhere: the first is never throttled here, the second is read by its own codec; both give 0.
pub(super) fn throttle_time_ms(api: Api, version: i16, correlation_id: i32, frame: &Bytes) -> i32 {
    if matches!(api, Api::ApiVersions | Api::Produce) {
        return 0;
    }
    let mut cursor = Cursor::new(frame.clone());
    decode_response_header(&mut cursor, api, version, correlation_id)
        .and_then(|()| cursor.i32("throttle time"))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_behind_either_header() {
        let plain = Bytes::from_static(&[0, 0, 0, 5, 0, 0, 1, 0, 9, 9]);
        assert_eq!(throttle_time_ms(Api::Metadata, 8, 5, &plain), 256);
        let flexible = Bytes::from_static(&[0, 0, 0, 5, 0, 0, 0, 1, 0, 9, 9]);
        assert_eq!(throttle_time_ms(Api::Metadata, 9, 5, &flexible), 256);
        assert_eq!(throttle_time_ms(Api::Produce, 9, 5, &flexible), 0);
    }

    #[test]
    fn a_cut_answer_has_none() {
        assert_eq!(throttle_time_ms(Api::Metadata, 8, 5, &Bytes::from_static(&[0, 0, 0, 5, 0])), 0);
    }

    #[test]
    fn negative_and_endless_times() {
        assert_eq!(pause(0), None);
        assert_eq!(pause(-1), None);
        assert_eq!(pause(250), Some(Duration::from_millis(250)));
        assert_eq!(pause(i32::MAX), Some(PAUSE_MAX));
    }
}
