//! Three instances of the partition machine at once, each with batches cut in its own way, on a real cluster.
//!
//! What the rest of twinlog would do around the machines is done here, small and unkind: the source is made up in memory
//! and cut into batches at random, so that rivals disagree on every boundary; the state topic is an ordered log in
//! memory; connections end in mid-flight, old batches are sent again, machines vanish and come back.
//!
//! | file | |
//! |---|---|
//! | `upstream` | the records of a partition and their offsets, the same for all; batches, different each time |
//! | `shared_log` | what the state topic does for one partition |
//! | `ask` | requests to the target's brokers |
//! | `wire` | batches on their way: in order, repeated, cut off |
//! | `rival` | one instance of one partition |

mod ask;
mod rival;
mod shared_log;
mod upstream;
mod wire;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use tokio::{
    runtime::Runtime,
    task::JoinHandle,
    time::{sleep, timeout},
};
use twinlog_engine::{
    io::cluster::{ClusterClient, ClusterConfig},
    machine::{
        loss::LossPolicy,
        metadata::HostPort,
        partition::{MergeSizes, Packing, PartitionConfig},
    },
};

use self::{rival::Rival, shared_log::SharedLog, upstream::Upstream};
use crate::deadline::Deadline;

/// Instances that copy the same partitions at once.
pub const INSTANCES: usize = 3;
/// How long the cluster may take to answer for the first time, and the rivals to come to rest.
const PATIENCE: Duration = Duration::from_secs(120);
/// Little, so that batches are fetched while others are under way.
const BACKLOG_BYTES_MAX: usize = 4096;

/// What rivals copy.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Topic on the target; it exists.
    pub topic: String,
    /// Its partitions.
    pub partitions: u32,
    /// Records of each partition: the values are "0", "1" … in order.
    pub records: u64,
    /// Whether the last instance has a map of its own: it leaves the first record out.
    pub deviant: bool,
    /// Decides everything that is left to chance.
    pub seed: u64,
}

impl Plan {
    /// The first sequence of a generation, so that sequences start over in the middle of the run.
    #[must_use]
    pub fn first_sequence(&self) -> i32 {
        let before = i32::try_from(self.records / 2).expect("far fewer records than sequences");
        i32::MAX - before
    }
}

/// What happened, over all partitions.
#[derive(Debug, Default)]
struct Counts {
    stale: AtomicU64,
    dropped: AtomicU64,
    crashes: AtomicU64,
    line_ups: AtomicU64,
    doubts: AtomicU64,
    copied: [AtomicU64; INSTANCES],
}

/// What happened in a run, over all partitions.
#[derive(Clone, Copy, Debug)]
pub struct Tally {
    /// Batches that were sent again out of turn.
    pub stale: u64,
    /// Connections that were ended with batches under way.
    pub dropped: u64,
    /// Machines that vanished and came back.
    pub crashes: u64,
    /// Line-ups that led to copying.
    pub line_ups: u64,
    /// Windows that closed because a batch was refused or its answer lost.
    pub doubts: u64,
    /// Records acknowledged to each instance; some to several.
    pub copied: [u64; INSTANCES],
}

/// What all rivals share.
#[derive(Debug)]
struct Field {
    topic: String,
    config: PartitionConfig,
    upstreams: Vec<Upstream>,
    /// Of each partition.
    logs: Vec<SharedLog>,
    /// Records acknowledged, of each partition.
    acknowledged: Vec<AtomicU64>,
    counts: Counts,
    /// What should not have happened.
    faults: Mutex<Vec<String>>,
    stopping: AtomicBool,
}

impl Field {
    fn fault(&self, what: String) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Notes that everything below an upstream offset is acknowledged.
    fn note_acknowledged(&self, partition: usize, upstream: i64) {
        let records = self.upstreams[partition].number_at(upstream);
        self.acknowledged[partition].fetch_max(records, Ordering::Relaxed);
    }
}

/// A running set of instances.
#[derive(Debug)]
pub struct Rivals {
    runtime: Runtime,
    field: Arc<Field>,
    tasks: Vec<JoinHandle<()>>,
}

impl Rivals {
    /// Starts all instances at once. They have one producer id, and nothing to copy before [`Rivals::release`].
    ///
    /// # Errors
    /// When the cluster does not answer in two minutes.
    pub fn start(bootstrap: &str, plan: &Plan) -> Result<Self> {
        let runtime = Runtime::new()?;
        let mut random = fastrand::Rng::with_seed(plan.seed);
        let clients = runtime.block_on(connect(bootstrap, &mut random))?;
        let producer_id = runtime.block_on(producer_id(&clients[0]))?;
        let partitions = plan.partitions as usize;
        let field = Arc::new(Field {
            topic: plan.topic.clone(),
            config: PartitionConfig {
                fingerprint: 0,
                producer_id,
                first_epoch: random.i16(1..8191),
                first_sequence: plan.first_sequence(),
                backlog_bytes_max: BACKLOG_BYTES_MAX,
                merge_sizes: MergeSizes::default(),
                losses: LossPolicy::default(),
                packing: Packing::default(),
            },
            upstreams: (0..partitions).map(|_| Upstream::new(plan.records, &mut random)).collect(),
            logs: (0..partitions).map(|_| SharedLog::default()).collect(),
            acknowledged: (0..partitions).map(|_| AtomicU64::new(0)).collect(),
            counts: Counts::default(),
            faults: Mutex::default(),
            stopping: AtomicBool::new(false),
        });
        let mut tasks = Vec::new();
        for (instance, client) in clients.iter().enumerate() {
            let left_out = u64::from(plan.deviant && instance + 1 == INSTANCES);
            for partition in 0..partitions {
                let random = random.fork();
                let rival =
                    Rival::new(Arc::clone(&field), client.clone(), instance, partition, left_out, random);
                tasks.push(runtime.spawn(rival.run()));
            }
        }
        Ok(Self { runtime, field, tasks })
    }

    /// Lets the source have this many records in each partition.
    pub fn release(&self, records: u64) {
        self.field.upstreams.iter().for_each(|upstream| upstream.release(records));
    }

    /// Records acknowledged so far, in all partitions.
    ///
    /// # Errors
    /// What should not have happened: a partition that is held, a machine that panicked.
    pub fn acknowledged(&self) -> Result<u64> {
        let faults = self.field.faults.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(faults.is_empty(), "{}", faults.join("\n"));
        drop(faults);
        ensure!(
            self.tasks.iter().all(|task| !task.is_finished()),
            "an instance ended by itself: it panicked"
        );
        Ok(self.field.acknowledged.iter().map(|records| records.load(Ordering::Relaxed)).sum())
    }

    /// Lets all come to rest, late repeats included.
    ///
    /// # Errors
    /// When one does not in two minutes, or something should not have happened.
    pub fn stop(self) -> Result<Tally> {
        self.field.stopping.store(true, Ordering::Relaxed);
        let Self { runtime, field, tasks } = self;
        runtime.block_on(async {
            for task in tasks {
                timeout(PATIENCE, task).await.context("an instance does not come to rest")??;
            }
            anyhow::Ok(())
        })?;
        let faults = field.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if !faults.is_empty() {
            bail!("{}", faults.join("\n"));
        }
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &field.counts;
        Ok(Tally {
            stale: load(&counts.stale),
            dropped: load(&counts.dropped),
            crashes: load(&counts.crashes),
            line_ups: load(&counts.line_ups),
            doubts: load(&counts.doubts),
            copied: [0, 1, 2].map(|instance| load(&counts.copied[instance])),
        })
    }
}

/// A client for each instance, as each process has its own.
async fn connect(bootstrap: &str, random: &mut fastrand::Rng) -> Result<Vec<ClusterClient>> {
    let servers: Result<Vec<HostPort>> = bootstrap
        .split(',')
        .map(|server| {
            let (host, port) = server.split_once(':').context("host:port")?;
            Ok(HostPort::new(host, port.parse()?))
        })
        .collect();
    let servers = servers?;
    let mut clients = Vec::new();
    for _ in 0..INSTANCES {
        let config = ClusterConfig::new("target", servers.clone());
        let client = timeout(PATIENCE, ClusterClient::connect(config, random.u64(..)));
        clients.push(client.await.context("the target does not answer")?);
    }
    Ok(clients)
}

/// The producer id of all; a broker that has just started needs a moment.
async fn producer_id(client: &ClusterClient) -> Result<i64> {
    let deadline = Deadline::after(PATIENCE);
    loop {
        match ask::new_producer_id(client).await {
            Ok(producer_id) => return Ok(producer_id),
            Err(why) if deadline.passed() => bail!("InitProducerId: {why:?}"),
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}
