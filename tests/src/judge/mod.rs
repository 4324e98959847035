//! The Java judge as a child process: one JSON command per line, one JSON answer per line.

mod cluster;
mod compare;
mod workload;

use std::{
    io::{BufRead, BufReader, Write},
    process::{ChildStdin, ChildStdout},
};

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use cluster::{NewTopic, Offsets, PartitionState, ProducerState};
pub use compare::{Latest, LatestVerdict, TopicPair, Verdict};
pub use workload::{
    Codec, End, Latency, LiveTopic, LiveWriter, Nulls, Shape, TextRecord, Transactions, WriteRecords,
};

use crate::{
    places,
    process::Process,
    real::{Version, jars, kafka::tail},
};

/// The running judge. It starts in the background: the first command waits for it.
#[derive(Debug)]
pub struct Judge {
    process: Process,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    log: std::path::PathBuf,
}

impl Judge {
    /// Starts the judge with the newest client.
    ///
    /// # Errors
    /// When Java or Maven is missing; one sentence says what to install.
    pub fn start() -> Result<Self> {
        let mut java = jars::java(1024);
        java.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
            .arg("-Dorg.slf4j.simpleLogger.showDateTime=true");
        java.arg("-cp").arg(jars::class_path(Version::V4_3_1)?);
        java.arg(places::repository().join("tests").join("java").join("Judge.java"));
        let log = places::scratch().join(format!("judge-{:08x}.log", fastrand::u32(..)));
        let (process, commands, answers) = Process::start_piped("judge", java, &log)?;
        Ok(Self { process, commands, answers: BufReader::new(answers), log })
    }

    /// Sends one command and reads its answer.
    fn call<T: DeserializeOwned>(&mut self, command: &Value) -> Result<T> {
        let outcome = self.exchange(command);
        let answer = outcome.with_context(|| {
            let how = self
                .process
                .ended()
                .ok()
                .flatten()
                .map_or_else(String::new, |s| format!(", it ended with {s}"));
            format!("the judge gives no answer to {command}{how}:\n{}", tail(&self.log, 20))
        })?;
        if answer["ok"] != Value::Bool(true) {
            bail!("the judge on {command}: {}", answer["error"].as_str().unwrap_or("no reason"));
        }
        serde_json::from_value(answer).with_context(|| format!("the judge's answer to {command}"))
    }

    fn exchange(&mut self, command: &Value) -> Result<Value> {
        writeln!(self.commands, "{command}")?;
        self.commands.flush()?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Sends a command whose answer holds nothing but that it worked.
    fn order(&mut self, command: &Value) -> Result<()> {
        self.call::<Value>(command).map(drop)
    }
}
