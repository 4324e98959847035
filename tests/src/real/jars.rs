//! Kafka's jars: fetched by Maven once per version into the target folder, whoever asks first.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use super::Version;
use crate::places;

const INSTALL: &str =
    "install a JDK of version 17 or newer and Maven (Debian: apt-get install openjdk-17-jdk-headless maven)";

/// A class path with everything of one Kafka version: broker, tools, clients and (from 3.5 on) MirrorMaker 2.
///
/// # Errors
/// One sentence that says what to install when Java or Maven is missing; what Maven said when it failed.
pub fn class_path(version: Version) -> Result<String> {
    Ok(format!("{}/*", fetch(version)?.display()))
}

/// [`class_path`] with the policy that `tests/java/ManagedPolicy.java` makes of a broker's refusals.
///
/// # Errors
/// As [`class_path`]; what the compiler said when it failed.
pub fn class_path_of_managed(version: Version) -> Result<String> {
    let jars = class_path(version)?;
    let folder = places::scratch().join(format!("managed-policy-{version}"));
    let mut compiler = Command::new("javac");
    compiler.args(["-nowarn", "-cp", &jars, "-d"]).arg(&folder);
    compiler.arg(places::repository().join("tests/java/ManagedPolicy.java")).stdin(Stdio::null());
    let Ok(run) = compiler.output() else { bail!("javac does not start: {INSTALL}") };
    let said = [run.stdout, run.stderr].concat();
    ensure!(run.status.success(), "javac of ManagedPolicy.java:\n{}", String::from_utf8_lossy(&said));
    Ok(format!("{}:{jars}", folder.display()))
}

/// The command `java` with the options that suit short-lived test processes.
#[must_use]
pub fn java(heap_mb: u32) -> Command {
    let mut command = java_in_scratch(heap_mb);
    command.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]);
    command
}

/// The command `java` with the options of Kafka's own start scripts (`kafka-run-class.sh`), for what is measured.
#[must_use]
pub fn java_as_kafka_runs_it(heap_mb: u32) -> Command {
    let mut command = java_in_scratch(heap_mb);
    command.args(["-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]);
    command.args(["-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"]);
    command.args(["-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"]);
    command
}

/// Java leaves its temporary files in this process's folder: the codecs unpack native libraries there, which stay when a
/// broker is killed.
fn java_in_scratch(heap_mb: u32) -> Command {
    let mut command = Command::new("java");
    command.arg(format!("-Xmx{heap_mb}m"));
    command.arg(format!("-Djava.io.tmpdir={}", places::scratch().display()));
    command
}

/// The folder with the jars of `version`.
///
/// # Errors
/// As [`class_path`].
pub fn fetch(version: Version) -> Result<PathBuf> {
    check_java()?;
    let cache = places::target()?.join("kafka");
    fs::create_dir_all(&cache).with_context(|| format!("create {}", cache.display()))?;
    let folder = cache.join(version.as_str());
    let lock = File::create(cache.join(format!("{version}.lock")))?;
    lock.lock().context("lock Kafka's jars")?;
    if !folder.exists() {
        let arriving = cache.join(format!("{version}.arriving"));
        let _ = fs::remove_dir_all(&arriving);
        run_maven(version, &cache, &arriving)?;
        fs::rename(&arriving, &folder)?;
    }
    Ok(folder)
}

fn run_maven(version: Version, cache: &Path, folder: &Path) -> Result<()> {
    let pom = cache.join(format!("{version}.pom.xml"));
    fs::write(&pom, project(version))?;
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "-f"]).arg(&pom).arg("dependency:copy-dependencies");
    maven.arg(format!("-DoutputDirectory={}", folder.display())).stdin(Stdio::null());
    let run = maven.output();
    let Ok(run) = run else { bail!("Maven (mvn) does not start: {INSTALL}") };
    let said = [run.stdout, run.stderr].concat();
    ensure!(run.status.success(), "Maven did not bring Kafka {version}:\n{}", String::from_utf8_lossy(&said));
    Ok(())
}

fn project(version: Version) -> String {
    let kafka: &[&str] = match version {
        Version::V2_1_1 | Version::V2_4_1 => &["kafka_2.12"],
        Version::V2_8_2 => &["kafka_2.13"],
        Version::V3_9_2 => &["kafka_2.13", "kafka-tools"],
        Version::V4_3_1 => {
            &["kafka_2.13", "kafka-tools", "connect-mirror", "connect-runtime", "connect-json"]
        }
    };
    let dependency = |group: &str, artifact: &str, version: &str| {
        format!(
            "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
        )
    };
    let mut dependencies = dependency("org.slf4j", "slf4j-simple", "1.7.36");
    if version == Version::V2_1_1 {
        // Its own ZooKeeper client (3.4) cannot read addresses as Java prints them since 14 (ZOOKEEPER-3779).
        dependencies += &dependency("org.apache.zookeeper", "zookeeper", "3.5.9");
    }
    for artifact in kafka {
        dependencies += &dependency("org.apache.kafka", artifact, version.as_str());
    }
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
         <groupId>twinlog</groupId><artifactId>kafka</artifactId><version>1</version>\
         <dependencies>{dependencies}</dependencies></project>\n"
    )
}

fn check_java() -> Result<()> {
    let run = Command::new("java").arg("-version").stdin(Stdio::null()).output();
    let Ok(run) = run else { bail!("Java does not start: {INSTALL}") };
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    let Some(major) = java_major(&said) else {
        bail!("cannot tell the version of Java from {said:?}: {INSTALL}")
    };
    ensure!(major >= 17, "Java is of version {major}, the tests need 17: {INSTALL}");
    Ok(())
}

/// The 17 of `openjdk version "17.0.15" 2025-04-15`, the 8 of `java version "1.8.0_202"`.
fn java_major(said: &str) -> Option<u32> {
    let version = said.split('"').nth(1)?;
    let mut numbers = version.split(['.', '-', '_']);
    let first = numbers.next()?.parse().ok()?;
    if first == 1 { numbers.next()?.parse().ok() } else { Some(first) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_java_versions_apart() {
        assert_eq!(java_major("openjdk version \"17.0.15\" 2025-04-15\nOpenJDK"), Some(17));
        assert_eq!(java_major("openjdk version \"25-ea\" 2025-09-16"), Some(25));
        assert_eq!(java_major("java version \"1.8.0_202\""), Some(8));
        assert_eq!(java_major("sh: java: not found"), None);
    }
}
