//! A source cluster, a target cluster, perhaps more, a judge, and the runs of twinlog between them.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};

use crate::{
    deadline::Deadline,
    judge::{Judge, NewTopic, TopicPair, Verdict},
    places,
    real::{
        Version,
        kafka::{Cluster, ClusterSpec},
    },
    twinlog::{FlowFile, Twinlog},
};

/// The clusters of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabSpec {
    /// Where records are written.
    pub source: ClusterSpec,
    /// Where twinlog copies them.
    pub target: ClusterSpec,
    /// Further ones.
    pub more: Vec<ClusterSpec>,
}

impl LabSpec {
    /// Two clusters.
    #[must_use]
    pub fn pair(source: ClusterSpec, target: ClusterSpec) -> Self {
        Self { source, target, more: Vec::new() }
    }

    /// Two clusters of one broker each.
    #[must_use]
    pub fn singles(source: Version, target: Version) -> Self {
        Self::pair(ClusterSpec::single(source), ClusterSpec::single(target))
    }

    /// Adds so many clusters of one broker each, of the newest version.
    #[must_use]
    pub fn and_more(mut self, count: usize) -> Self {
        self.more.extend(vec![ClusterSpec::single(Version::V4_3_1); count]);
        self
    }

    /// Two clusters of one broker each, both of the newest version.
    #[must_use]
    pub fn newest() -> Self {
        Self::singles(Version::V4_3_1, Version::V4_3_1)
    }

    /// Two clusters of three brokers each, both of the newest version; a dead broker's leaderships move after 4 s.
    #[must_use]
    pub fn threes() -> Self {
        let spec = ClusterSpec::three(Version::V4_3_1)
            .with("broker.session.timeout.ms", "4000")
            .with("broker.heartbeat.interval.ms", "500");
        Self::pair(spec.clone(), spec)
    }

    /// One source broker, three target brokers, both of the newest version.
    #[must_use]
    pub fn three_at_target() -> Self {
        Self::pair(ClusterSpec::single(Version::V4_3_1), ClusterSpec::three(Version::V4_3_1))
    }
}

/// Running clusters with everything to use them.
#[derive(Debug)]
pub struct Lab {
    spec: LabSpec,
    /// The source cluster.
    pub source: Cluster,
    /// The target cluster.
    pub target: Cluster,
    /// The further clusters.
    pub more: Vec<Cluster>,
    /// Writes, disturbs, compares.
    pub judge: Judge,
    folder: PathBuf,
    runs: u32,
}

impl Lab {
    /// Starts all clusters at once and waits until all brokers are there.
    ///
    /// # Errors
    /// When Java or Maven is missing (one sentence says what to install), or a broker does not start.
    pub fn start(spec: &LabSpec) -> Result<Self> {
        let mut judge = Judge::start()?;
        let others = (3..).map(|number| format!("cluster-{number}")).zip(&spec.more);
        let all = [("source".to_owned(), &spec.source), ("target".to_owned(), &spec.target)];
        let mut clusters = thread::scope(|scope| -> Result<Vec<Cluster>> {
            let start = |(name, spec): (String, _)| scope.spawn(move || Cluster::start(&name, spec));
            let starting: Vec<_> = all.into_iter().chain(others).map(start).collect();
            let started =
                starting.into_iter().map(|one| one.join().unwrap_or_else(|_| bail!("starting panicked")));
            started.collect()
        })?;
        clusters.iter().try_for_each(|cluster| judge.ready(cluster))?;
        let more = clusters.split_off(2);
        let [source, target] = <[Cluster; 2]>::try_from(clusters).map_err(|_| anyhow!("two are left"))?;
        let folder = places::scratch().join(format!("lab-{:08x}", fastrand::u32(..)));
        fs::create_dir_all(&folder)?;
        Ok(Self { spec: spec.clone(), source, target, more, judge, folder, runs: 0 })
    }

    /// What it was started as.
    #[must_use]
    pub fn spec(&self) -> &LabSpec {
        &self.spec
    }

    /// Where its files and logs lie.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The flow of the topics that match `topics` under equal names.
    #[must_use]
    pub fn flow(&self, topics: &str) -> FlowFile {
        FlowFile::identity(&self.source, &self.target, topics)
    }

    /// Starts a run of twinlog.
    ///
    /// # Errors
    /// When the program cannot be built or started.
    pub fn twinlog(&mut self, flow: &FlowFile, arguments: &[&str]) -> Result<Twinlog> {
        self.runs += 1;
        let file = flow.write(&self.folder)?;
        Twinlog::run(&file, arguments, &self.folder.join(format!("twinlog-{}.log", self.runs)))
    }

    /// Runs twinlog until it has caught up, and expects exit code 0.
    ///
    /// # Errors
    /// When it takes longer than `limit` or ends otherwise; its last lines are shown.
    pub fn catch_up(&mut self, flow: &FlowFile, limit: Duration) -> Result<Twinlog> {
        self.end_with(0, flow, limit)
    }

    /// Runs twinlog until it has caught up, and expects this exit code.
    ///
    /// # Errors
    /// As [`Lab::catch_up`].
    pub fn end_with(&mut self, code: i32, flow: &FlowFile, limit: Duration) -> Result<Twinlog> {
        let mut run = self.twinlog(flow, &["--until-caught-up"])?;
        run.wait_for_exit(limit, code)?;
        Ok(run)
    }

    /// Makes the topics on the source.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn create(&mut self, topics: &[NewTopic]) -> Result<()> {
        self.judge.create_topics(&self.source, topics)
    }

    /// Compares topics that have the same name on both sides.
    ///
    /// # Errors
    /// When a side cannot be read, or the sides differ.
    pub fn ensure_equal(&mut self, topics: &[&str]) -> Result<Verdict> {
        let pairs: Vec<TopicPair> = topics.iter().map(|name| TopicPair::same(name)).collect();
        self.judge.compare(&self.source, &self.target, &pairs)?.ensure_equal()
    }

    /// Waits until the pairs are equal, for topics that twinlog finds while it runs.
    ///
    /// # Errors
    /// The last difference, when they are not after `limit`.
    pub fn wait_equal(&mut self, pairs: &[TopicPair], limit: Duration) -> Result<Verdict> {
        let mut last = anyhow!("never compared");
        let outcome = Deadline::after(limit).wait("equal sides", || {
            let verdict =
                self.judge.compare(&self.source, &self.target, pairs).and_then(Verdict::ensure_equal);
            Ok(verdict.map_err(|error| last = error).ok())
        });
        outcome.with_context(|| format!("the last difference: {last:#}"))
    }

    /// Whether the target has the topic.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn target_has(&mut self, topic: &str) -> Result<bool> {
        Ok(self.judge.topics(&self.target)?.contains_key(topic))
    }

    /// Waits until the target has at least `records` offsets in a topic.
    ///
    /// # Errors
    /// When it has not after `limit`.
    pub fn wait_for_copy(&mut self, topic: &str, records: i64, limit: Duration) -> Result<()> {
        Deadline::after(limit).wait(&format!("{records} records of {topic} on the target"), || {
            Ok((self.copied(topic)? >= records).then_some(()))
        })
    }

    /// The sum of a topic's log ends on the target; 0 while it does not exist.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn copied(&mut self, topic: &str) -> Result<i64> {
        if !self.target_has(topic)? {
            return Ok(0);
        }
        Ok(self.judge.offsets(&self.target, topic)?.iter().map(|partition| partition.end).sum())
    }
}
