//! Tests: policies, separators and aliases, and what becomes of them in the names of topics.

use super::*;

#[test]
fn aliases_in_names_can_be_blanked_or_changed() {
    let blank = flow("replication.policy.separator=\nsource.cluster.alias=\ntarget.cluster.alias=\n");
    assert_eq!((blank.source.alias.as_str(), blank.source.name.as_str()), ("", "west"));
    assert_eq!(blank.selection.remote_topic("orders"), "orders");
    assert_eq!(flow("west->east.source.cluster.alias=w").selection.remote_topic("t"), "w.t");
}

#[test]
fn a_cluster_called_source_makes_its_alias_key_one_at_top_level() {
    let text = "clusters=source,hosted\nsource.bootstrap.servers=s:1\nhosted.bootstrap.servers=h:1\n\
                source->hosted.enabled=true\nreplication.policy.separator=\nsource.cluster.alias=\n\
                hosted.cluster.alias=x\n";
    let config = MirrorConfig::from_properties(text.as_bytes()).unwrap();
    assert_eq!(config.flows()[0].selection.remote_topic("orders"), "orders");
    let warnings: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["line 7: `hosted.cluster.alias`: read by nobody, neither MM2 nor twinlog"]);
}

#[test]
fn both_policies_are_known_and_others_are_refused() {
    for class in ["org.apache.kafka.connect.mirror.IdentityReplicationPolicy", " IdentityReplicationPolicy"] {
        let flow = flow(&format!("replication.policy.class={class}"));
        assert_eq!(flow.selection.policy(), &ReplicationPolicy::identity("west"));
    }
    passes("replication.policy.class = org.apache.kafka.connect.mirror.DefaultReplicationPolicy");
    refused("replication.policy.class = com.example.LegacyReplicationPolicy");
    refused("replication.policy.separator = a/b");
    // Java keeps blanks at the end of a value, and those that are escaped.
    for blank in ["replication.policy.separator = -  ", "replication.policy.separator=\\u0020"] {
        assert!(faults(blank)[0].contains("a blank cannot be part of a topic's name"), "{:?}", faults(blank));
    }
}

#[test]
fn equal_aliases_under_identity_are_refused_because_nothing_would_be_copied() {
    let text =
        "replication.policy.class=IdentityReplicationPolicy\nsource.cluster.alias=\ntarget.cluster.alias=";
    let faults = faults(text);
    assert_eq!(faults.len(), 1);
    assert!(faults[0].contains("nothing would be copied"), "{faults:?}");
}

#[test]
fn aliases_must_fit_into_names_of_topics_unless_names_stay() {
    let text =
        "clusters=a b,c\na\\ b.bootstrap.servers=x:1\nc.bootstrap.servers=y:1\na\\ b->c.enabled=true\n";
    let errors = MirrorConfig::from_properties(text.as_bytes()).unwrap_err();
    assert_eq!(errors.faults().len(), 1, "{errors}");
    assert!(errors.to_string().contains("line 1: `clusters = a b,c`: ` ` cannot be part"), "{errors}");
    let identity = format!("{text}replication.policy.class=IdentityReplicationPolicy");
    assert!(MirrorConfig::from_properties(identity.as_bytes()).is_ok());
}

/// It would be part of the names of offset syncs at the source only, which is no reason to copy nothing.
#[test]
fn a_target_alias_need_not_fit_into_names_of_topics() {
    let alias = r#"east + % / ? # [ ] " < > ^"#;
    let config = config(&format!("west->east.target.cluster.alias = {alias}\n"));
    assert_eq!(config.flows()[0].target.alias, alias);
    refused(&format!("west->east.source.cluster.alias = {alias}"));
}
