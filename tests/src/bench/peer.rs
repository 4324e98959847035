//! Who races: each peer runs the same properties file, but for the aliases.

use std::{fmt, path::Path};

use anyhow::Result;

use crate::{
    real::{Version, kafka::Cluster, mirror_maker::MirrorMaker},
    twinlog::{FlowFile, Twinlog},
};

/// A replicator that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The real MirrorMaker 2.
    MirrorMaker,
    /// The program of this repository.
    Twinlog,
}

impl Peer {
    /// In the order of the table; the last one is what the others are compared with.
    pub const ALL: [Self; 2] = [Self::MirrorMaker, Self::Twinlog];

    /// A short name that is good for aliases.
    fn alias(self) -> &'static str {
        match self {
            Self::MirrorMaker => "mm2src",
            Self::Twinlog => "twinlog",
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MirrorMaker => write!(f, "MM2 {}", Version::V4_3_1),
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
    file: FlowFile,
}

impl Entry {
    /// The flow of `topic` in race number `race`: MM2's defaults with four tasks, and one replica of everything,
    /// because the clusters have one broker.
    #[must_use]
    pub fn new(peer: Peer, source: &Cluster, target: &Cluster, topic: &str, race: u32) -> Self {
        let (from, to) = (format!("{}{race}", peer.alias()), format!("dst{race}"));
        let mut file = FlowFile::plain((&from, source), (&to, target), topic).with("tasks.max", "4");
        for of in ["", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic."] {
            file = file.with(&format!("{of}replication.factor"), "1");
        }
        for of in ["offset", "status", "config"] {
            file = file.with(&format!("{of}.storage.replication.factor"), "1");
        }
        Self { peer, remote_topic: format!("{from}.{topic}"), file }
    }

    /// Starts the peer; its file and log go into `folder`.
    ///
    /// # Errors
    /// When it cannot be built or started.
    pub fn start(&self, folder: &Path) -> Result<Racer> {
        let file = self.file.write(folder)?;
        let log = folder.join(format!("{}.log", self.remote_topic));
        Ok(match self.peer {
            Peer::MirrorMaker => Racer::MirrorMaker(MirrorMaker::run(&file, &log)?),
            Peer::Twinlog => Racer::Twinlog(Twinlog::run(&file, &[], &log)?),
        })
    }
}

/// A running peer.
#[derive(Debug)]
pub enum Racer {
    /// MirrorMaker 2.
    MirrorMaker(MirrorMaker),
    /// twinlog.
    Twinlog(Twinlog),
}

impl Racer {
    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        match self {
            Self::MirrorMaker(process) => process.id(),
            Self::Twinlog(process) => process.id(),
        }
    }

    /// # Errors
    /// When it has ended, with its last lines.
    pub fn ensure_running(&mut self) -> Result<()> {
        match self {
            Self::MirrorMaker(process) => process.ensure_running(),
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
            Self::Twinlog(process) => process.stop(),
        }
    }
}
