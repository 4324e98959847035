//! The raw relay: how fast batches can go from one broker to another at best, with nothing but what a target demands.
//!
//! It fetches, sets base offset, leader epoch and the producer's fields in each header, computes the CRC anew over the whole
//! batch, and produces with all replicas. It keeps no state, checks nothing, and ends with the first error: a measure for
//! twinlog, not a tool. Kafka 4.3.1 only.
//!
//! | file | |
//! |---|---|
//! | `route` | the topic on both sides, made on the target; which worker copies which partitions |
//! | `worker` | one thread between two connections |
//! | `stamp` | the header of a batch |
//! | `wire` | one blocking connection |

pub(crate) mod route;
mod stamp;
pub(crate) mod wire;
mod worker;

use std::{convert::Infallible, sync::mpsc, thread};

use anyhow::{Context, Result};

use self::{
    route::{new_producer_id, route},
    worker::Worker,
};

/// What to copy, from where to where.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Address of a broker of the source, `host:port`.
    pub source: String,
    /// Address of a broker of the target.
    pub target: String,
    /// Topic on the source.
    pub topic: String,
    /// Topic on the target; made if it is missing.
    pub target_topic: String,
    /// Threads for each pair of a source and a target broker at most, each with a connection to both.
    pub workers: usize,
    /// Bytes of one Fetch answer.
    pub fetch_bytes: i32,
    /// Produce requests under way on one connection.
    pub in_flight: usize,
}

/// Copies until the process is ended, or something fails.
///
/// # Errors
/// The first failure of any kind.
pub fn run(config: &RelayConfig) -> Result<Infallible> {
    let routes = route(config)?;
    let producer_id = new_producer_id(&config.target)?;
    let (failed, failures) = mpsc::channel();
    for route in routes {
        let mut worker = Worker::open(config, &route, producer_id)?;
        let failed = failed.clone();
        thread::spawn(move || {
            let Err(error) = worker.run();
            // The receiver is gone only when the process ends.
            let _ = failed.send(error);
        });
    }
    drop(failed);
    Err(failures.recv().context("the topic has no partitions")?)
}
