//! The decisions, as state machines without clock, socket or randomness.
//!
//! Every machine takes what happened through `handle_*`, gives what is to be done through `poll_*`, and tells by
//! `next_timeout` when it wants to be woken. Time and random numbers are arguments. No machine calls another one that
//! it does not own; drivers carry outputs to inputs.

pub mod acceptance;
pub mod backoff;
pub mod cluster_names;
pub mod config_sync;
pub mod course;
pub mod deleted_topics;
pub mod fetch_pace;
pub mod fetch_plan;
pub mod fetch_session;
pub mod fetch_size;
pub mod first_start;
pub mod flow_identity;
pub mod flow_starts;
pub mod from_target;
pub mod hold;
pub mod line_up;
pub mod lineage;
pub mod loss;
pub mod metadata;
pub mod partition;
pub mod partition_record;
pub mod produce_groups;
pub mod produce_window;
pub mod read_replica;
pub mod resume;
pub mod sequence;
pub mod share;
pub mod state_log;
pub mod throttle;
pub mod timers;
pub mod topic_sync;
pub mod turns;

/// Time since some fixed moment before the process began, by a clock that goes on while the machine sleeps.
pub type Now = std::time::Duration;
