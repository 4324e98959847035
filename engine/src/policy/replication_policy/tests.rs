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

proptest! {
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
