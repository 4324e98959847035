//! What `twinlog check` prints for machines, for readers that are gone, and for files that are not what they should be.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const GOOD: &str = "clusters = west, east\nwest.bootstrap.servers = w:1\neast.bootstrap.servers = e:1\n\
                    west->east.enabled = true\n";

fn twinlog() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_twinlog"));
    command.env_remove("RUST_LOG").env_remove("TWINLOG_NONE");
    command
}

fn ended(mut command: Command) -> Output {
    command.output().expect("the program was built beside its tests")
}

/// A file of its own, which goes with its folder.
fn file(content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("mm2.properties");
    fs::write(&path, content).expect("a file of our own can be written");
    (folder, path)
}

fn check(path: &Path, more: &[&str]) -> (i32, String, String) {
    let mut command = twinlog();
    command.arg("check").arg(path).args(more);
    let output = ended(command);
    let text = |bytes| String::from_utf8(bytes).expect("reports are UTF-8");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

fn json(path: &Path, code: i32) -> Value {
    let (ended_with, out, errors) = check(path, &["--output", "json"]);
    assert_eq!((ended_with, errors.as_str()), (code, ""), "{out}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

fn find<'v>(list: &'v Value, key: &str) -> &'v Value {
    let list = list.as_array().expect("a list");
    list.iter().find(|told| told["key"] == key).unwrap_or_else(|| panic!("no {key}: {list:#?}"))
}

#[test]
fn json_tells_all_parts_of_each_fact_and_cuts_nothing() {
    let long = format!("{}\u{202e}\u{9b}", "t,".repeat(3000));
    let (_folder, path) = file(format!(
        "{GOOD}topics = {long}\nreplication.factor = x\nwest.sasl.jaas.config = p password=\"hunter2\";\n\
         throttle = 1\ntasks.max = 4\ngroups = g\ntopcis = a\nwest.ssl.key.pasword = hunter2\nthrottle = 2\n"
    ));
    let report = json(&path, 64);
    assert_eq!((&report["usable"], &report["file"]), (&false.into(), &path.to_str().into()));
    let factor = find(&report["errors"], "replication.factor");
    assert_eq!(
        *factor,
        serde_json::json!({
            "message": "line 6: `replication.factor = x`: not a replication factor; write a number from 1, or -1 for the \
                        broker's own default",
            "key": "replication.factor", "line": 6, "value": "x", "others": [], "reason": "not a replication factor",
            "remedy": "write a number from 1, or -1 for the broker's own default",
        })
    );
    assert_eq!(find(&report["errors"], "west.sasl.jaas.config")["value"], "********");
    let options = report["flows"][0]["options"].as_array().expect("options");
    let topics = options.iter().find(|option| option["name"] == "topics").expect("topics");
    assert_eq!(topics["value"], long.as_str());
    let interval = options.iter().find(|option| option["name"] == "refresh.topics.interval.seconds");
    let interval = interval.expect("its default");
    assert_eq!(interval["taken_as"], "30");
    assert_eq!(interval["taken_as_reason"], "new topics and partitions are seen within 30 s at most");
    let unused = find(&report["not_needed"], "tasks.max");
    assert_eq!(
        (&unused["line"], &unused["value"], &unused["remedy"]),
        (&9.into(), &"4".into(), &Value::Null)
    );
    assert_eq!(unused["reason"], "partitions are not dealt to tasks");
    assert_eq!(find(&report["later"], "groups")["reason"], "groups are not synced yet");
    let misspelt = find(&report["warnings"], "topcis");
    assert_eq!(
        (&misspelt["remedy"], &misspelt["value"]),
        (&"is `topics` meant, which stands in line 5 already?".into(), &Value::Null)
    );
    assert_eq!(find(&report["warnings"], "throttle")["value"], "2");
    let (_, text, _) = check(&path, &["--output", "json"]);
    assert!(!text.contains("hunter2") && !text.contains(['\u{202e}', '\u{9b}']), "{text}");
}

#[test]
fn every_key_of_which_the_same_is_said_is_listed() {
    let known = "east.ssl.protocol = TLS\neast.ssl.key.password = hunter2\neast.ssl.truststore.type = JKS\n";
    let (_folder, path) =
        file(format!("{GOOD}{known}west.security.protocol = PLAINTEXT\n{}", known.replace("east", "west")));
    let report = json(&path, 64);
    let others = |list: &str, key: &str| find(&report[list], key)["others"].clone();
    assert_eq!(
        others("errors", "east.ssl.protocol"),
        serde_json::json!([{"key": "east.ssl.key.password", "line": 6}, {"key": "east.ssl.truststore.type", "line": 7}])
    );
    assert_eq!(others("warnings", "west.ssl.protocol").as_array().map(Vec::len), Some(2));
    let message = find(&report["errors"], "east.ssl.protocol")["message"].as_str().expect("a sentence");
    assert!(
        message.contains("`east.ssl.key.password` in line 6, `east.ssl.truststore.type` in line 7"),
        "{message}"
    );
    let (_, text, _) = check(&path, &[]);
    let expected = "TLS and SASL are not built yet (and 2 more such keys); remove them, or write \
                    `east.security.protocol = PLAINTEXT` if they are left over\n        line 6: `east.ssl.key.password`\n        \
                    line 7: `east.ssl.truststore.type`\n";
    assert!(text.contains(expected) && !text.contains("hunter2"), "{text}");
}

#[test]
fn a_private_key_over_several_lines_is_never_printed() {
    let (_folder, path) = file(format!(
        "{GOOD}west.ssl.keystore.key = -----BEGIN PRIVATE KEY-----\nMIIEvS3CRETgEAAoIBAQC7VJTUt9Us8cKjMzEfYyjiWA4R4\n\
         Us8S3CRET==\n-----END PRIVATE KEY-----\neast.sasl.jaas.config = x required password=\"a \\ \n\"S3CRETbc\";\n"
    ));
    for more in [&["--output", "json"][..], &[]] {
        let (code, out, errors) = check(&path, more);
        assert!(code == 64 && out.contains("may be the rest of `west.ssl.keystore.key` (line 5)"), "{out}");
        assert!(!out.contains("S3CRET") && !out.contains("PRIVATE") && errors.is_empty(), "{out}");
    }
    let mut run = twinlog();
    run.arg("run").arg(&path);
    let output = ended(run);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(64) && log.contains("`********`") && !log.contains("S3CRET"),
        "{log}"
    );
}

#[test]
fn a_report_may_be_of_the_flows_into_some_clusters() {
    let (_folder, path) = file(format!("{GOOD}east->west.enabled = true\neast->west.topics = (\n"));
    let (code, _, _) = check(&path, &[]);
    assert_eq!(code, 64);
    let (code, out, _) = check(&path, &["--clusters", "east"]);
    assert!(code == 0 && out.contains("flow west->east") && !out.contains("flow east->west"), "{out}");
}

#[test]
fn json_is_printed_also_for_what_cannot_be_read_or_parsed() {
    let (folder, path) = file("clusters = a\\uzz\n");
    let report = json(&path, 64);
    assert_eq!(report["errors"][0]["line"], 1);
    assert!(report["errors"][0]["remedy"].as_str().is_some_and(|remedy| remedy.contains("backslash")));
    for path in [folder.path().join("none"), folder.path().to_owned()] {
        let report = json(&path, 64);
        assert_eq!((&report["usable"], &report["flows"]), (&false.into(), &serde_json::json!([])));
        let error = &report["errors"][0];
        assert!(
            error["message"].as_str().is_some_and(|told| told.starts_with("cannot be read: ")),
            "{error}"
        );
    }
    fs::write(&path, "{\"a\": \"x\"y\"}").expect("our own file");
    assert_eq!(json(&path, 64)["errors"][0]["line"], 1);
}

#[test]
fn run_says_of_a_connector_s_json_who_takes_it() {
    for (name, content) in
        [("a.json", "{\"connector.class\": \"x\"}"), ("b.properties", "\u{feff}\n {}"), ("c", "[{}]")]
    {
        let (folder, _) = file("");
        let path = folder.path().join(name);
        fs::write(&path, content).expect("our own file");
        let mut command = twinlog();
        command.arg("run").arg(&path);
        let output = ended(command);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(64), "{errors}");
        for piece in ["`run` takes a properties file", "`twinlog check`", "REST interface"] {
            assert!(errors.contains(piece), "{errors}");
        }
        assert_eq!(errors.lines().count(), 2, "{errors}");
    }
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_and_a_reader_that_is_gone_is_none() {
    let (_folder, path) = file(GOOD);
    let path = path.to_str().expect("ASCII");
    for (arguments, code) in [
        (&["check", path][..], 0),
        (&["check", path, "--output", "json"], 0),
        (&["--help"], 0),
        (&["--version"], 0),
        (&["check", "--help"], 0),
    ] {
        let full = File::options().write(true).open("/dev/full").expect("a device that is full");
        let mut command = twinlog();
        command.args(arguments).stdout(full).stderr(Stdio::piped());
        let output = ended(command);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(74), "{arguments:?}: {errors}");
        assert!(errors.starts_with("error: standard output cannot be written: "), "{arguments:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");

        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = twinlog();
        command.args(arguments).stdout(writer).stderr(Stdio::piped());
        let output = ended(command);
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(code), &b""[..]), "{arguments:?}");
    }
}

#[test]
fn text_stays_printable_and_one_line_for_each_fact() {
    let odd = "a\\u001b[2J\\u202e\\u200b\\u2028\\u00a0\\u0085";
    let long = "x".repeat(1_000_000);
    let lines = [
        format!("{odd}key = {odd}"),
        format!("topics = {odd}, {long}"),
        format!("west->east.{odd}.{long} = 1"),
        format!("replication.policy.separator = {odd}{long}"),
        format!("groups = ${{env:{odd}}}"),
        format!("topics.exclude = ({odd}{long}"),
    ];
    let (_folder, path) = file(format!("{GOOD}{}\n", lines.join("\n")));
    let (code, text, _) = check(&path, &[]);
    assert_eq!(code, 64);
    for line in text.lines() {
        assert!(line.chars().count() < 3000, "{}", line.chars().take(200).collect::<String>());
        let is_seen = |c: char| c == ' ' || !c.is_whitespace() && !c.is_control();
        assert!(line.chars().all(|c| is_seen(c) && !"\u{202e}\u{200b}".contains(c)), "{line:.300}");
    }
    assert!(text.contains("\\u{1b}[2J\\u{202e}\\u{200b}\\u{2028}\\u{a0}\\u{85}"), "{text:.3000}");
}

#[test]
fn each_odd_file_gets_a_clear_sentence() {
    let utf16: Vec<u8> = "\u{feff}clusters=a,b".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (content, code, piece) in [
        (&b""[..], 64, "the file holds no settings"),
        (b"\n# a note\n", 64, "the file holds no settings"),
        (&utf16, 64, "written in UTF-16; save it as UTF-8"),
        (b"\x7fELF\x01\0\0", 64, "holds zero bytes"),
        (&GOOD.replace('\n', "\r\n").into_bytes(), 0, "can be used"),
        (&format!("\u{feff}{GOOD}").into_bytes(), 0, "can be used"),
        (b"bootstrap.servers=a:1\ngroup.id=g", 64, "as MirrorMaker 1 takes them"),
        (
            b"bootstrap.servers=a:1\ngroup.id=g\nkey.converter=K\noffset.storage.topic=o",
            64,
            "a Connect worker",
        ),
        (
            b"{\"apiVersion\": \"v1\", \"kind\": \"KafkaConnector\", \"spec\": {}}",
            64,
            "a resource of Kubernetes",
        ),
        (b"{}", 64, "`connector.class`: missing"),
        (b"[]", 64, "write one object"),
    ] {
        let (_folder, path) = file(content);
        let (ended_with, text, errors) = check(&path, &[]);
        assert!(
            ended_with == code && text.contains(piece) && errors.is_empty(),
            "{piece}: {ended_with} {text}{errors}"
        );
    }
    let (ended_with, text, _) = check(Path::new("/dev/null"), &[]);
    assert!(ended_with == 64 && text.contains("holds no settings"), "{text}");
    for (path, piece) in [("/", "Is a directory"), ("/dev/zero", "larger than")] {
        let (ended_with, _, errors) = check(Path::new(path), &[]);
        assert!(ended_with == 64 && errors.contains(piece), "{errors}");
    }
}
