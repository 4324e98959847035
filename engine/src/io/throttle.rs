//! Throttle times in answers: the broker asks us to be silent for a while (KIP-219).
//!
//! A broker measures by client id and mutes the one connection whose answer tells the time. What other connections of that
//! id send meanwhile would only make the next wait longer, so all of them are silent together.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use twinlog_protocol::{cursor::Cursor, header::decode_response_header, versions::Api};

/// Brokers throttle by windows of some seconds; a longer time is a mistake or a lie, and would be silence without
/// an end.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How often it is told that a broker throttles.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// How long a broker wants to hear nothing, shared by the connections to it that carry one client id.
#[derive(Debug, Default)]
pub struct Silence {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    until: Option<Instant>,
    told_at: Option<Instant>,
}

impl Silence {
    /// Is silent for so long at least. Gives whether that is worth telling.
    pub(super) fn keep(&self, now: Instant, pause: Duration) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.until = state.until.max(Some(now + pause));
        let is_news = state.told_at.is_none_or(|at| now.saturating_duration_since(at) >= TOLD_EVERY);
        if is_news {
            state.told_at = Some(now);
        }
        is_news
    }

    /// The end of the silence, if it is not over.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.until.filter(|&until| until > now)
    }
}

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

    #[tokio::test(start_paused = true)]
    async fn the_longest_silence_counts_and_is_told_once_a_minute() {
        let (silence, now) = (Silence::default(), Instant::now());
        assert_eq!(silence.until(now), None);
        assert!(silence.keep(now, Duration::from_secs(5)));
        assert!(!silence.keep(now, Duration::from_secs(2)));
        assert_eq!(silence.until(now), Some(now + Duration::from_secs(5)));
        assert_eq!(silence.until(now + Duration::from_secs(5)), None);
        assert!(silence.keep(now + TOLD_EVERY, Duration::from_secs(1)));
    }

    #[test]
    fn negative_and_endless_times() {
        assert_eq!(pause(0), None);
        assert_eq!(pause(-1), None);
        assert_eq!(pause(250), Some(Duration::from_millis(250)));
        assert_eq!(pause(i32::MAX), Some(PAUSE_MAX));
    }
}
