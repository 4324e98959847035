//! Where a flow begins when it first starts: `auto.offset.reset` of the consumer at the source.
//!
//! # References
//! KIP-1106 and `AutoOffsetResetStrategy` for the values; `java.time.Duration#parse` for durations.

use std::fmt;
use std::time::Duration;

use super::error::Fault;
use super::keys::Role;
use super::resolve::Resolver;
use super::settings::Side;

const KEY: &str = "auto.offset.reset";
const BY_DURATION: &str = "by_duration:";

/// Where partitions begin that are there when their flow first starts. Whatever appears later begins at its beginning,
/// and once a flow has started this is never read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartPosition {
    /// At the log start.
    Earliest,
    /// At the end: what is written from the first start on is copied.
    Latest,
    /// At the first record that is not older than this when the flow first starts; at the end where all are.
    ByDuration(Duration),
}

/// As Kafka writes it.
impl fmt::Display for StartPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Earliest => f.write_str("earliest"),
            Self::Latest => f.write_str("latest"),
            Self::ByDuration(back) => {
                write!(f, "{BY_DURATION}PT{}.{:09}S", back.as_secs(), back.subsec_nanos())
            }
        }
    }
}

/// Reads the position; MM2's default where nobody wrote it, or where a fault was found.
pub(super) fn read(resolver: &mut Resolver<'_>) -> StartPosition {
    let reader = resolver.connectors().of_client(Side::Source, Role::Consumer);
    let Some(entry) = reader.get(KEY) else { return StartPosition::Earliest };
    parse(entry.value.trim()).unwrap_or_else(|reason| {
        let remedy = "write `earliest`, `latest`, or a time to go back such as `by_duration:P1DT12H`";
        resolver.fault(Fault::of(entry, reason).remedy(remedy));
        StartPosition::Earliest
    })
}

fn parse(value: &str) -> Result<StartPosition, &'static str> {
    match value {
        "earliest" => Ok(StartPosition::Earliest),
        "latest" => Ok(StartPosition::Latest),
        "none" => Err("without a reset rule a first start has nowhere to begin"),
        _ => match value.strip_prefix(BY_DURATION).map(duration) {
            Some(Some(back)) => Ok(StartPosition::ByDuration(back)),
            Some(None) => {
                Err("not a duration of ISO-8601 in days, hours, minutes and seconds, or a negative one")
            }
            None => Err("not a position to start at"),
        },
    }
}

/// A duration of ISO-8601 as Java reads it: in either case, with signs before the whole and before each number.
fn duration(text: &str) -> Option<Duration> {
    let text = text.to_ascii_uppercase();
    let (is_negated, text) = text.strip_prefix('-').map_or((false, text.as_str()), |text| (true, text));
    let text = text.strip_prefix('+').filter(|_| !is_negated).unwrap_or(text).strip_prefix('P')?;
    let (date, time) = text.split_once('T').map_or((text, None), |(date, time)| (date, Some(time)));
    if time.unwrap_or(date).is_empty() {
        return None;
    }
    let (days, date) = nanos_before(date, 'D', 86_400)?;
    let (hours, time) = nanos_before(time.unwrap_or_default(), 'H', 3_600)?;
    let (minutes, time) = nanos_before(time, 'M', 60)?;
    let (seconds, time) = nanos_before(time, 'S', 1)?;
    let sum = days + hours + minutes + seconds;
    let nanos = u128::try_from(if is_negated { -sum } else { sum }).ok()?;
    let is_whole = date.is_empty() && time.is_empty();
    let (seconds, nanos) = (u64::try_from(nanos / NANOS).ok()?, u32::try_from(nanos % NANOS).ok()?);
    is_whole.then(|| Duration::new(seconds, nanos))
}

const NANOS: u128 = 1_000_000_000;

/// The number before a unit, in nanoseconds, and what follows; 0 where the unit is not written.
fn nanos_before(text: &str, unit: char, seconds: i128) -> Option<(i128, &str)> {
    let Some((number, rest)) = text.split_once(unit) else { return Some((0, text)) };
    let (whole, fraction) = match number.split_once(['.', ',']) {
        Some((whole, fraction)) if unit == 'S' => (whole, fraction),
        _ => (number, ""),
    };
    if fraction.len() > 9 || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let nanos: i128 = format!("{fraction:0<9}").parse().ok()?;
    let nanos = if whole.starts_with('-') { -nanos } else { nanos };
    let whole: i64 = whole.parse().ok()?;
    Some((i128::from(whole) * seconds * NANOS.cast_signed() + nanos, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(text: &str) -> Option<f64> {
        duration(text).map(|duration| duration.as_secs_f64())
    }

    #[test]
    fn positions_are_kafkas_letter_by_letter() {
        assert_eq!(parse("earliest"), Ok(StartPosition::Earliest));
        assert_eq!(parse("latest"), Ok(StartPosition::Latest));
        assert_eq!(parse("by_duration:PT1H"), Ok(StartPosition::ByDuration(Duration::from_secs(3600))));
        assert!(parse("none").unwrap_err().contains("nowhere to begin"));
        for bad in ["", "Latest", "EARLIEST", "smallest", "by_duration", "by_duration=PT1H"] {
            assert_eq!(parse(bad), Err("not a position to start at"), "{bad}");
        }
        assert!(parse("by_duration:").is_err() && parse("by_duration:1h").is_err());
    }

    #[test]
    fn durations_are_read_as_java_reads_them() {
        for (text, wanted) in [
            ("PT1H", 3600.0),
            ("P1DT2H3M4.5S", 93_784.5),
            ("P2D", 172_800.0),
            ("pt15m", 900.0),
            ("PT0.000000001S", 1e-9),
            ("PT1,25S", 1.25),
            ("PT3.S", 3.0),
            ("PT-0S", 0.0),
            ("PT1H-10M", 3000.0),
            ("P1DT-24H", 0.0),
            ("-PT-6H", 21_600.0),
            ("+P+1D", 86_400.0),
            ("PT1M-0.5S", 59.5),
        ] {
            assert_eq!(seconds(text), Some(wanted), "{text}");
        }
        let bad = "1H P PT P1DT PT1 T1H PT1M2H P1D2H P1Y P1W PT1.5H P1.5D PT1.1234567890S PT.5S -PT1H PT-1S +-PT1S -+PT1S \
                   --PT1S PTS PT1SS PT1H1H PT1.-5S PT9223372036854775808S PT1H_";
        for text in bad.split(' ').chain(["", "PT 1S"]) {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(seconds in 0..i64::MAX.unsigned_abs(), nanos in 0..1_000_000_000u32) {
            let position = StartPosition::ByDuration(Duration::new(seconds, nanos));
            prop_assert_eq!(parse(&position.to_string()), Ok(position));
        }

        #[test]
        fn no_text_is_too_odd(text in "[-+PTDHMS0-9.,]{0,30}") {
            let _ = duration(&text);
        }
    }
}
