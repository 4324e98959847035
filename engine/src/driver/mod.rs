//! Drivers: they feed the machines and carry out their commands. Each owns its state; bounded channels join them.

mod answer_parts;
mod ask;
mod config_sync;
mod fetcher;
pub(crate) mod flow;
mod lanes;
pub(crate) mod partitions;
mod produce;
mod recover;
mod shard;
mod state_topic;
mod stretch;
mod topic_configs;
mod topics;
