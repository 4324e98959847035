//! What happens in a flow, for programs that want to know.

use crate::machine::partition::Event;

/// Something happened to a partition of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowEvent {
    /// The topic's name at the source.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// What happened.
    pub event: Event,
}
