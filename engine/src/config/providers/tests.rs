//! Tests: references to config providers, what they give and what is said of those that give nothing.

use std::cell::Cell;
use std::io;
use std::path::Path;

use super::*;

const PROVIDERS: &str = "config.providers=file,dir,env\n\
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n\
    config.providers.dir.class=DirectoryConfigProvider\n\
    config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n";

fn file(path: &Path) -> io::Result<Vec<u8>> {
    match path.to_str() {
        Some("/s.properties") => Ok(b"pw=hunter2\nempty=\nself=${env:HOST}\n".to_vec()),
        Some("/secrets/key") => Ok(b"k1".to_vec()),
        Some("/secrets/bytes") => Ok(vec![0xff]),
        Some("/bad") => Ok(b"a=\\uzz".to_vec()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

fn variable(name: &str) -> Option<String> {
    (name == "HOST").then(|| "h:1".to_owned())
}

fn resolved(text: &str) -> Result<Vec<String>, Vec<String>> {
    let properties = Properties::parse(text.as_bytes()).unwrap();
    let (resolved, spoilt) = resolve(&properties, Surroundings { file: &file, variable: &variable });
    let (faults, _) = spoilt.judge(|_| true);
    if !faults.is_empty() {
        return Err(faults.iter().map(ToString::to_string).collect());
    }
    let own = resolved.effective().filter(|entry| !entry.key.starts_with("config.providers"));
    Ok(own.map(|entry| entry.value.as_str().to_owned()).collect())
}

#[test]
fn references_are_resolved_anywhere_in_a_value() {
    let text = "a=${file:/s.properties:pw}\nb=user=\"x\" password=\"${file:/s.properties:pw}\";\n\
                c=${env:HOST},${env:HOST}\nd=${dir:/secrets:key}\ne=[${file:/s.properties:empty}]\nf=plain\n";
    let values = resolved(&format!("{text}{PROVIDERS}")).unwrap();
    assert_eq!(values, ["hunter2", "user=\"x\" password=\"hunter2\";", "h:1,h:1", "k1", "[]", "plain"]);
}

#[test]
fn what_a_provider_gives_is_not_resolved_again_and_what_is_none_stays() {
    let text = "a=${file:/s.properties:self}\nb=$TOPICS $x ${\n";
    let values = resolved(&format!("{text}{PROVIDERS}")).unwrap();
    assert_eq!(values, ["${env:HOST}", "$TOPICS $x ${"]);
}

#[test]
fn an_unknown_provider_is_named_even_in_a_login() {
    for (provider, shown) in [("file", "file"), ("hunter2", "********")] {
        let text =
            format!("a.sasl.jaas.config = x username=\"${{{provider}:/x:u}}\" password=\"hunter2\";\n");
        let faults = resolved(&text).unwrap_err();
        assert!(faults[0].contains(&format!("no config provider is named `{shown}` (none")), "{faults:?}");
    }
}

#[test]
fn each_trouble_is_a_sentence_with_key_and_line_and_without_the_secret() {
    for (value, sentence) in [
        ("${file:/none:x}", "`/none` cannot be read"),
        ("${file:/s.properties:x}", "`/s.properties` holds no key `x`"),
        ("${file:/bad:x}", "`/bad` is not a properties file"),
        ("${dir:/secrets:none}", "`/secrets/none` cannot be read"),
        ("${dir:/secrets:../key}", "is not the name of a file"),
        ("${dir:/secrets:/key}", "is not the name of a file"),
        ("${dir:/secrets:bytes}", "is not text in UTF-8"),
        ("${env:NONE}", "environment variable `NONE` is not set"),
        ("${vault:/x:y}", "no config provider is named `vault` (dir, env, file)"),
    ] {
        let text = format!("x.topics = hunter2{value}\n{PROVIDERS}");
        let faults = resolved(&text).unwrap_err();
        assert_eq!(faults.len(), 1, "{value}: {faults:?}");
        assert!(faults[0].starts_with("line 1: `x.topics = "), "{faults:?}");
        assert!(faults[0].contains(sentence), "{value}: {faults:?}");
    }
    let faults = resolved("a=${file:/x:y}\n").unwrap_err();
    assert!(faults[0].contains("none is configured"), "{faults:?}");
}

#[test]
fn parameters_of_providers_narrow_what_they_give() {
    let text =
        format!("a=${{env:HOST}}\n{PROVIDERS}config.providers.env.param.allowlist.pattern=MIRROR_.*\n");
    assert!(resolved(&text).unwrap_err()[0].contains("outside the provider's `allowlist.pattern`"));
    for (allowed, passes) in [("/secrets", true), ("/x,/secrets/", true), ("/secret", false)] {
        let text = format!(
            "a=${{dir:/secrets:key}}\n{PROVIDERS}config.providers.dir.param.allowed.paths={allowed}\n"
        );
        assert_eq!(resolved(&text).is_ok(), passes, "{allowed}");
    }
}

#[test]
fn placeholders_left_in_are_one_fault() {
    let text = "topics=${TOPICS}\nfactor=${FACTOR}\nuser=$ConnectionString ${\n";
    let beside = resolved(&format!("a=${{env:HOST}}-${{POD}}\n{PROVIDERS}")).unwrap_err();
    assert!(beside[0].contains("a placeholder was left in"), "{beside:?}");
    let faults = resolved(text).unwrap_err();
    assert_eq!(
        faults,
        ["line 1: `topics = ${TOPICS}`: placeholders were left in: `topics` (line 1), `factor` (line 2); \
         fill in the values"]
    );
}

#[test]
fn providers_of_ones_own_and_without_class_are_refused() {
    let faults = resolved("config.providers=a,b\nconfig.providers.a.class=com.example.Vault\n").unwrap_err();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(
        faults[0].contains("cannot be run here") && faults[1].contains("`config.providers.b.class`: missing")
    );
}

#[test]
fn a_reference_without_all_its_parts_says_which() {
    for (value, sentence) in [
        (
            "${file:x}",
            "`${file:x}` does not name a file and a key in it; write `${file:/folder/file.properties:key}`",
        ),
        ("${file:/s.properties:}", "`${file:/s.properties:}` does not name a file and a key in it"),
        ("${file::pw}", "does not name a file and a key in it"),
        (
            "${dir:/secrets}",
            "`${dir:/secrets}` does not name a folder and a file in it; write `${dir:/folder:file}`",
        ),
        ("${env:HOST:x}", "`${env:HOST:x}` does not name a variable and nothing else"),
        ("${env:}", "write `${env:NAME}`"),
    ] {
        let faults = resolved(&format!("a = {value}\n{PROVIDERS}")).unwrap_err();
        assert!(faults.len() == 1 && faults[0].contains(sentence), "{value}: {faults:?}");
    }
}

#[test]
fn all_faults_come_at_once_whatever_else_is_wrong() {
    let text = "config.providers=bad,env\nconfig.providers.bad.class=com.example.Vault\n\
                config.providers.env.class=EnvVarConfigProvider\n\
                a=${bad:x:y} ${env:NONE} ${env:HOST} ${vault:z} ${env:NONE}\nb=${bad:x:y}\nc=${env:NO2}\nd=${LEFT}\n";
    let faults = resolved(text).unwrap_err();
    let pieces = ["line 2: ", "`NONE` is not set", "named `vault`", "line 6: `c = ", "line 7: `d = "];
    assert_eq!(faults.len(), pieces.len(), "{faults:#?}");
    for (fault, piece) in faults.iter().zip(pieces) {
        assert!(fault.contains(piece), "{piece}: {fault}");
    }
}

#[test]
fn a_repeated_key_is_resolved_once_where_it_counts() {
    assert_eq!(resolved(&format!("a=${{env:NONE}}\na=x\n{PROVIDERS}")).unwrap(), ["x"]);
}

#[test]
fn each_file_is_read_once() {
    let count = Cell::new(0);
    let counting = |path: &Path| {
        count.set(count.get() + 1);
        file(path)
    };
    let reference = "${file:/s.properties:pw}${dir:/secrets:key}${file:/none:x}";
    let text = format!("a={reference}{reference}\nb={reference}\n{PROVIDERS}");
    let properties = Properties::parse(text.as_bytes()).unwrap();
    let (_, spoilt) = resolve(&properties, Surroundings { file: &counting, variable: &variable });
    assert_eq!((count.get(), spoilt.judge(|_| true).0.len()), (3, 2));
}

#[test]
fn a_short_file_cannot_ask_for_everything() {
    let long = |_: &Path| Ok(format!("key={}", "x".repeat(1 << 20)).into_bytes());
    let judged = |text: &str| {
        let properties = Properties::parse(format!("{PROVIDERS}{text}").as_bytes()).unwrap();
        let (_, spoilt) = resolve(&properties, Surroundings { file: &long, variable: &variable });
        spoilt.judge(|_| true).0.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let faults = judged(&format!("a={}\n", "${file:/f:key}".repeat(100_000)));
    assert!(faults.len() == 1 && faults[0].contains("give more than 16777216 bytes in all"), "{faults:?}");
    let line =
        |number: usize| format!("a{number}=${{file:/f{number}:key}}\nb{number}=${{dir:/:f{number}}}\n");
    let faults = judged(&(0..40).map(line).collect::<String>());
    assert!(!faults.is_empty() && faults.iter().all(|fault| fault.contains(" bytes in all")), "{faults:?}");
    // Braces that close nothing are looked at once.
    let open = format!("a={}}}\n", "${".repeat(1_000_000));
    assert_eq!(judged(&open).len(), 1);
}
