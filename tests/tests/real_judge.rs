//! The judge itself, on real brokers: it sees a copy as equal and fails a lost, repeated, moved or altered record.

use anyhow::Result;
use twinlog_tests::{
    judge::{Judge, NewTopic, TopicPair, WriteRecords},
    real::{
        Version,
        kafka::{Cluster, ClusterSpec},
    },
};

#[test]
fn first() -> Result<()> {
    let cluster = Cluster::start("source", &ClusterSpec::single(Version::V4_3_1))?;
    let mut judge = Judge::start()?;
    judge.ready(&cluster)?;
    judge.create_topic(&cluster, &NewTopic::new("a", 2))?;
    judge.write(&cluster, &WriteRecords::new("a", 2, 1000))?;
    let v = judge.compare(&cluster, &cluster, &[TopicPair::same("a")])?;
    println!(
        "{v:?} {:?} {:?}",
        judge.offsets(&cluster, "a")?,
        twinlog_tests::real::log_dump::dump_topic(&cluster, 1, "a")?
    );
    Ok(())
}
