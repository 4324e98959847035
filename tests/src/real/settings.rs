//! The files a broker starts from: `server.properties`, ZooKeeper's file, and the formatted data folder of KRaft.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, ensure};

use super::{Version, jars, kafka::ClusterSpec};
use crate::places;

/// Addresses of one node: what it listens on and what it tells clients.
pub(super) struct NodeAddresses {
    pub(super) direct: String,
    pub(super) controller: String,
    /// The listener behind the proxy and the address of the proxy, which it advertises.
    pub(super) proxied: Option<(String, String)>,
}

/// `server.properties` of node `id`; `voters` is the controllers' list, or ZooKeeper's address.
pub(super) fn server_properties(
    spec: &ClusterSpec,
    id: u16,
    node: &NodeAddresses,
    voters: &str,
    data: &Path,
) -> String {
    let mut listeners = format!("PLAINTEXT://{}", node.direct);
    let mut advertised = listeners.clone();
    if let Some((listener, proxy)) = &node.proxied {
        let _ = write!(listeners, ",PROXIED://{listener}");
        let _ = write!(advertised, ",PROXIED://{proxy}");
    }
    let copies = spec.brokers.min(3);
    let mut text = format!(
        "advertised.listeners={advertised}\n\
         inter.broker.listener.name=PLAINTEXT\n\
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
         log.dirs={}\n\
         auto.create.topics.enable=false\n\
         auto.leader.rebalance.enable=false\n\
         group.initial.rebalance.delay.ms=0\n\
         log.cleaner.dedupe.buffer.size=16000000\n\
         num.network.threads=2\n\
         num.io.threads=4\n\
         offsets.topic.num.partitions=5\n\
         offsets.topic.replication.factor={copies}\n\
         transaction.state.log.num.partitions=5\n\
         transaction.state.log.replication.factor={copies}\n\
         transaction.state.log.min.isr=1\n",
        data.display()
    );
    if spec.version.needs_zookeeper() {
        let _ = write!(text, "broker.id={id}\nlisteners={listeners}\nzookeeper.connect={voters}\n");
    } else {
        let _ = write!(
            text,
            "process.roles=broker,controller\n\
             node.id={id}\n\
             controller.quorum.voters={voters}\n\
             controller.listener.names=CONTROLLER\n\
             listeners={listeners},CONTROLLER://{}\n\
             share.coordinator.state.topic.replication.factor={copies}\n\
             share.coordinator.state.topic.min.isr=1\n",
            node.controller
        );
    }
    if spec.racks {
        let _ = writeln!(text, "broker.rack=rack-{id}");
    }
    for (key, value) in &spec.overrides {
        let _ = writeln!(text, "{key}={value}"); // the last line of a key counts
    }
    text
}

/// ZooKeeper's file: one server for one cluster.
pub(super) fn zookeeper_properties(port: u16, data: &Path) -> String {
    format!(
        "dataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n",
        data.display()
    )
}

/// Makes `data` the formatted folder of a KRaft node.
///
/// `StorageTool` runs once per version; its `bootstrap.checkpoint` holds the features of that version and nothing of
/// the cluster, so each further node costs a copy instead of a JVM.
pub(super) fn format_data(version: Version, cluster_id: &str, node: u16, data: &Path) -> Result<()> {
    fs::create_dir_all(data)?;
    let checkpoint = formatted(version)?;
    fs::copy(&checkpoint, data.join("bootstrap.checkpoint"))
        .with_context(|| format!("copy {}", checkpoint.display()))?;
    let meta = format!("version=1\ncluster.id={cluster_id}\nnode.id={node}\ndirectory.id={}\n", random_id());
    fs::write(data.join("meta.properties"), meta)?;
    Ok(())
}

fn formatted(version: Version) -> Result<PathBuf> {
    let jars = jars::fetch(version)?;
    let checkpoint = jars.join("bootstrap.checkpoint");
    if checkpoint.exists() {
        return Ok(checkpoint);
    }
    let folder = places::scratch().join(format!("format-{version}-{}", fastrand::u32(..)));
    fs::create_dir_all(&folder)?;
    let properties = folder.join("server.properties");
    fs::write(
        &properties,
        format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\n\
             controller.listener.names=CONTROLLER\nlisteners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n\
             log.dirs={}\n",
            folder.join("data").display()
        ),
    )?;
    let mut tool = jars::java(256);
    tool.arg("-cp").arg(jars::class_path(version)?).args(["kafka.tools.StorageTool", "format", "-t"]);
    tool.arg(random_id()).arg("-c").arg(&properties).stdin(Stdio::null());
    let run = tool.output().context("run StorageTool")?;
    let said = [run.stdout, run.stderr].concat();
    ensure!(run.status.success(), "StorageTool of {version}: {}", String::from_utf8_lossy(&said));
    // Renamed into its place, so that nobody sees half of it.
    let arriving = jars.join(format!("bootstrap.checkpoint.{}", std::process::id()));
    fs::copy(folder.join("data").join("bootstrap.checkpoint"), &arriving)?;
    fs::rename(&arriving, &checkpoint)?;
    Ok(checkpoint)
}

/// A Kafka Uuid in its text form: 16 bytes as 22 characters of URL-safe base64, not beginning with `-`.
pub(super) fn random_id() -> String {
    let middle: String = (0..20).map(|_| fastrand::alphanumeric()).collect();
    format!("T{middle}A")
}
