//! Tests: what is typed in a file and what comes of it.

use std::time::Duration;

use twinlog_protocol::fetch::IsolationLevel;

use super::*;
use crate::io::bootstrap::HostPort;
use crate::policy::{DEFAULT_EXCLUDED_TOPICS, ReplicationPolicy, Selection};

mod connectors;
mod names;

/// The least that runs.
const BASE: &str = "clusters = west, east\nwest.bootstrap.servers = w:1\neast.bootstrap.servers = e:1\n\
                    west->east.enabled = true\n";

fn config(more: &str) -> MirrorConfig {
    MirrorConfig::from_properties(format!("{BASE}{more}").as_bytes())
        .unwrap_or_else(|e| panic!("{more}: {e}"))
}

fn flow(more: &str) -> FlowConfig {
    config(more).flows()[0].clone()
}

fn faults(more: &str) -> Vec<String> {
    match MirrorConfig::from_properties(format!("{BASE}{more}").as_bytes()) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.faults().iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn refused(line: &str) {
    let faults = faults(line);
    let key = line.split('=').next().unwrap().trim();
    assert_eq!(faults.len(), 1, "{line}: {faults:?}");
    assert!(faults[0].starts_with(&format!("line 5: `{key} = ")), "{line}: {faults:?}");
}

#[track_caller]
fn passes(line: &str) {
    assert_eq!(faults(line), Vec::<String>::new(), "{line}");
}

#[test]
fn the_least_file_gives_the_defaults_of_4_3_1() {
    let flow = flow("");
    assert_eq!(flow.name, "west->east");
    assert_eq!((flow.source.alias.as_str(), flow.target.alias.as_str()), ("west", "east"));
    assert_eq!(flow.source.bootstrap, [HostPort::new("w", 1)]);
    assert_eq!(flow.selection.filter().include(), [".*"]);
    assert_eq!(flow.selection.filter().exclude(), DEFAULT_EXCLUDED_TOPICS);
    assert_eq!(flow.selection.policy(), &ReplicationPolicy::default_with("."));
    assert_eq!(flow.selection.remote_topic("orders"), "west.orders");
    assert_eq!((flow.replication_factor.value, flow.replication_factor.line), (2, None));
    assert_eq!(flow.offset_storage_replication_factor.value, 3);
    assert_eq!(flow.refresh_topics_interval, Some(Duration::from_secs(30)));
    assert_eq!(flow.sync_topic_configs_interval, Some(Duration::from_secs(600)));
    assert_eq!(flow.offsets_mode, OffsetsMode::Auto);
    let config = config("");
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    assert_eq!(config.not_yet().len(), 4);
}

#[test]
fn a_key_of_the_flow_beats_the_same_key_at_top_level() {
    let text =
        "topics = a\nwest->east.topics = b, c\nreplication.factor = 3\nwest->east.replication.factor = 1\n";
    let flow = flow(text);
    assert_eq!(flow.selection.filter().include(), ["b", "c"]);
    assert_eq!(flow.replication_factor.value, 1);
    assert_eq!(flow.replication_factor.key, "west->east.replication.factor");
    assert_eq!(flow.replication_factor.line, Some(8));
}

#[test]
fn addresses_come_from_the_flow_then_the_cluster_then_the_top() {
    let text = "clusters=a,b\nbootstrap.servers=top:1 , top:2,\nb.bootstrap.servers=b:1\na->b.enabled=true\n";
    let read = |more: &str| {
        let config = MirrorConfig::from_properties(format!("{text}{more}").as_bytes()).unwrap();
        let flow = config.flows()[0].clone();
        (flow.source.bootstrap, flow.target.bootstrap)
    };
    let (source, target) = read("");
    assert_eq!(source, [HostPort::new("top", 1), HostPort::new("top", 2)]);
    assert_eq!(target, [HostPort::new("b", 1)]);
    assert_eq!(read("a->b.target.cluster.bootstrap.servers=f:1").1, [HostPort::new("f", 1)]);
}

#[test]
fn addresses_that_are_none_are_named_one_by_one_and_odd_ones_are_noted() {
    let text = |servers: &str| {
        format!("clusters=a,b\na.bootstrap.servers={servers}\nb.bootstrap.servers=b:1\na->b.enabled=true\n")
    };
    let errors = MirrorConfig::from_properties(text("x, y:1, z:0").as_bytes()).unwrap_err().to_string();
    assert!(errors.starts_with("line 2: `a.bootstrap.servers = x, y:1, z:0`: \"x\" has no port"), "{errors}");
    assert!(errors.contains("\"z:0\" has a port outside"), "{errors}");
    let config = MirrorConfig::from_properties(text("PLAINTEXT\\://x:1").as_bytes()).unwrap();
    assert!(config.warnings()[0].to_string().starts_with("line 2: `a.bootstrap.servers`: the prefix of"));
}

#[test]
fn the_worker_prefers_the_top_level_to_the_target_and_reads_no_flow() {
    let key = "offset.storage.replication.factor";
    let read = |text: &str| flow(text).offset_storage_replication_factor.value;
    assert_eq!(read(&format!("{key}=1\neast.{key}=2")), 1);
    assert_eq!(read(&format!("east.{key}=2")), 2);
    assert_eq!(read(&format!("west.{key}=2")), 3);
    assert_eq!(read(&format!("west->east.{key}=2")), 3);
}

#[test]
fn old_names_work_and_say_so() {
    let config = config("topics.blacklist = tmp-.*\n");
    assert_eq!(config.flows()[0].selection.select("tmp-1"), Selection::Excluded);
    assert!(config.warnings()[0].to_string().starts_with("line 5: `topics.blacklist`: the old name of"));
    let both = self::config("topics.blacklist = tmp-.*\ntopics.exclude = x\n");
    assert_eq!(both.flows()[0].selection.filter().exclude(), ["x"]);
    assert!(both.warnings()[0].text.starts_with("ignored because"));
}

#[test]
fn empty_lists_match_nothing_and_exclude_nothing() {
    let flow = flow("west->east.topics =\nwest->east.topics.exclude =\n");
    assert!(flow.selection.filter().include().is_empty());
    assert!(flow.selection.filter().exclude().is_empty());
    assert_eq!(flow.selection.select("heartbeats"), Selection::Mirrored);
}

#[test]
fn a_pattern_cut_at_a_comma_is_refused_with_key_line_and_reason() {
    let faults = faults("west->east.topics.exclude = ok, console-[0-9]{1,6}(\n");
    assert_eq!(faults.len(), 2, "both halves: {faults:?}");
    assert!(
        faults.iter().all(|fault| fault.starts_with("line 5: `west->east.topics.exclude = ")),
        "{faults:?}"
    );
    assert!(faults[0].contains("cut at every comma"), "{faults:?}");
    assert!(faults[1].contains("`6}(` is not"), "{faults:?}");
}

#[test]
fn refreshing_can_be_paced_and_switched_off() {
    let read = |text: &str| flow(text).refresh_topics_interval;
    assert_eq!(read("refresh.topics.interval.seconds = 5"), Some(Duration::from_secs(5)));
    assert_eq!(read("refresh.topics.interval.seconds = -1"), None);
    for long in ["31", "600", "9223372036854775807"] {
        let seconds = read(&format!("refresh.topics.interval.seconds = {long}"));
        assert_eq!(seconds, Some(Duration::from_secs(30)), "never later than half a minute");
    }
    assert_eq!(read("refresh.topics.enabled = false"), None);
    refused("refresh.topics.interval.seconds = 0");
    refused("refresh.topics.interval.seconds = 10 # seconds");
    refused("refresh.topics.enabled = on");
}

#[test]
fn syncing_of_topic_configs_can_be_paced_and_switched_off() {
    let read = |text: &str| flow(text).sync_topic_configs_interval;
    assert_eq!(read("sync.topic.configs.interval.seconds = 7200"), Some(Duration::from_secs(7200)));
    assert_eq!(read("west->east.sync.topic.configs.interval.seconds = 1"), Some(Duration::from_secs(1)));
    assert_eq!(read("sync.topic.configs.interval.seconds = -1"), None);
    assert_eq!(read("sync.topic.configs.enabled = false\nsync.topic.configs.interval.seconds = 5"), None);
    refused("sync.topic.configs.interval.seconds = 0");
    refused("sync.topic.configs.enabled = on");
}

#[test]
fn factors_are_whole_numbers_from_1_or_minus_1() {
    assert_eq!(flow("replication.factor = -1").replication_factor.value, -1);
    for bad in ["0", "-2", "two", "99999", "1 # replica", ""] {
        refused(&format!("replication.factor = {bad}"));
    }
}

#[test]
fn what_is_asked_for_expressly_and_not_built_is_refused() {
    for line in [
        "sync.group.offsets.enabled = true",
        "west->east.sync.group.offsets.enabled = TRUE",
        "emit.heartbeats.enabled = true",
        "east->west.emit.heartbeats.enabled = true",
        "emit.checkpoints.enabled = true",
        "emit.offset-syncs.enabled = true",
        "sync.topic.acls.enabled = true",
        "west.security.protocol = SASL_SSL",
        "security.protocol = ssl",
        "west->east.security.protocol = SSL",
        "west->east.source.cluster.security.protocol = SSL",
        "west.consumer.security.protocol = SSL",
        "east.security.protocol = abc",
        "west.sasl.mechanism = PLAIN",
        "ssl.truststore.location = /x.jks",
        "east.admin.ssl.truststore.location = /x.jks",
        "west.consumer.auto.offset.reset = none",
        "west->east.consumer.auto.offset.reset = Latest",
        "west->east.source.consumer.auto.offset.reset = by_duration:1h",
        "west.consumer.interceptor.classes = com.acme.Mask",
        "east.producer.interceptor.classes = com.acme.Mask",
        "west->east.producer.override.interceptor.classes = com.acme.Mask",
        "west->east.exactly.once.support = required",
        "west->east.exactly.once.support = required\nwest.consumer.isolation.level = read_committed",
        "exactly.once.support = required\nexactly.once.source.support = enabled\n\
         west.consumer.isolation.level = read_uncommitted",
        "offsets.mode = identical",
        "offsets.mode = exact",
        "offsets.identical.topics = a",
        "exactly.once = off",
        "on.loss = go on",
        "on.target.loss = Recopy",
        "throttle = fast",
        "memory.max = 64",
        "loops.allow = yes",
        "west->east.compression.type = brotli",
        "compression.type =",
        "errors.tolerance = some",
        "transforms = route",
        "predicates = isFoo",
        "topic.filter.class = com.example.MyFilter",
        "topic.filter.class = com.example.DefaultTopicFilter",
        "config.property.filter.class = X",
        "west.consumer.bootstrap.servers = other:1",
        "east.producer.bootstrap.servers = other:1",
        "west->east.producer.override.bootstrap.servers = other:1",
        "forwarding.admin.class = X",
        "east.forwarding.admin.class = X",
        "value.converter = org.apache.kafka.connect.json.JsonConverter",
        "east.key.converter = org.apache.kafka.connect.json.JsonConverter",
        "offset-syncs.topic.location = target",
        "topics = ${TOPICS}",
        "topics = ${file:/nowhere:topics}",
        "west->east.replication.factor = ${FACTOR}",
        "heartbeats.replication.enabled = maybe",
    ] {
        refused(line);
    }
}

#[test]
fn what_happens_anyway_may_be_written() {
    for line in [
        "sync.group.offsets.enabled = false",
        "emit.heartbeats.enabled = false",
        "emit.checkpoints.enabled = false",
        "sync.topic.acls.enabled = False",
        "sync.topic.configs.enabled = true",
        "sync.topic.configs.enabled = false",
        "security.protocol = plaintext",
        "west.security.protocol = PLAINTEXT",
        "west.consumer.bootstrap.servers = w:1",
        "west.consumer.isolation.level = read_uncommitted",
        "east.consumer.isolation.level = read_committed",
        "west.consumer.auto.offset.reset = earliest",
        "west.consumer.auto.offset.reset = latest ",
        "east.consumer.auto.offset.reset = none",
        "exactly.once.source.support = disabled",
        "exactly.once.source.support = enabled\nexactly.once.support = required",
        "offsets.mode = auto",
        "offsets.mode = mapped",
        "exactly.once = on",
        "on.loss = hold",
        "on.loss = continue",
        "on.target.loss = hold",
        "on.target.loss = recopy",
        "west->east.on.target.loss = continue",
        "errors.tolerance = none",
        "errors.tolerance = all",
        "transforms =",
        "topic.filter.class = org.apache.kafka.connect.mirror.DefaultTopicFilter",
        "key.converter = org.apache.kafka.connect.converters.ByteArrayConverter",
        "east.value.converter = org.apache.kafka.connect.converters.ByteArrayConverter",
        "east.header.converter = x.Other\nwest->east.header.converter = ByteArrayConverter",
        "offset-syncs.topic.location = source",
        "offset-syncs.topic.replication.factor = 1",
        "checkpoints.topic.replication.factor = 1",
        "heartbeats.topic.replication.factor = 1",
        "emit.checkpoints.interval.seconds = 5",
        "groups = .*",
        "tasks.max = 4",
        "ssl.client.auth = required",
        "east.producer.compression.type = zstd",
        "loops.allow = true",
        "north->east.emit.heartbeats.enabled = true",
    ] {
        passes(line);
    }
}

#[test]
fn a_flow_begins_where_the_consumer_at_the_source_would() {
    let read = |text: &str| flow(text).start_position;
    assert_eq!(read(""), StartPosition::Earliest);
    let [flow_low, cluster, flow_high] = [
        "west->east.consumer.auto.offset.reset = by_duration:PT1H\n",
        "west.consumer.auto.offset.reset = latest\n",
        "west->east.source.consumer.auto.offset.reset = earliest\n",
    ];
    assert_eq!(read(flow_low), StartPosition::ByDuration(Duration::from_secs(3600)));
    assert_eq!(read(&format!("{flow_low}{cluster}")), StartPosition::Latest);
    assert_eq!(read(&format!("{flow_high}{flow_low}{cluster}")), StartPosition::Earliest);
    // Where MM2 does not look.
    let elsewhere = "consumer.auto.offset.reset = latest\nwest.auto.offset.reset = latest\n\
                     east.consumer.auto.offset.reset = latest\nwest->east.consumer.override.auto.offset.reset = latest\n";
    assert_eq!(read(elsewhere), StartPosition::Earliest);
}

#[test]
fn exactly_once_at_the_worker_means_that_committed_records_are_read() {
    let (enabled, own) = ("exactly.once.source.support = Enabled\n", "west.consumer.isolation.level = ");
    for (text, level, told) in [
        (String::new(), IsolationLevel::ReadUncommitted, ""),
        (format!("{own}read_committed\n"), IsolationLevel::ReadCommitted, ""),
        (enabled.to_owned(), IsolationLevel::ReadCommitted, "copied (though nobody wrote `isolation.level`)"),
        (
            format!("east.{enabled}{own}read_committed\n"),
            IsolationLevel::ReadCommitted,
            "copied (as written)",
        ),
        (format!("{enabled}{own}read_uncommitted\n"), IsolationLevel::ReadUncommitted, "changes nothing"),
        ("exactly.once.source.support = preparing\n".to_owned(), IsolationLevel::ReadUncommitted, ""),
        // Another worker's.
        (format!("west.{enabled}"), IsolationLevel::ReadUncommitted, "would count"),
    ] {
        assert_eq!(flow(&text).isolation_level, level, "{text}");
        let warnings = config(&text).warnings().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(
            warnings.iter().any(|warning| warning.contains(told)) || told.is_empty(),
            "{text}: {warnings:?}"
        );
        assert_eq!(warnings.is_empty(), told.is_empty(), "{text}: {warnings:?}");
    }
}

#[test]
fn a_switch_of_the_flow_overrules_one_that_would_be_refused() {
    passes("emit.checkpoints.enabled = true\nwest->east.emit.checkpoints.enabled = false");
}

#[test]
fn what_is_switched_off_is_not_named_as_missing() {
    let config = config("emit.heartbeats.enabled=false\nwest->east.sync.topic.acls.enabled=false\n");
    assert_eq!(config.not_yet(), ["offset syncs", "checkpoints of consumer groups"]);
}

#[test]
fn security_of_a_cluster_without_a_flow_does_not_matter() {
    let text = "clusters = west, east, north\nnorth.security.protocol = SASL_SSL\nnorth.ssl.key.password = x\n\
                north.consumer.isolation.level = read_committed\n";
    passes(text);
}

#[test]
fn security_is_one_fault_for_each_cluster_and_never_shows_a_secret() {
    let faults = faults(
        "west.security.protocol=SASL_SSL\nwest.sasl.mechanism=PLAIN\nwest.sasl.jaas.config=x password=\"hunter2\";\n\
         east.ssl.keystore.password=hunter2\neast.ssl.key.password=hunter2\n",
    );
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(
        faults[0].starts_with("line 5: `west.security.protocol = SASL_SSL`: TLS and SASL are not built yet")
    );
    assert!(faults[1].contains("`east.ssl.keystore.password = ********`"), "{faults:?}");
    assert!(faults[1].contains("and 1 more such key"), "{faults:?}");
    assert!(!faults.join("\n").contains("hunter2"));
}

#[test]
fn security_left_over_beside_a_written_plaintext_is_a_warning() {
    let config = config("east.security.protocol=PLAINTEXT\neast.ssl.truststore.location=/x.jks\n");
    assert!(config.warnings()[0].to_string().contains("without effect"), "{:?}", config.warnings());
}

#[test]
fn all_faults_come_at_once_in_the_order_of_the_file() {
    let text = "clusters=a,b\nb.bootstrap.servers=,\na->b.enabled=true\ntopics=(\nreplication.factor=x\n\
                sync.group.offsets.enabled=true\n";
    let errors = MirrorConfig::from_properties(text.as_bytes()).unwrap_err();
    let keys: Vec<_> = errors.faults().iter().map(|fault| fault.key.clone().unwrap()).collect();
    assert_eq!(
        keys,
        [
            "a.bootstrap.servers",
            "b.bootstrap.servers",
            "topics",
            "replication.factor",
            "sync.group.offsets.enabled"
        ]
    );
}

#[test]
fn every_enabled_flow_is_read_with_its_own_keys() {
    let config =
        config("east->west.enabled=true\neast->west.topics=pay\ntopics=a\neast.bootstrap.servers=e:1\n");
    let read: Vec<(&str, &[String])> =
        config.flows().iter().map(|flow| (flow.name.as_str(), flow.selection.filter().include())).collect();
    assert_eq!(read, [("west->east", &["a".to_owned()][..]), ("east->west", &["pay".to_owned()])]);
    assert_eq!(config.not_yet().len(), 4, "told once for all flows");
}

#[test]
fn faults_of_several_flows_come_at_once_and_shared_ones_once() {
    let faults = faults("east->west.enabled=true\neast->west.topics=(\nthrottle=1\n");
    assert_eq!(faults.len(), 2, "{faults:?}");
}

#[test]
fn keys_that_nobody_reads_say_what_was_meant_and_repeated_keys_which_counts() {
    let config = config("task.max=2\ntopics=a\nwest->east.enable=true\nnorth->east.topics=b\ntopics=c\n");
    let warnings: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "line 5: `task.max`: read by nobody, neither MM2 nor twinlog: is `tasks.max` meant?",
            "line 7: `west->east.enable`: read by nobody, neither MM2 nor twinlog: is `west->east.enabled` meant, \
             which stands in line 4 already?",
            "line 8: `north->east.topics`: read by nobody: it names a cluster that `clusters` does not list (west, \
             east)",
            "line 9: `topics`: written 2 times (lines 6, 9); the last one counts",
        ]
    );
}

#[test]
fn keys_of_a_flow_that_nobody_switched_on_or_off_are_told_once() {
    let config = config("east->west.topics = orders\neast->west.replication.factor = 1\n");
    let [warning] = config.warnings() else { panic!("{:?}", config.warnings()) };
    assert_eq!(
        warning.to_string(),
        "line 5: `east->west.topics`: has no effect: `east->west` is not enabled"
    );
    assert!(self::config("east->west.enabled = false\neast->west.topics = a\n").warnings().is_empty());
}

#[test]
fn known_keys_where_nobody_reads_them_say_where_they_would_be() {
    for (line, place) in [
        ("consumer.isolation.level = read_committed", "write `A.` with the source's name before it"),
        ("west->east.consumer.override.isolation.level = read_committed", "`west->east.producer.override.…`"),
        ("west.topics = a", "write `topics`, or `west->east.topics`"),
        ("group.id = mirror", "with the target's name before it"),
        ("west.max.request.size = 1", "reaches no client"),
        (
            "west.sync.group.offsets.enabled = true",
            "or `west->east.sync.group.offsets.enabled` (where this version refuses it: syncing group offsets is not built yet)",
        ),
        ("west->east.exactly.once.source.support = enabled", "write `east.exactly.once.source.support`"),
    ] {
        let config = config(line);
        let [warning] = config.warnings() else { panic!("{line}: {:?}", config.warnings()) };
        assert!(warning.text == "has no effect here" && warning.remedy.contains(place), "{warning}");
    }
}

#[test]
fn tuning_of_what_twinlog_does_not_have_is_listed_apart() {
    let config = config("tasks.max=4\neast.producer.batch.size=1\nwest->east.consumer.fetch.max.bytes=1\n");
    let told: Vec<String> = config.not_needed().iter().map(ToString::to_string).collect();
    let keys = ["tasks.max", "east.producer.batch.size", "west->east.consumer.fetch.max.bytes"];
    assert_eq!(told.len(), keys.len());
    for (line, (told, key)) in told.iter().zip(keys).enumerate() {
        assert!(told.starts_with(&format!("line {}: `{key}`: ", line + 5)), "{told}");
    }
    assert_eq!(config.not_needed()[0].text, "partitions are not dealt to tasks");
    assert!(config.warnings().is_empty());
}

#[test]
fn a_flow_from_a_cluster_to_itself_is_told_as_such() {
    let text = "clusters=a,b\na.bootstrap.servers=x:1\nb.bootstrap.servers=y:1\na->a.enabled=true\n";
    let errors = MirrorConfig::from_properties(text.as_bytes()).unwrap_err().to_string();
    assert!(errors.contains("names one cluster twice"), "{errors}");
}

#[test]
fn a_file_with_faults_still_tells_what_reads_oddly() {
    let text = format!("{BASE}west->east.topcis = orders\nthrottle = 1\n");
    let errors = MirrorConfig::from_properties(text.as_bytes()).unwrap_err();
    let warnings: Vec<String> = errors.warnings().iter().map(ToString::to_string).collect();
    assert!(warnings.iter().any(|warning| warning.contains("west->east.topcis")), "{warnings:?}");
}

#[test]
fn groups_are_matched_by_their_whole_names() {
    use crate::policy::FilterVerdict::{Excluded, NotIncluded, Wanted};
    for (written, name, verdict) in [
        ("groups=group1", "group1", Wanted),
        ("groups=group1", "group2", NotIncluded),
        ("groups=group1", "group11", NotIncluded),
        ("west->east.groups=group1, group2\ngroups=x", "group2", Wanted),
        ("groups.exclude=group.*", "group2", Excluded),
        ("groups.blacklist=group.*", "group2", Excluded),
        ("", "console-consumer-7", Excluded),
        ("", "orders", Wanted),
    ] {
        assert_eq!(flow(written).groups.verdict(name), Ok(verdict), "{written}: {name}");
    }
}
