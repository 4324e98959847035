//! Who races: replicators with the same properties file, but for the aliases, and the raw relay.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use super::{tuned::tuned, workload::Workload};
use crate::{
    process::{Process, exit_code},
    real::{
        Version,
        kafka::{Cluster, tail},
        mirror_maker::MirrorMaker,
    },
    twinlog::{FlowFile, Twinlog, built},
};

/// A replicator that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The real MirrorMaker 2 at its defaults.
    MirrorMaker,
    /// The same, tuned for throughput.
    TunedMirrorMaker,
    /// [`relay`](super::relay): what the brokers can do.
    RawRelay,
    /// The program of this repository.
    Twinlog,
}

impl Peer {
    /// In the order of the table; the last one is what the others are compared with.
    pub const ALL: [Self; 4] = [Self::MirrorMaker, Self::TunedMirrorMaker, Self::RawRelay, Self::Twinlog];

    /// Whether it can do what `workload` asks for: the raw relay packs nothing anew.
    #[must_use]
    pub fn copies(self, workload: &Workload) -> bool {
        self != Self::RawRelay || workload.compression_type.is_none()
    }

    /// What `--peers` and the names of logs call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MirrorMaker => "mm2",
            Self::TunedMirrorMaker => "tuned",
            Self::RawRelay => "relay",
            Self::Twinlog => "twinlog",
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MirrorMaker => write!(f, "MM2 {}", Version::V4_3_1),
            Self::TunedMirrorMaker => write!(f, "MM2 {}, tuned", Version::V4_3_1),
            Self::RawRelay => f.write_str("raw relay"),
            Self::Twinlog => f.write_str("twinlog"),
        }
    }
}

/// A flow for one race. Aliases carry the race's number, so each race begins from nothing: own remote topics, own
/// state, own Connect groups.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Who copies.
    pub peer: Peer,
    /// What the topic is called on the target.
    pub remote_topic: String,
    topic: String,
    servers: [String; 2],
    file: FlowFile,
}

impl Entry {
    /// The flow of the workload's topic in race number `race`: MM2's defaults with four tasks, and one replica of everything,
    /// because the clusters have one broker.
    #[must_use]
    pub fn new(peer: Peer, source: &Cluster, target: &Cluster, workload: &Workload, race: u32) -> Self {
        let topic = workload.topic;
        let (from, to) = (format!("src{race}"), format!("dst{race}"));
        let mut file = FlowFile::plain((&from, source), (&to, target), topic).with("tasks.max", "4");
        for of in ["", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic."] {
            file = file.with(&format!("{of}replication.factor"), "1");
        }
        for of in ["offset", "status", "config"] {
            file = file.with(&format!("{of}.storage.replication.factor"), "1");
        }
        if peer == Peer::TunedMirrorMaker {
            file = tuned(file, &from, &to, workload.compression_type.unwrap_or(workload.codec));
        }
        file = match (peer, workload.compression_type) {
            (Peer::Twinlog, Some(codec)) => {
                file.with(&format!("{from}->{to}.compression.type"), codec.name())
            }
            (Peer::MirrorMaker, Some(codec)) => {
                file.with(&format!("{to}.producer.compression.type"), codec.name())
            }
            _ => file,
        };
        let servers = [source.proxied_bootstrap(), target.proxied_bootstrap()];
        Self { peer, remote_topic: format!("{from}.{topic}"), topic: topic.to_owned(), servers, file }
    }

    /// Starts the peer; its file and log go into `folder`.
    ///
    /// # Errors
    /// When it cannot be built or started.
    pub fn start(&self, folder: &Path) -> Result<Racer> {
        let log = folder.join(format!("{}-{}.log", self.remote_topic, self.peer.name()));
        if self.peer == Peer::RawRelay {
            let mut command = Command::new(raw_relay()?);
            let [source, target] = &self.servers;
            command.args(["--source", source, "--target", target, "--topic", &self.topic]);
            command.args(["--target-topic", &self.remote_topic]);
            let process = Process::start("raw relay", command, &log)?;
            return Ok(Racer::RawRelay { process, said: log });
        }
        let file = self.file.write(folder)?;
        Ok(match self.peer {
            Peer::Twinlog => Racer::Twinlog(Twinlog::run(&file, &[], &log)?),
            _ => Racer::MirrorMaker(MirrorMaker::run(&file, &log)?),
        })
    }
}

/// The raw relay, built as twinlog is, the first time that it is asked for.
///
/// # Errors
/// What cargo said when it does not build.
pub fn raw_relay() -> Result<PathBuf> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || built("twinlog-tests", "raw_relay").map_err(|error| format!("{error:#}"));
    PROGRAM.get_or_init(build).clone().map_err(anyhow::Error::msg)
}

/// A running peer.
#[derive(Debug)]
pub enum Racer {
    /// MirrorMaker 2.
    MirrorMaker(MirrorMaker),
    /// The raw relay.
    RawRelay {
        /// Runs until it is ended.
        process: Process,
        /// Its log.
        said: PathBuf,
    },
    /// twinlog.
    Twinlog(Twinlog),
}

impl Racer {
    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        match self {
            Self::MirrorMaker(process) => process.id(),
            Self::RawRelay { process, .. } => process.id(),
            Self::Twinlog(process) => process.id(),
        }
    }

    /// # Errors
    /// When it has ended, with its last lines.
    pub fn ensure_running(&mut self) -> Result<()> {
        match self {
            Self::MirrorMaker(process) => process.ensure_running(),
            Self::RawRelay { process, said } => match process.ended()? {
                None => Ok(()),
                Some(status) => bail!("raw relay ended with {}: {}", exit_code(status), tail(said, 20)),
            },
            Self::Twinlog(process) => process.ensure_running(),
        }
    }

    /// SIGTERM, and waits for its end.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn stop(&mut self) -> Result<()> {
        match self {
            Self::MirrorMaker(process) => process.stop().map(drop),
            Self::RawRelay { process, .. } => {
                process.terminate()?;
                process.wait(Duration::from_secs(5)).map(drop).context("the raw relay after SIGTERM")
            }
            Self::Twinlog(process) => process.stop(),
        }
    }
}
