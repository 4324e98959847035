//! What switches a flow on: its own `enabled`, or the one of all pairs, which counts only where heartbeats are on.
//!
//! # References
//! `MirrorMakerConfig#clusterPairs`.

use super::flows::pair_key;
use super::properties::{Entry, Properties};
use super::resolve::parse_boolean;

const HEARTBEATS: &str = "emit.heartbeats.enabled";

/// The switch that counts for a pair: its own, else the one of all pairs.
///
/// MM2 makes a worker for a pair that has a switch of its own, or heartbeats. Without it the switch of all pairs is read by
/// nobody.
pub(super) fn enabling_entry<'p>(
    properties: &'p Properties,
    source: &str,
    target: &str,
) -> Option<&'p Entry> {
    let own = properties.find(&pair_key(source, target, "enabled"));
    own.or_else(|| common(properties).filter(|_| has_heartbeats(properties, source, target)))
}

/// The switch of all pairs.
pub(super) fn common(properties: &Properties) -> Option<&Entry> {
    properties.find("enabled")
}

/// Whether MM2 would emit heartbeats for a pair, which is what it does by default. As strict about blanks as it is.
fn has_heartbeats(properties: &Properties, source: &str, target: &str) -> bool {
    let own = properties.find(&pair_key(source, target, HEARTBEATS));
    let entry = own.or_else(|| properties.find(HEARTBEATS));
    entry.is_none_or(|entry| entry.value.eq_ignore_ascii_case("true"))
}

/// Whether a value that is no boolean does not say that the flow is off: then it is looked at with the others.
pub(super) fn may_mean_on(value: &str) -> bool {
    let off = ["no", "off", "0", "n", "f", "disabled"];
    parse_boolean(value).is_none() && !off.contains(&value.trim().to_ascii_lowercase().as_str())
}
