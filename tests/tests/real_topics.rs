//! Topics on real clusters: where they begin, growth and appearance while running, configs, names, what is left out, how each
//! partition fares.
//!
//! Names sort so that tests of the same clusters follow each other: they share them.

use anyhow::Result;
use twinlog_tests::scenario::{check, configs, standing, start, topics};

#[test]
fn topics_grow_and_appear_while_running() -> Result<()> {
    check(&topics::grown_and_new_while_running())
}

#[test]
fn partition_count_and_configs_of_new_topics() -> Result<()> {
    check(&topics::configs_copied())
}

#[test]
fn default_policy_names_and_cycles() -> Result<()> {
    check(&topics::default_names_and_cycles())
}

#[test]
fn a_wide_pattern_leaves_internal_topics_out() -> Result<()> {
    check(&topics::internal_topics_left_out())
}

#[test]
fn between_two_runs_topics_deleted_or_made_again() -> Result<()> {
    check(&topics::changed_between_runs())
}

#[test]
fn first_start_at_the_ends() -> Result<()> {
    check(&start::at_the_ends())
}

#[test]
fn first_start_an_hour_back() -> Result<()> {
    check(&start::at_a_time())
}

#[test]
fn first_starts_of_two_at_once() -> Result<()> {
    check(&start::two_at_once())
}

#[test]
fn leaderless_at_the_start() -> Result<()> {
    check(&topics::partition_without_leader())
}

#[test]
fn configs_follow_the_source_while_running() -> Result<()> {
    check(&configs::followed_while_running())
}

#[test]
fn configs_with_defaults_from_the_source() -> Result<()> {
    check(&configs::defaults_from_source())
}

#[test]
fn a_replication_factor_that_the_target_cannot_give() -> Result<()> {
    check(&configs::factor_too_large())
}

#[test]
fn rights_to_topic_configs_missing() -> Result<()> {
    check(&configs::rights_missing())
}

#[test]
fn state_of_each_partition() -> Result<()> {
    check(&standing::of_each_partition())
}
