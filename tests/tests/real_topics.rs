//! Topics on real clusters: growth and appearance while running, configs, names, what is left out.

use anyhow::Result;
use twinlog_tests::scenario::{Scale, Scenario, run, topics};

fn check(scenario: &Scenario) -> Result<()> {
    run(scenario, &Scale::small()).map(drop)
}

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
fn internal_topics_are_left_out() -> Result<()> {
    check(&topics::internal_topics_left_out())
}
