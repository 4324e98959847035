//! The embeddable replicator.

pub mod clock;
pub mod io;
pub mod machine;
pub mod state;
