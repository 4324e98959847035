//! Tests: what the keys of MM2's connectors come to, and which of their values are refused.

use super::*;

/// Faults of a connector's own configuration, as it is posted to Connect; `more` stands on line 2.
fn faults_of_connector(more: &str) -> Vec<String> {
    let body = format!(
        r#"{{"connector.class": "MirrorSourceConnector", "source.cluster.alias": "a", "target.cluster.alias": "b",
        {more}, "source.cluster.bootstrap.servers": "a:1", "target.cluster.bootstrap.servers": "b:1"}}"#
    );
    match Inspection::of_connector(body.as_bytes(), Surroundings::process()).result() {
        Ok(()) => Vec::new(),
        Err(errors) => errors.faults().iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn lists_of_a_flow_reach_its_filters() {
    let flow = flow(
        "west->east.topics = topic1, topic2\nwest->east.topics.exclude = topic3\nconfig.properties.exclude = prop2\n",
    );
    assert_eq!(flow.selection.filter().include(), ["topic1", "topic2"]);
    assert_eq!(flow.selection.filter().exclude(), ["topic3"]);
    assert_eq!(flow.topic_configs.exclude(), ["prop2"]);
}

#[test]
fn a_security_protocol_that_is_none_is_a_fault_of_its_key() {
    let sentence = "not a security protocol; write `PLAINTEXT`";
    for key in ["security.protocol", "west.security.protocol", "west->east.target.admin.security.protocol"] {
        assert_eq!(faults(&format!("{key} = abc")), [format!("line 5: `{key} = abc`: {sentence}")]);
    }
    for key in ["security.protocol", "target.cluster.security.protocol", "consumer.security.protocol"] {
        let found = faults_of_connector(&format!("\"{key}\": \"abc\""));
        assert_eq!(found, [format!("line 2: `{key} = abc`: {sentence}")]);
    }
}

#[test]
fn the_protocol_that_is_to_be_written_where_tls_is_left_over_is_taken() {
    for (left_over, protocol) in [
        ("west.ssl.key.password = x", "west.security.protocol"),
        ("west->east.target.admin.ssl.key.password = x", "east.security.protocol"),
        ("ssl.key.password = x", "security.protocol"),
    ] {
        let found = faults(left_over);
        let remedy = format!("write `{protocol} = PLAINTEXT` if it is left over");
        assert!(found.iter().all(|fault| fault.contains(&remedy)), "{found:?}");
        passes(&format!("{left_over}\n{protocol} = PLAINTEXT"));
    }
    for (left_over, sides) in [
        ("source.cluster.ssl.key.password", &["source"][..]),
        ("target.cluster.ssl.key.password", &["target"]),
        ("ssl.key.password", &["source", "target"]),
    ] {
        let mut body = format!("\"{left_over}\": \"x\"");
        for side in sides {
            let remedy = format!("\"{side}.cluster.security.protocol\": \"PLAINTEXT\"");
            let found = faults_of_connector(&body);
            assert!(found.iter().any(|fault| fault.contains(&remedy)), "{found:?}");
            body = format!("{body}, {remedy}");
        }
        assert_eq!(faults_of_connector(&body), [""; 0], "{body}");
    }
}

#[test]
fn capital_letters_of_a_security_protocol_do_not_matter() {
    passes("west.security.protocol = PlainText");
    for protocol in ["sasl_ssl", "Sasl_Plaintext", "ssl"] {
        let found = faults(&format!("west.security.protocol = {protocol}"));
        assert!(found.len() == 1 && found[0].contains("TLS and SASL are not built yet"), "{found:?}");
        let found = faults_of_connector(&format!("\"security.protocol\": \"{protocol}\""));
        assert!(found.len() == 1 && found[0].contains("TLS and SASL are not built yet"), "{found:?}");
    }
}

#[test]
fn offset_syncs_lie_at_the_source_and_are_named_by_the_other_cluster() {
    let flow = flow("offset-syncs.topic.location = source");
    let policy = flow.selection.policy();
    assert_eq!(policy.offset_syncs_topic(&flow.target.alias), "mm2-offset-syncs.east.internal");
    assert_eq!(policy.offset_syncs_topic(&flow.source.alias), "mm2-offset-syncs.west.internal");
    refused("offset-syncs.topic.location = target");
    refused("offset-syncs.topic.location = something");
}

#[test]
fn a_flow_that_is_switched_off_is_not_judged() {
    let wrong = "east->west.topics = (\neast->west.emit.checkpoints.enabled = maybe\neast->west.tasks.max = x\n\
                 east->west.sync.group.offsets.enabled = true\n";
    passes(wrong);
    passes(&format!("{wrong}east->west.enabled = false\n"));
    assert_eq!(faults(&format!("{wrong}east->west.enabled = true\n")).len(), 4);
}

#[test]
fn the_isolation_level_of_a_side_beats_that_of_all_consumers() {
    let levels = ["", "read_committed", "read_uncommitted", "invalid"];
    for (general, own) in levels.into_iter().flat_map(|general| levels.map(|own| (general, own))) {
        let keys = [("consumer", general), ("source.consumer", own)];
        let written = keys.into_iter().filter(|(_, level)| !level.is_empty());
        let text: String = written
            .map(|(prefix, level)| format!("west->east.{prefix}.isolation.level = {level}\n"))
            .collect();
        let found = faults(&text);
        let effective = if own.is_empty() { general } else { own };
        // What a consumer cannot have is told of either: the target's has the general one.
        let invalid = [general, own].iter().filter(|level| **level == "invalid").count();
        let ending = "isolation.level = invalid`: not `read_committed` or `read_uncommitted`";
        assert!(
            found.len() == invalid && found.iter().all(|fault| fault.contains(ending)),
            "{text}: {found:?}"
        );
        if invalid == 0 {
            let is_committed = flow(&text).isolation_level == IsolationLevel::ReadCommitted;
            assert_eq!(is_committed, effective == "read_committed", "{text}");
        }
    }
}

#[test]
fn a_fault_of_one_key_hides_no_other() {
    passes("exactly.once.support = requested");
    refused("exactly.once.support = garbage");
    let found = faults("offset.lag.max = bad\nexactly.once.support = required\n");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("line 5: `offset.lag.max = bad`: not a whole number"), "{found:?}");
    assert!(
        found[1].starts_with("line 6: `exactly.once.support = required`: as with MM2, needs"),
        "{found:?}"
    );
}

#[test]
fn advice_for_a_body_has_no_names_of_clusters() {
    let body = r#"{"connector.class": "MirrorSourceConnector", "source.cluster.alias": "a", "target.cluster.alias": "b",
        "fetch.max.bytes": "1", "source.cluster.bootstrap.servers": "a:1", "target.cluster.bootstrap.servers": "b:1"}"#;
    let inspection = Inspection::of_connector(body.as_bytes(), Surroundings::process());
    let warnings: Vec<String> = inspection.warnings().iter().map(ToString::to_string).collect();
    let expected =
        "line 2: `fetch.max.bytes`: has no effect here: reaches no client: write `consumer.fetch.max.bytes`";
    assert_eq!(warnings, [expected]);
    let mended = body.replace("fetch.max", "consumer.fetch.max");
    assert_eq!(Inspection::of_connector(mended.as_bytes(), Surroundings::process()).warnings(), []);
}

#[test]
fn a_setting_of_clients_at_top_level_is_to_go_to_the_cluster_at_its_end() {
    for (key, remedy) in [
        ("consumer.auto.offset.reset", "write `A.` with the source's name before it"),
        ("producer.acks", "write `B.` with the target's name before it"),
        ("admin.client.id", "write `A.` with the cluster's name before it"),
    ] {
        let config = MirrorConfig::from_properties(format!("{BASE}{key} = 1\n").as_bytes()).unwrap();
        let told: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|warning| warning.contains(remedy)), "{key}: {told:?}");
    }
}
