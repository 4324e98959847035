//! A source and a sink of our own that cost almost nothing, so that a replicator itself is measured.
//!
//! Each is a cluster of one broker, in threads of this process. The source gives out a topic from memory: one batch again
//! and again, at the offsets that are asked for. The sink acknowledges batches unread: it looks at their headers, so its log
//! ends are right and it knows what it knows of producers, and lets the system throw the payloads away. Only internal topics
//! are kept and can be read back. They speak what twinlog asks for, in the newest versions.
//!
//! | file | |
//! |---|---|
//! | `log` | topics and their partitions |
//! | `listener` | connections; which request goes where |
//! | `questions` | everything but Fetch and Produce |
//! | `fetch`, `produce` | the data path |
//! | `sessions` | what a Fetch need not name again |
//! | `inlet` | a request off a socket, without its payloads |
//! | `bytes` | a source and a sink of bytes without meaning, for the TCP relay |

pub mod bytes;
mod fetch;
mod inlet;
mod listener;
mod log;
mod produce;
mod questions;
mod sessions;

use std::sync::Arc;

use anyhow::Result;

use self::{
    listener::listen,
    log::{Broker, Supply, Topic},
};
use crate::real::ports::Port;

/// The topic of the source.
pub const TOPIC: &str = "bench";

/// What the source holds.
#[derive(Clone, Copy, Debug)]
pub struct Stock {
    /// Partitions of [`TOPIC`].
    pub partitions: u32,
    /// Batches in each.
    pub batches: u32,
    /// Records of each batch.
    pub records_per_batch: u32,
    /// Bytes of each record's value.
    pub value_bytes: usize,
}

/// A running pair; it ends with the process.
#[derive(Debug)]
pub struct Pair {
    source: Arc<Broker>,
    sink: Arc<Broker>,
    _ports: [Port; 2],
}

impl Pair {
    /// Starts both.
    ///
    /// # Errors
    /// When there is no free port.
    pub fn start(stock: &Stock) -> Result<Self> {
        let ports = [Port::reserve()?, Port::reserve()?];
        let supply = Supply::new(stock)?;
        let topic = Topic::supplied(TOPIC, stock, supply.records_per_batch());
        let source = Arc::new(Broker::new("bench-source", ports[0].number(), Some(supply)));
        source.add(topic);
        let sink = Arc::new(Broker::new("bench-sink", ports[1].number(), None));
        listen(&source)?;
        listen(&sink)?;
        Ok(Self { source, sink, _ports: ports })
    }

    /// Address of the source.
    #[must_use]
    pub fn source(&self) -> String {
        self.source.address()
    }

    /// Address of the sink.
    #[must_use]
    pub fn sink(&self) -> String {
        self.sink.address()
    }

    /// Bytes of all batches of the source.
    #[must_use]
    pub fn stock_bytes(&self) -> u64 {
        self.source.stock_bytes()
    }

    /// Bytes of the batches that the sink took, those of internal topics left out.
    #[must_use]
    pub fn taken_bytes(&self) -> u64 {
        self.sink.taken_bytes()
    }

    /// Records of each partition of a topic on the sink; nothing while it is not there.
    #[must_use]
    pub fn log_ends(&self, topic: &str) -> Vec<i64> {
        self.sink.log_ends(topic)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::runtime::Runtime;
    use twinlog_engine::{Engine, config::MirrorConfig};

    use super::*;

    /// The engine between both: everything that is asked is answered so that it copies, and it finds its place again.
    async fn copy(pair: &Pair) -> u64 {
        let file = format!(
            "clusters = src, dst\nsrc.bootstrap.servers = {}\ndst.bootstrap.servers = {}\n\
             src->dst.enabled = true\nsrc->dst.topics = {TOPIC}\nreplication.factor = 1\n\
             offset.storage.replication.factor = 1\n",
            pair.source(),
            pair.sink()
        );
        let config = MirrorConfig::from_properties(file.as_bytes()).unwrap();
        let engine = Engine::builder(config).start().await.unwrap();
        let flow = engine.flow("src->dst").unwrap();
        tokio::time::timeout(Duration::from_secs(60), flow.caught_up()).await.unwrap().unwrap();
        let records = flow.status().records;
        engine.shutdown(Duration::from_secs(5)).await.unwrap();
        records
    }

    #[test]
    fn twinlog_copies_every_batch_once_and_finds_its_place_again() {
        let stock = Stock { partitions: 3, batches: 40, records_per_batch: 7, value_bytes: 100 };
        let pair = Pair::start(&stock).unwrap();
        let runtime = Runtime::new().unwrap();
        assert_eq!(runtime.block_on(copy(&pair)), 3 * 40 * 7);
        assert_eq!(pair.log_ends("src.bench"), [280, 280, 280]);
        // Small batches arrive in fewer.
        let taken = pair.taken_bytes();
        assert!((1..=pair.stock_bytes()).contains(&taken), "{taken} of {}", pair.stock_bytes());
        assert_eq!(runtime.block_on(copy(&pair)), 0);
        assert_eq!(pair.taken_bytes(), taken);
    }
}
