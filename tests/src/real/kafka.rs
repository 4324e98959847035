//! Clusters of real brokers on free ports, each in a folder of its own: start, kill, stop, pause, start again.

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    Version, jars, log_dump,
    ports::Port,
    settings::{self, NodeAddresses},
};
use crate::{
    deadline::Deadline,
    delay::LongLink,
    places,
    process::Process,
    proxy::{Proxy, Route},
    tally::Tally,
};

/// What a cluster is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSpec {
    /// Kafka's version.
    pub version: Version,
    /// Number of brokers, 1 or 3; their ids begin with 1.
    pub brokers: u16,
    /// Heap of each broker in MiB.
    pub heap_mb: u32,
    /// Lines for `server.properties`; they win over the harness's own.
    pub overrides: Vec<(String, String)>,
    /// What stands between the brokers and clients of [`Cluster::proxied_bootstrap`].
    pub between: Between,
    /// Whether each broker stands in a rack of its own, `rack-ID`, and names readers the replica in theirs.
    pub racks: bool,
    /// Whether the brokers run with the JVM options and threads of Kafka's own scripts, or save start-up time.
    pub measured: bool,
    /// Whether the brokers keep a topic config to themselves, as managed clusters do (`tests/java/ManagedPolicy.java`).
    pub managed: bool,
}

impl ClusterSpec {
    /// One broker, which is its own controller.
    #[must_use]
    pub fn single(version: Version) -> Self {
        let overrides = Vec::new();
        Self {
            version,
            brokers: 1,
            heap_mb: 256,
            overrides,
            between: Between::Nothing,
            racks: false,
            measured: false,
            managed: false,
        }
    }

    /// One broker as Kafka's own scripts start it (1 GB of heap, default threads), for what is measured.
    #[must_use]
    pub fn measured(version: Version) -> Self {
        Self { heap_mb: 1024, measured: true, ..Self::single(version) }
            .with("num.network.threads", "3")
            .with("num.io.threads", "8")
    }

    /// Three brokers; topics with three replicas need two of them in sync.
    #[must_use]
    pub fn three(version: Version) -> Self {
        Self { brokers: 3, ..Self::single(version) }
            .with("default.replication.factor", "3")
            .with("min.insync.replicas", "2")
    }

    /// Adds a line to `server.properties`.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.overrides.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Lets clients of [`Cluster::proxied_bootstrap`] reach the brokers over long links.
    #[must_use]
    pub fn behind_long_link(self, round_trip: Duration) -> Self {
        Self { between: Between::LongLink { round_trip }, ..self }
    }

    /// Counts what each broker sends to clients of [`Cluster::proxied_bootstrap`].
    #[must_use]
    pub fn behind_tally(self) -> Self {
        Self { between: Between::Tally, ..self }
    }

    /// Puts each broker into a rack of its own.
    #[must_use]
    pub fn in_racks(self) -> Self {
        let selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector";
        Self { racks: true, ..self }.with("replica.selector.class", selector)
    }

    /// Lets the brokers refuse a topic config without naming it.
    #[must_use]
    pub fn managed(self) -> Self {
        let policy = "ManagedPolicy";
        Self { managed: true, ..self }
            .with("create.topic.policy.class.name", policy)
            .with("alter.config.policy.class.name", policy)
    }

    /// Puts a proxy before each broker.
    #[must_use]
    pub fn behind_proxy(mut self) -> Self {
        self.between = Between::Proxy;
        self
    }
}

/// A running cluster. Everything of it ends with this value; its files stay while a test has failed.
#[derive(Debug)]
pub struct Cluster {
    spec: ClusterSpec,
    folder: PathBuf,
    nodes: Vec<Node>,
    _zookeeper: Option<Process>,
    _ports: Vec<Port>,
    before: Before,
}

/// What can stand before brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Nothing: clients reach the brokers themselves.
    Nothing,
    /// A [`Proxy`].
    Proxy,
    /// A [`LongLink`].
    LongLink {
        /// Of a byte and its answer.
        round_trip: Duration,
    },
    /// A [`Tally`].
    Tally,
}

/// What stands before the brokers.
#[derive(Debug)]
enum Before {
    Nothing,
    Proxy(Proxy),
    LongLink(LongLink),
    Tally(Tally),
}

impl Before {
    fn start(spec: &ClusterSpec, routes: Vec<Route>) -> Result<Self> {
        Ok(match spec.between {
            Between::Nothing => Self::Nothing,
            Between::Proxy => Self::Proxy(Proxy::start(routes)?),
            Between::Tally => Self::Tally(Tally::start(&routes)?),
            Between::LongLink { round_trip } => Self::LongLink(LongLink::start(routes, round_trip / 2)?),
        })
    }
}

#[derive(Debug)]
struct Node {
    id: u16,
    folder: PathBuf,
    direct: Port,
    process: Option<Process>,
}

impl Cluster {
    /// Starts a cluster and waits until each broker takes connections. `name` is for logs and folders.
    ///
    /// # Errors
    /// When Java or Maven is missing (one sentence says what to install) or a broker ends; the end of its log is shown.
    pub fn start(name: &str, spec: &ClusterSpec) -> Result<Self> {
        for _ in 0..2 {
            match Self::try_start(name, spec) {
                // Somebody outside our reservation was quicker: other ports.
                Err(error) if format!("{error:#}").contains("Address already in use") => {}
                outcome => return outcome,
            }
        }
        Self::try_start(name, spec)
    }

    fn try_start(name: &str, spec: &ClusterSpec) -> Result<Self> {
        let folder = places::scratch().join(format!("{name}-{}-{:08x}", spec.version, fastrand::u32(..)));
        fs::create_dir_all(&folder)?;
        let mut ports = Vec::new();
        let mut reserve = || -> Result<String> {
            ports.push(Port::reserve()?);
            Ok(ports.last().expect("just pushed").address())
        };
        let mut nodes = Vec::new();
        let mut addresses = Vec::new();
        let mut routes = Vec::new();
        for id in 1..=spec.brokers {
            let direct = Port::reserve()?;
            let proxied =
                if spec.between == Between::Nothing { None } else { Some((reserve()?, reserve()?)) };
            routes.extend(proxied.iter().map(|(to, at)| Route { listen: at.clone(), broker: to.clone() }));
            addresses.push(NodeAddresses { direct: direct.address(), controller: reserve()?, proxied });
            nodes.push(Node { id, folder: folder.join(format!("broker-{id}")), direct, process: None });
        }
        let mut zookeeper = None;
        let voters = if spec.version.needs_zookeeper() {
            let port = Port::reserve()?;
            zookeeper = Some(start_zookeeper(spec.version, &port, &folder)?);
            let address = port.address();
            ports.push(port);
            address
        } else {
            let voters: Vec<String> = nodes
                .iter()
                .zip(&addresses)
                .map(|(node, at)| format!("{}@{}", node.id, at.controller))
                .collect();
            voters.join(",")
        };
        let cluster_id = settings::random_id();
        for (node, at) in nodes.iter().zip(&addresses) {
            fs::create_dir_all(&node.folder)?;
            let data = node.folder.join("data");
            if !spec.version.needs_zookeeper() {
                settings::format_data(spec.version, &cluster_id, node.id, &data)?;
            }
            let text = settings::server_properties(spec, node.id, at, &voters, &data);
            fs::write(node.folder.join("server.properties"), text)?;
        }
        let before = Before::start(spec, routes)?;
        let mut cluster =
            Self { spec: spec.clone(), folder, nodes, _zookeeper: zookeeper, _ports: ports, before };
        for id in 1..=spec.brokers {
            cluster.launch(id)?;
        }
        for id in 1..=spec.brokers {
            cluster.wait_for_listener(id)?;
        }
        Ok(cluster)
    }

    /// What it was started as.
    #[must_use]
    pub fn spec(&self) -> &ClusterSpec {
        &self.spec
    }

    /// The brokers' own addresses, for judges.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        let all: Vec<String> = self.nodes.iter().map(|node| node.direct.address()).collect();
        all.join(",")
    }

    /// The addresses for the program under test: the proxy's where there is one.
    #[must_use]
    pub fn proxied_bootstrap(&self) -> String {
        match &self.before {
            Before::Nothing => self.bootstrap(),
            Before::Proxy(proxy) => proxy.bootstrap(),
            Before::LongLink(link) => link.bootstrap(),
            Before::Tally(tally) => tally.bootstrap(),
        }
    }

    /// The proxy before the brokers.
    ///
    /// # Errors
    /// When the cluster was started without one.
    pub fn proxy(&self) -> Result<&Proxy> {
        match &self.before {
            Before::Proxy(proxy) => Ok(proxy),
            Before::Nothing | Before::LongLink(_) | Before::Tally(_) => {
                bail!("this cluster was started without a proxy")
            }
        }
    }

    /// What the brokers sent to clients.
    ///
    /// # Errors
    /// When the cluster was started without counting.
    pub fn tally(&self) -> Result<&Tally> {
        match &self.before {
            Before::Tally(tally) => Ok(tally),
            Before::Nothing | Before::Proxy(_) | Before::LongLink(_) => {
                bail!("this cluster was started without a tally")
            }
        }
    }

    /// The broker ids.
    pub fn ids(&self) -> impl Iterator<Item = u16> + use<> {
        1..=self.spec.brokers
    }

    /// Where broker `id` keeps its partitions, one folder `topic-partition` each.
    ///
    /// # Errors
    /// When there is no such broker.
    pub fn data(&self, id: u16) -> Result<PathBuf> {
        let node = self.nodes.iter().find(|node| node.id == id);
        Ok(node.with_context(|| format!("no broker {id}"))?.folder.join("data"))
    }

    /// Size of a topic's segment files on broker `id`, in bytes.
    ///
    /// # Errors
    /// When there is no such broker, or its folder cannot be read.
    pub fn log_bytes(&self, id: u16, topic: &str) -> Result<u64> {
        let files = log_dump::segments(self, id, topic)?;
        files.iter().map(|(_, file)| Ok(fs::metadata(file)?.len())).sum()
    }

    /// Process id of broker `id`.
    ///
    /// # Errors
    /// When it is not running.
    pub fn process_id(&self, id: u16) -> Result<u32> {
        let node = self.nodes.iter().find(|node| node.id == id).and_then(|node| node.process.as_ref());
        Ok(node.with_context(|| format!("broker {id} is not running"))?.id())
    }

    /// fsync for every segment file of broker `id`, deleted topics' included.
    ///
    /// # Errors
    /// When there is no such broker, or a file cannot be flushed; one that went away meanwhile is none.
    pub fn flush(&self, id: u16) -> Result<()> {
        for partition in fs::read_dir(self.data(id)?)? {
            let Ok(files) = fs::read_dir(partition?.path()) else { continue };
            for file in files {
                let path = file?.path();
                if path.extension().is_some_and(|extension| extension == "log" || extension == "deleted")
                    && let Ok(file) = fs::File::open(&path)
                {
                    file.sync_all().with_context(|| format!("flush {}", path.display()))?;
                }
            }
        }
        Ok(())
    }

    /// SIGKILL for broker `id`.
    ///
    /// # Errors
    /// When there is no such broker or it does not end.
    pub fn kill(&mut self, id: u16) -> Result<()> {
        let mut process =
            self.node(id)?.process.take().with_context(|| format!("broker {id} is not running"))?;
        process.kill()
    }

    /// SIGTERM for broker `id` (its leaderships move first), and waits for its end.
    ///
    /// # Errors
    /// When there is no such broker or it does not end within a minute.
    pub fn stop(&mut self, id: u16) -> Result<()> {
        let mut process =
            self.node(id)?.process.take().with_context(|| format!("broker {id} is not running"))?;
        process.terminate()?;
        process.wait(Duration::from_secs(60)).map(drop)
    }

    /// Starts broker `id` again on its old data and waits until it takes connections.
    ///
    /// # Errors
    /// When it still runs or does not come up.
    pub fn restart(&mut self, id: u16) -> Result<()> {
        ensure!(self.node(id)?.process.is_none(), "broker {id} still runs");
        self.launch(id)?;
        self.wait_for_listener(id)
    }

    /// SIGSTOP: broker `id` stands still, its connections stay open.
    ///
    /// # Errors
    /// When it is not running.
    pub fn pause(&mut self, id: u16) -> Result<()> {
        self.running(id)?.pause()
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// When it is not running.
    pub fn resume(&mut self, id: u16) -> Result<()> {
        self.running(id)?.resume()
    }

    fn node(&mut self, id: u16) -> Result<&mut Node> {
        self.nodes.iter_mut().find(|node| node.id == id).with_context(|| format!("no broker {id}"))
    }

    fn running(&mut self, id: u16) -> Result<&mut Process> {
        self.node(id)?.process.as_mut().with_context(|| format!("broker {id} is not running"))
    }

    fn launch(&mut self, id: u16) -> Result<()> {
        let ClusterSpec { version, heap_mb, measured, managed, .. } = self.spec;
        let class_path =
            if managed { jars::class_path_of_managed(version)? } else { jars::class_path(version)? };
        let node = self.node(id)?;
        let mut java = if measured { jars::java_as_kafka_runs_it(heap_mb) } else { jars::java(heap_mb) };
        java.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=info")
            .arg("-Dorg.slf4j.simpleLogger.showDateTime=true");
        java.arg("-cp").arg(class_path).arg("kafka.Kafka").arg(node.folder.join("server.properties"));
        java.current_dir(&node.folder);
        node.process = Some(Process::start(&format!("broker {id}"), java, &node.folder.join("log"))?);
        Ok(())
    }

    fn wait_for_listener(&mut self, id: u16) -> Result<()> {
        let node = self.node(id)?;
        let (address, log) = (node.direct.address(), node.folder.join("log"));
        let process = node.process.as_mut().context("just launched")?;
        wait_for_listener(&format!("broker {id}"), &address, process, &log)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.nodes.clear();
        self._zookeeper = None;
        if !places::scratch().join("keep").exists() && !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

fn start_zookeeper(version: Version, port: &Port, folder: &Path) -> Result<Process> {
    let folder = folder.join("zookeeper");
    fs::create_dir_all(&folder)?;
    let properties = folder.join("zookeeper.properties");
    fs::write(&properties, settings::zookeeper_properties(port.number(), &folder.join("data")))?;
    let mut java = jars::java(256);
    java.arg("-cp").arg(jars::class_path(version)?);
    // That of Kafka 2.1 looks for log4j's beans otherwise, and log4j is not among the jars.
    java.arg("-Dzookeeper.jmx.log4j.disable=true");
    java.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain").arg(&properties);
    let log = folder.join("log");
    let mut process = Process::start("zookeeper", java, &log)?;
    wait_for_listener("zookeeper", &port.address(), &mut process, &log)?;
    Ok(process)
}

fn wait_for_listener(name: &str, address: &str, process: &mut Process, log: &Path) -> Result<()> {
    let limit = Duration::from_secs(120);
    let outcome = Deadline::after(limit).wait(&format!("{name} on {address}"), || {
        if let Some(status) = process.ended()? {
            bail!("{name} ended with {status}");
        }
        Ok(TcpStream::connect(address).is_ok().then_some(()))
    });
    outcome.with_context(|| format!("the end of its log {}:\n{}", log.display(), tail(log, 30)))
}

/// The last lines of a log.
#[must_use]
pub fn tail(log: &Path, lines: usize) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
