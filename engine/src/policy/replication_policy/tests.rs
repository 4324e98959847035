//! Tests: every answer beside that of MM2 4.3.1.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const GOLDEN: &str = include_str!("golden-4.3.1.txt");

fn policy_of(kind: &str, separator: &str, internal_enabled: bool) -> ReplicationPolicy {
    let separators = Separators::new(separator, internal_enabled);
    match kind {
        "default" => ReplicationPolicy::Default(separators),
        "identity" => ReplicationPolicy::Identity { separators, source_alias: "src".into() },
        other => panic!("unknown policy {other}"),
    }
}

fn flags(policy: &ReplicationPolicy, topic: &str) -> String {
    [
        (policy.is_heartbeats_topic(topic), 'h'),
        (policy.is_checkpoints_topic(topic), 'c'),
        (policy.is_mm2_internal_topic(topic), 'm'),
        (policy.is_internal_topic(topic), 'i'),
    ]
    .into_iter()
    .map(|(holds, letter)| if holds { letter } else { '-' })
    .collect()
}

#[test]
fn every_answer_is_that_of_mm2_4_3_1() {
    let mut policy = policy_of("default", ".", true);
    let mut compared = 0;
    for line in GOLDEN.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.trim_start_matches("== ").split('|').collect();
        if line.starts_with("== ") {
            policy = policy_of(fields[0], fields[1], fields[2] == "true");
            assert_eq!(policy.offset_syncs_topic("X"), fields[3], "{line}");
            assert_eq!(policy.checkpoints_topic("X"), fields[4], "{line}");
            continue;
        }
        let topic = fields[0];
        assert_eq!(policy.format_remote_topic("A", topic), fields[1], "{policy:?} {line}");
        assert_eq!(policy.topic_source(topic).unwrap_or("null"), fields[2], "{policy:?} {line}");
        assert_eq!(policy.upstream_topic(topic).unwrap_or("null"), fields[3], "{policy:?} {line}");
        assert_eq!(policy.original_topic(topic), fields[4], "{policy:?} {line}");
        assert_eq!(flags(&policy, topic), fields[5], "{policy:?} {line}");
        compared += 1;
    }
    assert_eq!(compared, 216);
}

#[test]
fn heartbeats_and_checkpoints_are_known_by_their_whole_names() {
    let policy = ReplicationPolicy::default_with(".");
    let listed = [
        ("heartbeats", true, false),
        ("source1.heartbeats", true, false),
        ("source2.source1.heartbeats", true, false),
        ("heartbeats!", false, false),
        ("!heartbeats", false, false),
        ("source1heartbeats", false, false),
        ("source1-heartbeats", false, false),
        ("source1.checkpoints.internal", false, true),
        ("source2.source1.checkpoints.internal", false, true),
        ("checkpoints.internal", false, false),
        ("checkpoints-internal", false, false),
        ("checkpoints.internal!", false, false),
        ("!checkpoints.internal", false, false),
        ("source1checkpointsinternal", false, false),
        ("topic1", false, false),
    ];
    for (topic, heartbeats, checkpoints) in listed {
        assert_eq!(policy.is_heartbeats_topic(topic), heartbeats, "{topic}");
        assert_eq!(policy.is_checkpoints_topic(topic), checkpoints, "{topic}");
    }
}

/// The clusters that a topic passed, nearest first: MM2's clients count hops along it.
fn way<'t>(policy: &'t ReplicationPolicy, mut topic: &'t str) -> Vec<&'t str> {
    let mut way = Vec::new();
    while let (Some(source), Some(upstream)) = (policy.topic_source(topic), policy.upstream_topic(topic)) {
        way.push(source);
        topic = upstream;
    }
    way
}

fn hops(policy: &ReplicationPolicy, topic: &str, alias: &str) -> Option<usize> {
    way(policy, topic).iter().position(|passed| *passed == alias).map(|place| place + 1)
}

#[test]
fn hops_are_counted_along_the_prefixes() {
    let policy = ReplicationPolicy::default_with(".");
    for (topic, alias, expected) in [
        ("topic", "source", None),
        ("source", "source", None),
        ("sourcetopic", "source", None),
        ("source1.topic", "source2", None),
        ("source1.topic", "source1", Some(1)),
        ("source2.source1.topic", "source2", Some(1)),
        ("source2.source1.topic", "source1", Some(2)),
        ("source3.source2.source1.topic", "source1", Some(3)),
        ("source3.source2.source1.topic", "source4", None),
    ] {
        assert_eq!(hops(&policy, topic, alias), expected, "{topic} from {alias}");
    }
    let heartbeats = ["heartbeats", "source1.heartbeats", "source1.source2.heartbeats", "source3.heartbeats"];
    for (alias, expected) in
        [("source1", Some(1)), ("source2", Some(2)), ("source3", Some(1)), ("source4", None)]
    {
        let least = heartbeats.iter().filter_map(|topic| hops(&policy, topic, alias)).min();
        assert_eq!(least, expected, "{alias}");
    }
}

#[test]
fn upstream_clusters_are_all_on_the_way_of_heartbeats() {
    let topics = [
        "topic1",
        "my.topic2",
        "heartbeats",
        "source1.heartbeats",
        "source1.source2.heartbeats",
        "source3.source4.source5.heartbeats",
    ];
    for policy in [ReplicationPolicy::default_with("."), ReplicationPolicy::identity("source")] {
        let heartbeats = topics.into_iter().filter(|topic| policy.is_heartbeats_topic(topic));
        let passed: BTreeSet<&str> = heartbeats.flat_map(|topic| way(&policy, topic)).collect();
        let expected = ["source1", "source2", "source3", "source4", "source5"];
        assert_eq!(passed.into_iter().collect::<Vec<_>>(), expected, "{policy:?}");
    }
}

#[test]
fn remote_topics_have_a_source() {
    let remote = |policy: &ReplicationPolicy, topic: &str| {
        policy.topic_source(topic).is_some() && !policy.is_internal_topic(topic)
    };
    for separator in [".", "__"] {
        let policy = ReplicationPolicy::default_with(separator);
        for prefixes in [&[][..], &["source1"], &["source1", "source2"], &["source3", "source4", "source5"]] {
            let topic = [prefixes, &["topic6"]].concat().join(separator);
            assert_eq!(remote(&policy, &topic), !prefixes.is_empty(), "{topic}");
        }
    }
    let identity = ReplicationPolicy::identity("source");
    for topic in ["topic1", "topic2", "backup.heartbeats"] {
        assert!(remote(&identity, topic), "{topic}");
    }
    assert!(!remote(&identity, "heartbeats"));
}

#[test]
fn the_identity_policy_keeps_names_but_for_heartbeats() {
    let policy = ReplicationPolicy::identity("primary");
    assert_eq!(policy.format_remote_topic("primary", "topic1"), "topic1");
    assert_eq!(policy.topic_source("topic1"), Some("primary"));
    assert_eq!(policy.format_remote_topic("backup", "heartbeats"), "backup.heartbeats");
    assert_eq!(policy.topic_source("backup.heartbeats"), Some("backup"));
}

/// Before 4.3.1 every name that ends in `.internal` or `-internal` was one.
#[test]
fn internal_topics_are_those_of_brokers_and_of_mm2_alone() {
    let policy = ReplicationPolicy::default_with(".");
    for internal in ["__consumer_offsets", ".hiddentopic", "mm2-offsets.CLUSTER.internal"] {
        assert!(policy.is_internal_topic(internal), "{internal}");
    }
    for topic in ["mm2-offsets-CLUSTER-internal", "mm2-offsets_CLUSTER_internal", "billing.internal"] {
        assert!(!policy.is_internal_topic(topic), "{topic}");
    }
}

#[test]
fn the_separator_is_part_of_mm2s_own_names_unless_that_is_switched_off() {
    for (internal_enabled, syncs, checkpoints) in [
        (true, "mm2-offset-syncs__CLUSTER__internal", "CLUSTER__checkpoints__internal"),
        (false, "mm2-offset-syncs.CLUSTER.internal", "CLUSTER.checkpoints.internal"),
    ] {
        let policy = policy_of("default", "__", internal_enabled);
        assert_eq!(policy.offset_syncs_topic("CLUSTER"), syncs);
        assert_eq!(policy.checkpoints_topic("CLUSTER"), checkpoints);
        assert!(policy.is_heartbeats_topic("heartbeats"), "never with a separator");
    }
}

/// Java's `split` written out: all parts, then the empty ones at the end dropped.
fn naive_source(topic: &str, separator: &str) -> Option<String> {
    let mut parts: Vec<&str> = topic.split(separator).collect();
    if separator.is_empty() {
        parts.retain(|part| !part.is_empty());
    }
    while parts.last() == Some(&"") {
        parts.pop();
    }
    (parts.len() >= 2).then(|| parts[0].to_owned())
}

#[test]
fn an_alias_that_holds_the_separator_is_found_in_the_chain() {
    let policy = ReplicationPolicy::default_with("_");
    for cycle in [
        "us_west_orders",
        "eu_west_us_west_orders",
        "us_west_eu_west_orders",
        "x_us_west_orders",
        "us_west_us_west_a_b",
    ] {
        assert!(policy.is_cycle(cycle, "us_west"), "{cycle}");
    }
    for own in
        ["orders", "us_orders", "west_orders", "us_westorders", "us_west", "eu_west_orders", "us.west_orders"]
    {
        assert!(!policy.is_cycle(own, "us_west"), "{own}");
    }
    let identity = Separators::new("_", true);
    let identity = ReplicationPolicy::Identity { separators: identity, source_alias: "eu_west".into() };
    assert!(!identity.is_cycle("us_west_orders", "us_west"), "names mean nothing where they stay");
    assert!(identity.is_cycle("us_west_heartbeats", "us_west"));
    let glued = ReplicationPolicy::default_with("");
    assert!(!glued.is_cycle("us_west_orders", "us_west"), "nothing stands between alias and name");
}

#[test]
fn a_name_without_upstream_ends_the_walk() {
    let policy = ReplicationPolicy::default_with(".");
    assert!(!policy.is_cycle(".b", "target"));
    assert!(policy.is_cycle(".target.b", "target"));
}

/// MM2's walk as it is written there: the source of each name on the way up, to the end or to a name that stays.
fn mm2_is_cycle(policy: &ReplicationPolicy, topic: &str, target_alias: &str) -> bool {
    match policy.topic_source(topic) {
        None => false,
        Some(source) if source == target_alias => true,
        Some(_) => policy
            .upstream_topic(topic)
            .is_some_and(|upstream| upstream != topic && mm2_is_cycle(policy, upstream, target_alias)),
    }
}

proptest! {
    #[test]
    fn p3_an_alias_without_the_separator_gets_mm2s_answer(
        topic in "[ab._]{0,14}(heartbeats)?", separator in "[._]{0,2}", target in "(src|[ab._]{0,3})",
    ) {
        for kind in ["default", "identity"] {
            let policy = policy_of(kind, &separator, true);
            if separator.is_empty() || !target.contains(&separator) {
                prop_assert_eq!(policy.is_cycle(&topic, &target), mm2_is_cycle(&policy, &topic, &target));
            }
        }
    }

    #[test]
    fn the_source_is_the_first_part_of_javas_split(topic in "[ab._]{0,12}", separator in "[._]{0,3}") {
        let policy = ReplicationPolicy::default_with(&separator);
        prop_assert_eq!(policy.topic_source(&topic).map(str::to_owned), naive_source(&topic, &separator));
    }

    #[test]
    fn p1_a_prefix_that_was_put_on_comes_off(alias in "[a-z]{1,5}", topic in "[a-z][a-z._]{0,9}") {
        let policy = ReplicationPolicy::default_with(".");
        let remote = policy.format_remote_topic(&alias, &topic);
        prop_assert_eq!(policy.topic_source(&remote), Some(alias.as_str()));
        prop_assert_eq!(policy.upstream_topic(&remote), Some(topic.as_str()));
    }

    #[test]
    fn p2_every_walk_ends(topic in "[a._-]{0,30}(heartbeats)?", separator in "[._]{0,2}", target in "[a.]{0,2}") {
        for kind in ["default", "identity"] {
            let policy = policy_of(kind, &separator, true);
            prop_assert!(topic.ends_with(policy.original_topic(&topic)));
            if policy.is_cycle(&topic, &target) {
                prop_assert!(topic.contains(&target) || target == "src");
            }
        }
    }
}
