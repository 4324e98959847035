//! Rules one by one.

mod schedules;

use super::*;

const TOPIC: &str = "west.orders";

type Values = BTreeMap<String, String>;

fn values(pairs: &[(&str, &str)]) -> Values {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn remembered(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A source with these values; it has nothing to copy for the other names.
fn source(copied: &[(&str, &str)], unset: &[&str]) -> SourceConfigs {
    SourceConfigs { copied: values(copied), unset: unset.iter().map(|name| (*name).to_owned()).collect() }
}

fn set(name: &str, value: &str) -> Setting {
    Setting { name: name.to_owned(), value: Some(value.to_owned()) }
}

fn unset(name: &str) -> Setting {
    Setting { name: name.to_owned(), value: None }
}

fn plan(source: &SourceConfigs, mirror: &[(&str, &str)], stored: &[(&str, &str)]) -> Plan {
    ConfigSync::default().plan(TOPIC, source, &values(mirror), &remembered(stored))
}

#[test]
fn what_the_source_has_is_put_on_the_mirror_and_remembered_first() {
    let source = source(&[("retention.ms", "1000"), ("segment.ms", "5")], &["flush.ms"]);
    let plan = plan(&source, &[("segment.ms", "5"), ("flush.ms", "9")], &[]);
    assert_eq!(plan.settings, [set("retention.ms", "1000")]);
    assert_eq!(plan.remembered, remembered(&[("retention.ms", "1000")]));
    assert!(!plan.is_stored);
}

#[test]
fn a_value_changed_by_hand_goes_back_to_the_source_s() {
    let plan = plan(
        &source(&[("retention.ms", "1000")], &[]),
        &[("retention.ms", "7")],
        &[("retention.ms", "1000")],
    );
    assert_eq!(plan.settings, [set("retention.ms", "1000")]);
    assert!(plan.is_stored, "nothing new is to be remembered");
}

#[test]
fn what_twinlog_put_there_goes_when_the_source_drops_it() {
    let stored = [("retention.ms", "1000")];
    let dropped = source(&[], &["retention.ms"]);
    let plan = plan(&dropped, &stored, &stored);
    assert_eq!(plan.settings, [unset("retention.ms")]);
    assert!(plan.is_stored);
    let left = ConfigSync::default().handle_applied(TOPIC, &plan.settings, &plan.remembered);
    assert_eq!(left, Some(Settings::new()));
    assert_eq!(self::plan(&dropped, &[], &[]), Plan { is_stored: true, ..Plan::default() });
}

#[test]
fn what_others_put_there_stays() {
    let dropped = source(&[], &["retention.ms", "segment.ms"]);
    // Never ours; ours, but changed by somebody since.
    let plan = plan(&dropped, &[("retention.ms", "7"), ("segment.ms", "9")], &[("segment.ms", "5")]);
    assert_eq!(plan.settings, []);
    assert_eq!((plan.remembered, plan.is_stored), (Settings::new(), false), "what is not there is forgotten");
}

#[test]
fn the_same_value_set_by_somebody_after_ours_was_taken_away_is_his() {
    let mut sync = ConfigSync::default();
    let (stored, dropped) = (remembered(&[("retention.ms", "1000")]), source(&[], &["retention.ms"]));
    let mirror = values(&[("retention.ms", "1000")]);
    let first = sync.plan(TOPIC, &dropped, &mirror, &stored);
    sync.handle_sent(TOPIC, &first.settings);
    let stored = sync.handle_applied(TOPIC, &first.settings, &first.remembered).unwrap();
    assert_eq!(sync.plan(TOPIC, &dropped, &mirror, &stored), Plan { is_stored: true, ..Plan::default() });
}

#[test]
fn a_source_that_says_nothing_changes_nothing() {
    let stored = [("retention.ms", "1000"), ("min.insync.replicas", "2")];
    let plan = plan(&source(&[], &[]), &stored, &stored);
    assert_eq!((plan.settings, plan.is_stored), (vec![], true), "and what was put there is still remembered");
}

#[test]
fn while_one_value_replaces_another_both_are_ours() {
    let mut sync = ConfigSync::default();
    let stored = remembered(&[("retention.ms", "1000")]);
    let changed = source(&[("retention.ms", "2000")], &[]);
    let first = sync.plan(TOPIC, &changed, &values(&[("retention.ms", "1000")]), &stored);
    assert_eq!(first.remembered, remembered(&[("retention.ms", "1000"), ("retention.ms", "2000")]));
    // A crash before it was sent, and the source drops it: the old value is still known to be ours.
    let plan = plan(
        &source(&[], &["retention.ms"]),
        &[("retention.ms", "1000")],
        &[("retention.ms", "1000"), ("retention.ms", "2000")],
    );
    assert_eq!(plan.settings, [unset("retention.ms")]);
}

#[test]
fn what_was_refused_is_sent_again_only_with_another_value() {
    let mut sync = ConfigSync::default();
    let (mirror, stored) = (Values::new(), Settings::new());
    let mut settings =
        |value| sync.plan(TOPIC, &source(&[("retention.ms", value)], &[]), &mirror, &stored).settings;
    assert_eq!(settings("1"), [set("retention.ms", "1")]);
    sync.handle_refused(TOPIC, &set("retention.ms", "1"));
    let mut settings =
        |value| sync.plan(TOPIC, &source(&[("retention.ms", value)], &[]), &mirror, &stored).settings;
    assert_eq!(settings("1"), []);
    assert_eq!(settings("2"), [set("retention.ms", "2")]);
    assert_eq!(settings("1"), [set("retention.ms", "1")], "it was another one in between");
    sync.handle_refused(TOPIC, &set("retention.ms", "1"));
    sync.handle_listed(&BTreeSet::new(), &BTreeSet::new());
    let plan = sync.plan(TOPIC, &source(&[("retention.ms", "1")], &[]), &mirror, &stored);
    assert_eq!(plan.settings.len(), 1, "another topic of that name");
}

#[test]
fn what_was_refused_at_creation_is_not_sent_after_it_whenever_the_topic_is_listed() {
    let mut sync = ConfigSync::default();
    let (unlisted, listed) = (BTreeSet::new(), BTreeSet::from([TOPIC]));
    let refused = BTreeSet::from([(TOPIC.to_owned(), set("retention.ms", "1"))]);
    let settings = |sync: &mut ConfigSync, value: &str| {
        sync.plan(TOPIC, &source(&[("retention.ms", value)], &[]), &values(&[]), &remembered(&[])).settings
    };
    sync.handle_listed(&unlisted, &refused);
    sync.handle_listed(&unlisted, &refused);
    sync.handle_listed(&listed, &refused);
    assert_eq!(settings(&mut sync, "1"), []);
    // A list without what was refused earlier changes nothing.
    sync.handle_listed(&listed, &BTreeSet::new());
    assert_eq!(settings(&mut sync, "1"), []);
    // Another value, and then the first one again, which the target may take by now.
    assert_eq!(settings(&mut sync, "2"), [set("retention.ms", "2")]);
    sync.handle_listed(&listed, &refused);
    assert_eq!(settings(&mut sync, "1"), [set("retention.ms", "1")]);
    // The topic is deleted and made again.
    sync.handle_listed(&unlisted, &refused);
    sync.handle_listed(&listed, &refused);
    assert_eq!(settings(&mut sync, "1"), []);
}

#[test]
fn a_refused_removal_is_not_tried_for_ever() {
    let mut sync = ConfigSync::default();
    let stored = remembered(&[("retention.ms", "1")]);
    let (dropped, mirror) = (source(&[], &["retention.ms"]), values(&[("retention.ms", "1")]));
    let plan = sync.plan(TOPIC, &dropped, &mirror, &stored);
    sync.handle_refused(TOPIC, &plan.settings[0]);
    assert_eq!(sync.plan(TOPIC, &dropped, &mirror, &stored).settings, []);
}

#[test]
fn what_another_instance_left_out_is_stored_again() {
    let mut sync = ConfigSync::default();
    let asked = source(&[("retention.ms", "1")], &[]);
    let first = sync.plan(TOPIC, &asked, &Values::new(), &Settings::new());
    sync.handle_sent(TOPIC, &first.settings);
    let plan = sync.plan(TOPIC, &asked, &values(&[("retention.ms", "1")]), &Settings::new());
    assert_eq!((plan.settings, plan.is_stored), (vec![], false));
    assert_eq!(plan.remembered, remembered(&[("retention.ms", "1")]));
}

#[test]
fn the_mirror_is_asked_only_for_what_matters() {
    let mut sync = ConfigSync::default();
    let stored = remembered(&[("segment.ms", "1")]);
    sync.handle_sent(TOPIC, &[set("flush.ms", "1"), unset("segment.ms")]);
    let names = sync.names(TOPIC, &source(&[("retention.ms", "1")], &["cleanup.policy"]), &stored);
    assert_eq!(names, ["flush.ms", "retention.ms", "segment.ms"].map(str::to_owned).into());
    assert!(sync.names("other", &source(&[], &["cleanup.policy"]), &Settings::new()).is_empty());
}

#[test]
fn more_than_an_entry_holds_is_set_and_not_remembered() {
    let long = "x".repeat(REMEMBERED_BYTES_MAX / 4);
    let copied: Vec<(String, String)> =
        (0..6).map(|number| (format!("config.{number}"), long.clone())).collect();
    let source = SourceConfigs { copied: copied.iter().cloned().collect(), ..SourceConfigs::default() };
    let plan = ConfigSync::default().plan(TOPIC, &source, &Values::new(), &Settings::new());
    assert_eq!((plan.settings.len(), plan.remembered.len()), (6, 3));
    let again = ConfigSync::default().plan(TOPIC, &source, &source.copied, &plan.remembered);
    assert!(again.settings.is_empty() && again.is_stored, "and that is no news each time");
    assert_eq!(remembered_of(&plan.settings), plan.remembered);
}
