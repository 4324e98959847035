//! The embeddable replicator: copies the topics of one Kafka cluster to another, exactly once.
//!
//! ```no_run
//! use std::{fs, time::Duration};
//! use twinlog_engine::{Engine, Error, config::MirrorConfig};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Error> {
//!     let file = fs::read("mm2.properties").expect("the file is there");
//!     let engine = Engine::builder(MirrorConfig::from_properties(&file)?).start().await?;
//!     let flow = engine.flow("west->east")?;
//!     flow.caught_up().await?;
//!     println!("{} records copied", flow.status().records);
//!     for partition in flow.partitions().await {
//!         println!("{}-{}: {}", partition.topic, partition.partition, partition.state);
//!     }
//!     engine.shutdown(Duration::from_secs(5)).await
//! }
//! ```
//!
//! The engine has no global state, handles no signals and sets no logger up. `ARCHITECTURE.md` beside this crate's
//! manifest tells how it works and where to read.

pub mod clock;
pub mod config;
mod driver;
mod engine;
mod error;
mod event;
mod flow_handle;
pub mod io;
pub mod machine;
mod partition_status;
pub mod policy;
pub mod state;
mod status;

pub use engine::{Engine, EngineBuilder};
pub use error::{Error, Unreached};
pub use event::FlowEvent;
pub use flow_handle::FlowHandle;
pub use partition_status::{PartitionState, PartitionStatus};
pub use status::{FailedTopic, FlowStatus, HeldPartition, PartitionLoss};
