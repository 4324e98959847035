//! The program from outside: what it prints and the code it ends with, as far as no broker is needed.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Output, Stdio};

use tempfile::NamedTempFile;

const GOOD: &str = "clusters = west, east\nwest.bootstrap.servers = 127.0.0.1:1\neast.bootstrap.servers = 127.0.0.1:1\n\
                    west->east.enabled = true\n";

fn twinlog(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_twinlog"))
        .args(arguments)
        .env_remove("RUST_LOG")
        .output()
        .expect("the program was built beside its tests")
}

fn file(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a folder for temporary files");
    std::fs::write(file.path(), text).expect("a file of our own can be written");
    file
}

/// Runs a file that is refused and gives what was written to standard error.
fn refused(text: &str, more: &[&str]) -> String {
    let file = file(text);
    let path = file.path().to_str().expect("names of temporary files are ASCII");
    let output = twinlog(&[&["run", path], more].concat());
    let errors = String::from_utf8(output.stderr).expect("messages are UTF-8");
    assert_eq!(output.status.code(), Some(64), "{errors}");
    assert_eq!(output.stdout, b"");
    errors
}

#[test]
fn help_and_version_go_to_standard_output() {
    for (arguments, expected) in [
        (&["--help"][..], "Exit codes:"),
        (&["run", "--help"], "--until-caught-up"),
        (&["--version"], concat!("twinlog ", env!("CARGO_PKG_VERSION"))),
    ] {
        let output = twinlog(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(text.contains(expected), "{arguments:?}: {text}");
        assert_eq!(output.stderr, b"", "{arguments:?}");
    }
}

#[test]
fn a_command_line_that_means_nothing_ends_with_64() {
    for arguments in [&[][..], &["walk"], &["run"], &["run", "f", "--wait", "soon"], &["run", "f", "g"]] {
        let output = twinlog(arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_log_level_that_is_none_ends_with_64() {
    let errors = refused(GOOD, &["--log-level", "twinlog=loud"]);
    assert!(errors.starts_with("error: --log-level: `twinlog=loud` is no log level"), "{errors}");
}

#[test]
fn a_log_that_cannot_be_written_changes_nothing() {
    for (text, more, code) in [
        ("", &[][..], 64),
        ("", &["--log-format", "json"], 64),
        (GOOD, &["--until-caught-up", "--wait", "1"], 69),
    ] {
        let file = file(text);
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a device that is full");
        let mut command = Command::new(env!("CARGO_BIN_EXE_twinlog"));
        command.arg("run").arg(file.path()).args(more).env_remove("RUST_LOG").stderr(full);
        assert_eq!(command.status().unwrap().code(), Some(code), "{text:?} {more:?}");
    }
}

#[test]
fn an_empty_log_level_is_none_at_all() {
    let file = file(GOOD);
    let mut command = Command::new(env!("CARGO_BIN_EXE_twinlog"));
    command.arg("run").arg(file.path()).args(["--until-caught-up", "--wait", "1"]).env("RUST_LOG", "");
    let errors = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(errors.contains("was not reached within 1 s"), "{errors}");
}

#[test]
fn each_cluster_that_was_not_reached_is_named_with_its_flow() {
    let file = file(GOOD);
    let path = file.path().to_str().expect("names of temporary files are ASCII");
    let output = twinlog(&["run", path, "--wait", "1", "--log-format", "json", "--log-level", "error"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(69), "{errors}");
    let lines: Vec<serde_json::Value> =
        errors.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert_eq!(lines.len(), 2, "{errors}");
    for (line, cluster) in lines.iter().zip(["west", "east"]) {
        assert_eq!((&line["flow"], &line["cluster"]), (&"west->east".into(), &cluster.into()), "{line}");
        let told = line["message"].as_str().expect("a sentence");
        assert!(told.starts_with(&format!("cluster {cluster} was not reached within 1 s: ")), "{told}");
    }
}

#[test]
fn few_file_descriptors_are_told() {
    let file = file(GOOD);
    let script = format!(
        "ulimit -n 40; exec {} run {} --until-caught-up --wait 1",
        env!("CARGO_BIN_EXE_twinlog"),
        file.path().display()
    );
    let output = Command::new("sh").args(["-c", &script]).env_remove("RUST_LOG").output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(69), "{errors}");
    assert!(errors.contains("only 40 file descriptors"), "{errors}");
}

#[test]
fn flows_that_still_connect_are_stopped_by_sigterm() {
    let file = file(&format!("{GOOD}east->west.enabled = true\n"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_twinlog"));
    command.arg("run").arg(file.path()).env_remove("RUST_LOG").stderr(Stdio::piped());
    let mut twinlog = command.spawn().unwrap();
    let mut log = BufReader::new(twinlog.stderr.take().expect("it is piped"));
    let mut lines = String::new();
    while !lines.contains("cluster not reached") {
        assert!(log.read_line(&mut lines).unwrap() > 0, "it ended by itself: {lines}");
    }
    let sent = Command::new("kill").args(["-TERM", &twinlog.id().to_string()]).status().unwrap();
    assert!(sent.success());
    log.read_to_string(&mut lines).unwrap();
    assert_eq!(twinlog.wait().unwrap().code(), Some(0), "{lines}");
    assert!(!lines.contains("were ended"), "they came to rest by themselves: {lines}");
}

#[test]
fn a_missing_file_is_one_sentence() {
    let output = twinlog(&["run", "no/such.properties"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(
        errors.starts_with("error: no/such.properties cannot be used\n  cannot be read: No such file"),
        "{errors}"
    );
}

#[test]
fn every_fault_of_a_file_is_listed_in_its_order() {
    let errors = refused(
        "clusters = west, east\nwest.bootstrap.servers = localhost\nwest->east.enabled = true\ntopics = (\n\
         sync.group.offsets.enabled = true\n",
        &[],
    );
    let lines: Vec<&str> = errors.lines().skip(1).map(str::trim).collect();
    assert_eq!(lines.len(), 4, "{errors}");
    for (line, start) in lines.iter().zip([
        "`east.bootstrap.servers`: missing",
        "line 2: `west.bootstrap.servers = localhost`: ",
        "line 4: `topics = (`: ",
        "line 5: `sync.group.offsets.enabled = true`: syncing group offsets is not built yet; ",
    ]) {
        assert!(line.starts_with(start), "{line} / {start}");
    }
}

#[test]
fn what_is_wrong_only_with_flows_that_are_left_out_is_logged_and_the_others_run() {
    let text = format!(
        "{GOOD}east->west.enabled = true\neast->west.topics = (\neast->west.groups = ${{env:NONE}}\n"
    );
    let errors = refused(&text, &[]);
    assert!(errors.contains("line 6: `east->west.topics = (`"), "{errors}");
    let file = file(&text);
    let path = file.path().to_str().expect("names of temporary files are ASCII");
    let output = twinlog(&["run", path, "--clusters", "east", "--until-caught-up", "--wait", "1"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(69), "{errors}");
    assert!(errors.contains("(which changes nothing here: `--clusters` leaves it out)"), "{errors}");
}

#[test]
fn clusters_that_no_flow_goes_into_are_refused() {
    let good = &GOOD.replace("east.bootstrap.servers = 127.0.0.1:1", "east.bootstrap.servers = 127.0.0.1:2");
    let errors = refused(good, &["--clusters", "north,east"]);
    assert!(
        errors.ends_with(
            "\n  `--clusters`: no cluster is named `north`; use the names in `clusters`: west, east\n"
        ),
        "{errors}"
    );
    let errors = refused(good, &["--clusters", "west"]);
    assert!(
        errors.contains("no enabled flow goes into west; name a target of an enabled flow: `west->east`")
    );
}

#[test]
fn an_empty_file_is_one_sentence() {
    let errors = refused("", &[]);
    assert!(errors.ends_with(
        "cannot be used\n  the file holds no settings; write at least `clusters = a, b` and a flow\n"
    ));
}

#[test]
fn secrets_are_never_printed() {
    let text = format!(
        "{GOOD}west.security.protocol=SASL_SSL\nwest.sasl.jaas.config=X required password=\"hunter2\";\n\
         east.ssl.keystore.password=hunter2\neast.ssl.key.pasword=hunter2\n"
    );
    for more in [&["--log-level", "trace"][..], &["--log-level", "trace", "--log-format", "json"]] {
        let errors = refused(&text, more);
        assert!(errors.contains("TLS and SASL are not built yet"), "{errors}");
        assert!(!errors.contains("hunter2"), "{errors}");
    }
}

#[test]
fn json_faults_are_one_object_a_line() {
    let errors = refused("clusters = a, b\nthrottle = 1\na->b.enabled = true\n", &["--log-format", "json"]);
    assert_eq!(errors.lines().count(), 3, "{errors}");
    for line in errors.lines() {
        assert!(line.starts_with("{\"timestamp\":\""), "{line}");
        assert!(line.contains("\"level\":\"ERROR\"") && line.ends_with('}'), "{line}");
    }
    assert!(errors.contains("line 2: `throttle = 1`: 1 bytes are less than 1024"), "{errors}");
}
