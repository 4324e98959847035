//! Fresh seeds of each family.

use super::plan::{Family, Plan};
use super::run;

const SEEDS: u64 = 300;

fn check_all(family: Family) -> run::Seen {
    check_altered(family, run::as_drawn)
}

fn check_altered(family: Family, alter: run::Alter) -> run::Seen {
    let first = run::number("TWINLOG_SIM_FIRST").unwrap_or(0);
    let count = run::number("TWINLOG_SIM_SEEDS").unwrap_or(SEEDS);
    let seen = run::check(family, first..first + count, alter);
    println!("{family:?}: {count} seeds, {seen:?}");
    assert!(seen.events > 100 * count, "the schedules hardly do anything");
    assert!(4 * seen.merged > count, "the schedules hardly merge anything");
    assert!(10 * seen.cut > count, "the schedules hardly cut anything");
    seen
}

#[test]
fn one_instance_is_exact_whatever_fails() {
    check_all(Family::Alone);
}

#[test]
fn rivals_are_exact_from_the_very_first_start() {
    check_all(Family::Rivals);
}

#[test]
fn whoever_starts_first_at_the_ends_begins_there_once_and_for_all() {
    let seen = check_all(Family::Latest);
    assert!(seen.late_starts > 0 && seen.losing_starts > 0, "{seen:?}");
}

#[test]
fn one_instance_is_exact_although_its_state_expires() {
    check_all(Family::Forgotten);
}

#[test]
fn what_the_source_has_lost_is_told_and_nothing_else_is_missing() {
    for family in [Family::Alone, Family::Rivals, Family::Latest, Family::Forgotten] {
        let seen = check_altered(family, Plan::losing);
        assert!(seen.losses > 0, "nothing was lost: {seen:?}");
    }
}

#[test]
fn what_is_committed_is_copied_exactly_and_nothing_else() {
    for family in [Family::Alone, Family::Rivals, Family::Latest, Family::Forgotten] {
        let seen = check_altered(family, Plan::committed);
        assert!(seen.aborted > 0, "no transaction is aborted: {seen:?}");
    }
}
