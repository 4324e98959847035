//! Live writing while a scenario disturbs, and the proof at its end.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Lab, Scale};
use crate::judge::{Codec, LiveTopic, LiveWriter, NewTopic, Verdict};

/// Topics under live writing: `PREFIX.plain` and `PREFIX.lz4`, four partitions each.
#[derive(Clone, Debug)]
pub struct LiveLoad {
    names: [String; 2],
    writer: LiveWriter,
}

impl LiveLoad {
    /// 2,000 records per second of 200 bytes.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        let names = [format!("{prefix}.plain"), format!("{prefix}.lz4")];
        let topics = names.iter().zip([Codec::None, Codec::Lz4]);
        let topics =
            topics.map(|(name, codec)| LiveTopic { topic: name.clone(), partitions: 4, codec }).collect();
        let writer = LiveWriter {
            name: prefix.to_owned(),
            topics,
            records_per_second: 2000,
            value_bytes: 200,
            timestamp_shift_ms: 0,
        };
        Self { names, writer }
    }

    /// Records as old as `days` when they are written.
    #[must_use]
    pub fn days_old(mut self, days: i64) -> Self {
        self.writer.timestamp_shift_ms = -days * 24 * 3600 * 1000;
        self
    }

    /// The topics.
    #[must_use]
    pub fn topics(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    /// The regex list that names the topics.
    #[must_use]
    pub fn pattern(&self) -> String {
        self.names.join(",")
    }

    /// Makes the topics and starts to write.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn start(&self, lab: &mut Lab) -> Result<()> {
        lab.create(&self.names.clone().map(|name| NewTopic::new(&name, 4)))?;
        lab.judge.start_live(&lab.source, &self.writer)
    }

    /// Stops writing, lets a last run of twinlog catch up, and compares; the verdict and what was acknowledged.
    ///
    /// # Errors
    /// When a record was not acknowledged, the last run fails, or the sides differ.
    pub fn finish(&self, lab: &mut Lab, scale: &Scale) -> Result<(Verdict, u64)> {
        let acked = lab.judge.stop_live(&self.writer.name)?;
        let flow = lab.flow(&self.pattern());
        lab.catch_up(&flow, Duration::from_secs(120 + 2 * scale.seconds))?;
        let verdict = lab.ensure_equal(&self.topics())?;
        ensure!(verdict.records == acked, "{acked} records were acknowledged, {} arrived", verdict.records);
        Ok((verdict, acked))
    }
}
