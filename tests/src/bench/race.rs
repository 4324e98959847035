//! One timed copy: from the start of the process until the target's log ends are the source's.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};

use super::{peer::Entry, usage::Usage};
use crate::{
    deadline::{Deadline, now},
    judge::{Judge, Offsets},
    real::kafka::Cluster,
};

/// What a copy took.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// From the start of the process until everything was on the target.
    pub wall: Duration,
    /// The part of it until the first records were seen there.
    pub first: Duration,
    /// What the process had used by then.
    pub usage: Usage,
    /// Size of the copy in the target's log files.
    pub target_bytes: u64,
}

/// Clusters, judge and the folder for files and logs.
pub struct Course<'a> {
    /// Where the records are.
    pub source: &'a Cluster,
    /// Where they go.
    pub target: &'a Cluster,
    /// Asks both.
    pub judge: &'a mut Judge,
    /// For properties files and logs.
    pub folder: &'a Path,
}

impl Course<'_> {
    /// Copies `topic` by `entry`, stops the process, and leaves the copy on the target.
    ///
    /// # Errors
    /// When the peer ends by itself, takes longer than `limit`, or leaves other log ends than the source's.
    pub fn race(&mut self, entry: &Entry, topic: &str, limit: Duration) -> Result<Measurement> {
        let expected = ends(&self.judge.offsets(self.source, topic)?);
        for cluster in [self.source, self.target] {
            cluster.flush(1)?; // what was written before goes to disk now, not while this is measured
        }
        let begin = now();
        let mut racer = entry.start(self.folder)?;
        let mut first = None;
        Deadline::after(limit).wait(&format!("the copy by {}", entry.peer), || {
            racer.ensure_running()?;
            let found = self.copied(&entry.remote_topic)?;
            if found.iter().any(|end| *end > 0) {
                first.get_or_insert_with(|| begin.elapsed());
            }
            let complete = found.len() == expected.len() && found.iter().zip(&expected).all(|(f, e)| f >= e);
            Ok(complete.then_some(()))
        })?;
        let (wall, usage) = (begin.elapsed(), Usage::of(racer.id())?);
        racer.stop()?;
        let found = self.copied(&entry.remote_topic)?;
        ensure!(found == expected, "{}: log ends {found:?} instead of {expected:?}", entry.peer);
        let target_bytes = self.target.log_bytes(1, &entry.remote_topic)?;
        Ok(Measurement { wall, first: first.context("a copy holds records")?, usage, target_bytes })
    }

    /// Log ends on the target; none while the topic does not exist.
    fn copied(&mut self, topic: &str) -> Result<Vec<i64>> {
        if !self.judge.topics(self.target)?.contains_key(topic) {
            return Ok(Vec::new());
        }
        Ok(ends(&self.judge.offsets(self.target, topic)?))
    }
}

fn ends(offsets: &[Offsets]) -> Vec<i64> {
    offsets.iter().map(|partition| partition.end).collect()
}
