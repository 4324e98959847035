//! What was said about topics of a flow, so that each listing says only what is new.

use std::collections::BTreeSet;

use crate::driver::topics::Failure;
use crate::machine::topic_sync::LeftOut;

/// Topics that one line names; a source may hold thousands.
const NAMED_MAX: usize = 20;

/// What was said so far.
pub(super) struct Told {
    flow: String,
    failed: BTreeSet<String>,
    left_out: BTreeSet<LeftOut>,
}

impl Told {
    pub(super) fn new(flow: &str) -> Self {
        Self { flow: flow.to_owned(), failed: BTreeSet::new(), left_out: BTreeSet::new() }
    }

    /// Topics that could not be prepared, and why; told again if they fail after they were well.
    pub(super) fn failed(&mut self, failures: &[(String, Failure)]) {
        for (topic, why) in failures.iter().filter(|(topic, _)| self.failed.insert(topic.clone())) {
            let flow = self.flow.as_str();
            match why {
                Failure::Unanswered(reason) | Failure::Passing(reason) => {
                    tracing::warn!(flow, topic, "topic not mirrored yet, still trying: {reason}");
                }
                Failure::Lasting(reason) => tracing::error!(flow, topic, "topic not mirrored yet: {reason}"),
            }
        }
        self.failed.retain(|topic| failures.iter().any(|(failed, _)| failed == topic));
    }

    /// Topics that a rule keeps at the source although `topics` matches them.
    pub(super) fn left_out(&mut self, topics: &[LeftOut]) {
        let new: Vec<&LeftOut> =
            topics.iter().filter(|topic| self.left_out.insert((*topic).clone())).collect();
        let named =
            new.iter().take(NAMED_MAX).map(|topic| format!("{} ({})", topic.source_topic, topic.rule));
        let named: Vec<String> = named.collect();
        let more = new.len() - named.len();
        if !named.is_empty() {
            let named = named.join(", ");
            tracing::info!(flow = self.flow, more, "left out although `topics` matches them: {named}");
        }
    }
}
