//! Tests: every answer beside that of MM2 4.3.1.

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
