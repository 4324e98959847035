//! The real MirrorMaker 2, as its own start script runs it.

use std::{path::Path, process::ExitStatus, time::Duration};

use anyhow::{Result, bail};

use super::{Version, jars, kafka::tail};
use crate::process::{Process, exit_code};

/// Heap as `connect-mirror-maker.sh` gives it, in MiB.
const HEAP_MB: u32 = 2048;

/// A running MirrorMaker 2.
#[derive(Debug)]
pub struct MirrorMaker {
    process: Process,
    log: std::path::PathBuf,
}

impl MirrorMaker {
    /// Starts `org.apache.kafka.connect.mirror.MirrorMaker FILE` of the newest version; its output goes into `log`.
    ///
    /// # Errors
    /// When Java or Maven is missing; one sentence says what to install.
    pub fn run(file: &Path, log: &Path) -> Result<Self> {
        let mut java = jars::java_as_kafka_runs_it(HEAP_MB);
        java.arg("-Xms256m").arg("-Dorg.slf4j.simpleLogger.showDateTime=true");
        java.arg("-cp").arg(jars::class_path(Version::V4_3_1)?);
        java.arg("org.apache.kafka.connect.mirror.MirrorMaker").arg(file);
        Ok(Self { process: Process::start("MirrorMaker 2", java, log)?, log: log.to_path_buf() })
    }

    /// # Errors
    /// When it has ended, with its last lines.
    pub fn ensure_running(&mut self) -> Result<()> {
        match self.process.ended()? {
            None => Ok(()),
            Some(status) => bail!(
                "MirrorMaker 2 ended with {}; its last lines:\n{}",
                exit_code(status),
                tail(&self.log, 40)
            ),
        }
    }

    /// SIGTERM, and waits for its end.
    ///
    /// # Errors
    /// When it does not end within a minute.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.process.terminate()?;
        self.process.wait(Duration::from_secs(60))
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}
