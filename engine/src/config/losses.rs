//! What happens when records are lost: `on.loss`, `on.target.loss`, `errors.tolerance`.
//!
//! # References
//! `ConnectorConfig.ERRORS_TOLERANCE_CONFIG`; `WorkerSourceTask`: with `all`, a record that the producer fails on is skipped.

use super::error::Fault;
use super::resolve::Resolver;
use crate::machine::loss::{LossPolicy, OnLoss, OnTargetLoss};

/// Reads what the operator wants; where nothing is written, nothing stands still for what is gone at the source, and nothing is
/// written into a target that has lost records.
pub(super) fn read(resolver: &mut Resolver<'_>) -> LossPolicy {
    LossPolicy {
        on_loss: word(resolver, "on.loss", &[("continue", OnLoss::Continue), ("hold", OnLoss::Hold)]),
        on_target_loss: word(
            resolver,
            "on.target.loss",
            &[
                ("hold", OnTargetLoss::Hold),
                ("recopy", OnTargetLoss::Recopy),
                ("continue", OnTargetLoss::Continue),
            ],
        ),
        // Other words than MM2's are refused with those of its other keys.
        skips_refused: resolver.find("errors.tolerance").is_some_and(|entry| entry.value.trim() == "all"),
    }
}

/// What the written word means; the first of them where none is written.
fn word<T: Copy>(resolver: &mut Resolver<'_>, key: &str, words: &[(&str, T)]) -> T {
    let default = words[0].1;
    let Some(entry) = resolver.find(key) else { return default };
    if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == entry.value.trim()) {
        return *meaning;
    }
    let known: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
    resolver.fault(Fault::of(entry, format!("not {}", known.join(" or "))).remedy("write one of them"));
    default
}
