//! Crashes of twinlog and brokers, rivals, lost answers, moving leaders, all under live writing: the log stays exact.
//!
//! Names sort so that tests of the same clusters follow each other: they share them.

use anyhow::Result;
use twinlog_tests::scenario::{check, kills, state};

#[test]
fn twinlog_killed_at_random_moments() -> Result<()> {
    check(&kills::twinlog_killed())
}

#[test]
fn signals_while_the_target_does_not_answer() -> Result<()> {
    check(&kills::stopped_without_answers())
}

#[test]
fn rivals_from_the_first_start() -> Result<()> {
    check(&kills::two_from_the_first_start())
}

#[test]
fn produce_answers_lost_every_tenth_time() -> Result<()> {
    check(&kills::answers_lost())
}

#[test]
fn each_broker_killed_in_turn() -> Result<()> {
    check(&kills::brokers_killed())
}

#[test]
fn leaders_moved_every_two_seconds() -> Result<()> {
    check(&kills::leaders_moved())
}

#[test]
fn twinlog_and_clusters_stopped_in_order() -> Result<()> {
    check(&kills::stopped_and_started())
}

#[test]
fn the_state_topic_deleted_between_two_runs() -> Result<()> {
    check(&state::state_topic_deleted())
}

#[test]
fn the_state_topic_must_not_forget() -> Result<()> {
    check(&state::state_topic_that_forgets())
}

#[test]
fn topic_copied_anew() -> Result<()> {
    check(&state::topic_copied_anew())
}
