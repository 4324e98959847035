//! Settings of config providers that nobody reads: a misspelt name, a parameter of another provider, a provider that is not
//! named.

use super::{PACKAGE, PREFIX, Properties, split_list};
use crate::config::keys::alike;
use crate::config::properties::Entry;
use crate::config::unknown;
use crate::config::warning::Warning;

const PATHS: &str = "param.allowed.paths";
const PATTERN: &str = "param.allowlist.pattern";

/// What to tell of `config.providers.…` where nobody reads it; none where it is read, and for other keys.
pub(in crate::config) fn unread(properties: &Properties, entry: &Entry) -> Option<Warning> {
    let rest = entry.key.strip_prefix(PREFIX)?;
    let names = properties.find("config.providers").map_or("", |entry| entry.value.as_str());
    let names: Vec<&str> = split_list(names).collect();
    let named = names.iter().filter_map(|name| Some((*name, rest.strip_prefix(name)?.strip_prefix('.')?)));
    let Some((provider, name)) = named.max_by_key(|(provider, _)| provider.len()) else {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let reason =
            format!("read by nobody: it belongs to no provider that `config.providers` names ({known})");
        return Some(Warning { value: None, ..Warning::of(entry, reason) });
    };
    let class = properties.find(&format!("{PREFIX}{provider}.class")).map_or("", |entry| entry.value.trim());
    let parameters: &[&str] = match class.strip_prefix(PACKAGE).unwrap_or(class) {
        "FileConfigProvider" | "DirectoryConfigProvider" => &["class", PATHS],
        "EnvVarConfigProvider" => &["class", PATTERN],
        // Misspelt, most of the time: that has a fault of its own.
        _ => &["class", PATHS, PATTERN],
    };
    if parameters.contains(&name) {
        return None;
    }
    let warning = Warning { value: None, ..unknown::nobody(entry) };
    Some(match alike(name, parameters) {
        Some(meant) => warning.remedy(format!("is `{PREFIX}{provider}.{meant}` meant?")),
        None => {
            let keys: Vec<String> = parameters.iter().map(|name| format!("`{name}`")).collect();
            warning.remedy(format!("this provider has {}", keys.join(" and ")))
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::config::MirrorConfig;

    const BASE: &str = "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n\
        config.providers=file,env\nconfig.providers.file.class=FileConfigProvider\n\
        config.providers.env.class=EnvVarConfigProvider\n";

    #[test]
    fn a_setting_of_a_provider_that_nobody_reads_is_told_with_what_was_meant() {
        const NOBODY: &str = "read by nobody, neither MM2 nor twinlog";
        for (key, told) in [
            ("file.clas", format!("{NOBODY}: is `config.providers.file.class` meant?")),
            ("file.Class", format!("{NOBODY}: is `config.providers.file.class` meant?")),
            (
                "file.allowed.paths",
                format!("{NOBODY}: is `config.providers.file.param.allowed.paths` meant?"),
            ),
            (
                "file.parm.allowed.paths",
                format!("{NOBODY}: is `config.providers.file.param.allowed.paths` meant?"),
            ),
            (
                "env.param.allowlist.patern",
                format!("{NOBODY}: is `config.providers.env.param.allowlist.pattern` meant?"),
            ),
            (
                "env.param.allowed.paths",
                format!("{NOBODY}: this provider has `class` and `param.allowlist.pattern`"),
            ),
            ("file.x", format!("{NOBODY}: this provider has `class` and `param.allowed.paths`")),
            (
                "fil.class",
                "read by nobody: it belongs to no provider that `config.providers` names (file, env)"
                    .to_owned(),
            ),
        ] {
            let config =
                MirrorConfig::from_properties(format!("{BASE}config.providers.{key}=x").as_bytes()).unwrap();
            let [warning] = config.warnings() else { panic!("{key}: {:?}", config.warnings()) };
            assert_eq!(warning.to_string(), format!("line 8: `config.providers.{key}`: {told}"));
        }
        for line in [
            "config.providers.file.param.allowed.paths=/x",
            "config.providers.env.param.allowlist.pattern=.*",
        ] {
            let config = MirrorConfig::from_properties(format!("{BASE}{line}").as_bytes()).unwrap();
            assert!(config.warnings().is_empty(), "{line}: {:?}", config.warnings());
        }
    }
}
