//! The embeddable replicator.

pub mod clock;
pub mod config;
pub mod io;
pub mod machine;
pub mod policy;
pub mod state;
