//! Decisions as pure state machines: no clock, no socket, no randomness; time and chance are arguments.

pub mod backoff;
pub mod metadata;
