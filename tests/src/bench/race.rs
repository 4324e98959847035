//! One timed copy: from the start of the process until the target's log ends are the source's.
//!
//! Brokers are not asked while it runs, or the asking would be measured with it: the target's log files tell how far it is.
//! Once they grow no more, the broker is asked whether that was all.

use std::{path::Path, thread, time::Duration};

use anyhow::{Context, Result, bail, ensure};

use super::{
    peer::{Entry, Racer},
    usage::Usage,
};
use crate::{
    deadline::{Deadline, now},
    judge::{Judge, Offsets},
    real::kafka::Cluster,
};

/// Time between two looks at the log files: at least so much, and so often that looks take a twentieth of the time …
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOK_SHARE: u32 = 20;
/// … but never more: a look among thousands of folders may wait seconds for the disk.
const LOOK_EVERY_MAX: Duration = Duration::from_millis(250);
/// What a process does when all is copied is measured after this pause and for so long.
const SETTLES_IN: Duration = Duration::from_secs(3);
const IDLE_FOR: Duration = Duration::from_secs(10);

/// What a copy took.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// From the start of the process until everything was on the target.
    pub wall: Duration,
    /// The part of it until the first records were seen there.
    pub first: Duration,
    /// What the process had used by then.
    pub usage: Usage,
    /// CPU time of the target broker meanwhile.
    pub target_cpu: Duration,
    /// Size of the copy in the target's log files.
    pub target_bytes: u64,
    /// CPU of the process when all was copied, in parts of one core; none where that was not measured.
    pub idle: Option<f64>,
}

impl Measurement {
    /// Without the start.
    #[must_use]
    pub fn copying(&self) -> Duration {
        self.wall - self.first
    }
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

/// The moment at which a copy was complete.
struct Finish {
    wall: Duration,
    first: Duration,
    usage: Usage,
    target_cpu: Duration,
}

impl Course<'_> {
    /// Copies `topic` by `entry`, stops the process, and leaves the copy on the target. `idles` tells whether the process
    /// is watched for a while when it has nothing left to copy.
    ///
    /// # Errors
    /// When the peer ends by itself, takes longer than `limit`, or leaves other log ends than the source's.
    pub fn race(&mut self, entry: &Entry, topic: &str, idles: bool, limit: Duration) -> Result<Measurement> {
        let expected = ends(&self.judge.offsets(self.source, topic)?);
        for cluster in [self.source, self.target] {
            cluster.flush(1)?; // what was written before goes to disk now, not while this is measured
        }
        let mut racer = None;
        let Finish { wall, first, usage, target_cpu } = self.run(entry, &expected, limit, &mut racer)?;
        let mut racer = racer.context("it was started")?;
        let idle = if idles { Some(idle(&racer)?) } else { None };
        racer.ensure_running()?;
        racer.stop()?;
        let found = self.copied(&entry.remote_topic)?;
        ensure!(found == expected, "{}: log ends {found:?} instead of {expected:?}", entry.peer);
        let target_bytes = self.target.log_bytes(1, &entry.remote_topic)?;
        Ok(Measurement { wall, first, usage, target_cpu, target_bytes, idle })
    }

    fn run(
        &mut self,
        entry: &Entry,
        expected: &[i64],
        limit: Duration,
        racer: &mut Option<Racer>,
    ) -> Result<Finish> {
        let broker = self.target.process_id(1)?;
        let cpu_before = Usage::of(broker)?.cpu;
        let (begin, deadline) = (now(), Deadline::after(limit));
        let racer = racer.insert(entry.start(self.folder)?);
        let (mut bytes_before, mut first, mut grown) = (0, None, None);
        loop {
            let looked_at = begin.elapsed();
            racer.ensure_running()?;
            // A file that is made or renamed at this moment counts with the next look.
            let bytes = self.target.log_bytes(1, &entry.remote_topic).unwrap_or(bytes_before);
            if bytes > bytes_before {
                let (first, usage) = (*first.get_or_insert(looked_at), Usage::of(racer.id())?);
                let target_cpu = Usage::of(broker)?.cpu - cpu_before;
                grown = Some(Finish { wall: looked_at, first, usage, target_cpu });
            } else if grown.is_some() && self.holds_all(&entry.remote_topic, expected)? {
                return grown.context("just seen");
            }
            if deadline.passed() {
                bail!("waited too long for the copy by {}", entry.peer);
            }
            bytes_before = bytes;
            let look = begin.elapsed().saturating_sub(looked_at);
            thread::sleep((look * LOOK_SHARE).clamp(LOOK_EVERY, LOOK_EVERY_MAX));
        }
    }

    fn holds_all(&mut self, topic: &str, expected: &[i64]) -> Result<bool> {
        let found = self.copied(topic)?;
        Ok(found.len() == expected.len() && found.iter().zip(expected).all(|(found, end)| found >= end))
    }

    /// Log ends on the target; none while the topic does not exist.
    fn copied(&mut self, topic: &str) -> Result<Vec<i64>> {
        if !self.judge.topics(self.target)?.contains_key(topic) {
            return Ok(Vec::new());
        }
        Ok(ends(&self.judge.offsets(self.target, topic)?))
    }
}

/// Parts of a core that a process takes that has nothing to do.
fn idle(racer: &Racer) -> Result<f64> {
    thread::sleep(SETTLES_IN);
    let (begin, before) = (now(), Usage::of(racer.id())?.cpu);
    thread::sleep(IDLE_FOR);
    let used = Usage::of(racer.id())?.cpu - before;
    Ok(used.as_secs_f64() / begin.elapsed().as_secs_f64())
}

fn ends(offsets: &[Offsets]) -> Vec<i64> {
    offsets.iter().map(|partition| partition.end).collect()
}
