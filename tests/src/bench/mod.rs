//! Measuring twinlog beside its peers: same brokers, same source records, same properties file, one after another.
//!
//! A [`workload`] is written once into the source. Each [`peer`] copies it into topics of its own, alone on the machine
//! but for the brokers; a [`race`] is one such copy, timed from the start of the process until the target's log ends
//! are the source's. [`usage`] tells what the process used up to that moment, and [`report`] makes the table.

pub mod command;
pub mod copy_bytes;
pub mod latency;
pub mod pair;
pub mod peer;
pub mod race;
pub mod relay;
pub mod report;
mod tuned;
pub mod usage;
mod vectored;
pub mod wire_report;
pub mod workload;
