//! Resolves `${provider:path:key}` in values: from properties files, from folders with a file for each secret, from
//! environment variables.
//!
//! Not recursive: what a provider gives is taken as it is. Where Java leaves a reference that it cannot resolve in the
//! text, twinlog refuses the file: a literal `${…}` is never the password.
//!
//! # References
//! `ConfigTransformer`, `FileConfigProvider`, `DirectoryConfigProvider`, `EnvVarConfigProvider` (KIP-297, KIP-887).

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use super::error::Fault;
use super::properties::{Entry, Properties};
use super::resolve::split_list;
use crate::policy::PatternList;

/// Bytes of a file with secrets; far above any real one.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Package of Kafka's own providers.
const PACKAGE: &str = "org.apache.kafka.common.config.provider.";

/// Where providers look. [`Surroundings::process`] is the real one.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Content of a file.
    pub file: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// Value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Surroundings<'_> {
    /// The file system and environment of this process.
    #[must_use]
    pub fn process() -> Self {
        Self { file: &read_file, variable: &|name| env::var(name).ok() }
    }
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Surroundings")
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe may never end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// One of Kafka's providers with its parameters.
#[derive(Debug)]
enum Provider {
    File { allowed: Vec<PathBuf> },
    Directory { allowed: Vec<PathBuf> },
    Environment { allowed: Option<PatternList> },
}

/// A reference inside a value, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reference<'v> {
    provider: &'v str,
    path: &'v str,
    key: &'v str,
}

/// Values that are not what was meant, because a `${…}` still stands in them. Whatever else may be said of them would
/// mislead.
#[derive(Debug, Default)]
pub(super) struct Spoilt {
    keys: BTreeSet<String>,
    faults: Vec<Fault>,
}

impl Spoilt {
    /// These faults, and of `others` those about other keys.
    pub(super) fn followed_by(self, others: Vec<Fault>) -> Vec<Fault> {
        let is_of_another = |fault: &Fault| !fault.key.as_ref().is_some_and(|key| self.keys.contains(key));
        self.faults.into_iter().chain(others.into_iter().filter(is_of_another)).collect()
    }
}

/// Gives the file with all references resolved, and what could not be.
pub(super) fn resolve(properties: &Properties, surroundings: Surroundings<'_>) -> (Properties, Spoilt) {
    let mut spoilt = Spoilt::default();
    let providers = providers(properties, &mut spoilt.faults);
    let resolved = properties.map(|entry| match resolve_value(entry, &providers, surroundings) {
        Ok(value) => value,
        Err(fault) => {
            spoilt.keys.insert(entry.key.clone());
            spoilt.faults.push(fault);
            None
        }
    });
    let left_in: Vec<&Entry> = resolved.effective().filter(|entry| is_left_in(entry)).collect();
    spoilt.faults.extend(fault_of_left_in(&left_in));
    spoilt.keys.extend(left_in.into_iter().map(|entry| entry.key.clone()));
    (resolved, spoilt)
}

fn providers<'p>(properties: &'p Properties, faults: &mut Vec<Fault>) -> BTreeMap<&'p str, Provider> {
    let names = properties.find("config.providers").map_or("", |entry| entry.value.as_str());
    let mut providers = BTreeMap::new();
    for name in split_list(names) {
        match provider(properties, name) {
            Ok(provider) => drop(providers.insert(name, provider)),
            Err(fault) => faults.push(fault),
        }
    }
    providers
}

fn provider(properties: &Properties, name: &str) -> Result<Provider, Fault> {
    let class_key = format!("config.providers.{name}.class");
    let Some(class) = properties.find(&class_key) else {
        return Err(Fault::missing(class_key, "missing, so this provider is none")
            .remedy(format!("write `{PACKAGE}FileConfigProvider`, or another of Kafka's own")));
    };
    let parameter = |key: &str| properties.find(&format!("config.providers.{name}.param.{key}"));
    let allowed = || {
        let paths = parameter("allowed.paths").map_or("", |entry| entry.value.as_str());
        split_list(paths).map(PathBuf::from).collect()
    };
    let value = class.value.trim();
    match value.strip_prefix(PACKAGE).unwrap_or(value) {
        "FileConfigProvider" => Ok(Provider::File { allowed: allowed() }),
        "DirectoryConfigProvider" => Ok(Provider::Directory { allowed: allowed() }),
        "EnvVarConfigProvider" => match parameter("allowlist.pattern") {
            None => Ok(Provider::Environment { allowed: None }),
            Some(entry) => match PatternList::compile(&[entry.value.trim()]) {
                Ok(list) => Ok(Provider::Environment { allowed: Some(list) }),
                Err(error) => Err(Fault::of(entry, error.to_string()).remedy("mend the pattern")),
            },
        },
        _ => {
            let remedy = format!(
                "use FileConfigProvider, DirectoryConfigProvider or EnvVarConfigProvider of {PACKAGE}*"
            );
            Err(Fault::of(class, "this class cannot be run here").remedy(remedy))
        }
    }
}

/// The value with its references resolved; none when there are none to resolve.
fn resolve_value(
    entry: &Entry,
    providers: &BTreeMap<&str, Provider>,
    surroundings: Surroundings<'_>,
) -> Result<Option<String>, Fault> {
    // What defines the providers is read as it stands.
    if entry.key == "config.providers" || entry.key.starts_with("config.providers.") {
        return Ok(None);
    }
    let mut resolved = String::new();
    let mut rest = entry.value.as_str();
    while let Some((before, reference, after)) = next_reference(rest) {
        resolved.push_str(before);
        let Some(provider) = providers.get(reference.provider) else {
            return Err(unknown_provider(entry, reference, providers));
        };
        let found = provider.look_up(reference, surroundings);
        resolved
            .push_str(&found.map_err(|(reason, remedy)| Fault::of_reference(entry, reason).remedy(remedy))?);
        rest = after;
    }
    resolved.push_str(rest);
    Ok((rest.len() < entry.value.len()).then_some(resolved))
}

fn unknown_provider(entry: &Entry, reference: Reference<'_>, known: &BTreeMap<&str, Provider>) -> Fault {
    let names: Vec<&str> = known.keys().copied().collect();
    let known = if names.is_empty() { "none is configured".to_owned() } else { names.join(", ") };
    Fault::of(entry, format!("no config provider is named `{}` ({known})", reference.provider))
        .remedy("name it in `config.providers` with its class, or write the value itself")
}

/// What stands before the next `${provider:path:key}` or `${provider:key}`, the reference, and what stands after it.
fn next_reference(text: &str) -> Option<(&str, Reference<'_>, &str)> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find("${")?;
        let inside = &text[start + 2..];
        let inside = &inside[..inside.find('}')?];
        let Some((provider, rest)) = inside.split_once(':') else {
            from = start + 2;
            continue;
        };
        let (path, key) = rest.split_once(':').unwrap_or(("", rest));
        let after = &text[start + 2 + inside.len() + 1..];
        return Some((&text[..start], Reference { provider, path, key }, after));
    }
}

/// One fault for all `${NAME}` that nobody filled in: shell variables of a template, most of the time.
fn fault_of_left_in(entries: &[&Entry]) -> Option<Fault> {
    let (first, more) = entries.split_first()?;
    let names: Vec<String> =
        entries.iter().map(|entry| format!("`{}` (line {})", entry.key, entry.line)).collect();
    let reason = match more {
        [] => "a placeholder was left in".to_owned(),
        _ => format!("placeholders were left in: {}", names.join(", ")),
    };
    Some(Fault::of(first, reason).remedy("fill in the values"))
}

/// Whether a `${…}` without a provider stands in the text as typed: a value that a provider gave is taken as it is.
fn is_left_in(entry: &Entry) -> bool {
    let typed = entry.reference.as_ref().unwrap_or(&entry.value).as_str();
    let inside = typed.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    inside.into_iter().any(|(inside, _)| !inside.contains(':'))
}

/// Why a reference gives nothing, and what to do. Never with a secret in it.
type Trouble = (String, String);

impl Provider {
    fn look_up(&self, reference: Reference<'_>, surroundings: Surroundings<'_>) -> Result<String, Trouble> {
        let Reference { path, key, .. } = reference;
        match self {
            Self::File { allowed } => {
                let bytes = read(Path::new(path), allowed, surroundings)?;
                let file = Properties::parse(&bytes).map_err(|_| {
                    (format!("`{path}` is not a properties file"), "mend its `\\u` escapes".to_owned())
                })?;
                match file.find(key) {
                    Some(found) => Ok(found.value.as_str().to_owned()),
                    None => Err((format!("`{path}` holds no key `{key}`"), "add it there".to_owned())),
                }
            }
            Self::Directory { allowed } => {
                if Path::new(key).components().any(|part| !matches!(part, Component::Normal(_))) {
                    return Err((
                        format!("`{key}` is not the name of a file"),
                        "name a file of the folder".to_owned(),
                    ));
                }
                let bytes = read(&Path::new(path).join(key), allowed, surroundings)?;
                String::from_utf8(bytes).map_err(|_| {
                    (format!("`{path}/{key}` is not text in UTF-8"), "write it in UTF-8".to_owned())
                })
            }
            Self::Environment { allowed } => {
                let passes = allowed.as_ref().is_none_or(|list| list.matches(key).unwrap_or(false));
                if !passes {
                    let reason = format!("variable `{key}` is outside the provider's `allowlist.pattern`");
                    return Err((reason, "widen the pattern, or take another variable".to_owned()));
                }
                let missing = || (format!("environment variable `{key}` is not set"), "set it".to_owned());
                (surroundings.variable)(key).ok_or_else(missing)
            }
        }
    }
}

fn read(path: &Path, allowed: &[PathBuf], surroundings: Surroundings<'_>) -> Result<Vec<u8>, Trouble> {
    let shown = path.display();
    let climbs = path.components().any(|part| part == Component::ParentDir);
    if !allowed.is_empty() && (climbs || !allowed.iter().any(|allowed| path.starts_with(allowed))) {
        let reason = format!("`{shown}` is outside the provider's `allowed.paths`");
        return Err((reason, "widen them, or move the file".to_owned()));
    }
    (surroundings.file)(path).map_err(|error| {
        (format!("`{shown}` cannot be read: {error}"), "make the file readable, or mend its path".to_owned())
    })
}

#[cfg(test)]
mod tests {
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
        let faults = spoilt.followed_by(Vec::new());
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
            [
                "line 1: `topics = ${TOPICS}`: placeholders were left in: `topics` (line 1), `factor` (line 2); \
             fill in the values"
            ]
        );
    }

    #[test]
    fn providers_of_ones_own_and_without_class_are_refused() {
        let faults =
            resolved("config.providers=a,b\nconfig.providers.a.class=com.example.Vault\n").unwrap_err();
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(
            faults[0].contains("cannot be run here")
                && faults[1].contains("`config.providers.b.class`: missing")
        );
    }
}
