//! What a three-broker target does to a copy: forgotten state, roll-back, a topic made again, a slow replica.
//!
//! Names sort so that tests of the same clusters follow each other: they share them.

use anyhow::Result;
use twinlog_tests::scenario::{check, target};

#[test]
fn old_records_while_the_target_restarts() -> Result<()> {
    check(&target::old_records_and_restarts())
}

#[test]
fn leader_killed_during_a_line_up() -> Result<()> {
    check(&target::leader_killed_during_line_up())
}

#[test]
fn topic_made_again_with_a_batch_under_way() -> Result<()> {
    check(&target::topic_made_again())
}

#[test]
fn slow_replica_delays_nobody_else() -> Result<()> {
    check(&target::slow_replica())
}
