//! What the tests of this folder share.

pub(crate) mod closed_port;
pub(super) mod fake_broker;
