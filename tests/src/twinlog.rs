//! The program under test: its properties file, its runs, their ends and their logs.

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::OnceLock,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    capture_logs::unexpected_lines,
    places,
    process::{Process, exit_code, sleep_ms},
    real::kafka::{Cluster, tail},
};

/// An `mm2.properties`, mostly with the flow `src->dst`.
#[derive(Clone, Debug)]
pub struct FlowFile {
    text: String,
}

impl FlowFile {
    /// A flow of every topic under equal names. New topics are looked for every second; what a three-broker target
    /// needs to survive the loss of one broker is set, everything else is left at MM2's defaults.
    #[must_use]
    pub fn identity(source: &Cluster, target: &Cluster, topics: &str) -> Self {
        Self::default_policy(source, target, topics).equal_names()
    }

    /// As [`FlowFile::identity`], but remote topics are named `src.topic`.
    #[must_use]
    pub fn default_policy(source: &Cluster, target: &Cluster, topics: &str) -> Self {
        let file = Self::plain(("src", source), ("dst", target), topics)
            .with("refresh.topics.interval.seconds", "1");
        if target.spec().brokers < 3 {
            return file;
        }
        file.with("replication.factor", "3").with("offset.storage.replication.factor", "3")
    }

    /// A flow with nothing set that MM2 has a default for; clusters come with their aliases.
    #[must_use]
    pub fn plain(source: (&str, &Cluster), target: (&str, &Cluster), topics: &str) -> Self {
        let clusters = [source, target].map(|(alias, cluster)| (alias, cluster.proxied_bootstrap()));
        Self::clusters(&clusters).flow(source.0, target.0, topics)
    }

    /// Clusters by their aliases, each with the addresses of its brokers, and no flow yet.
    #[must_use]
    pub fn clusters(clusters: &[(&str, String)]) -> Self {
        let aliases: Vec<&str> = clusters.iter().map(|(alias, _)| *alias).collect();
        let file = Self { text: String::new() }.with("clusters", &aliases.join(", "));
        clusters
            .iter()
            .fold(file, |file, (alias, servers)| file.with(&format!("{alias}.bootstrap.servers"), servers))
    }

    /// Adds the flow of the topics that match `topics`.
    #[must_use]
    pub fn flow(self, source: &str, target: &str, topics: &str) -> Self {
        self.with(&format!("{source}->{target}.enabled"), "true")
            .with(&format!("{source}->{target}.topics"), topics)
    }

    /// Topics keep their names on the target.
    #[must_use]
    pub fn equal_names(self) -> Self {
        self.with("replication.policy.class", "org.apache.kafka.connect.mirror.IdentityReplicationPolicy")
    }

    /// Adds a line; whoever reads the file gets `value`, its backslashes too.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        let _ = writeln!(self.text, "{key} = {}", value.replace('\\', r"\\"));
        self
    }

    /// Writes the file into `folder`.
    ///
    /// # Errors
    /// When the folder is not writable.
    pub fn write(&self, folder: &Path) -> Result<PathBuf> {
        let path = folder.join(format!("mm2-{:08x}.properties", fastrand::u32(..)));
        fs::write(&path, &self.text).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }
}

/// A run of `twinlog run FILE`.
#[derive(Debug)]
pub struct Twinlog {
    process: Process,
    log: PathBuf,
}

impl Twinlog {
    /// Starts `twinlog run FILE` with further arguments; its output goes into `log`.
    ///
    /// # Errors
    /// When the program cannot be built or started.
    pub fn run(file: &Path, arguments: &[&str], log: &Path) -> Result<Self> {
        let mut command = Command::new(program()?);
        command.arg("run").arg(file).args(arguments).env_remove("RUST_LOG");
        command.env("RUST_BACKTRACE", "1").env("NO_COLOR", "1");
        Ok(Self { process: Process::start("twinlog", command, log)?, log: log.to_path_buf() })
    }

    /// kill -9.
    ///
    /// # Errors
    /// When it had ended by itself before: a replicator runs until it is told to stop.
    pub fn kill(&mut self) -> Result<()> {
        self.ensure_running()?;
        self.process.kill()
    }

    /// SIGTERM; it drains within five seconds and ends with 0.
    ///
    /// # Errors
    /// When it had ended before, takes longer (a second of grace on a busy machine), or ends otherwise.
    pub fn stop(&mut self) -> Result<()> {
        self.ensure_running()?;
        self.process.terminate()?;
        let status = self.process.wait(Duration::from_secs(6)).with_context(|| self.said())?;
        self.expect_code(status, 0)
    }

    /// SIGTERM twice: it ends at once with 130.
    ///
    /// # Errors
    /// When it had ended before, waits for anything, or ends otherwise.
    pub fn stop_at_once(&mut self) -> Result<()> {
        self.ensure_running()?;
        self.process.terminate()?;
        sleep_ms(300);
        self.process.terminate()?;
        self.wait_for_exit(Duration::from_secs(2), 130)
    }

    /// Waits for its end and checks the exit code.
    ///
    /// # Errors
    /// When it still runs after `limit`, or ends otherwise.
    pub fn wait_for_exit(&mut self, limit: Duration, code: i32) -> Result<()> {
        let status = self.process.wait(limit).with_context(|| self.said())?;
        self.expect_code(status, code)
    }

    /// SIGSTOP.
    ///
    /// # Errors
    /// When it had ended.
    pub fn pause(&mut self) -> Result<()> {
        self.ensure_running()?;
        self.process.pause()
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// When it had ended.
    pub fn resume(&mut self) -> Result<()> {
        self.process.resume()
    }

    /// # Errors
    /// When it has ended, with its last lines.
    pub fn ensure_running(&mut self) -> Result<()> {
        match self.process.ended()? {
            None => Ok(()),
            Some(status) => bail!("twinlog ended by itself with {}; {}", exit_code(status), self.said()),
        }
    }

    /// What it wrote so far.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(&self.log)?).into_owned())
    }

    /// # Errors
    /// When it warned of something else than `allowed`, or panicked.
    pub fn ensure_quiet(&self, allowed: &[&str]) -> Result<()> {
        let lines = unexpected_lines(&self.log()?, allowed);
        ensure!(lines.is_empty(), "twinlog warned unexpectedly:\n{}", lines.join("\n"));
        Ok(())
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    fn expect_code(&self, status: ExitStatus, code: i32) -> Result<()> {
        let ended = exit_code(status);
        ensure!(ended == code, "twinlog ended with {ended}, not with {code}; {}", self.said());
        Ok(())
    }

    fn said(&self) -> String {
        format!("its last lines:\n{}", tail(&self.log, 40))
    }
}

/// The program, built by cargo in the profile of this test: never an older one that happens to lie there.
///
/// `TWINLOG_PROGRAM` names another one: an installed twinlog, or a stand-in that the harness is tried with.
///
/// # Errors
/// What cargo said when it does not build.
pub fn program() -> Result<PathBuf> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PROGRAM.get_or_init(|| build().map_err(|error| format!("{error:#}"))).clone().map_err(anyhow::Error::msg)
}

fn build() -> Result<PathBuf> {
    if let Some(program) = env::var_os("TWINLOG_PROGRAM") {
        return Ok(program.into());
    }
    built("twinlog", "twinlog")
}

/// A program of this workspace, built by cargo in the profile of this executable.
///
/// # Errors
/// What cargo said when it does not build.
pub fn built(package: &str, name: &str) -> Result<PathBuf> {
    let profile = places::profile()?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", package, "--bin", name, "--target-dir"]);
    command.arg(places::target()?);
    if profile.ends_with("release") {
        command.arg("--release");
    }
    let run = command.current_dir(places::repository()).stdin(Stdio::null()).output().context("run cargo")?;
    ensure!(run.status.success(), "cargo build of {name}: {}", String::from_utf8_lossy(&run.stderr));
    Ok(profile.join(name))
}
