//! The embeddable replicator.
