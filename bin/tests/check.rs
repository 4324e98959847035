//! `twinlog check` on the configurations of field reports: the code it ends with, and what it says.

use std::path::PathBuf;
use std::process::{Command, Output};

fn configs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/configs")
}

fn check(name: &str, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_twinlog"))
        .arg("check")
        .arg(configs().join(name))
        .args(more)
        .env_remove("MIRROR_SRC_BOOTSTRAP")
        .output()
        .expect("the program was built beside its tests")
}

/// A file, the code that `check` ends with, and pieces of its lines.
type Answer = (&'static str, i32, &'static [&'static str]);

/// What the field reports call the right answer, as far as this version goes.
const ANSWERS: &[Answer] = &[
    (
        "01-empty-alias-no-prefix.properties",
        64,
        &[
            "enabled = True",
            "source.cluster.alias = \"\"",
            "line 11: `ssl.client.auth`",
            "line 12: `fresh.security.protocol = SSL`: TLS and SASL are not built yet",
        ],
    ),
    (
        "02-escapes-old-names.properties",
        64,
        &[
            "topics.exclude = .*[-.]internal, .*\\replica, __consumer_offsets   (line 20: topics.blacklist)",
            "line 20: `topics.blacklist`: the old name of `topics.exclude`",
            "line 20: `topics.blacklist`: holds a control character (`\\r`)",
            "line 21: groups.blacklist",
            "line 9: `hosted.cluster.alias`: read by nobody",
            "line 23: `refresh.topics.enable`: read by nobody, neither MM2 nor twinlog: is `refresh.topics.enabled` meant?",
            "line 40: `source->target.emit.heartbeats.enabled`: read by nobody: it names a cluster",
        ],
    ),
    (
        "03-quoted-glob-exclude.properties",
        64,
        &[
            "line 8: `topics.blacklist = \"*.internal,__.*\"`: `__.*\"` matches no legal name of a topic, so what it was to \
             exclude would be copied",
            "the quotes are part of the value: remove them",
            "line 9: `Replication.factor`: read by nobody, neither MM2 nor twinlog: is `replication.factor` meant?",
            "replication.factor = 2   (default)",
            "refresh.topics.interval.seconds = 600   (default; taken as 30: new topics and partitions are seen within 30 s at most)",
        ],
    ),
    (
        "04-trailing-comments.properties",
        64,
        &[
            "line 6: `source->destination.topics = .*                   # everything`: matches no legal name of a topic, so \
             nothing would be copied; write names or regular expressions, with commas between; holds a `#` note, which is \
             part of the value",
            "line 8: `source->destination.groups`: holds a `#` note",
        ],
    ),
    (
        "05-msk-iam-plus-cloud-plain-both-ways.properties",
        64,
        &[
            "line 24: `cloud->msk.enabled = true`: `msk->cloud` and `cloud->msk` keep the names of topics",
            "line 15: `msk.producer.override.equest.timeout.ms`: read by nobody",
            "is `msk.producer.request.timeout.ms` meant?",
            "line 19: `msk.producer.override.sasl.jaas.config`: written 2 times (lines 14, 19); the last one counts",
        ],
    ),
    (
        "06-eventhubs-connection-string.properties",
        64,
        &[
            "line 7: `connections.max.idle.ms`: has no effect here",
            "line 10: `destination.security.protocol = SASL_SSL`",
        ],
    ),
    ("07-scram-two-jks.properties", 64, &["ssl.endpoint.identification.algorithm = \"\"   (line 10"]),
    (
        "08-oauthbearer-continuation.properties",
        64,
        &["line 7: `a.security.protocol = SASL_SSL`", "replication.factor = -1"],
    ),
    (
        "10-secrets-from-file-and-env.properties",
        64,
        &[
            "line 3: `primary.bootstrap.servers = ${env:MIRROR_SRC_BOOTSTRAP}`: environment variable `MIRROR_SRC_BOOTSTRAP` is \
             not set",
            "line 7: `primary.sasl.jaas.config = ********`: `/etc/mirror/secrets.properties` cannot be read",
            "line 14: `secondary.ssl.keystore.password = ********`: `/etc/mirror/secrets/keystore-password` cannot be read",
        ],
    ),
    (
        "11-two-nodes-internal-rest-eos.properties",
        64,
        &[
            "line 12: `B.exactly.once.source.support`: means here that only committed records are copied (as written)",
            "isolation.level = read_committed   (line 13: A.consumer.isolation.level)",
        ],
    ),
    (
        "12-client-prefix-mix.properties",
        0,
        &[
            "auto.offset.reset = latest   (line 21: us.consumer.auto.offset.reset)",
            "max.request.size = 52428800   (line 10: us->eu.producer.override.max.request.size; no effect",
            "compression.type = lz4   (line 13: us->eu.producer.override.compression.type; no effect",
            "line 7: `eu.max.request.size`: has no effect here: reaches no client",
            "line 11: `producer.max.request.size`: has no effect here",
            "line 18: `us->eu.consumer.override.fetch.max.bytes`: has no effect here",
            "line 22: `eu.message.max.bytes`: read by nobody",
        ],
    ),
    (
        "13-source-connector-msk-iam.json",
        64,
        &[
            "flow msksrc->mskdst",
            "line 12: `key.converter`: the blank beside the class name is dropped",
            "line 25: `source.cluster.message.max.bytes`: read by nobody",
            "line 27: `target.cluster.max.request.size`: has no effect here",
            "topics = ^Sample[\\w]*   (line 10)",
        ],
    ),
    (
        "14-source-connector-scram-spaces.json",
        64,
        &[
            "line 5: `replication.policy.class = com.example.kafka.KeepNamesReplicationPolicy`: this class cannot be run here; use",
        ],
    ),
    (
        "15-source-connector-mtls.json",
        64,
        &["tasks.max = 4   (line 11", "sync.topic.acls.enabled = false   (line 12)"],
    ),
    ("16-eventhubs-broken-quotes.json", 64, &["line 15: column 230: not JSON"]),
    (
        "17-source-connector-oauth-callback-class.json",
        64,
        &["com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler"],
    ),
    ("18-checkpoint-connector-policy-missing.json", 64, &["positions of groups are not built yet"]),
    (
        "19-heartbeat-connector-put-body.json",
        64,
        &[
            "line 14: `transforms = route`: transforms are not supported",
            "line 4: `connector.class = MirrorHeartbeatConnector`",
        ],
    ),
    (
        "25-regex-with-commas.properties",
        64,
        &[
            "line 6: `a->b.topics = ",
            "is not a usable regular expression",
            "a list is cut at every comma",
            "groups = \"\"",
        ],
    ),
    (
        "26-separators-unicode-crlf.properties",
        64,
        &[
            "line 13: `offset-syncs.topic.replication.factor = 1 # this line is swallowed by the line above`: not a whole \
             number",
            "line 6: `west->east.enabled`: taken as true",
            "source.cluster.bootstrap.servers = 127.0.0.1:19092   (line 4: west.bootstrap.servers)",
            "target.cluster.bootstrap.servers = 127.0.0.1:29092   (line 5: east.bootstrap.servers)",
        ],
    ),
    ("28-five-clusters-one-flow.properties", 0, &["flow c1->c2", "can be used"]),
    (
        "29-bootstrap-forms.properties",
        0,
        &["line 4: `mix.bootstrap.servers`: the prefix of \"PLAINTEXT://LOCALHOST:29092\""],
    ),
    (
        "30-read-only-source.properties",
        64,
        &[
            "line 5: `locked.security.protocol = SASL_SSL`",
            "line 11: `locked->mine.offset-syncs.topic.location = target`",
        ],
    ),
    (
        "31-misspelt-switches.properties",
        64,
        &[
            "`task.max`: read by nobody, neither MM2 nor twinlog: is `tasks.max` meant?",
            "`sync.topics.configs.enabled`: read by nobody, neither MM2 nor twinlog: is `sync.topic.configs.enabled` meant?",
            "`topic.blacklist`: read by nobody, neither MM2 nor twinlog: is `topics.exclude` meant?",
            "groups.exclude = console-consumer-.*, connect-.*, __.*   (line 24: groups.blacklist",
        ],
    ),
    (
        "32-unexpanded-template.properties",
        64,
        &[
            "placeholders were left in: `A.bootstrap.servers` (line 3), `B.bootstrap.servers` (line 4), `A->B.topics` (line 6), \
             `replication.factor` (line 7), `sync.topic.acls.enabled` (line 8), `tasks.max` (line 9)",
            "cannot be used: 1 error",
            "line 13: `group.id`: has no effect here",
            "line 17: `connector.client.config.override.policy`: has no effect here",
        ],
    ),
    (
        "33-article2-source-put-body.json",
        64,
        &[
            "flow (source cluster's id)->(target cluster's id)",
            "topics.exclude = scratch,tmp-.*   (line 11: topics.blacklist)",
            "`producer.cleanup.policy`: read by nobody",
        ],
    ),
    (
        "34-article2-checkpoint-put-body.json",
        64,
        &["line 9: `key.converter`: the blank beside the class name is dropped"],
    ),
    (
        "35-article2-heartbeat-put-body.json",
        64,
        &["line 9: `key.converter`: the blank beside the class name is dropped"],
    ),
];

#[test]
fn every_reported_file_is_answered_as_it_should_be() {
    let mut wrong = Vec::new();
    for (name, code, pieces) in ANSWERS {
        let output = check(name, &[]);
        let said = String::from_utf8(output.stdout).expect("reports are UTF-8");
        if output.status.code() != Some(*code) {
            wrong.push(format!("{name}: ended with {:?}", output.status.code()));
        }
        let missing = pieces.iter().filter(|piece| !said.contains(**piece));
        wrong.extend(missing.map(|piece| format!("{name} does not say {piece:?}")));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_reported_file_is_left_out_and_no_secret_is_shown() {
    let mut files: Vec<String> = std::fs::read_dir(configs())
        .expect("the fixtures are there")
        .map(|entry| entry.expect("a readable folder").file_name().into_string().expect("ASCII names"))
        .collect();
    files.sort_unstable();
    assert_eq!(files, ANSWERS.iter().map(|answer| answer.0).collect::<Vec<_>>());
    for name in files {
        for format in ["text", "json"] {
            let said =
                String::from_utf8(check(&name, &["--output", format]).stdout).expect("reports are UTF-8");
            for secret in ["fake", "FAKE", "changeit"] {
                assert!(!said.contains(secret), "{name} shows {secret}: {said}");
            }
        }
    }
}

#[test]
fn a_report_for_machines_is_one_json_object() {
    let output = check("28-five-clusters-one-flow.properties", &["--output", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(report["usable"], true);
    assert_eq!(report["flows"][0]["flow"], "c1->c2");
    let options = report["flows"][0]["options"].as_array().expect("a list of options");
    let topics = options.iter().find(|option| option["name"] == "topics").expect("the option is there");
    assert_eq!((&topics["value"], &topics["origin"]["line"]), (&"orders".into(), &9.into()));
}

#[test]
fn a_file_that_is_not_there_ends_with_64() {
    let output = check("none.properties", &[]);
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be read"));
}
