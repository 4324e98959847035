//! Resolves `${provider:path:key}` in values: from properties files, from folders with a file for each secret, from
//! environment variables.
//!
//! Not recursive: what a provider gives is taken as it is. Where Java leaves a reference that it cannot resolve in the
//! text, twinlog refuses the file: a literal `${…}` is never the password.
//!
//! MM2 resolves every value of the file, whether anybody reads its key or not: where a provider's file cannot be read it
//! does not start, everything else it leaves in the text. So of a key that nothing looks at, all but an unreadable file
//! does MM2 no harm; and since twinlog never uses that value, it takes even that for a warning. A key of which another line or
//! a closer key counts is such a key; of two lines of one key Java's reader keeps only the last, so the other is not resolved
//! at all.
//!
//! # References
//! `AbstractConfig#resolveConfigVariables`, `ConfigTransformer`, `FileConfigProvider`, `DirectoryConfigProvider`,
//! `EnvVarConfigProvider` (KIP-297, KIP-421, KIP-887).

mod left_in;
mod lookup;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use self::left_in::is_left_in;
pub use self::lookup::Surroundings;
use self::lookup::{Lookups, Provider, Trouble};
pub(super) use self::settings::unread;
use super::error::Fault;
use super::form::Form;
use super::pattern_advice;
use super::properties::{Entry, Properties};
use super::resolve::split_list;
use super::warning::Warning;
use crate::policy::PatternList;

/// Before the name that somebody gave to a config provider.
pub(super) const PREFIX: &str = "config.providers.";

/// Package of Kafka's own providers.
const PACKAGE: &str = "org.apache.kafka.common.config.provider.";

/// Different faults that are told of one value: each shows the whole of it.
const TROUBLES_MAX: usize = 10;

/// What people call Kafka's own providers: no secret is called so.
const USUAL_NAMES: [&str; 6] = ["file", "dir", "directory", "env", "environment", "secrets"];

const NO_EFFECT: &str = "which changes nothing: this key has no effect";

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
    form: Form,
    keys: BTreeSet<String>,
    /// Of the providers themselves.
    of_providers: Vec<Fault>,
    of_values: Vec<Fault>,
    left_in: Vec<Entry>,
}

impl Spoilt {
    /// The keys whose values are not what was meant.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    /// What keeps the configuration from being used, and what does not because its key has no effect.
    pub(super) fn judge(&self, has_effect: impl Fn(&str) -> bool) -> (Vec<Fault>, Vec<Warning>) {
        let has = |fault: &Fault| fault.key.as_deref().is_none_or(&has_effect);
        let (of_values, harmless): (Vec<_>, Vec<_>) = self.of_values.iter().cloned().partition(has);
        let (left_in, harmless_left_in): (Vec<_>, Vec<_>) =
            self.left_in.iter().partition(|entry| has_effect(&entry.key));
        let faults = self.of_providers.iter().cloned().chain(of_values);
        let faults = faults.chain(fault_of_left_in(&left_in, self.form)).collect();
        let harmless_left_in =
            harmless_left_in.into_iter().filter_map(|entry| fault_of_left_in(&[entry], self.form));
        let harmless = harmless.into_iter().chain(harmless_left_in);
        (faults, harmless.map(|fault| Warning::of_harmless(fault, NO_EFFECT)).collect())
    }

    /// Whether a fault is about a key that [`Spoilt::judge`] speaks of already.
    pub(super) fn hides(&self, fault: &Fault) -> bool {
        fault.key.as_ref().is_some_and(|key| self.keys.contains(key))
    }
}

/// Gives the file with all references resolved, and what could not be.
pub(super) fn resolve(properties: &Properties, surroundings: Surroundings<'_>) -> (Properties, Spoilt) {
    let mut spoilt = Spoilt { form: properties.form(), ..Spoilt::default() };
    let providers = providers(properties, &mut spoilt.of_providers);
    let mut lookups = Lookups::new(surroundings);
    let resolved =
        properties.map(|entry| match resolve_value(entry, &providers, &mut lookups, spoilt.form) {
            Ok(value) => value,
            Err(faults) => {
                spoilt.keys.insert(entry.key.clone());
                spoilt.of_values.extend(faults);
                None
            }
        });
    spoilt.left_in = resolved.effective().filter(|entry| is_left_in(entry)).cloned().collect();
    spoilt.keys.extend(spoilt.left_in.iter().map(|entry| entry.key.clone()));
    (resolved, spoilt)
}

/// The providers by their names; none for one that has a fault of its own.
type Providers<'p> = BTreeMap<&'p str, Option<Provider>>;

fn providers<'p>(properties: &'p Properties, faults: &mut Vec<Fault>) -> Providers<'p> {
    let names = properties.find("config.providers").map_or("", |entry| entry.value.as_str());
    let mut providers = BTreeMap::new();
    for name in split_list(names) {
        let provider = provider(properties, name).map_err(|fault| faults.push(fault));
        providers.insert(name, provider.ok());
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
                Err(error) => {
                    let remedy = pattern_advice::of_one(&entry.value, properties.form());
                    Err(Fault::of(entry, error.to_string()).remedy(remedy))
                }
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

/// The value with its references resolved; none when there are none to resolve. All faults of a value at once; none at all
/// where it only refers to providers that have faults of their own.
fn resolve_value(
    entry: &Entry,
    providers: &Providers<'_>,
    lookups: &mut Lookups<'_>,
    form: Form,
) -> Result<Option<String>, Vec<Fault>> {
    // What defines the providers is read as it stands.
    if entry.key == "config.providers" || entry.key.starts_with(PREFIX) {
        return Ok(None);
    }
    let mut resolved = String::new();
    let mut troubles: Vec<Trouble> = Vec::new();
    let mut is_spoilt = false;
    let mut rest = entry.value.as_str();
    while let Some((before, reference, after)) = next_reference(rest) {
        rest = after;
        let trouble = match providers.get(reference.provider) {
            Some(Some(provider)) => match lookups.look_up(provider, reference) {
                Ok(given) => {
                    resolved.push_str(before);
                    resolved.push_str(&given);
                    continue;
                }
                Err(trouble) => Some(trouble),
            },
            Some(None) => None,
            None => Some(unknown_provider(entry, reference, providers, form)),
        };
        is_spoilt = true;
        troubles.extend(trouble.filter(|trouble| !troubles.contains(trouble)));
        if troubles.len() == TROUBLES_MAX {
            break;
        }
    }
    if is_spoilt {
        let fault = |(reason, remedy): Trouble| Fault::of_reference(entry, reason).remedy(remedy);
        return Err(troubles.into_iter().map(fault).collect());
    }
    resolved.push_str(rest);
    Ok((rest.len() < entry.value.len()).then_some(resolved))
}

fn unknown_provider(entry: &Entry, reference: Reference<'_>, known: &Providers<'_>, form: Form) -> Trouble {
    let names: Vec<&str> = known.keys().copied().collect();
    let known = if names.is_empty() { "none is configured".to_owned() } else { names.join(", ") };
    let remedy = match form {
        Form::Properties => "name it in `config.providers` with its class, or write the value itself",
        Form::Connector => {
            "a Connect worker's own providers are not known here: name it in `config.providers` of this body with its class, \
             or write the value itself"
        }
    };
    // What only looks like a reference may be a part of a secret.
    let name = match reference.provider {
        usual if USUAL_NAMES.contains(&usual) => format!("`{usual}`"),
        other => entry.without_secrets(&format!("`{other}`")),
    };
    (format!("no config provider is named {name} ({known})"), remedy.to_owned())
}

/// What stands before the next `${provider:path:key}` or `${provider:key}`, the reference, and what stands after it.
fn next_reference(text: &str) -> Option<(&str, Reference<'_>, &str)> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find("${")?;
        let inside = &text[start + 2..];
        let inside = &inside[..inside.find('}')?];
        let end = start + 2 + inside.len() + 1;
        let Some((provider, rest)) = inside.split_once(':') else {
            // Nothing that begins further in has a colon either.
            from = end;
            continue;
        };
        if left_in::is_of_a_shell(rest) {
            from = end;
            continue;
        }
        let (path, key) = rest.split_once(':').unwrap_or(("", rest));
        return Some((&text[..start], Reference { provider, path, key }, &text[end..]));
    }
}

/// One fault for all placeholders that nobody filled in.
fn fault_of_left_in(entries: &[&Entry], form: Form) -> Option<Fault> {
    let (first, more) = entries.split_first()?;
    let reason = match more {
        [] => "a placeholder was left in".to_owned(),
        _ => {
            let keys = form.listed(entries.iter().map(|entry| (entry.shown_key(), entry.line)));
            format!("placeholders were left in: {keys}")
        }
    };
    Some(Fault::of(first, reason).remedy("fill in the values"))
}

#[cfg(test)]
mod tests;
